//! Finds faults of Active Directory accounts before a node or the broker asks for their passwords.
//!
//! It reads a directory by `gmsa-directory`, or what others printed of one, and writes nothing.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`lint`] | findings about accounts, their forest, and credential specs |
//! | [`principal`] | who may retrieve a password, by nested groups |
//! | [`ldif`] | entries as text, and a directory of them |
//! | [`powershell`] | output of the ActiveDirectory module, read as JSON; accounts and domains in it |
//! | [`summary`] | the properties of accounts, for people |
//! | [`ticket`] | whether an account can log on with its password |
//! | [`spec`] | a new credential spec for an account of a directory |

pub mod ldif;
pub mod lint;
pub mod powershell;
pub mod principal;
pub mod spec;
pub mod summary;
pub mod ticket;

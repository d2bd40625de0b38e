//! Active Directory, as a client of LDAP sees it: the domains of a forest, accounts, and who may retrieve a managed password.
//!
//! Invariants: nothing goes over the network without TLS and a verified certificate; the password goes only to domain controllers that the
//! user names, or that the DNS names and whose certificate has the name of the domain or the user confirms; each search and each command read a bounded
//! amount; what holds a managed password is wiped when it is dropped.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`directory`](Directory), [`budget`](Budget), [`error`](Error) | a session: its domains and searches; what it may cost; why it fails |
//! | [`ldap`], [`filter`](LdapFilter), [`ldif`] | the protocol; what is searched for; entries as text |
//! | [`address`](Address), [`dns`] | controllers, and how the DNS finds them |
//! | [`entry`], [`identifier`](Sid), [`descriptor`](Retrieval) | an entry, its SID and GUID, and its access rights |
//! | [`account`], [`principal`], [`forest`] | an account; who may retrieve its password, by nested groups; the forest's domains, and what a controller says of itself |
//! | [`lint`] | findings about accounts, their forest, and credential specs |
//! | [`managed_password`](ManagedPassword) | the password of an account |
//! | [`powershell`] | output of the ActiveDirectory module, read as JSON |

pub mod account;
mod address;
mod budget;
mod descriptor;
mod directory;
pub mod dns;
pub mod entry;
mod error;
mod filter;
pub mod forest;
mod identifier;
pub mod ldap;
pub mod ldif;
pub mod lint;
mod managed_password;
pub mod powershell;
pub mod principal;

/// Limits on input. See `docs/security.md`.
pub mod limits {
    pub use crate::{
        budget::{MAX_BYTES, MAX_SEARCHES, MAX_TIME, OPERATION},
        ldap::connection::{MAX_ENTRIES, MAX_MESSAGE, MAX_SEARCH},
    };
}

pub use address::{Address, Controller, Transport};
pub use budget::Budget;
pub use descriptor::{AccessRule, Retrieval, Unknown};
pub use directory::{Access, Confirm, Directory};
pub use dns::NameServers;
pub use entry::Entry;
pub use error::Error;
pub use filter::{LdapFilter, LdapSearch, SearchScope};
pub use identifier::{Guid, Sid};
pub use ldap::{Credentials, LdapConnection};
pub use managed_password::ManagedPassword;

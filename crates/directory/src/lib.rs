//! Active Directory, as a client of LDAP sees it: the domains of a forest, accounts, and their passwords.
//!
//! Invariants: nothing goes over the network without TLS and a verified certificate; the password goes only to domain controllers that the
//! user names, or that the DNS names and whose certificate has the name of the domain or the user confirms; each search and each command read a bounded
//! amount; what holds a managed password is wiped when it is dropped.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`directory`](Directory), [`budget`](Budget), [`error`](Error) | a session: its domains and searches; what it may cost; why it fails |
//! | [`ldap`], [`filter`](LdapFilter) | the protocol; what is searched for |
//! | [`address`](Address), [`dns`] | controllers, and how the DNS finds them |
//! | [`entry`], [`identifier`], [`descriptor`](Retrieval) | an entry, its SID and GUID, and its access rights |
//! | [`account`], [`forest`] | an account; the forest's domains, and what a controller says of itself |
//! | [`credentials`], [`managed_password`](ManagedPassword) | the user who logs on, and the password; the password of an account |

pub mod account;
mod address;
mod budget;
pub mod credentials;
mod descriptor;
mod directory;
pub mod dns;
pub mod entry;
mod error;
mod filter;
pub mod forest;
pub mod identifier;
pub mod ldap;
mod managed_password;

/// Limits on input. See `docs/security.md`.
pub mod limits {
    pub use crate::{
        budget::{MAX_BYTES, MAX_SEARCHES, MAX_TIME, OPERATION},
        ldap::connection::{MAX_ENTRIES, MAX_MESSAGE, MAX_SEARCH},
    };
}

pub use address::{Address, Controller, Transport};
pub use budget::Budget;
pub use credentials::Credentials;
pub use descriptor::{AccessRule, Retrieval, Unknown};
pub use directory::{Access, Confirm, Directory};
pub use dns::NameServers;
pub use entry::Entry;
pub use error::Error;
pub use filter::{LdapFilter, LdapSearch, SearchScope};
pub use identifier::Sid;
pub use ldap::LdapConnection;
pub use managed_password::ManagedPassword;

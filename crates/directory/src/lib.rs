//! Active Directory, as a client of LDAP sees it: the domains of a forest, accounts, and who may retrieve a managed password.
//!
//! Invariants: nothing goes over the network without TLS and a verified certificate; the password goes to the domain controllers that the user
//! names, or to those of the forest; what is read is bounded, and of a managed password nothing is kept.

pub mod account;
mod address;
mod descriptor;
mod directory;
pub mod entry;
mod error;
mod filter;
pub mod forest;
mod identifier;
pub mod ldap;
pub mod ldif;
pub mod lint;
pub mod principal;
pub mod resolver;

pub use address::{Address, Controller, Transport};
pub use descriptor::{Retrieval, Rule, allowing};
pub use directory::{Access, Directory};
pub use entry::Entry;
pub use error::Error;
pub use filter::{Filter, Scope, Search};
pub use identifier::{Guid, Sid};
pub use ldap::{Connection, Credentials};
pub use resolver::Resolver;

//! LDAP (RFC 4511), as much of it as is needed: simple bind over TLS, and searches by pages.

pub(crate) mod connection;
pub mod message;

pub use connection::{LdapConnection, trust};

//! LDAP (RFC 4511), as much of it as is needed: simple bind over TLS, searches by pages, and adding an object.

pub(crate) mod ber;
mod connection;
pub mod message;

pub(crate) use connection::trust;
pub use connection::{Connection, Credentials};

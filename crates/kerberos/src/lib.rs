//! Kerberos V5 (RFC 4120) for a client that has an AES key or a password of an account of Active Directory.
//!
//! [`KdcRequest`] is the protocol without I/O: it makes a message and reads the answer. [`Kdcs`] sends it over TCP.
//!
//! Invariants: encryption types are AES-256 and AES-128 with HMAC-SHA1 (RFC 3962), no others; an answer counts only if it is for the request,
//! decrypts with the expected key and has a bounded size; nothing in an answer makes this crate panic; keys and passwords are wiped when dropped,
//! and never printed.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | `request`, `reply`, [`kdc_error`](KdcError), [`error`](Error) | the exchanges: a message, its answer, a refusal, another failure |
//! | `tcp` | one KDC after the other, within time limits |
//! | [`der`], `name`, `stack` | the encoding; names of principals; wiping of the stack |
//! | `key`, `cipher`, `password` | keys (RFC 3961), encryption (RFC 3962), keys of passwords |
//! | `ticket`, `ccache`, `krb5_conf`, `keytab` | a ticket, the two files that clients read, and the one of services |

mod ccache;
mod cipher;
pub mod der;
mod error;
mod kdc_error;
mod key;
mod keytab;
mod krb5_conf;
mod name;
mod password;
mod reply;
mod request;
mod stack;
mod tcp;
mod ticket;

/// Limits on input. See `docs/security.md`.
pub mod limits {
    pub use crate::{password::MAX_ITERATIONS, tcp::MAX_ANSWER};
}

pub use ccache::ccache;
pub use error::Error;
pub use kdc_error::{KdcError, KdcRefusal};
pub use key::{EncryptionType, Key, usage};
pub use keytab::{KeytabEntry, keytab, with_former};
pub use krb5_conf::krb5_conf;
pub use name::{Principal, PrincipalName, Realm};
pub use password::{EtypeInfo2Entry, Password};
pub use reply::EncryptedData;
pub use request::KdcRequest;
pub use tcp::Kdcs;
pub use ticket::Ticket;

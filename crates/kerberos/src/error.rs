//! Why there is no key or ticket.

use std::{io, net::SocketAddr, time::Duration};

use crate::{KdcError, KdcRefusal};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("none is configured, and the DNS names none")]
    NoKdc,
    #[error("cannot connect to the KDC {0}")]
    Unreachable(SocketAddr, #[source] io::Error),
    #[error("the KDC {0} did not answer within {time} ms", time = .1.as_millis())]
    TimedOut(SocketAddr, Duration),
    #[error("the KDC {0} ended the connection without an answer")]
    Ended(SocketAddr),
    #[error("the KDC {0} answers with {1} bytes: the limit is 64 KiB")]
    TooMuch(SocketAddr, u32),
    #[error("the KDC refuses: {0}")]
    Refused(Box<KdcError>),
    #[error("the answer of the KDC cannot be read: {0}")]
    Malformed(&'static str),
    #[error("the answer of the KDC has another {0} than the request")]
    Mismatch(&'static str),
    #[error(
        "the answer of the KDC does not decrypt with the key: it was encrypted with another key, or changed on its way"
    )]
    Decrypt,
    #[error("the KDC asks for {0} iterations of the password: the limit is 65,536")]
    Iterations(u64),
    #[error("the KDC offers no AES key for the account")]
    NoAes,
    #[error("the key is not an AES key")]
    Key,
    #[error("the system gives no random bytes")]
    Random,
}

impl Error {
    /// Whether another KDC can be asked: this one gave no answer, or says that it is not available.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::NoKdc | Self::Unreachable(..) | Self::TimedOut(..) | Self::Ended(_) | Self::TooMuch(..) => true,
            Self::Refused(error) => error.refusal() == KdcRefusal::Unavailable,
            _ => false,
        }
    }
}

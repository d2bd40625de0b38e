//! A certificate and its key in two files, looked at again whenever they may have changed.
//!
//! What always holds: a new pair is checked whole before it is served, and until one passes the old one is; an error names
//! the file and the step. Must not: publish half of a change.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use thiserror::Error;

use super::{Clock, KeyPair, KeyPairError, Served};
use crate::telemetry;

mod watch;

pub(super) use watch::Folders;

/// The largest file that is read, in bytes: a chain of 4096-bit RSA certificates is a few KiB.
const MAX_FILE: u64 = 1024 * 1024;

/// How many times to read what is being replaced while it is read.
const ATTEMPTS: usize = 5;

/// Where a certificate chain and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The chain, the server's own certificate first.
    pub cert: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

/// Why no key pair came out of two files.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than a certificate or a key can be.
    #[error("{} is larger than {MAX_FILE} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The files can be read, but are not a key pair to serve with.
    #[error("{} and {} cannot be served", .cert.display(), .key.display())]
    Invalid {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong with them.
        source: KeyPairError,
    },
}

/// Reads a certificate chain and its key, and checks that they can be served at `now`.
///
/// # Errors
/// Which file could not be read, or why the two cannot be served.
pub fn load(cert: &Path, key: &Path, now: SystemTime) -> Result<KeyPair, LoadError> {
    let (cert_pem, key_pem) = read_together(cert, key)?;
    KeyPair::from_pem(&cert_pem, &key_pem, now).map_err(|source| LoadError::Invalid {
        cert: cert.to_owned(),
        key: key.to_owned(),
        source,
    })
}

impl Files {
    /// Serves what the files hold, now and whenever they change: as soon as their folder says so, and every `interval`
    /// in any case. What cannot be served is logged and counted in `served`, which goes on with what it has.
    pub async fn keep_served(self, served: Served, interval: Duration, clock: Clock) -> Infallible {
        let mut folders = Folders::of(&[&self.cert, &self.key], interval);
        let this = Arc::new(self);
        loop {
            let (files, now) = (Arc::clone(&this), clock.now());
            // A file system that hangs must not hang the process.
            match tokio::task::spawn_blocking(move || load(&files.cert, &files.key, now)).await {
                Ok(loaded) => take(&served, loaded),
                Err(error) => tracing::error!(%error, "reading the certificate failed"),
            }
            folders.changed().await;
        }
    }
}

/// Publishes a pair that is new and good.
fn take(served: &Served, loaded: Result<KeyPair, LoadError>) {
    match loaded {
        Ok(pair) if served.pair().is_some_and(|current| current.chain() == pair.chain()) => served.settle(),
        Ok(pair) => {
            let certificate = pair.summary().clone();
            served.publish(pair);
            tracing::info!(%certificate, "serving a new certificate");
        }
        Err(error) => {
            let reason = telemetry::chain(&error);
            if served.refuse(&reason) {
                let current = served.current().map_or_else(|| "none".to_owned(), |current| current.to_string());
                tracing::error!(
                    reason,
                    current,
                    "cannot serve what the certificate's files hold; what was served before stays"
                );
            }
        }
    }
}

/// Reads both files as they were at one time: where the first one has changed by when the second was read, it begins anew.
fn read_together(cert: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), LoadError> {
    let mut before = read(cert)?;
    for _ in 1..ATTEMPTS {
        let key = read(key)?;
        let after = read(cert)?;
        if before == after {
            return Ok((after, key));
        }
        before = after;
    }
    // Still being written: what is wrong with it shows when it is checked.
    Ok((before, read(key)?))
}

/// Reads a file. One that is not there is tried again at once: the kubelet swaps the link to a folder and removes the old
/// one, which may be where a path was about to lead.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let missing =
        |opened: &io::Result<File>| opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let mut opened = File::open(path);
    for _ in 1..ATTEMPTS {
        if missing(&opened) {
            opened = File::open(path);
        }
    }
    let mut bytes = Vec::new();
    // One byte more than is allowed tells that the file is longer.
    opened.map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;

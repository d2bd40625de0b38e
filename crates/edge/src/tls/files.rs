//! Certificates, keys and CAs in PEM files.
//!
//! Invariants: a new pair is validated completely before it is served, and until one is valid the current pair
//! stays in use, also while the new one is not valid yet; an error names the file and the step. Must not: combine files of two versions.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use thiserror::Error;
use tokio::time::timeout;

use super::{CaBundle, CertificatesError, KeyPair, KeyPairError, Served, reload::Reload};

/// The largest file that is read, in bytes: a chain of 4096-bit RSA certificates is a few KiB.
const MAX_FILE: u64 = 1024 * 1024;

/// How often to read files that are replaced while they are read.
const ATTEMPTS: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The chain, the server's own certificate first.
    pub cert: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

#[derive(Debug, Error)]
pub enum FileError {
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} and {} cannot be served", .files.cert.display(), .files.key.display())]
    InvalidPair { files: Files, source: KeyPairError },
    #[error("{} does not hold certificate authorities", .path.display())]
    InvalidCas { path: PathBuf, source: CertificatesError },
}

/// Reads the certificates of CAs.
///
/// # Errors
/// Where the file cannot be read, or has no certificate.
pub fn load_cas(path: &Path) -> Result<CaBundle, FileError> {
    CaBundle::from_pem(&read(path)?).map_err(|source| FileError::InvalidCas { path: path.to_owned(), source })
}

/// Logs that CAs which were loaded again are invalid.
pub fn log_invalid_cas(reason: &str) {
    tracing::error!(reason, "cannot use the new certificate authorities; the current ones stay in use");
}

impl Files {
    /// Reads the pair, and checks that it can be served at `now`.
    ///
    /// # Errors
    /// The file that cannot be read, or why the two cannot be served.
    pub fn load(&self, now: SystemTime) -> Result<KeyPair, FileError> {
        // Files that are replaced between two reads may not fit together.
        retry(|| {
            KeyPair::from_pem(&read(&self.cert)?, &read(&self.key)?, now)
                .map_err(|source| FileError::InvalidPair { files: self.clone(), source })
        })
    }

    /// Serves what the files hold, now and after each change.
    pub async fn keep_served(self, served: Served, interval: Duration) -> Infallible {
        let files = self.clone();
        let load = move || files.load(SystemTime::now());
        let mut pairs = Reload::new(&[&self.cert, &self.key], interval, load);
        let mut until_valid = Duration::MAX;
        loop {
            // Cancelled, it loads at once the next time.
            let loaded = timeout(until_valid, pairs.next()).await;
            until_valid = Duration::MAX;
            let Ok(offered) = loaded else { continue };
            let now = SystemTime::now();
            if let Ok(pair) = &offered {
                until_valid = pair.summary.not_before.duration_since(now).unwrap_or(Duration::MAX);
            }
            served.offer(offered, now);
        }
    }
}

/// Reads a file. The kubelet swaps the link to a folder and removes the old folder, which the path may have led to a moment
/// before.
///
/// # Errors
/// Where the file cannot be read, or is larger than a certificate or a key can be.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte more than is allowed shows that the file is longer.
    retry(|| File::open(path)).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    let too_large = || failed(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    if bytes.len() as u64 > MAX_FILE { Err(too_large()) } else { Ok(bytes) }
}

/// Repeats an attempt that may fail because files are replaced at the same time.
fn retry<T, E>(attempt: impl Fn() -> Result<T, E>) -> Result<T, E> {
    (1..ATTEMPTS).find_map(|_| attempt().ok()).map_or_else(attempt, Ok)
}

//! A certificate and its key in two files.
//!
//! What always holds: an error names the file and the step. Must not: publish anything that is not a whole [`KeyPair`].

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

use thiserror::Error;

use super::{KeyPair, KeyPairError};

/// The largest file that is read, in bytes: a chain of 4096-bit RSA certificates is a few KiB.
const MAX_FILE: u64 = 1024 * 1024;

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
    KeyPair::from_pem(&read(cert)?, &read(key)?, now).map_err(|source| LoadError::Invalid {
        cert: cert.to_owned(),
        key: key.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte more than is allowed tells that the file is longer.
    File::open(path).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

//! A certificate for one run on one machine: made at start, signed by a CA that lasts as long as the process.
//!
//! What always holds: the CA's key never leaves the memory of this function; its certificate is written into a folder that
//! only this user can enter and that did not exist before, and goes with the process.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    KeyPair, KeyPairError,
    issue::{Ca, IssueError},
};

/// Longer than anybody leaves a standalone server running.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The CA's certificate, in a file that is removed when this is dropped.
#[derive(Debug)]
pub struct CaFile {
    folder: PathBuf,
    file: PathBuf,
}

impl CaFile {
    /// Where the CA's certificate stands, as PEM.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for CaFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove the folder of the CA's certificate");
        }
    }
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// The certificate itself.
    #[error("cannot make a certificate")]
    Issue(#[from] IssueError),
    /// The new pair did not pass its own check.
    #[error("cannot use the certificate that was made")]
    KeyPair(#[from] KeyPairError),
    /// The CA's certificate could not be written.
    #[error("cannot write the CA's certificate to {}", path.display())]
    Write {
        /// Where it should have gone.
        path: PathBuf,
        /// Why it did not.
        source: io::Error,
    },
}

/// Makes a certificate for `names` and writes the certificate of its CA into a new folder under `parent`.
///
/// # Errors
/// Where a name cannot stand in a certificate, there are no random bytes, or the folder cannot be written.
pub fn make(names: &[String], parent: &Path, now: SystemTime) -> Result<(KeyPair, CaFile), SelfSignedError> {
    let ca = Ca::generate("gmsa-webhook standalone CA", now, LIFETIME)?;
    let leaf = ca.issue(names, now, LIFETIME)?;
    let pair = KeyPair::from_pem(leaf.cert.as_bytes(), leaf.key.as_bytes(), now)?;
    // The serial number is random: nobody can have made this folder before.
    let folder = parent.join(format!("gmsa-webhook-{}", pair.serial()));
    let file = folder.join("ca.crt");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|source| SelfSignedError::Write { path: folder.clone(), source })?;
    let ca_file = CaFile { folder, file };
    fs::write(&ca_file.file, ca.cert_pem())
        .map_err(|source| SelfSignedError::Write { path: ca_file.file.clone(), source })?;
    Ok((pair, ca_file))
}

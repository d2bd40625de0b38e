//! A certificate for one run on one machine, signed by a CA that lasts as long as the process.
//!
//! What always holds: the CA's key never leaves the memory of [`make`]; its certificate is written into a new folder that
//! only this user can enter, and removed with the process.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    KeyPair,
    issue::{Ca, IssueError},
};

/// Longer than a standalone server runs.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A file with the CA's certificate as PEM, which is removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryCaFile(PathBuf);

impl TemporaryCaFile {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryCaFile {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent()
            && let Err(error) = fs::remove_dir_all(folder)
        {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove the folder of the CA's certificate");
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    #[error("cannot create a certificate")]
    Issue(#[from] IssueError),
    #[error("cannot write the CA's certificate to {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Creates a certificate for `names` and writes the certificate of its CA into a new folder in `parent`.
///
/// # Errors
/// Where a name is not valid in a certificate, there are no random bytes, or the folder cannot be written.
pub fn make(names: &[String], parent: &Path, now: SystemTime) -> Result<(KeyPair, TemporaryCaFile), SelfSignedError> {
    let ca = Ca::generate("gmsa-webhook standalone CA", now, LIFETIME)?;
    let (_, pair) = ca.issue_pair(names, now, LIFETIME)?;
    // The serial number is random: no other process can have created this folder before.
    let folder = parent.join(format!("gmsa-webhook-{}", pair.serial()));
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| SelfSignedError::Write { path, source }
    };
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(failed(&folder))?;
    let ca_file = TemporaryCaFile(folder.join("ca.crt"));
    fs::write(&ca_file.0, ca.cert_pem()).map_err(failed(&ca_file.0))?;
    Ok((pair, ca_file))
}

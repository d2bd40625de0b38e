//! The authorities in a file, published into webhook configurations: for certificates from a Secret that somebody else
//! fills, where nobody fills in the `caBundle`.
//!
//! What always holds: a file that cannot be used changes nothing, and what it held before stays published. Whoever replaces
//! an authority puts the new one beside the old one first: the bundle and the serving certificate change one after the other.

use std::{convert::Infallible, path::PathBuf, time::Duration};

use thiserror::Error;

use super::{
    CaBundle, CaBundleError, Clock, Publication, Wishes,
    files::{Folders, LoadError, read},
};
use crate::telemetry;

/// A file with the certificates of authorities, as PEM.
pub struct CaFile {
    file: PathBuf,
    publication: Publication,
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
enum CaFileError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{} does not hold certificate authorities", .path.display())]
    Invalid { path: PathBuf, source: CaBundleError },
}

impl CaFile {
    /// Publishes what `file` holds by `publication`.
    #[must_use]
    pub fn new(file: PathBuf, publication: Publication) -> Self {
        Self { file, publication }
    }

    /// Publishes it for as long as the process lives: whenever the file changes, and every `interval` in any case, because
    /// somebody else may have written the configurations.
    pub async fn keep_published(mut self, interval: Duration, clock: Clock) -> Infallible {
        let mut folders = Folders::of(&[&self.file], interval);
        let mut wishes = None;
        let mut said = String::new();
        loop {
            let file = self.file.clone();
            match tokio::task::spawn_blocking(move || load(file)).await {
                Ok(Ok(bundle)) => {
                    said.clear();
                    wishes = Some(Wishes { needed: bundle, ..Wishes::default() });
                }
                Ok(Err(error)) => {
                    let reason = telemetry::chain(&error);
                    if reason != said {
                        tracing::error!(reason, "cannot use the certificate authorities; what was published stays");
                        said = reason;
                    }
                }
                Err(error) => tracing::error!(%error, "reading the certificate authorities failed"),
            }
            if let Some(wishes) = &wishes {
                self.publication.pass(wishes, clock.now()).await;
            }
            folders.changed().await;
        }
    }
}

fn load(file: PathBuf) -> Result<CaBundle, CaFileError> {
    let pem = read(&file)?;
    CaBundle::from_pem(&pem).map_err(|source| CaFileError::Invalid { path: file, source })
}

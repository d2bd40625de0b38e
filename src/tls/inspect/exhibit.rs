//! What an inspection looks at, and where it comes from: files, the Secret, webhook configurations.

use std::path::Path;

use thiserror::Error;

use crate::{
    apiserver::ApiServer,
    tls::{
        configurations::{self, Configuration, ConfigurationError},
        files::{FileError, read},
        self_managed::{self, CA_CERT, SecretError, SecretName, TLS_CERT, TLS_KEY},
    },
};

/// What is to be looked at. Private keys among it are never printed.
#[derive(Clone, Default)]
pub struct Exhibit {
    /// The serving chain, as PEM.
    pub cert: Vec<u8>,
    /// Its key, as PEM.
    pub key: Option<Vec<u8>>,
    /// The authorities that are said to have signed it, as PEM.
    pub ca: Option<Vec<u8>>,
    /// Webhook configurations, and what they hold; `None` where they do not exist.
    pub configurations: Vec<(Configuration, Option<configurations::Found>)>,
}

/// Why there is nothing to look at.
#[derive(Debug, Error)]
pub enum ExhibitError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The Secret.
    #[error(transparent)]
    Secret(#[from] Box<SecretError>),
    /// There is no such Secret.
    #[error("the Secret {0} does not exist")]
    NoSecret(SecretName),
    /// A configuration.
    #[error(transparent)]
    Configuration(#[from] Box<ConfigurationError>),
}

impl Exhibit {
    /// What is in files.
    ///
    /// # Errors
    /// Which file cannot be read.
    pub fn from_files(cert: &Path, key: Option<&Path>, ca: Option<&Path>) -> Result<Self, ExhibitError> {
        let optional = |path: Option<&Path>| path.map(read).transpose();
        Ok(Self { cert: read(cert)?, key: optional(key)?, ca: optional(ca)?, configurations: Vec::new() })
    }

    /// What is in a Secret: `tls.crt`, `tls.key` and `ca.crt`.
    ///
    /// # Errors
    /// Where there is no such Secret, or it cannot be read.
    pub async fn from_secret(api: &ApiServer, secret: &SecretName) -> Result<Self, ExhibitError> {
        let found = self_managed::get(api, secret).await.map_err(Box::new)?;
        let mut data = found.ok_or_else(|| ExhibitError::NoSecret(secret.clone()))?.data.unwrap_or_default();
        let mut value = |key| data.remove(key).map(|value| value.0);
        let cert = value(TLS_CERT).unwrap_or_default();
        Ok(Self { cert, key: value(TLS_KEY), ca: value(CA_CERT), configurations: Vec::new() })
    }

    /// Reads webhook configurations as well.
    ///
    /// # Errors
    /// Which configuration cannot be read.
    pub async fn with_configurations(
        mut self,
        api: &ApiServer,
        names: impl IntoIterator<Item = Configuration>,
    ) -> Result<Self, ExhibitError> {
        for name in names {
            let found = configurations::read(api, &name).await.map_err(Box::new)?;
            self.configurations.push((name, found));
        }
        Ok(self)
    }
}

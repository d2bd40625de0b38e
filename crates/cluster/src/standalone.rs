//! A cluster made of files: what `serve --standalone` and offline checks ask instead of an API server.
//!
//! What always holds: it is complete or it is not there; later changes to the files are not seen.

use std::path::Path;

use crate::{
    authorizer::rbac::Rbac,
    manifests::{self, Document, Error},
    resolver::manifests::CredentialSpecs,
};

/// The credential specs, roles and bindings of some manifests.
#[derive(Debug, Default)]
pub struct Standalone {
    /// Finds credential specs.
    pub specs: CredentialSpecs,
    /// Says who may use them.
    pub rbac: Rbac,
}

impl Standalone {
    /// Loads a folder of manifests, or one file. A folder without any credential spec or role is fine.
    ///
    /// # Errors
    /// All that is wrong: the files that cannot be read or parsed; where there are none, the objects that the API server
    /// would refuse.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::from_documents(&manifests::load(path)?)
    }

    /// Takes credential specs, roles and bindings among `documents`; other kinds are skipped.
    ///
    /// # Errors
    /// All objects that the API server would refuse.
    pub fn from_documents(documents: &[Document]) -> Result<Self, Error> {
        match (CredentialSpecs::from_documents(documents), Rbac::from_documents(documents)) {
            (Ok(specs), Ok(rbac)) => Ok(Self { specs, rbac }),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
            (Err(specs), Err(rbac)) => Err(specs.and(rbac)),
        }
    }
}

#[cfg(test)]
mod tests;

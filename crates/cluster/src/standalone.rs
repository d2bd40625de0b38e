//! A cluster made of files: what `serve --standalone` and offline checks ask instead of an API server.
//!
//! Invariants: it is complete or it is not there; later changes to the files are not seen.

use std::path::Path;

use crate::{
    authorizer::rbac::Rbac,
    manifests::{self, Bounds, Error, Manifests},
    resolver::manifests::CredentialSpecs,
};

/// The credential specs, roles and bindings of some manifests.
#[derive(Debug, Default)]
pub struct Standalone {
    pub specs: CredentialSpecs,
    pub rbac: Rbac,
}

impl Standalone {
    /// Loads a folder of manifests, or one file. A folder without any credential spec or role is fine.
    ///
    /// # Errors
    /// All that is wrong: what cannot be read, and the objects that the API server would refuse.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::from_manifests(manifests::load(path, &Bounds::SERVER).strict())
    }

    fn from_manifests(manifests: Manifests) -> Result<Self, Error> {
        let Manifests { documents, mut problems, .. } = manifests;
        let (specs, refused_specs) = CredentialSpecs::from_documents(&documents);
        let (rbac, refused_rbac) = Rbac::from_documents(&documents);
        problems.extend(refused_specs.into_iter().chain(refused_rbac));
        Error::unless_none(problems)?;
        Ok(Self { specs, rbac })
    }
}

#[cfg(test)]
mod tests;

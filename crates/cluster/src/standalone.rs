//! Credential specs, roles and bindings from files: they replace the API server in `serve --standalone`.
//!
//! Invariants: the files are loaded completely or not at all; later changes to them are not seen.

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
    /// Loads a folder of manifests, or one file. A folder may hold no credential spec and no role.
    ///
    /// # Errors
    /// All problems: what cannot be read, and the objects that the API server would refuse.
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

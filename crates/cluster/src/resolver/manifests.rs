//! Credential specs from manifests: the [`Resolver`] that replaces a cluster.
//!
//! Invariants: everything is read, checked and printed before the first question, so an answer is a look-up and
//! never fails. Unknown keys in a `credspec` are kept, where a cluster's CRD would prune them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use tokio::time::Instant;

use super::{Freshness, Resolved, Resolver};
use crate::manifests::Document;
use gmsa_core::{
    admission::{Source, SpecFact},
    credspec::{Contents, GROUP, KIND, SpecName, VERSION},
    diagnostic::{Diagnostic, Location},
    quote::{MESSAGE, shorten},
};

/// The older version that the API server serves as well, with the same structure.
const OLD_VERSION: &str = "v1alpha1";

#[derive(Debug, Default)]
pub struct CredentialSpecs {
    specs: BTreeMap<SpecName, DefinedSpec>,
}

#[derive(Debug)]
struct DefinedSpec {
    location: Location,
    fact: SpecFact,
}

impl CredentialSpecs {
    /// Takes the credential specs among `documents`; other kinds are skipped. Objects that the API server would refuse
    /// (an unknown version, an invalid name or one that another has) are left out, as in a cluster, and reported.
    pub fn from_documents(documents: &[Document]) -> (Self, Vec<Diagnostic>) {
        let mut specs = Self::default();
        let ours = documents.iter().filter(|document| document.group() == GROUP && document.kind == KIND);
        let problems = ours.filter_map(|document| specs.add(document).err()).collect();
        (specs, problems)
    }

    fn add(&mut self, document: &Document) -> Result<(), Diagnostic> {
        const NAME: &str = "/metadata/name";
        let versions = [VERSION, OLD_VERSION].map(|version| format!("{GROUP}/{version}"));
        if !versions.contains(&document.api_version) {
            return Err(document.problem("/apiVersion", &format!("expected {}", versions.join(" or "))));
        }
        let value = document.value();
        let written = value.pointer(NAME).unwrap_or(&Value::Null);
        let Some(name) = written.as_str().and_then(SpecName::parse) else {
            let found = written.to_string();
            let found = shorten(&found, MESSAGE);
            return Err(document.problem(NAME, &format!("expected a lower-case DNS subdomain, found {found}")));
        };
        match self.specs.entry(name) {
            Entry::Occupied(first) => {
                let problem = format!("{KIND} {written} is defined twice, first in {}", first.get().location);
                Err(document.problem(NAME, &problem))
            }
            Entry::Vacant(free) => {
                let credspec = value.get("credspec").and_then(Value::as_object);
                let contents = |credspec| SpecFact::Contents(Arc::new(Contents::of(credspec)));
                let fact = credspec.map_or(SpecFact::Unusable, contents);
                free.insert(DefinedSpec { location: document.location.clone(), fact });
                Ok(())
            }
        }
    }

    /// Sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &SpecName> {
        self.specs.keys()
    }

    /// The state of a credential spec.
    pub fn fact(&self, name: &SpecName) -> SpecFact {
        self.specs.get(name).map_or(SpecFact::Missing, |spec| spec.fact.clone())
    }
}

impl Resolver for CredentialSpecs {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        ready(Resolved { fact: self.fact(name), source: Source::Files }).boxed()
    }
}

#[cfg(test)]
mod tests;

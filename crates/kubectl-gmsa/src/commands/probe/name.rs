//! The names of what the probe makes.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
};

pub(super) const POD: &str = "pod";

/// The container in the pod.
pub(super) const CONTAINER: &str = "probe";

/// A pod of the probe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodName {
    pub namespace: String,
    pub name: String,
}

impl PodName {
    /// One that no other pod has.
    pub fn new(namespace: &str, of: &str) -> Self {
        let name = format!("{of}-{:016x}", RandomState::new().build_hasher().finish());
        Self { namespace: namespace.to_owned(), name }
    }

    pub fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

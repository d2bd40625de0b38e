//! Pods that Windows takes for one computer: they use a credential spec, and the first 15 characters of their host names are the same.

use std::collections::{BTreeMap, BTreeSet};

use super::found;
use crate::shared::{output::first_five, pods::ClusterPod, rules};
use gmsa_core::{admission::advice::hostname::distinct, diagnostic::Check};

const HOST_NAMES: &str = "host names";

/// The pods, by a credential spec and by what counts of their host names.
#[derive(Default)]
pub(super) struct HostNames(BTreeMap<(String, String), Vec<String>>);

impl HostNames {
    pub(super) fn add(&mut self, pod: &ClusterPod) {
        let (namespace, name) = pod.place();
        // Without a host name of its own a pod has its name as one.
        let hostname = distinct(pod.admission.hostname().unwrap_or(name));
        let specs: BTreeSet<&str> = pod.admission.slots().filter_map(|slot| slot.name).collect();
        for spec in specs.into_iter().filter(|_| !pod.admission.is_linux()) {
            self.0.entry((spec.to_owned(), hostname.clone())).or_default().push(format!("{namespace}/{name}"));
        }
    }

    /// Nothing where each host name is its own.
    pub(super) fn check(self) -> Option<Check> {
        let alike: BTreeSet<String> = self.0.into_values().filter(|pods| pods.len() > 1).flatten().collect();
        if alike.is_empty() {
            return None;
        }
        let (count, names) = (alike.len(), first_five(&Vec::from_iter(alike)));
        let text = format!(
            "{count} pods share a credential spec and the first 15 characters of their host names with another, so they can lose their trust: \
             {names}"
        );
        Some(found(HOST_NAMES, &rules::SHARED_HOSTNAME, text))
    }
}

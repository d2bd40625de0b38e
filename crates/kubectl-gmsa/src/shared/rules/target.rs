//! Remedies for an object: a command if that is enough, otherwise a change in the manifest.
//!
//! Invariant: a name from the cluster is checked before it becomes part of a command, and a value cannot break out of its quotes.

use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    quote::shell,
};
use serde_json::{Value, json};

use crate::shared::kinds::Kind;

/// The object that a remedy is about: the pods of a workload, a pod without a known controller, or the pod of `probe`, which is deleted before the
/// remedy is read.
#[derive(Clone, Copy)]
pub enum FixTarget<'w> {
    Workload { kind: Kind, namespace: &'w str, name: &'w str },
    Pod { namespace: &'w str },
    Probe { namespace: &'w str },
}

impl FixTarget<'_> {
    fn namespace(&self) -> &str {
        match self {
            Self::Workload { namespace, .. } | Self::Pod { namespace } | Self::Probe { namespace } => namespace,
        }
    }

    /// The remedy that sets the fields of `spec` in the spec of its pods. Lists, except of containers, replace existing lists.
    pub fn change(&self, spec: &Value) -> String {
        let yaml = spec.to_string();
        let Self::Workload { kind, namespace, name } = self else {
            return format!(
                "Set {yaml} in the spec of its Pod template, or in its manifest, and create the Pod again."
            );
        };
        if !kind.follows_template() {
            return format!("Set {yaml} in the spec of its Pod template, then delete it and create it again.");
        }
        let way = kind.template().split('/').skip(1).collect::<Vec<_>>();
        let below = way.into_iter().rev().fold(json!({"spec": spec}), |below, key| json!({key: below}));
        let patch = shell::json(&below.to_string()).filter(|_| is_dns_label(namespace) && is_dns_subdomain(name));
        let Some(patch) = patch else { return format!("Set {yaml} in the spec of its Pod template.") };
        let kind = kind.as_str().to_ascii_lowercase();
        format!("`kubectl patch {kind} {name} --namespace {namespace} --patch {patch}`.")
    }

    /// A command about a pod in its namespace; `None` if a name is invalid.
    pub fn command(&self, verb: &str, pod: &str, more: &str) -> Option<String> {
        let namespace = self.namespace();
        (is_dns_label(namespace) && is_dns_subdomain(pod))
            .then(|| format!("`kubectl {verb} {pod} --namespace {namespace}{more}`"))
    }
}

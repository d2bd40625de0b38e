//! Pods that Windows takes for one computer: they share an account and the first 15 characters of their host names.
//!
//! When two such pods talk to one domain controller, one loses its trust
//! (<https://github.com/microsoft/Windows-Containers/issues/405>; Microsoft's page "Troubleshoot gMSAs for Windows containers" describes the
//! race). 15 characters is the length of the name that Windows gives a computer (`MAX_COMPUTERNAME_LENGTH`).
//! Without a host name of its own a pod has its name as one, and the names of the pods of a workload begin alike.
//!
//! Only `check` and `doctor` compare the names that Kubernetes makes; the webhook warns of a host name that the template sets.

use std::collections::HashMap;

use super::{
    super::workload::{Kind, PodCount, PodNames},
    Pod,
};
use crate::diagnostic::{Diagnostic, Severity, rules};

/// The length of the part of a host name that identifies a computer.
const COMPUTER_NAME_LENGTH: usize = 15;

/// The most pods of a workload whose names are compared.
const MAX_COMPARED: usize = 1000;

/// The hash that a Deployment puts into the names of its pods: a number of 32 bits in decimal (`ComputeHash` of
/// kube-controller-manager). Most have 10 digits.
const HASH: usize = 10;

const CONSEQUENCE: &str = "pods that share these and an account can lose their trust";

/// The YAML to add to the workload.
const ASK: &str = "spec:\n  template:\n    metadata:\n      annotations: {gmsa-webhook/random-hostname: \"true\"}";

/// The controller sets `hostname` itself (`initIdentity` of kube-controller-manager), so neither the webhook nor the template can.
const SHORTER: &str = "give it a name of at most 12 characters: a StatefulSet sets the host names of its pods itself, so the webhook gives none";

/// The part of a host name that identifies a computer, in lower case.
pub fn distinct(hostname: &str) -> String {
    hostname.chars().take(COMPUTER_NAME_LENGTH).map(|c| c.to_ascii_lowercase()).collect()
}

/// A workload of Kubernetes, as far as the names of its pods follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'w> {
    pub kind: Kind,
    pub name: &'w str,
    /// How many pods there will be, where the workload says so.
    pub count: Option<u64>,
    /// The number of the first pod of a `StatefulSet`.
    pub first: u64,
}

/// A warning about the host names of a workload's pods; its pointer is relative to the workload. `gives_hostnames` says that the
/// webhook gives random ones to all.
pub fn advise_replicas(pod: &Pod, replicas: Replicas<'_>, gives_hostnames: bool) -> Option<Diagnostic> {
    let Replicas { kind, name, count, .. } = replicas;
    if pod.is_linux() || !pod.uses_gmsa() || count.is_some_and(|count| count < 2) {
        return None;
    }
    // Length of the common start of all pod names, with the hyphen after it.
    let common = match kind.facts().pod_names {
        PodNames::Numbered => {
            let [one, other] = alike(replicas)?;
            let text = format!("the host names {one:?} and {other:?} have the same first 15 characters: {CONSEQUENCE}");
            return Some(shared("/metadata/name", Severity::Warning, text, SHORTER));
        }
        PodNames::Hashed => name.len() + 1 + HASH + 1,
        PodNames::Prefixed => name.len() + 1,
    };
    let is_of_many = count.is_some() || kind.facts().pod_count == PodCount::Nodes;
    if !is_of_many
        || kind.runs_to_completion()
        || common < COMPUTER_NAME_LENGTH
        || pod.hostname().is_some()
        || gives_hostnames
        || pod.asks_for_random_hostname()
    {
        return None;
    }
    let pointer = if count.is_some() { "/spec/replicas" } else { "/metadata/name" };
    let text = format!("the host names of its pods have the same first 15 characters: {CONSEQUENCE}");
    Some(shared(pointer, Severity::Note, text, ASK))
}

fn shared(pointer: &str, severity: Severity, message: String, fix: &str) -> Diagnostic {
    let found = Diagnostic::new(&rules::SHARED_HOSTNAME, message).with_severity(severity).with_fix(fix);
    Diagnostic { field: pointer.to_owned(), ..found }
}

/// Two pods of a `StatefulSet` whose names begin alike.
fn alike(Replicas { name, count, first, .. }: Replicas<'_>) -> Option<[String; 2]> {
    let mut seen: HashMap<String, String> = HashMap::new();
    let pods = (first..first.saturating_add(count?)).take(MAX_COMPARED);
    for pod in pods.map(|ordinal| format!("{name}-{ordinal}")) {
        if let Some(one) = seen.insert(distinct(&pod), pod.clone()) {
            return Some([one, pod]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: Kind, name: &str, count: Option<u64>, first: u64) -> Option<(Severity, String)> {
        let pod = json!({"spec": {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "web"}}}});
        said(&pod, Replicas { kind, name, count, first }, false)
    }

    fn said(pod: &serde_json::Value, replicas: Replicas<'_>, gives: bool) -> Option<(Severity, String)> {
        let pod = Pod::from_json(&pod.to_string()).unwrap();
        advise_replicas(&pod, replicas, gives).map(|found| (found.severity, found.message))
    }

    #[test]
    fn pods_of_a_stateful_set_are_compared_by_their_names() {
        let alike = |one: &str, other: &str| {
            let text = format!(
                "the host names \"{one}\" and \"{other}\" have the same first 15 characters: pods that share these and an account can lose \
                 their trust"
            );
            Some((Severity::Warning, text))
        };
        for (name, count, first, expected) in [
            ("very-long-name-web", Some(2), 0, alike("very-long-name-web-0", "very-long-name-web-1")),
            ("very-long-name-web", Some(1), 0, None),
            ("very-long-name-web", None, 0, None),
            // 14 characters and the hyphen are all that counts.
            ("fourteen-chars", Some(3), 5, alike("fourteen-chars-5", "fourteen-chars-6")),
            ("thirteen-char", Some(10), 0, None),
            ("thirteen-char", Some(11), 0, alike("thirteen-char-1", "thirteen-char-10")),
            ("thirteen-char", Some(2), 9, None),
            ("thirteen-char", Some(3), 9, alike("thirteen-char-10", "thirteen-char-11")),
            ("twelve-chars", Some(100), 0, None),
            ("web", Some(u64::MAX), 0, None),
            ("web", Some(u64::MAX), u64::MAX, None),
        ] {
            assert_eq!(of(Kind::StatefulSet, name, count, first), expected, "{name} {count:?}");
        }
    }

    #[test]
    fn pods_that_begin_with_the_name_of_their_workload_are_noted() {
        let noted = Some((
            Severity::Note,
            "the host names of its pods have the same first 15 characters: pods that share these and an account can lose their trust"
                .to_owned(),
        ));
        for (kind, name, count, expected) in [
            // `web-7d4b9c6f5d-` and five letters.
            (Kind::Deployment, "web", Some(2), noted.clone()),
            (Kind::Deployment, "ab", Some(2), None),
            (Kind::Deployment, "web", Some(1), None),
            (Kind::Deployment, "web", None, None),
            (Kind::DaemonSet, "fourteen-chars", None, noted.clone()),
            (Kind::DaemonSet, "thirteen-char", None, None),
            (Kind::ReplicaSet, "fourteen-chars", Some(2), noted.clone()),
            (Kind::Job, "fourteen-chars", Some(2), None),
        ] {
            assert_eq!(of(kind, name, count, 0), expected, "{kind:?} {name} {count:?}");
        }
        let gmsa = json!({"windowsOptions": {"gmsaCredentialSpecName": "web"}});
        let replicas = Replicas { kind: Kind::Deployment, name: "web", count: Some(2), first: 0 };
        for (pod, gives, expected) in [
            (json!({"spec": {"securityContext": gmsa}}), true, None),
            (json!({"spec": {"securityContext": gmsa, "hostname": "web"}}), false, None),
            (json!({"spec": {"securityContext": gmsa, "os": {"name": "linux"}}}), false, None),
            (json!({"spec": {}}), false, None),
            (asking("true", &gmsa), false, None),
            (asking("yes", &gmsa), false, noted),
        ] {
            assert_eq!(said(&pod, replicas, gives), expected, "{pod}");
        }
    }

    fn asking(value: &str, gmsa: &serde_json::Value) -> serde_json::Value {
        json!({"metadata": {"annotations": {crate::admission::pod::RANDOM_HOSTNAME: value}}, "spec": {"securityContext": gmsa}})
    }
}

//! The kinds of workloads, the words of `kubectl` for pods, and the controller of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

pub use gmsa_core::admission::workload::Kind;

/// The reference to the controller of an object.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The same for JSON of any kind, which may be invalid.
pub fn controller_in(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// The words of `kubectl` for pods.
pub const PODS: [&str; 3] = ["pod", "pods", "po"];

/// Whether a word is for pods.
pub fn is_pod(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let (word, version) = word.split_once('.').unwrap_or((&*word, ""));
    PODS.contains(&word) && ["", "v1", "v1."].contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_words_of_kubectl() {
        for (word, is_of_pods) in [
            ("po", true),
            ("Pods", true),
            ("pods.v1.", true),
            ("pod.apps", false),
            ("pods.v1.apps", false),
            ("podlog", false),
        ] {
            assert_eq!(is_pod(word), is_of_pods, "{word}");
        }
    }
}

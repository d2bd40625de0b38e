//! Reviews of pods that are created.

use serde_json::{Value, json};

pub fn create(namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": namespace,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "object": {"metadata": {"name": "pod"}, "spec": spec},
        },
    })
}

pub fn options(name: &str, contents: Option<&str>) -> Value {
    match contents {
        None => json!({"windowsOptions": {"gmsaCredentialSpecName": name}}),
        Some(text) => json!({"windowsOptions": {"gmsaCredentialSpecName": name, "gmsaCredentialSpec": text}}),
    }
}

/// A pod whose own slot and first container name `web`, and whose second container names `db`.
pub fn pod(namespace: &str, account: &str, expanded: bool) -> Value {
    let slot = |name: &str| options(name, expanded.then(|| format!(r#"{{"is":"{name}"}}"#)).as_deref());
    create(
        namespace,
        &json!({
            "serviceAccountName": account,
            "securityContext": slot("web"),
            "containers": [{"name": "a", "securityContext": slot("web")}, {"name": "b", "securityContext": slot("db")}],
        }),
    )
}

/// A pod that names only `web`, with this text.
pub fn simple(namespace: &str, account: &str, text: &str) -> Value {
    let slot = options("web", Some(text));
    create(namespace, &json!({"serviceAccountName": account, "securityContext": slot, "containers": []}))
}

pub const WEB: &str = r#"{"is":"web"}"#;

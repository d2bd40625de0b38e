//! Reviews as an API server sends them.

use serde_json::{Value, json};

/// A pod is created.
pub fn created(namespace: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": pod,
        },
    })
}

/// The security context of a slot.
pub fn slot(name: Option<&str>, contents: Option<&str>) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": name, "gmsaCredentialSpec": contents}})
}

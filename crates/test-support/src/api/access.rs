//! Access reviews, answered from a list of who may use what.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Who may use what: `(namespace, service account, credential spec)`.
pub(super) type Grants = HashSet<(String, String, String)>;

/// The `status` of a review with this `spec`, made in `namespace`; `Err` says what is wrong with the review.
pub(super) fn status(grants: &Grants, namespace: &str, spec: &Value) -> Result<Value, String> {
    let attributes = &spec["resourceAttributes"];
    if attributes["namespace"] != namespace {
        return Err("spec.resourceAttributes.namespace: must match metadata.namespace".to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let user = text(&spec["user"]);
    let account = user.strip_prefix(&format!("system:serviceaccount:{namespace}:")).unwrap_or_default();
    let groups = json!(["system:serviceaccounts", format!("system:serviceaccounts:{namespace}")]);
    let resource = ["verb", "group", "resource"].map(|field| text(&attributes[field]));
    let is_granted = grants.contains(&(namespace.to_owned(), account.to_owned(), text(&attributes["name"])));
    if !is_granted || spec["groups"] != groups || resource != ["use", "windows.k8s.io", "gmsacredentialspecs"] {
        return Ok(json!({"allowed": false}));
    }
    Ok(json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"test\""}))
}

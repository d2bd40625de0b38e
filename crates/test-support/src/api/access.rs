//! Reviews of access, answered from a list of who may use what, and of tokens, answered from a list of those.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

/// Who may do what: `(verb, namespace, service account, credential spec)`.
pub(super) type Grants = HashSet<[String; 4]>;

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
    let resource = ["group", "resource"].map(|field| text(&attributes[field]));
    let (verb, name) = (text(&attributes["verb"]), text(&attributes["name"]));
    let is_granted = grants.contains(&[verb, namespace.to_owned(), account.to_owned(), name]);
    if !is_granted || spec["groups"] != groups || resource != ["windows.k8s.io", "gmsacredentialspecs"] {
        return Ok(json!({"allowed": false}));
    }
    Ok(json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"test\""}))
}

/// Tokens: the audiences that each is for, and whose it is.
pub(super) type Tokens = HashMap<String, (Vec<String>, Value)>;

/// The `status` of a `TokenReview` with this `spec`.
pub(super) fn token_status(tokens: &Tokens, spec: &Value) -> Value {
    let asked: Vec<&str> = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some((audiences, user)) = tokens.get(spec["token"].as_str().unwrap_or_default()) else {
        return json!({"authenticated": false, "user": {}, "error": "invalid bearer token"});
    };
    let accepted: Vec<&&str> =
        asked.iter().filter(|asked| audiences.iter().any(|audience| audience == **asked)).collect();
    if accepted.is_empty() {
        let error = format!(
            "[invalid bearer token, token audiences {audiences:?} is invalid for the target audiences {asked:?}]"
        );
        return json!({"authenticated": false, "user": {}, "error": error});
    }
    json!({"authenticated": true, "user": user, "audiences": accepted})
}

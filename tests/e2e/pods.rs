//! Pods as JSON: how they are made, and what the API server stored of them.

use serde_json::{Map, Value, json};

use crate::{
    control_plane::Refusal,
    world::{WEBHOOK, World},
};

/// The path of the pods.
pub const PATH: &str = "/api/v1/namespaces/apps/pods";

/// A pod with one container, `main`, and what `spec` says.
pub fn pod(name: &str, service_account: &str, spec: &Value) -> Value {
    let mut whole = json!({
        "os": {"name": "windows"},
        "serviceAccountName": service_account,
        "containers": [container("main", &json!({}))],
    });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole})
}

/// A container.
pub fn container(name: &str, security_context: &Value) -> Value {
    json!({"name": name, "image": "images.invalid/app:1", "securityContext": security_context})
}

/// A security context that names a credential spec.
pub fn gmsa(spec: &str) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": spec}})
}

/// A security context that names a credential spec, with contents.
pub fn filled(spec: &str, contents: &str) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": spec, "gmsaCredentialSpec": contents}})
}

/// Every slot of a stored pod that says anything, by the kind of slot and the container's name.
pub fn slots(pod: &Value) -> Value {
    let spec = &pod["spec"];
    let lists = ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(|kind| {
        let containers = spec[kind].as_array().into_iter().flatten();
        containers.map(move |container| (format!("{kind}/{}", container["name"].as_str().unwrap()), container))
    });
    let all = std::iter::once(("pod".to_owned(), spec)).chain(lists);
    let contexts = all.map(|(name, slot)| (name, slot["securityContext"].clone()));
    Value::Object(contexts.filter(|(_, context)| context["windowsOptions"].is_object()).collect::<Map<_, _>>())
}

/// A refusal by the webhook, as the API server passes it on.
pub fn denied(code: u16, message: &str) -> Refusal {
    Refusal { code, message: format!("admission webhook {WEBHOOK:?} denied the request: {message}") }
}

/// The refusal where a service account may not use a credential spec.
pub fn not_authorized(service_account: &str, spec: &str) -> Refusal {
    denied(403, &format!("service account {service_account:?} is not authorized to `use` GMSA cred spec {spec:?}"))
}

impl World {
    /// Creates a pod, and reads what was stored.
    pub async fn stored(&self, pod: &Value) -> Value {
        let created = self.client().create(PATH, pod).await.unwrap();
        let stored = self.client().get(&path(pod)).await.unwrap();
        assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
        stored
    }

    /// Tries to create a pod, makes sure that it was not stored, and gives the refusal.
    pub async fn refused(&self, pod: &Value) -> Refusal {
        let refusal = self.client().create(PATH, pod).await.unwrap_err();
        let name = pod["metadata"]["name"].as_str().unwrap();
        let absent = Refusal { code: 404, message: format!("pods {name:?} not found") };
        assert_eq!(self.client().get(&path(pod)).await, Err(absent));
        refusal
    }
}

/// The path of a pod.
pub fn path(pod: &Value) -> String {
    format!("{PATH}/{}", pod["metadata"]["name"].as_str().unwrap())
}

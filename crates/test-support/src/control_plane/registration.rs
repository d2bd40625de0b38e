//! How the API server comes to call the webhook: the two configurations, with the conditions that spare pods without GMSA.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::Client;

/// The path of everything that is registered.
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The pod, or the one before the update, has a slot of any kind with a name or contents.
const USES_GMSA: &str = "[object, oldObject].exists(pod, pod != null && \
    ([pod.spec] + pod.spec.containers + pod.spec.?initContainers.orValue([]) + pod.spec.?ephemeralContainers.orValue([])) \
    .exists(slot, slot.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue() \
    || slot.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue()))";

/// Without it a webhook that is down would stop the labelling and the end of pods that run.
const SPEC_CHANGES: &str = "request.operation == 'CREATE' || object.spec != oldObject.spec";

/// A webhook for the API server to call.
pub struct Registration<'a> {
    /// The name of both configurations.
    pub name: &'a str,
    /// Where it is: an object with `service` or `url`, for a path such as `/mutate`.
    pub location: &'a dyn Fn(&str) -> Value,
    /// Who signed its certificate, as PEM.
    pub ca_pem: &'a str,
    /// A selector of the namespaces whose pods it is asked about.
    pub namespaces: Value,
}

impl Registration<'_> {
    /// Registers it.
    pub async fn create(&self, client: &Client) {
        let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression});
        let (uses_gmsa, spec_changes) = (condition("uses-gmsa", USES_GMSA), condition("spec-changes", SPEC_CHANGES));
        let mut mutate = self.webhook("/mutate");
        mutate["rules"] = json!([rule(&["CREATE"], "pods"), rule(&["UPDATE"], "pods/ephemeralcontainers")]);
        mutate["matchConditions"] = json!([uses_gmsa]);
        mutate["reinvocationPolicy"] = json!("IfNeeded");
        let mut validate = self.webhook("/validate");
        validate["rules"] = json!([rule(&["CREATE", "UPDATE"], "pods"), rule(&["UPDATE"], "pods/ephemeralcontainers")]);
        validate["matchConditions"] = json!([uses_gmsa, spec_changes]);
        for (kind, collection, webhook) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", mutate),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", validate),
        ] {
            let configuration = json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": self.name},
                "webhooks": [webhook],
            });
            client.create(&format!("{CONFIGURATIONS}/{collection}"), &configuration).await.unwrap();
        }
    }

    fn webhook(&self, path: &str) -> Value {
        let mut client_config = (self.location)(path);
        client_config["caBundle"] = json!(STANDARD.encode(self.ca_pem));
        json!({
            "name": "admission-webhook.windows-gmsa.sigs.k8s.io",
            "clientConfig": client_config,
            "namespaceSelector": self.namespaces,
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1", "v1beta1"],
        })
    }
}

fn rule(operations: &[&str], resource: &str) -> Value {
    json!({
        "operations": operations,
        "apiGroups": [""],
        "apiVersions": ["*"],
        "resources": [resource],
        "scope": "Namespaced",
    })
}

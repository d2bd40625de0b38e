//! How the API server comes to call the webhook: the two configurations, with the conditions that spare pods without GMSA.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::Client;

/// The path of everything that is registered.
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

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
    pub async fn create(&self, client: &Client) {
        let template: Value = serde_saphyr::from_str(include_str!("registration.yaml")).unwrap();
        for (kind, path) in
            [("MutatingWebhookConfiguration", "/mutate"), ("ValidatingWebhookConfiguration", "/validate")]
        {
            let (mut webhook, own) = (template["both"].clone(), template[kind].clone());
            webhook.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            webhook["clientConfig"] = (self.location)(path);
            webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(self.ca_pem));
            webhook["namespaceSelector"] = self.namespaces.clone();
            let configuration = json!({"metadata": {"name": self.name}, "webhooks": [webhook]});
            let collection = format!("{CONFIGURATIONS}/{}s", kind.to_lowercase());
            client.create(&collection, &configuration).await.unwrap();
        }
    }
}

//! A real API server, where there is one: it asks the webhook about the pods that a bystander creates.

use std::{
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use gmsa_test_support::control_plane::{
    Account, Binaries, Client, ControlPlane, SPEC, USER, grant, namespace, pod, register_for, service_account, tenants,
    until_asked,
};
use serde_json::{Value, json};

use super::reviews;

pub struct Cluster {
    control_plane: ControlPlane,
    /// For the webhook.
    pub kubeconfig: Value,
    runs: AtomicUsize,
}

/// Pods of a namespace, whose webhook is attacked.
pub struct Pods {
    kubeconfig: Value,
    namespace: String,
}

impl Cluster {
    /// A cluster where the same may be used as in the simulated one.
    pub async fn start(binaries: Binaries, folder: &Path) -> Self {
        let control_plane = ControlPlane::start(binaries, folder).await;
        let client = &control_plane.client;
        tenants(client, &[reviews::NAMESPACE]).await;
        service_account(client, reviews::NAMESPACE, &reviews::account(0)).await;
        grant(client, reviews::NAMESPACE, &reviews::account(0), &[SPEC]).await;
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_plane).await;
        Self { control_plane, kubeconfig, runs: AtomicUsize::new(0) }
    }

    /// The version of the API server.
    pub fn version(&self) -> &str {
        &self.control_plane.version
    }

    /// Has the API server ask the webhook at this address about the pods of a new namespace.
    pub async fn register(&self, address: SocketAddr, ca: &str) -> Pods {
        let (client, name) = (&self.control_plane.client, format!("run-{}", self.runs.fetch_add(1, Ordering::Relaxed)));
        namespace(client, &name, &json!({})).await;
        service_account(client, &name, USER).await;
        grant(client, &name, USER, &[SPEC]).await;
        register_for(client, &name, address, ca).await;
        until_asked(client, &name).await;
        let kubeconfig = std::fs::read_to_string(self.control_plane.folder().join("admin.kubeconfig")).unwrap();
        Pods { kubeconfig: serde_json::from_str(&kubeconfig).unwrap(), namespace: name }
    }
}

impl Pods {
    pub async fn client(&self) -> Client {
        Client::new(self.kubeconfig.clone()).await
    }

    /// Creates a pod without storing it, and says in a word what became of it.
    pub async fn create(&self, client: &Client) -> String {
        let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", self.namespace);
        match client.create(&path, &pod("bystander", &json!({"gmsaCredentialSpecName": SPEC}))).await {
            Ok(_) => "allowed".to_owned(),
            Err(refusal) => refusal.message,
        }
    }
}

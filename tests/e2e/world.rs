//! What the scenarios find: a cluster with the webhook installed, two credential specs, and two service accounts:
//! one may use them.

use std::{path::Path, time::SystemTime};

use gmsa_edge::tls::issue::{Ca, Issued};
use gmsa_test_support::{credential_spec, golden::sidecar_flags};
use serde_json::{Value, json};

use crate::{
    BINARY,
    control_plane::{
        Account, Binaries, Client, ControlPlane, LIFETIME, Registration, SERVICE, SPECS, Webhook, certificate_flags,
        grant, install, namespace, service_account, until,
    },
    pods::{self, container, gmsa, pod},
};

/// The namespace of the pods.
pub const NAMESPACE: &str = "apps";
/// The service account that may use the credential specs.
pub const USER: &str = "user";
/// The service account that may use none.
pub const VISITOR: &str = "visitor";
/// The name of the two webhooks, which begins every denial.
pub const WEBHOOK: &str = "admission-webhook.windows-gmsa.sigs.k8s.io";

/// The credential spec `web`, from the examples, as pods hold it.
pub const WEB: &str = include_str!("web.json").trim_ascii_end();
/// The credential spec `sql`, as pods hold it: with the characters that Go escapes.
pub const SQL: &str = include_str!("sql.json").trim_ascii_end();

/// The cluster, and the webhook in it.
pub struct World {
    // Ends before the control plane.
    /// The webhook, with our own roles.
    pub webhook: Webhook,
    /// The control plane.
    pub control_plane: ControlPlane,
    /// The serving certificate of the webhook.
    pub certificate: Issued,
    /// Who signed it.
    pub ca: Ca,
}

impl World {
    /// Starts it all, in `folder`, and waits until the API server asks the webhook.
    pub async fn start(binaries: Binaries, folder: &Path) -> Self {
        let control_plane = cluster(binaries, folder).await;
        let ca = Ca::generate("gmsa-webhook", SystemTime::now(), LIFETIME).unwrap();
        let certificate =
            ca.issue("gmsa-webhook", &[format!("{SERVICE}.{SERVICE}.svc")], SystemTime::now(), LIFETIME).unwrap().0;
        let account = Account { name: "gmsa-webhook", verbs: &["get", "list", "watch"] };
        let kubeconfig = account.create(&control_plane).await;
        let flags = certificate_flags(&control_plane.folder().join("gmsa-webhook"), &certificate);
        let flags = [&flags[..], &sidecar_flags()].concat();
        let webhook = Webhook::start(BINARY, control_plane.folder(), "gmsa-webhook", &kubeconfig, &flags, 0).await;
        let world = Self { webhook, control_plane, certificate, ca };
        let port = world.webhook.address.port();
        register(world.client(), SERVICE, port, world.ca.cert_pem(), json!({})).await;
        world.until_asked().await;
        world
    }

    /// What calls the API server as an administrator.
    pub fn client(&self) -> &Client {
        &self.control_plane.client
    }

    /// Waits until the webhook's watch on credential specs is up, after the API server was away.
    pub async fn until_watching(&self) {
        until("the watch is up again", async || {
            let synced = self.webhook.scrape().await.sum("gmsa_webhook_spec_watch_state", &[r#"state="synced""#]);
            (synced == 1.0).then_some(())
        })
        .await;
    }

    /// Waits until the API server asks the mutating webhook, which alone refuses the first pod, and the validating one, which alone refuses the second.
    pub async fn until_asked(&self) {
        let unknown = pod("asked", USER, &json!({"securityContext": gmsa("unknown")}));
        let unnamed = json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}});
        let unnamed = pod("asked", USER, &json!({"containers": [container("main", &unnamed)]}));
        for (pod, code) in [(unknown, 404), (unnamed, 422)] {
            let dry_run = format!("{}?dryRun=All", pods::PATH);
            until("the API server asks the webhook", async || {
                self.client().create(&dry_run, &pod).await.err().filter(|refusal| refusal.code == code)
            })
            .await;
        }
    }
}

/// Registers a webhook through a Service of this name, without pods: that is how the names in its certificate come to matter.
pub async fn register(client: &Client, name: &str, port: u16, ca_pem: &str, namespaces: Value) {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    client.create(&format!("/api/v1/namespaces/{SERVICE}/services"), &service).await.unwrap();
    // For a Service with an external name the API server takes the port from here.
    let location = |path: &str| json!({"service": {"name": name, "namespace": SERVICE, "port": port, "path": path}});
    Registration { name, location: &location, ca_pem, namespaces }.create(client).await;
}

/// A control plane with both credential specs and both service accounts, without the webhook.
pub async fn cluster(binaries: Binaries, folder: &Path) -> ControlPlane {
    let control_plane = ControlPlane::start(binaries, folder).await;
    let client = &control_plane.client;
    install(client).await;
    namespace(client, NAMESPACE, &json!({})).await;
    service_account(client, NAMESPACE, USER).await;
    service_account(client, NAMESPACE, VISITOR).await;
    grant(client, NAMESPACE, USER, &["web", "sql", "fresh", "changing", "surviving"]).await;
    let mut web: Value = serde_saphyr::from_str(include_str!("../../examples/credspec.yaml")).unwrap();
    web["metadata"]["name"] = json!("web");
    client.create(SPECS, &web).await.unwrap();
    let sql = serde_json::from_str(SQL).unwrap();
    client.create(SPECS, &credential_spec("sql", sql)).await.unwrap();
    control_plane
}

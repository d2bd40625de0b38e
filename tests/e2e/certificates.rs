//! A webhook that makes its own certificates, behind a Service with two replicas, while its authority is replaced and
//! everything else is restarted.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_edge::tls::{CaBundle, self_managed::rotate_annotation};
use gmsa_webhook::PROGRAM;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    BINARY,
    chaos::balancer::Balancer,
    control_plane::{
        Account, CALLER, Client, ControlPlane, LIFETIME, SERVICE, Webhook, certificate_flags, create_role,
        free_addresses, grant, namespace, service_account, until,
    },
    pods::{filled, gmsa, pod, slots},
    world::{self, USER, WEB, World},
};

/// The namespace of the pods, the name of the Service, of both configurations, of the account and its roles.
pub const NAME: &str = "managed";
/// The path of both configurations' collections, and their names.
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/// The path of the Secret with the certificates.
pub const SECRET: &str = "/api/v1/namespaces/gmsa-webhook/secrets/managed-tls";

/// Installs a Service, an empty Secret, two configurations without a bundle, and an account with the rights that the chart
/// gives. Gives back the account's credentials.
pub async fn install(control_plane: &ControlPlane, port: u16) -> Value {
    let client = &control_plane.client;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "managed-tls"}, "type": "Opaque"});
    client.create(&format!("/api/v1/namespaces/{SERVICE}/secrets"), &secret).await.unwrap();

    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["managed-tls"],
        "verbs": ["get", "watch", "update"],
    }]);
    create_role(client, &format!("/namespaces/{SERVICE}"), "Role", NAME, rules, (SERVICE, NAME)).await;
    let rules = json!([{
        "apiGroups": ["admissionregistration.k8s.io"], "resources": CONFIGURATIONS, "resourceNames": [NAME],
        "verbs": ["get", "patch"],
    }]);
    create_role(client, "", "ClusterRole", "managed-configurations", rules, (SERVICE, NAME)).await;

    register(client, NAME, port, "").await;
    Account { name: NAME, verbs: &["get", "list", "watch"] }.create(control_plane).await
}

/// Creates a Service without pods of this name, a namespace of this name with an account that may use the credential spec
/// `web`, and has the API server ask the Service about that namespace's pods.
async fn register(client: &Client, name: &str, port: u16, ca_pem: &str) {
    namespace(client, name, &json!({})).await;
    service_account(client, name, USER).await;
    grant(client, name, USER, &["web"]).await;
    let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
    world::register(client, name, port, ca_pem, namespaces).await;
}

async fn unregister(client: &Client, name: &str) {
    for collection in CONFIGURATIONS {
        client.delete(&format!("{REGISTRATION}/{collection}/{name}")).await.unwrap();
    }
}

/// The flags of a replica that makes its own certificates.
pub fn flags() -> Vec<String> {
    vec![
        format!("--self-managed-secret={SERVICE}/managed-tls"),
        format!("--self-managed-service={NAME}.{SERVICE}"),
        format!("--webhook-configuration=mutating/{NAME}"),
        format!("--webhook-configuration=validating/{NAME}"),
        "--bundle-standing=2s".to_owned(),
    ]
}

/// A replica, which the Service passes connections on to when it is ready.
async fn replica(folder: &Path, credentials: &Value, balancer: &Balancer, name: &str) -> Webhook {
    let flags = [flags(), vec!["--shutdown-delay=500ms".to_owned()]].concat();
    let webhook = Webhook::start(BINARY, folder, name, credentials, &flags, 0).await;
    balancer.add(webhook.address, webhook.admin.clone());
    webhook
}

/// Ends a replica as a cluster does: first nothing new comes to it, then it is asked to end.
async fn end(replica: Webhook, balancer: &Balancer) {
    balancer.remove(replica.address);
    replica.end().await;
}

/// Creates pods, without storing them, until it is stopped.
struct Load {
    stop: Arc<AtomicBool>,
    admitted: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Load {
    fn start(client: Client) -> Self {
        let (stop, admitted) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&admitted));
        let task = tokio::spawn(async move {
            let mut failures = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                match create(&client, NAME).await {
                    Ok(()) => _ = count.fetch_add(1, Ordering::Relaxed),
                    Err(message) if message.contains("webhook") => failures.push(message),
                    // The API server is away. Until it is ready again it may not know its roles yet, nor its webhooks.
                    Err(_) => {
                        while client.text("/readyz").await.is_err() {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            failures
        });
        Self { stop, admitted, task }
    }

    /// Waits for this many more pods.
    async fn more(&self, number: usize) {
        let before = self.admitted.load(Ordering::Relaxed);
        let enough = || self.admitted.load(Ordering::Relaxed) >= before + number;
        until("pods are admitted", async || enough().then_some(())).await;
    }

    async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        assert_eq!(self.task.await.unwrap(), Vec::<String>::new());
    }
}

pub async fn create(client: &Client, namespace: &str) -> Result<(), String> {
    let wanted = pod("tried", USER, &json!({"securityContext": gmsa("web")}));
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let created = client.create(&path, &wanted).await.map_err(|refusal| refusal.message)?;
    let expected = json!({"pod": filled("web", WEB)});
    if slots(&created) == expected { Ok(()) } else { Err(format!("not what the webhook makes of it: {created}")) }
}

fn value(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).unwrap()).ok()
}

/// The authority that signs, where there is one and no other is about to.
pub async fn signing(client: &Client) -> Option<String> {
    let authorities = value(&client.get(SECRET).await.ok()?, "authorities.json")?;
    let authorities: Value = serde_json::from_str(&authorities).ok()?;
    let settled = authorities["next"].is_null();
    settled.then(|| authorities["signing"]["certificate"].as_str().unwrap().to_owned())
}

/// Asks for a new authority, and gives back the one that signs until then.
pub async fn ask(client: &Client, value: &str) -> String {
    let before = signing(client).await.unwrap();
    let asked = json!({"metadata": {"annotations": {rotate_annotation(&PROGRAM): value}}});
    client.merge(SECRET, &asked).await.unwrap();
    before
}

pub async fn until_another_signs(client: &Client, before: &str) {
    until("a new authority signs", async || signing(client).await.filter(|now| now != before)).await;
}

async fn bundles(client: &Client) -> Vec<CaBundle> {
    let mut bundles = Vec::new();
    for collection in CONFIGURATIONS {
        let path = format!("{REGISTRATION}/{collection}/{NAME}");
        let configuration = client.get(&path).await.unwrap();
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap().to_owned();
        bundles.push(CaBundle::from_pem(&STANDARD.decode(bundle).unwrap()).unwrap());
    }
    bundles
}

pub async fn rotation_while_everything_restarts(world: &mut World) {
    let balancer = Balancer::start().await;
    let folder = world.control_plane.folder().to_owned();
    let credentials = install(&world.control_plane, balancer.port).await;
    let replica = async |name: &str| replica(&folder, &credentials, &balancer, name).await;
    let (first, second) = tokio::join!(replica("managed-1"), replica("managed-2"));
    let client = world.client().clone();
    until("the API server asks the webhook", async || create(&client, NAME).await.ok()).await;
    let load = Load::start(client.clone());
    load.more(20).await;

    // The API server goes in the middle of a rotation.
    let before = ask(&client, "two").await;
    world.control_plane.kill_api_server();
    world.control_plane.restart_api_server().await;
    until_another_signs(&client, &before).await;
    load.more(20).await;

    // One replica after the other goes in the middle of a rotation.
    let before = ask(&client, "three").await;
    end(first, &balancer).await;
    let third = replica("managed-3").await;
    end(second, &balancer).await;
    let fourth = replica("managed-4").await;
    until_another_signs(&client, &before).await;
    load.more(20).await;

    // A replica goes, and then the API server, in the middle of a rotation; another replica comes before it is back.
    let before = ask(&client, "four").await;
    end(third, &balancer).await;
    world.control_plane.kill_api_server();
    let (fifth, ()) = tokio::join!(replica("managed-5"), world.control_plane.restart_api_server());
    until_another_signs(&client, &before).await;
    load.more(20).await;
    load.finish().await;

    // Everything that was ever served here is still trusted: none of it has expired.
    let bundles = bundles(&client).await;
    assert_eq!(bundles[0].len(), 4);
    assert_eq!(bundles[0], bundles[1]);
    for replica in [fourth, fifth] {
        let failed = replica.scrape().await.sum("gmsa_webhook_certificate_reloads_total", &[r#"outcome="refused""#]);
        assert_eq!(failed, 0.0);
        end(replica, &balancer).await;
    }
    unregister(&client, NAME).await;
    world.until_watching().await;
}

pub async fn only_the_api_server_may_call(world: &mut World) {
    const GUARDED: &str = "guarded";
    let folder = world.control_plane.folder().to_owned();
    let leaf =
        world.ca.issue("gmsa-webhook", &[format!("{GUARDED}.{SERVICE}.svc")], SystemTime::now(), LIFETIME).unwrap().0;
    let [address] = free_addresses();
    let port = address.port();
    // Before that it shows none.
    let authority = world.control_plane.show_a_certificate_to(&[&format!("{GUARDED}.{SERVICE}.svc:{port}")]).await;
    let flags = |client_name: &str| {
        let client = [format!("--client-ca={}", authority.display()), format!("--client-name={client_name}")];
        let [cert, key] = certificate_flags(&folder.join(GUARDED), &leaf);
        [vec![cert, key, "--shutdown-delay=0s".to_owned()], client.to_vec()].concat()
    };
    let credentials = Account { name: GUARDED, verbs: &["get", "list", "watch"] }.create(&world.control_plane).await;
    let webhook = Webhook::start(BINARY, &folder, GUARDED, &credentials, &flags(CALLER), port).await;
    let client = world.client();
    register(client, GUARDED, port, world.ca.cert_pem()).await;
    until("the API server asks the webhook", async || create(client, GUARDED).await.ok()).await;
    // Once to expand the pod and once to validate it, at least.
    assert!(reviews(&webhook).await >= 2.0);
    webhook.end().await;

    // Another name than the one in the API server's certificate: the same authority is not enough.
    let flags = flags("kube-controller-manager");
    let other = Webhook::start(BINARY, &folder, "guarded-other", &credentials, &flags, port).await;
    until("the API server says that it was turned away", async || {
        let refusal = create(client, GUARDED).await.unwrap_err();
        // With TLS 1.3 it sends its request before it hears of it, and may say then that it could not write it.
        refusal.ends_with("remote error: tls: access denied").then_some(())
    })
    .await;
    assert_eq!(reviews(&other).await, 0.0);
    other.end().await;
    unregister(client, GUARDED).await;
    world.until_watching().await;
}

/// How many reviews a webhook has answered.
async fn reviews(webhook: &Webhook) -> f64 {
    webhook.scrape().await.sum("gmsa_webhook_reviews_total", &[])
}

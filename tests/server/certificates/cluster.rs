//! A cluster as the installation leaves it, replicas that manage their certificates in it, and API servers that call them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_webhook::{
    metrics::Metrics,
    object::ObjectName,
    tls::{
        CaBundle, Clock, Served,
        self_managed::{IssuancePolicy, SelfManaged, SelfManagedSettings, service_names},
    },
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::{
    sync::{RwLock, SetOnce},
    task::{JoinHandle, JoinSet},
};

use super::{DAY, client::Client, sample, webhook};
use crate::{https::Server, support::SimulatedApi};

pub const SECRET: &str = "/api/v1/namespaces/gmsa/secrets/gmsa-webhook-tls";
pub const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// How long a new authority must stand before it signs. The load below ignores what a client that knows an older bundle
/// than that sees.
pub const STANDING: Duration = Duration::from_millis(200);

/// A cluster as the installation leaves it: an empty Secret, and two configurations without a bundle.
pub struct Cluster {
    pub api: SimulatedApi,
    /// How far the cluster's clock is ahead, in seconds.
    ahead: Arc<AtomicU64>,
    /// Held for reading while a client shakes hands: days do not pass within a handshake.
    handshakes: RwLock<()>,
}

impl Cluster {
    pub async fn installed() -> Self {
        let cluster = Self { api: SimulatedApi::start().await, ahead: Arc::default(), handshakes: RwLock::default() };
        cluster.api.apply(secret(&json!({})));
        for plural in CONFIGURATIONS {
            cluster.api.apply(configuration(plural, ""));
        }
        cluster
    }

    pub fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.ahead);
        Arc::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::Relaxed)))
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        let _none_under_way = self.handshakes.write().await;
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    pub fn replica(&self) -> Replica {
        self.replica_with(&settings())
    }

    pub fn replica_with(&self, settings: &SelfManagedSettings) -> Replica {
        let api = Arc::new(ApiServer::new(self.api.config()).unwrap());
        let (metrics, registry) = Metrics::new("test");
        let served = Served::new(metrics.clone());
        let ready = Arc::new(SetOnce::new());
        let set = Arc::clone(&ready);
        let on_ready = move || _ = set.set(());
        let managed = SelfManaged::new(api, settings.clone(), served.clone(), self.clock(), metrics, on_ready);
        let webhook = webhook(&served, None);
        let task = tokio::spawn(async move { match managed.run().await {} });
        Replica { served, ready, registry, webhook, task }
    }

    /// The bundle of every webhook in a configuration, which must all be the same.
    pub fn bundle(&self, plural: &str) -> CaBundle {
        let object = self.api.object(plural, "", "gmsa-webhook").unwrap();
        let bundles: BTreeSet<&str> = object["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| webhook["clientConfig"]["caBundle"].as_str().unwrap())
            .collect();
        assert_eq!(bundles.len(), 1, "{object}");
        CaBundle::salvage(&STANDARD.decode(bundles.first().unwrap()).unwrap())
    }

    pub fn secret(&self) -> Value {
        self.api.object("secrets", "gmsa", "gmsa-webhook-tls").unwrap()
    }

    pub fn secret_value(&self, key: &str) -> String {
        String::from_utf8(STANDARD.decode(self.secret()["data"][key].as_str().unwrap()).unwrap()).unwrap()
    }

    /// Edits the Secret as a person would.
    pub fn edit_secret(&self, edit: impl FnOnce(&mut Value)) {
        let mut secret = self.secret();
        edit(&mut secret);
        self.api.apply(secret);
    }

    /// The certificate of the authority that signs now.
    pub fn signing(&self) -> String {
        let authorities: Value = serde_json::from_str(&self.secret_value("authorities.json")).unwrap();
        authorities["signing"]["certificate"].as_str().unwrap().to_owned()
    }

    pub fn client(&self, plural: &str) -> Client {
        Client::at(&self.bundle(plural), self.clock())
    }
}

pub struct Replica {
    pub served: Served,
    pub ready: Arc<SetOnce<()>>,
    pub registry: Registry,
    pub webhook: Server,
    task: JoinHandle<()>,
}

impl Replica {
    pub fn serial(&self) -> Option<String> {
        self.served.current().map(|current| current.serial)
    }

    /// How often this replica has taken a step, as its metrics say.
    pub fn count(&self, step: &str) -> u64 {
        sample(&self.registry, &format!("certificate_steps_total{{step=\"{step}\"}}"))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn secret(data: &Value) -> Value {
    let metadata = json!({"namespace": "gmsa", "name": "gmsa-webhook-tls"});
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata});
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        secret["data"] = data.clone();
    }
    secret
}

pub fn configuration(plural: &str, bundle: &str) -> Value {
    let kind =
        if plural == CONFIGURATIONS[0] { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let webhook = |name: &str, path: &str| {
        let service = json!({"namespace": "gmsa", "name": "gmsa-webhook", "path": path});
        let mut webhook = json!({"name": name, "clientConfig": {"service": service}, "sideEffects": "None"});
        if !bundle.is_empty() {
            webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(bundle));
        }
        webhook
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "gmsa-webhook"},
        "webhooks": [webhook("pods.gmsa.example", "/a"), webhook("workloads.gmsa.example", "/b")],
    })
}

pub fn settings() -> SelfManagedSettings {
    SelfManagedSettings {
        secret: ObjectName::secret("gmsa/gmsa-webhook-tls").unwrap(),
        configurations: ["mutating/gmsa-webhook", "validating/gmsa-webhook"]
            .map(|name| ObjectName::configuration(name).unwrap())
            .to_vec(),
        issuance: IssuancePolicy {
            names: service_names("gmsa-webhook", "gmsa"),
            ca_lifetime: 30 * DAY,
            leaf_lifetime: 25 * DAY,
            renewal_percent: 66,
            bundle_standing: STANDING,
        },
        foreign_grace: 10 * DAY,
        check_interval: Duration::from_millis(40),
    }
}

pub fn certificates(pem: &str) -> CaBundle {
    CaBundle::from_pem(pem.as_bytes()).unwrap()
}

/// Posts reviews to replicas for as long as it lives, each verified by the bundle of that moment.
pub struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    lanes: JoinSet<()>,
}

impl Load {
    pub fn start(cluster: &Arc<Cluster>, replicas: &[Replica]) -> Self {
        let mut load =
            Self { stop: Arc::default(), answered: Arc::default(), failures: Arc::default(), lanes: JoinSet::new() };
        for (lane, replica) in replicas.iter().enumerate() {
            let (cluster, address) = (Arc::clone(cluster), replica.webhook.address);
            let (stop, answered, failures) =
                (Arc::clone(&load.stop), Arc::clone(&load.answered), Arc::clone(&load.failures));
            load.lanes.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let plural = CONFIGURATIONS[(lane + answered.load(Ordering::Relaxed)) % 2];
                    let moment = cluster.handshakes.read().await;
                    let read = Instant::now();
                    let client = cluster.client(plural);
                    let connected = client.keep_alive(address).await;
                    drop(moment);
                    // An API server whose bundle is older than the standing time is not promised anything.
                    if read.elapsed() > STANDING {
                        continue;
                    }
                    let reviewed = match connected {
                        Ok(mut connection) => connection.review().await,
                        Err(error) => Err(error),
                    };
                    match reviewed {
                        Ok(()) => _ = answered.fetch_add(1, Ordering::Relaxed),
                        Err(error) => failures.lock().unwrap().push(format!("replica {lane}, {plural}: {error}")),
                    }
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            });
        }
        load
    }

    pub async fn finish(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.lanes.join_next().await {
            ended.unwrap();
        }
        assert_eq!(*self.failures.lock().unwrap(), Vec::<String>::new());
        self.answered.load(Ordering::Relaxed)
    }
}

/// The serial number of the leaf in the Secret.
pub fn leaf_in(cluster: &Cluster) -> String {
    let (_, pem) = x509_parser::pem::parse_x509_pem(cluster.secret_value("tls.crt").as_bytes())
        .map(|(rest, pem)| (rest.to_vec(), pem))
        .unwrap();
    gmsa_webhook::tls::Summary::of(&pem.parse_x509().unwrap()).serial
}

pub fn bundles(cluster: &Cluster) -> Vec<Option<CaBundle>> {
    let bundle = |plural: &&str| {
        let object = cluster.api.object(plural, "", "gmsa-webhook")?;
        let text = object["webhooks"][1]["clientConfig"]["caBundle"].as_str()?.to_owned();
        Some(CaBundle::salvage(&STANDARD.decode(text).unwrap()))
    };
    CONFIGURATIONS.iter().map(bundle).collect()
}

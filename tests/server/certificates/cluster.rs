//! A cluster as the installation leaves it, replicas that manage their certificates in it, and API servers that call them.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    clock::{Clock, Moment},
    object::ObjectName,
    service_names::ServiceNames,
    tls::{
        CaBundle, Served, Summary,
        self_managed::{SelfManaged, SelfManagedSettings},
    },
};
use gmsa_webhook::{PROGRAM, metrics::Metrics};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::{
    sync::{RwLock, SetOnce},
    task::JoinSet,
    time::timeout,
};

use super::{sample, webhook};
use crate::{
    https::{DAY, Server},
    support::{PATIENCE, SimulatedApi, Verb, eventually, https::Client},
};

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
        cluster.apply("");
        cluster
    }

    pub fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.ahead);
        Arc::new(move || Moment::now() + Duration::from_secs(ahead.load(Ordering::Relaxed)))
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        let _none_under_way = self.handshakes.write().await;
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    /// A replica that has become ready.
    pub async fn ready_replica(&self) -> Replica {
        let replica = self.replica(&settings());
        replica.until_ready().await;
        replica
    }

    /// A replica that has just been started.
    pub fn replica(&self, settings: &SelfManagedSettings) -> Replica {
        self.replica_at(self.clock(), settings)
    }

    /// The same with a clock of its own.
    pub fn replica_at(&self, clock: Clock, settings: &SelfManagedSettings) -> Replica {
        let api = Arc::new(ApiServer::new(self.api.config()).unwrap());
        let (metrics, _, registry) = Metrics::new();
        let served = Served::new(metrics.clone());
        let ready = Arc::new(SetOnce::new());
        let set = Arc::clone(&ready);
        let on_ready = move || _ = set.set(());
        let managed = SelfManaged::new(api, settings.clone(), served.clone(), clock, metrics, on_ready);
        let webhook = webhook(&served);
        let mut owner = JoinSet::new();
        owner.spawn(async move { managed.run().await });
        Replica { served, ready, registry, webhook, _task: owner }
    }

    /// The bundle of every webhook in a configuration, which must all be the same; none where there is no bundle yet.
    pub fn bundle(&self, plural: &str) -> Option<CaBundle> {
        let object = self.api.object(plural, "", "gmsa-webhook")?;
        let webhooks = object["webhooks"].as_array().unwrap().iter();
        let bundles: BTreeSet<_> = webhooks.map(|webhook| webhook["clientConfig"]["caBundle"].as_str()).collect();
        assert_eq!(bundles.len(), 1, "{object}");
        Some(CaBundle::salvage(&STANDARD.decode(bundles.first().copied()??).unwrap()))
    }

    /// Whether every configuration has this bundle.
    pub fn trusts(&self, bundle: &CaBundle) -> bool {
        CONFIGURATIONS.iter().all(|plural| self.bundle(plural).as_ref() == Some(bundle))
    }

    /// Waits until every configuration has this bundle.
    pub async fn until_trusted(&self, bundle: &CaBundle) {
        eventually("the configurations have the bundle", || self.trusts(bundle)).await;
    }

    /// Applies what the installation has of these kinds, as it was.
    pub fn apply(&self, kinds: &str) {
        let installed: Vec<Value> = serde_saphyr::from_str(include_str!("installed.yaml")).unwrap();
        for object in installed.into_iter().filter(|object| object["kind"].as_str().unwrap().ends_with(kinds)) {
            self.api.apply(object);
        }
    }

    /// Waits until a replica has looked at everything again.
    pub async fn until_looked_at(&self) {
        let seen = self.api.count(Verb::Get, CONFIGURATIONS[1]);
        self.api.wait_for(Verb::Get, CONFIGURATIONS[1], seen + 3).await;
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

    /// The serial number of the leaf in the Secret.
    pub fn leaf(&self) -> String {
        let (_, pem) = x509_parser::pem::parse_x509_pem(self.secret_value("tls.crt").as_bytes()).unwrap();
        Summary::of(&pem.parse_x509().unwrap()).serial
    }

    /// An API server that calls what this configuration has.
    pub fn client(&self, plural: &str) -> Client {
        Client::new(&self.bundle(plural).unwrap(), self.clock(), None)
    }
}

pub struct Replica {
    pub served: Served,
    pub ready: Arc<SetOnce<()>>,
    pub registry: Registry,
    pub webhook: Server,
    _task: JoinSet<Infallible>,
}

impl Replica {
    pub async fn until_ready(&self) {
        timeout(PATIENCE, self.ready.wait()).await.unwrap();
    }

    /// Waits until another certificate is served than this one.
    pub async fn until_other_than(&self, serial: Option<&String>) {
        eventually("another one is served", || self.serial().is_some() && self.serial().as_ref() != serial).await;
    }

    pub fn serial(&self) -> Option<String> {
        self.served.current().map(|current| current.serial)
    }

    /// How often this replica has taken a step, as its metrics say.
    pub fn count(&self, step: &str) -> u64 {
        sample(&self.registry, &format!("certificate_steps_total{{step=\"{step}\"}}"))
    }
}

pub fn settings() -> SelfManagedSettings {
    SelfManagedSettings {
        secret: ObjectName::secret("gmsa/gmsa-webhook-tls").unwrap(),
        configurations: ["mutating/gmsa-webhook", "validating/gmsa-webhook"]
            .map(|name| ObjectName::configuration(name).unwrap())
            .to_vec(),
        program: PROGRAM,
        names: ServiceNames::parse("gmsa-webhook.gmsa").unwrap().0,
        ca_lifetime: 30 * DAY,
        leaf_lifetime: 25 * DAY,
        renewal_point: 66,
        bundle_standing: STANDING,
        foreign_grace: 10 * DAY,
        check_interval: Duration::from_millis(40),
    }
}

pub fn certificates(pem: &str) -> CaBundle {
    CaBundle::from_pem(pem.as_bytes()).unwrap()
}

/// Posts reviews to replicas for as long as it lives, each verified by the bundle of that moment.
pub struct Load {
    answered: Arc<AtomicUsize>,
    lanes: JoinSet<()>,
}

impl Load {
    pub fn start(cluster: &Arc<Cluster>, replicas: &[Replica]) -> Self {
        let mut load = Self { answered: Arc::default(), lanes: JoinSet::new() };
        for (lane, replica) in replicas.iter().enumerate() {
            let (cluster, address, answered) =
                (Arc::clone(cluster), replica.webhook.address, Arc::clone(&load.answered));
            load.lanes.spawn(async move {
                loop {
                    let plural = CONFIGURATIONS[(lane + answered.load(Ordering::Relaxed)) % 2];
                    let moment = cluster.handshakes.read().await;
                    let read = Instant::now();
                    let connected = cluster.client(plural).keep_alive(address).await;
                    drop(moment);
                    // An API server whose bundle is older than the standing time is not promised anything.
                    if read.elapsed() > STANDING {
                        continue;
                    }
                    connected.unwrap().review().await.unwrap();
                    answered.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            });
        }
        load
    }

    /// How many reviews were answered; none failed.
    pub fn finish(mut self) -> usize {
        assert!(self.lanes.try_join_next().is_none(), "a review failed");
        self.answered.load(Ordering::Relaxed)
    }
}

//! Replicas that share a Secret, against the simulated API server; reviews are verified as an API server verifies them: by
//! the bundle that stands in a configuration at that moment.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_webhook::{
    apiserver::ApiServer,
    tls::{
        CaBundle, Clock, Publication, Served,
        ca_file::CaFile,
        issue::Ca,
        self_managed::{
            Progress, ROTATE_ANNOTATION, RenewalPoint, SecretName, SelfManaged, Settings, Terms, service_names,
        },
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::RwLock,
    task::{JoinHandle, JoinSet},
};

use crate::{
    DAY, NAME, authority,
    client::Client,
    https::Server,
    support::{Fault, SimulatedApi, Verb, eventually},
    webhook,
};

const SECRET: &str = "/api/v1/namespaces/gmsa/secrets/gmsa-webhook-tls";
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// How long a new authority must stand before it signs. The load below ignores what a client that knows an older bundle
/// than that sees.
const STANDING: Duration = Duration::from_millis(200);

/// A cluster as the installation leaves it: an empty Secret, and two configurations without a bundle.
struct Cluster {
    api: SimulatedApi,
    /// How far the cluster's clock is ahead, in seconds.
    ahead: Arc<AtomicU64>,
    /// Held for reading while a client shakes hands: days do not pass within a handshake.
    handshakes: RwLock<()>,
}

impl Cluster {
    async fn installed() -> Self {
        let cluster = Self { api: SimulatedApi::start().await, ahead: Arc::default(), handshakes: RwLock::default() };
        cluster.api.apply(secret(&json!({})));
        for plural in CONFIGURATIONS {
            cluster.api.apply(configuration(plural, ""));
        }
        cluster
    }

    fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.ahead);
        Clock::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::Relaxed)))
    }

    /// Lets time pass.
    async fn pass(&self, time: Duration) {
        let _none_under_way = self.handshakes.write().await;
        self.ahead.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    fn replica(&self) -> Replica {
        self.replica_with(&settings())
    }

    fn replica_with(&self, settings: &Settings) -> Replica {
        let served = Served::new();
        let api = Arc::new(ApiServer::new(self.api.config()).unwrap());
        let managed = SelfManaged::new(api, settings.clone(), served.clone(), self.clock());
        let progress = managed.progress();
        let webhook = webhook(&served, None);
        let task = tokio::spawn(async move { match managed.run().await {} });
        Replica { served, progress, webhook, task }
    }

    /// The bundle of every webhook in a configuration, which must all be the same.
    fn bundle(&self, plural: &str) -> CaBundle {
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

    fn secret(&self) -> Value {
        self.api.object("secrets", "gmsa", "gmsa-webhook-tls").unwrap()
    }

    fn secret_value(&self, key: &str) -> String {
        String::from_utf8(STANDARD.decode(self.secret()["data"][key].as_str().unwrap()).unwrap()).unwrap()
    }

    /// Edits the Secret as a person would.
    fn edit_secret(&self, edit: impl FnOnce(&mut Value)) {
        let mut secret = self.secret();
        edit(&mut secret);
        self.api.apply(secret);
    }

    /// The certificate of the authority that signs now.
    fn signing(&self) -> String {
        let authorities: Value = serde_json::from_str(&self.secret_value("authorities.json")).unwrap();
        authorities["signing"]["certificate"].as_str().unwrap().to_owned()
    }

    fn client(&self, plural: &str) -> Client {
        Client::at(&self.bundle(plural), self.clock())
    }
}

struct Replica {
    served: Served,
    progress: Arc<Progress>,
    webhook: Server,
    task: JoinHandle<()>,
}

impl Replica {
    fn serial(&self) -> Option<String> {
        self.served.current().map(|current| current.serial)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn secret(data: &Value) -> Value {
    let metadata = json!({"namespace": "gmsa", "name": "gmsa-webhook-tls"});
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata});
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        secret["data"] = data.clone();
    }
    secret
}

fn configuration(plural: &str, bundle: &str) -> Value {
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

fn settings() -> Settings {
    Settings {
        secret: SecretName::new("gmsa", "gmsa-webhook-tls").unwrap(),
        configurations: vec!["mutating/gmsa-webhook".parse().unwrap(), "validating/gmsa-webhook".parse().unwrap()],
        terms: Terms {
            names: service_names("gmsa-webhook", "gmsa"),
            ca_lifetime: 30 * DAY,
            leaf_lifetime: 25 * DAY,
            renewal: RenewalPoint::default(),
            bundle_standing: STANDING,
        },
        foreign_grace: 10 * DAY,
        check_interval: Duration::from_millis(40),
    }
}

fn certificates(pem: &str) -> CaBundle {
    CaBundle::from_pem(pem.as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_at_once_make_one_authority_and_one_leaf() {
    let cluster = Cluster::installed().await;
    let replicas = [cluster.replica(), cluster.replica(), cluster.replica()];
    for replica in &replicas {
        tokio::time::timeout(crate::support::PATIENCE, replica.progress.until_ready()).await.unwrap();
    }
    let leaf = replicas[0].serial().unwrap();
    for replica in &replicas {
        assert_eq!(replica.serial().unwrap(), leaf);
    }
    let authority = certificates(&cluster.signing());
    for plural in CONFIGURATIONS {
        assert_eq!(cluster.bundle(plural), authority, "{plural}");
        for replica in &replicas {
            cluster.client(plural).review(replica.webhook.address).await.unwrap();
        }
    }
    assert_eq!(certificates(&cluster.secret_value("ca.crt")), authority);
    let filled: u64 = replicas.iter().map(|replica| replica.progress.counts().filled).sum();
    let written: u64 = replicas.iter().map(|replica| replica.progress.counts().bundles_written).sum();
    assert_eq!((filled, written), (1, 2));
    assert_eq!(replicas[0].served.current().unwrap().names, [NAME, "gmsa-webhook.gmsa", "gmsa-webhook"]);
    assert_eq!(cluster.api.count(Verb::Create, ""), 0);
}

/// Posts reviews to replicas for as long as it lives, each verified by the bundle of that moment.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    lanes: JoinSet<()>,
}

impl Load {
    fn start(cluster: &Arc<Cluster>, replicas: &[Replica]) -> Self {
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
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        }
        load
    }

    async fn finish(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.lanes.join_next().await {
            ended.unwrap();
        }
        assert_eq!(*self.failures.lock().unwrap(), Vec::<String>::new());
        self.answered.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_rotations_under_load_fail_no_verification() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.replica(), cluster.replica(), cluster.replica()];
    for replica in &replicas {
        replica.progress.until_ready().await;
    }
    let load = Load::start(&cluster, &replicas);
    let mut authorities = BTreeSet::from([cluster.signing()]);
    let mut leaves = BTreeSet::from([replicas[0].serial().unwrap()]);
    for _ in 0..50 {
        // Both the authority and the leaf are due after two thirds of their lives.
        cluster.pass(20 * DAY).await;
        let old = authorities.last().cloned();
        eventually("a new authority signs, and every replica serves what it signed", || {
            let signing = cluster.signing();
            let current = replicas[0].serial().unwrap();
            let stored = cluster.secret_value("authorities.json");
            !authorities.contains(&signing)
                && !stored.contains("\"next\"")
                && !leaves.contains(&current)
                && replicas.iter().all(|replica| replica.serial().as_ref() == Some(&current))
                && leaf_in(&cluster) == current
        })
        .await;
        assert_ne!(Some(cluster.signing()), old);
        authorities.insert(cluster.signing());
        leaves.insert(replicas[0].serial().unwrap());
    }
    let answered = load.finish().await;
    assert!(answered > 100, "only {answered} reviews");
    assert_eq!((authorities.len(), leaves.len()), (51, 51));
    let count = |what: fn(gmsa_webhook::tls::self_managed::Counts) -> u64| -> u64 {
        replicas.iter().map(|replica| what(replica.progress.counts())).sum()
    };
    assert_eq!(count(|counts| counts.rotated), 50);
    assert_eq!(count(|counts| counts.rebuilt), 0);
    assert_eq!(count(|counts| counts.failed), 0);
    // Of the fifty old ones only those are left whose certificates may still be served.
    for plural in CONFIGURATIONS {
        assert!(cluster.bundle(plural).len() <= 3, "{:?}", cluster.bundle(plural));
    }
}

/// The serial number of the leaf in the Secret.
fn leaf_in(cluster: &Cluster) -> String {
    let (_, pem) = x509_parser::pem::parse_x509_pem(cluster.secret_value("tls.crt").as_bytes())
        .map(|(rest, pem)| (rest.to_vec(), pem))
        .unwrap();
    gmsa_webhook::tls::Summary::of(&pem.parse_x509().unwrap()).serial
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_can_be_asked_for_and_drops_nothing_that_is_served() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.replica(), cluster.replica()];
    for replica in &replicas {
        replica.progress.until_ready().await;
    }
    let load = Load::start(&cluster, &replicas);
    let old = cluster.signing();
    cluster.edit_secret(|secret| secret["metadata"]["annotations"] = json!({ROTATE_ANNOTATION: "today"}));
    eventually("a new authority signs", || cluster.signing() != old).await;
    eventually("its leaf is served", || replicas.iter().all(|replica| replica.serial() == Some(leaf_in(&cluster))))
        .await;
    for plural in CONFIGURATIONS {
        assert_eq!(cluster.bundle(plural), certificates(&(old.clone() + &cluster.signing())));
    }
    // Replicas that start now, one after the other, begin with the new one.
    let late = cluster.replica();
    late.progress.until_ready().await;
    assert_eq!(late.serial(), Some(leaf_in(&cluster)));
    cluster.client(CONFIGURATIONS[0]).review(late.webhook.address).await.unwrap();
    load.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_away_memory_serves_and_the_renewal_comes_after() {
    let mut cluster = Cluster::installed().await;
    let replica = cluster.replica();
    replica.progress.until_ready().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.stop().await;
    cluster.pass(20 * DAY).await;
    let failed = replica.progress.counts().failed;
    eventually("it is noticed", || replica.progress.counts().failed > failed + 1).await;
    assert_eq!(replica.serial(), serial);
    client.review(replica.webhook.address).await.unwrap();
    assert!(replica.progress.is_ready());
    cluster.api.resume().await;
    eventually("it is renewed", || replica.serial().is_some() && replica.serial() != serial).await;
    eventually("the authority is renewed as well", || replica.progress.counts().rotated == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_secret_is_rebuilt_while_reviews_go_on() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.replica(), cluster.replica()];
    for replica in &replicas {
        replica.progress.until_ready().await;
    }
    let load = Load::start(&cluster, &replicas);
    let old = cluster.signing();
    let rebuilt = || replicas.iter().map(|replica| replica.progress.counts().rebuilt).sum::<u64>();

    cluster.edit_secret(|secret| secret["data"]["tls.crt"] = json!(STANDARD.encode("oops")));
    eventually("the leaf is made anew", || rebuilt() == 1).await;
    assert_eq!(cluster.signing(), old, "a damaged leaf is no reason for another authority");

    cluster.edit_secret(|secret| _ = secret["data"].as_object_mut().unwrap().remove("authorities.json"));
    eventually("all is made anew", || rebuilt() == 2).await;
    assert_ne!(cluster.signing(), old);
    eventually("the new leaf is served", || replicas.iter().all(|replica| replica.serial() == Some(leaf_in(&cluster))))
        .await;

    // Emptied, which is how to begin anew on purpose.
    cluster.edit_secret(|secret| _ = secret.as_object_mut().unwrap().remove("data"));
    eventually("it is filled again", || cluster.secret()["data"].is_object()).await;
    eventually("the new leaf is served", || replicas.iter().all(|replica| replica.serial() == Some(leaf_in(&cluster))))
        .await;
    load.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_reported_and_not_created() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica();
    replica.progress.until_ready().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.delete("secrets", "gmsa", "gmsa-webhook-tls");
    let failed = replica.progress.counts().failed;
    eventually("it is counted", || replica.progress.counts().failed > failed + 1).await;
    assert_eq!(cluster.api.count(Verb::Create, "/secrets"), 0);
    client.review(replica.webhook.address).await.unwrap();
    // Somebody installs it again, empty: a new authority, which is served once everybody trusts it.
    cluster.api.apply(secret(&json!({})));
    eventually("the new one is served", || replica.serial() != serial).await;
    cluster.client(CONFIGURATIONS[1]).review(replica.webhook.address).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_there_is_appended_to_and_kept_for_the_grace() {
    let cluster = Cluster::installed().await;
    let theirs = authority().cert_pem().to_owned();
    for plural in CONFIGURATIONS {
        cluster.api.apply(configuration(plural, &theirs));
    }
    let replica = cluster.replica();
    replica.progress.until_ready().await;
    let both = certificates(&(theirs + &cluster.signing()));
    for plural in CONFIGURATIONS {
        assert_eq!(cluster.bundle(plural), both);
    }
    // Somebody applies the manifests of the installation again, twice.
    for bundle in ["", "\n"] {
        for plural in CONFIGURATIONS {
            cluster.api.apply(configuration(plural, bundle));
        }
        let ours = certificates(&cluster.signing());
        eventually("our authority is back", || bundles(&cluster).iter().all(|bundle| *bundle == Some(ours.clone())))
            .await;
    }
    for plural in CONFIGURATIONS {
        cluster.api.apply(configuration(plural, &both.to_pem()));
    }
    let seen = cluster.api.count(Verb::Get, CONFIGURATIONS[1]);
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], seen + 3).await;
    assert_eq!(cluster.bundle(CONFIGURATIONS[0]), both, "theirs is kept for the grace");
    cluster.pass(10 * DAY).await;
    let ours = certificates(&cluster.signing());
    eventually("theirs goes", || bundles(&cluster).iter().all(|bundle| *bundle == Some(ours.clone()))).await;
}

fn bundles(cluster: &Cluster) -> Vec<Option<CaBundle>> {
    let bundle = |plural: &&str| {
        let object = cluster.api.object(plural, "", "gmsa-webhook")?;
        let text = object["webhooks"][1]["clientConfig"]["caBundle"].as_str()?.to_owned();
        Some(CaBundle::salvage(&STANDARD.decode(text).unwrap()))
    };
    CONFIGURATIONS.iter().map(bundle).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_ready_when_the_configurations_carry_its_authority_and_stays_ready() {
    let cluster = Cluster::installed().await;
    cluster.api.delete(CONFIGURATIONS[1], "", "gmsa-webhook");
    cluster.api.fault(Verb::Patch, CONFIGURATIONS[0], 1, Fault::forbidden());
    let replica = cluster.replica();
    eventually("the one that is there carries it", || bundles(&cluster)[0].is_some()).await;
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], 5).await;
    assert!(replica.served.is_serving());
    assert!(!replica.progress.is_ready(), "a configuration is missing");
    cluster.api.apply(configuration(CONFIGURATIONS[1], ""));
    replica.progress.until_ready().await;
    for plural in CONFIGURATIONS {
        cluster.api.delete(plural, "", "gmsa-webhook");
    }
    let seen = cluster.api.count(Verb::Get, CONFIGURATIONS[1]);
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], seen + 3).await;
    assert!(replica.progress.is_ready());
    assert!(replica.progress.counts().failed >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_watch_a_timer_does() {
    let cluster = Cluster::installed().await;
    cluster.api.fault(Verb::List, "/secrets", usize::MAX, Fault::forbidden());
    let replica = cluster.replica();
    replica.progress.until_ready().await;
    assert_eq!(cluster.api.count(Verb::Watch, "/secrets"), 0);
    let serial = replica.serial();
    cluster.edit_secret(|secret| _ = secret.as_object_mut().unwrap().remove("data"));
    eventually("the new one is served", || replica.serial() != serial).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_secret_is_seen_by_the_watch_at_once() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica_with(&Settings { check_interval: 100 * DAY, ..settings() });
    replica.progress.until_ready().await;
    cluster.api.wait_for(Verb::Watch, "/secrets", 1).await;
    cluster.edit_secret(|secret| secret["data"]["ca.crt"] = json!(""));
    eventually("it is rebuilt", || replica.progress.counts().rebuilt == 1).await;
    assert_eq!(cluster.secret_value("ca.crt"), certificates(&cluster.signing()).to_pem());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_one_that_the_role_allows() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica();
    replica.progress.until_ready().await;
    cluster.api.wait_for(Verb::Watch, "/secrets", 1).await;
    let names = |verb| -> BTreeSet<String> {
        let path = |request: &crate::support::Recorded| request.path.split('?').next().unwrap().to_owned();
        cluster.api.requests(verb, "").iter().map(path).collect()
    };
    let configurations =
        CONFIGURATIONS.map(|plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/gmsa-webhook"));
    let with_secret: BTreeSet<String> = configurations.iter().cloned().chain([SECRET.to_owned()]).collect();
    assert_eq!(names(Verb::Get), with_secret);
    assert_eq!(names(Verb::Update), BTreeSet::from([SECRET.to_owned()]));
    assert_eq!(names(Verb::Patch), configurations.into_iter().collect());
    for verb in [Verb::List, Verb::Watch] {
        for request in cluster.api.requests(verb, "") {
            assert!(request.path.starts_with("/api/v1/namespaces/gmsa/secrets?"), "{request:?}");
            assert!(request.path.contains("fieldSelector=metadata.name%3Dgmsa-webhook-tls"), "{request:?}");
        }
    }
    assert_eq!(names(Verb::Create).len() + names(Verb::Delete).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_authority_is_published_in_the_same_way() {
    let cluster = Cluster::installed().await;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("ca.crt");
    let [first, second] = [authority(), authority()].map(|ca: Ca| ca.cert_pem().to_owned());
    std::fs::write(&file, &first).unwrap();
    let api = Arc::new(ApiServer::new(cluster.api.config()).unwrap());
    let publication = Publication::new(api, settings().configurations, 10 * DAY);
    let kept = CaFile::new(file.clone(), publication).keep_published(Duration::from_millis(50), cluster.clock());
    let task = tokio::spawn(async move { match kept.await {} });
    let carry = |pem: &str| {
        let expected = Some(certificates(pem));
        bundles(&cluster).iter().all(|bundle| *bundle == expected)
    };
    eventually("it is published", || carry(&first)).await;
    std::fs::write(&file, "half a cert").unwrap();
    cluster.api.apply(configuration(CONFIGURATIONS[0], ""));
    eventually("what was published before stays", || carry(&first)).await;
    std::fs::write(&file, &second).unwrap();
    eventually("the new one stands beside the old one", || carry(&(first.clone() + &second))).await;
    cluster.pass(10 * DAY).await;
    eventually("the old one goes", || carry(&second)).await;
    task.abort();
}

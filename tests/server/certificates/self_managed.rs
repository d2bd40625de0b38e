//! Replicas that share a Secret, against the simulated API server; reviews are verified as an API server verifies them: by
//! the bundle that a configuration has at that moment.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    clock::Moment,
    tls::{Publication, issue::Ca, self_managed::SelfManagedSettings},
};
use gmsa_webhook::{PROGRAM, metrics::Metrics};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::cluster::{CONFIGURATIONS, Cluster, Load, Replica, SECRET, certificates, settings};
use crate::{
    https::{DAY, authority},
    support::{Fault, PATIENCE, Verb, eventually, https::NAME},
};

fn count(replicas: &[Replica], step: &str) -> u64 {
    replicas.iter().map(|replica| replica.count(step)).sum()
}

fn without_data(secret: &mut Value) {
    secret.as_object_mut().unwrap().remove("data");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_at_once_make_one_authority_and_one_leaf() {
    let cluster = Cluster::installed().await;
    let replicas = [(); 3].map(|()| cluster.replica(&settings()));
    for replica in &replicas {
        replica.until_ready().await;
        assert_eq!(replica.serial().unwrap(), cluster.leaf());
        for plural in CONFIGURATIONS {
            cluster.client(plural).review(replica.webhook.address).await.unwrap();
        }
    }
    let authority = certificates(&cluster.signing());
    assert!(cluster.trusts(&authority));
    assert_eq!(certificates(&cluster.secret_value("ca.crt")), authority);
    assert_eq!((count(&replicas, "filled"), count(&replicas, "bundle-written")), (1, 2));
    assert_eq!(replicas[0].served.current().unwrap().names, [NAME, "gmsa-webhook.gmsa", "gmsa-webhook"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_rotations_under_load_fail_no_verification() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.ready_replica().await, cluster.ready_replica().await, cluster.ready_replica().await];
    let load = Load::start(&cluster, &replicas);
    let mut authorities = BTreeSet::from([cluster.signing()]);
    let mut leaves = BTreeSet::from([cluster.leaf()]);
    for _ in 0..50 {
        // Both the authority and the leaf are due after two thirds of their lives.
        cluster.pass(20 * DAY).await;
        let is_rotated = || {
            let current = replicas[0].serial().unwrap();
            !authorities.contains(&cluster.signing())
                && !cluster.secret_value("authorities.json").contains("\"next\"")
                && !leaves.contains(&current)
                && replicas.iter().all(|replica| replica.serial().as_ref() == Some(&current))
                && cluster.leaf() == current
        };
        let rotation = async {
            while !is_rotated() {
                // Longer than a new authority must stand, so nothing waits for that.
                cluster.pass(Duration::from_secs(1)).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, rotation).await.expect("a new authority signs, and every replica serves what it signed");
        authorities.insert(cluster.signing());
        leaves.insert(cluster.leaf());
    }
    let answered = load.finish();
    assert!(answered > 100, "only {answered} reviews");
    assert_eq!((authorities.len(), leaves.len()), (51, 51));
    assert_eq!(["rotated", "rebuilt", "failed"].map(|step| count(&replicas, step)), [50, 0, 0]);
    // The old ones are gone, except those whose certificates may still be served.
    for plural in CONFIGURATIONS {
        assert!(cluster.bundle(plural).unwrap().len() <= 3, "{:?}", cluster.bundle(plural));
    }
}

/// Two releases with different Services, and two machines whose clocks are weeks apart.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_disagree_replace_what_the_other_wrote_once_a_minute() {
    for (names, ahead) in [(vec!["other.gmsa.svc".to_owned()], Duration::ZERO), (settings().names, 20 * DAY)] {
        let cluster = Cluster::installed().await;
        let first = cluster.ready_replica().await;
        let clock = cluster.clock();
        let clock = Arc::new(move || Moment { wall: clock().wall + ahead, ..clock() });
        let second = cluster.replica_at(clock, &SelfManagedSettings { names, ..settings() });
        let both = [first, second];
        for minute in 1..=3 {
            // The second one begins, and the first one ends.
            eventually("the second one waits", || both[1].count("held-back") == minute).await;
            cluster.until_looked_at().await;
            let renewed = both.each_ref().map(|replica| replica.count("renewed"));
            assert_eq!((renewed, both[0].count("held-back")), ([minute; 2], 0), "{ahead:?}");
            cluster.pass(Duration::from_secs(61)).await;
        }
        assert_eq!(count(&both, "failed"), 0);
    }
}

/// The clock is ahead when the first replica starts, and is then corrected.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_from_the_future_is_not_served_beside_a_valid_one() {
    let cluster = Cluster::installed().await;
    let is_ahead = Arc::new(AtomicBool::new(true));
    let (clock, is_wrong) = (cluster.clock(), Arc::clone(&is_ahead));
    let clock = move || Moment { wall: clock().wall + DAY * u32::from(is_wrong.load(Ordering::Relaxed)), ..clock() };
    // Nothing waits for this: what is served is worth nothing.
    let slow = SelfManagedSettings { bundle_standing: DAY, ..settings() };
    let replica = cluster.replica_at(Arc::new(clock), &slow);
    replica.until_ready().await;
    let early = replica.serial();
    cluster.client(CONFIGURATIONS[0]).review(replica.webhook.address).await.unwrap_err();
    is_ahead.store(false, Ordering::Relaxed);
    replica.until_other_than(early.as_ref()).await;
    cluster.until_looked_at().await;
    cluster.client(CONFIGURATIONS[0]).review(replica.webhook.address).await.unwrap();
    assert_eq!(["rebuilt", "renewed"].map(|step| replica.count(step)), [1, 0]);
}

/// A tool of `GitOps`, or a left-over annotation of cert-manager.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_lost_its_authorities_gets_them_at_once_and_another_writer_is_counted() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica(&SelfManagedSettings { check_interval: 100 * DAY, ..settings() });
    replica.until_ready().await;
    let ours = certificates(&cluster.signing());
    for lost in [1, 2] {
        cluster.api.wait_for(Verb::Watch, CONFIGURATIONS[0], 1).await;
        cluster.apply("MutatingWebhookConfiguration");
        cluster.until_trusted(&ours).await;
        eventually("it is counted", || replica.count("bundle-lost") == lost).await;
    }
}

/// With an API server that takes a day to write a configuration.
#[tokio::test(flavor = "multi_thread")]
async fn an_authority_stands_in_the_bundles_since_it_was_written_there() {
    let cluster = Arc::new(Cluster::installed().await);
    let (written, began) = (Arc::clone(&cluster), cluster.clock());
    let clock = move || began() + DAY * u32::try_from(written.api.count(Verb::Patch, "")).unwrap();
    let slow = SelfManagedSettings { bundle_standing: DAY, ..settings() };
    let replica = cluster.replica_at(Arc::new(clock), &slow);
    replica.until_ready().await;
    cluster.edit_secret(|secret| secret["metadata"]["annotations"] = json!({"gmsa-webhook/rotate-ca": "now"}));
    let has_two = |plural: &&str| cluster.bundle(plural).is_some_and(|bundle| bundle.len() == 2);
    eventually("the next one is published", || CONFIGURATIONS.iter().all(has_two)).await;
    cluster.until_looked_at().await;
    assert_eq!(replica.count("rotated"), 0);
    cluster.pass(DAY).await;
    eventually("it signs", || replica.count("rotated") == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_away_memory_serves_and_the_renewal_comes_after() {
    let mut cluster = Cluster::installed().await;
    let replica = cluster.ready_replica().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.stop().await;
    cluster.pass(20 * DAY).await;
    let failed = replica.count("failed");
    eventually("it is noticed", || replica.count("failed") > failed + 1).await;
    assert_eq!(replica.serial(), serial);
    client.review(replica.webhook.address).await.unwrap();
    assert!(replica.ready.initialized());
    cluster.api.resume().await;
    replica.until_other_than(serial.as_ref()).await;
    eventually("the authority is renewed as well", || replica.count("rotated") == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_secret_is_rebuilt_while_reviews_go_on() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.ready_replica().await, cluster.ready_replica().await];
    let load = Load::start(&cluster, &replicas);
    let old = cluster.signing();

    cluster.edit_secret(|secret| secret["data"]["tls.crt"] = json!(STANDARD.encode("oops")));
    eventually("a new leaf is issued", || count(&replicas, "rebuilt") == 1).await;
    assert_eq!(cluster.signing(), old, "a damaged leaf is no reason for another authority");

    cluster.edit_secret(|secret| _ = secret["data"].as_object_mut().unwrap().remove("authorities.json"));
    eventually("all of it is issued again", || count(&replicas, "rebuilt") == 2).await;
    assert_ne!(cluster.signing(), old);

    // A user empties it to start again on purpose.
    cluster.edit_secret(without_data);
    eventually("it is filled again", || cluster.secret()["data"].is_object()).await;
    let leaf = Some(cluster.leaf());
    eventually("the new leaf is served", || replicas.iter().all(|replica| replica.serial() == leaf)).await;
    load.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_reported_and_not_created() {
    let cluster = Cluster::installed().await;
    let replica = cluster.ready_replica().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.delete("secrets", "gmsa", "gmsa-webhook-tls");
    let failed = replica.count("failed");
    eventually("it is counted", || replica.count("failed") > failed + 1).await;
    assert_eq!(cluster.api.count(Verb::Create, "/secrets"), 0);
    client.review(replica.webhook.address).await.unwrap();
    // A user installs it again, empty: a new authority, which is served once every configuration trusts it.
    cluster.apply("Secret");
    replica.until_other_than(serial.as_ref()).await;
    cluster.client(CONFIGURATIONS[1]).review(replica.webhook.address).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_stays_trusted_where_secret_and_configuration_are_lost() {
    let cluster = Cluster::installed().await;
    let mut slow = settings();
    slow.bundle_standing = DAY;
    let replica = cluster.replica(&slow);
    replica.until_ready().await;
    let (old, serial) = (cluster.signing(), replica.serial());
    cluster.edit_secret(without_data);
    eventually("another authority is made", || cluster.secret()["data"].is_object() && cluster.signing() != old).await;
    let both = certificates(&(cluster.signing() + &old));
    cluster.apply("Configuration");
    cluster.until_trusted(&both).await;
    assert_eq!(replica.serial(), serial);
    cluster.client(CONFIGURATIONS[0]).review(replica.webhook.address).await.unwrap();
    // The replica counts from when it has seen that.
    cluster.until_looked_at().await;
    // Once the new authority has been there for long enough, it signs what is served, and the old one goes after its grace.
    cluster.pass(2 * DAY).await;
    replica.until_other_than(serial.as_ref()).await;
    cluster.until_looked_at().await;
    assert!(cluster.trusts(&both));
    cluster.pass(10 * DAY).await;
    cluster.until_trusted(&certificates(&cluster.signing())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_ready_when_the_configurations_carry_its_authority_and_stays_ready() {
    let cluster = Cluster::installed().await;
    cluster.api.delete(CONFIGURATIONS[1], "", "gmsa-webhook");
    cluster.api.fault(Verb::Patch, CONFIGURATIONS[0], 1, Fault::forbidden());
    let replica = cluster.replica(&settings());
    eventually("the one that is there carries it", || cluster.bundle(CONFIGURATIONS[0]).is_some()).await;
    cluster.until_looked_at().await;
    assert!(replica.served.current().is_some());
    assert!(!replica.ready.initialized(), "a configuration is missing");
    cluster.apply("ValidatingWebhookConfiguration");
    replica.until_ready().await;
    for plural in CONFIGURATIONS {
        cluster.api.delete(plural, "", "gmsa-webhook");
    }
    cluster.until_looked_at().await;
    assert!(replica.ready.initialized());
    assert!(replica.count("failed") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_secret_is_seen_by_the_watch_at_once_and_without_the_right_to_it_by_a_timer() {
    for (may_watch, check_interval) in [(true, 100 * DAY), (false, settings().check_interval)] {
        let cluster = Cluster::installed().await;
        let denied = if may_watch { 0 } else { usize::MAX };
        cluster.api.fault(Verb::Watch, "/secrets", denied, Fault::forbidden());
        let replica = cluster.replica(&SelfManagedSettings { check_interval, ..settings() });
        replica.until_ready().await;
        cluster.api.wait_for(Verb::Watch, "/secrets", 1).await;
        cluster.edit_secret(|secret| secret["data"]["ca.crt"] = json!(""));
        eventually("it is rebuilt", || replica.count("rebuilt") == 1).await;
        assert_eq!(cluster.secret_value("ca.crt"), certificates(&cluster.signing()).to_pem());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_one_that_the_role_allows() {
    let cluster = Cluster::installed().await;
    let _replica = cluster.ready_replica().await;
    cluster.api.wait_for(Verb::Watch, "/secrets", 1).await;
    let asked = |verb| -> BTreeSet<String> {
        let requests = cluster.api.requests(verb, "").into_iter();
        requests.map(|request| request.path.split('?').next().unwrap().to_owned()).collect()
    };
    let configurations: BTreeSet<_> =
        CONFIGURATIONS.map(|plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/gmsa-webhook")).into();
    let secret = BTreeSet::from([SECRET.to_owned()]);
    assert_eq!(asked(Verb::Get), &configurations | &secret);
    assert_eq!(asked(Verb::Update), secret);
    assert_eq!(asked(Verb::Patch), configurations);
    let own = |name: &str| format!("fieldSelector=metadata.name%3D{name}&");
    let collections =
        CONFIGURATIONS.map(|plural| (format!("/apis/admissionregistration.k8s.io/v1/{plural}?"), own("gmsa-webhook")));
    let watched = [&collections[..], &[("/api/v1/namespaces/gmsa/secrets?".to_owned(), own("gmsa-webhook-tls"))]];
    for request in cluster.api.requests(Verb::Watch, "") {
        let is_own = |(collection, name): &&(String, String)| {
            request.path.starts_with(collection) && format!("{}&", request.path).contains(name)
        };
        assert!(watched.concat().iter().any(|watched| is_own(&watched)), "{request:?}");
    }
    assert_eq!([Verb::List, Verb::Create, Verb::Delete].map(|verb| asked(verb).len()), [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_authority_is_published_in_the_same_way() {
    let cluster = Cluster::installed().await;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("ca.crt");
    let [first, second] = [authority(), authority()].map(|ca: Ca| ca.cert_pem().to_owned());
    fs::write(&file, &first).unwrap();
    let api = Arc::new(ApiServer::new(cluster.api.config()).unwrap());
    let (metrics, ..) = Metrics::new();
    let publication = Publication::new(api, PROGRAM, settings().configurations, 10 * DAY, metrics);
    tokio::spawn(publication.follow(file.clone(), Duration::from_millis(50), cluster.clock()));
    cluster.until_trusted(&certificates(&first)).await;
    // What was published before stays.
    fs::write(&file, "half a cert").unwrap();
    cluster.apply("Configuration");
    cluster.until_trusted(&certificates(&first)).await;
    fs::write(&file, &second).unwrap();
    cluster.until_trusted(&certificates(&(first + &second))).await;
    cluster.pass(10 * DAY).await;
    cluster.until_trusted(&certificates(&second)).await;
}

//! Replicas that share a Secret, against the simulated API server; reviews are verified as an API server verifies them: by
//! the bundle that a configuration has at that moment.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_webhook::tls::{Publication, issue::Ca, self_managed::SelfManagedSettings};
use serde_json::json;
use tokio::time::timeout;

use super::{
    DAY, NAME, authority,
    cluster::{CONFIGURATIONS, Cluster, Load, SECRET, bundles, certificates, configuration, leaf_in, secret, settings},
};
use crate::support::{Fault, PATIENCE, Verb, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_at_once_make_one_authority_and_one_leaf() {
    let cluster = Cluster::installed().await;
    let replicas = [cluster.replica(), cluster.replica(), cluster.replica()];
    for replica in &replicas {
        timeout(PATIENCE, replica.ready.wait()).await.unwrap();
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
    let filled: u64 = replicas.iter().map(|replica| replica.count("filled")).sum();
    let written: u64 = replicas.iter().map(|replica| replica.count("bundle-written")).sum();
    assert_eq!((filled, written), (1, 2));
    assert_eq!(replicas[0].served.current().unwrap().names, [NAME, "gmsa-webhook.gmsa", "gmsa-webhook"]);
    assert_eq!(cluster.api.count(Verb::Create, ""), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_rotations_under_load_fail_no_verification() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.replica(), cluster.replica(), cluster.replica()];
    for replica in &replicas {
        replica.ready.wait().await;
    }
    let load = Load::start(&cluster, &replicas);
    let mut authorities = BTreeSet::from([cluster.signing()]);
    let mut leaves = BTreeSet::from([replicas[0].serial().unwrap()]);
    for _ in 0..50 {
        // Both the authority and the leaf are due after two thirds of their lives.
        cluster.pass(20 * DAY).await;
        let old = authorities.last().cloned();
        let is_rotated = || {
            let signing = cluster.signing();
            let current = replicas[0].serial().unwrap();
            let stored = cluster.secret_value("authorities.json");
            !authorities.contains(&signing)
                && !stored.contains("\"next\"")
                && !leaves.contains(&current)
                && replicas.iter().all(|replica| replica.serial().as_ref() == Some(&current))
                && leaf_in(&cluster) == current
        };
        let rotation = async {
            while !is_rotated() {
                // Longer than a new authority must stand, so nothing waits for that.
                cluster.pass(Duration::from_secs(1)).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, rotation).await.expect("a new authority signs, and every replica serves what it signed");
        assert_ne!(Some(cluster.signing()), old);
        authorities.insert(cluster.signing());
        leaves.insert(replicas[0].serial().unwrap());
    }
    let answered = load.finish().await;
    assert!(answered > 100, "only {answered} reviews");
    assert_eq!((authorities.len(), leaves.len()), (51, 51));
    let count = |step| -> u64 { replicas.iter().map(|replica| replica.count(step)).sum() };
    assert_eq!(["rotated", "rebuilt", "failed"].map(count), [50, 0, 0]);
    // Of the fifty old ones only those are left whose certificates may still be served.
    for plural in CONFIGURATIONS {
        assert!(cluster.bundle(plural).len() <= 3, "{:?}", cluster.bundle(plural));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_away_memory_serves_and_the_renewal_comes_after() {
    let mut cluster = Cluster::installed().await;
    let replica = cluster.replica();
    replica.ready.wait().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.stop().await;
    cluster.pass(20 * DAY).await;
    let failed = replica.count("failed");
    eventually("it is noticed", || replica.count("failed") > failed + 1).await;
    assert_eq!(replica.serial(), serial);
    client.review(replica.webhook.address).await.unwrap();
    assert!(replica.ready.initialized());
    cluster.api.resume().await;
    eventually("it is renewed", || replica.serial().is_some() && replica.serial() != serial).await;
    eventually("the authority is renewed as well", || replica.count("rotated") == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_secret_is_rebuilt_while_reviews_go_on() {
    let cluster = Arc::new(Cluster::installed().await);
    let replicas = [cluster.replica(), cluster.replica()];
    for replica in &replicas {
        replica.ready.wait().await;
    }
    let load = Load::start(&cluster, &replicas);
    let old = cluster.signing();
    let rebuilt = || replicas.iter().map(|replica| replica.count("rebuilt")).sum::<u64>();

    cluster.edit_secret(|secret| secret["data"]["tls.crt"] = json!(STANDARD.encode("oops")));
    eventually("a new leaf is issued", || rebuilt() == 1).await;
    assert_eq!(cluster.signing(), old, "a damaged leaf is no reason for another authority");

    cluster.edit_secret(|secret| _ = secret["data"].as_object_mut().unwrap().remove("authorities.json"));
    eventually("all of it is issued again", || rebuilt() == 2).await;
    assert_ne!(cluster.signing(), old);
    eventually("the new leaf is served", || replicas.iter().all(|replica| replica.serial() == Some(leaf_in(&cluster))))
        .await;

    // A user empties it to start again on purpose.
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
    replica.ready.wait().await;
    let (client, serial) = (cluster.client(CONFIGURATIONS[0]), replica.serial());
    cluster.api.delete("secrets", "gmsa", "gmsa-webhook-tls");
    let failed = replica.count("failed");
    eventually("it is counted", || replica.count("failed") > failed + 1).await;
    assert_eq!(cluster.api.count(Verb::Create, "/secrets"), 0);
    client.review(replica.webhook.address).await.unwrap();
    // A user installs it again, empty: a new authority, which is served once every configuration trusts it.
    cluster.api.apply(secret(&json!({})));
    eventually("the new one is served", || replica.serial() != serial).await;
    cluster.client(CONFIGURATIONS[1]).review(replica.webhook.address).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_stays_trusted_where_secret_and_configuration_are_lost() {
    let cluster = Cluster::installed().await;
    let mut slow = settings();
    slow.issuance.bundle_standing = DAY;
    let replica = cluster.replica_with(&slow);
    replica.ready.wait().await;
    let (old, serial) = (cluster.signing(), replica.serial());
    cluster.edit_secret(|secret| _ = secret.as_object_mut().unwrap().remove("data"));
    eventually("another authority is made", || cluster.secret()["data"].is_object() && cluster.signing() != old).await;
    let both = certificates(&(cluster.signing() + &old));
    for plural in CONFIGURATIONS {
        cluster.api.delete(plural, "", "gmsa-webhook");
        cluster.api.apply(configuration(plural, ""));
    }
    eventually("both are trusted", || bundles(&cluster).iter().all(|bundle| *bundle == Some(both.clone()))).await;
    assert_eq!(replica.serial(), serial);
    cluster.client(CONFIGURATIONS[0]).review(replica.webhook.address).await.unwrap();
    // Once the new authority has been there for long enough, it signs what is served, and the old one goes after its grace.
    cluster.pass(2 * DAY).await;
    eventually("what the new authority signed is served", || replica.serial() != serial).await;
    let seen = cluster.api.count(Verb::Get, CONFIGURATIONS[1]);
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], seen + 3).await;
    assert_eq!(bundles(&cluster), [Some(both.clone()), Some(both)]);
    cluster.pass(10 * DAY).await;
    let ours = certificates(&cluster.signing());
    eventually("the old one goes", || bundles(&cluster).iter().all(|bundle| *bundle == Some(ours.clone()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_there_is_appended_to_and_kept_for_the_grace() {
    let cluster = Cluster::installed().await;
    let theirs = authority().cert_pem().to_owned();
    for plural in CONFIGURATIONS {
        cluster.api.apply(configuration(plural, &theirs));
    }
    let replica = cluster.replica();
    replica.ready.wait().await;
    let both = certificates(&(theirs + &cluster.signing()));
    for plural in CONFIGURATIONS {
        assert_eq!(cluster.bundle(plural), both);
    }
    // A user applies the manifests of the installation again, twice.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_ready_when_the_configurations_carry_its_authority_and_stays_ready() {
    let cluster = Cluster::installed().await;
    cluster.api.delete(CONFIGURATIONS[1], "", "gmsa-webhook");
    cluster.api.fault(Verb::Patch, CONFIGURATIONS[0], 1, Fault::forbidden());
    let replica = cluster.replica();
    eventually("the one that is there carries it", || bundles(&cluster)[0].is_some()).await;
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], 5).await;
    assert!(replica.served.current().is_some());
    assert!(!replica.ready.initialized(), "a configuration is missing");
    cluster.api.apply(configuration(CONFIGURATIONS[1], ""));
    replica.ready.wait().await;
    for plural in CONFIGURATIONS {
        cluster.api.delete(plural, "", "gmsa-webhook");
    }
    let seen = cluster.api.count(Verb::Get, CONFIGURATIONS[1]);
    cluster.api.wait_for(Verb::Get, CONFIGURATIONS[1], seen + 3).await;
    assert!(replica.ready.initialized());
    assert!(replica.count("failed") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_watch_a_timer_does() {
    let cluster = Cluster::installed().await;
    cluster.api.fault(Verb::Watch, "/secrets", usize::MAX, Fault::forbidden());
    let replica = cluster.replica();
    replica.ready.wait().await;
    let serial = replica.serial();
    cluster.edit_secret(|secret| _ = secret.as_object_mut().unwrap().remove("data"));
    eventually("the new one is served", || replica.serial() != serial).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_secret_is_seen_by_the_watch_at_once() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica_with(&SelfManagedSettings { check_interval: 100 * DAY, ..settings() });
    replica.ready.wait().await;
    cluster.api.wait_for(Verb::Watch, "/secrets", 1).await;
    cluster.edit_secret(|secret| secret["data"]["ca.crt"] = json!(""));
    eventually("it is rebuilt", || replica.count("rebuilt") == 1).await;
    assert_eq!(cluster.secret_value("ca.crt"), certificates(&cluster.signing()).to_pem());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_one_that_the_role_allows() {
    let cluster = Cluster::installed().await;
    let replica = cluster.replica();
    replica.ready.wait().await;
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
    for request in cluster.api.requests(Verb::Watch, "") {
        assert!(request.path.starts_with("/api/v1/namespaces/gmsa/secrets?"), "{request:?}");
        assert!(request.path.contains("fieldSelector=metadata.name%3Dgmsa-webhook-tls"), "{request:?}");
    }
    for verb in [Verb::List, Verb::Create, Verb::Delete] {
        assert_eq!(names(verb).len(), 0, "{verb:?}");
    }
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
    let kept = publication.follow(file.clone(), Duration::from_millis(50), cluster.clock());
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
    eventually("the new one is beside the old one", || carry(&(first.clone() + &second))).await;
    cluster.pass(10 * DAY).await;
    eventually("the old one goes", || carry(&second)).await;
    task.abort();
}

//! A trial with `webhooks.enforcement: Warn`, and one mutating configuration instead of two: what pods get, and what `helm test` makes of it.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, printed},
    desk::Desk,
    guard::denied,
    installed::{DENIED, contents, the_test_of_the_release_passes},
    pods::{Options, creation, creation_in, grant, pod},
    release::Release,
};

/// The pod as the API server would store it, and what `kubectl` shows beside it.
fn created(cluster: &Cluster, pod: &Value) -> (Value, String) {
    let output = cluster.kubectl_with("create --dry-run=server -o json -f -", &pod.to_string());
    let warnings = String::from_utf8(output.stderr.clone()).unwrap();
    (serde_json::from_str(&printed(output)).unwrap(), warnings)
}

/// Whether the pod as it would be stored has its contents.
fn is_filled(cluster: &Cluster, pod: &Value) -> bool {
    creation(cluster, pod).is_none()
        && contents(&created(cluster, pod).0)["DomainJoinConfig"]["MachineAccountName"] == "WebApp1"
}

#[test]
fn a_trial_admits_with_a_warning_what_would_be_refused_and_ends_by_an_upgrade() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "--set webhooks.enforcement=Warn");
    let replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    let warning = format!("Warning: GMSA, not enforced: {DENIED}");
    let (stored, said) = created(&cluster, &asked);
    assert!(said.lines().any(|line| line.starts_with(&warning)), "{said}");
    assert_eq!(contents(&stored)["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    the_test_of_the_release_passes(&release);
    let called = Desk::new(&cluster).outcomes("doctor", "call of /");
    assert_eq!(called, ["warn call of /mutate not-enforced", "warn call of /validate not-enforced"]);

    drop(replica);
    release.upgrade("webhooks.enforcement=Enforce");
    let _replica = release.start_replica();
    cluster.until("denials are enforced", || creation(&cluster, &asked).is_some_and(|said| said.contains(DENIED)));
}

/// `webhooks.warnNamespaces`: a trial in one namespace, while every other one is protected, by the webhook and by the guard.
#[test]
fn a_trial_in_one_namespace_leaves_the_others_protected() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::Guard) {
        return;
    }
    let values = "--set webhooks.warnNamespaces={apps}";
    let release = Release::install_for_pods(&cluster, &format!("{values} --set guard.enabled=true"));
    cluster.create_namespace("shop");
    let _replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    // The guard, the webhook on both of its paths and the advice each warn; the API server shows equal warnings once.
    let (stored, said) = created(&cluster, &asked);
    let guard = "Warning: Validation failed for ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard-trial'";
    for warning in ["Warning: GMSA, not enforced", guard] {
        assert!(said.lines().any(|line| line == format!("{warning}: {DENIED}")), "{warning}\n{said}");
    }
    assert_eq!(contents(&stored)["DomainJoinConfig"]["MachineAccountName"], "WebApp1");

    let elsewhere = || creation_in(&cluster, "shop", &asked);
    let said = elsewhere().unwrap();
    assert!(said.ends_with(&format!("pods \"p\" is forbidden: {}{DENIED}", denied("gmsa-guard"))), "{said}");
    // A namespace's owner cannot join the trial by a label.
    cluster.kubectl("label namespace shop --overwrite kubernetes.io/metadata.name=apps");
    assert!(elsewhere().is_some());
    // Without the guard, it is the webhook that refuses.
    release.upgrade("webhooks.warnNamespaces={apps}");
    let denied = format!("\"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: {DENIED}");
    cluster.until("the guard is gone", || elsewhere().is_some_and(|said| said.ends_with(&denied)));
    assert!(creation(&cluster, &asked).is_none());
    the_test_of_the_release_passes(&release);
}

/// `webhooks.first.enabled=false`: the configuration that sorts last does the work of both, also for names that the pod did not come with.
#[test]
fn one_mutating_configuration_does_the_work_of_two() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    let release = Release::install_for_pods(&cluster, "--set webhooks.first.enabled=false");
    let names = || cluster.names("mutatingwebhookconfigurations");
    assert_eq!(names(), "mutatingwebhookconfiguration.admissionregistration.k8s.io/zz-gmsa\n");
    grant(&cluster, "default", &["webapp1".to_owned()]);
    let _replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || is_filled(&cluster, &asked));
    the_test_of_the_release_passes(&release);

    // Another one adds the name, and the pod names nothing itself.
    cluster.apply(include_str!("objects/adds-names.yaml"));
    let mut labelled = pod("p", "pod", Options::Absent, "");
    labelled["metadata"]["labels"] = json!({"gmsa": "webapp1"});
    cluster.until("the name is added, and filled in", || is_filled(&cluster, &labelled));

    // And back to two, and to one again, while it serves: once the API server has heard of it, no pod is refused that was admitted before.
    for (first, count) in [("true", 2), ("false", 1)] {
        release.upgrade(&format!("webhooks.first.enabled={first}"));
        assert_eq!(names().lines().count(), count);
    }
    cluster.until("the pod is admitted", || creation(&cluster, &asked).is_none());
}

//! `kubectl gmsa doctor --pre` and `kubectl gmsa check` of the workloads in the cluster: before anything is installed, beside the Go
//! webhook's release, and after the install.

use serde_json::json;

use crate::{
    cluster::Cluster,
    desk::Desk,
    pods::{NAMESPACE, SPEC, grant},
    release::{GO_RELEASE, Release, install, own_ca},
};

#[test]
fn what_an_installation_finds_is_said_before_it() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    desk.assert_outcomes("doctor --pre", "pre");
    // A user with only the rights that every user has.
    desk.assert_outcomes("doctor --pre --as nobody --as-group system:authenticated", "pre-as-nobody");

    cluster.create_namespace(NAMESPACE);
    install(&cluster, "gmsa", GO_RELEASE, &own_ca());
    desk.assert_outcomes("doctor --pre --namespace windows", "pre-beside-go");
    of_the_workloads(&desk);
    stored_versions(&desk);

    cluster.helm_prints("uninstall gmsa -n windows");
    cluster.prints("delete crd gmsacredentialspecs.windows.k8s.io");
    let _release = Release::install(&cluster, "");
    desk.assert_outcomes("doctor --pre --namespace windows", "pre-installed");
}

/// The Go webhook does not run, so there is no pod of them yet, and none would be admitted.
fn of_the_workloads(desk: &Desk<'_>) {
    let cluster = desk.cluster;
    cluster.apply(SPEC);
    cluster.apply(include_str!("objects/before.yaml"));
    cluster.until("the Deployment has its ReplicaSet", || !cluster.names("replicasets -n apps").is_empty());
    let of_all = "check -A --ignore not-authorized";
    let found = [
        "error spec-missing CronJob apps/yearly",
        "error webhook-unreachable CronJob apps/yearly",
        "error webhook-unreachable Deployment apps/web",
        "note shared-hostname Deployment apps/web",
        "error webhook-unreachable StatefulSet apps/very-long-name-web",
        "warning shared-hostname StatefulSet apps/very-long-name-web",
    ];
    assert_eq!(desk.finds(of_all), (found.map(str::to_owned).to_vec(), 1));
    let (report, _) = desk.gmsa(of_all);
    // A Deployment of the Go release is the fourth.
    assert!(report.ends_with("\n4 errors, 1 warning, 1 note in 4 objects, and 2 ignored\n"), "{report}");

    grant(cluster, "default", &["webapp1".to_owned()]);
    let lines = |report: &str, end: &str| report.lines().filter(|line| line.ends_with(end)).count();
    let (report, code) = desk.gmsa("check -n apps --ignore spec-missing,webhook-unreachable --fail-on error");
    assert_eq!((lines(&report, "  is refused: the webhook does not answer"), code), (2, 0), "{report}");

    // Who may list the workloads alone.
    cluster.apply(include_str!("objects/lister.yaml"));
    cluster.until("the binding is in force", || cluster.exists("cronjobs -n apps --as developer"));
    let (report, code) = desk.gmsa("check -n apps --as developer");
    assert_eq!((lines(&report, "  could not be checked"), code), (3, 2), "{report}");
    let (report, code) = desk.gmsa("check -A --as developer");
    assert!(report.ends_with("\n8 could not be checked in 0 objects\n"), "{report}");
    assert_eq!(code, 2);
}

/// The remedy is followed to the letter.
fn stored_versions(desk: &Desk<'_>) {
    let both = json!({"status": {"storedVersions": ["v1alpha1", "v1"]}});
    let crd = "crd gmsacredentialspecs.windows.k8s.io --subresource=status --type=merge";
    desk.cluster.change(crd, &both);
    let of_crd = || desk.lines("doctor --pre").0.into_iter().find(|line| line.rule == "stored-version");
    let found = of_crd().unwrap();
    assert_eq!(found.outcome(), "note custom resource stored-version");
    let (_, by_hand) = found.remedy.split_once("By hand: ").unwrap();
    assert_eq!(by_hand.split('`').count(), 5, "{by_hand}");
    desk.follow(by_hand, &[]);
    assert!(of_crd().is_none());
}

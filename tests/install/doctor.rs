//! `kubectl gmsa doctor` after an install: green where all is well, and what it finds in a cluster in which it is not. The sentences are asserted by the
//! cases in `crates/kubectl-gmsa/tests/cli/recorded`; here it is which checks pass on a real control plane, and which rule they find.

use crate::{
    cluster::Cluster,
    desk::Desk,
    nodes::{endpoints, join, run_pods},
    pods::{NAMESPACE, Options, SPEC, creation, pod},
    release::{RELEASE_NAMESPACE, Release},
};

/// Has the release's pods run on a node, and waits until its Service has them; then its replica is what answers.
pub fn put_in_service(release: &Release<'_>) {
    let cluster = release.cluster;
    join(cluster, "linux-1", "linux");
    run_pods(cluster, RELEASE_NAMESPACE, "linux-1", 2);
    cluster.until("the Service has its endpoints", || endpoints(cluster, RELEASE_NAMESPACE, "gmsa").len() == 2);
    release.route_to_loopback();
}

#[test]
fn an_install_is_green_and_what_is_not_is_said() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    desk.assert_outcomes("doctor", "nothing");

    let release = Release::install(&cluster, "");
    put_in_service(&release);
    let mut replica = release.start_replica();
    // The install is ready, so waiting is over; a cluster without Windows nodes is worth a warning.
    desk.assert_outcomes("doctor --wait 60s", "installed");
    desk.assert_outcomes("doctor", "installed-without-windows");

    cluster.create_namespace(NAMESPACE);
    cluster.apply(SPEC);
    desk.gmsa("grant --credspec webapp1 --serviceaccount apps:default --apply");
    let pod = pod("web", "pod", Options::Name, "webapp1");
    cluster.until("the grant is in force", || creation(&cluster, &pod).is_none());
    cluster.apply(&pod.to_string());
    join(&cluster, "windows-1", "windows");
    run_pods(&cluster, NAMESPACE, "windows-1", 1);
    desk.assert_outcomes("doctor", "used");

    // `--as` goes along with every request.
    let output = desk.plugin("who-can webapp1 --as nobody --as-group nogroup");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("clusterroles.rbac.authorization.k8s.io is forbidden: User \"nobody\""), "{said}");
    assert_eq!(output.status.code(), Some(2));

    // The webhook is gone, and its pods still count as ready: only the API server's own call shows it.
    replica.end();
    cluster.until("the webhook is missed", || {
        creation(&cluster, &pod).is_some_and(|said| said.contains("failed calling"))
    });
    desk.assert_outcomes("doctor", "down");
}

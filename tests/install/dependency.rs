//! The chart as a dependency of another chart, beside a sibling that has the label of old, and two releases in one namespace: install, upgrade, rollback,
//! uninstall.

use crate::{
    cluster::{Cluster, Feature},
    desk::Desk,
    helm::CHART,
    nodes::{endpoints, join, run_pods},
    objects::define_foreign_kinds,
    release::kinds,
};

/// Everything of these releases, in the cluster and in the namespace, what hooks leave included; but not what the garbage collector removes, which does not run
/// here: the pods of a Deployment that is gone.
fn left(cluster: &Cluster, release: &str) -> String {
    cluster.names(&format!("{} -A -l app.kubernetes.io/instance={release}", kinds(cluster)))
}

#[test]
fn a_dependency_gets_the_calls_and_its_sibling_does_not() {
    let cluster = Cluster::start();
    let desk = Desk::in_repository(&cluster);
    desk.run("cp -r tests/install/platform . && mkdir platform/charts");
    desk.run("cp -r charts/gmsa-webhook platform/charts");
    let run = |line: &str| desk.run(&format!("helm {line} -n shop"));
    let replicas = || cluster.get("deployment/shop-gmsa-webhook -n shop")["spec"]["replicas"].clone();
    run("install shop ./platform --create-namespace");
    join(&cluster, "linux-1", "linux");
    run_pods(&cluster, "shop", "linux-1", 5);
    let called = || endpoints(&cluster, "shop", "shop-gmsa-webhook");
    cluster.until("the Service has its endpoints", || called().len() == 3);
    assert!(called().iter().all(|pod| pod.starts_with("shop-gmsa-webhook-")));
    let configuration = cluster.get("validatingwebhookconfiguration/shop-gmsa-webhook");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["service"]["name"], "shop-gmsa-webhook");

    // Blank means this chart's default, not the parent's nor none at all.
    desk.write("platform/values.yaml", "gmsa-webhook: {replicaCount: , viewerRole: true}\n");
    for (change, expected) in [
        ("--reset-values --values tests/install/objects/blank-dependency.yaml", 2),
        ("--reuse-values --set gmsa-webhook.replicaCount=4", 4),
        // Helm itself brings back what was set before, unless the chart's values come first.
        ("--reset-then-reuse-values --set gmsa-webhook.replicaCount=null", 2),
    ] {
        run(&format!("upgrade shop ./platform {change}"));
        assert_eq!(replicas(), expected, "{change}");
    }
    run("rollback shop 1");
    assert_eq!(replicas(), 3);
    run("uninstall shop --wait");
    assert_eq!(left(&cluster, "shop"), "");
}

#[test]
fn two_releases_in_one_namespace_live_side_by_side() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let longest = "n".repeat(53);
    let (all, count) = if cluster.has(Feature::Guard) {
        ("--values tests/install/objects/all.yaml", 14)
    } else {
        ("--values tests/install/objects/all.yaml --set guard.enabled=false", 11)
    };
    for release in ["one", &longest] {
        cluster.helm_prints(&format!("install {release} {CHART} -n shop --create-namespace {all}"));
    }
    cluster.helm_prints(&format!("upgrade one {CHART} -n shop {all} --set replicaCount=3"));
    // The same name in another namespace: Helm says that the first one owns what is in no namespace; another name is the way out.
    let twin = format!("install one {CHART} -n elsewhere --create-namespace");
    let refused = cluster.helm_refuses(&twin);
    assert!(refused.contains("exists and cannot be imported into the current release"), "{refused}");
    cluster.helm_prints(&format!("{twin} --set fullnameOverride=another"));
    let of_one = left(&cluster, "one");
    assert_eq!(of_one.lines().filter(|line| line.ends_with("/another")).count(), 10, "{of_one}");
    cluster.helm_prints("uninstall one -n elsewhere --wait");
    cluster.helm_prints("uninstall one -n shop --wait");
    assert_eq!(left(&cluster, "one"), "");
    let others = left(&cluster, &longest);
    assert_eq!(others.lines().count(), count, "{others}");
    cluster.helm_prints(&format!("uninstall {longest} -n shop --wait"));
    assert_eq!(left(&cluster, &longest), "");
}

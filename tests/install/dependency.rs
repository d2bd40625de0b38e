//! The chart as a dependency of another chart, beside a sibling that has the label of old, and two releases in one namespace: install, upgrade, rollback,
//! uninstall.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    nodes::{join, run_pods},
    objects::define_foreign_kinds,
};

const NAMESPACE: &str = "shop";

/// A parent chart with this chart and a sibling whose pods are labelled as a root chart of this release would label its own.
fn parent() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let version = env!("CARGO_PKG_VERSION");
    let chart = format!(
        "apiVersion: v2\nname: platform\nversion: 1.0.0\ndependencies: [{{name: gmsa-webhook, version: {version}}}]\n"
    );
    fs::write(path("Chart.yaml"), chart).unwrap();
    fs::write(path("values.yaml"), "gmsa-webhook: {replicaCount: 3, viewerRole: true}\n").unwrap();
    for name in ["charts", "templates"] {
        fs::create_dir(path(name)).unwrap();
    }
    let sibling = "apiVersion: apps/v1
kind: Deployment
metadata: {name: sibling, namespace: {{ .Release.Namespace }}}
spec:
  replicas: 2
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: i, ports: [{name: https, containerPort: 443}]}]}
";
    fs::write(path("templates/sibling.yaml"), sibling).unwrap();
    let copied = Command::new("cp").args(["-r", CHART]).arg(path("charts")).status().unwrap();
    assert!(copied.success());
    folder
}

/// The names of the pods that the Service sends calls to.
fn endpoints(cluster: &Cluster, service: &str) -> BTreeSet<String> {
    let selector = format!("kubernetes.io/service-name={service}");
    let names = "jsonpath={.items[*].endpoints[*].targetRef.name}";
    let slices = ["get", "endpointslices", "--namespace", NAMESPACE, "--selector", &selector, "-o", names];
    cluster.kubectl_prints(slices).split_whitespace().map(str::to_owned).collect()
}

/// Everything of these releases, in the cluster and in the namespace, what hooks leave included; but not what the garbage collector removes, which does not run
/// here: the pods of a Deployment that is gone.
fn left(cluster: &Cluster, release: &str) -> String {
    let kinds = "deployments,services,secrets,configmaps,serviceaccounts,roles,rolebindings,jobs,poddisruptionbudgets,clusterroles,\
                 clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,\
                 validatingadmissionpolicybindings";
    let selector = format!("app.kubernetes.io/instance={release}");
    cluster.kubectl_prints(["get", kinds, "--all-namespaces", "--selector", &selector, "-o", "name"])
}

#[test]
fn a_dependency_gets_the_calls_and_its_sibling_does_not() {
    let cluster = Cluster::start();
    let parent = parent();
    let chart = parent.path().to_str().unwrap();
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let run = |args: &[&str]| helm.prints(args.iter().copied().chain(["--namespace", NAMESPACE]));
    run(&["install", "shop", chart, "--create-namespace"]);
    join(&cluster, "linux-1", "linux");
    run_pods(&cluster, NAMESPACE, "linux-1", 5);
    cluster.until("the Service has its endpoints", || endpoints(&cluster, "shop-gmsa-webhook").len() == 3);
    assert!(endpoints(&cluster, "shop-gmsa-webhook").iter().all(|pod| pod.starts_with("shop-gmsa-webhook-")));
    let configuration: Value = serde_json::from_str(&cluster.kubectl_prints([
        "get",
        "validatingwebhookconfiguration/shop-gmsa-webhook",
        "-o",
        "json",
    ]))
    .unwrap();
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["service"]["name"], "shop-gmsa-webhook");

    let replicas = || {
        let get = ["get", "deployment/shop-gmsa-webhook", "--namespace", NAMESPACE, "-o", "jsonpath={.spec.replicas}"];
        cluster.kubectl_prints(get)
    };
    // Blank means this chart's default, not the parent's nor none at all.
    let blank = parent.path().join("blank.yaml");
    fs::write(
        &blank,
        "gmsa-webhook: {replicaCount: , image: , webhooks: {last: }, podDisruptionBudget: , resources: }\n",
    )
    .unwrap();
    fs::write(parent.path().join("values.yaml"), "gmsa-webhook: {replicaCount: , viewerRole: true}\n").unwrap();
    run(&["upgrade", "shop", chart, "--reset-values", "--values", blank.to_str().unwrap()]);
    assert_eq!(replicas(), "2");
    run(&["upgrade", "shop", chart, "--reuse-values", "--set", "gmsa-webhook.replicaCount=4"]);
    assert_eq!(replicas(), "4");
    // Helm itself brings back what was set before, unless the chart's values come first.
    run(&["upgrade", "shop", chart, "--reset-then-reuse-values", "--set", "gmsa-webhook.replicaCount=null"]);
    assert_eq!(replicas(), "2");
    run(&["rollback", "shop", "1"]);
    assert_eq!(replicas(), "3");
    let refused =
        helm.refuses(["upgrade", "shop", chart, "--namespace", NAMESPACE, "--set", "gmsa-webhook.replicaCuont=1"]);
    assert!(refused.contains("additional properties 'replicaCuont' not allowed"), "{refused}");
    run(&["uninstall", "shop", "--wait"]);
    assert_eq!(left(&cluster, "shop"), "");
}

#[test]
fn two_releases_in_one_namespace_live_side_by_side() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let run = |args: &[&str]| helm.prints(args.iter().copied().chain(["--namespace", NAMESPACE]));
    let longest = "n".repeat(53);
    let all = "guard.enabled=true,viewerRole=true,dashboard.enabled=true,prometheusRule.enabled=true,serviceMonitor.enabled=true,certificates.mode=cert-manager";
    for release in ["one", &longest] {
        run(&["install", release, CHART, "--create-namespace", "--set", all]);
    }
    run(&["upgrade", "one", CHART, "--reset-values", "--set", all, "--set", "replicaCount=3"]);
    // The same name in another namespace: Helm says that the first one owns what is in no namespace; another name is the way out.
    let twin = ["install", "one", CHART, "--namespace", "elsewhere", "--create-namespace"];
    let refused = helm.refuses(twin);
    assert!(refused.contains("exists and cannot be imported into the current release"), "{refused}");
    helm.prints(twin.into_iter().chain(["--set", "fullnameOverride=another"]));
    assert_eq!(
        left(&cluster, "one").lines().filter(|line| line.ends_with("/another")).count(),
        10,
        "{}",
        left(&cluster, "one")
    );
    helm.prints(["uninstall", "one", "--namespace", "elsewhere", "--wait"]);
    run(&["uninstall", "one", "--wait"]);
    assert_eq!(left(&cluster, "one"), "");
    let others = left(&cluster, &longest);
    assert_eq!(others.lines().count(), 14, "{others}");
    run(&["uninstall", &longest, "--wait"]);
    assert_eq!(left(&cluster, &longest), "");
}

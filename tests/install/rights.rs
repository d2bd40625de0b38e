//! The table of rights in docs/rights.md, with a user who has these and no others; and that Helm names the right that the chart's look into the cluster lacks.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, complaint},
    helm::{CHART, Helm},
    release::{Release, kinds},
};

/// The words in backticks.
fn words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A rule of RBAC for each row of the table that is about this place.
fn rules(place: &str) -> Vec<Value> {
    let page = fs::read_to_string("docs/rights.md").unwrap();
    let rows = page.lines().map(str::trim).skip_while(|line| *line != "| You may | on | |").skip(2);
    let rows =
        rows.take_while(|line| line.starts_with('|')).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row[3].starts_with(place)).collect();
    assert!(!rows.is_empty(), "docs/rights.md has no rights {place}");
    rows.iter()
        .flat_map(|row| words(row[2]).into_iter().map(|resource| (words(row[1]), resource)))
        .map(|(verbs, resource)| json!({"apiGroups": ["*"], "resources": [resource], "verbs": verbs}))
        .collect()
}

/// Gives the installer these rules, and no others.
fn allow(cluster: &Cluster, in_cluster: &[Value], in_namespace: &[Value]) {
    let rights = include_str!("objects/rights.yaml").replace("IN_CLUSTER", &json!(in_cluster).to_string());
    cluster.apply(&rights.replace("IN_NAMESPACE", &json!(in_namespace).to_string()));
}

#[test]
fn who_has_the_rights_of_the_table_and_no_others_installs_upgrades_rolls_back_and_uninstalls() {
    let cluster = Cluster::start();
    cluster.create_namespace("windows");
    cluster.prints("create serviceaccount installer -n default");
    let (in_cluster, in_namespace) = (rules("in the cluster"), rules("in the namespace"));
    allow(&cluster, &in_cluster, &in_namespace);
    let kubeconfig = cluster.kubeconfig_of("default", "installer");
    let helm = Helm::of_cluster(&kubeconfig);
    let run = |line: &str| complaint(helm.run(line.split(' ').chain(["-n", "windows"])));
    let upgrade = format!("upgrade gmsa {CHART}");
    // The cluster's rules and those of the namespace arrive one after the other.
    let may = format!("auth can-i delete clusterroles --kubeconfig {}", kubeconfig.display());
    cluster.until("the rights are in force", || run("list").is_none() && cluster.kubectl(&may).status.success());

    assert_eq!(run(&format!("install gmsa {CHART}")), None);
    assert_eq!(run(&format!("{upgrade} --set replicaCount=3")), None);
    assert_eq!(run("rollback gmsa 1"), None);
    // What the chart may not look at is named.
    let lacks = |values: &str, resource: &str| {
        let said = run(&format!("{upgrade} --dry-run=server --set {values}")).unwrap_or_default();
        let user = "User \"system:serviceaccount:default:installer\"";
        said.contains(&format!("{user} cannot get resource \"{resource}\" in API group"))
    };
    let policies = "staticPolicies.enabled=true,staticPolicies.admins.users={a}";
    assert!(lacks(policies, "namespaces") && !lacks("replicaCount=2", "deployments"));
    let mut without = in_namespace.clone();
    for rule in without.iter_mut().filter(|rule| rule["resources"] == json!(["deployments"])) {
        rule["verbs"].as_array_mut().unwrap().retain(|verb| verb != "get");
    }
    allow(&cluster, &in_cluster, &without);
    cluster.until("the right that is lacking is named", || lacks("replicaCount=2", "deployments"));
    allow(&cluster, &in_cluster, &in_namespace);
    cluster.until("it is uninstalled", || run("uninstall gmsa --ignore-not-found").is_none());
    assert_eq!(cluster.names(&format!("{} -A -l app.kubernetes.io/instance=gmsa", kinds(&cluster))), "");
}

/// Who may do everything in the namespace and nothing in the cluster: Helm would delete the pods, and leave the configurations that refuse pods without them.
#[test]
fn an_administrator_of_the_namespace_uninstalls_nothing() {
    let cluster = Cluster::start();
    let _release = Release::install(&cluster, "");
    cluster.prints("create rolebinding team --clusterrole=cluster-admin --user=team -n windows");
    let objects = || {
        let made = cluster.list(&format!("{} -n windows -l app.kubernetes.io/instance=gmsa", kinds(&cluster)));
        made.into_iter().map(|object| object["metadata"]["uid"].clone()).collect::<Vec<_>>()
    };
    let before = objects();
    assert!(before.len() > 6, "{before:?}");
    let said = cluster.helm_refuses("uninstall gmsa -n windows --kube-as-user team");
    let group = "in API group \"admissionregistration.k8s.io\" at the cluster scope";
    assert!(said.contains(&format!("\"validatingwebhookconfigurations\" {group}")), "{said}");
    assert_eq!(objects(), before);
    cluster.helm_prints("uninstall gmsa -n windows");
    assert!(objects().is_empty());
}

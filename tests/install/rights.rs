//! The table of rights in docs/install.md, with a user who has these and no others; and that Helm names the right that the chart's look into the cluster lacks.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    pods::complaint,
    tool::Tool,
};

const NAMESPACE: &str = "windows";
/// The API groups of what the table names, apart from the core one.
const GROUPS: [(&str, &str); 13] = [
    ("clusterroles", "rbac.authorization.k8s.io"),
    ("clusterrolebindings", "rbac.authorization.k8s.io"),
    ("roles", "rbac.authorization.k8s.io"),
    ("rolebindings", "rbac.authorization.k8s.io"),
    ("mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("validatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("customresourcedefinitions", "apiextensions.k8s.io"),
    ("deployments", "apps"),
    ("poddisruptionbudgets", "policy"),
    ("gmsacredentialspecs", "windows.k8s.io"),
    ("localsubjectaccessreviews", "authorization.k8s.io"),
    ("namespaces", ""),
    ("secrets", ""),
];

/// The words in backticks.
fn words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A rule of RBAC for each row of the table that is about this place.
fn rules(place: &str) -> Vec<Value> {
    let page = fs::read_to_string("docs/install.md").unwrap();
    let rows = page.lines().map(str::trim).skip_while(|line| *line != "| You may | on | |").skip(2);
    let rows =
        rows.take_while(|line| line.starts_with('|')).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row[3].starts_with(place)).collect();
    assert!(!rows.is_empty(), "docs/install.md has no rights {place}");
    let of = |resource: &&str| GROUPS.iter().find(|(name, _)| name == resource).map_or("", |(_, group)| group);
    rows.iter()
        .flat_map(|row| words(row[2]).into_iter().map(|resource| (words(row[1]), resource)))
        .map(|(verbs, resource)| json!({"apiGroups": [of(&resource)], "resources": [resource], "verbs": verbs}))
        .collect()
}

/// Gives the installer these rules, and no others.
fn allow(cluster: &Cluster, in_cluster: &[Value], in_namespace: &[Value]) {
    let group = "rbac.authorization.k8s.io";
    let subjects = json!([{"kind": "ServiceAccount", "name": "installer", "namespace": "default"}]);
    let objects = [("installer", in_cluster, None), ("installer-in-namespace", in_namespace, Some(NAMESPACE))].map(
        |(name, rules, namespace)| {
            let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
            let kind = namespace.map_or("ClusterRoleBinding", |_| "RoleBinding");
            let binding = json!({
                "apiVersion": format!("{group}/v1"),
                "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": subjects,
            });
            format!("{role}\n---\n{binding}")
        },
    );
    cluster.apply(&objects.join("\n---\n"));
}

#[test]
fn who_has_the_rights_of_the_table_and_no_others_installs_upgrades_rolls_back_and_uninstalls() {
    let cluster = Cluster::start();
    cluster.create_namespace(NAMESPACE);
    cluster.kubectl_prints(["create", "serviceaccount", "installer", "--namespace", "default"]);
    let (in_cluster, in_namespace) = (rules("in the cluster"), rules("in the namespace"));
    allow(&cluster, &in_cluster, &in_namespace);
    let (control_plane, runtime) = cluster.control_plane();
    let credentials = runtime.block_on(control_plane.kubeconfig_of("default", "installer"));
    let kubeconfig = cluster.folder().join("installer.kubeconfig");
    fs::write(&kubeconfig, credentials.to_string()).unwrap();
    let helm = Helm::of_cluster(&kubeconfig);
    let run = |args: &[&str]| helm.run(args.iter().chain(&["--namespace", NAMESPACE]).copied());
    cluster.until("the rights are in force", || run(&["list"]).status.success());

    let tool = Tool::new(&cluster);
    let pre = |rights: &str| {
        let (report, _) =
            tool.gmsa(&format!("doctor --pre --namespace {NAMESPACE} --kubeconfig {}", kubeconfig.display()));
        report.contains(&format!("  your rights      {rights}"))
    };
    let in_all = format!("you may create what the installation consists of, in {NAMESPACE} and in the cluster\n");
    cluster.until("doctor says that the rights suffice", || pre(&in_all));
    assert_eq!(complaint(run(&["install", "gmsa", CHART])), None);
    assert_eq!(complaint(run(&["upgrade", "gmsa", CHART, "--set", "replicaCount=3"])), None);
    assert_eq!(complaint(run(&["rollback", "gmsa", "1"])), None);
    // What the chart may not look at is named.
    let lacks = |values: &str, resource: &str| {
        let said = complaint(run(&["upgrade", "gmsa", CHART, "--dry-run=server", "--set", values])).unwrap_or_default();
        said.contains(&format!(
            "User \"system:serviceaccount:default:installer\" cannot get resource \"{resource}\" in API group"
        ))
    };
    let policies = "staticPolicies.enabled=true,staticPolicies.admins.users={a}";
    assert!(lacks(policies, "namespaces") && !lacks("replicaCount=2", "deployments"));
    let mut without = in_namespace.clone();
    for rule in without.iter_mut().filter(|rule| rule["resources"] == json!(["deployments"])) {
        rule["verbs"].as_array_mut().unwrap().retain(|verb| verb != "get");
    }
    allow(&cluster, &in_cluster, &without);
    cluster.until("the right that is lacking is named", || lacks("replicaCount=2", "deployments"));
    assert!(pre(&format!("you may not get deployments in {NAMESPACE} [install-permissions]\n")));
    allow(&cluster, &in_cluster, &in_namespace);
    cluster.until("it is uninstalled", || run(&["uninstall", "gmsa", "--ignore-not-found"]).status.success());
    for kind in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations", "deployments"] {
        assert_eq!(cluster.kubectl_prints(["get", kind, "--all-namespaces", "-o", "name"]), "", "{kind}");
    }
}

//! Every object that the chart renders, through the API server's own checks; and the kinds that these checks need.

use std::fs;

use serde_json::Value;

use crate::{
    cluster::{Cluster, Feature},
    pods::{SPEC, restrict},
};

/// Our CRD.
pub const CRD: &str = include_str!("../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml");

/// Makes the kinds of other projects known to the API server.
pub fn define_foreign_kinds(cluster: &Cluster) {
    cluster.apply(include_str!("objects/foreign-kinds.yaml"));
    cluster.prints("wait --for=condition=Established --timeout=60s crd --all");
}

#[test]
fn the_api_server_accepts_every_rendered_object() {
    let cluster = Cluster::start();
    cluster.define(&fs::read_to_string("deploy/gmsa-crd.yaml").unwrap());
    define_foreign_kinds(&cluster);
    for namespace in ["windows", "identity", "monitoring"] {
        cluster.prints(&format!("create namespace {namespace}"));
    }
    // Pods are only accepted where their service account is.
    cluster.prints("create serviceaccount gmsa-test -n windows");
    cluster.prints("create serviceaccount gmsa-identity-test -n identity");
    for entry in fs::read_dir("tests/chart/values").unwrap() {
        let values = entry.unwrap().path();
        let values = values.to_str().unwrap();
        let given: Value = serde_saphyr::from_str(&fs::read_to_string(values).unwrap()).unwrap();
        let needs = [("guard", Feature::Guard), ("tickets", Feature::NativeSidecars)];
        if needs.into_iter().any(|(name, feature)| given[name]["enabled"] == true && cluster.lacks(feature)) {
            continue;
        }
        let rendered = cluster.template(["-n", "windows", "--values", values]);
        // An extra object in JSON is one line.
        let objects = rendered.lines().filter(|line| line.starts_with("kind: ") || line.starts_with('{')).count();
        // On a busy machine kube-apiserver aborts a request now and then while it begins to serve new kinds.
        let output = cluster.found("no request is aborted", || {
            let output = cluster.kubectl_with("apply --dry-run=server --validate=strict -f -", &rendered);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (!said.contains("INTERNAL_ERROR; received from peer")).then_some(output)
        });
        assert!(output.status.success(), "{values}: {}", String::from_utf8_lossy(&output.stderr));
        let accepted = String::from_utf8(output.stdout).unwrap();
        assert_eq!(accepted.lines().count(), objects, "{values}: {accepted}");
        assert!(accepted.lines().all(|line| line.ends_with(" (server dry run)")), "{accepted}");
    }
    the_crd_explains_itself(&cluster);
    a_restricted_namespace_takes_the_pods(&cluster);
}

/// Short name, columns, and words for `kubectl explain`.
fn the_crd_explains_itself(cluster: &Cluster) {
    cluster.apply(SPEC);
    let table = cluster.prints("get gmsa");
    let columns: Vec<_> = table.split_whitespace().collect();
    let head = ["NAME", "DOMAIN", "ACCOUNT", "PLUGIN", "AGE"];
    let values = ["webapp1", "corp.example.com", "WebApp1", "{CCC2A336-D7F3-4818-A213-272B7924213E}"];
    assert_eq!(columns[..9], [&head[..], &values].concat());
    cluster.until("kubectl explain knows the CRD", || {
        let explained = cluster.kubectl("explain gmsa.credspec.DomainJoinConfig.Sid");
        String::from_utf8(explained.stdout).unwrap().contains("Not that of the account,\n")
    });
    let old = cluster.kubectl("get gmsacredentialspecs.v1alpha1.windows.k8s.io webapp1 -o name");
    assert_eq!(String::from_utf8_lossy(&old.stdout), "gmsacredentialspec.windows.k8s.io/webapp1\n");
    assert!(String::from_utf8_lossy(&old.stderr).contains("v1alpha1 GMSACredentialSpec is deprecated"), "{old:?}");
}

/// The strictest Pod Security level has nothing to say: with the defaults, and with the sysctl for a low port.
fn a_restricted_namespace_takes_the_pods(cluster: &Cluster) {
    restrict(cluster, "windows", "warn");
    for port in ["containerPort=10250", "containerPort=443"] {
        let deployment = cluster.template(["-n", "windows", "--set", port, "-s", "templates/deployment.yaml"]);
        let output = cluster.kubectl_with("apply --dry-run=server -f -", &deployment);
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && warnings.is_empty(), "{port}: {warnings}");
    }
}

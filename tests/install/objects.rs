//! Every object that the chart renders, through the API server's own checks.

use std::fs;

use crate::{cluster::Cluster, helm::Helm};

/// Kinds that other projects define, as far as the API server must know them: any content goes.
const FOREIGN_KINDS: [(&str, &str, &str, &str); 6] = [
    ("cert-manager.io", "Certificate", "certificates", "Namespaced"),
    ("cert-manager.io", "Issuer", "issuers", "Namespaced"),
    ("cert-manager.io", "ClusterIssuer", "clusterissuers", "Cluster"),
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors", "Namespaced"),
    ("monitoring.coreos.com", "PodMonitor", "podmonitors", "Namespaced"),
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules", "Namespaced"),
];

/// Makes the kinds of other projects, and ours, known to the API server.
pub fn define_kinds(cluster: &Cluster) {
    cluster.apply(&fs::read_to_string("deploy/gmsa-crd.yaml").unwrap());
    define_foreign_kinds(cluster);
}

/// Makes the kinds of other projects known to the API server.
pub fn define_foreign_kinds(cluster: &Cluster) {
    for (group, kind, plural, scope) in FOREIGN_KINDS {
        cluster.apply(&format!(
            r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
        ));
    }
    cluster.kubectl_prints(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
}

#[test]
fn the_api_server_accepts_every_rendered_object() {
    let cluster = Cluster::start();
    define_kinds(&cluster);
    for namespace in ["windows", "identity", "monitoring"] {
        cluster.kubectl_prints(["create", "namespace", namespace]);
    }
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    // Pods are only accepted where their service account is.
    cluster.kubectl_prints(["create", "serviceaccount", "gmsa-test", "--namespace", "windows"]);
    cluster.kubectl_prints(["create", "serviceaccount", "gmsa-identity-test", "--namespace", "identity"]);
    let mut sets = 0;
    for entry in fs::read_dir("tests/chart/values").unwrap() {
        let values = entry.unwrap().path();
        let rendered =
            helm.template(["--namespace", "windows", "--kube-version", "1.36", "--values", values.to_str().unwrap()]);
        let objects = rendered.lines().filter(|line| line.starts_with("kind: ")).count();
        let apply = || cluster.kubectl_with(["apply", "--dry-run=server", "--validate=strict", "-f", "-"], &rendered);
        let mut output = apply();
        // On a busy machine kube-apiserver aborts a request now and then while it begins to serve new kinds.
        if String::from_utf8_lossy(&output.stderr).contains("INTERNAL_ERROR; received from peer") {
            output = apply();
        }
        assert!(output.status.success(), "{}: {}", values.display(), String::from_utf8_lossy(&output.stderr));
        let accepted = String::from_utf8(output.stdout).unwrap();
        assert_eq!(accepted.lines().count(), objects, "{}: {accepted}", values.display());
        assert!(accepted.lines().all(|line| line.ends_with(" (server dry run)")), "{accepted}");
        sets += 1;
    }
    assert!(sets >= 10, "only {sets} sets of values");
    the_crd_explains_itself(&cluster);
    a_restricted_namespace_takes_the_pods(&cluster, &helm);
}

/// Short name, columns, and words for `kubectl explain`.
fn the_crd_explains_itself(cluster: &Cluster) {
    cluster.apply(&fs::read_to_string("tests/install/credential-spec.yaml").unwrap());
    let table = cluster.kubectl_prints(["get", "gmsa", "--no-headers"]);
    let columns: Vec<_> = table.split_whitespace().take(4).collect();
    assert_eq!(columns, ["webapp1", "corp.example.com", "WebApp1", "{CCC2A336-D7F3-4818-A213-272B7924213E}"]);
    let headers = cluster.kubectl_prints(["get", "gmsa"]);
    assert!(
        headers.starts_with("NAME      DOMAIN             ACCOUNT   PLUGIN                                   AGE\n"),
        "{headers}"
    );
    cluster.until("kubectl explain knows the CRD", || {
        let explained = cluster.kubectl(["explain", "gmsa.credspec.DomainJoinConfig.Sid"]);
        String::from_utf8(explained.stdout).unwrap().contains("Not that of the account,\n")
    });
    let old = cluster.kubectl(["get", "gmsacredentialspecs.v1alpha1.windows.k8s.io", "webapp1", "-o", "name"]);
    assert_eq!(String::from_utf8_lossy(&old.stdout), "gmsacredentialspec.windows.k8s.io/webapp1\n");
    assert!(String::from_utf8_lossy(&old.stderr).contains("v1alpha1 GMSACredentialSpec is deprecated"), "{old:?}");
}

/// The strictest Pod Security level has nothing to say: with the defaults, and with the sysctl for a low port.
fn a_restricted_namespace_takes_the_pods(cluster: &Cluster, helm: &Helm) {
    cluster.kubectl_prints(["label", "namespace", "windows", "pod-security.kubernetes.io/warn=restricted"]);
    for port in ["10250", "443"] {
        let port = format!("containerPort={port}");
        let deployment = helm.template(["--namespace", "windows", "--set", &port, "-s", "templates/deployment.yaml"]);
        let output = cluster.kubectl_with(["apply", "--dry-run=server", "-f", "-"], &deployment);
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && warnings.is_empty(), "{port}: {warnings}");
    }
}

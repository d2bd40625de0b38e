//! From one way to install to another, in place: from the Go webhook's script to this one, and from this one to Helm.

use std::fs;

use serde_json::json;

use crate::{
    cluster::Cluster,
    desk::{CA, Desk, with_a_node},
    helm::{CHART, Helm},
};

/// What the Go webhook's script made, as far as the new script meets it: in a namespace of its own, with a `caBundle` that was applied.
fn go_installation() -> String {
    format!(
        r"apiVersion: v1
kind: Namespace
metadata: {{name: gmsa-webhook, labels: {{gmsa-webhook: disabled}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
data: {{tls_private_key: a2V5, tls_certificate: Y2VydA==}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: gmsa-webhook-gmsa-webhook-rbac-role}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gmsa-webhook-gmsa-webhook-rbac-role}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: gmsa-webhook}}}}
  template:
    metadata: {{labels: {{app: gmsa-webhook}}}}
    spec:
      containers:
        - name: gmsa-webhook
          image: registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0
          ports: [{{containerPort: 443}}]
          env: [{{name: TLS_KEY, value: /tls/key}}, {{name: TLS_CRT, value: /tls/crt}}]
          volumeMounts: [{{name: tls, mountPath: /tls, readOnly: true}}]
      volumes: [{{name: tls, secret: {{secretName: gmsa-webhook}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
spec: {{ports: [{{port: 443, targetPort: 443}}], selector: {{app: gmsa-webhook}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {{name: gmsa-webhook}}
webhooks:
  - name: admission-webhook.windows-gmsa.sigs.k8s.io
    clientConfig: {{service: {{name: gmsa-webhook, namespace: gmsa-webhook, path: /mutate}}, caBundle: {CA}}}
    rules: [{{operations: [CREATE], apiGroups: [''], apiVersions: ['*'], resources: [pods]}}]
    failurePolicy: Fail
    admissionReviewVersions: [v1, v1beta1]
    sideEffects: None
    namespaceSelector: {{matchExpressions: [{{key: gmsa-webhook, operator: NotIn, values: [disabled]}}]}}
"
    )
}

#[test]
fn an_installation_of_the_go_script_is_upgraded_in_place() {
    let cluster = Cluster::start();
    cluster.apply(&go_installation());
    let desk = Desk::new(&cluster);
    let uid = desk.get("deployment/gmsa-webhook")["metadata"]["uid"].clone();
    let printed = with_a_node(&cluster, "gmsa-webhook", || desk.prints(&["--file", "manifests.yml"]));

    let deployment = desk.get("deployment/gmsa-webhook");
    assert_eq!(deployment["metadata"]["uid"], uid);
    assert_eq!(deployment["spec"]["template"]["spec"].get("volumes"), None);
    let configuration = desk.get("mutatingwebhookconfiguration/gmsa-webhook");
    let webhook = &configuration["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["caBundle"], CA, "the old pods are no longer trusted");
    assert_eq!(webhook["namespaceSelector"], json!({}));
    assert!(
        printed.contains(
            "The Go webhook left objects that nothing uses any more. To remove them:\n  \
             kubectl delete clusterrolebinding/gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role \
             clusterrole/gmsa-webhook-gmsa-webhook-rbac-role\n  kubectl --namespace gmsa-webhook delete secret/gmsa-webhook\n"
        ),
        "{printed}"
    );
    // The namespace was there before: removing the webhook must not remove it.
    assert!(!fs::read_to_string(desk.path("manifests.yml")).unwrap().contains("kind: Namespace"));

    helm_takes_over(&desk);
}

/// As the documentation says it, with what the webhook has written since.
fn helm_takes_over(desk: &Desk<'_>) {
    let data = json!({"data": {"ca.key": "a2V5"}}).to_string();
    desk.cluster.kubectl_prints([
        "patch",
        "secret",
        "gmsa-webhook-tls",
        "--namespace",
        "gmsa-webhook",
        "--patch",
        &data,
    ]);
    let uid = desk.get("deployment/gmsa-webhook")["metadata"]["uid"].clone();
    let helm = Helm::of_cluster(&desk.cluster.kubeconfig());
    let release =
        ["gmsa-webhook", CHART, "--namespace", "gmsa-webhook", "--set", "image.repository=registry.example.com/gmsa"];
    helm.prints(["install", "--take-ownership", "--server-side=false"].into_iter().chain(release));
    helm.prints(["upgrade", "--set", "replicaCount=3"].into_iter().chain(release));

    let deployment = desk.get("deployment/gmsa-webhook");
    assert_eq!(deployment["metadata"]["uid"], uid);
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example.com/gmsa:0.1.0");
    assert_eq!(desk.get("secret/gmsa-webhook-tls")["data"], json!({"ca.key": "a2V5"}));
    let configuration = desk.get("mutatingwebhookconfiguration/gmsa-webhook");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], CA);
}

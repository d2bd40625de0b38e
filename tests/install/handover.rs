//! From one way to install to another, in place: from the Go webhook's script to this one, and from this one to Helm.

use serde_json::json;

use crate::{
    cluster::Cluster,
    desk::{CA, Desk, with_a_node},
    helm::CHART,
};

#[test]
fn an_installation_of_the_go_script_is_upgraded_in_place() {
    let cluster = Cluster::start();
    cluster.apply(&include_str!("objects/go-script.yaml").replace("caBundle: CA", &format!("caBundle: {CA}")));
    let desk = Desk::new(&cluster);
    let get = |object: &str| cluster.get(&format!("{object} -n gmsa-webhook"));
    let uid = || cluster.uid("deployment/gmsa-webhook -n gmsa-webhook");
    let bundle = || get("mutatingwebhookconfiguration/gmsa-webhook")["webhooks"][0]["clientConfig"]["caBundle"].take();
    let before = uid();
    let printed = with_a_node(&cluster, || desk.installs(&["--file", "manifests.yml"]));

    assert_eq!(uid(), before);
    assert_eq!(get("deployment/gmsa-webhook")["spec"]["template"]["spec"].get("volumes"), None);
    assert_eq!(bundle(), CA, "the old pods are no longer trusted");
    assert_eq!(get("mutatingwebhookconfiguration/gmsa-webhook")["webhooks"][0]["namespaceSelector"], json!({}));
    let left = "objects that nothing uses any more. To remove them:\n  \
                kubectl delete clusterrolebinding/gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role \
                clusterrole/gmsa-webhook-gmsa-webhook-rbac-role\n  kubectl --namespace gmsa-webhook delete secret/gmsa-webhook\n";
    assert!(printed.contains(left), "{printed}");
    // The namespace was there before: removing the webhook must not remove it.
    assert!(!desk.read("manifests.yml").contains("kind: Namespace"));

    // Helm takes over, as the documentation says it, with what the webhook has written since.
    let written = json!({"data": {"ca.key": "a2V5"}});
    cluster.change("secret gmsa-webhook-tls -n gmsa-webhook", &written);
    let release = format!("gmsa-webhook {CHART} -n gmsa-webhook --set image.repository=registry.example.com/gmsa");
    cluster.helm_prints(&format!("install --take-ownership --server-side=false {release}"));
    cluster.helm_prints(&format!("upgrade --set replicaCount=3 {release}"));

    assert_eq!(uid(), before);
    let spec = &get("deployment/gmsa-webhook")["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], "registry.example.com/gmsa:0.1.0");
    assert_eq!(get("secret/gmsa-webhook-tls")["data"], written["data"]);
    assert_eq!(bundle(), CA);
}

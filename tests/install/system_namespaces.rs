//! Kubernetes without match conditions: pods in kube-system and beside the webhook are judged where it answers, and never wait for it.
//!
//! The chart renders the configurations for such a cluster; the API server is newer.

use std::fs;

use serde_json::Value;

use crate::{
    cluster::Cluster,
    helm::Helm,
    pods::{Options, creation_in, pod},
    release::{RELEASE_NAMESPACE, Release, ca_bundles, configurations},
};

#[test]
fn pods_of_system_namespaces_are_validated_while_the_webhook_answers() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");
    release.route_to_loopback();
    let port = format!("service.port={}", release.get("service/gmsa")["spec"]["ports"][0]["port"]);
    let mut replica = release.start_replica();
    cluster.until("there is a CA", || ca_bundles(&cluster).iter().all(Value::is_string));

    // As the chart renders it for 1.27, with the CA that the webhook has published already.
    let ca = cluster.folder().join("ca.txt");
    fs::write(&ca, ca_bundles(&cluster)[0].as_str().unwrap()).unwrap();
    let ca = format!("certificates.caBundle={}", ca.display());
    let args = ["-n", "windows", "--kube-version", "1.27", "--set", &port, "--set", "certificates.mode=secret"];
    let more = ["--set-file", &ca, "--show-only", "templates/validatingwebhook.yaml"];
    let configuration = Helm::new().template(args.into_iter().chain(more));
    cluster.prints(&format!("delete {}", configurations(&cluster).join(" ")));
    cluster.apply(&configuration);

    let asked = |namespace: &str, options: Options| {
        creation_in(&cluster, namespace, &pod("p", "container", options, "webapp1"))
    };
    let denied = |namespace: &str, webhook: &str| {
        let said = asked(namespace, Options::Contents).unwrap();
        let webhook = format!("admission webhook \"{webhook}.windows-gmsa.sigs.k8s.io\"");
        assert!(said.contains(&format!("{webhook} denied the request: container \"main\" has")), "{said}");
    };
    for namespace in ["kube-system", RELEASE_NAMESPACE] {
        cluster.until("the API server asks", || asked(namespace, Options::Contents).is_some());
        denied(namespace, "system-namespaces");
        let said = asked(namespace, Options::Name).unwrap();
        assert!(said.contains("denied the request: "), "{said}");
        assert_eq!(asked(namespace, Options::Absent), None);
    }
    denied("default", "admission-webhook");

    replica.end();
    cluster.until("the webhook is missed", || {
        asked("default", Options::Absent).is_some_and(|said| said.contains("failed calling"))
    });
    for namespace in ["kube-system", RELEASE_NAMESPACE] {
        for options in Options::ALL {
            assert_eq!(asked(namespace, options), None, "{namespace}: {options:?}");
        }
    }
}

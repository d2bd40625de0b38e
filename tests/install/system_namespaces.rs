//! Kubernetes without match conditions: pods in kube-system and beside the webhook are judged where it answers, and never wait for it.
//!
//! The configurations are those that the chart renders for such a cluster, on a newer API server.

use std::fs;

use crate::{
    cluster::Cluster,
    helm::Helm,
    pods::{Options, creation, pod},
    release::{RELEASE_NAMESPACE, Release},
};

#[test]
fn pods_of_system_namespaces_are_validated_while_the_webhook_answers() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    let service = release.get("service/gmsa");
    let port = format!("service.port={}", service["spec"]["ports"][0]["port"]);
    let mut replica = release.start_replica();
    cluster.until("there is a CA", || {
        let configuration = release.get("validatingwebhookconfiguration/gmsa");
        configuration["webhooks"][0]["clientConfig"]["caBundle"].is_string()
    });
    let bundle = release.get("validatingwebhookconfiguration/gmsa")["webhooks"][0]["clientConfig"]["caBundle"].take();

    // As the chart renders it for 1.29, with the CA that the webhook has published already.
    let ca = cluster.folder().join("ca.txt");
    fs::write(&ca, bundle.as_str().unwrap()).unwrap();
    let configuration = Helm::new().template([
        "--namespace",
        RELEASE_NAMESPACE,
        "--kube-version",
        "1.29",
        "--set",
        &port,
        "--set",
        "certificates.mode=secret",
        "--set-file",
        &format!("certificates.caBundle={}", ca.display()),
        "--show-only",
        "templates/validatingwebhook.yaml",
    ]);
    cluster.kubectl_prints(["delete", "mutatingwebhookconfigurations", "--all"]);
    cluster.kubectl_prints(["delete", "validatingwebhookconfigurations", "--all"]);
    cluster.apply(&configuration);

    let asked = |namespace: &str, options: Options| {
        let mut pod = pod("p", "container", options, "webapp1");
        pod["metadata"]["namespace"] = namespace.into();
        creation(&cluster, &pod)
    };
    for namespace in ["kube-system", RELEASE_NAMESPACE] {
        cluster.until("the API server asks", || asked(namespace, Options::Contents).is_some());
        let said = asked(namespace, Options::Contents).unwrap();
        let denial = "admission webhook \"system-namespaces.windows-gmsa.sigs.k8s.io\" denied the request: container \"main\" has a GMSA cred spec set";
        assert!(said.contains(denial), "{said}");
        let said = asked(namespace, Options::Name).unwrap();
        assert!(said.contains("denied the request: "), "{said}");
        assert_eq!(asked(namespace, Options::Absent), None);
    }
    let said = asked("default", Options::Contents).unwrap();
    assert!(
        said.contains("admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: "),
        "{said}"
    );

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

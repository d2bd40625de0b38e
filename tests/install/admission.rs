//! The match conditions, pod by pod, while the webhook is down: only pods that use GMSA are refused then, and every refusal shows which
//! webhook the API server would have asked.

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    objects::define_kinds,
    pods::{KINDS, NAMESPACE, Options, complaint, creation, crowd, debugging, pod},
};

/// The webhook of the first mutating and of the validating configuration.
const FIRST: &str = "admission-webhook.windows-gmsa.sigs.k8s.io";
/// The webhook of the mutating configuration that sorts last.
const LAST: &str = "last.windows-gmsa.sigs.k8s.io";

#[test]
fn a_webhook_that_is_down_blocks_nothing_but_pods_that_use_gmsa() {
    let cluster = Cluster::start();
    define_kinds(&cluster);
    cluster.create_namespace(NAMESPACE);
    cluster.create_namespace("windows");
    // Pods from before the webhook: an update of theirs is what is judged later.
    for (name, options) in [("plain", Options::Other), ("running", Options::Both)] {
        cluster.apply(&pod(name, "container", options, "webapp1").to_string());
    }
    let configurations = configurations();

    cluster.apply(&configurations.mutating);
    asks(&cluster, FIRST, "mutate", |options| matches!(options, Options::Name | Options::Contents | Options::Both));
    ephemeral_containers(&cluster, "mutate");
    cluster.kubectl_prints(["delete", "mutatingwebhookconfiguration", "gmsa"]);

    cluster.apply(&configurations.last);
    asks(&cluster, LAST, "mutate", |options| options == Options::Name);
    cluster.kubectl_prints(["delete", "mutatingwebhookconfiguration", "zz-gmsa"]);

    cluster.apply(&configurations.validating);
    asks(&cluster, FIRST, "validate", |options| matches!(options, Options::Name | Options::Contents | Options::Both));
    ephemeral_containers(&cluster, "validate");
    updates(&cluster);
    workloads(&cluster);
    large_pods(&cluster);
    invalid_pods(&cluster);
}

/// The rendered configurations, one by one.
struct Configurations {
    mutating: String,
    last: String,
    validating: String,
}

fn configurations() -> Configurations {
    let render =
        |template: &str| Helm::new().prints(["template", "gmsa", CHART, "--namespace", "windows", "-s", template]);
    let mutating = render("templates/mutatingwebhook.yaml");
    let (first, last) = mutating.rsplit_once("---\n").unwrap();
    Configurations {
        mutating: first.to_owned(),
        last: last.to_owned(),
        validating: render("templates/validatingwebhook.yaml"),
    }
}

/// What a refusal says when this webhook was asked, and is not there.
fn refusal(webhook: &str, path: &str) -> String {
    format!(
        "failed calling webhook \"{webhook}\": failed to call webhook: \
         Post \"https://gmsa.windows.svc:443/{path}?timeout=5s\": service \"gmsa\" not found"
    )
}

/// Every kind of slot with every kind of options: refused exactly where `expected`, and by this webhook.
fn asks(cluster: &Cluster, webhook: &str, path: &str, expected: impl Fn(Options) -> bool) {
    let refusal = refusal(webhook, path);
    cluster.until("the configuration is in force", || {
        creation(cluster, &pod("p", "pod", Options::Name, "webapp1"))
            .is_some_and(|complaint| complaint.contains(webhook))
    });
    for kind in KINDS {
        for options in Options::ALL {
            let said = creation(cluster, &pod("p", kind, options, "webapp1"));
            let case = format!("{webhook}: {kind} with {options:?}: {said:?}");
            match said {
                Some(complaint) => assert!(expected(options) && complaint.ends_with(&refusal), "{case}"),
                None => assert!(!expected(options), "{case}"),
            }
        }
    }
}

/// The fourth kind of slot comes by its own subresource.
fn ephemeral_containers(cluster: &Cluster, path: &str) {
    for options in Options::ALL {
        let said = debugging(cluster, "plain", "debug", options, "webapp1");
        let case = format!("{path}: ephemeral container with {options:?}: {said:?}");
        match said {
            Some(complaint) => {
                assert!(matches!(options, Options::Name | Options::Contents | Options::Both), "{case}");
                assert!(complaint.ends_with(&refusal(FIRST, path)), "{case}");
            }
            None => assert!(matches!(options, Options::Absent | Options::Other), "{case}"),
        }
    }
    let said = debugging(cluster, "running", "debug", Options::Absent, "");
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&refusal(FIRST, path))), "{said:?}");
}

/// A pod that runs must be able to be labelled and to end, whatever the webhook does; what could change its identity waits.
fn updates(cluster: &Cluster) {
    let patch = |pod: &str, patch: &Value| {
        complaint(cluster.kubectl(["patch", "pod", pod, "--namespace", NAMESPACE, "--patch", &patch.to_string()]))
    };
    let image = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
    assert_eq!(patch("plain", &image), None);
    assert_eq!(patch("running", &json!({"metadata": {"labels": {"a": "b"}}})), None);
    assert_eq!(patch("running", &json!({"metadata": {"finalizers": ["example.com/wait"]}})), None);
    let said = patch("running", &image);
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&refusal(FIRST, "validate"))), "{said:?}");
    let status = json!({"status": {"message": "still there"}});
    cluster.kubectl_prints([
        "patch",
        "pod",
        "running",
        "--namespace",
        NAMESPACE,
        "--subresource=status",
        "--patch",
        &status.to_string(),
    ]);
    // As a controller does it: deletion first, then the finalizer, which is an update of a GMSA pod.
    cluster.kubectl_prints([
        "delete",
        "pod",
        "running",
        "--namespace",
        NAMESPACE,
        "--wait=false",
        "--grace-period=0",
        "--force",
    ]);
    assert_eq!(patch("running", &json!({"metadata": {"finalizers": null}})), None);
    cluster.until("the pod is gone", || {
        cluster.kubectl_prints(["get", "pods", "--namespace", NAMESPACE, "-o", "name"]) == "pod/plain\n"
    });
}

/// Workloads are never blocked, whatever their kind. The API server counts what it let pass unasked: those that use GMSA.
fn workloads(cluster: &Cluster) {
    let before = passed_unasked(cluster);
    for options in [Options::Absent, Options::Name] {
        let mut template = pod("p", "init container", options, "webapp1");
        template["metadata"] = json!({"labels": {"app": "w"}});
        let template = json!({"metadata": template["metadata"], "spec": template["spec"]});
        let mut once = template.clone();
        once["spec"]["restartPolicy"] = json!("Never");
        let selector = json!({"matchLabels": {"app": "w"}});
        let workloads = [
            ("apps/v1", "Deployment", json!({"selector": selector, "template": template})),
            ("apps/v1", "StatefulSet", json!({"selector": selector, "serviceName": "w", "template": template})),
            ("apps/v1", "DaemonSet", json!({"selector": selector, "template": template})),
            ("apps/v1", "ReplicaSet", json!({"selector": selector, "template": template})),
            ("v1", "ReplicationController", json!({"selector": {"app": "w"}, "template": template})),
            ("batch/v1", "Job", json!({"template": once})),
            ("batch/v1", "CronJob", json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once}}})),
        ];
        for (version, kind, spec) in workloads {
            let workload = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": NAMESPACE}, "spec": spec});
            assert_eq!(creation(cluster, &workload), None, "{kind} with {options:?}");
        }
    }
    let owned = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "w", "namespace": NAMESPACE, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u", "controller": true}
        ]},
        "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": {
            "metadata": {"labels": {"app": "w"}},
            "spec": {"securityContext": Options::Name.context("webapp1"), "containers": [{"name": "c", "image": "i"}]}
        }}
    });
    assert_eq!(creation(cluster, &owned), None);
    assert_eq!(passed_unasked(cluster) - before, 7, "one for each workload that uses GMSA and has no controller");
}

/// How often the API server went on without the webhook for workloads.
fn passed_unasked(cluster: &Cluster) -> u64 {
    let metrics = cluster.kubectl_prints(["get", "--raw", "/metrics"]);
    let counter =
        "apiserver_admission_webhook_fail_open_count{name=\"workloads.windows-gmsa.sigs.k8s.io\",type=\"validating\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(counter)).map_or(0, |count| count.parse().unwrap())
}

/// Far more containers than a node would run: within the cost that match conditions may have.
fn large_pods(cluster: &Cluster) {
    assert_eq!(creation(cluster, &crowd("large", &[], 500)), None);
    let said = creation(cluster, &crowd("large", &["webapp1".to_owned()], 500));
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&refusal(FIRST, "validate"))), "{said:?}");
}

/// A pod that the API server refuses anyway gets the API server's own words.
fn invalid_pods(cluster: &Cluster) {
    for spec in [json!({}), json!({"containers": null}), json!({"containers": []})] {
        let invalid = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "invalid"}, "spec": spec});
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let said = complaint(cluster.kubectl_with(["create", "--raw", &path, "-f", "-"], &invalid.to_string()));
        assert_eq!(said.as_deref(), Some("The Pod \"invalid\" is invalid: spec.containers: Required value"));
    }
}

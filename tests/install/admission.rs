//! The match conditions, pod by pod, while the webhook is down: only pods that use GMSA are refused then, and every refusal shows which
//! webhook the API server would have asked.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, complaint},
    objects::{CRD, define_foreign_kinds},
    pods::{KINDS, NAMESPACE, Options, creation, crowd, debugging, pod},
};

/// The webhook of the first mutating and of the validating configuration.
const FIRST: &str = "admission-webhook.windows-gmsa.sigs.k8s.io";
/// The webhook of the mutating configuration that sorts last.
const LAST: &str = "last.windows-gmsa.sigs.k8s.io";

#[test]
fn a_webhook_that_is_down_blocks_nothing_but_pods_that_use_gmsa() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    cluster.define(CRD);
    define_foreign_kinds(&cluster);
    cluster.create_namespace(NAMESPACE);
    cluster.create_namespace("windows");
    // Pods from before the webhook: an update of theirs is what is judged later.
    for (name, options) in [("plain", Options::Other), ("running", Options::Both)] {
        cluster.apply(&pod(name, "container", options, "webapp1").to_string());
    }
    let render = |template: &str| cluster.template(["-n", "windows", "-s", template]);
    let mutating = render("templates/mutatingwebhook.yaml");
    let (first, last) = mutating.rsplit_once("---\n").unwrap();

    cluster.apply(first);
    asks(&cluster, FIRST, "mutate", uses_gmsa);
    ephemeral_containers(&cluster, "mutate");
    cluster.prints("delete mutatingwebhookconfiguration gmsa");

    cluster.apply(last);
    asks(&cluster, LAST, "mutate", |options| options == Options::Name);
    cluster.prints("delete mutatingwebhookconfiguration zz-gmsa");

    cluster.apply(&render("templates/validatingwebhook.yaml"));
    asks(&cluster, FIRST, "validate", uses_gmsa);
    ephemeral_containers(&cluster, "validate");
    updates(&cluster);
    workloads(&cluster);
    large_pods(&cluster);
    invalid_pods(&cluster);
}

/// What makes the chart know of tickets, and render for them.
const TICKETS: &str = "tickets.enabled=true,tickets.broker.address=10.0.0.1:443,tickets.broker.caConfigMap=ca";

/// Linux pods that want tickets are sent where these are enabled, and there alone; each pod to the webhooks that have something to do for it.
#[test]
fn a_webhook_that_is_down_blocks_pods_that_want_tickets_only_where_these_are_enabled() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    cluster.define(CRD);
    cluster.create_namespace(NAMESPACE);
    cluster.create_namespace("windows");
    for with in [None, Some(TICKETS)] {
        let set = with.map(|values| ["--set", values]);
        let more = set.as_ref().map_or(&[][..], |set| set);
        let render = |template| cluster.template(["-n", "windows", "-s", template].iter().chain(more).copied());
        let mutating = render("templates/mutatingwebhook.yaml");
        let (first, last) = mutating.rsplit_once("---\n").unwrap();
        let is_on = with.is_some();
        wanting_tickets(&cluster, (first, FIRST, "mutate"), |asks, _, _| is_on && asks);
        wanting_tickets(&cluster, (last, LAST, "mutate"), |asks, has_sidecar, _| is_on && asks && !has_sidecar);
        let validating = render("templates/validatingwebhook.yaml");
        wanting_tickets(&cluster, (&validating, FIRST, "validate"), |_, _, has_token| is_on && has_token);
        // A workload is never blocked, and the annotation is a warning where tickets are not enabled.
        cluster.apply(&validating);
        cluster.until("the configuration is in force", || {
            creation(&cluster, &pod("p", "pod", Options::Name, "webapp1")).is_some()
        });
        let before = passed_unasked(&cluster);
        for (asks, has_token) in [(false, false), (true, false), (false, true)] {
            let template = linux(asks, false, has_token);
            let labels = json!({"app": "w"});
            let metadata = json!({"labels": labels, "annotations": template["metadata"]["annotations"]});
            let template = json!({"metadata": metadata, "spec": template["spec"]});
            let spec = json!({"selector": {"matchLabels": labels}, "template": template});
            let metadata = json!({"name": "w", "namespace": NAMESPACE});
            let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
            assert_eq!(creation(&cluster, &deployment), None);
        }
        assert_eq!(passed_unasked(&cluster) - before, 1 + u64::from(is_on));
        cluster.prints("delete validatingwebhookconfiguration gmsa");
    }
}

/// A Linux pod that asks for tickets, has the sidecar, has a token for them.
fn linux(asks: bool, has_sidecar: bool, has_token: bool) -> Value {
    let audience = if has_token { "gmsa-tickets/webapp1" } else { "gmsa-ticket" };
    let token = json!({"serviceAccountToken": {"audience": audience, "path": "token"}});
    let volume = json!({"name": "token", "projected": {"sources": [{"configMap": {"name": "ca"}}, token]}});
    let first = if has_sidecar { "gmsa-tickets" } else { "other" };
    let container = |name: &str| json!({"name": name, "image": "i"});
    let spec = json!({
        "containers": [container("main")], "initContainers": [container(first)],
        "volumes": [{"name": "folder", "emptyDir": {}}, volume],
    });
    let annotations = if asks { json!({"gmsa-webhook/tickets": "webapp1"}) } else { json!({"other": "webapp1"}) };
    let metadata = json!({"name": "linux", "namespace": NAMESPACE, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Every kind of Linux pod, with this configuration alone: refused exactly where `expected`.
fn wanting_tickets(
    cluster: &Cluster,
    (configuration, webhook, path): (&str, &str, &str),
    expected: impl Fn(bool, bool, bool) -> bool,
) {
    cluster.apply(configuration);
    cluster.until("the configuration is in force", || {
        creation(cluster, &pod("p", "pod", Options::Name, "webapp1")).is_some_and(|said| said.contains(webhook))
    });
    for bits in 0..8 {
        let [asks, has_sidecar, has_token] = [1, 2, 4].map(|bit| bits & bit != 0);
        let case = format!("asks {asks}, sidecar {has_sidecar}, token {has_token}");
        let said = creation(cluster, &linux(asks, has_sidecar, has_token));
        assert_asked(said.as_deref(), expected(asks, has_sidecar, has_token), webhook, path, &case);
    }
    let kind = if path == "mutate" { "mutatingwebhookconfiguration" } else { "validatingwebhookconfiguration" };
    let name = if webhook == LAST { "zz-gmsa" } else { "gmsa" };
    cluster.prints(&format!("delete {kind} {name}"));
}

fn uses_gmsa(options: Options) -> bool {
    matches!(options, Options::Name | Options::Contents | Options::Both)
}

/// The call was tried exactly where it was `expected`, and refused because this webhook is not there.
fn assert_asked(said: Option<&str>, expected: bool, webhook: &str, path: &str, case: &str) {
    let refusal = format!(
        "failed calling webhook \"{webhook}\": failed to call webhook: \
         Post \"https://gmsa.windows.svc:443/{path}?timeout=5s\": service \"gmsa\" not found"
    );
    assert_eq!(said.map(|said| said.ends_with(&refusal)), expected.then_some(true), "{webhook}: {case}: {said:?}");
}

/// Every kind of slot with every kind of options: refused exactly where `expected`, and by this webhook.
fn asks(cluster: &Cluster, webhook: &str, path: &str, expected: impl Fn(Options) -> bool) {
    let said = |kind: &str, options: Options| creation(cluster, &pod("p", kind, options, "webapp1"));
    cluster.until("the configuration is in force", || {
        said("pod", Options::Name).is_some_and(|complaint| complaint.contains(webhook))
    });
    for kind in KINDS {
        for options in Options::ALL {
            let case = format!("{kind} with {options:?}");
            assert_asked(said(kind, options).as_deref(), expected(options), webhook, path, &case);
        }
    }
}

/// The fourth kind of slot comes by its own subresource.
fn ephemeral_containers(cluster: &Cluster, path: &str) {
    for options in Options::ALL {
        let said = debugging(cluster, "plain", options, "webapp1");
        assert_asked(said.as_deref(), uses_gmsa(options), FIRST, path, &format!("{options:?}"));
    }
    let said = debugging(cluster, "running", Options::Absent, "");
    assert_asked(said.as_deref(), true, FIRST, path, "running");
}

/// A running pod can always be labelled and can always end; what could change its identity waits.
fn updates(cluster: &Cluster) {
    let patch = |pod: &str, patch: &Value| cluster.patch(&format!("pod {pod} -n apps"), patch);
    let image = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
    assert_eq!(patch("plain", &image), None);
    assert_eq!(patch("running", &json!({"metadata": {"labels": {"a": "b"}}})), None);
    assert_eq!(patch("running", &json!({"metadata": {"finalizers": ["example.com/wait"]}})), None);
    assert_asked(patch("running", &image).as_deref(), true, FIRST, "validate", "another image");
    let status = json!({"status": {"message": "still there"}});
    assert_eq!(patch("running --subresource=status", &status), None);
    // As a controller does it: deletion first, then the finalizer, which is an update of a GMSA pod.
    cluster.prints("delete pod running -n apps --wait=false --grace-period=0 --force");
    assert_eq!(patch("running", &json!({"metadata": {"finalizers": null}})), None);
    cluster.until("the pod is gone", || cluster.names("pods -n apps") == "pod/plain\n");
}

/// Workloads of any kind are never blocked. The API server counts what it let pass unasked: those that use GMSA.
fn workloads(cluster: &Cluster) {
    let before = passed_unasked(cluster);
    for options in [Options::Absent, Options::Name] {
        let template = pod("p", "init container", options, "webapp1");
        let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": template["spec"]});
        let mut once = template.clone();
        once["spec"]["restartPolicy"] = json!("Never");
        let workloads = include_str!("objects/every-kind.yaml").replace("ONCE", &once.to_string());
        let workloads = workloads.replace("TEMPLATE", &template.to_string());
        assert_eq!(complaint(cluster.kubectl_with("create --dry-run=server -f -", &workloads)), None, "{options:?}");
    }
    let owned: Value = serde_json::from_str(include_str!("objects/owned.json")).unwrap();
    assert_eq!(creation(cluster, &owned), None);
    assert_eq!(passed_unasked(cluster) - before, 7, "one for each workload that uses GMSA and has no controller");
}

/// How often the API server went on without the webhook for workloads.
fn passed_unasked(cluster: &Cluster) -> u64 {
    let metrics = cluster.prints("get --raw /metrics");
    let counter =
        "apiserver_admission_webhook_fail_open_count{name=\"workloads.windows-gmsa.sigs.k8s.io\",type=\"validating\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(counter)).map_or(0, |count| count.parse().unwrap())
}

/// Far more containers than a node would run: within the cost that match conditions may have.
fn large_pods(cluster: &Cluster) {
    assert_eq!(creation(cluster, &crowd("large", &[], 500)), None);
    let said = creation(cluster, &crowd("large", &["webapp1".to_owned()], 500));
    assert_asked(said.as_deref(), true, FIRST, "validate", "a large pod");
}

/// A pod that the API server refuses anyway gets the API server's own words.
fn invalid_pods(cluster: &Cluster) {
    for spec in [json!({}), json!({"containers": null}), json!({"containers": []})] {
        let invalid = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "invalid"}, "spec": spec});
        let create = "create --raw /api/v1/namespaces/apps/pods -f -";
        let said = complaint(cluster.kubectl_with(create, &invalid.to_string()));
        assert_eq!(said.as_deref(), Some("The Pod \"invalid\" is invalid: spec.containers: Required value"));
    }
}

//! What `kubectl gmsa doctor` says of an installation that is broken: its remedies are followed to the letter, and then all is well.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    desk::{Desk, Line},
    doctor::put_in_service,
    helm::CHART,
    nodes::{join, run_new_pods},
    pods::{NAMESPACE, SPEC, restrict},
    release::{RELEASE_NAMESPACE, Release, configurations},
};

/// An installation with nothing to complain of. Its replica is the caller's.
fn in_order(cluster: &Cluster) -> Release<'_> {
    let release = Release::install(cluster, "");
    put_in_service(&release);
    cluster.create_namespace(NAMESPACE);
    join(cluster, "windows-1", "windows");
    release
}

/// The release, and a desk to repair it at.
struct Scene<'c> {
    release: Release<'c>,
    desk: Desk<'c>,
}

impl Scene<'_> {
    /// What `doctor` complains of: a note is no complaint.
    fn complaints(&self) -> Vec<Line> {
        self.desk.lines("doctor").0.into_iter().filter(|line| line.status != "pass" && line.status != "note").collect()
    }

    /// Deletes these, waits until this is the first complaint, and does what it says to do.
    fn breaks_and_follows(&self, objects: &str, outcome: &str) {
        self.desk.cluster.prints(&format!("delete {objects}"));
        let first = || self.complaints().into_iter().next().filter(|first| first.outcome() == outcome);
        self.desk.follow(&self.desk.cluster.found(outcome, first).remedy, &[]);
    }

    /// The pods of before are reached again.
    fn is_mended(&self) {
        self.release.route_to_loopback();
        self.is_in_order();
    }

    fn is_in_order(&self) {
        self.desk.cluster.until("everything is in order again", || self.complaints().is_empty());
    }
}

#[test]
fn what_doctor_says_to_do_mends_what_is_missing() {
    let cluster = Cluster::start();
    let scene = Scene { release: in_order(&cluster), desk: Desk::in_repository(&cluster) };
    let mut replica = scene.release.start_replica();
    scene.is_in_order();

    // In a total outage the webhook answers, and cannot ask the API server.
    scene.breaks_and_follows("clusterrole/gmsa", "fail call of /mutate webhook-failing");
    scene.is_mended();

    // Helm never creates it again.
    scene.breaks_and_follows("crd/gmsacredentialspecs.windows.k8s.io", "fail custom resource crd-missing");
    let is_known = || cluster.kubectl_with("apply -f -", SPEC).status.success();
    cluster.until("the API server has the custom resource", is_known);
    scene.is_in_order();

    // The configurations, which the release still has.
    let mut mutating = configurations(&cluster);
    mutating.pop();
    scene.breaks_and_follows(&mutating.join(" "), "fail configuration webhook-missing");
    scene.is_mended();

    // A second release, which refuses every pod: it is checked too, and named with the command that removes it.
    cluster.helm_prints(&format!("install other {CHART} -n other --create-namespace"));
    let found: Vec<String> = scene.complaints().iter().map(Line::outcome).collect();
    for outcome in ["configuration webhook-duplicate", "service endpoints"] {
        assert!(found.iter().any(|found| found.ends_with(outcome)), "{found:?}");
    }
    scene.desk.follow("`helm uninstall other -n other`", &[]);
    scene.is_in_order();

    selectors_role_and_secret(&scene);

    // The service account is deleted: the tokens of the replicas are dead, also after it is there again. Nothing runs the Deployment's pods here.
    scene.breaks_and_follows("serviceaccount/gmsa -n windows", "fail call of /mutate webhook-failing");
    replica.end();
    let _replica = scene.release.start_replica();
    cluster.until("everything is in order again, with the pods of the restart", || {
        run_new_pods(&cluster, RELEASE_NAMESPACE, "linux-1");
        scene.complaints().is_empty()
    });
}

/// AKS adds expressions to a selector that the chart does not render.
fn selectors_role_and_secret(scene: &Scene<'_>) {
    let mut configuration = scene.release.get("validatingwebhookconfiguration/gmsa");
    configuration["webhooks"][0]["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let replace = "replace --field-manager admissionsenforcer -f -";
    printed(scene.desk.cluster.kubectl_with(replace, &configuration.to_string()));
    scene.desk.cluster.prints("delete role/gmsa secret/gmsa-tls -n windows");
    let found = scene.complaints();
    let outcomes: Vec<_> = found.iter().map(|line| format!("{} {}", line.about, line.rule)).collect();
    let expected = ["configuration selectors-changed", "permissions webhook-permissions", "secret secret-missing"];
    assert_eq!(outcomes, expected);
    scene.desk.follow(&found[0].remedy, &[]);
    scene.is_mended();
}

/// No pod with GMSA can be created then, although the mutating webhook answers.
#[test]
fn a_validating_webhook_that_alone_is_broken_is_found_in_a_restricted_namespace() {
    let cluster = Cluster::start();
    let scene = Scene { release: in_order(&cluster), desk: Desk::new(&cluster) };
    let _replica = scene.release.start_replica();
    scene.is_in_order();
    restrict(&cluster, "apps", "enforce");
    let calls = || scene.desk.outcomes("doctor --namespace apps", "call of /");
    let reached = ["pass call of /mutate", "pass call of /validate"];
    assert_eq!(calls(), reached);

    let port = "/webhooks/0/clientConfig/service/port";
    let configuration = "validatingwebhookconfiguration/gmsa";
    let right = scene.release.get(configuration).pointer(port).unwrap().clone();
    let call = |port_to_call: &Value| {
        let change = json!([{"op": "replace", "path": port, "value": port_to_call}]);
        cluster.change(configuration, &change);
    };
    // Nothing listens there.
    call(&json!(1));
    let broken = ["pass call of /mutate", "fail call of /validate webhook-unreachable"];
    cluster.until("the API server calls the wrong port", || calls() == broken);
    call(&right);
    cluster.until("the API server calls the right port", || calls() == reached);
}

//! The CRD: what its schema refuses, that objects from before stay editable, and how a release brings it up to date, no matter who owns it.

use std::thread;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, complaint, printed},
    desk::cases,
    helm::CHART,
    objects::CRD,
    pods::SPEC,
    release::{BINARY, RELEASE_NAMESPACE, container},
};

/// The CRD of the Go webhook's chart, as far as it differs: nothing is checked, and there is no revision.
pub const CRD_BEFORE: &str = include_str!("go-release/crds/crd.yaml");

const NAME: &str = "crd gmsacredentialspecs.windows.k8s.io";
const WEBAPP1: &str = "gmsacredentialspec webapp1";

#[test]
fn the_schema_refuses_what_can_never_work_and_keeps_stored_objects_editable() {
    let cluster = Cluster::start();
    let cases = cases("refused/schema");
    let mistakes: Vec<_> = cases.iter().map(|(mistake, _)| mistake.split_once(" => ").unwrap()).collect();
    cluster.define(CRD_BEFORE);
    // From before there were rules: every field is wrong at once.
    cluster.apply(&mistakes.iter().fold(SPEC.to_owned(), |text, (right, wrong)| text.replacen(right, wrong, 1)));

    cluster.apply(CRD);
    let create = |text: &str| {
        let text = text.replace("name: webapp1", "name: other");
        complaint(cluster.kubectl_with("create --dry-run=server -f -", &text))
    };
    cluster.until("the rules are in force", || create(&SPEC.replace("S-1-5-21-", "S-1-5-32-")).is_some());
    for ((right, wrong), (_, expected)) in mistakes.iter().zip(&cases) {
        assert!(SPEC.contains(right), "{right} is not in the credential spec");
        let said = create(&SPEC.replacen(right, wrong, 1)).unwrap();
        // The value is between the two.
        let (field, message) = expected.split_once(": ").unwrap();
        assert!(said.contains(&format!("credspec.{field}: ")) && said.contains(message), "{wrong}: {said}");
    }
    for fine in [
        // Several accounts, a plugin whose GUID is not hexadecimal (Microsoft's own sample has one), unusual letters.
        SPEC.replace("{CCC2A336-D7F3-4818-A213-272B7924213E}", "{GDMA0342-266A-4D1P-831J-20990E82944F}"),
        SPEC.replace("WebApp1", "Wéb App-1_x"),
        // An account's name may hold a dot, and must not end with one (MS-SAMR 3.1.1.6).
        SPEC.replace("WebApp1", "web.app"),
        "{apiVersion: windows.k8s.io/v1, kind: GMSACredentialSpec, metadata: {name: a}, credspec: {}}".to_owned(),
    ] {
        assert_eq!(create(&fine), None);
    }

    if cluster.lacks(Feature::Ratcheting) {
        return;
    }
    // What was stored before stays editable where it is wrong already, and may not become wrong in another way.
    let patch = |patch: &Value| cluster.patch(&format!("{WEBAPP1} --type=merge"), patch);
    let of_domain = |field: &str, value: &str| patch(&json!({"credspec": {"DomainJoinConfig": {field: value}}}));
    assert_eq!(patch(&json!({"metadata": {"labels": {"a": "b"}}})), None);
    assert_eq!(of_domain("DnsTreeName", "other.example.com"), None);
    assert_eq!(of_domain("Guid", "244818ae-87ac-4fcd-92ec-e79e5252348a"), None);
    let said = of_domain("Sid", "S-1-5").unwrap();
    assert!(said.contains("must be the domain's SID"), "{said}");
    cluster.prints(&format!("delete {WEBAPP1}"));
}

/// `crds.upgrade`, with this test for a kubelet and a Job controller: the Job's container runs, and its end is reported.
#[test]
fn a_release_brings_the_crd_up_to_date_whatever_owns_it() {
    let cluster = Cluster::start();
    // Another release of Helm's owns it, as its annotations say.
    cluster.define(CRD_BEFORE);
    let owner = "meta.helm.sh/release-name=other meta.helm.sh/release-namespace=elsewhere";
    cluster.prints(&format!("annotate {NAME} {owner}"));
    cluster.prints(&format!("label {NAME} app.kubernetes.io/managed-by=Helm"));
    cluster.apply(SPEC);
    let state = || (cluster.uid(NAME), cluster.uid(WEBAPP1), cluster.get(WEBAPP1)["credspec"].clone());
    let before = state();
    cluster.create_namespace(RELEASE_NAMESPACE);

    // Helm 4 applies crds/ at an install, and names a conflict where another manager has other text in it: the Job does not.
    let said = with_jobs(&cluster, "install --skip-crds");
    assert_eq!(said, "the CRD is at revision 2 now; it was at revision 0\n");
    cluster.until("the short name is known", || cluster.exists("gmsa"));
    assert_eq!(state(), before);

    let said = with_jobs(&cluster, "upgrade");
    assert_eq!(said, "the CRD is at revision 2 now; it was at revision 2\n");
    cluster.prints(&format!("annotate --overwrite {NAME} gmsa-webhook/crd-revision=7"));
    let said = with_jobs(&cluster, "upgrade");
    assert_eq!(said, "the CRD is newer (revision 7) than this release's (revision 2): left as it is\n");

    cluster.helm_prints("uninstall gmsa -n windows");
    assert_eq!(state(), before);
    for kind in ["clusterrole/gmsa-crd", "clusterrolebinding/gmsa-crd", "serviceaccount/gmsa-crd"] {
        assert!(!cluster.exists(&format!("{kind} -n windows")), "{kind} is left");
    }
    assert_eq!(cluster.names("jobs -n windows"), "");
}

/// The versions in which etcd holds the credential specs, of each.
fn stored(cluster: &Cluster) -> Vec<String> {
    let (control_plane, runtime) = cluster.control_plane();
    let prefix = "/registry/windows.k8s.io/gmsacredentialspecs";
    let [key, end] = ["/", "0"].map(|last| BASE64_STANDARD.encode(format!("{prefix}{last}")));
    let _in_runtime = runtime.enter();
    let question = json!({"key": key, "range_end": end});
    let range = runtime.block_on(control_plane.etcd().create("/v3/kv/range", &question)).unwrap();
    let values = range["kvs"].as_array().unwrap().iter().map(|pair| pair["value"].as_str().unwrap());
    let objects = values.map(|value| serde_json::from_slice::<Value>(&BASE64_STANDARD.decode(value).unwrap()).unwrap());
    objects.map(|object| object["apiVersion"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_stored_in_an_old_version_is_stored_in_the_new_one() {
    const COUNT: usize = 120;
    let cluster = Cluster::start();
    let swapped = CRD_BEFORE.replace("storage: true", "storage: x").replace("storage: false", "storage: true");
    cluster.define(&swapped.replace("storage: x", "storage: false"));
    let named = |at: usize| SPEC.replace("name: webapp1", &format!("name: spec-{at:03}")) + "---\n";
    let specs: String = (0..COUNT).map(named).collect();
    // One is of before there were rules, where that does not keep it from being written again.
    let wrong = if cluster.has(Feature::Ratcheting) { "S-1-5-32-" } else { "S-1-5-21-" };
    cluster.apply(&specs.replacen("S-1-5-21-", wrong, 1));
    assert_eq!(stored(&cluster), ["windows.k8s.io/v1alpha1"; COUNT]);
    let versions = || cluster.get(NAME)["status"]["storedVersions"].clone();
    assert_eq!(versions(), json!(["v1alpha1"]));
    let objects = || {
        let mut list = cluster.list("gmsacredentialspecs --show-managed-fields");
        for spec in &mut list {
            spec["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        }
        list
    };
    let before = objects();
    cluster.create_namespace(RELEASE_NAMESPACE);

    let said = with_jobs(&cluster, "install --skip-crds");
    let expected = "the CRD is at revision 2 now; it was at revision 0; \
                    120 credential specs were written again, and all are stored as v1\n";
    assert_eq!(said, expected);
    assert_eq!(stored(&cluster), ["windows.k8s.io/v1"; COUNT]);
    assert_eq!(versions(), json!(["v1"]));
    assert_eq!(objects(), before);

    if cluster.lacks(Feature::Guard) {
        return;
    }
    // What cannot be written again is named, and holds nothing up.
    let both = json!({"status": {"storedVersions": ["v1alpha1", "v1"]}});
    cluster.change(&format!("{NAME} --subresource=status --type=merge"), &both);
    cluster.apply(include_str!("objects/stubborn.yaml"));
    let one = "gmsacredentialspec spec-111 --type=merge";
    cluster.until("the policy is in force", || cluster.patch(one, &json!({})).is_some());
    let said = with_jobs(&cluster, "upgrade");
    let expected = "the CRD is at revision 2 now; it was at revision 2; credential specs may still be stored as v1alpha1: \
                    cannot write spec-111 again: the API server answered 422: \
                    gmsacredentialspecs.windows.k8s.io \"spec-111\" is forbidden: \
                    ValidatingAdmissionPolicy 'stubborn' with binding 'stubborn' denied request: frozen\n";
    assert_eq!(said, expected);
    assert_eq!(versions(), json!(["v1alpha1", "v1"]));
}

/// Runs helm, and the Job that it creates; gives back what the Job printed.
fn with_jobs(cluster: &Cluster, command: &str) -> String {
    let line = format!("{command} gmsa {CHART} -n windows --set crds.upgrade=true --timeout 60s");
    thread::scope(|scope| {
        let ran = scope.spawn(|| cluster.helm_prints(&line));
        let job = cluster.found("helm has created the Job", || cluster.list("jobs -n windows").pop());
        let spec = &job["spec"]["template"]["spec"];
        let said = printed(container(cluster, RELEASE_NAMESPACE, spec, 0, BINARY.as_ref()).output().unwrap());
        let now = "2026-01-01T00:00:00Z";
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let status = json!({
            "startTime": now, "completionTime": now, "succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        });
        let name = job["metadata"]["name"].as_str().unwrap();
        cluster.change(&format!("job {name} -n windows --subresource=status"), &json!({"status": status}));
        ran.join().unwrap();
        said
    })
}

//! The CRD: what its schema refuses, that objects from before stay editable, and how a release brings it up to date, no matter who owns it.

use std::{fs, process::Stdio, thread};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    pods::complaint,
    release::{Container, RELEASE_NAMESPACE},
};

/// The CRD of the Go webhook's chart, as far as it differs: nothing is checked, and there is no revision.
const BEFORE: &str = "tests/install/go-release/crds/crd.yaml";
const OURS: &str = "charts/gmsa-webhook/crds/gmsacredentialspecs.yaml";

const SPEC: &str = include_str!("credential-spec.yaml");

const SID: &str = "must be the domain's SID: S-1-5-21 and three numbers (an account's has one more)";
const ACCOUNT: &str = "must be the account's name alone (sAMAccountName): no domain, and no trailing $";
const OF_ACCOUNT: (&str, &str) = ("DomainJoinConfig.MachineAccountName", "MachineAccountName: WebApp1");
const OF_PLUGIN: &str = "ActiveDirectoryConfig.HostAccountConfig.PluginGUID";
const GUID: &str = "244818ae-87ac-4fcd-92ec-e79e5252348a";

/// What replaces what in the credential spec, and the field and the message of the refusal.
const MISTAKES: [(&str, &str, &str, &str); 12] = [
    ("3094792973", "3094792973-1104", "DomainJoinConfig.Sid", SID),
    ("S-1-5-21-", "S-1-5-32-", "DomainJoinConfig.Sid", SID),
    (OF_ACCOUNT.1, "MachineAccountName: WebApp1$", OF_ACCOUNT.0, ACCOUNT),
    (OF_ACCOUNT.1, r"MachineAccountName: CORP\WebApp1", OF_ACCOUNT.0, ACCOUNT),
    (OF_ACCOUNT.1, "MachineAccountName: WebApp1@corp.example.com", OF_ACCOUNT.0, ACCOUNT),
    (OF_ACCOUNT.1, "MachineAccountName: web.", OF_ACCOUNT.0, ACCOUNT),
    (
        "NetBiosName: CORP",
        r"NetBiosName: CORP\X",
        "DomainJoinConfig.NetBiosName",
        "must be a NetBIOS name, not a DNS name or a path",
    ),
    (
        "NetBiosName: CORP",
        "NetBiosName: CORP-EXAMPLE-COM",
        "DomainJoinConfig.NetBiosName",
        "Too long: may not be more than 15 bytes",
    ),
    (GUID, "'{244818ae-87ac-4fcd-92ec-e79e5252348a}'", "DomainJoinConfig.Guid", "must be a GUID without braces"),
    ("[ActiveDirectory]", "[DirectoryActive]", "CmsPlugins", "must contain \"ActiveDirectory\""),
    (
        "PluginGUID: \"{CCC2A336-D7F3-4818-A213-272B7924213E}\"",
        "PluginGUID: CCC2A336-D7F3-4818-A213-272B7924213E",
        OF_PLUGIN,
        "must be in braces",
    ),
    (
        "PortableCcgVersion: \"1\"",
        "PortableCcgVersion: \"01\"",
        "ActiveDirectoryConfig.HostAccountConfig.PortableCcgVersion",
        "must be \"1\"",
    ),
];

#[test]
fn the_schema_refuses_what_can_never_work_and_keeps_stored_objects_editable() {
    let cluster = Cluster::start();
    cluster.apply(&fs::read_to_string(BEFORE).unwrap());
    cluster.kubectl_prints(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    // From before there were rules: every field is wrong at once.
    let wrong = MISTAKES.iter().fold(SPEC.to_owned(), |text, (right, wrong, ..)| text.replacen(right, wrong, 1));
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(&wrong);

    cluster.apply(&fs::read_to_string(OURS).unwrap());
    cluster.until("the rules are in force", || {
        let mistake = SPEC.replace("name: webapp1", "name: probe").replace("S-1-5-21-", "S-1-5-32-");
        let output = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &mistake);
        String::from_utf8_lossy(&output.stderr).contains("must be the domain's SID")
    });
    for (right, wrong, field, message) in MISTAKES {
        let text = SPEC.replace("name: webapp1", "name: other").replacen(right, wrong, 1);
        assert!(text.contains(wrong), "{right} is not in the credential spec");
        let said = complaint(cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &text)).unwrap();
        // The value is between the two.
        assert!(said.contains(&format!("credspec.{field}: ")) && said.contains(message), "{wrong}: {said}");
    }
    for fine in [
        // Several accounts, a plugin whose GUID is not hexadecimal (Microsoft's own sample has one), unusual letters.
        SPEC.replace("{CCC2A336-D7F3-4818-A213-272B7924213E}", "{GDMA0342-266A-4D1P-831J-20990E82944F}"),
        SPEC.replace("WebApp1", "Wéb App-1_x"),
        // An account's name may hold a dot, and must not end with one (MS-SAMR 3.1.1.6).
        SPEC.replace("WebApp1", "web.app"),
        "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: other}\ncredspec: {}\n".to_owned(),
    ] {
        let fine = fine.replace("name: webapp1", "name: other");
        assert_eq!(complaint(cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &fine)), None);
    }

    // What was stored before stays editable where it is wrong already, and may not become wrong in another way.
    let patch = |patch: &serde_json::Value| {
        complaint(cluster.kubectl([
            "patch",
            "gmsacredentialspec",
            "webapp1",
            "--type=merge",
            "--patch",
            &patch.to_string(),
        ]))
    };
    assert_eq!(patch(&json!({"metadata": {"labels": {"a": "b"}}})), None);
    assert_eq!(patch(&json!({"credspec": {"DomainJoinConfig": {"DnsTreeName": "other.example.com"}}})), None);
    assert_eq!(
        patch(&json!({"credspec": {"DomainJoinConfig": {"Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a"}}})),
        None
    );
    let said = patch(&json!({"credspec": {"DomainJoinConfig": {"Sid": "S-1-5"}}})).unwrap();
    assert!(said.contains("must be the domain's SID"), "{said}");
    cluster.kubectl_prints(["delete", "gmsacredentialspec", "webapp1"]);
}

/// `crds.upgrade`, with this test for a kubelet and a Job controller: the Job's container runs, and its end is reported.
#[test]
fn a_release_brings_the_crd_up_to_date_whatever_owns_it() {
    let cluster = Cluster::start();
    let before = fs::read_to_string(BEFORE).unwrap();
    // Another release of Helm's owns it, as its annotations say.
    cluster.apply(&before);
    let owner = ["annotate", "crd", CRD, "meta.helm.sh/release-name=other", "meta.helm.sh/release-namespace=elsewhere"];
    cluster.kubectl_prints(owner);
    cluster.kubectl_prints(["label", "crd", CRD, "app.kubernetes.io/managed-by=Helm"]);
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(SPEC);
    let spec = || {
        cluster.kubectl_prints(["get", "gmsacredentialspec", "webapp1", "-o", "jsonpath={.metadata.uid}{.credspec}"])
    };
    let uid = || cluster.kubectl_prints(["get", "crd", CRD, "-o", "jsonpath={.metadata.uid}"]);
    let (spec_before, uid_before) = (spec(), uid());
    cluster.create_namespace(RELEASE_NAMESPACE);

    // Helm 4 applies crds/ at an install, and names a conflict where another manager has other text in it: the Job does not.
    let said = with_jobs(&cluster, &["install", "gmsa", CHART, "--skip-crds"]);
    assert_eq!(said, "the CRD is at revision 2 now; it was at revision 0\n");
    cluster.until("the short name is known", || cluster.kubectl(["get", "gmsa"]).status.success());
    assert_eq!((spec(), uid()), (spec_before.clone(), uid_before.clone()));

    let said = with_jobs(&cluster, &["upgrade", "gmsa", CHART]);
    assert_eq!(said, "the CRD is at revision 2 now; it was at revision 2\n");
    cluster.kubectl_prints(["annotate", "--overwrite", "crd", CRD, "gmsa-webhook/crd-revision=7"]);
    let said = with_jobs(&cluster, &["upgrade", "gmsa", CHART]);
    assert_eq!(said, "the CRD is newer (revision 7) than this release's (revision 2): left as it is\n");

    Helm::of_cluster(&cluster.kubeconfig()).prints(["uninstall", "gmsa", "--namespace", RELEASE_NAMESPACE]);
    assert_eq!((spec(), uid()), (spec_before, uid_before));
    for kind in ["clusterrole/gmsa-crd", "clusterrolebinding/gmsa-crd", "serviceaccount/gmsa-crd"] {
        let left = cluster.kubectl(["get", kind, "--namespace", RELEASE_NAMESPACE]);
        assert!(!left.status.success(), "{kind} is left");
    }
    assert_eq!(cluster.kubectl_prints(["get", "jobs", "--namespace", RELEASE_NAMESPACE, "-o", "name"]), "");
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
    let before = fs::read_to_string(BEFORE).unwrap();
    let swapped = before.replace("storage: true", "storage: x").replace("storage: false", "storage: true");
    cluster.apply(&swapped.replace("storage: x", "storage: false"));
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    let specs: String =
        (0..COUNT).map(|at| SPEC.replace("name: webapp1", &format!("name: spec-{at:03}")) + "---\n").collect();
    // One is of before there were rules.
    cluster.apply(&specs.replacen("S-1-5-21-", "S-1-5-32-", 1));
    assert_eq!(stored(&cluster), ["windows.k8s.io/v1alpha1"; COUNT]);
    let versions = || cluster.kubectl_prints(["get", "crd", CRD, "-o", "jsonpath={.status.storedVersions}"]);
    assert_eq!(versions(), r#"["v1alpha1"]"#);
    let objects = || {
        let list = cluster.kubectl_prints(["get", "gmsacredentialspecs", "--show-managed-fields", "-o", "json"]);
        let mut list: Value = serde_json::from_str(&list).unwrap();
        for spec in list["items"].as_array_mut().unwrap() {
            spec["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        }
        list
    };
    let before = objects();
    cluster.create_namespace(RELEASE_NAMESPACE);

    let said = with_jobs(&cluster, &["install", "gmsa", CHART, "--skip-crds"]);
    let expected = "the CRD is at revision 2 now; it was at revision 0; 120 credential specs were written again, and all are stored as v1\n";
    assert_eq!(said, expected);
    assert_eq!(stored(&cluster), ["windows.k8s.io/v1"; COUNT]);
    assert_eq!(versions(), r#"["v1"]"#);
    assert_eq!(objects(), before);

    // What cannot be written again is named, and holds nothing up.
    let both = json!({"status": {"storedVersions": ["v1alpha1", "v1"]}}).to_string();
    cluster.kubectl_prints(["patch", "crd", CRD, "--subresource=status", "--type=merge", "--patch", &both]);
    cluster.apply(STUBBORN);
    let patch = ["patch", "gmsacredentialspec", "spec-111", "--type=merge", "--patch", "{}"];
    cluster.until("the policy is in force", || !cluster.kubectl(patch).status.success());
    let said = with_jobs(&cluster, &["upgrade", "gmsa", CHART]);
    let expected = "the CRD is at revision 2 now; it was at revision 2; credential specs may still be stored as v1alpha1: cannot write spec-111 again: the API server \
                    answered 422: gmsacredentialspecs.windows.k8s.io \"spec-111\" is forbidden: \
                    ValidatingAdmissionPolicy 'stubborn' with binding 'stubborn' denied request: frozen\n";
    assert_eq!(said, expected);
    assert_eq!(versions(), r#"["v1alpha1","v1"]"#);
}

/// Refuses every change of one credential spec.
const STUBBORN: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: stubborn}
spec:
  matchConstraints:
    resourceRules: [{operations: [UPDATE], apiGroups: [windows.k8s.io], apiVersions: ['*'], resources: [gmsacredentialspecs]}]
  validations: [{expression: object.metadata.name != 'spec-111', message: frozen}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stubborn}
spec: {policyName: stubborn, validationActions: [Deny]}
";

const CRD: &str = "gmsacredentialspecs.windows.k8s.io";

/// Runs helm, and the Job that it creates; gives back what the Job printed.
fn with_jobs(cluster: &Cluster, args: &[&str]) -> String {
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let jobs = || -> Value {
        let list = cluster.kubectl_prints(["get", "jobs", "--namespace", RELEASE_NAMESPACE, "-o", "json"]);
        serde_json::from_str(&list).unwrap()
    };
    let more = ["--namespace", RELEASE_NAMESPACE, "--set", "crds.upgrade=true", "--timeout", "60s"];
    thread::scope(|scope| {
        let ran = scope.spawn(|| helm.prints(args.iter().copied().chain(more)));
        cluster.until("helm has created the Job", || jobs()["items"][0].is_object());
        let created = jobs()["items"][0].clone();
        let name = created["metadata"]["name"].as_str().unwrap();
        let spec = &created["spec"]["template"]["spec"];
        let account = spec["serviceAccountName"].as_str().unwrap();
        let mut command = Container::of(spec).command(cluster, account);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let now = "2026-01-01T00:00:00Z";
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let status = json!({"status": {
            "startTime": now, "completionTime": now, "succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }});
        let patch = ["patch", "job", name, "--namespace", RELEASE_NAMESPACE, "--subresource=status", "--patch"];
        cluster.kubectl_prints(patch.into_iter().chain([status.to_string().as_str()]));
        ran.join().unwrap();
        String::from_utf8(output.stdout).unwrap()
    })
}

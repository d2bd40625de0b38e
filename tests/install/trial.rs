//! A trial with `webhooks.enforcement: Warn`, and one mutating configuration instead of two: what pods get, and what `helm test` makes of it.

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    installed::test_the_release,
    pods::{NAMESPACE, Options, creation, grant, pod},
    release::Release,
    tool::Tool,
};

const WARNING: &str =
    "Warning: GMSA, not enforced: service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"";

/// What `kubectl` shows beside a pod that is created as a dry run.
fn warnings(cluster: &Cluster, pod: &Value) -> String {
    let output = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &pod.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

/// The pod as the API server would store it.
fn stored(cluster: &Cluster, pod: &Value) -> Value {
    let output = cluster.kubectl_with(["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// The length of the host name of a pod, where it has one, with this value of the annotation that asks for a random one.
fn hostname(cluster: &Cluster, asked: &Value, value: &str) -> Option<usize> {
    let mut pod = asked.clone();
    pod["metadata"]["annotations"] = json!({"gmsa-webhook/random-hostname": value});
    stored(cluster, &pod)["spec"]["hostname"].as_str().map(str::len)
}

fn contents(cluster: &Cluster, pod: &Value) -> Value {
    let pod = stored(cluster, pod);
    let contents = pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"].as_str();
    contents.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

#[test]
fn a_trial_admits_with_a_warning_what_would_be_refused_and_ends_by_an_upgrade() {
    let cluster = Cluster::start();
    let release = Release::install_with(&cluster, &["webhooks.enforcement=Warn"]);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));
    let replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || {
        let output = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &asked.to_string());
        output.status.success()
    });
    let said = warnings(&cluster, &asked);
    assert!(said.lines().any(|line| line.starts_with(WARNING)), "{said}");
    assert_eq!(contents(&cluster, &asked)["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    assert_eq!((hostname(&cluster, &asked, "true"), hostname(&cluster, &asked, "false")), (Some(15), None));
    let missing = warnings(&cluster, &pod("p", "pod", Options::Name, "no-such-spec"));
    assert!(missing.contains("Warning: GMSA, not enforced: cred spec no-such-spec does not exist"), "{missing}");
    let (report, tested) = test_the_release(&release);
    assert!(tested.status.success() && report.lines().all(|line| line.starts_with("pass  ")), "{report}");
    let (report, _) = Tool::new(&cluster).gmsa("doctor");
    for about in ["call of /mutate    ", "call of /validate  "] {
        let line = format!(
            "warn  {about}the API server reaches it, but denials are not enforced (dry run in default) [not-enforced]\n"
        );
        assert!(report.contains(&line), "{report}");
    }

    drop(replica);
    release.upgrade("webhooks.enforcement=Enforce");
    let _replica = release.start_replica();
    cluster.until("denials are enforced", || {
        creation(&cluster, &asked).is_some_and(|said| said.contains("is not authorized to `use`"))
    });
}

/// `webhooks.warnNamespaces`: a trial in one namespace, while every other one is protected, by the webhook and by the guard.
#[test]
fn a_trial_in_one_namespace_leaves_the_others_protected() {
    let cluster = Cluster::start();
    let release = Release::install_with(&cluster, &["webhooks.warnNamespaces={apps}", "guard.enabled=true"]);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.create_namespace("shop");
    cluster.apply(include_str!("credential-spec.yaml"));
    let _replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    let denied = "service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    // The guard, the webhook on both of its paths and the advice each warn; the API server shows equal warnings once.
    let said = warnings(&cluster, &asked);
    for line in [
        format!("Warning: GMSA, not enforced: {denied}"),
        format!(
            "Warning: Validation failed for ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard-trial': {denied}"
        ),
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    assert_eq!(contents(&cluster, &asked)["DomainJoinConfig"]["MachineAccountName"], "WebApp1");

    let mut elsewhere = asked.clone();
    elsewhere["metadata"]["namespace"] = json!("shop");
    let by_guard =
        "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request: ";
    let said = creation(&cluster, &elsewhere).unwrap();
    assert!(said.ends_with(&format!("{by_guard}{denied}")), "{said}");
    // A namespace's owner cannot join the trial by a label.
    cluster.kubectl(["label", "namespace", "shop", "--overwrite", "kubernetes.io/metadata.name=apps"]);
    assert!(creation(&cluster, &elsewhere).is_some());
    // Without the guard, it is the webhook that refuses.
    release.upgrade("webhooks.warnNamespaces={apps}");
    cluster.until("the guard is gone", || {
        creation(&cluster, &elsewhere).is_some_and(|said| {
            said.ends_with(&format!(
                "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: {denied}"
            ))
        })
    });
    assert!(creation(&cluster, &asked).is_none());
    let (report, tested) = test_the_release(&release);
    assert!(tested.status.success() && report.lines().all(|line| line.starts_with("pass  ")), "{report}");
}

/// `webhooks.first.enabled=false`: the configuration that sorts last does the work of both, also for names that the pod did not come with.
#[test]
fn one_mutating_configuration_does_the_work_of_two() {
    let cluster = Cluster::start();
    let release = Release::install_with(&cluster, &["webhooks.first.enabled=false"]);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));
    let names = || cluster.kubectl_prints(["get", "mutatingwebhookconfigurations", "-o", "name"]);
    assert_eq!(names(), "mutatingwebhookconfiguration.admissionregistration.k8s.io/zz-gmsa\n");
    grant(&cluster, "default", &["webapp1".to_owned()]);
    let _replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    assert_eq!(contents(&cluster, &asked)["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    let (report, tested) = test_the_release(&release);
    assert!(tested.status.success() && report.lines().all(|line| line.starts_with("pass  ")), "{report}");

    // Another one adds the name: a policy that mutates, which the API server runs before the webhooks, and a pod that names nothing itself.
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "names"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
            ]},
            "matchConditions": [{"name": "asks", "expression": "has(object.metadata.labels) && 'gmsa' in object.metadata.labels"}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                "Object{spec: Object.spec{securityContext: Object.spec.securityContext{windowsOptions: \
                 Object.spec.securityContext.windowsOptions{gmsaCredentialSpecName: 'webapp1'}}}}"}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "names"},
        "spec": {"policyName": "names"},
    });
    cluster.apply(&policy.to_string());
    cluster.apply(&binding.to_string());
    let mut labelled = pod("p", "pod", Options::Absent, "");
    labelled["metadata"]["labels"] = json!({"gmsa": "webapp1"});
    cluster.until("the name is added, and filled in", || {
        contents(&cluster, &labelled)["DomainJoinConfig"]["MachineAccountName"] == "WebApp1"
    });

    // And back to two, and to one again, while it serves: once the API server has heard of it, no pod is refused that was admitted before.
    for first in ["true", "false"] {
        release.upgrade(&format!("webhooks.first.enabled={first}"));
        assert_eq!(names().lines().count(), if first == "true" { 2 } else { 1 });
        if first == "false" {
            cluster.until("the pod is admitted", || creation(&cluster, &asked).is_none());
        }
    }
}

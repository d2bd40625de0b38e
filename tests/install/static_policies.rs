//! Policies from a file of the control plane, against those who may do everything in the API, and against the webhook's own token.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    guard::static_policies,
    pods::{NAMESPACE, Options, complaint, creation, grant, pod},
    release::{RELEASE_NAMESPACE, Release},
    tool::Tool,
};

/// Somebody who may do everything, and is no administrator of the release.
const OTHER: [&str; 2] = ["--as=other", "--as-group=system:masters"];
/// The webhook's own service account.
const TOKEN: [&str; 1] = ["--as=system:serviceaccount:windows:gmsa"];

const CONFIGURATIONS: [&str; 3] = [
    "mutatingwebhookconfigurations/gmsa",
    "mutatingwebhookconfigurations/zz-gmsa",
    "validatingwebhookconfigurations/gmsa",
];

/// What the policy of this name says, with the API server's words around it.
fn refusal(policy: &str, object: &str, message: &str) -> String {
    let (resource, name) = object.split_once('/').unwrap();
    format!(
        "Error from server (Forbidden): {resource}.admissionregistration.k8s.io \"{name}\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding \
         '{policy}' denied request: {message}: only the administrators that the static policies of the control plane name may"
    )
}

fn of_configurations(object: &str, message: &str) -> String {
    refusal("gmsa-configurations.static.k8s.io", object, message)
}

/// What the API server says to a JSON patch as a dry run.
fn patch(cluster: &Cluster, object: &str, patch: &Value, user: &[&str]) -> Option<String> {
    let patch = patch.to_string();
    let args = ["patch", object, "--type=json", "--dry-run=server", "--patch", &patch];
    complaint(cluster.kubectl(args.iter().chain(user).copied()))
}

/// Changes of a configuration with several webhooks; each must be refused where anybody else than an administrator makes it.
fn attacks() -> Vec<(&'static str, Value)> {
    let replace =
        |field: &str, value: Value| json!([{"op": "add", "path": format!("/webhooks/0/{field}"), "value": value}]);
    let metadata =
        |field: &str, value: Value| json!([{"op": "add", "path": format!("/metadata/{field}"), "value": value}]);
    let rule =
        json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "scope": "*"});
    vec![
        ("other rules", replace("rules", json!([rule]))),
        ("more rules", replace("rules/-", rule)),
        ("a URL", replace("clientConfig", json!({"url": "https://evil.example.com/mutate"}))),
        ("another service", replace("clientConfig/service/name", json!("evil"))),
        ("another namespace", replace("clientConfig/service/namespace", json!("evil"))),
        ("another path", replace("clientConfig/service/path", json!("/evil"))),
        ("another port", replace("clientConfig/service/port", json!(1))),
        ("a namespace selector", replace("namespaceSelector", json!({"matchLabels": {"a": "b"}}))),
        ("an object selector", replace("objectSelector", json!({"matchLabels": {"a": "b"}}))),
        ("other conditions", replace("matchConditions", json!([{"name": "never", "expression": "false"}]))),
        ("no conditions", json!([{"op": "remove", "path": "/webhooks/0/matchConditions"}])),
        ("a failure policy", replace("failurePolicy", json!("Ignore"))),
        ("a match policy", replace("matchPolicy", json!("Exact"))),
        ("a time-out", replace("timeoutSeconds", json!(1))),
        ("side effects", replace("sideEffects", json!("NoneOnDryRun"))),
        ("other versions", replace("admissionReviewVersions", json!(["v1"]))),
        ("another name", replace("name", json!("evil.example.com"))),
        (
            "one more entry",
            json!([
                {"op": "copy", "from": "/webhooks/0", "path": "/webhooks/1"},
                {"op": "replace", "path": "/webhooks/1/name", "value": "evil.example.com"},
            ]),
        ),
        ("no entry", json!([{"op": "replace", "path": "/webhooks", "value": []}])),
        ("an annotation", metadata("annotations/cert-manager.io~1inject-ca-from", json!("evil/evil"))),
        ("a label", metadata("labels/a", json!("b"))),
        ("a finalizer", metadata("finalizers", json!(["example.com/evil"]))),
        (
            "an owner",
            metadata("ownerReferences", json!([{"apiVersion": "v1", "kind": "Namespace", "name": "evil", "uid": "1"}])),
        ),
        (
            "a CA and more",
            json!([
                {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "LS0tLS1CRUdJTi0tLS0t"},
                {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
            ]),
        ),
    ]
}

fn token_changes_nothing_but_the_ca(cluster: &Cluster) {
    for object in CONFIGURATIONS {
        for (what, attack) in attacks() {
            let said = patch(cluster, object, &attack, &TOKEN);
            let message =
                format!("user \"system:serviceaccount:windows:gmsa\" may not change {object} except for its caBundle");
            assert_eq!(said, Some(of_configurations(object, &message)), "{object}: {what}");
            let said = patch(cluster, object, &attack, &OTHER);
            let message = format!("user \"other\" may not change {object}");
            assert_eq!(said, Some(of_configurations(object, &message)), "{object}: {what}");
        }
    }
    // The order of the entries, and one of several: the validating configuration has three.
    let object = CONFIGURATIONS[2];
    let message =
        format!("user \"system:serviceaccount:windows:gmsa\" may not change {object} except for its caBundle");
    for attack in [
        json!([{"op": "move", "from": "/webhooks/2", "path": "/webhooks/0"}]),
        json!([{"op": "remove", "path": "/webhooks/0"}]),
        json!([{"op": "remove", "path": "/webhooks/2"}]),
        json!([{"op": "copy", "from": "/webhooks/1/clientConfig/service", "path": "/webhooks/0/clientConfig/service"}]),
    ] {
        assert_eq!(patch(cluster, object, &attack, &TOKEN), Some(of_configurations(object, &message)), "{attack}");
    }
    let reinvocation = json!([{"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "Never"}]);
    let message = "user \"system:serviceaccount:windows:gmsa\" may not change mutatingwebhookconfigurations/zz-gmsa except for its caBundle";
    assert_eq!(
        patch(cluster, CONFIGURATIONS[1], &reinvocation, &TOKEN),
        Some(of_configurations(CONFIGURATIONS[1], message))
    );
}

fn who_administers_the_cluster_deletes_and_creates_nothing(cluster: &Cluster) {
    let as_other = |args: &[&str]| complaint(cluster.kubectl(args.iter().chain(&OTHER).copied()));
    let policies = ["validatingadmissionpolicies/gmsa-guard", "validatingadmissionpolicybindings/gmsa-guard"];
    for object in CONFIGURATIONS.into_iter().chain(policies) {
        let message = format!("user \"other\" may not delete {object}");
        assert_eq!(as_other(&["delete", object]), Some(of_configurations(object, &message)));
    }
    // All at once: each of them is asked about.
    let all = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let said = as_other(&["delete", "--raw", all]).unwrap();
    assert!(
        said.contains("user \"other\" may not delete validatingwebhookconfigurations/gmsa: only the administrators"),
        "{said}"
    );
    let binding = json!([{"op": "replace", "path": "/spec/validationActions", "value": ["Audit"]}]);
    let message = format!("user \"other\" may not change {}", policies[1]);
    assert_eq!(patch(cluster, policies[1], &binding, &OTHER), Some(of_configurations(policies[1], &message)));
    let ca = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "LS0tLS1CRUdJTi0tLS0t"}]);
    let message = format!("user \"other\" may not change {}", CONFIGURATIONS[2]);
    assert_eq!(patch(cluster, CONFIGURATIONS[2], &ca, &OTHER), Some(of_configurations(CONFIGURATIONS[2], &message)));
    let probe = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gmsa-static-policies"},
    });
    // Not even an administrator.
    let said = complaint(cluster.kubectl_with(["create", "-f", "-"], &probe.to_string())).unwrap();
    assert!(said.ends_with("denied request: the static policies of the GMSA webhook gmsa are in force"), "{said}");
    let secret = "user \"other\" may not write the Secret gmsa-tls: only the administrators that the static policies of the control plane name may";
    let annotate = ["annotate", "secret", "gmsa-tls", "a=b", "--namespace", RELEASE_NAMESPACE];
    let said = as_other(&annotate).unwrap();
    assert!(said.ends_with(secret), "{said}");
    // Other configurations, and Secrets, are everybody's who may write them.
    assert_eq!(as_other(&["create", "secret", "generic", "mine", "--namespace", RELEASE_NAMESPACE]), None);
    assert_eq!(as_other(&["label", "secret", "mine", "a=b", "--namespace", RELEASE_NAMESPACE]), None);
    let mut mine = probe.clone();
    mine["metadata"]["name"] = json!("mine");
    assert_eq!(complaint(cluster.kubectl_with(["create", "-f", "-", OTHER[0], OTHER[1]], &mine.to_string())), None);
    assert_eq!(as_other(&["delete", "validatingwebhookconfiguration", "mine"]), None);
}

#[test]
fn nobody_but_an_administrator_of_the_release_changes_what_protects_the_pods() {
    let mut cluster = Cluster::start();
    let manifest = static_policies(&[]);
    let file = cluster.load_static_policies(&manifest);
    let release = Release::install_with(&cluster, &["guard.enabled=true"]);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));
    grant(&cluster, "default", &["webapp1".to_owned()]);

    token_changes_nothing_but_the_ca(&cluster);
    who_administers_the_cluster_deletes_and_creates_nothing(&cluster);

    // The webhook writes its own CA with its own token, into every configuration, and keeps its Secret.
    let replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    let (report, _) = Tool::new(&cluster).gmsa("doctor");
    for line in [
        "pass  guard             gmsa-guard.static.k8s.io, from a file of the control plane, refuses a pod with contents of its own before /validate is \
         asked (dry run in default)\n",
        "pass  protection        static policies, from files of the control plane, protect the configurations of gmsa\n",
    ] {
        assert!(report.contains(line), "{report}");
    }

    // What an administrator does goes on to work: an upgrade, a way back, an uninstall.
    release.upgrade("webhooks.timeoutSeconds=7");
    release.helm().prints(["rollback", "gmsa", "1", "--namespace", RELEASE_NAMESPACE]);
    cluster.until("the pod is admitted as before", || creation(&cluster, &asked).is_none());

    // A manifest that cannot be read changes nothing; one that can is in force at once.
    let delete = || complaint(cluster.kubectl(["delete", CONFIGURATIONS[2], "--dry-run=server", OTHER[0], OTHER[1]]));
    let failures = || {
        cluster
            .kubectl_prints(["get", "--raw", "/metrics"])
            .lines()
            .filter(|line| {
                line.starts_with("apiserver_manifest_admission_config_controller_automatic_reloads_total")
                    && line.contains("\"failure\"")
            })
            .count()
    };
    // In one step: the API server would read a file that is being written, and take one that is still empty for one without policies.
    let replace = |text: &str| {
        let new = file.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &file).unwrap();
    };
    replace("broken: [");
    cluster.until("the API server has read it", || failures() == 1);
    let message = format!("user \"other\" may not delete {}", CONFIGURATIONS[2]);
    assert_eq!(delete(), Some(of_configurations(CONFIGURATIONS[2], &message)));
    // A release's manifest names a group alone. A user with its name is none of it.
    let users = r#"["admin","O'Neill \"\u003cx\u003e\""]"#;
    assert!(manifest.contains(users), "{manifest}");
    replace(&manifest.replace(users, "[]"));
    let delete_as = |user: &[&str]| {
        complaint(cluster.kubectl(["delete", CONFIGURATIONS[2], "--dry-run=server"].iter().chain(user).copied()))
    };
    cluster.until("the users are no administrators", || delete_as(&[]).is_some());
    assert_eq!(delete_as(&["--as=other", "--as-group=system:masters", "--as-group=platform"]), None);
    let message = format!("user \"platform\" may not delete {}", CONFIGURATIONS[2]);
    let refused = Some(of_configurations(CONFIGURATIONS[2], &message));
    assert_eq!(delete_as(&["--as=platform", "--as-group=system:masters"]), refused);
    replace(&manifest.replace("[\"admin\"", "[\"admin\",\"other\""));
    cluster.until("the other one is an administrator", || delete().is_none());

    drop(replica);
    release.helm().prints(["uninstall", "gmsa", "--namespace", RELEASE_NAMESPACE]);
    // And without any webhook and any policy in the cluster, the guard of the file stands.
    let brought = creation(&cluster, &pod("p", "pod", Options::Contents, "")).unwrap();
    assert!(brought.contains("ValidatingAdmissionPolicy 'gmsa-guard.static.k8s.io'"), "{brought}");
    // It goes with its file, and not with anything that the API can do.
    fs::remove_file(&file).unwrap();
    cluster.until("the guard is gone", || creation(&cluster, &pod("p", "pod", Options::Contents, "")).is_none());
}

//! Policies from a file of the control plane, against those who may do everything in the API, and against the webhook's own token.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, complaint},
    desk::Desk,
    guard::{ADMINISTRATORS, OTHER, denied, static_policies},
    pods::{Options, creation, grant, pod, with_tokens},
    release::{CONFIGURATIONS, Release},
};

/// The webhook's own service account.
const TOKEN: &str = "--as=system:serviceaccount:windows:gmsa";

/// What the policy for the configurations says, with the API server's words around it: this user may not do this, `VERB RESOURCE/NAME` and more.
fn refusal(user: &str, what: &str) -> String {
    let (resource, name) = what.split(' ').nth(1).unwrap().split_once('/').unwrap();
    let policy = denied("gmsa-configurations.static.k8s.io");
    let forbidden = format!("{resource}.admissionregistration.k8s.io \"{name}\" is forbidden");
    format!("Error from server (Forbidden): {forbidden}: {policy}user \"{user}\" may not {what}: {ADMINISTRATORS}")
}

/// Only an administrator may change a configuration; the webhook's own token changes nothing but the CA.
fn changes_are_refused(cluster: &Cluster) {
    let patch = |object: &str, attack: &Value, user: &str| {
        cluster.patch(&format!("{object} --dry-run=server {user}"), attack).unwrap_or_default()
    };
    let assert_refused = |object: &str, attack: &Value| {
        let what = format!("change {object}");
        let by_webhook = refusal("system:serviceaccount:windows:gmsa", &format!("{what} except for its caBundle"));
        assert_eq!(patch(object, attack, TOKEN), by_webhook, "{attack}");
        assert_eq!(patch(object, attack, OTHER), refusal("other", &what), "{attack}");
    };
    // On each of them; and on one, the order of the entries, and one of several: the validating configuration has three.
    let attacks: BTreeMap<String, Vec<Value>> = serde_json::from_str(include_str!("objects/attacks.json")).unwrap();
    for object in CONFIGURATIONS {
        for attack in attacks["all"].iter().chain(attacks.get(object).into_iter().flatten()) {
            assert_refused(object, attack);
        }
    }
    let binding = "validatingadmissionpolicybindings/gmsa-guard";
    let audit = json!([{"op": "replace", "path": "/spec/validationActions", "value": ["Audit"]}]);
    assert_eq!(patch(binding, &audit, OTHER), refusal("other", &format!("change {binding}")));
    let [.., object] = CONFIGURATIONS;
    let bundle = "/webhooks/0/clientConfig/caBundle";
    let ca = json!([{"op": "add", "path": bundle, "value": "LS0tLS1CRUdJTi0tLS0t"}]);
    assert_eq!(patch(object, &ca, OTHER), refusal("other", &format!("change {object}")));
}

fn who_administers_the_cluster_deletes_and_creates_nothing(cluster: &Cluster) {
    let as_other = |line: &str| complaint(cluster.kubectl(&format!("{line} {OTHER}")));
    let policies = ["validatingadmissionpolicies/gmsa-guard", "validatingadmissionpolicybindings/gmsa-guard"];
    for object in CONFIGURATIONS.into_iter().chain(policies) {
        assert_eq!(as_other(&format!("delete {object}")), Some(refusal("other", &format!("delete {object}"))));
    }
    // All at once: each of them is asked about.
    let all = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let said = as_other(&format!("delete --raw {all}")).unwrap();
    let refused = "user \"other\" may not delete validatingwebhookconfigurations/gmsa: only the administrators";
    assert!(said.contains(refused), "{said}");
    // Not even an administrator.
    let create = |name: &str, user: &str| {
        let probe = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
        });
        complaint(cluster.kubectl_with(&format!("create -f - {user}"), &probe.to_string()))
    };
    let said = create("gmsa-static-policies", "").unwrap();
    assert!(said.ends_with("denied request: the static policies of the GMSA webhook gmsa are in force"), "{said}");
    let said = as_other("annotate secret gmsa-tls a=b -n windows").unwrap();
    assert!(said.contains("user \"other\" may not write the Secret gmsa-tls: only the administrators"), "{said}");
    // Other configurations, and Secrets, are everybody's who may write them.
    assert_eq!(as_other("create secret generic mine -n windows"), None);
    assert_eq!(as_other("label secret mine a=b -n windows"), None);
    assert_eq!(create("mine", OTHER), None);
    assert_eq!(as_other("delete validatingwebhookconfiguration mine"), None);
}

#[test]
fn nobody_but_an_administrator_of_the_release_changes_what_protects_the_pods() {
    let mut cluster = Cluster::start();
    if cluster.lacks(Feature::StaticPolicies) {
        return;
    }
    let manifest = static_policies(&[]);
    let file = cluster.load_static_policies(&manifest);
    let release = Release::install_for_pods(&cluster, "--set guard.enabled=true");
    grant(&cluster, "default", &["webapp1".to_owned()]);

    changes_are_refused(&cluster);
    who_administers_the_cluster_deletes_and_creates_nothing(&cluster);

    // The webhook writes its own CA with its own token, into every configuration, and keeps its Secret.
    let replica = release.start_replica();
    let asked = pod("p", "pod", Options::Name, "webapp1");
    cluster.until("the API server trusts the webhook", || creation(&cluster, &asked).is_none());
    let (lines, _) = Desk::new(&cluster).lines("doctor");
    let line = lines.iter().find(|line| line.about == "guard").unwrap();
    assert!(line.status == "pass" && line.text.starts_with("gmsa-guard.static.k8s.io, from a file"), "{}", line.text);

    // What an administrator does goes on to work: an upgrade, a way back, an uninstall.
    release.upgrade("webhooks.timeoutSeconds=7");
    cluster.helm_prints("rollback gmsa 1 -n windows");
    cluster.until("the pod is admitted as before", || creation(&cluster, &asked).is_none());

    a_new_file_is_in_force_at_once(&cluster, &manifest, &file);

    drop(replica);
    cluster.helm_prints("uninstall gmsa -n windows");
    // And without any webhook and any policy in the cluster, the guard of the file stands.
    let brought = || creation(&cluster, &pod("p", "pod", Options::Contents, ""));
    let said = brought().unwrap();
    assert!(said.contains("ValidatingAdmissionPolicy 'gmsa-guard.static.k8s.io'"), "{said}");
    // The right `use` gives nobody a keytab.
    let said = creation(&cluster, &with_tokens("p", &["gmsa-keytab/webapp1".to_owned()])).unwrap();
    let message = "service account \"default\" is not authorized to `export` GMSA cred spec \"webapp1\"";
    assert!(said.ends_with(&(denied("gmsa-guard.static.k8s.io") + message)), "{said}");
    // It goes with its file, and not with anything that the API can do.
    fs::remove_file(&file).unwrap();
    cluster.until("the guard is gone", || brought().is_none());
}

/// A manifest that cannot be read changes nothing; one that can is in force at once.
fn a_new_file_is_in_force_at_once(cluster: &Cluster, manifest: &str, file: &std::path::Path) {
    let [.., object] = CONFIGURATIONS;
    let delete = |user: &str| complaint(cluster.kubectl(&format!("delete {object} --dry-run=server {user}")));
    let refused = |user: &str| refusal(user, &format!("delete {object}"));
    let failures = || {
        let counter = "apiserver_manifest_admission_config_controller_automatic_reloads_total";
        let metrics = cluster.prints("get --raw /metrics");
        metrics.lines().filter(|line| line.starts_with(counter) && line.contains("\"failure\"")).count()
    };
    // In one step: the API server would read a file that is being written, and take one that is still empty for one without policies.
    let replace = |text: &str| {
        let new = file.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, file).unwrap();
    };
    replace("broken: [");
    cluster.until("the API server has read it", || failures() == 1);
    assert_eq!(delete(OTHER), Some(refused("other")));
    // A release's manifest names a group alone. A user with its name is none of it.
    let users = r#"["admin","O'Neill \"\u003cx\u003e\""]"#;
    assert!(manifest.contains(users), "{manifest}");
    replace(&manifest.replace(users, "[]"));
    cluster.until("the users are no administrators", || delete("").is_some());
    assert_eq!(delete(&format!("{OTHER} --as-group=platform")), None);
    assert_eq!(delete("--as=platform --as-group=system:masters"), Some(refused("platform")));
    replace(&manifest.replace("[\"admin\"", "[\"admin\",\"other\""));
    cluster.until("the other one is an administrator", || delete(OTHER).is_none());
}

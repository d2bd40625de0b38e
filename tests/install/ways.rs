//! Ways to install and to upgrade that could end in the middle: kubectl with what Helm rendered, fields that others own, the loss of the namespace, and static policies
//! that do not name the user as an administrator.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, complaint},
    desk::{Desk, cases},
    guard::{ADMINISTRATORS, static_policies},
    helm::CHART,
    objects::CRD,
    release::{KINDS, RELEASE_NAMESPACE, Release, configurations},
};

/// A Job cannot be changed: the next release's Job has another name.
#[test]
fn kubectl_applies_one_rendered_release_after_the_other() {
    let cluster = Cluster::start();
    cluster.create_namespace(RELEASE_NAMESPACE);
    cluster.define(CRD);
    let apply = |tag: &str| {
        let values = format!("crds.upgrade=true,image.tag={tag}");
        let args = ["-n", "windows", "--set", &values];
        cluster.apply(&cluster.template(args));
    };
    let jobs = || {
        let image = |job: &Value| job["spec"]["template"]["spec"]["containers"][0]["image"].to_string();
        let mut images: Vec<_> = cluster.list("jobs -n windows").iter().map(image).collect();
        images.sort();
        images.join(" ")
    };
    apply("a");
    apply("a");
    assert_eq!(jobs(), r#""gmsa-webhook:a""#);
    apply("b");
    assert_eq!(jobs(), r#""gmsa-webhook:a" "gmsa-webhook:b""#);
}

/// With the namespace its Secrets are gone, and the release's record among them. The configurations are in no namespace, and stay: every pod that uses GMSA is
/// refused, until it is installed again, by the same name and in the same namespace, as `doctor` says: also where kubectl has changed what remains.
#[test]
fn a_release_whose_namespace_was_deleted_is_installed_again() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");
    cluster.prints("delete namespace windows");
    let remaining = ["clusterrole/gmsa"].into_iter().chain(configurations(&cluster));
    let uids = || remaining.clone().map(|object| cluster.uid(object)).collect::<Vec<_>>();
    let before = uids();
    let rules = || cluster.get("clusterrole/gmsa")["rules"].take();
    let rules_before = rules();
    cluster.change("clusterrole gmsa", &json!({"rules": []}));
    let desk = Desk::in_repository(&cluster);
    let (lines, code) = desk.lines("doctor");
    assert_eq!(code, 1);
    let remedy = &lines.iter().find(|line| line.rule == "webhook-gone").unwrap().remedy;
    let (install, end) = remedy.split_once(" Or end the checks: ").unwrap();
    desk.follow(install, &[]);
    assert_eq!((uids(), rules(), release.wanted()), (before, rules_before, json!(2)));
    release.upgrade("replicaCount=3");
    assert_eq!(release.wanted(), 3);

    // Its second command is for Kubernetes 1.30 and later, as it says.
    let end = if cluster.lacks(Feature::Guard) { end.split(" and `kubectl").next().unwrap() } else { end };
    desk.follow(end, &[]);
    let left = cluster.prints("get mutatingwebhookconfigurations,validatingwebhookconfigurations -o name");
    assert_eq!(left, "");
}

#[test]
fn a_release_keeps_its_names_and_its_replicas() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");

    // What docs/install.md says of fields that others own.
    let conflict = "conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas";
    for command in [&format!("upgrade gmsa {CHART} --reuse-values"), "rollback gmsa 1"] {
        cluster.prints("scale deployment/gmsa --replicas=5 -n windows");
        let said = cluster.helm_refuses(&format!("{command} -n windows"));
        assert!(said.contains(conflict), "{said}");
        assert_eq!(release.wanted(), 5);
        cluster.helm_prints(&format!("{command} -n windows --force-conflicts"));
        assert_eq!(release.wanted(), 2);
    }

    // An autoscaler that is turned on and off: the number of replicas never falls to the API server's default.
    release.upgrade("replicaCount=4");
    release.upgrade("autoscaling.enabled=true");
    assert_eq!(release.wanted(), 4);
    // As the autoscaler does it: by the subresource.
    cluster.prints("scale deployment/gmsa -n windows --replicas=5");
    release.upgrade("autoscaling.enabled=true,logLevel=debug");
    assert_eq!(release.wanted(), 5);
    release.upgrade("autoscaling.enabled=false,replicaCount=5");
    assert_eq!(release.wanted(), 5);

    // What pods of before are found by, and have their rights by, would change before they are replaced.
    cluster.create_namespace("other");
    for (values, said) in cases("refused/kept") {
        assert_eq!(cluster.helm_refuses(&format!("upgrade gmsa {CHART} -n windows --set {values}")), said);
    }
    // And the way that is named.
    cluster.helm_prints(&format!("install second {CHART} -n windows --set serviceAccount.name=other"));
    cluster.helm_prints("uninstall gmsa -n windows");
}

/// Objects in another namespace come late: without it the release would end in the middle.
#[test]
fn a_namespace_that_is_not_there_is_named_before_anything_is_changed() {
    let cluster = Cluster::start();
    cluster.create_namespace(RELEASE_NAMESPACE);
    cluster.create_namespace("leaving");
    // It stays as long as this finalizer does.
    cluster.prints("create configmap held -n leaving");
    cluster.change("configmap held -n leaving", &json!({"metadata": {"finalizers": ["example.com/held"]}}));
    cluster.prints("delete namespace leaving --wait=false");
    for (chart, said) in cases("refused/namespaces") {
        assert_eq!(cluster.helm_refuses(&format!("install gmsa {chart} -n windows")), said);
    }
    assert_eq!(cluster.names("clusterroles -l app.kubernetes.io/instance=gmsa"), "");
}

/// As docs/certificates.md says: an immutable Secret is deleted, and the next upgrade brings another one, which the replica that runs fills.
#[test]
fn an_immutable_secret_is_replaced() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");
    release.route_to_loopback();
    let _replica = release.start_replica();
    let secret = "secret gmsa-tls -n windows";
    cluster.change(secret, &json!({"immutable": true}));
    let said = cluster.patch(secret, &json!({"data": {"tls.crt": "YQ=="}})).unwrap();
    assert!(said.contains("field is immutable when `immutable` is set"), "{said}");
    cluster.prints(&format!("delete {secret}"));
    release.upgrade("replicaCount=2");
    cluster.until("the Secret is filled", || cluster.get(secret)["data"]["tls.crt"].is_string());
    assert_eq!(cluster.get(secret).get("immutable"), None);
}

/// A cluster administrator whom the static policies do not name changes nothing: neither half an upgrade nor half an
/// uninstall.
#[test]
fn who_is_no_administrator_of_the_static_policies_changes_nothing() {
    let mut cluster = Cluster::start();
    if cluster.lacks(Feature::StaticPolicies) {
        return;
    }
    cluster.load_static_policies(&static_policies(&[]));
    let policies = "--set staticPolicies.enabled=true,staticPolicies.admins.users={admin}";
    let as_admin = |command: &str| cluster.helm_prints(&format!("{command} -n windows {policies}"));
    let other = "--kube-as-user other --kube-as-group system:masters -n windows";
    let as_other = |command: &str| complaint(cluster.helm(&format!("{command} {other}"))).unwrap();
    let versions = || {
        let objects = cluster.list(&format!("{KINDS} -n windows -l app.kubernetes.io/instance=gmsa"));
        let of = |object: &Value| json!([object["kind"], object["metadata"]["name"], object["metadata"]["generation"]]);
        objects.iter().map(of).collect::<Vec<_>>()
    };
    let what = "create validatingwebhookconfigurations/gmsa-administrator";
    let refusal = format!("user \"other\" may not {what}: {ADMINISTRATORS}");

    // Nothing of an install.
    cluster.create_namespace(RELEASE_NAMESPACE);
    let install = format!("gmsa {CHART}");
    let said = as_other(&format!("install {install} {policies}"));
    assert!(said.ends_with(&refusal), "{said}");
    assert!(versions().is_empty());
    as_admin(&format!("upgrade --install {install}"));
    as_admin(&format!("upgrade {install} --set webhooks.timeoutSeconds=7"));
    let before = versions();
    assert!(before.len() > 10, "{before:?}");
    let upgrade = format!("upgrade {install} {policies} --set replicaCount=4");
    for command in [upgrade.as_str(), "rollback gmsa 2", "uninstall gmsa"] {
        let said = as_other(command);
        assert!(said.ends_with(&refusal), "{command}: {said}");
        assert_eq!(versions(), before, "{command}");
    }
    // As docs/static-policies.md says: what Helm has noted of the attempts is put right by an administrator's rollback.
    cluster.helm_prints("rollback gmsa 3 -n windows");
    as_admin(&format!("upgrade {install} --set replicaCount=4"));

    // Half an uninstall, as without the hook: the same brings back what is gone.
    let said = as_other("uninstall gmsa --no-hooks");
    assert!(said.contains("failed to delete release: gmsa"), "{said}");
    assert!(!versions().iter().any(|object| object[0] == "Deployment") && !versions().is_empty());
    let history: Vec<Value> = serde_json::from_str(&cluster.helm_prints("history gmsa -n windows -o json")).unwrap();
    cluster.helm_prints(&format!("rollback gmsa {} -n windows", history.last().unwrap()["revision"]));
    assert_eq!(versions().len(), before.len());
    cluster.helm_prints("uninstall gmsa -n windows");
    assert!(versions().is_empty());
}

//! Ways to install and to upgrade that could end in the middle: kubectl with what Helm rendered, fields that others own, the loss of the namespace, and static policies
//! whose administrators somebody is none of.

use serde_json::Value;

use crate::{
    cluster::{Cluster, printed},
    guard::static_policies,
    helm::{CHART, Helm},
    pods::complaint,
    release::{RELEASE_NAMESPACE, Release},
    tool::Tool,
};

/// A Job cannot be changed: that of the next release has another name.
#[test]
fn kubectl_applies_one_rendered_release_after_the_other() {
    let cluster = Cluster::start();
    cluster.create_namespace(RELEASE_NAMESPACE);
    cluster.apply(include_str!("../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml"));
    let render = |values: &str| {
        let args = ["--namespace", RELEASE_NAMESPACE, "--kube-version", "1.36", "--set", values];
        Helm::new().template(args)
    };
    let jobs = || {
        let list = [
            "get",
            "jobs",
            "--namespace",
            RELEASE_NAMESPACE,
            "-o",
            "jsonpath={.items[*].spec.template.spec.containers[0].image}",
        ];
        let mut images: Vec<String> = cluster.kubectl_prints(list).split(' ').map(str::to_owned).collect();
        images.sort();
        images
    };
    cluster.apply(&render("crds.upgrade=true,image.tag=a"));
    cluster.apply(&render("crds.upgrade=true,image.tag=a"));
    assert_eq!(jobs(), ["gmsa-webhook:a"]);
    cluster.apply(&render("crds.upgrade=true,image.tag=b"));
    assert_eq!(jobs(), ["gmsa-webhook:a", "gmsa-webhook:b"]);
}

/// With the namespace its Secrets are gone, and the release's record among them. The configurations are in no namespace, and stay: every pod that uses GMSA is
/// refused, until it is installed again, by the same name and in the same namespace, as `doctor` says: also where kubectl has changed what remains.
#[test]
fn a_release_whose_namespace_was_deleted_is_installed_again() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    cluster.kubectl_prints(["delete", "namespace", RELEASE_NAMESPACE]);
    let get = [
        "get",
        "validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles",
        "-l",
        "app.kubernetes.io/instance=gmsa",
        "-o",
    ];
    let uids = || cluster.kubectl_prints(get.into_iter().chain(["jsonpath={.items[*].metadata.uid}"]));
    let before = uids();
    assert_eq!(before.split(' ').count(), 4);
    let rules = release.get("clusterrole/gmsa")["rules"].clone();
    let change = r#"{"rules": []}"#;
    cluster.kubectl_prints(["patch", "clusterrole", "gmsa", "--type=merge", "--patch", change]);
    let tool = Tool::new(&cluster);
    let (report, code) = tool.gmsa("doctor");
    let mut lines = report.lines().map(str::trim_start).skip_while(|line| !line.ends_with(" [webhook-gone]"));
    let install = format!("helm install gmsa CHART -n {RELEASE_NAMESPACE} --create-namespace --force-conflicts");
    assert_eq!((lines.next().is_some(), code), (true, 1), "{report}");
    let remedy = format!(
        "-> The record of the release was deleted with it. Install it again, with the values of before: `{install}`."
    );
    assert_eq!(lines.next(), Some(remedy.as_str()));
    printed(cluster.command("bash").args(["-ec", &install.replace("CHART", CHART)]).output().unwrap());
    assert_eq!(uids(), before);
    assert_eq!(release.get("clusterrole/gmsa")["rules"], rules);
    assert_eq!(release.get("deployment/gmsa")["spec"]["replicas"], 2);
    release.helm().prints(["upgrade", "gmsa", CHART, "--namespace", RELEASE_NAMESPACE, "--set", "replicaCount=3"]);
    assert_eq!(release.get("deployment/gmsa")["spec"]["replicas"], 3);
}

/// What pods of before are found by, and have their rights by, would change before they are replaced.
#[test]
fn a_release_keeps_its_name_its_namespace_and_its_service_account() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    cluster.create_namespace("other");
    let instead = "so pods that use GMSA would be refused until the new ones are ready: install a second release under another name with the new value, then uninstall this one";
    let account = "and the pods of before would lose their rights";
    let name = |to: &str| {
        format!(
            "the name of all objects changes from gmsa to {to} (nameOverride, fullnameOverride), and no pod runs yet under the new one"
        )
    };
    for (values, change) in [
        ("fullnameOverride=other", name("other")),
        ("nameOverride=web", name("gmsa-web")),
        (
            "namespaceOverride=other",
            "the namespace changes from windows to other (namespaceOverride), where no pod runs yet".to_owned(),
        ),
        (
            "serviceAccount.name=other",
            format!(
                "the service account changes from gmsa to other (serviceAccount.name, serviceAccount.create), {account}"
            ),
        ),
        (
            "serviceAccount.create=false",
            format!(
                "the service account changes from gmsa to default (serviceAccount.name, serviceAccount.create), {account}"
            ),
        ),
    ] {
        let said =
            release.helm().refuses(["upgrade", "gmsa", CHART, "--namespace", RELEASE_NAMESPACE, "--set", values]);
        assert!(said.trim().ends_with(&format!("): {change}, {instead}")), "{said}");
    }
    // And the way that is named.
    let args = ["--namespace", RELEASE_NAMESPACE, "--set", "serviceAccount.name=other"];
    release.helm().prints(["install", "second", CHART].into_iter().chain(args));
    release.helm().prints(["uninstall", "gmsa", "--namespace", RELEASE_NAMESPACE]);
}

/// Objects in another namespace come late: without it the release would end in the middle.
#[test]
fn a_namespace_that_is_not_there_is_named_before_anything_is_changed() {
    let cluster = Cluster::start();
    for namespace in [RELEASE_NAMESPACE, "leaving"] {
        cluster.create_namespace(namespace);
    }
    // It stays as long as this finalizer does.
    let config_map = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": "leaving", "finalizers": ["example.com/held"]}}"#;
    cluster.apply(config_map);
    cluster.kubectl_prints(["delete", "namespace", "leaving", "--wait=false"]);
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let domain = "domain.dnsName=a.example.com,domain.netBiosName=A,domain.guid=244818ae-87ac-4fcd-92ec-e79e5252348a,domain.sid=S-1-5-21-1-2-3";
    for (chart, values, expected) in [
        (
            CHART,
            "dashboard.enabled=true,dashboard.namespace=nowhere".to_owned(),
            "dashboard.namespace: there is no namespace nowhere: create it first",
        ),
        (
            CHART,
            "namespaceOverride=nowhere".to_owned(),
            "namespaceOverride: there is no namespace nowhere: create it first",
        ),
        (
            CHART,
            "dashboard.enabled=true,dashboard.namespace=leaving".to_owned(),
            "dashboard.namespace: the namespace leaving is being deleted: wait until it is gone, and create it again",
        ),
        (
            "charts/gmsa-accounts",
            format!("{domain},accounts[0].account=web,accounts[0].grants={{leaving:default}}"),
            "accounts[0]: grant \"leaving:default\": the namespace leaving is being deleted: remove the grant, or wait until the namespace is gone and create it again",
        ),
    ] {
        let said = helm.refuses(["install", "gmsa", chart, "--namespace", RELEASE_NAMESPACE, "--set", &values]);
        assert_eq!(said.trim().rsplit_once("): ").unwrap().1, expected);
    }
    assert_eq!(
        cluster.kubectl_prints(["get", "clusterroles", "-l", "app.kubernetes.io/instance=gmsa", "-o", "name"]),
        ""
    );
}

/// As docs/certificates.md says: an immutable Secret is deleted, and the next upgrade brings another one, which the replica that runs fills.
#[test]
fn an_immutable_secret_is_replaced() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    let _replica = release.start_replica();
    let secret = |args: &[&str]| {
        let secret = ["secret", "gmsa-tls", "--namespace", RELEASE_NAMESPACE];
        complaint(cluster.kubectl(args[..1].iter().copied().chain(secret).chain(args[1..].iter().copied())))
    };
    assert_eq!(secret(&["patch", "--patch", r#"{"immutable": true}"#]), None);
    let said = secret(&["patch", "--patch", r#"{"data": {"tls.crt": "YQ=="}}"#]).unwrap();
    assert!(said.contains("field is immutable when `immutable` is set"), "{said}");
    assert_eq!(secret(&["delete"]), None);
    release.upgrade("replicaCount=2");
    cluster.until("the Secret is filled", || release.get("secret/gmsa-tls")["data"]["tls.crt"].is_string());
    assert_eq!(release.get("secret/gmsa-tls").get("immutable"), None);
}

/// What docs/install.md says of fields that others own.
#[test]
fn after_kubectl_scale_an_upgrade_and_a_rollback_take_the_field_back() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    let run =
        |args: &[&str]| complaint(release.helm().run(args.iter().chain(&["--namespace", RELEASE_NAMESPACE]).copied()));
    let replicas = || release.get("deployment/gmsa")["spec"]["replicas"].clone();
    let conflict = "conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas";
    for command in [&["upgrade", "gmsa", CHART, "--reuse-values"][..], &["rollback", "gmsa", "1"]] {
        cluster.kubectl_prints(["scale", "deployment/gmsa", "--replicas=5", "--namespace", RELEASE_NAMESPACE]);
        let said = run(command).unwrap();
        assert!(said.contains(conflict), "{said}");
        assert_eq!(replicas(), 5);
        assert_eq!(run(&[command, &["--force-conflicts"]].concat()), None);
        assert_eq!(replicas(), 2);
    }
}

/// Somebody who may do everything, and is no administrator of the static policies, changes nothing: neither half an upgrade nor half an uninstall.
#[test]
fn who_is_no_administrator_of_the_static_policies_changes_nothing() {
    let mut cluster = Cluster::start();
    cluster.load_static_policies(&static_policies(&[]));
    let policies = "staticPolicies.enabled=true,staticPolicies.admins.users={admin}";
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let args = ["--namespace", RELEASE_NAMESPACE, "--set", policies];
    let as_admin = |command: &[&str]| printed(helm.run(command.iter().chain(&args).copied()));
    let other = ["--kube-as-user", "other", "--kube-as-group", "system:masters", "--namespace", RELEASE_NAMESPACE];
    let as_other = |command: &[&str]| complaint(helm.run(command.iter().chain(&other).copied())).unwrap();
    let versions = || {
        let kinds = "deployments,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,poddisruptionbudgets,\
                     mutatingwebhookconfigurations,validatingwebhookconfigurations";
        let list =
            ["get", kinds, "--namespace", RELEASE_NAMESPACE, "-l", "app.kubernetes.io/instance=gmsa", "-o", "json"];
        let list: Value = serde_json::from_str(&cluster.kubectl_prints(list)).unwrap();
        let of = |object: &Value| {
            [&object["kind"], &object["metadata"]["name"], &object["metadata"]["generation"]].map(ToString::to_string)
        };
        list["items"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let refusal = "user \"other\" may not create validatingwebhookconfigurations/gmsa-administrator: only the administrators that the static policies of the control \
                   plane name may";

    // Nothing of an install.
    cluster.create_namespace(RELEASE_NAMESPACE);
    let said = as_other(&["install", "gmsa", CHART, "--set", policies]);
    assert!(said.ends_with(refusal), "{said}");
    assert_eq!(versions(), Vec::<[String; 3]>::new());
    as_admin(&["upgrade", "--install", "gmsa", CHART]);
    as_admin(&["upgrade", "gmsa", CHART, "--set", "webhooks.timeoutSeconds=7"]);
    let before = versions();
    assert_eq!(before.len(), 11);
    for command in [
        &["upgrade", "gmsa", CHART, "--set", policies, "--set", "replicaCount=4"][..],
        &["rollback", "gmsa", "2"],
        &["uninstall", "gmsa"],
    ] {
        let said = as_other(command);
        assert!(said.ends_with(refusal), "{command:?}: {said}");
        assert_eq!(versions(), before, "{command:?}");
    }
    let last = || {
        let list = helm.prints(["history", "gmsa", "--namespace", RELEASE_NAMESPACE, "-o", "json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        list.as_array().unwrap().last().unwrap()["revision"].to_string()
    };
    // As docs/static-policies.md says: what Helm has noted of the attempts is put right by an administrator's rollback.
    helm.prints(["rollback", "gmsa", "3", "--namespace", RELEASE_NAMESPACE]);
    as_admin(&["upgrade", "gmsa", CHART, "--set", "replicaCount=4"]);

    // Half an uninstall, as without the hook: the same brings back what is gone.
    let said = as_other(&["uninstall", "gmsa", "--no-hooks"]);
    assert!(said.contains("failed to delete release: gmsa"), "{said}");
    assert!(!versions().iter().any(|[kind, ..]| kind == "\"Deployment\"") && !versions().is_empty());
    helm.prints(["rollback", "gmsa", &last(), "--namespace", RELEASE_NAMESPACE]);
    assert_eq!(versions().len(), before.len());
    helm.prints(["uninstall", "gmsa", "--namespace", RELEASE_NAMESPACE]);
    assert_eq!(versions(), Vec::<[String; 3]>::new());
}

//! From a release of the Go webhook's chart to this chart, in place, and back; and what an uninstall leaves.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    objects::define_foreign_kinds,
};

/// A chart of our own that makes what the Go webhook's chart makes.
const GO_RELEASE: &str = "tests/install/go-release";
const NAMESPACE: &str = "windows";
const IMAGE: [&str; 2] = ["--set", "image.repository=registry.example.com/gmsa-webhook,image.tag=0.1.0"];
/// A CA certificate as far as the API server looks into one.
const CA: &str = include_str!("ca.pem.base64");

/// A credential spec of the release's own, as users of that chart set it.
const CREDENTIAL: [&str; 4] = [
    "--set",
    "credential.enabled=true,credential.domainJoinConfig.dnsName=corp.example.com,credential.domainJoinConfig.dnsTreeName=example.com,\
     credential.domainJoinConfig.guid=244818ae-87ac-4fcd-92ec-e79e5252348a",
    "--set",
    "credential.domainJoinConfig.machineAccountName=Web_App1,credential.domainJoinConfig.netBiosName=CORP,\
     credential.domainJoinConfig.sid=S-1-5-21-2126449477-2524075714-3094792973",
];

struct Release<'a> {
    cluster: &'a Cluster,
    helm: Helm,
    name: &'static str,
}

impl<'a> Release<'a> {
    fn install(cluster: &'a Cluster, name: &'static str, args: &[&str]) -> Self {
        let release = Self { cluster, helm: Helm::of_cluster(&cluster.kubeconfig()), name };
        release.run(&["install", name, GO_RELEASE, "--create-namespace"], args);
        release
    }

    fn run(&self, command: &[&str], args: &[&str]) -> String {
        self.helm.prints(command.iter().chain(&["--namespace", NAMESPACE]).chain(args).copied())
    }

    fn upgrade(&self, args: &[&str]) -> String {
        self.run(&["upgrade", self.name, CHART], args)
    }

    fn get(&self, object: &str) -> Value {
        let json = self.cluster.kubectl_prints(["get", object, "--namespace", NAMESPACE, "-o", "json"]);
        serde_json::from_str(&json).unwrap()
    }

    fn exists(&self, object: &str) -> bool {
        self.cluster.kubectl(["get", object, "--namespace", NAMESPACE]).status.success()
    }

    /// What must still be the same objects after an upgrade.
    fn identities(&self, objects: &[String]) -> String {
        let uids = ["--namespace", NAMESPACE, "-o", "jsonpath={range .items[*]}{.metadata.uid} {end}"];
        let uids =
            self.cluster.kubectl_prints(["get"].into_iter().chain(objects.iter().map(String::as_str)).chain(uids));
        assert_eq!(uids.split_whitespace().count(), objects.len(), "{objects:?}: {uids}");
        uids
    }

    fn ca_bundle(&self, kind: &str) -> Value {
        self.get(&format!("{kind}webhookconfiguration/{}", self.name))["webhooks"][0]["clientConfig"]["caBundle"]
            .clone()
    }

    /// Writes a `caBundle` as cert-manager does.
    fn inject_ca(&self, kind: &str) {
        let patch = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA.trim()}]);
        let configuration = format!("{kind}webhookconfiguration/{}", self.name);
        self.cluster.kubectl_prints(["patch", &configuration, "--type=json", "--patch", &patch.to_string()]);
    }
}

fn kept(name: &str) -> Vec<String> {
    ["deployment", "service", "serviceaccount", "clusterrole", "clusterrolebinding"]
        .into_iter()
        .chain(["mutatingwebhookconfiguration", "validatingwebhookconfiguration"])
        .map(|kind| format!("{kind}/{name}"))
        .collect()
}

#[test]
fn a_release_of_the_go_chart_is_upgraded_in_place() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    with_cert_manager_and_reused_values(&cluster);
    without_cert_manager_and_reset_values(&cluster);
    with_blank_values(&cluster);
    the_crd_is_brought_up_to_date(&cluster);
}

fn with_cert_manager_and_reused_values(cluster: &Cluster) {
    let release = Release::install(cluster, "gmsa", &CREDENTIAL);
    let mut objects = kept("gmsa");
    objects.extend(
        ["issuers.cert-manager.io/gmsa", "certificates.cert-manager.io/gmsa", "certificates.cert-manager.io/gmsa-ca"]
            .map(str::to_owned),
    );
    objects.push("gmsacredentialspec/web-app1".to_owned());
    let before = release.identities(&objects);
    let spec = release.get("gmsacredentialspec/web-app1")["credspec"].clone();
    for kind in ["mutating", "validating"] {
        release.inject_ca(kind);
    }

    let refused = release.helm.refuses(["upgrade", "gmsa", CHART, "--namespace", NAMESPACE, "--reuse-values"]);
    assert!(
        refused.contains("is the Go webhook's, and this chart runs another program: add --set image.repository="),
        "{refused}"
    );
    release.upgrade(&["--reuse-values", IMAGE[0], IMAGE[1]]);

    assert_eq!(release.identities(&objects), before);
    // An issuer in the namespace signs the same CA, whose key stays, from now on.
    assert!(
        !release.exists("clusterissuers.cert-manager.io/gmsa-ca") && release.exists("issuers.cert-manager.io/gmsa-ca")
    );
    let issuer = &release.get("certificates.cert-manager.io/gmsa-ca")["spec"];
    assert_eq!(
        (&issuer["issuerRef"]["kind"], &issuer["privateKey"]["rotationPolicy"]),
        (&json!("Issuer"), &json!("Never"))
    );
    assert_eq!(release.get("gmsacredentialspec/web-app1")["credspec"], spec);
    for kind in ["mutating", "validating"] {
        assert_eq!(release.ca_bundle(kind), json!(CA.trim()), "{kind}");
    }
    let deployment = release.get("deployment/gmsa");
    assert_eq!(deployment["spec"]["selector"], json!({"matchLabels": {"app": "gmsa"}}));
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/gmsa-webhook:0.1.0");
    assert_eq!(pod["containers"][0]["env"].as_array().unwrap().len(), 9, "{}", pod["containers"][0]["env"]);
    assert_eq!(
        pod["volumes"],
        json!([{"name": "tls", "secret": {"secretName": "gmsa-server-cert", "defaultMode": 420, "items": [
            {"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}
        ]}}])
    );
    // Pods of the Go webhook, which have no named port, stay reachable while they are replaced.
    let ports = release.get("service/gmsa")["spec"]["ports"].clone();
    assert_eq!(ports, json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}]));
    let webhook = release.get("mutatingwebhookconfiguration/gmsa")["webhooks"][0].clone();
    assert_eq!(webhook["namespaceSelector"], json!({}));
    assert!(
        webhook["matchConditions"][0]["name"] == "uses-gmsa" && release.exists("mutatingwebhookconfiguration/zz-gmsa")
    );

    // Once more, with nothing changed: what the cluster then holds is the same.
    let first = release.get("deployment/gmsa")["spec"].clone();
    release.upgrade(&["--reuse-values"]);
    assert_eq!(release.get("deployment/gmsa")["spec"], first);

    // And back.
    release.run(&["rollback", "gmsa", "1"], &[]);
    assert_eq!(release.identities(&objects), before);
    let deployment = release.get("deployment/gmsa");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0");
    assert_eq!(container["ports"], json!([{"containerPort": 443, "protocol": "TCP"}]));
    assert_eq!(container.get("livenessProbe"), None);
    assert!(!release.exists("mutatingwebhookconfiguration/zz-gmsa"));
    assert_eq!(release.ca_bundle("validating"), json!(CA.trim()));

    // To the webhook's own certificate: what the old pods are trusted by stays until the webhook itself takes it away.
    release.upgrade(&[&["--reset-values"], &IMAGE[..], &CREDENTIAL[..]].concat());
    assert_eq!(release.ca_bundle("mutating"), json!(CA.trim()));
    assert_eq!(
        release.get("mutatingwebhookconfiguration/gmsa")["metadata"]["annotations"]
            .get("cert-manager.io/inject-ca-from"),
        None
    );
    assert!(!release.exists("certificates.cert-manager.io/gmsa") && release.exists("secret/gmsa-tls"));
    what_the_webhook_writes_stays(&release);

    // The credential spec is no longer part of the release, and yet there.
    assert!(release.exists("gmsacredentialspec/web-app1"));
    release.run(&["uninstall", "gmsa"], &[]);
    assert!(release.exists("gmsacredentialspec/web-app1"));
    assert!(!release.exists("deployment/gmsa") && !release.exists("secret/gmsa-tls"));
}

/// The Secret's data and the bundles are the webhook's: an upgrade leaves them alone.
fn what_the_webhook_writes_stays(release: &Release<'_>) {
    let data = json!({"data": {"ca.key": "a2V5"}}).to_string();
    release.cluster.kubectl_prints(["patch", "secret", "gmsa-tls", "--namespace", NAMESPACE, "--patch", &data]);
    let patch = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA.trim()}]).to_string();
    release.cluster.kubectl_prints(["patch", "mutatingwebhookconfiguration/zz-gmsa", "--type=json", "--patch", &patch]);
    release.upgrade(&[IMAGE[0], IMAGE[1], "--set", "replicaCount=3"]);
    assert_eq!(release.get("secret/gmsa-tls")["data"], json!({"ca.key": "a2V5"}));
    let last = release.get("mutatingwebhookconfiguration/zz-gmsa");
    assert_eq!(last["webhooks"][0]["clientConfig"]["caBundle"], json!(CA.trim()));
    assert_eq!(release.ca_bundle("validating"), json!(CA.trim()));
}

fn without_cert_manager_and_reset_values(cluster: &Cluster) {
    let bundle = format!("certificates.certManager.enabled=false,certificates.caBundle={}", CA.trim());
    let release = Release::install(cluster, "own", &["--set", &bundle, "--set", "containerPort=8443"]);
    let before = release.identities(&kept("own"));

    release.upgrade(&["--reset-values", "--set", &bundle, "--set-string", "containerPort=8443", IMAGE[0], IMAGE[1]]);
    assert_eq!(release.identities(&kept("own")), before);
    for kind in ["mutating", "validating"] {
        assert_eq!(release.ca_bundle(kind), json!(CA.trim()), "{kind}");
    }
    assert_eq!(release.get("service/own")["spec"]["ports"][0]["targetPort"], "https");

    release.run(&["rollback", "own"], &[]);
    assert_eq!(release.identities(&kept("own")), before);
    assert_eq!(
        release.get("service/own")["spec"]["ports"],
        json!([{"port": 443, "protocol": "TCP", "targetPort": 8443}])
    );
    release.run(&["uninstall", "own"], &[]);
}

/// Values that the Go webhook's chart took with nothing behind them: they mean the defaults, whether they are reset or reused.
fn with_blank_values(cluster: &Cluster) {
    let file = cluster.folder().join("blank.yaml");
    let values = "replicaCount:\npodDisruptionBudget:\ntolerations:\nqps:\ncredential:\ncertificates: {certManager: {enabled: true}, secretName: }\n";
    fs::write(&file, values).unwrap();
    let blank = ["--values", file.to_str().unwrap()];
    let release = Release::install(cluster, "blank", &["--set", "replicaCount=1"]);
    let before = release.identities(&kept("blank"));
    let spec = || release.get("deployment/blank")["spec"].clone();
    release.upgrade(&[&["--reset-values", "--set", "containerPort=443"], &blank[..], &IMAGE[..]].concat());
    assert_eq!(release.identities(&kept("blank")), before);
    assert_eq!(
        (&spec()["replicas"], &spec()["template"]["spec"]["terminationGracePeriodSeconds"]),
        (&json!(2), &json!(30))
    );
    let reset = spec();
    release.upgrade(&[&["--reuse-values"], &blank[..]].concat());
    assert_eq!(spec(), reset);
    release.upgrade(&["--reuse-values", "--set", "replicaCount=null,resources=null"]);
    assert_eq!(spec(), reset);
    release.run(&["rollback", "blank", "1"], &[]);
    assert_eq!(release.identities(&kept("blank")), before);
    release.run(&["uninstall", "blank"], &[]);
}

/// Helm leaves a CRD as it found it; one command, from the documentation, brings the new one, and loses nothing.
fn the_crd_is_brought_up_to_date(cluster: &Cluster) {
    let spec =
        cluster.kubectl_prints(["get", "gmsacredentialspec", "web-app1", "-o", "jsonpath={.metadata.uid}{.credspec}"]);
    assert!(!cluster.kubectl(["get", "gmsa"]).status.success(), "the old CRD has no short name");
    cluster.kubectl_prints([
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        "charts/gmsa-webhook/crds/gmsacredentialspecs.yaml",
    ]);
    cluster.until("the short name is known", || cluster.kubectl(["get", "gmsa"]).status.success());
    let after = cluster.kubectl_prints(["get", "gmsa", "web-app1", "-o", "jsonpath={.metadata.uid}{.credspec}"]);
    assert_eq!(after, spec);
}

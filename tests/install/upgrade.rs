//! From a release of the Go webhook's chart to this chart, in place, and back; and what an uninstall leaves.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    desk::CA,
    helm::CHART,
    objects::define_foreign_kinds,
    release::{GO_RELEASE, configurations, install, own_ca, publish},
};

const IMAGE: &str = "--values tests/install/objects/image.yaml";
/// A credential spec of the release's own.
const CREDENTIAL: &str = "--values tests/install/objects/go-credential.yaml";
/// What this chart and the other one both make.
const KEPT: &str = "deployment/gmsa service/gmsa serviceaccount/gmsa clusterrole/gmsa clusterrolebinding/gmsa \
                    mutatingwebhookconfiguration/gmsa validatingwebhookconfiguration/gmsa";
/// What only the Go webhook's chart makes, with cert-manager and a credential spec.
const WITH_CERT_MANAGER: &str = "issuers.cert-manager.io/gmsa certificates.cert-manager.io/gmsa \
                                 certificates.cert-manager.io/gmsa-ca gmsacredentialspec/web-app1";

/// The release `gmsa`, of the Go webhook's chart at first.
struct Release<'a>(&'a Cluster);

impl<'a> Release<'a> {
    fn install(cluster: &'a Cluster, args: &str) -> Self {
        install(cluster, "gmsa", GO_RELEASE, args);
        Self(cluster)
    }

    fn upgrade(&self, args: &str) {
        self.0.helm_prints(&format!("upgrade gmsa {CHART} -n windows {args}"));
    }

    fn get(&self, object: &str) -> Value {
        self.0.get(&format!("{object} -n windows"))
    }

    fn exists(&self, object: &str) -> bool {
        self.0.exists(&format!("{object} -n windows"))
    }

    fn spec(&self) -> Value {
        self.get("deployment/gmsa")["spec"].take()
    }

    /// The ports of its Service.
    fn ports(&self) -> Value {
        self.get("service/gmsa")["spec"]["ports"].take()
    }

    /// What must still be the same objects after an upgrade.
    fn identities(&self, more: &str) -> Vec<Value> {
        let objects = self.0.list(&format!("{KEPT} {more} -n windows"));
        objects.into_iter().map(|mut object| object["metadata"]["uid"].take()).collect()
    }

    /// The API server trusts what it trusted.
    fn assert_trusted(&self) {
        for kind in ["mutating", "validating"] {
            let configuration = self.get(&format!("{kind}webhookconfiguration/gmsa"));
            assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], CA, "{kind}");
        }
    }

    fn uninstall(&self) {
        self.0.helm_prints("uninstall gmsa -n windows");
    }
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
    let release = Release::install(cluster, CREDENTIAL);
    let identities = || release.identities(WITH_CERT_MANAGER);
    let before = identities();
    let credspec = || release.get("gmsacredentialspec/web-app1")["credspec"].take();
    let credspec_before = credspec();
    for kind in ["mutating", "validating"] {
        publish(cluster, &format!("{kind}webhookconfiguration/gmsa"), CA);
    }

    let refused = cluster.helm_refuses(&format!("upgrade gmsa {CHART} -n windows --reuse-values"));
    let program = "is the Go webhook's, and this chart runs another program: add --set image.repository=";
    assert!(refused.contains(program), "{refused}");
    release.upgrade(&format!("--reuse-values {IMAGE}"));

    assert_eq!(identities(), before);
    // An issuer in the namespace signs the same CA, whose key stays, from now on.
    assert!(!release.exists("clusterissuers.cert-manager.io/gmsa-ca"));
    assert!(release.exists("issuers.cert-manager.io/gmsa-ca"));
    let issuer = &release.get("certificates.cert-manager.io/gmsa-ca")["spec"];
    assert_eq!([&issuer["issuerRef"]["kind"], &issuer["privateKey"]["rotationPolicy"]], ["Issuer", "Never"]);
    assert_eq!(credspec(), credspec_before);
    release.assert_trusted();
    let upgraded = release.spec();
    assert_eq!(upgraded["selector"], json!({"matchLabels": {"app": "gmsa"}}));
    let pod = &upgraded["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/gmsa-webhook:0.1.0");
    let names: Vec<_> =
        pod["containers"][0]["env"].as_array().unwrap().iter().map(|variable| &variable["name"]).collect();
    assert_eq!(names, ["HTTPS_PORT", "ADMIN_LISTEN", "LOG_FORMAT", "TLS_CRT", "TLS_KEY", "BURST", "QPS"]);
    let items = json!([{"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}]);
    let secret = json!({"secretName": "gmsa-server-cert", "defaultMode": 420, "items": items});
    assert_eq!(pod["volumes"], json!([{"name": "tls", "secret": secret}]));
    // Pods of the Go webhook, which have no named port, stay reachable while they are replaced.
    let port = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}]);
    assert_eq!(release.ports(), port);
    let webhook = release.get("mutatingwebhookconfiguration/gmsa")["webhooks"][0].take();
    let has_conditions = cluster.has(Feature::MatchConditions);
    assert_eq!(webhook["namespaceSelector"] == json!({}), has_conditions, "{webhook}");
    assert_eq!(webhook["matchConditions"][0]["name"] == "uses-gmsa", has_conditions, "{webhook}");
    assert_eq!(release.exists("mutatingwebhookconfiguration/zz-gmsa"), has_conditions);

    // Once more, with nothing changed: what the cluster then holds is the same.
    release.upgrade("--reuse-values");
    assert_eq!(release.spec(), upgraded);

    // And back.
    cluster.helm_prints("rollback gmsa 1 -n windows");
    assert_eq!(identities(), before);
    let container = release.spec()["template"]["spec"]["containers"][0].take();
    assert_eq!(container["image"], "registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0");
    assert_eq!(container["ports"], json!([{"containerPort": 443, "protocol": "TCP"}]));
    assert_eq!(container.get("livenessProbe"), None);
    assert!(!release.exists("mutatingwebhookconfiguration/zz-gmsa"));
    release.assert_trusted();

    // To the webhook's own certificate: what the old pods are trusted by stays until the webhook itself takes it away.
    release.upgrade(&format!("--reset-values {IMAGE} {CREDENTIAL}"));
    release.assert_trusted();
    let annotations = release.get("mutatingwebhookconfiguration/gmsa")["metadata"]["annotations"].take();
    assert_eq!(annotations.get("cert-manager.io/inject-ca-from"), None);
    assert!(!release.exists("certificates.cert-manager.io/gmsa") && release.exists("secret/gmsa-tls"));

    // The Secret's data and the bundles are the webhook's: an upgrade leaves them alone.
    let written = json!({"data": {"ca.key": "a2V5"}});
    cluster.change("secret gmsa-tls -n windows", &written);
    let last = configurations(cluster).into_iter().rfind(|name| name.starts_with("mutating")).unwrap();
    publish(cluster, last, CA);
    release.upgrade(&format!("{IMAGE} --set replicaCount=3"));
    assert_eq!(release.get("secret/gmsa-tls")["data"], written["data"]);
    let last = release.get(last);
    assert_eq!(last["webhooks"][0]["clientConfig"]["caBundle"], CA);
    release.assert_trusted();

    // The credential spec is no longer part of the release, and yet there.
    assert!(release.exists("gmsacredentialspec/web-app1"));
    release.uninstall();
    assert!(release.exists("gmsacredentialspec/web-app1"));
    assert!(!release.exists("deployment/gmsa") && !release.exists("secret/gmsa-tls"));
}

fn without_cert_manager_and_reset_values(cluster: &Cluster) {
    let bundle = own_ca();
    let release = Release::install(cluster, &format!("{bundle} --set containerPort=8443"));
    let before = release.identities("");

    release.upgrade(&format!("--reset-values {bundle} --set-string containerPort=8443 {IMAGE}"));
    assert_eq!(release.identities(""), before);
    release.assert_trusted();
    assert_eq!(release.ports()[0]["targetPort"], "https");

    cluster.helm_prints("rollback gmsa -n windows");
    assert_eq!(release.identities(""), before);
    assert_eq!(release.ports(), json!([{"port": 443, "protocol": "TCP", "targetPort": 8443}]));
    release.uninstall();
}

/// Values that the Go webhook's chart took with nothing behind them: they mean the defaults, whether they are reset or reused.
fn with_blank_values(cluster: &Cluster) {
    let blank = "--values tests/install/objects/blank.yaml";
    let release = Release::install(cluster, "--set replicaCount=1");
    let before = release.identities("");
    release.upgrade(&format!("--reset-values --set containerPort=443 {blank} {IMAGE}"));
    assert_eq!(release.identities(""), before);
    let reset = release.spec();
    assert_eq!(reset["replicas"], 2);
    assert_eq!(reset["template"]["spec"]["terminationGracePeriodSeconds"], 30);
    for reused in [blank, "--set replicaCount=null,resources=null"] {
        release.upgrade(&format!("--reuse-values {reused}"));
        assert_eq!(release.spec(), reset, "{reused}");
    }
    cluster.helm_prints("rollback gmsa 1 -n windows");
    assert_eq!(release.identities(""), before);
    release.uninstall();
}

/// Helm leaves a CRD as it found it; one command, from the documentation, brings the new one, and loses nothing.
fn the_crd_is_brought_up_to_date(cluster: &Cluster) {
    let state =
        || (cluster.uid("gmsacredentialspec web-app1"), cluster.get("gmsacredentialspec web-app1")["credspec"].take());
    let before = state();
    assert!(!cluster.exists("gmsa"), "the old CRD has no short name");
    let crd = "charts/gmsa-webhook/crds/gmsacredentialspecs.yaml";
    cluster.prints(&format!("apply --server-side --force-conflicts -f {crd}"));
    cluster.until("the short name is known", || cluster.exists("gmsa"));
    assert_eq!(state(), before);
}

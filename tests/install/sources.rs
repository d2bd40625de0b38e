//! From one source of the certificate to another: which changes the chart refuses, in which words, and that the steps it asks for keep the CA that old pods are
//! trusted by in every webhook configuration.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_edge::tls::issue::Ca;
use serde_json::json;

use crate::{
    cluster::{Cluster, Feature, complaint},
    desk::{CA, cases},
    helm::CHART,
    objects::define_foreign_kinds,
    release::{ca_bundles, configurations, publish},
};

const PUBLISHED: &str = "certificates.mode=cert-manager,certificates.certManager.injectCa=false";

/// The sources, and the values that choose them.
const SOURCES: [(&str, &str); 5] = [
    ("self-managed", "certificates.mode=self-managed"),
    ("secret", "certificates.mode=secret"),
    ("cert-manager, published", PUBLISHED),
    ("cert-manager", "certificates.mode=cert-manager"),
    ("caBundle", "certificates.mode=secret,certificates.caBundle="),
];

/// The release `gmsa` with these values, and the CA for the empty one of them; gives back what the chart refuses with: its word in `refused/sources`.
fn helm(cluster: &Cluster, command: &str, values: &str) -> Option<String> {
    let values = if values.ends_with("aBundle=") && !values.contains("secretName") {
        format!("{values}{CA}")
    } else {
        values.to_owned()
    };
    let create = if command.starts_with("install") { "--create-namespace" } else { "" };
    let said = complaint(cluster.helm(&format!("{command} gmsa {CHART} -n windows {create} --set {values}")))?;
    let said = said.rsplit_once("): ").map_or(said.as_str(), |(_, said)| said);
    let known = cases("refused/sources").into_iter().find(|(_, sentence)| sentence == said);
    Some(known.unwrap_or_else(|| panic!("{values}: {said}")).0)
}

fn try_upgrade(cluster: &Cluster, values: &str) -> Option<String> {
    helm(cluster, "upgrade --dry-run=server", values)
}

fn upgrade(cluster: &Cluster, values: &str) {
    assert_eq!(helm(cluster, "upgrade", values), None, "{values}");
}

fn uninstall(cluster: &Cluster) {
    cluster.helm_prints("uninstall gmsa -n windows --wait");
}

/// Waits until the Deployment controller has seen the Deployment.
fn until_observed(cluster: &Cluster) {
    cluster.until("the Deployment is observed", || {
        let deployment = cluster.get("deployment/gmsa -n windows");
        let status = &deployment["status"];
        status["observedGeneration"] == deployment["metadata"]["generation"] && status["replicas"].is_number()
    });
}

/// What the chart says to a change from one source to another; `None` where it goes.
fn refusal(from: &str, to: &str) -> Option<&'static str> {
    match (from, to) {
        ("caBundle", "self-managed" | "secret" | "cert-manager, published") => Some("former"),
        // The mounted Secret is the same, so only who writes the caBundle changes.
        ("secret", "caBundle") | ("cert-manager, published", "cert-manager") => None,
        (from, "caBundle") if from != "caBundle" => Some("secret-first"),
        (from, "cert-manager") if from != "cert-manager" => Some("inject-later"),
        _ => None,
    }
}

#[test]
fn changes_that_would_leave_pods_refused_are_not_rendered() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    for (from, values) in SOURCES {
        assert_eq!(helm(&cluster, "install", values), None, "{from}");
        if from == "cert-manager" {
            for name in configurations(&cluster) {
                publish(&cluster, name, CA);
            }
        }
        until_observed(&cluster);
        for (to, values) in SOURCES {
            assert_eq!(try_upgrade(&cluster, values).as_deref(), refusal(from, to), "from {from} to {to}");
        }
        let former = try_upgrade(&cluster, "certificates.mode=self-managed,certificates.formerCaBundle=");
        assert_eq!(former.as_deref(), (from != "caBundle").then_some("former-is-over"), "{from}");
        uninstall(&cluster);
    }
}

#[test]
fn the_steps_keep_what_old_pods_are_trusted_by() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    // A CA of the webhook's own beside the one of before: what it publishes.
    let pem = String::from_utf8(STANDARD.decode(CA).unwrap()).unwrap();
    let both = STANDARD.encode(format!("{}\n{}\n", pem.trim(), pem.trim()));
    let webhooks = if cluster.has(Feature::MatchConditions) { 5 } else { 4 };
    let every = |bundle: &str| assert_eq!(ca_bundles(&cluster), vec![json!(bundle); webhooks]);

    // From a caBundle of the values to the webhook's own certificate.
    assert_eq!(helm(&cluster, "install", "certificates.mode=secret,certificates.caBundle="), None);
    every(CA);
    upgrade(&cluster, "certificates.mode=self-managed,certificates.formerCaBundle=");
    every(CA);
    for name in configurations(&cluster) {
        publish(&cluster, name, &both);
    }
    upgrade(&cluster, "certificates.mode=self-managed");
    every(&both);

    // On to cert-manager, in two steps: the second waits until all pods are replaced.
    until_observed(&cluster);
    upgrade(&cluster, PUBLISHED);
    every(&both);
    let configuration = cluster.get("validatingwebhookconfigurations/gmsa");
    assert_eq!(configuration["metadata"]["annotations"].get("cert-manager.io/inject-ca-from"), None);
    until_observed(&cluster);
    let said = try_upgrade(&cluster, "certificates.mode=cert-manager");
    assert_eq!(said.as_deref(), Some("replaced-first"));
    every(&both);
}

/// The certificate of an authority of its own.
fn authority(name: &str) -> String {
    Ca::generate(name, SystemTime::now(), Duration::from_secs(3600)).unwrap().cert_pem().to_owned()
}

/// Another Secret, another CA, a Secret that no pod could start with: what would leave pods refused is not rendered, and what keeps every pod trusted is.
#[test]
fn another_ca_and_another_secret_take_the_steps_that_are_named() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let [old, new] = ["old", "new"].map(authority);
    cluster.create_namespace("windows");
    for (name, data) in [
        ("one", json!({"tls.crt": "a", "tls.key": "b", "ca.crt": old})),
        ("two", json!({"tls.crt": "a", "tls.key": "b", "ca.crt": new})),
        ("bare", json!({"tls.crt": "a", "tls.key": "b"})),
        ("without-key", json!({"tls.crt": "a"})),
    ] {
        let metadata = json!({"name": name, "namespace": "windows"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        cluster.apply(&secret.to_string());
    }
    let values = |secret: &str, bundle: &str| {
        let bundle = match bundle {
            "old" => old.clone(),
            "new" => new.clone(),
            "both" => format!("{old}{new}"),
            _ => String::new(),
        };
        let bundle = format!("certificates.caBundle={}", STANDARD.encode(bundle));
        format!("certificates.mode=secret,certificates.secretName={secret},{bundle}")
    };
    let without_pods = |secret: &str, bundle: &str| values(secret, bundle) + ",replicaCount=0";
    let asked = |secret: &str, bundle: &str| try_upgrade(&cluster, &values(secret, bundle));
    let assert_asked = |secret: &str, bundle: &str, expected: Option<&str>| {
        assert_eq!(asked(secret, bundle).as_deref(), expected, "{secret} {bundle}");
    };

    let dry_run = helm(&cluster, "install --dry-run=server", &values("one", "new"));
    assert_eq!(dry_run.as_deref(), Some("of-one"));
    assert_eq!(helm(&cluster, "install", &values("one", "old")), None);
    for (secret, bundle, expected) in [
        ("one", "new", Some("of-one")),
        ("two", "old", Some("of-two")),
        ("two", "new", Some("of-old-pods")),
        ("bare", "new", Some("of-old-pods")),
        ("without-key", "both", Some("lacks-key")),
        ("bare", "", Some("lacks-ca")),
        ("one", "both", None),
        ("two", "both", None),
        ("bare", "both", None),
    ] {
        assert_asked(secret, bundle, expected);
    }

    // What is installed is not refused for what a Secret says: its CA may be one that the other has signed.
    cluster.change("secret one -n windows", &json!({"stringData": {"ca.crt": new}}));
    assert_asked("one", "old", None);

    // To the other Secret, and the CA of before goes when no pod of before is left.
    upgrade(&cluster, &values("two", "both"));
    until_observed(&cluster);
    assert_asked("two", "new", Some("replaced-first"));
    upgrade(&cluster, &without_pods("two", "both"));
    cluster.until("all pods are replaced", || asked("two", "new").is_none());
    upgrade(&cluster, &without_pods("two", "new"));

    // Where the Secret does not say its CA, the one of before is all that is known.
    upgrade(&cluster, &without_pods("bare", "new"));
    assert_asked("bare", "old", Some("of-before"));
    assert_asked("bare", "both", None);
    uninstall(&cluster);

    // cert-manager's CA changes with its issuer.
    let issued = "certificates.mode=cert-manager";
    assert_eq!(helm(&cluster, "install", issued), None);
    for name in configurations(&cluster) {
        publish(&cluster, name, CA);
    }
    let named = format!("{issued},certificates.certManager.issuerRef.name=corporate");
    assert_eq!(try_upgrade(&cluster, issued), None);
    assert_eq!(try_upgrade(&cluster, &named).as_deref(), Some("another-issuer"));
    assert_eq!(try_upgrade(&cluster, &format!("{named},certificates.certManager.injectCa=false")), None);
}

//! From one source of the certificate to another: which changes the chart refuses, in which words, and that the steps it asks for keep the CA that old pods are
//! trusted by in every webhook configuration.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_webhook::tls::issue::Ca;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    helm::{CHART, Helm},
    objects::define_foreign_kinds,
};

const CA: &str = include_str!("ca.pem.base64");
const NAMESPACE: &str = "windows";

const STEPS: &str = "; docs/certificates.md lists the steps";
const FORMER: &str = "without certificates.caBundle the API server trusts no pod until the new ones are ready, so pods that use GMSA would be refused: \
                      set certificates.formerCaBundle to what certificates.caBundle was, and leave it out of the next upgrade";
const FORMER_IS_OVER: &str = "certificates.formerCaBundle would replace what the webhook has published since: it is for the one upgrade that takes \
                              certificates.caBundle away, leave it out now";
const SECRET_FIRST: &str = "with certificates.caBundle the API server would trust the new pods alone, and refuse pods that use GMSA while old ones answer: upgrade \
                            with certificates.mode=secret and no certificates.caBundle first, wait until all pods are replaced, then set certificates.caBundle";
const INJECT_LATER: &str = "cert-manager would replace the caBundle while old pods answer, so pods that use GMSA would be refused: add \
                            certificates.certManager.injectCa=false, wait until all pods are replaced, then leave it out of the next upgrade";

/// The sources, and the values that choose them.
const SOURCES: [(&str, &str); 5] = [
    ("self-managed", "certificates.mode=self-managed"),
    ("secret", "certificates.mode=secret"),
    ("cert-manager, published", "certificates.mode=cert-manager,certificates.certManager.injectCa=false"),
    ("cert-manager", "certificates.mode=cert-manager"),
    ("caBundle", "certificates.mode=secret,certificates.caBundle="),
];

struct Release<'p> {
    cluster: &'p Cluster,
    helm: Helm,
}

impl Release<'_> {
    /// Runs helm for the release, with the CA for the empty one of the values; gives back what the chart refuses with.
    fn run(&self, command: &[&str], values: &str) -> Option<String> {
        self.with(command, &values.replace("aBundle=", &format!("aBundle={}", CA.trim())))
    }

    fn with(&self, command: &[&str], values: &str) -> Option<String> {
        let args = ["--namespace", NAMESPACE, "--create-namespace", "--set", values];
        let output = self.helm.run(
            command
                .iter()
                .chain(["gmsa", CHART].iter())
                .chain(args.iter())
                .copied()
                .filter(|arg| command[0] != "upgrade" || *arg != "--create-namespace"),
        );
        let errors = String::from_utf8(output.stderr).unwrap();
        (!output.status.success())
            .then(|| errors.trim().rsplit_once("): ").unwrap_or(("", &errors)).1.trim().to_owned())
    }

    fn try_upgrade(&self, values: &str) -> Option<String> {
        self.run(&["upgrade", "--dry-run=server"], values)
    }

    fn upgrade(&self, values: &str) {
        assert_eq!(self.run(&["upgrade"], values), None, "{values}");
    }

    fn get(&self, object: &str) -> Value {
        let json = self.cluster.kubectl_prints(["get", object, "--namespace", NAMESPACE, "-o", "json"]);
        serde_json::from_str(&json).unwrap()
    }

    /// The bundles of all webhooks.
    fn bundles(&self) -> Vec<Value> {
        [
            "mutatingwebhookconfiguration/gmsa",
            "mutatingwebhookconfiguration/zz-gmsa",
            "validatingwebhookconfiguration/gmsa",
        ]
        .iter()
        .flat_map(|name| self.get(name)["webhooks"].as_array().cloned().unwrap())
        .map(|webhook| webhook["clientConfig"]["caBundle"].clone())
        .collect()
    }

    /// Writes this bundle into every webhook, as the webhook does it.
    fn publish(&self, bundle: &str) {
        for name in [
            "mutatingwebhookconfiguration/gmsa",
            "mutatingwebhookconfiguration/zz-gmsa",
            "validatingwebhookconfiguration/gmsa",
        ] {
            let webhooks = self.get(name)["webhooks"].as_array().unwrap().len();
            let field = |index| format!("/webhooks/{index}/clientConfig/caBundle");
            let patch: Vec<_> =
                (0..webhooks).map(|index| json!({"op": "add", "path": field(index), "value": bundle})).collect();
            let patch = Value::Array(patch).to_string();
            self.cluster.kubectl_prints([
                "patch",
                name,
                "--type=json",
                "--field-manager=gmsa-webhook",
                "--patch",
                &patch,
            ]);
        }
    }

    /// Waits until the Deployment controller has seen the Deployment.
    fn until_observed(&self) {
        self.cluster.until("the Deployment is observed", || {
            let deployment = self.get("deployment/gmsa");
            deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
                && deployment["status"]["replicas"].is_number()
        });
    }
}

/// What the chart says to a change from one source to another; `None` where it goes.
fn refusal(from: &str, to: &str) -> Option<&'static str> {
    match (from, to) {
        ("caBundle", "self-managed" | "secret" | "cert-manager, published") => Some(FORMER),
        // The mounted Secret is the same, so only who writes the caBundle changes.
        ("secret", "caBundle") | ("cert-manager, published", "cert-manager") => None,
        (from, "caBundle") if from != "caBundle" => Some(SECRET_FIRST),
        (from, "cert-manager") if from != "cert-manager" => Some(INJECT_LATER),
        _ => None,
    }
}

#[test]
fn changes_that_would_leave_pods_refused_are_not_rendered() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let release = Release { cluster: &cluster, helm: Helm::of_cluster(&cluster.kubeconfig()) };
    for (from, values) in SOURCES {
        assert_eq!(release.run(&["install"], values), None, "{from}");
        if from == "cert-manager" {
            release.publish(CA.trim());
        }
        release.until_observed();
        for (to, values) in SOURCES {
            let expected = refusal(from, to).map(|said| format!("{said}{STEPS}"));
            assert_eq!(release.try_upgrade(values), expected, "from {from} to {to}");
        }
        let former = "certificates.mode=self-managed,certificates.formerCaBundle=";
        let expected = (from != "caBundle").then(|| format!("{FORMER_IS_OVER}{STEPS}"));
        assert_eq!(release.try_upgrade(former), expected, "{from}");
        release.helm.prints(["uninstall", "gmsa", "--namespace", NAMESPACE, "--wait"]);
    }
}

/// A CA of the webhook's own beside the one of before: what it publishes.
fn both() -> String {
    let pem = String::from_utf8(STANDARD.decode(CA.trim()).unwrap()).unwrap();
    STANDARD.encode(format!("{}\n{}\n", pem.trim(), pem.trim()))
}

#[test]
fn the_steps_keep_what_old_pods_are_trusted_by() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let release = Release { cluster: &cluster, helm: Helm::of_cluster(&cluster.kubeconfig()) };
    let [of_before, both] = [CA.trim().to_owned(), both()];
    let every = |bundle: &str| assert_eq!(release.bundles(), vec![json!(bundle); 5]);

    // From a caBundle of the values to the webhook's own certificate.
    assert_eq!(release.run(&["install"], "certificates.mode=secret,certificates.caBundle="), None);
    every(&of_before);
    release.upgrade("certificates.mode=self-managed,certificates.formerCaBundle=");
    every(&of_before);
    release.publish(&both);
    release.upgrade("certificates.mode=self-managed");
    every(&both);

    // On to cert-manager, in two steps: the second waits until all pods are replaced.
    release.until_observed();
    release.upgrade("certificates.mode=cert-manager,certificates.certManager.injectCa=false");
    every(&both);
    let configuration = release.get("validatingwebhookconfiguration/gmsa");
    assert_eq!(configuration["metadata"]["annotations"].get("cert-manager.io/inject-ca-from"), None);
    release.until_observed();
    let said = "pods of before are still being replaced, and the CA that they are trusted by would go: wait for kubectl -n windows rollout status \
                deployment/gmsa, then upgrade again";
    assert_eq!(release.try_upgrade("certificates.mode=cert-manager").as_deref(), Some(said));
    every(&both);
}

/// The certificate of an authority of its own.
fn authority(name: &str) -> String {
    Ca::generate(name, SystemTime::now(), Duration::from_secs(3600)).unwrap().cert_pem().to_owned()
}

const OF_SECRET: &str = "certificates.caBundle has none of the CAs that ca.crt of the Secret SECRET has, so the API server would trust no pod: add them to \
                         certificates.caBundle, or remove it, and the webhook publishes ca.crt";
const OF_OLD_PODS: &str = "pods of before serve the certificate of the Secret one until they are replaced, and certificates.caBundle no longer has its CA: keep that \
                           CA in certificates.caBundle beside the new one, wait until all pods are replaced, then leave it out";
const OF_BEFORE: &str = "certificates.caBundle has none of the CAs that it had, so pods that use GMSA would be refused until every pod serves a certificate of the \
                         new one: set certificates.caBundle to both first, put the new certificate into the Secret bare, then leave the old CA out";
const ANOTHER_ISSUER: &str = "with another certificates.certManager.issuerRef cert-manager would replace the caBundle while pods still serve the certificate of \
                              before, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false and keep the issuer, wait until all \
                              pods are replaced, change the issuer in a second upgrade, and leave injectCa out of a third";

/// Another Secret, another CA, a Secret that no pod could start with: what would leave pods refused is not rendered, and what keeps every pod trusted is.
#[test]
fn another_ca_and_another_secret_take_the_steps_that_are_named() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let release = Release { cluster: &cluster, helm: Helm::of_cluster(&cluster.kubeconfig()) };
    let [old, new] = ["old", "new"].map(authority);
    cluster.create_namespace(NAMESPACE);
    for (name, keys) in [
        ("one", vec![("tls.crt", "a"), ("tls.key", "b"), ("ca.crt", &old)]),
        ("two", vec![("tls.crt", "a"), ("tls.key", "b"), ("ca.crt", &new)]),
        ("bare", vec![("tls.crt", "a"), ("tls.key", "b")]),
        ("without-key", vec![("tls.crt", "a")]),
    ] {
        let data: serde_json::Map<_, _> = keys.into_iter().map(|(key, text)| (key.to_owned(), json!(text))).collect();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}, "stringData": data});
        cluster.apply(&secret.to_string());
    }
    let values = |secret: &str, bundle: &str| {
        let bundle = match bundle {
            "old" => STANDARD.encode(&old),
            "new" => STANDARD.encode(&new),
            "both" => STANDARD.encode(format!("{old}{new}")),
            _ => String::new(),
        };
        format!("certificates.mode=secret,certificates.secretName={secret},certificates.caBundle={bundle}")
    };
    let refused = |said: &str| Some(format!("{said}{STEPS}"));
    let of_secret = |secret: &str| refused(&OF_SECRET.replace("SECRET", secret));
    let lacks = |key: &str, more: &str| {
        Some(format!("certificates.secretName: the Secret {key}, so no new pod would start: add it{more}"))
    };

    assert_eq!(release.with(&["install", "--dry-run=server"], &values("one", "new")), of_secret("one"));
    assert_eq!(release.with(&["install"], &values("one", "old")), None);
    let upgrade = |values: &str| release.with(&["upgrade", "--dry-run=server"], values);
    for (secret, bundle, expected) in [
        ("one", "new", of_secret("one")),
        ("two", "old", of_secret("two")),
        ("two", "new", refused(OF_OLD_PODS)),
        ("bare", "new", refused(OF_OLD_PODS)),
        ("without-key", "both", lacks("without-key has no tls.key", "")),
        ("bare", "", lacks("bare has no ca.crt", ", or set certificates.caBundle")),
        ("one", "both", None),
        ("two", "both", None),
        ("bare", "both", None),
    ] {
        assert_eq!(upgrade(&values(secret, bundle)), expected, "{secret} {bundle}");
    }

    // What is installed is not refused for what a Secret says: its CA may be one that the other has signed.
    let patch = json!({"stringData": {"ca.crt": &new}}).to_string();
    cluster.kubectl_prints(["patch", "secret", "one", "--namespace", NAMESPACE, "--patch", &patch]);
    assert_eq!(upgrade(&values("one", "old")), None);

    // To the other Secret, and the CA of before goes when no pod of before is left.
    assert_eq!(release.with(&["upgrade"], &values("two", "both")), None);
    release.until_observed();
    let said = upgrade(&values("two", "new")).unwrap();
    assert!(said.starts_with("pods of before are still being replaced"), "{said}");
    assert_eq!(release.with(&["upgrade"], &(values("two", "both") + ",replicaCount=0")), None);
    release.cluster.until("all pods are replaced", || upgrade(&values("two", "new")).is_none());
    assert_eq!(release.with(&["upgrade"], &(values("two", "new") + ",replicaCount=0")), None);

    // Where the Secret does not say its CA, the one of before is all that is known.
    assert_eq!(release.with(&["upgrade"], &(values("bare", "new") + ",replicaCount=0")), None);
    assert_eq!(upgrade(&values("bare", "old")), refused(OF_BEFORE));
    assert_eq!(upgrade(&values("bare", "both")), None);
    release.helm.prints(["uninstall", "gmsa", "--namespace", NAMESPACE, "--wait"]);

    // cert-manager's CA changes with its issuer.
    let issued = "certificates.mode=cert-manager";
    assert_eq!(release.with(&["install"], issued), None);
    release.publish(CA.trim());
    let named = "certificates.mode=cert-manager,certificates.certManager.issuerRef.name=corporate";
    assert_eq!(upgrade(issued), None);
    assert_eq!(upgrade(named), refused(ANOTHER_ISSUER));
    assert_eq!(upgrade(&format!("{named},certificates.certManager.injectCa=false")), None);
}

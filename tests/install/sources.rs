//! From one source of the certificate to another: which changes the chart refuses, in which words, and that the steps it asks for keep the CA that old pods are
//! trusted by in every webhook configuration.

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
    /// Runs helm for the release; gives back what the chart refuses with.
    fn run(&self, command: &[&str], values: &str) -> Option<String> {
        let values = values.replace("aBundle=", &format!("aBundle={}", CA.trim()));
        let args = ["--namespace", NAMESPACE, "--create-namespace", "--set", &values];
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
    use base64::{Engine as _, engine::general_purpose::STANDARD};
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

//! What platforms bring along: the managed webhook of AKS beside this one, and kube-system left to the guard, as GKE recommends.

use std::{fs, process::Command};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, printed},
    control_plane::{Process, free_addresses},
    desk::{CA, Desk},
    guard::denied,
    helm::{CHART, Helm},
    pods::{Options, creation, creation_in, grant, pod},
    release::{BINARY, GO_RELEASE, Release, install, own_ca},
};

const WEBHOOK: &str = "admission-webhook.windows-gmsa.sigs.k8s.io";

/// The Go webhook's configurations in kube-system, as AKS installs them: no match conditions, `failurePolicy: Fail`, its Service elsewhere than this webhook's.
/// What answers them is this webhook's program with an empty folder of credential specs, so that it refuses every pod that names one.
struct Managed<'c> {
    cluster: &'c Cluster,
    port: u16,
}

impl<'c> Managed<'c> {
    fn install(cluster: &'c Cluster) -> Self {
        let [address] = free_addresses();
        let folder = cluster.folder().join("managed");
        let mut certificate = Command::new(BINARY);
        certificate.args(["certs", "issue"]).arg(&folder).args(["--name", "aks-gmsa.kube-system.svc"]);
        printed(certificate.output().unwrap());
        let ca = BASE64_STANDARD.encode(fs::read(folder.join("ca.crt")).unwrap());
        let values = own_ca().replace(CA, &ca);
        let template = ["template", "aks-gmsa", GO_RELEASE, "-n", "kube-system"];
        let objects = Helm::new().prints(template.into_iter().chain(values.split(' ')));
        for object in objects.split("---\n").filter(|object| object.contains("WebhookConfiguration")) {
            let mut object: Value = serde_saphyr::from_str(object).unwrap();
            object["metadata"]["labels"] = json!({"kubernetes.azure.com/managedby": "aks"});
            object["webhooks"][0]["clientConfig"]["service"]["port"] = address.port().into();
            cluster.apply(&object.to_string());
        }
        cluster.prints("create service externalname aks-gmsa -n kube-system --external-name localhost");
        Self { cluster, port: address.port() }
    }

    fn start(&self) -> Process {
        let folder = self.cluster.folder().join("managed");
        let [admin] = free_addresses();
        let specs = folder.join("specs");
        fs::create_dir(&specs).unwrap();
        let mut command = Command::new(BINARY);
        command.args(["serve", "--standalone"]).arg(&specs).env_clear();
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port)).arg("--admin-listen").arg(admin.to_string());
        command.arg("--tls-cert").arg(folder.join("tls.crt")).arg("--tls-key").arg(folder.join("tls.key"));
        Process::start("managed", self.cluster.folder(), &mut command)
    }
}

#[test]
fn the_managed_webhook_of_aks_stands_beside_this_one() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "");
    grant(&cluster, "default", &["webapp1".to_owned()]);
    let mut ours = release.start_replica();
    let said = |options: Options, spec: &str| creation(&cluster, &pod("p", "pod", options, spec));
    let plain = || said(Options::Absent, "");
    let allowed = || said(Options::Name, "webapp1");
    cluster.until("this webhook fills in", || allowed().is_none());

    // Theirs is down: it stops every pod, and ours none of them.
    let managed = Managed::install(&cluster);
    cluster.until("the other is asked too", || plain().is_some());
    let theirs = format!("Post \"https://aks-gmsa.kube-system.svc:{}/mutate?timeout=10s\": ", managed.port);
    for said in [plain().unwrap(), allowed().unwrap()] {
        assert!(said.contains(&theirs) && said.ends_with("connect: connection refused"), "{said}");
    }
    // What they leave out by a label, they leave out alone: this one still judges there.
    cluster.prints("label namespace apps windows.k8s.io/disabled=true");
    cluster.until("the other leaves the namespace out", || plain().is_none());
    assert_eq!(allowed(), None);
    let denied = format!("admission webhook \"{WEBHOOK}\" denied the request: cred spec");
    let missing = said(Options::Name, "no-such").unwrap();
    assert!(missing.contains(&format!("{denied} no-such does not exist")), "{missing}");
    cluster.prints("label namespace apps --overwrite windows.k8s.io/disabled=false");

    // Both answer: both must admit, and the refusal does not say whose it is. The log does.
    let theirs = managed.start();
    cluster.until("the other answers", || plain().is_none());
    let before = ours.log().matches("denied").count();
    let refused = allowed().unwrap();
    assert!(refused.contains(&format!("{denied} webapp1 does not exist")), "{refused}");
    assert_eq!(ours.log().matches("denied").count(), before, "{}", ours.log());
    assert!(theirs.log().contains("denied"), "{}", theirs.log());

    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    // The Go webhook passes over init containers. So does the stand-in now, and the doctor, which asks about one, is not taken in by its answer.
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let uses = "exists(c, c.?securityContext.?windowsOptions.hasValue())";
        let expression = format!("!object.spec.?initContainers.orValue([]).{uses}");
        let conditions = json!([{"name": "go", "expression": expression}]);
        let change = json!([{"op": "add", "path": "/webhooks/0/matchConditions", "value": conditions}]);
        cluster.change(&format!("{kind} aks-gmsa"), &change);
    }
    let desk = Desk::new(&cluster);
    let called = || desk.outcomes("doctor", "call of /");
    cluster.until("this webhook answers for init containers", || {
        called() == ["pass call of /mutate", "pass call of /validate"]
    });
    ours.end();
    cluster.until("the doctor misses this webhook", || {
        called().first().is_some_and(|line| line.starts_with("fail call of /mutate"))
    });
}

/// With kube-system left out of the configurations, what the guard admits there is what a pod brings complete, by an account that may use it.
#[test]
fn what_kube_system_is_left_out_of_the_guard_judges() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::Guard) {
        return;
    }
    let page = fs::read_to_string("docs/platforms.md").unwrap();
    let (_, rest) = page.split_once("`webhooks.namespaceSelector: ").unwrap();
    let selector: Value = serde_saphyr::from_str(rest.split('`').next().unwrap()).unwrap();
    let values = format!("--set guard.enabled=true --set-json webhooks.namespaceSelector={selector}");
    install(&cluster, "gmsa", CHART, &values);
    let asked =
        |namespace: &str, options: Options| creation_in(&cluster, namespace, &pod("p", "pod", options, "webapp1"));
    // Nothing answers for the webhook.
    cluster.until("pods elsewhere are refused", || asked("default", Options::Name).is_some());
    assert_eq!(asked("kube-system", Options::Absent), None);
    cluster.until("the guard is in force", || asked("kube-system", Options::Both).is_some());
    for options in [Options::Name, Options::Contents, Options::Both] {
        let said = asked("kube-system", options).unwrap();
        assert!(said.contains(&denied("gmsa-guard")), "{options:?}: {said}");
    }
}

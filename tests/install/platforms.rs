//! What platforms bring along: the managed webhook of AKS beside this one, and kube-system left to the guard, as GKE recommends.

use std::{fs, process::Command};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    control_plane::{Process, free_addresses},
    helm::Helm,
    pods::{NAMESPACE, Options, creation, grant, pod},
    release::Release,
    tool::Tool,
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
        let mut certificate = Command::new(env!("CARGO_BIN_EXE_gmsa-webhook"));
        certificate.args(["certs", "issue"]).arg(&folder).args(["--name", "aks-gmsa.kube-system.svc"]);
        assert!(certificate.output().unwrap().status.success());
        let ca = BASE64_STANDARD.encode(fs::read(folder.join("ca.crt")).unwrap());
        let values = format!("certificates.certManager.enabled=false,certificates.caBundle={ca}");
        let chart = ["template", "aks-gmsa", "tests/install/go-release", "--namespace", "kube-system", "--set"];
        let objects = Helm::new().prints(chart.into_iter().chain([values.as_str()]));
        for object in objects.split("---\n").filter(|object| object.contains("WebhookConfiguration")) {
            let mut object: Value = serde_saphyr::from_str(object).unwrap();
            object["metadata"]["labels"] = json!({"kubernetes.azure.com/managedby": "aks"});
            object["webhooks"][0]["clientConfig"]["service"]["port"] = address.port().into();
            cluster.apply(&object.to_string());
        }
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "aks-gmsa", "namespace": "kube-system"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        });
        cluster.apply(&service.to_string());
        Self { cluster, port: address.port() }
    }

    fn start(&self) -> Process {
        let folder = self.cluster.folder().join("managed");
        let [admin] = free_addresses();
        let specs = folder.join("specs");
        fs::create_dir(&specs).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-webhook"));
        command.args(["serve", "--standalone"]).arg(&specs).env_clear();
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port)).arg("--admin-listen").arg(admin.to_string());
        command.arg("--tls-cert").arg(folder.join("tls.crt")).arg("--tls-key").arg(folder.join("tls.key"));
        Process::start("managed", self.cluster.folder(), &mut command)
    }
}

#[test]
fn the_managed_webhook_of_aks_stands_beside_this_one() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));
    grant(&cluster, "default", &["webapp1".to_owned()]);
    let mut ours = release.start_replica();
    let [plain, allowed, missing] =
        [(Options::Absent, "webapp1"), (Options::Name, "webapp1"), (Options::Name, "no-such")]
            .map(|(options, spec)| pod("p", "pod", options, spec));
    cluster.until("this webhook fills in", || creation(&cluster, &allowed).is_none());

    // Theirs is down: it stops every pod, and ours none of them.
    let managed = Managed::install(&cluster);
    cluster.until("the other is asked too", || creation(&cluster, &plain).is_some());
    let url = format!("https://aks-gmsa.kube-system.svc:{}", managed.port);
    for pod in [&plain, &allowed] {
        let said = creation(&cluster, pod).unwrap();
        let expected = format!(
            "Error from server (InternalError): error when creating \"STDIN\": Internal error occurred: failed calling webhook \"{WEBHOOK}\": failed to call webhook: Post \"{url}/mutate?timeout=10s\": \
             dial tcp 127.0.0.1:{}: connect: connection refused",
            managed.port
        );
        assert_eq!(said.replace("[::1]", "127.0.0.1"), expected);
    }
    // What they leave out by a label, they leave out alone: this one still judges there.
    let label = |value: &str| {
        cluster.kubectl_prints([
            "label",
            "namespace",
            NAMESPACE,
            "--overwrite",
            &format!("windows.k8s.io/disabled={value}"),
        ]);
    };
    label("true");
    cluster.until("the other leaves the namespace out", || creation(&cluster, &plain).is_none());
    assert_eq!(creation(&cluster, &allowed), None);
    let denied = format!("admission webhook \"{WEBHOOK}\" denied the request: cred spec no-such does not exist");
    let said = creation(&cluster, &missing).unwrap();
    assert!(said.contains(&denied), "{said}");
    label("false");

    // Both answer: both must admit, and the refusal does not say whose it is. The log does.
    let theirs = managed.start();
    cluster.until("the other answers", || creation(&cluster, &plain).is_none());
    let before = ours.log().matches("denied").count();
    let said = creation(&cluster, &allowed).unwrap();
    let denied = format!("admission webhook \"{WEBHOOK}\" denied the request: cred spec webapp1 does not exist");
    assert!(said.contains(&denied), "{said}");
    assert_eq!(ours.log().matches("denied").count(), before, "{}", ours.log());
    assert!(theirs.log().contains("denied"), "{}", theirs.log());

    // The Go webhook passes over init containers. So does the stand-in now, and the doctor, which asks about one, is not taken in by its answer.
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let expression =
            "!object.spec.?initContainers.orValue([]).exists(c, c.?securityContext.?windowsOptions.hasValue())";
        let condition = json!([{"op": "add", "path": "/webhooks/0/matchConditions", "value": [{"name": "go", "expression": expression}]}]);
        cluster.kubectl_prints(["patch", kind, "aks-gmsa", "--type=json", "--patch", &condition.to_string()]);
    }
    let tool = Tool::new(&cluster);
    let called = |report: &str| -> Vec<String> {
        report.lines().filter(|line| line.contains("  call of /")).map(str::to_owned).collect()
    };
    let works = |of: &str| {
        format!("pass  call of {of}the API server reaches it and trusts its certificate (dry run in default)")
    };
    cluster.until("this webhook answers for init containers", || {
        called(&tool.gmsa("doctor").0) == [works("/mutate    "), works("/validate  ")]
    });
    ours.end();
    cluster.until("the doctor misses this webhook", || {
        called(&tool.gmsa("doctor").0).first().is_some_and(|line| line.starts_with("fail  call of /mutate"))
    });
}

/// With kube-system left out of the configurations, what the guard admits there is what a pod brings complete, by an account that may use it.
#[test]
fn what_kube_system_is_left_out_of_the_guard_judges() {
    let cluster = Cluster::start();
    let page = fs::read_to_string("docs/platforms.md").unwrap();
    let (_, rest) = page.split_once("`webhooks.namespaceSelector: ").unwrap();
    let selector: Value = serde_saphyr::from_str(rest.split('`').next().unwrap()).unwrap();
    let selector = format!("webhooks.namespaceSelector={selector}");
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let install = ["install", "gmsa", "charts/gmsa-webhook", "--namespace", "windows", "--create-namespace"];
    helm.prints(install.into_iter().chain(["--set", "guard.enabled=true", "--set-json", &selector]));
    let asked = |namespace: &str, options: Options| {
        let mut pod = pod("p", "pod", options, "webapp1");
        pod["metadata"]["namespace"] = namespace.into();
        creation(&cluster, &pod)
    };
    // Nothing answers for the webhook.
    cluster.until("pods elsewhere are refused", || asked("default", Options::Name).is_some());
    assert_eq!(asked("kube-system", Options::Absent), None);
    let guard = "ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request";
    cluster.until("the guard is in force", || asked("kube-system", Options::Both).is_some());
    for (options, expected) in [
        (
            Options::Name,
            format!(
                "The pods \"p\" is invalid: : {guard}: a GMSA cred spec name has no contents, so the container would start without its identity; \
                 the mutating webhook did not run, or another one added the name after it"
            ),
        ),
        (
            Options::Contents,
            format!(
                "The pods \"p\" is invalid: : {guard}: GMSA cred spec contents are set without the name of their cred spec"
            ),
        ),
        (
            Options::Both,
            format!(
                "Error from server (Forbidden): error when creating \"STDIN\": pods \"p\" is forbidden: {guard}: service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\""
            ),
        ),
    ] {
        assert_eq!(asked("kube-system", options), Some(expected), "{options:?}");
    }
}

//! The installed release with the built binary behind its own Service: what the chart gives the webhook (arguments, environment, rights)
//! must be what it takes, and `helm test` must pass.

use std::{
    fs,
    process::{Command, Output},
    thread,
};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, complaint, printed},
    helm::Helm,
    pods::{Options, creation, grant, pod},
    release::{BINARY, RELEASE_NAMESPACE, Release, ca_bundles, configurations, container},
};

/// What is said to a pod whose service account may not use the credential spec.
pub const DENIED: &str = "service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"";
/// The matchers of the metric that alerts ask the API server for, apart from the name of the webhook.
const COUNTED: &str = "apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",";

#[test]
fn the_installed_configuration_is_what_admits_pods() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "");
    let asked = || creation(&cluster, &pod("p", "pod", Options::Name, "webapp1"));
    failed_calls_are_counted(&cluster);

    let mut replica = release.start_replica();
    cluster.until("the API server trusts the webhook", || asked().is_some_and(|said| said.contains(DENIED)));
    grant(&cluster, "default", &["webapp1".to_owned()]);
    cluster.until("the grant is in force", || asked().is_none());
    cluster.apply(&pod("web", "pod", Options::Name, "webapp1").to_string());
    assert_eq!(contents(&cluster.get("pod web -n apps"))["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    let bundles = ca_bundles(&cluster);
    let count = configurations(&cluster).len() + 2;
    assert!(bundles.len() == count && bundles.iter().all(Value::is_string), "{bundles:?}");
    a_pod_may_inspect_its_own_certificate(&cluster);
    the_test_of_the_release_passes(&release);

    replica.end();
    cluster.until("the webhook is missed", || asked().is_some());
    the_test_of_the_release_fails(&release);

    // The certificate is in the Secret: a new replica serves it, and is trusted at once.
    let _replica = release.start_replica();
    assert_eq!(ca_bundles(&cluster), bundles);
    assert_eq!(asked(), None);
    the_test_of_the_release_passes(&release);
}

/// The contents that a pod carries.
pub fn contents(pod: &Value) -> Value {
    let contents = pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"].as_str();
    contents.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

/// What alerts ask the API server for is what it counts while no replica runs.
fn failed_calls_are_counted(cluster: &Cluster) {
    let rules = Helm::new().template(["--set", "prometheusRule.enabled=true", "-s", "templates/prometheusrule.yaml"]);
    assert!(rules.contains(&format!("{COUNTED}name=~\".+[.]windows-gmsa[.]sigs[.]k8s[.]io\"")), "{rules}");
    cluster.until("the API server asks", || {
        let said = creation(cluster, &pod("p", "pod", Options::Name, "webapp1"));
        said.is_some_and(|said| said.contains("failed calling webhook"))
    });
    let metrics = cluster.prints("get --raw /metrics");
    let counted: Vec<_> = metrics.lines().filter(|line| line.starts_with(COUNTED)).collect();
    let webhook = format!("{COUNTED}name=\"admission-webhook.windows-gmsa.sigs.k8s.io\",");
    assert!(!counted.is_empty() && counted.iter().all(|line| line.starts_with(&webhook)), "{counted:?}");
}

/// `certs inspect` as docs/certificates.md prints it for a pod of the release: the pod's own rights must do.
fn a_pod_may_inspect_its_own_certificate(cluster: &Cluster) {
    let page = fs::read_to_string("docs/certificates.md").unwrap();
    let (_, command) = page.split_once("exec deploy/gmsa-webhook -- /gmsa-webhook ").unwrap();
    // The page's release and its namespace are both called gmsa-webhook.
    let command = command.split("```").next().unwrap().replace('\\', " ");
    let mut command =
        command.replace("gmsa-webhook/gmsa-webhook-tls", "windows/gmsa-tls").replace("gmsa-webhook", "gmsa");
    if !cluster.has(Feature::MatchConditions) {
        command = command.replace("--webhook-configuration mutating/zz-gmsa ", "");
    }
    let mut inspect = Command::new(BINARY);
    inspect.args(command.split_whitespace()).env_clear();
    let kubeconfig = cluster.kubeconfig_of(RELEASE_NAMESPACE, "gmsa");
    let report = printed(inspect.env("KUBECONFIG", kubeconfig).output().unwrap());
    assert!(report.lines().skip(1).all(|line| line.starts_with("ok ")), "{report}");
    for configuration in configurations(cluster) {
        assert!(report.contains(&configuration.replace("webhookconfigurations", "")), "{report}");
    }
}

/// `helm test`, with this test for a kubelet: it runs what the pod says, as the pod's service account, and reports how that ended. Gives back
/// how each line of what the pod printed begins, and what helm said.
fn test_the_release(release: &Release<'_>) -> (Vec<String>, Output) {
    let cluster = release.cluster;
    // Left by an interrupted test: helm removes it before the next one.
    let uid = || cluster.kubectl("get pod gmsa-test -n windows -o jsonpath={.metadata.uid}");
    let before = uid().stdout;
    thread::scope(|scope| {
        let tested = scope.spawn(|| cluster.helm("test gmsa -n windows --timeout 60s"));
        cluster.until("helm has created the pod", || {
            let now = uid();
            now.status.success() && now.stdout != before
        });
        let spec = release.get("pod/gmsa-test")["spec"].take();
        let output = container(cluster, RELEASE_NAMESPACE, &spec, 0, BINARY.as_ref()).output().unwrap();
        let phase = if output.status.success() { "Succeeded" } else { "Failed" };
        cluster.change("pod gmsa-test -n windows --subresource=status", &json!({"status": {"phase": phase}}));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let report = String::from_utf8(output.stdout).unwrap();
        let tested = tested.join().unwrap();
        for object in ["pod", "role", "rolebinding", "serviceaccount"] {
            let get = format!("get {object}/gmsa-test -n windows");
            cluster.until("helm has removed it", || {
                complaint(cluster.kubectl(&get)).is_some_and(|said| said.contains("NotFound"))
            });
        }
        (report.lines().map(str::to_owned).collect(), tested)
    })
}

/// Nothing is left of the test, and it passed for a pod without GMSA, for three kinds of slots, and for a pod that brings contents of its own.
pub fn the_test_of_the_release_passes(release: &Release<'_>) {
    let (report, tested) = test_the_release(release);
    assert!(report.len() == 5 && report.iter().all(|line| line.starts_with("pass  ")), "{report:?}");
    let printed = printed(tested);
    assert!(printed.contains("Phase:          Succeeded"), "{printed}");
}

/// The webhook is down: the test fails, and says that the API server cannot reach it, for pods that use GMSA only.
fn the_test_of_the_release_fails(release: &Release<'_>) {
    let (report, tested) = test_the_release(release);
    // Without match conditions the API server asks about a pod without GMSA too.
    let passed = usize::from(release.cluster.has(Feature::MatchConditions));
    assert_eq!((report.len(), report.iter().filter(|line| *line == "pass  a pod without GMSA").count()), (5, passed));
    for line in &report[passed..] {
        assert!(line.starts_with("FAIL  ") && line.contains(" was refused with 500: "), "{line}");
        assert!(line.ends_with("connect: connection refused"), "{line}");
    }
    let said = complaint(tested).unwrap();
    assert!(said.contains("pod gmsa-test failed"), "{said}");
}

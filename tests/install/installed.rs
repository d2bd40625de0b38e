//! The installed release with the built binary behind its own Service: what the chart gives the webhook (arguments, environment, rights)
//! must be what it takes, and `helm test` must pass.

use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::{
    control_plane::{Client, Process, free_addresses},
    helm::{CHART, Helm},
    plane::{Plane, printed},
    pods::{NAMESPACE, Options, complaint, creation, pod},
};

const RELEASE_NAMESPACE: &str = "windows";
const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");

/// The first container of a pod, as its image's entry point would be started.
struct Container {
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Container {
    fn of(pod_spec: &Value) -> Self {
        let container = &pod_spec["containers"][0];
        let texts = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            args: texts(&container["args"]).iter().map(text).collect(),
            env: texts(&container["env"]).iter().map(|one| (text(&one["name"]), text(&one["value"]))).collect(),
        }
    }

    /// The built binary with these arguments and this environment, and the credentials of a service account.
    fn command(&self, plane: &Plane, service_account: &str) -> Command {
        let (control_plane, runtime) = plane.control_plane();
        let credentials = runtime.block_on(control_plane.kubeconfig_of(RELEASE_NAMESPACE, service_account));
        let kubeconfig = plane.folder().join(format!("{service_account}.kubeconfig"));
        fs::write(&kubeconfig, credentials.to_string()).unwrap();
        let mut command = Command::new(BINARY);
        command.args(&self.args).env_clear().envs(self.env.iter().cloned()).env("KUBECONFIG", kubeconfig);
        command
    }
}

fn get(plane: &Plane, object: &str) -> Value {
    serde_json::from_str(&plane.kubectl_prints(["get", object, "--namespace", RELEASE_NAMESPACE, "-o", "json"]))
        .unwrap()
}

/// A replica of the installed Deployment, on loopback.
fn start_replica(plane: &Plane, port: u16) -> Process {
    let deployment = get(plane, "deployment/gmsa");
    let container = Container::of(&deployment["spec"]["template"]["spec"]);
    let [admin] = free_addresses();
    let mut command = container.command(plane, "gmsa");
    command.arg("--listen").arg(format!("127.0.0.1:{port}")).env("ADMIN_LISTEN", admin.to_string());
    let replica = Process::start("replica", plane.folder(), &mut command);
    let (_, runtime) = plane.control_plane();
    let _in_runtime = runtime.enter();
    let client = Client::with(kube::Config::new(format!("http://{admin}").parse().unwrap()));
    plane.until("the replica is ready", || runtime.block_on(client.text("/readyz")).is_ok());
    replica
}

#[test]
fn the_installed_configuration_is_what_admits_pods() {
    let plane = Plane::start();
    let helm = Helm::of_cluster(&plane.kubeconfig());
    let [address] = free_addresses();
    let port = address.port();
    let ports = format!("service.port={port},containerPort={port}");
    helm.prints(["install", "gmsa", CHART, "--namespace", RELEASE_NAMESPACE, "--create-namespace", "--set", &ports]);
    // Nothing routes to a Service here: by its name the API server then finds loopback.
    let outside =
        json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}});
    plane.kubectl_prints([
        "patch",
        "service",
        "gmsa",
        "--namespace",
        RELEASE_NAMESPACE,
        "--patch",
        &outside.to_string(),
    ]);
    plane.create_namespace(NAMESPACE);
    plane.apply(include_str!("credential-spec.yaml"));

    let mut replica = start_replica(&plane, port);
    admits_and_refuses(&plane);
    warns(&plane);
    the_test_of_the_release_passes(&plane, &helm);

    replica.end();
    plane.until("the webhook is missed", || creation(&plane, &pod("p", "pod", Options::Name, "webapp1")).is_some());
    the_test_of_the_release_fails(&plane, &helm);

    // The certificate is in the Secret: a new replica serves it, and is trusted at once.
    let bundle = ca_bundles(&plane);
    let _replica = start_replica(&plane, port);
    assert_eq!(ca_bundles(&plane), bundle);
    assert_eq!(creation(&plane, &pod("p", "pod", Options::Name, "webapp1")), None);
    the_test_of_the_release_passes(&plane, &helm);
}

/// The bundle of every webhook of the release.
fn ca_bundles(plane: &Plane) -> Vec<Value> {
    ["mutatingwebhookconfiguration/gmsa", "mutatingwebhookconfiguration/zz-gmsa", "validatingwebhookconfiguration/gmsa"]
        .iter()
        .flat_map(|configuration| get(plane, configuration)["webhooks"].as_array().cloned().unwrap())
        .map(|webhook| webhook["clientConfig"]["caBundle"].clone())
        .inspect(|bundle| assert!(bundle.is_string(), "a webhook without a caBundle"))
        .collect()
}

fn admits_and_refuses(plane: &Plane) {
    let denial = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: \
                  service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    let asked = || creation(plane, &pod("p", "pod", Options::Name, "webapp1"));
    plane.until("the API server trusts the webhook", || {
        asked().is_some_and(|said| said.contains("is not authorized to"))
    });
    let said = asked().unwrap();
    assert!(said.contains(denial), "{said}");

    plane.apply(
        r"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: use-webapp1}
rules: [{apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], resourceNames: [webapp1], verbs: [use]}]
",
    );
    let account = format!("--serviceaccount={NAMESPACE}:default");
    plane.kubectl_prints([
        "create",
        "rolebinding",
        "use",
        "--namespace",
        NAMESPACE,
        "--clusterrole=use-webapp1",
        &account,
    ]);
    plane.until("the grant is in force", || asked().is_none());
    plane.apply(&pod("web", "pod", Options::Name, "webapp1").to_string());
    let contents = "jsonpath={.spec.securityContext.windowsOptions.gmsaCredentialSpec}";
    let contents = plane.kubectl_prints(["get", "pod", "web", "--namespace", NAMESPACE, "-o", contents]);
    let contents: Value = serde_json::from_str(&contents).unwrap();
    assert_eq!(contents["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    assert_eq!(ca_bundles(plane).len(), 5);
}

/// The two webhooks that never stop anybody: what they say comes along as a warning.
fn warns(plane: &Plane) {
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w", "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": {
            "metadata": {"labels": {"app": "w"}},
            "spec": pod("w", "container", Options::Name, "no-such-spec")["spec"]
        }}
    });
    let spec = json!({"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "metadata": {"name": "odd"}, "credspec": {}});
    let missing = "Warning: GMSA cred spec \"no-such-spec\" does not exist: the pods will be refused";
    for (object, warning) in [(deployment, missing), (spec, "Warning: credspec.CmsPlugins: ")] {
        let output = plane.kubectl_with(["create", "--dry-run=server", "-f", "-"], &object.to_string());
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{warnings}");
        assert!(warnings.lines().any(|line| line.starts_with(warning)), "{warnings}");
    }
}

/// `helm test`, with this test for a kubelet: it runs what the pod says, as the pod's service account, and reports how that ended. Gives back
/// what the pod printed, and what helm said.
fn test_the_release(plane: &Plane, helm: &Helm) -> (String, Output) {
    // The pod of a test that failed stays, for people to look at; helm takes it away before the next one.
    let uid = || {
        plane.kubectl(["get", "pod", "gmsa-test", "--namespace", RELEASE_NAMESPACE, "-o", "jsonpath={.metadata.uid}"])
    };
    let before = uid().stdout;
    thread::scope(|scope| {
        let tested = scope.spawn(|| helm.run(["test", "gmsa", "--namespace", RELEASE_NAMESPACE, "--timeout", "60s"]));
        plane.until("helm has created the pod", || {
            let now = uid();
            now.status.success() && now.stdout != before
        });
        let spec = get(plane, "pod/gmsa-test")["spec"].clone();
        let account = spec["serviceAccountName"].as_str().unwrap();
        let output = Container::of(&spec).command(plane, account).stdin(Stdio::null()).output().unwrap();
        let phase = if output.status.success() { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase}}).to_string();
        let patch =
            ["patch", "pod", "gmsa-test", "--namespace", RELEASE_NAMESPACE, "--subresource=status", "--patch", &status];
        plane.kubectl_prints(patch);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        (String::from_utf8(output.stdout).unwrap(), tested.join().unwrap())
    })
}

fn the_test_of_the_release_passes(plane: &Plane, helm: &Helm) {
    let (report, tested) = test_the_release(plane, helm);
    let lines = [
        "pass  a pod without GMSA",
        "pass  a pod that names a credential spec",
        "pass  a container that names a credential spec",
        "pass  an init container that names a credential spec",
    ];
    assert_eq!(report.lines().collect::<Vec<_>>(), lines);
    let printed = printed(tested);
    assert!(printed.contains("Phase:          Succeeded"), "{printed}");
    // What the test brought has gone with it.
    let left = complaint(plane.kubectl(["get", "role/gmsa-test", "--namespace", RELEASE_NAMESPACE]));
    assert!(left.is_some_and(|said| said.contains("NotFound")));
}

/// A webhook that is down: the test fails, and says that the API server asks it in vain, and for pods that use GMSA only.
fn the_test_of_the_release_fails(plane: &Plane, helm: &Helm) {
    let (report, tested) = test_the_release(plane, helm);
    let (others, with_gmsa) = report.split_once('\n').unwrap();
    assert_eq!(others, "pass  a pod without GMSA");
    for (line, what) in with_gmsa.lines().zip(["a pod", "a container", "an init container"]) {
        let start = format!(
            "FAIL  {what} that names a credential spec was refused with 500: Internal error occurred: failed calling webhook \
             \"admission-webhook.windows-gmsa.sigs.k8s.io\": failed to call webhook: Post \"https://gmsa.{RELEASE_NAMESPACE}.svc:"
        );
        assert!(line.starts_with(&start) && line.ends_with("connect: connection refused"), "{line}");
    }
    assert_eq!(with_gmsa.lines().count(), 3, "{report}");
    let said = complaint(tested).unwrap();
    assert!(said.contains("pod gmsa-test failed"), "{said}");
}

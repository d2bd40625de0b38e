//! `deploy/deploy-gmsa-webhook.sh` from an empty cluster on: dry runs, installs, upgrades, certificates, removal, and every way to be told off.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::plane::{Plane, printed};

const SCRIPT: &str = "deploy/deploy-gmsa-webhook.sh";
/// A CA certificate as far as the API server looks into one.
const CA: &str = include_str!("ca.pem.base64");

/// The script, in a folder of its own.
struct Desk<'a> {
    plane: &'a Plane,
    folder: tempfile::TempDir,
}

impl<'a> Desk<'a> {
    fn new(plane: &'a Plane) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { plane, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let script = fs::canonicalize(SCRIPT).unwrap();
        let mut command = self.plane.command("bash");
        command.arg(script).args(args).current_dir(self.folder.path()).env("TMPDIR", self.path("tmp"));
        command.output().unwrap()
    }

    fn prints(&self, args: &[&str]) -> String {
        printed(self.run(args))
    }

    /// The one line with which it gives up.
    fn gives_up(&self, args: &[&str]) -> String {
        line_of_giving_up(&self.run(args))
    }

    /// What lies in its folder, temporary files included.
    fn files(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<String> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut files = [names(self.folder.path()), names(&self.path("tmp"))].concat();
        files.retain(|name| name != "tmp");
        files.sort();
        files
    }

    fn get(&self, object: &str) -> Value {
        serde_json::from_str(&self.plane.kubectl_prints(["get", object, "--namespace", "gmsa-webhook", "-o", "json"]))
            .unwrap()
    }

    fn exists(&self, object: &str) -> bool {
        self.plane.kubectl(["get", object, "--namespace", "gmsa-webhook"]).status.success()
    }
}

fn line_of_giving_up(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().strip_prefix("deploy-gmsa-webhook.sh: ").unwrap().to_owned()
}

/// Everything that the script could leave in a cluster.
fn contents(plane: &Plane) -> String {
    let kinds = "crd,namespace,clusterrole,clusterrolebinding,mutatingwebhookconfiguration,validatingwebhookconfiguration,\
                 serviceaccount,secret,service,deployment,role,rolebinding,poddisruptionbudget";
    plane.kubectl_prints(["get", kinds, "--all-namespaces", "-o", "name"])
}

/// While `work` goes on, every pod of the namespace becomes ready, as a node would make it.
fn with_a_node<T>(plane: &Plane, namespace: &str, work: impl FnOnce() -> T) -> T {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let ready = json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ]}})
            .to_string();
            while !done.load(Ordering::Acquire) {
                // Pods come and go meanwhile: what fails now is made up for in the next round.
                let pods = plane.kubectl(["get", "pods", "--namespace", namespace, "-o", "name"]);
                for pod in String::from_utf8(pods.stdout).unwrap().lines() {
                    plane.kubectl(["patch", pod, "--namespace", namespace, "--subresource=status", "--patch", &ready]);
                }
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _done = Done(&done);
        work()
    })
}

#[test]
fn the_script_installs_and_upgrades_and_never_loses_a_credential_spec() {
    let plane = Plane::start();
    let desk = Desk::new(&plane);
    dry_runs_leave_nothing(&desk);
    // As the Go webhook's script left it: an older CRD, and a spec.
    plane.kubectl_prints(["create", "-f", "tests/install/go-release/crds/crd.yaml"]);
    plane.kubectl_prints(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    plane.apply(include_str!("credential-spec.yaml"));
    let before = [desk.get("crd/gmsacredentialspecs.windows.k8s.io"), desk.get("gmsacredentialspec/webapp1")];

    with_a_node(&plane, "gmsa-webhook", || {
        installs(&desk);
        installs_again(&desk);
        upgrades(&desk);
        serves_a_certificate_from_a_folder(&desk);
    });
    let after = [desk.get("crd/gmsacredentialspecs.windows.k8s.io"), desk.get("gmsacredentialspec/webapp1")];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
    assert_eq!(after[1]["credspec"], before[1]["credspec"]);

    plane.kubectl_prints(["delete", "-f", desk.path("manifests.yml").to_str().unwrap()]);
    assert!(!desk.exists("namespace/gmsa-webhook") && !desk.exists("mutatingwebhookconfiguration/zz-gmsa-webhook"));
    assert!(desk.exists("gmsacredentialspec/webapp1"));
}

fn dry_runs_leave_nothing(desk: &Desk<'_>) {
    let before = contents(desk.plane);
    for (kind, mark) in [("server", "(server dry run)"), ("client", "(dry run)")] {
        let printed = desk.prints(&["--file", "manifests.yml", &format!("--dry-run={kind}")]);
        for object in
            ["namespace", "secret", "deployment.apps", "validatingwebhookconfiguration.admissionregistration.k8s.io"]
        {
            let line = printed.lines().find(|line| line.starts_with(&format!("{object}/gmsa-webhook"))).unwrap();
            assert!(line.ends_with(&format!(" created {mark}")), "{line}");
        }
        let crd = printed.lines().find(|line| line.starts_with("customresourcedefinition.")).unwrap();
        assert!(crd.ends_with(mark), "{crd}");
        assert_eq!(printed.lines().last(), Some(format!("nothing was changed ({kind} dry run)").as_str()));
        assert_eq!(
            printed.contains("the namespace gmsa-webhook does not exist yet, so the API server checks the objects in it as if they were in default:"),
            kind == "server"
        );
        assert_eq!(contents(desk.plane), before);
        assert_eq!(desk.files(), ["manifests.yml"]);
    }
    let printed = desk.prints(&["--file", "manifests.yml", "--dry-run=server", "--certs-dir", "certs"]);
    assert!(printed.contains("\nwould make a certificate in certs (dry run)\n"), "{printed}");
    assert_eq!(desk.files(), ["manifests.yml"]);
}

fn installs(desk: &Desk<'_>) {
    let printed = desk.prints(&["--file", "manifests.yml"]);
    assert!(
        printed.ends_with(
            "The GMSA webhook is ready. To remove it, and keep the credential specs:\n  kubectl delete -f manifests.yml\n"
        ),
        "{printed}"
    );
    let deployment = desk.get("deployment/gmsa-webhook");
    assert_eq!(deployment["status"]["readyReplicas"], 2);
    assert_eq!(deployment["spec"]["template"]["spec"].get("tolerations"), None);
    desk.plane.until("the short name is known", || desk.plane.kubectl(["get", "gmsa"]).status.success());
}

/// What the webhook itself has written meanwhile stays.
fn installs_again(desk: &Desk<'_>) {
    let data = json!({"data": {"ca.key": "a2V5"}}).to_string();
    desk.plane.kubectl_prints(["patch", "secret", "gmsa-webhook-tls", "--namespace", "gmsa-webhook", "--patch", &data]);
    let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA.trim()}]).to_string();
    desk.plane.kubectl_prints([
        "patch",
        "mutatingwebhookconfiguration/gmsa-webhook",
        "--type=json",
        "--patch",
        &bundle,
    ]);
    let generation = desk.get("deployment/gmsa-webhook")["metadata"]["generation"].clone();

    let printed = desk.prints(&["--file", "manifests.yml", "--overwrite"]);
    assert!(
        printed.starts_with(
            "note: --overwrite has nothing to do without --certs-dir: the webhook renews its own certificate\n"
        ),
        "{printed}"
    );
    assert_eq!(desk.get("deployment/gmsa-webhook")["metadata"]["generation"], generation);
    assert_eq!(desk.get("secret/gmsa-webhook-tls")["data"], json!({"ca.key": "a2V5"}));
    let configuration = desk.get("mutatingwebhookconfiguration/gmsa-webhook");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], CA.trim());
}

fn upgrades(desk: &Desk<'_>) {
    let args = ["--file=manifests.yml", "--image", "registry.example.com:5000/gmsa-webhook:2", "--tolerate-master"];
    let printed = desk.prints(&[&args[..], &["--dry-run=server"]].concat());
    assert!(
        printed.contains("\n+        image: registry.example.com:5000/gmsa-webhook:2\n"),
        "no difference shown: {printed}"
    );
    let pod = |desk: &Desk<'_>| desk.get("deployment/gmsa-webhook")["spec"]["template"]["spec"].clone();
    assert_eq!(pod(desk)["containers"][0]["image"], "gmsa-webhook:0.1.0");

    desk.prints(&args);
    assert_eq!(pod(desk)["containers"][0]["image"], "registry.example.com:5000/gmsa-webhook:2");
    let tolerated: Vec<_> = pod(desk)["tolerations"].as_array().unwrap().iter().map(|one| one["key"].clone()).collect();
    assert_eq!(tolerated, ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]);
}

fn serves_a_certificate_from_a_folder(desk: &Desk<'_>) {
    let args = ["--file", "manifests.yml", "--certs-dir", "certs"];
    let certificate = || fs::read(desk.path("certs/tls.crt")).unwrap();
    desk.prints(&args);
    let (first, ca) = (certificate(), fs::read(desk.path("certs/ca.crt")).unwrap());
    desk.prints(&args);
    assert_eq!(certificate(), first, "made anew without --overwrite");
    desk.prints(&[&args[..], &["--overwrite"]].concat());
    assert_ne!(certificate(), first, "not made anew in spite of --overwrite");
    assert_eq!(fs::read(desk.path("certs/ca.crt")).unwrap(), ca);

    let secret = desk.get("secret/gmsa-webhook-cert");
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ca.crt", "tls.crt", "tls.key"]);
    assert_eq!(secret["metadata"].get("annotations"), None, "an annotation may repeat the key");
    assert!(!fs::read_to_string(desk.path("manifests.yml")).unwrap().contains("PRIVATE KEY"));
    let volumes = desk.get("deployment/gmsa-webhook")["spec"]["template"]["spec"]["volumes"].clone();
    assert_eq!(volumes[0]["secret"]["secretName"], "gmsa-webhook-cert");

    fs::remove_file(desk.path("certs/ca.key")).unwrap();
    assert_eq!(
        desk.gives_up(&[&args[..], &["--overwrite"]].concat()),
        "certs/ca.crt has no ca.key beside it to sign a certificate with: put tls.crt and tls.key there yourself"
    );
}

/// What the Go webhook's script made, as far as the new script meets it: in a namespace of its own, with a `caBundle` that was applied.
fn go_installation() -> String {
    format!(
        r"apiVersion: v1
kind: Namespace
metadata: {{name: gmsa-webhook, labels: {{gmsa-webhook: disabled}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
data: {{tls_private_key: a2V5, tls_certificate: Y2VydA==}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: gmsa-webhook-gmsa-webhook-rbac-role}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gmsa-webhook-gmsa-webhook-rbac-role}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: gmsa-webhook}}}}
  template:
    metadata: {{labels: {{app: gmsa-webhook}}}}
    spec:
      containers:
        - name: gmsa-webhook
          image: registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0
          ports: [{{containerPort: 443}}]
          env: [{{name: TLS_KEY, value: /tls/key}}, {{name: TLS_CRT, value: /tls/crt}}]
          volumeMounts: [{{name: tls, mountPath: /tls, readOnly: true}}]
      volumes: [{{name: tls, secret: {{secretName: gmsa-webhook}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: gmsa-webhook, namespace: gmsa-webhook}}
spec: {{ports: [{{port: 443, targetPort: 443}}], selector: {{app: gmsa-webhook}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {{name: gmsa-webhook}}
webhooks:
  - name: admission-webhook.windows-gmsa.sigs.k8s.io
    clientConfig: {{service: {{name: gmsa-webhook, namespace: gmsa-webhook, path: /mutate}}, caBundle: {ca}}}
    rules: [{{operations: [CREATE], apiGroups: [''], apiVersions: ['*'], resources: [pods]}}]
    failurePolicy: Fail
    admissionReviewVersions: [v1, v1beta1]
    sideEffects: None
    namespaceSelector: {{matchExpressions: [{{key: gmsa-webhook, operator: NotIn, values: [disabled]}}]}}
",
        ca = CA.trim()
    )
}

#[test]
fn an_installation_of_the_go_script_is_upgraded_in_place() {
    let plane = Plane::start();
    plane.apply(&go_installation());
    let desk = Desk::new(&plane);
    let uid = desk.get("deployment/gmsa-webhook")["metadata"]["uid"].clone();
    let printed = with_a_node(&plane, "gmsa-webhook", || desk.prints(&["--file", "manifests.yml"]));

    let deployment = desk.get("deployment/gmsa-webhook");
    assert_eq!(deployment["metadata"]["uid"], uid);
    assert_eq!(deployment["spec"]["template"]["spec"].get("volumes"), None);
    let configuration = desk.get("mutatingwebhookconfiguration/gmsa-webhook");
    let webhook = &configuration["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["caBundle"], CA.trim(), "the old pods are no longer trusted");
    assert_eq!(webhook["namespaceSelector"], json!({}));
    assert!(
        printed.contains(
            "The Go webhook left objects that nothing uses any more. To remove them:\n  \
             kubectl delete clusterrolebinding/gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role \
             clusterrole/gmsa-webhook-gmsa-webhook-rbac-role\n  kubectl --namespace gmsa-webhook delete secret/gmsa-webhook\n"
        ),
        "{printed}"
    );
    // The namespace was there before: removing the webhook must not remove it.
    assert!(!fs::read_to_string(desk.path("manifests.yml")).unwrap().contains("kind: Namespace"));
}

#[test]
fn what_is_missing_is_said_in_one_line() {
    let plane = Plane::start();
    let desk = Desk::new(&plane);
    let long = "n".repeat(51);
    for (args, line) in [
        (&["--file", "m", "--bogus"][..], "unknown option --bogus (--help lists them)"),
        (&["m"], "unknown option m (--help lists them)"),
        (&["--dry-run"], "--file is missing: where shall the manifests be written to?"),
        (&["--file"], "--file needs a value"),
        (&["--file", "--overwrite"], "--file needs a value"),
        (&["--file", "."], "--file . is a folder"),
        (&["--file", "no/m"], "--file no/m: its folder does not exist"),
        // A folder in which nobody can make files, root included.
        (&["--file", "/proc/m"], "--file /proc/m cannot be written"),
        (&["--file", "m", "--certs-dir", "/dev/null"], "--certs-dir /dev/null is not a folder"),
        (&["--file", "m", "--dry-run=maybe"], "unknown kind of dry run maybe: client and server are known"),
        (&["--file", "m", "--overwrite=yes"], "--overwrite takes no value"),
        (&["--file", "m", "--name", "A"], "--name A is not a lower-case DNS label of at most 50 characters"),
        (&["--file", "m", "--namespace=a.b"], "--namespace a.b is not a lower-case DNS label"),
        (&["--file", "m", "--image", "a b"], "--image a b is not an image's name"),
        (
            &["--file", "m", "--image", "registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0"],
            "--image registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0 is the Go webhook's image; this script installs another program",
        ),
        (&["--file", "m", "--timeout", "soon"], "--timeout soon is not a number of seconds"),
    ] {
        assert_eq!(desk.gives_up(args), line);
    }
    assert_eq!(
        desk.gives_up(&["--file", "m", "--name", &long]),
        format!("--name {long} is not a lower-case DNS label of at most 50 characters")
    );
    let help = desk.prints(&["--help"]);
    for option in
        ["--file", "--name", "--namespace", "--image", "--certs-dir", "--dry-run", "--overwrite", "--tolerate-master"]
    {
        assert!(help.lines().any(|line| line.trim_start().starts_with(option)), "{option} is not in the help");
    }

    let script = fs::canonicalize(SCRIPT).unwrap();
    let mut without_kubectl = plane.command("bash");
    without_kubectl.arg(&script).args(["--file", "/dev/null"]).env("KUBECTL", "/nowhere/kubectl");
    assert_eq!(
        line_of_giving_up(&without_kubectl.output().unwrap()),
        "kubectl is missing: install it, or set KUBECTL to its path"
    );
    let mut without_cluster = plane.command("bash");
    without_cluster.arg(&script).args(["--file", "/dev/null"]).env("KUBECONFIG", "/dev/null");
    assert_eq!(
        line_of_giving_up(&without_cluster.output().unwrap()),
        "no cluster: The connection to the server localhost:8080 was refused - did you specify the right host or port?"
    );
    missing_rights_are_named(&desk);
    assert_eq!(desk.files(), [String::new(); 0]);
}

fn missing_rights_are_named(desk: &Desk<'_>) {
    let plane = desk.plane;
    plane.kubectl_prints(["create", "serviceaccount", "installer", "--namespace", "default"]);
    let (control_plane, runtime) = plane.control_plane();
    let credentials = runtime.block_on(control_plane.kubeconfig_of("default", "installer"));
    fs::write(desk.path("tmp/kubeconfig"), credentials.to_string()).unwrap();
    let run = || {
        let script = fs::canonicalize(SCRIPT).unwrap();
        let mut command = plane.command("bash");
        command.arg(script).args(["--file", "/dev/null"]).env("KUBECONFIG", desk.path("tmp/kubeconfig"));
        line_of_giving_up(&command.output().unwrap())
    };
    assert_eq!(
        run(),
        "no rights: namespaces \"gmsa-webhook\" is forbidden: User \"system:serviceaccount:default:installer\" cannot get \
         resource \"namespaces\" in API group \"\" in the namespace \"gmsa-webhook\""
    );
    plane.apply(
        r"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: installer}
rules:
  - {apiGroups: ['*'], resources: ['*'], verbs: [get]}
  - {apiGroups: ['', apps, policy, apiextensions.k8s.io, admissionregistration.k8s.io], resources: ['*'], verbs: [create, patch]}
",
    );
    plane.kubectl_prints([
        "create",
        "clusterrolebinding",
        "installer",
        "--clusterrole=installer",
        "--serviceaccount=default:installer",
    ]);
    plane.until("the role is in force", || {
        let asked = ["auth", "can-i", "get", "namespaces", "--as=system:serviceaccount:default:installer"];
        plane.kubectl(asked).status.success()
    });
    assert_eq!(
        run(),
        "no rights to list customresourcedefinitions, create clusterroles, patch clusterroles, create clusterrolebindings, patch clusterrolebindings, \
         list deployments, watch deployments, create roles, patch roles, create rolebindings, patch rolebindings"
    );
    fs::remove_file(desk.path("tmp/kubeconfig")).unwrap();
}

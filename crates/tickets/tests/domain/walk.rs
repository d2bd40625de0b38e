//! From an account that serves Windows pods to Linux pods, as docs/linux-pods.md prints it: both charts installed, their pods and those of applications
//! played by a small kubelet. Then every kind of pod, the broker away, upgrades, and many pods at once.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use gmsa_test_support::{
    control_plane::{Binaries, ControlPlane, SPECS, grant, namespace, service_account, tails},
    domain::{account, administer, tls, user},
    eventually, repository, until,
};
use serde_json::{Value, json};

use crate::{
    kubelet::{Kubelet, Pod},
    world::{PASSWORD, World, name_ldap},
};

const WHO: &str = "ldapwhoami -Q -Y GSSAPI -H ldap://dc1.contoso.com";
const ACCOUNT: &str = "u:CONTOSO\\WebApp1$\n";
/// How many pods start at once.
const MANY: usize = 200;
/// The memory limit of the chart, in MiB.
const LIMIT: f64 = 128.0;

/// The administrator's desk, and the cluster.
struct Walk {
    plane: ControlPlane,
    kubelet: Kubelet,
    folder: tempfile::TempDir,
}

impl Walk {
    async fn start() -> Self {
        administer("group add WebApp1Hosts");
        user("gmsa-tickets", PASSWORD, Some("WebApp1Hosts"));
        account("WebApp1", "WebApp1Hosts", &[]);
        user("Appservice", "Passw0rd!Service", None);
        administer("spn add HTTP/app.contoso.com Appservice");
        name_ldap();

        let folder = tempfile::tempdir().unwrap();
        symlink(repository().join("charts").canonicalize().unwrap(), folder.path().join("charts")).unwrap();
        fs::write(folder.path().join("password"), PASSWORD).unwrap();
        fs::copy(tls().join("ca.pem"), folder.path().join("domain-ca.crt")).unwrap();
        let plane = ControlPlane::start(Binaries::find().unwrap(), folder.path()).await;
        let kubelet = Kubelet::start(&plane, folder.path().join("pods")).await;
        Self { plane, kubelet, folder }
    }

    /// Runs commands in the folder of the desk, and gives back what they print.
    fn run(&self, commands: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", commands]).current_dir(self.folder.path()).stdin(Stdio::null());
        let tools = Path::new(env!("CARGO_BIN_EXE_gmsa-tickets")).parent().unwrap();
        let path =
            [tools.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>());
        command.env("PATH", env::join_paths(path).unwrap()).env("HOME", self.folder.path());
        let output = command.env("KUBECONFIG", self.folder.path().join("admin.kubeconfig")).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{commands}\n{errors}\n{}", self.logs());
        String::from_utf8(output.stdout).unwrap()
    }

    fn logs(&self) -> String {
        let pods = self.kubelet.pods("gmsa-tickets", "").into_iter().chain(self.kubelet.pods("gmsa-webhook", ""));
        pods.map(|pod| tails(pod.folder())).collect()
    }

    /// A namespace for applications, with a service account that may use the account.
    async fn namespace(&self, name: &str, labels: Value) {
        namespace(&self.plane.client, name, &labels).await;
        service_account(&self.plane.client, name, "web").await;
    }

    async fn deploy(&self, namespace: &str, name: &str, replicas: usize, spec: &Value) {
        let labels = json!({"app": name});
        let metadata = json!({"labels": labels, "annotations": {"gmsa-webhook/tickets": "webapp1"}});
        let template = json!({"metadata": metadata, "spec": spec});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        let deployment = json!({"metadata": {"name": name}, "spec": spec});
        self.plane
            .client
            .create(&format!("/apis/apps/v1/namespaces/{namespace}/deployments"), &deployment)
            .await
            .unwrap();
    }

    fn rolled_out(&self, namespace: &str, name: &str) {
        self.run(&format!("kubectl -n {namespace} rollout status deployment/{name} --timeout=100s"));
    }

    /// A pod that nothing controls.
    async fn pod(&self, name: &str) {
        let metadata = json!({"name": name, "annotations": {"gmsa-webhook/tickets": "webapp1"}});
        let pod = json!({"metadata": metadata, "spec": application(&[("app", 1000)], &json!({}))});
        self.plane.client.create("/api/v1/namespaces/shop/pods", &pod).await.unwrap();
    }

    fn only(&self, namespace: &str, prefix: &str) -> Arc<Pod> {
        let pods = self.kubelet.pods(namespace, prefix);
        assert_eq!(pods.len(), 1, "{namespace}/{prefix}");
        Arc::clone(&pods[0])
    }

    /// Waits until a container has logged on.
    async fn logs_on(&self, namespace: &str, prefix: &str, container: &str) {
        let logged_on = || {
            let pods = self.kubelet.pods(namespace, prefix);
            !pods.is_empty() && pods.iter().all(|pod| pod.log(container) == ACCOUNT)
        };
        eventually(&format!("{namespace}/{prefix} {container} logs on"), logged_on).await;
    }
}

/// The spec of pods with these containers, each with its user, that log on first.
fn application(containers: &[(&str, u64)], more: &Value) -> Value {
    let of_user = |name: &str, user: u64, then: &str| {
        let mut container = json!({
            "name": name, "image": "registry.example.com/app:1", "command": ["sh", "-c", format!("{WHO}{then}")],
            "securityContext": {
                "runAsNonRoot": user != 0, "runAsUser": user, "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        container["resources"] = json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}});
        container
    };
    let all: Vec<_> = containers.iter().map(|(name, user)| of_user(name, *user, " && exec sleep infinity")).collect();
    let mut spec = json!({"serviceAccountName": "web", "containers": all, "os": {"name": "linux"}});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = if field == "initContainers" { json!([of_user("migrate", 1000, "")]) } else { value.clone() };
    }
    spec
}

/// The commands of the page's walk.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    page.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_of_windows_pods_gets_to_linux_pods_by_the_page_and_stays_there() {
    let walk = Walk::start().await;
    the_page(&walk).await;
    // The page's list has no directory, and running pods would hear of another list in minutes.
    walk.run("kubectl annotate gmsacredentialspec webapp1 --overwrite gmsa-webhook/services=ldap/dc1.contoso.com");
    every_kind_of_pod(&walk).await;
    the_broker_is_away(&walk).await;
    upgrades_and_rollbacks(&walk).await;
    many_pods_at_once(&walk).await;
}

/// What runs today, and then each block of the page as it is printed.
async fn the_page(walk: &Walk) {
    walk.run("helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace");
    walk.rolled_out("gmsa-webhook", "gmsa-webhook");
    let spec = World::spec_object("webapp1", "WebApp1", None);
    until("credential specs are served", async || walk.plane.client.create(SPECS, &spec).await.ok()).await;
    walk.namespace("shop", json!({})).await;
    let web = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, \
               template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: web, containers: [{name: app, image: 'registry.example.com/app:1', \
               command: [sleep, infinity]}]}}}}";
    walk.run(&format!("kubectl apply -f - <<<\"{web}\""));
    walk.rolled_out("shop", "web");

    let page = fs::read_to_string(repository().join("docs/linux-pods.md")).unwrap();
    fs::write(walk.folder.path().join("domains.yaml"), &blocks(&page, "yaml")[0]).unwrap();
    let commands = blocks(&page, "sh");
    let last = commands.len() - 1;
    for (at, block) in commands.iter().enumerate() {
        let printed = walk.run(block);
        let shown = ["Default principal: WebApp1$@CONTOSO.COM\n", "HTTP/app.contoso.com@CONTOSO.COM\n"];
        assert!(at < last || shown.iter().all(|line| printed.contains(line)), "{printed}");
    }
}

async fn every_kind_of_pod(walk: &Walk) {
    walk.namespace("strict", json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    walk.namespace("counted", json!({})).await;
    for name in ["strict", "counted"] {
        grant(&walk.plane.client, name, "web", &["webapp1"]).await;
    }
    // As the controller of quotas begins.
    let hard = json!({"limits.memory": "96Mi", "pods": "1"});
    let quotas = "/api/v1/namespaces/counted/resourcequotas";
    let quota = json!({"metadata": {"name": "quota"}, "spec": {"hard": hard}});
    walk.plane.client.create(quotas, &quota).await.unwrap();
    let status = json!({"status": {"hard": hard, "used": {"limits.memory": "0", "pods": "0"}}});
    walk.plane.client.merge(&format!("{quotas}/quota/status"), &status).await.unwrap();

    let one = &[("app", 1000)][..];
    let kinds = [
        ("strict", "plain", one, json!({})),
        ("strict", "grouped", one, json!({"securityContext": {"fsGroup": 2000}})),
        ("strict", "initialized", one, json!({"initContainers": []})),
        ("strict", "several", &[("app", 1000), ("other", 2000)], json!({})),
        ("shop", "as-root", &[("app", 1000), ("root", 0)], json!({})),
        ("shop", "on-the-host", one, json!({"hostNetwork": true})),
        ("counted", "counted", one, json!({})),
    ];
    for (namespace, name, containers, more) in &kinds {
        walk.deploy(namespace, name, 1, &application(containers, more)).await;
    }
    for (namespace, name, containers, more) in &kinds {
        walk.rolled_out(namespace, name);
        let names = containers.iter().map(|(name, _)| *name).chain(more.get("initContainers").map(|_| "migrate"));
        for container in names {
            walk.logs_on(namespace, &format!("{name}-"), container).await;
        }
    }
    // With an fsGroup, that group alone reads the tickets.
    for (name, expected) in [("plain", "444 0\n"), ("grouped", "440 2000\n")] {
        let shown = walk.only("strict", name).run("app", "stat -c %a_%g /var/run/gmsa/krb5cc").unwrap();
        assert_eq!(String::from_utf8(shown.stdout).unwrap().replace('_', " "), expected, "{name}");
    }
    let used = walk.plane.client.get(&format!("{quotas}/quota")).await.unwrap()["status"]["used"].take();
    assert_eq!(used, json!({"limits.memory": "96Mi", "pods": "1"}), "the sidecar counts");
}

async fn the_broker_is_away(walk: &Walk) {
    let running = walk.only("strict", "plain-");
    let tickets = || running.run("app", "sha256sum /var/run/gmsa/krb5cc").unwrap().stdout;
    let before = tickets();
    walk.run("kubectl -n gmsa-tickets scale deployment/gmsa-tickets --replicas=0");
    eventually("the broker is gone", || walk.kubelet.pods("gmsa-tickets", "").is_empty()).await;

    walk.pod("late").await;
    let waits = until("the new pod waits", async || {
        let pod = walk.kubelet.pods("shop", "late").pop()?;
        let status = pod.run("gmsa-tickets", "cat /var/run/gmsa/status")?;
        Some(String::from_utf8(status.stdout).unwrap()).filter(|status| !status.is_empty())
    })
    .await;
    assert!(waits.contains("the broker at "), "{waits}");
    assert_eq!(walk.run("kubectl -n shop get pod late -o 'jsonpath={.status.phase}'"), "Pending");
    let why = walk.run("kubectl gmsa why pod/late -n shop || test $? = 1");
    let cause = "fail  init containers  the sidecar waits for tickets: the Service gmsa-tickets/gmsa-tickets of the broker has no ready endpoint: \
                 Deployment gmsa-tickets/gmsa-tickets: no pod is wanted: replicas is 0";
    assert!(why.contains(cause), "{why}");
    assert_eq!(String::from_utf8(running.run("app", WHO).unwrap().stdout).unwrap(), ACCOUNT);
    assert_eq!(tickets(), before);

    walk.run("kubectl -n gmsa-tickets scale deployment/gmsa-tickets --replicas=2");
    walk.logs_on("shop", "late", "app").await;
}

async fn upgrades_and_rollbacks(walk: &Walk) {
    let running = walk.only("strict", "plain-");
    let ca = || walk.run("kubectl -n gmsa-tickets get secret gmsa-tickets-tls -o 'jsonpath={.data.ca\\.crt}'");
    let before = ca();
    for release in ["gmsa-tickets", "gmsa-webhook"] {
        let upgrade =
            format!("helm upgrade {release} charts/{release} -n {release} --reuse-values --set logLevel=debug");
        for (step, command) in [("upgrade", upgrade), ("rollback", format!("helm rollback {release} -n {release}"))] {
            let old: Vec<_> = walk.kubelet.pods(release, "").iter().map(|pod| pod.folder().to_owned()).collect();
            walk.run(&command);
            let name = format!("{step}-of-{release}");
            walk.pod(&name).await;
            walk.rolled_out(release, release);
            eventually("the old pods are gone", || {
                walk.kubelet.pods(release, "").iter().all(|pod| !old.iter().any(|folder| folder == pod.folder()))
            })
            .await;
            walk.logs_on("shop", &name, "app").await;
            assert!(running.run("gmsa-tickets", "/gmsa-tickets agent ready").unwrap().status.success(), "{name}");
            assert_eq!(String::from_utf8(running.run("app", WHO).unwrap().stdout).unwrap(), ACCOUNT, "{name}");
        }
    }
    assert_eq!(ca(), before, "running pods trust the broker as before");
}

async fn many_pods_at_once(walk: &Walk) {
    walk.deploy("shop", "many", MANY, &application(&[("app", 1000)], &json!({}))).await;
    walk.rolled_out("shop", "many");
    let pods = walk.kubelet.pods("shop", "many-");
    let logged_on = pods.iter().filter(|pod| pod.log("app") == ACCOUNT).count();
    assert_eq!((pods.len(), logged_on), (MANY, MANY));
    let peaks: Vec<_> = walk.kubelet.pods("gmsa-tickets", "").iter().map(|pod| pod.peak("gmsa-tickets")).collect();
    assert!(peaks.iter().all(|peak| *peak < LIMIT), "{peaks:?} MiB");
    println!("{MANY} pods at once: the broker's pods used at most {peaks:?} MiB");
}

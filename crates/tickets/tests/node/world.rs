//! A node beside a domain, the desk of its administrator, and pods of applications.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use gmsa_test_support::{
    control_plane::{Client, grant, namespace, service_account},
    domain::{account, administer, root, tls, user},
    node::{Image, Images, Node, Programs},
    repository,
};
use serde_json::{Value, json};
use tokio::time::sleep;

/// That of the broker's user.
const PASSWORD: &str = "Passw0rd!Broker";
/// What an application does with its tickets, and what the directory answers. Nothing resolves the controller's address to its name: without
/// `SASL_NOCANON` (`-N`) `OpenLDAP` asks for that.
pub const WHO: &str = "ldapwhoami -N -Q -Y GSSAPI -H ldap://dc1.contoso.com";
pub const ACCOUNT: &str = "u:CONTOSO\\WebApp1$\n";
/// A whole rollout takes longer on a busy machine than most that is waited for.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct World {
    pub node: Node,
    folder: PathBuf,
    /// The rows of the table of disruptions.
    pub disruptions: Vec<Vec<String>>,
    /// What pods that wait cost, in cores.
    pub waiting: Option<f64>,
}

impl World {
    pub async fn start(programs: Programs, folder: &Path, built: bool) -> Self {
        administer("group add WebApp1Hosts");
        user("gmsa-tickets", PASSWORD, Some("WebApp1Hosts"));
        account("WebApp1", "WebApp1Hosts", &[]);
        user("Appservice", "Passw0rd!Service", None);
        administer("spn add HTTP/app.contoso.com Appservice");
        administer("spn add ldap/dc1.contoso.com DC1$");

        symlink(repository().join("charts").canonicalize().unwrap(), folder.join("charts")).unwrap();
        fs::write(folder.join("password"), PASSWORD).unwrap();
        fs::copy(tls().join("ca.pem"), folder.join("domain-ca.crt")).unwrap();
        let made = folder.join("images");
        fs::create_dir(&made).unwrap();
        let programs_of_project = ["gmsa-webhook", "gmsa-tickets"].map(|name| {
            let (version, known) =
                (env!("CARGO_PKG_VERSION"), format!("registry.example.com/{name}:{}", env!("CARGO_PKG_VERSION")));
            let beside = Path::new(env!("CARGO_BIN_EXE_gmsa-tickets")).with_file_name(name);
            if built {
                let archive = format!("image/{name}-{version}-amd64.oci.tar");
                let archive = beside.parent().unwrap().with_file_name(archive);
                Image::of_archive(&archive, &format!("localhost/{name}:{version}"), &known)
            } else {
                Image::of_program(&beside, &made, &known)
            }
        });
        let others = Image::of_root(root(), &made, ["registry.example.com/pause:1", "registry.example.com/app:1"]);
        let images = Images::new(others.into_iter().chain(programs_of_project).collect());
        let node = Node::start(programs, folder, &images).await;
        fs::remove_dir_all(made).unwrap();
        Self { node, folder: folder.to_owned(), disruptions: Vec::new(), waiting: None }
    }

    pub fn client(&self) -> &Client {
        &self.node.plane.client
    }

    /// A file on the desk.
    pub fn write(&self, name: &str, contents: &str) {
        fs::write(self.folder.join(name), contents).unwrap();
    }

    /// Commands in the folder of the desk.
    pub fn command(&self, commands: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", commands]).current_dir(&self.folder).stdin(Stdio::null());
        let tools = Path::new(env!("CARGO_BIN_EXE_gmsa-tickets")).parent().unwrap();
        let path = env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", tools.display())).env("HOME", &self.folder);
        command.env("KUBECONFIG", self.folder.join("admin.kubeconfig"));
        command
    }

    /// How commands end.
    pub fn tries(&self, commands: &str) -> Output {
        self.command(commands).output().unwrap()
    }

    /// Runs commands that must succeed, and gives back what they print.
    pub fn run(&self, commands: &str) -> String {
        let output = self.tries(commands);
        let [printed, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{commands}\n{printed}{errors}");
        printed
    }

    /// What a cluster says of itself after a failure.
    pub fn shown(&self) -> String {
        let shown = self.tries(
            "kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -40; \
             for n in gmsa-tickets gmsa-webhook; do kubectl -n $n logs deployment/$n --all-pods --tail=30; done 2>&1",
        );
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// A namespace for applications, with a service account that may use the account.
    pub async fn namespace(&self, name: &str, labels: Value) {
        namespace(self.client(), name, &labels).await;
        service_account(self.client(), name, "web").await;
        grant(self.client(), name, "web", &["webapp1"]).await;
    }

    pub async fn deploy(&self, namespace: &str, name: &str, replicas: usize, spec: &Value) {
        let labels = json!({"app": name});
        let metadata = json!({"labels": labels, "annotations": {"gmsa-webhook/tickets": "webapp1"}});
        let template = json!({"metadata": metadata, "spec": spec});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        let deployment = json!({"metadata": {"name": name}, "spec": spec});
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        self.client().create(&path, &deployment).await.unwrap();
    }

    /// Waits until what a command of the desk prints is this: a container that runs may not have logged on yet.
    pub async fn shows(&self, command: &str, expected: &str) {
        let begun = Instant::now();
        loop {
            let shown = self.tries(command).stdout;
            if shown == expected.as_bytes() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{command}: {}", String::from_utf8_lossy(&shown));
            sleep(Duration::from_millis(500)).await;
        }
    }

    pub fn rolled_out(&self, namespace: &str, name: &str) {
        self.run(&format!("kubectl -n {namespace} rollout status deployment/{name} --timeout={}s", PATIENCE.as_secs()));
    }
}

/// The spec of pods with these containers, each with its user, that log on first.
pub fn application(containers: &[(&str, u64)], more: &Value) -> Value {
    let of_user = |name: &str, user: u64, then: &str| {
        json!({
            "name": name, "image": "registry.example.com/app:1", "command": ["sh", "-c", format!("{WHO}{then}")],
            "securityContext": {
                "runAsNonRoot": user != 0, "runAsUser": user, "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        })
    };
    let all: Vec<_> = containers.iter().map(|(name, user)| of_user(name, *user, " && exec sleep infinity")).collect();
    let mut spec = json!({
        "serviceAccountName": "web", "containers": all, "os": {"name": "linux"}, "terminationGracePeriodSeconds": 1,
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = if field == "initContainers" { json!([of_user("migrate", 1000, "")]) } else { value.clone() };
    }
    spec
}

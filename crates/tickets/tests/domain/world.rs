//! A cluster with the broker, and an account of the domain whose password the broker may retrieve.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Output},
    sync::Once,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    control_plane::{Binaries, ControlPlane, Process, SPECS, grant, install, namespace, service_account},
    domain::{account, administer, fed, of_domain, prints, root, tls, user},
    https::{self, Answer, exchange},
    until,
};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/shop/pods";
/// That of the broker's user.
pub const PASSWORD: &str = "Passw0rd!Broker";

/// The broker, with everything that it needs.
pub struct World {
    pub plane: ControlPlane,
    pub broker: Process,
    /// How the broker is started.
    pub command: Command,
    /// Where the broker listens, and agents ask.
    pub address: SocketAddr,
    ca: String,
    /// What the names of this test in the domain begin with.
    prefix: &'static str,
    pub temporary: tempfile::TempDir,
}

impl World {
    /// Starts all of it, with the account `PREFIXApp`, and the password of the broker's user.
    pub async fn start(prefix: &'static str) -> Self {
        Self::start_with(prefix, PASSWORD).await
    }

    /// The same, with this password in the broker's file.
    pub async fn start_with(prefix: &'static str, password: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        administer(&format!("group add {prefix}Hosts"));
        user(&format!("{prefix}broker"), PASSWORD, Some(&format!("{prefix}Hosts")));
        account(&format!("{prefix}App"), &format!("{prefix}Hosts"), &[]);
        fs::write(temporary.path().join("password"), password).unwrap();

        let plane = ControlPlane::start(Binaries::find().unwrap(), temporary.path()).await;
        install(&plane.client).await;
        for name in ["shop", "tickets"] {
            namespace(&plane.client, name, &json!({})).await;
        }
        for object in chart() {
            create(&plane, &object).await;
        }
        let kubeconfig = temporary.path().join("broker.kubeconfig");
        fs::write(&kubeconfig, plane.kubeconfig_of("tickets", "tickets").await.to_string()).unwrap();
        let config = json!({"domains": [{
            "name": "contoso.com",
            "controllers": ["dc1.contoso.com"],
            "caFile": tls().join("ca.pem"),
            "user": format!("{prefix}broker@contoso.com"),
            "passwordFile": temporary.path().join("password"),
        }]});
        fs::write(temporary.path().join("config.yaml"), config.to_string()).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
        command.args(["serve", "--admin-listen=127.0.0.1:0", "--self-managed-secret=tickets/tickets-tls"]);
        command.args(["--self-managed-service=tickets.tickets", "--config"]).arg(temporary.path().join("config.yaml"));
        command.arg(format!("--listen={address}")).env_clear().env("KUBECONFIG", kubeconfig);
        let mut broker = Process::start("broker", temporary.path(), &mut command);
        broker.until_it_listens(address).await;
        let ca = until("the broker has a certificate", async || {
            let secret = plane.client.get("/api/v1/namespaces/tickets/secrets/tickets-tls").await.unwrap();
            let ca = BASE64_STANDARD.decode(secret["data"]["ca.crt"].as_str()?).unwrap();
            Some(String::from_utf8(ca).unwrap()).filter(|ca| !ca.is_empty())
        })
        .await;
        let world = Self { plane, broker, command, address, ca, prefix, temporary };
        until("the broker serves", async || world.asked("", "web").await.ok()).await;
        world
    }

    /// Starts the broker again, after this change of its domain's configuration.
    pub async fn restart(&mut self, change: impl FnOnce(&mut Value)) {
        self.broker.end();
        let file = self.temporary.path().join("config.yaml");
        let mut config: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        change(&mut config["domains"][0]);
        fs::write(file, config.to_string()).unwrap();
        self.broker = Process::start("broker", self.temporary.path(), &mut self.command);
        until("the broker serves again", async || self.asked("", "web").await.ok()).await;
    }

    /// A credential spec of an account, with the annotation where `services` are named.
    pub async fn spec(&self, name: &str, account: &str, services: Option<&str>) {
        let spec = Self::spec_object(name, account, services);
        self.plane.client.create(SPECS, &spec).await.unwrap();
    }

    pub fn spec_object(name: &str, account: &str, services: Option<&str>) -> Value {
        let annotations = services.map(|services| json!({"gmsa-webhook/services": services})).unwrap_or(json!({}));
        json!({
            "apiVersion": "windows.k8s.io/v1",
            "kind": "GMSACredentialSpec",
            "metadata": {"name": name, "annotations": annotations},
            "credspec": {
                "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [
                    {"Name": account, "Scope": "contoso.com"},
                    {"Name": account, "Scope": "CONTOSO"},
                ]},
                "CmsPlugins": ["ActiveDirectory"],
                "DomainJoinConfig": {
                    "DnsName": "contoso.com",
                    "DnsTreeName": "contoso.com",
                    "Guid": of_domain("objectGUID"),
                    "MachineAccountName": account,
                    "NetBiosName": "CONTOSO",
                    "Sid": of_domain("objectSid"),
                },
            },
        })
    }

    /// The credential spec `web` of an account for these services, and the service account `web` that may use it.
    pub async fn web(&self, account: &str, services: &str) {
        self.spec("web", account, Some(services)).await;
        self.user_of("web", &["web"]).await;
    }

    /// A service account that may use these credential specs.
    pub async fn user_of(&self, name: &str, specs: &[&str]) {
        service_account(&self.plane.client, "shop", name).await;
        if !specs.is_empty() {
            grant(&self.plane.client, "shop", name, specs).await;
        }
    }

    /// A pod with a token for this credential spec among its volumes.
    pub async fn pod(&self, name: &str, service_account: &str, spec: &str) -> Pod {
        let path = "token";
        let token =
            json!({"serviceAccountToken": {"audience": audience(spec), "expirationSeconds": 600, "path": path}});
        let volumes = json!([{"name": "gmsa-tickets-token", "projected": {"sources": [token]}}]);
        self.pod_with(name, service_account, volumes).await
    }

    pub async fn pod_with(&self, name: &str, service_account: &str, volumes: Value) -> Pod {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "finalizers": ["example.com/held"]},
            "spec": {
                "serviceAccountName": service_account,
                "containers": [{"name": "app", "image": "images.invalid/app:1"}],
                "volumes": volumes,
            },
        });
        let pod = self.plane.client.create(PODS, &pod).await.unwrap();
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        Pod { name: name.to_owned(), uid, service_account: service_account.to_owned() }
    }

    /// Deletes a pod, whose finalizer holds it.
    pub async fn delete(&self, pod: &Pod) {
        self.plane.client.delete(&pod.path()).await.unwrap();
    }

    /// Lets a pod that is being deleted go.
    pub async fn release(&self, pod: &Pod) {
        self.plane.client.merge(&pod.path(), &json!({"metadata": {"finalizers": null}})).await.unwrap();
        until("the pod is gone", async || self.plane.client.get(&pod.path()).await.err()).await;
    }

    /// A token for this audience that is bound as `bound` says.
    pub async fn token(&self, service_account: &str, audience: &str, bound: Value) -> String {
        self.token_for(service_account, audience, bound, 600).await
    }

    /// The same, for so many seconds.
    pub async fn token_for(&self, service_account: &str, audience: &str, bound: Value, seconds: u32) -> String {
        let path = format!("/api/v1/namespaces/shop/serviceaccounts/{service_account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [audience], "expirationSeconds": seconds, "boundObjectRef": bound},
        });
        let answer = self.plane.client.create(&path, &request).await.unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// The token that a kubelet would mount into a pod.
    pub async fn token_of(&self, pod: &Pod, spec: &str) -> String {
        self.token(&pod.service_account, &audience(spec), pod.reference()).await
    }

    /// What the broker answers to a token.
    pub async fn asked(&self, token: &str, spec: &str) -> std::io::Result<Answer> {
        self.asked_at("/v1/tickets", token, spec).await
    }

    /// The same, at this path.
    pub async fn asked_at(&self, path: &str, token: &str, spec: &str) -> std::io::Result<Answer> {
        let client =
            https::Client { name: "tickets.tickets.svc".try_into().unwrap(), ..https::Client::trusting(&self.ca) };
        let body = json!({"credentialSpec": spec}).to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: tickets.tickets.svc\r\ncontent-type: application/json\r\nauthorization: Bearer {token}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(&mut client.connect(self.address).await?, request.as_bytes()).await
    }

    /// The status and the reason of the broker's answer to a token; the reason of tickets is empty.
    pub async fn answer(&self, token: &str, spec: &str) -> (u16, String) {
        let answer = self.asked(token, spec).await.unwrap();
        (answer.status.as_u16(), answer.json()["reason"].as_str().unwrap_or_default().to_owned())
    }

    /// Puts another password into the broker's file.
    pub fn set_password(&self) {
        fs::write(self.temporary.path().join("password"), PASSWORD).unwrap();
    }

    /// An agent of a pod that has its first tickets, with the pod's token. Its folder is where MIT's programs are installed.
    pub async fn agent(&self, pod: &Pod, spec: &str) -> Agent {
        let token = self.file_of(pod, "token", &self.token_of(pod, spec).await);
        let agent = self.agent_with(pod, &["--credential-spec", spec, "--token-file", &token]);
        until("there are tickets", async || agent.file("krb5cc")).await;
        agent
    }

    /// A file of a pod that its agent alone reads.
    pub fn file_of(&self, pod: &Pod, name: &str, text: &str) -> String {
        let file = self.temporary.path().join(format!("{}.{name}", pod.name));
        fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// An agent with these arguments.
    pub fn agent_with(&self, pod: &Pod, args: &[&str]) -> Agent {
        let folder = format!("tmp/{}-{}", self.prefix, pod.name);
        let whole = root().join(&folder);
        fs::remove_dir_all(&whole).ok();
        fs::create_dir(&whole).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
        command.args(["agent", "--broker", "tickets.tickets.svc", "--check-interval", "3s"]).args(args);
        command.args(["--broker-address", &self.address.to_string(), "--broker-ca", &self.ca]);
        command.arg("--folder").arg(&whole).env_clear();
        let process = Process::start(&format!("agent-{}", pod.name), self.temporary.path(), &mut command);
        Agent { process, whole, folder: format!("/{folder}") }
    }

    /// The logs of broker and agents.
    pub fn logs(&self) -> String {
        let logs = fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path());
        let ours = logs.filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.strip_suffix(".log").is_some_and(|process| process == "broker" || process.starts_with("agent-"))
        });
        ours.map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

/// The user `NAMEservice` of the domain, which runs services of these names.
pub fn service(name: &str, services: &[impl AsRef<str>]) {
    let user_name = format!("{name}service");
    user(&user_name, "Passw0rd!Service", None);
    for service in services {
        administer(&format!("spn add {} {user_name}", service.as_ref()));
    }
}

/// Gives the controller the name of its LDAP service, once for all tests.
pub fn name_ldap() {
    static IS_NAMED: Once = Once::new();
    IS_NAMED.call_once(|| administer("spn add ldap/dc1.contoso.com DC1$"));
}

pub fn audience(spec: &str) -> String {
    format!("gmsa-tickets/{spec}")
}

/// A pod as it is stored.
pub struct Pod {
    name: String,
    uid: String,
    service_account: String,
}

impl Pod {
    pub fn path(&self) -> String {
        format!("{PODS}/{}", self.name)
    }

    /// What a token is bound to.
    pub fn reference(&self) -> Value {
        json!({"kind": "Pod", "apiVersion": "v1", "name": self.name, "uid": self.uid})
    }
}

/// An agent, and what the containers of its pod see.
pub struct Agent {
    pub process: Process,
    /// The folder of its files.
    whole: PathBuf,
    /// The same for a program that is run where MIT's are installed.
    folder: String,
}

impl Agent {
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.whole.join(name)).ok()
    }

    /// The path of a file in the pod's containers.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Waits until a file is removed.
    pub async fn file_goes(&self, name: &str) {
        until("the file is removed", async || self.file(name).is_none().then_some(())).await;
    }

    /// What the agent says of its last request.
    pub async fn status(&self, wanted: &str) {
        let said = until("the agent says why", async || {
            let status = String::from_utf8(self.file("status")?).unwrap();
            Some(status).filter(|status| status.contains(wanted))
        });
        said.await;
    }

    /// Runs a command as a container of the pod.
    pub fn prints(&self, command: &str) -> String {
        let folder = &self.folder;
        let environment = [format!("KRB5_CONFIG={folder}/krb5.conf"), format!("KRB5CCNAME=FILE:{folder}/krb5cc")];
        let words = ["env", &environment[0], &environment[1]].into_iter().chain(command.split(' '));
        prints(&words.collect::<Vec<_>>(), "")
    }

    /// Whether a command of a container fails.
    pub fn fails(&self, command: &str) -> bool {
        !self.run(command, "").status.success()
    }

    /// How a command of a container ends that gets this on its standard input.
    pub fn run(&self, command: &str, stdin: &str) -> Output {
        let mut within = Command::new("chroot");
        within.arg(root()).args(command.split(' ')).env("KRB5_CONFIG", format!("{}/krb5.conf", self.folder));
        fed(within.env("KRB5CCNAME", format!("FILE:{}/krb5cc", self.folder)), stdin)
    }
}

/// The objects of the chart that give the broker its rights.
fn chart() -> Vec<Value> {
    let rendered =
        fs::read_to_string(gmsa_test_support::repository().join("tests/chart/rendered/tickets.yaml")).unwrap();
    let objects = rendered.split("\n---\n").map(|object| serde_saphyr::from_str::<Value>(object).unwrap());
    let kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret"];
    objects.filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)).collect()
}

async fn create(plane: &ControlPlane, object: &Value) {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let group = match object["apiVersion"].as_str().unwrap() {
        "v1" => "/api/v1".to_owned(),
        group => format!("/apis/{group}"),
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
    plane.client.create(&format!("{group}{namespace}/{kind}s"), object).await.unwrap();
}

/// An attribute of a user of the domain.
pub fn of_user(name: &str, attribute: &str) -> Option<String> {
    let shown = prints(&["ldbsearch", "-H", "/dc/private/sam.ldb", &format!("sAMAccountName={name}"), attribute], "");
    shown.lines().find_map(|line| Some(line.strip_prefix(&format!("{attribute}: "))?.to_owned()))
}

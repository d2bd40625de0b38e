//! What a broker is surrounded by, and what a pod asks it.

use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_directory::NameServers;
use gmsa_edge::{
    authorization_cache::AuthorizationCache,
    metrics::{register, scrape},
    server::{Listener, Serving},
};
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    SimulatedApi, credential_spec,
    directory::{DirectoryAccount, SimulatedDirectory, password},
    https::read_answer,
    kdc::Kdc,
};
use gmsa_tickets::{
    PROGRAM,
    broker::{Broker, routes},
    domains,
    limits::{BrokerLimits, Times},
    metrics::BrokerMetrics,
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub const USER: &str = "broker@contoso.com";
pub const SECRET: &str = "Secret.1";
pub const SERVICES: &str = "HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433";

/// A broker of contoso.com, a pod `web-1` of the service account `web` in the namespace `shop`, which may use the credential spec
/// `webapp1`, and its account `WebApp1`.
pub struct World {
    pub api: SimulatedApi,
    pub directory: SimulatedDirectory,
    pub kdc: Kdc,
    pub folder: TempDir,
    pub address: SocketAddr,
    broker: Arc<Broker>,
    pub registry: Arc<Registry>,
    /// The tokens, by their names in the test.
    pub tokens: Arc<Mutex<HashMap<String, String>>>,
    /// The DNS servers that the broker asks for KDCs.
    name_servers: Option<NameServers>,
    served: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// An answer: its status, its head, and its body as JSON.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Answer {
    /// Status, reason and message of a refusal, which has the status in its body too, and nothing else.
    pub fn refusal(&self) -> (u16, &str, &str) {
        let text = |key: &str| self.body[key].as_str().unwrap_or_else(|| panic!("{self:?}"));
        let (reason, message) = (text("reason"), text("message"));
        assert_eq!(self.body, json!({"code": self.status, "reason": reason, "message": message}));
        (self.status, reason, message)
    }

    pub fn ccache(&self) -> Vec<u8> {
        STANDARD.decode(self.body["ccache"].as_str().unwrap_or_else(|| panic!("{self:?}"))).unwrap()
    }
}

/// What nothing takes long for.
pub fn times() -> Times {
    let long = Duration::from_secs(20);
    Times { kdc: long, logon: long, pause: Duration::ZERO, request: long }
}

/// Puts the clock of the broker ahead.
pub async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

impl World {
    pub async fn start() -> Self {
        Self::with(times(), "").await
    }

    /// With these times, and these lines more in the configuration of the domain.
    pub async fn with(times: Times, lines: &str) -> Self {
        let (api, folder) = (SimulatedApi::start().await, tempfile::tempdir().unwrap());
        let directory = SimulatedDirectory::start("contoso.com", USER, SECRET).await;
        let kdc = Kdc::start("contoso.com").await;
        directory.account("WebApp1", DirectoryAccount::with_password(1));
        for service in SERVICES.split(", ") {
            kdc.service(service);
        }
        let path = |name: &str| folder.path().join(name);
        fs::write(path("ca.crt"), directory.tls.pem()).unwrap();
        fs::write(path("password"), format!("{SECRET}\n")).unwrap();
        let (controller, port) = (directory.address, kdc.address.port());
        let (ca, password) = (path("ca.crt").display().to_string(), path("password").display().to_string());
        let config = format!(
            "domains:\n- name: contoso.com\n  controllers: ['ldaps://{controller}']\n  kdcPort: {port}\n  caFile: {ca}\n  \
             user: {USER}\n  passwordFile: {password}\n{lines}"
        );
        fs::write(path("tickets.yaml"), config).unwrap();
        let (address, broker, registry, served) = serve(&api, &path("tickets.yaml"), times, None);
        let tokens = Arc::default();
        let world = Self { api, directory, kdc, folder, address, broker, registry, tokens, name_servers: None, served };
        world.kdc_knows(1);
        world.api.apply(spec("webapp1", Some(SERVICES)));
        world.api.apply(pod("web-1", "u1"));
        world.accept_token("token-1", &["gmsa-tickets/webapp1"], bound_to("web-1", "u1"));
        world.api.grant_only(&[("shop", "web", "webapp1")]);
        world
    }

    /// With a broker that has read its configuration again.
    pub fn restarted(mut self, times: Times) -> Self {
        self.served.abort();
        let file = self.path("tickets.yaml");
        let served = serve(&self.api, &file, times, self.name_servers.as_ref());
        (self.address, self.broker, self.registry, self.served) = served;
        self
    }

    /// With a broker that asks this DNS server for KDCs.
    pub fn with_dns(mut self, server: SocketAddr, times: Times) -> Self {
        self.name_servers = Some(NameServers::at(&server.to_string()).unwrap());
        self.restarted(times)
    }

    /// How many requests are given tickets of a domain.
    pub fn taken(&self, domain: &str) -> usize {
        self.broker.taken(domain)
    }

    /// A token that the API server accepts for these audiences, as the kubelet gets it.
    pub fn accept_token(&self, name: &str, audiences: &[&str], user: Value) {
        self.accept_token_that_says(name, audiences, audiences, user);
    }

    /// The same; the token says that it is for other audiences.
    pub fn accept_token_that_says(&self, name: &str, says: &[&str], audiences: &[&str], user: Value) {
        let token = token(name, says, &user);
        self.api.accept_token(&token, audiences, user);
        self.tokens.lock().unwrap().insert(name.to_owned(), token);
    }

    /// Another pod, with a token for this credential spec. The token's name is the pod's name.
    pub fn add_pod(&self, name: &str, spec: &str) {
        self.api.apply(pod_of(name, name, spec));
        self.accept_token(name, &[&format!("gmsa-tickets/{spec}")], bound_to(name, name));
    }

    /// What the pod gets.
    pub async fn ask(&self) -> Answer {
        self.ask_for("webapp1", "token-1").await
    }

    /// The tickets of a credential spec.
    pub async fn ask_for(&self, spec: &str, token: &str) -> Answer {
        self.ask_at("/v1/tickets", spec, token).await
    }

    /// Asks at this path.
    pub async fn ask_at(&self, path: &str, spec: &str, token: &str) -> Answer {
        let body = json!({"credentialSpec": spec}).to_string();
        let token = self.tokens.lock().unwrap().get(token).cloned().unwrap_or(token.to_owned());
        let bearer = format!("authorization: Bearer {token}\r\n");
        self.send(&format!("POST {path}"), &format!("{bearer}content-type: application/json\r\n"), &body).await
    }

    /// Sends any request.
    pub async fn send(&self, line: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nhost: l\r\n{headers}content-length: {length}\r\n\r\n");
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let (head, answer) = read_answer(&mut stream).await.unwrap();
        let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{head}{:?}", answer.body));
        Answer { status: answer.status.as_u16(), head, body }
    }

    /// The KDC accepts only the password that repeats this byte.
    pub fn kdc_knows(&self, byte: u8) {
        self.kdc.account("WebApp1$", &Password::managed(&password(byte)), EncryptionType::Aes256);
    }

    /// How many passwords were tried since the last call.
    pub fn tries(&self) -> usize {
        self.kdc.asked().iter().filter(|asked| asked.starts_with("AS+")).count()
    }

    /// How many passwords were read since the last call.
    pub fn reads(&self) -> usize {
        self.directory.asked().iter().filter(|asked| asked.starts_with("password")).count()
    }

    /// A file beside the configuration.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the file of the user's password.
    pub fn write_password(&self, text: &str) {
        fs::write(self.path("password"), text).unwrap();
    }

    /// Whether a line is in what Prometheus reads.
    pub fn shows(&self, line: &str) -> bool {
        scrape(&self.registry).unwrap().lines().any(|shown| shown == line)
    }
}

/// Serves a broker with this configuration.
fn serve(
    api: &SimulatedApi,
    config: &Path,
    times: Times,
    name_servers: Option<&NameServers>,
) -> (SocketAddr, Arc<Broker>, Arc<Registry>, JoinHandle<()>) {
    let client = Arc::new(ApiServer::new(api.config()).unwrap());
    let authorizer = Arc::new(AuthorizationCache::new(Arc::clone(&client) as _, Duration::ZERO));
    let (edge, metrics, registry) = register(&PROGRAM, BrokerMetrics::register);
    let mut domains = domains::load(config).unwrap();
    // No test depends on the DNS of its machine.
    let none = NameServers::at("127.0.0.1:9").unwrap();
    for domain in &mut domains {
        domain.name_servers = Some(name_servers.unwrap_or(&none).clone());
    }
    let broker = Arc::new(Broker::new(client, authorizer, domains, BrokerLimits::of_memory(128 << 20), times, metrics));
    let serving = Serving { metrics: Some(edge), ..Serving::new(100, 1000, Duration::from_secs(60)) };
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), serving).unwrap();
    let (address, routes) = (listener.address(), routes::router(Arc::clone(&broker)));
    let served = tokio::spawn(async move {
        listener.serve(routes, CancellationToken::new(), Duration::ZERO).await;
    });
    (address, broker, Arc::new(registry), served)
}

/// A credential spec of `WebApp1` in contoso.com, with this annotation.
pub fn spec(name: &str, services: Option<&str>) -> Value {
    let join = json!({"Sid": "S-1-5-21-1-2-3", "DnsName": "contoso.com", "MachineAccountName": "WebApp1"});
    let mut spec = credential_spec(name, json!({"DomainJoinConfig": join}));
    if let Some(services) = services {
        spec["metadata"]["annotations"] = json!({"gmsa-webhook/services": services});
    }
    spec
}

/// A running pod of the service account `web`, with a token for `webapp1` in its volumes.
pub fn pod(name: &str, uid: &str) -> Value {
    pod_of(name, uid, "webapp1")
}

/// The same, with a token for this credential spec.
pub fn pod_of(name: &str, uid: &str, spec: &str) -> Value {
    let audience = format!("gmsa-tickets/{spec}");
    let token = json!({"serviceAccountToken": {"audience": audience, "expirationSeconds": 600, "path": "token"}});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "uid": uid},
        "spec": {
            "serviceAccountName": "web",
            "containers": [{"name": "app", "image": "app"}],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "gmsa-tickets-token", "projected": {"sources": [token]}}],
        },
        "status": {"phase": "Running"},
    })
}

/// A token as kube-apiserver makes it, but for its signature.
fn token(name: &str, audiences: &[&str], user: &Value) -> String {
    let text = |key: &str| user["extra"][format!("authentication.kubernetes.io/{key}")][0].clone();
    let mut kubernetes = json!({"namespace": "shop", "serviceaccount": {"name": "web", "uid": "5"}});
    if text("pod-uid").is_string() {
        kubernetes["pod"] = json!({"name": text("pod-name"), "uid": text("pod-uid")});
    }
    let exp = time::UtcDateTime::now().unix_timestamp() + 600;
    let claims =
        json!({"aud": audiences, "exp": exp, "jti": name, "kubernetes.io": kubernetes, "sub": user["username"]});
    format!("eyJhbGciOiJSUzI1NiJ9.{}.c2lnbmVk", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// What a `TokenReview` shows of a token that is bound to a pod of the service account `web`.
pub fn bound_to(pod: &str, uid: &str) -> Value {
    json!({
        "username": "system:serviceaccount:shop:web",
        "uid": "5",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/credential-id": ["JTI=7c2f"],
            "authentication.kubernetes.io/node-name": ["node-1"],
            "authentication.kubernetes.io/pod-name": [pod],
            "authentication.kubernetes.io/pod-uid": [uid],
        },
    })
}

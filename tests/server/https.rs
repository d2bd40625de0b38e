//! A webhook server of the library's own on a free port, and a client that trusts it.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use gmsa_cluster::{large_memory::LargeMemory, standalone::Standalone};
use gmsa_core::admission::{Enforcement, TicketSettings};
use gmsa_edge::{
    metrics,
    server::{Handshakes, Listener, Serving},
    tls::{
        self, KeyPair, Served,
        client_auth::ClientAuth,
        issue::{Ca, Issued},
    },
};
use gmsa_webhook::{
    PROGRAM,
    limits::{DEFAULT_MEMORY, IDLE_TIMEOUT, Limits},
    metrics::Metrics,
    server::{LookUpSources, Reviewer, routes},
};
use prometheus_client::registry::Registry;
use tokio::{net::TcpStream, runtime::Handle, sync::watch, task::JoinHandle};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::support::https::{Answer, Client, NAME, post};

pub const DAY: Duration = Duration::from_secs(24 * 3600);

pub fn authority() -> Ca {
    Ca::generate("test CA", SystemTime::now(), 100 * DAY).unwrap()
}

pub fn leaf(ca: &Ca, name: &str) -> Issued {
    ca.issue(PROGRAM.name, &[name.to_owned()], SystemTime::now(), DAY).unwrap().0
}

pub fn key_pair(Issued { cert, key }: &Issued) -> KeyPair {
    KeyPair::from_pem(cert.as_bytes(), key.as_bytes(), SystemTime::now()).unwrap()
}

/// A certificate of this authority, which is served.
pub fn served(ca: &Ca, name: &str) -> Served {
    let served = Served::new(Metrics::new().0);
    served.publish(key_pair(&leaf(ca, name)));
    served
}

/// A reviewer that enforces denials.
pub fn reviewer(for_decisions: LookUpSources, for_advice: LookUpSources, metrics: Metrics) -> Reviewer {
    Reviewer {
        for_decisions,
        for_advice,
        random_hostname: false,
        strict_credential_specs: false,
        enforcement: Enforcement::Enforce,
        warn_namespaces: Arc::default(),
        tickets: watch::channel(TicketSettings::Off).1,
        metrics,
    }
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub client: Client,
    /// Cancelled where what is connected should go elsewhere.
    pub ending: CancellationToken,
    pub closing: CancellationToken,
    /// Ends with the number of connections that were dropped.
    pub task: JoinHandle<usize>,
    /// What a scrape reads.
    pub metrics: Registry,
}

/// How a server is to be made.
pub struct Setup {
    pub sources: LookUpSources,
    pub limits: Limits,
    /// The clients: connections end when they are no longer trusted.
    pub clients: Option<Arc<ClientAuth>>,
    pub drain: Duration,
    /// Set while the replica has a fault that others do not have.
    pub fault: Arc<AtomicBool>,
}

impl Setup {
    /// Answers from the examples' manifests.
    pub fn examples() -> Self {
        let Standalone { specs, rbac } = Standalone::load(Path::new("examples")).unwrap();
        Self {
            sources: LookUpSources { resolver: Arc::new(specs), authorizer: Arc::new(rbac) },
            limits: Limits::of_memory(DEFAULT_MEMORY),
            clients: None,
            drain: Duration::from_secs(10),
            fault: Arc::default(),
        }
    }

    pub fn start(self) -> Server {
        let ca = authority();
        self.serve(&served(&ca, NAME), Client::trusting(ca.cert_pem()))
    }

    /// Serves what is published; `client` calls it.
    pub fn serve(self, served: &Served, client: Client) -> Server {
        let (edge, metrics, registry) = Metrics::new();
        let reviewer = reviewer(self.sources.clone(), self.sources, metrics);
        let (ending, closing) = (CancellationToken::new(), CancellationToken::new());
        let tls = tls::server_config(served, self.clients.clone()).unwrap();
        let serving = Serving {
            tls: Some(Handshakes::new(tls, Handle::current())),
            clients: self.clients,
            metrics: Some(edge),
            keeps_decided: true,
            ending: ending.clone(),
            fault: self.fault,
            ..Serving::new(self.limits.connections, self.limits.waiting, IDLE_TIMEOUT)
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), serving).unwrap();
        let router = routes::router(reviewer, &self.limits, LargeMemory::new(self.limits.large_bytes));
        let address = listener.address();
        let task = tokio::spawn(listener.serve(router, closing.clone(), self.drain));
        Server { address, client, ending, closing, task, metrics: registry }
    }
}

impl Server {
    /// A TLS connection.
    pub async fn connect(&self) -> TlsStream<TcpStream> {
        self.client.connect(self.address).await.unwrap()
    }

    /// Whether a scrape shows this line.
    pub fn shows(&self, line: &str) -> bool {
        metrics::scrape(&self.metrics).unwrap().lines().any(|shown| shown == line)
    }

    /// One request on a connection of its own.
    pub async fn send(&self, request: &[u8]) -> Answer {
        self.client.keep_alive(self.address).await.unwrap().send(request).await.unwrap()
    }

    /// Posts a review.
    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send(&post(path, body.as_ref())).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: l\r\n\r\n").as_bytes()).await
    }
}

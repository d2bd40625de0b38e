//! A webhook server of the library's own on a free port, and a client that trusts it.

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use gmsa_cluster::{authorizer::Authorizer, resolver::Resolver, standalone::Standalone};
use gmsa_core::admission::Enforcement;
use gmsa_webhook::{
    limits::Limits,
    metrics::{self, Metrics},
    server::{self, Reviewer, Sources},
    tls::{self, KeyPair, Served, client_auth::ClientAuth, issue::Ca},
};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub ca: String,
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
    pub resolver: Arc<dyn Resolver>,
    pub authorizer: Arc<dyn Authorizer>,
    pub random_hostname: bool,
    pub enforcement: Enforcement,
    pub limits: Limits,
    /// Whose connections end when they are no longer trusted.
    pub clients: Option<Arc<ClientAuth>>,
    pub drain: Duration,
}

impl Setup {
    /// Answers from the manifests under `folder`.
    pub fn standalone(folder: &Path) -> Self {
        let Standalone { specs, rbac } = Standalone::load(folder).unwrap();
        Self {
            resolver: Arc::new(specs),
            authorizer: Arc::new(rbac),
            random_hostname: false,
            enforcement: Enforcement::Enforce,
            limits: Limits::default(),
            clients: None,
            drain: Duration::from_secs(10),
        }
    }

    pub fn start(self) -> Server {
        let now = SystemTime::now();
        let ca = Ca::generate("test CA", now, Duration::from_secs(3600)).unwrap();
        let leaf = ca.issue(&["localhost".to_owned(), "127.0.0.1".to_owned()], now, Duration::from_secs(3600)).unwrap();
        let served = Served::new(Metrics::new("test").0);
        served.publish(KeyPair::from_pem(leaf.cert.as_bytes(), leaf.key.as_bytes(), now).unwrap());
        let tls = tls::server_config(&served, None).unwrap();
        self.serve(tls, ca.cert_pem().to_owned())
    }

    /// Serves with these TLS settings; `ca` is what a client should trust.
    pub fn serve(self, tls: Arc<ServerConfig>, ca: String) -> Server {
        let (metrics, registry) = Metrics::new("test");
        let sources = Sources { resolver: self.resolver, authorizer: self.authorizer };
        let reviewer = Reviewer {
            for_decisions: sources.clone(),
            for_advice: sources,
            random_hostname: self.random_hostname,
            strict_credential_specs: false,
            enforcement: self.enforcement,
            warn_namespaces: Arc::default(),
            metrics,
        };
        let (ending, closing) = (CancellationToken::new(), CancellationToken::new());
        let local = "127.0.0.1:0".parse().unwrap();
        let large_memory = self.limits.large_memory();
        let (listener, router) =
            server::bind(local, tls, self.clients, ending.clone(), self.limits, large_memory, reviewer).unwrap();
        let address = listener.address();
        let task = tokio::spawn(listener.serve(router, closing.clone(), self.drain));
        Server { address, ca, ending, closing, task, metrics: registry }
    }
}

/// An answer as a client sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Server {
    /// A TLS connection that offers these protocols by ALPN.
    pub async fn connect(&self, alpn: &[&str]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(tls::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// Whether a scrape shows this line.
    pub fn shows(&self, line: &str) -> bool {
        metrics::scrape(&self.metrics).unwrap().lines().any(|shown| shown == line)
    }

    /// One HTTP/1.1 request on a connection of its own.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let stream = self.connect(&["http/1.1"]).await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let answer = answer(sender.send_request(request).await.unwrap()).await;
        drop(sender);
        // The server may have closed while the body was still being sent.
        let _ = connection.await.unwrap();
        answer
    }

    /// Posts a review.
    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send(review_request(path, body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        let request = Request::builder().uri(path).header("host", "localhost");
        self.send(request.body(Full::default()).unwrap()).await
    }
}

pub fn review_request(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

pub async fn answer(response: http::Response<hyper::body::Incoming>) -> Answer {
    let status = response.status();
    Answer { status, body: response.into_body().collect().await.unwrap().to_bytes() }
}

//! An API server's side of a connection: it trusts a bundle, asks for one name, and may show a certificate.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use gmsa_webhook::tls::{CaBundle, Clock, Summary, crypto_provider, issue::Issued};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    time_provider::TimeProvider,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The name by which an API server calls.
pub const NAME: &str = "gmsa-webhook.gmsa.svc";

struct Time(Clock);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        (self.0)().duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

/// Connects, and posts reviews.
#[derive(Clone)]
pub struct Client(pub Arc<ClientConfig>);

impl Client {
    /// Trusts the authorities in `bundle`, which is PEM.
    pub fn trusting(bundle: &str) -> Self {
        Self::new(&CaBundle::salvage(bundle.as_bytes()), Arc::new(SystemTime::now), None)
    }

    /// Trusts a bundle at a time, and shows a certificate if it has one.
    pub fn new(bundle: &CaBundle, clock: Clock, certificate: Option<&Issued>) -> Self {
        let mut roots = RootCertStore::empty();
        for authority in bundle.iter() {
            roots.add(authority.clone()).unwrap();
        }
        let config = ClientConfig::builder_with_details(crypto_provider(), Arc::new(Time(clock)))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => config.with_no_client_auth(),
            Some(Issued { cert, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()];
                config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
        };
        // Go's client does not resume either.
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }

    /// Resumes its sessions where the server lets it.
    pub fn resuming(mut self) -> Self {
        Arc::make_mut(&mut self.0).resumption = rustls::client::Resumption::default();
        self
    }

    /// A TLS connection.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::clone(&self.0)).connect(ServerName::try_from(NAME).unwrap(), stream).await
    }

    /// The serial number of the certificate that a new connection gets.
    pub async fn serial(&self, address: SocketAddr) -> io::Result<String> {
        let stream = self.connect(address).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        let (_, leaf) = X509Certificate::from_der(&chain[0]).unwrap();
        Ok(Summary::of(&leaf).serial)
    }

    /// A connection for many reviews.
    pub async fn keep_alive(&self, address: SocketAddr) -> io::Result<KeepAlive> {
        let stream = self.connect(address).await?;
        let handshake = stream.get_ref().1.handshake_kind().unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(KeepAlive { sender, handshake })
    }

    /// Posts a review on a connection of its own; says how that began, or an error where it is not answered as it should be.
    pub async fn review(&self, address: SocketAddr) -> io::Result<HandshakeKind> {
        let mut connection = self.keep_alive(address).await?;
        connection.review().await?;
        Ok(connection.handshake)
    }
}

/// A connection for many reviews.
pub struct KeepAlive {
    sender: http1::SendRequest<Full<Bytes>>,
    handshake: HandshakeKind,
}

impl KeepAlive {
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> io::Result<Answer> {
        self.sender.ready().await.map_err(io::Error::other)?;
        let response = self.sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        Ok(Answer { status, body: response.into_body().collect().await.map_err(io::Error::other)?.to_bytes() })
    }

    /// Posts a review; an error where it is not answered as it should be.
    pub async fn review(&mut self) -> io::Result<()> {
        let review = std::fs::read("examples/review-mutate.json")?;
        let answer = self.send(post("/mutate", review)).await?;
        let allowed = answer.status == StatusCode::OK && answer.json()["response"]["allowed"] == true;
        if allowed { Ok(()) } else { Err(io::Error::other(format!("{answer:?}"))) }
    }
}

/// An answer as a client sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Why a review is denied.
    pub fn message(&self) -> String {
        self.json()["response"]["status"]["message"].as_str().unwrap().to_owned()
    }
}

/// The request of a review.
pub fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(path).header("host", "localhost").header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}

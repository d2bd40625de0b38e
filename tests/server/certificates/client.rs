//! An API server's side of a connection: it trusts a bundle, asks for one name, and may show a certificate.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use gmsa_webhook::tls::{CaBundle, Clock, Summary, crypto_provider, issue::Issued};
use http::StatusCode;
use http_body_util::Full;
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

use super::{NAME, review};
use crate::https::{Answer, answer, review_request};

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
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// Resumes its sessions where the server lets it.
    pub fn resuming(mut self) -> Self {
        Arc::make_mut(&mut self.0).resumption = rustls::client::Resumption::default();
        self
    }

    /// Trusts the authorities in `bundle`, which is PEM.
    pub fn trusting(bundle: &str) -> Self {
        Self::new(&CaBundle::salvage(bundle.as_bytes()), Arc::new(SystemTime::now), None)
    }

    /// Trusts a bundle at a time.
    pub fn at(bundle: &CaBundle, clock: Clock) -> Self {
        Self::new(bundle, clock, None)
    }

    /// Shows a certificate when it is asked for one.
    pub fn showing(bundle: &str, certificate: &Issued) -> Self {
        Self::new(&CaBundle::salvage(bundle.as_bytes()), Arc::new(SystemTime::now), Some(certificate))
    }

    fn new(bundle: &CaBundle, clock: Clock, certificate: Option<&Issued>) -> Self {
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

    /// Posts a review on a connection of its own; gives back when it was not answered as it should be.
    pub async fn review(&self, address: SocketAddr) -> io::Result<()> {
        self.keep_alive(address).await?.review().await
    }

    /// Posts a review, and says how its connection began.
    pub async fn handshake(&self, address: SocketAddr) -> io::Result<HandshakeKind> {
        let stream = self.connect(address).await?;
        let kind = stream.get_ref().1.handshake_kind().unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        // With the answer comes what the client needs to resume.
        answer(sender.send_request(review_request("/mutate", review())).await.map_err(io::Error::other)?).await;
        Ok(kind)
    }

    /// A connection for many reviews.
    pub async fn keep_alive(&self, address: SocketAddr) -> io::Result<KeepAlive> {
        let stream = self.connect(address).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(KeepAlive(sender))
    }
}

/// A connection for many reviews.
pub struct KeepAlive(http1::SendRequest<Full<Bytes>>);

impl KeepAlive {
    /// Posts a review; an error where it was not answered as it should be.
    pub async fn review(&mut self) -> io::Result<()> {
        let Self(sender) = self;
        sender.ready().await.map_err(io::Error::other)?;
        let response = sender.send_request(review_request("/mutate", review())).await;
        let answer: Answer = answer(response.map_err(io::Error::other)?).await;
        let allowed = answer.status == StatusCode::OK && answer.json()["response"]["allowed"] == true;
        if allowed { Ok(()) } else { Err(io::Error::other(format!("{answer:?}"))) }
    }
}

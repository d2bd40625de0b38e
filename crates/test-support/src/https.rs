//! An API server's side of a connection to a webhook: it trusts a bundle, asks for one name, and may show a certificate. HTTP/1.1 is
//! written by hand: what a test or an attack sends is not always what a library would send.

use std::{
    fmt, fs, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::UNIX_EPOCH,
};

use gmsa_edge::{
    clock::{Clock, Moment},
    tls::{CaBundle, Summary, crypto_provider, issue::Issued},
};
use http::StatusCode;
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    time_provider::TimeProvider,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::repository;

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
        (self.0)().wall.duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

/// Connects, and posts reviews.
#[derive(Clone)]
pub struct Client {
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
    /// The address that it connects from.
    pub source: Ipv4Addr,
}

impl Client {
    /// Trusts the authorities in `bundle`, which is PEM.
    pub fn trusting(bundle: &str) -> Self {
        Self::new(&CaBundle::salvage(bundle.as_bytes()), Arc::new(Moment::now), None)
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
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { config: Arc::new(config), name: NAME.try_into().unwrap(), source: Ipv4Addr::LOCALHOST }
    }

    /// Resumes its sessions where the server lets it.
    #[must_use]
    pub fn resuming(mut self) -> Self {
        Arc::make_mut(&mut self.config).resumption = Resumption::default();
        self
    }

    /// A TLS connection.
    pub async fn connect(&self, to: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let stream = connect(self.source, to).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(Arc::clone(&self.config)).connect(self.name.clone(), stream).await
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
        Ok(KeepAlive(self.connect(address).await?))
    }

    /// Posts a review on a connection of its own; says how that began, or an error where it is not answered as it should be.
    pub async fn review(&self, address: SocketAddr) -> io::Result<HandshakeKind> {
        let mut connection = self.keep_alive(address).await?;
        connection.review().await?;
        Ok(connection.0.get_ref().1.handshake_kind().unwrap())
    }
}

/// A connection from this address.
pub async fn connect(source: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    socket.connect(to).await
}

/// A connection for many reviews.
pub struct KeepAlive(TlsStream<TcpStream>);

impl KeepAlive {
    pub async fn send(&mut self, request: &[u8]) -> io::Result<Answer> {
        exchange(&mut self.0, request).await
    }

    /// Posts a review; an error where it is not answered as it should be.
    pub async fn review(&mut self) -> io::Result<()> {
        let review = fs::read(repository().join("examples/review-mutate.json"))?;
        let answer = self.send(&post("/mutate", &review)).await?;
        let allowed = answer.status == StatusCode::OK && answer.json()["response"]["allowed"] == true;
        if allowed { Ok(()) } else { Err(io::Error::other(format!("{answer:?}"))) }
    }
}

/// An answer as a client sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    /// In seconds.
    pub retry_after: Option<u64>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Why a review is denied.
    pub fn message(&self) -> String {
        self.json()["response"]["status"]["message"].as_str().unwrap().to_owned()
    }
}

/// The head of a review's request with a body of this many bytes.
pub fn post_head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

/// The request of a review.
pub fn post(path: &str, body: &[u8]) -> Vec<u8> {
    [post_head(path, body.len()).as_bytes(), body].concat()
}

/// Sends a request, and reads while it writes: a server may answer before it has the whole body.
pub async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &[u8]) -> io::Result<Answer> {
    let (mut from, mut to) = split(stream);
    let write = async {
        to.write_all(request).await?;
        to.flush().await
    };
    let mut read = std::pin::pin!(read_answer(&mut from));
    let (_, answer) = tokio::select! {
        answer = &mut read => answer,
        // However it ends.
        _ = write => read.await,
    }?;
    Ok(answer)
}

/// The head of an answer.
pub async fn read_head(from: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(from.read_u8().await?);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

/// One answer with a `content-length`, or without a body; and its head.
pub async fn read_answer(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(String, Answer)> {
    let head = read_head(from).await?;
    let status = head.split(' ').nth(1).unwrap_or_default().parse().map_err(io::Error::other)?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let retry_after = head.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok());
    let mut body = vec![0; length.map_or(Ok(0), str::parse).map_err(io::Error::other)?];
    from.read_exact(&mut body).await?;
    Ok((head, Answer { status, retry_after, body }))
}

//! Connections to the server, and reviews on them.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use gmsa_edge::tls::crypto_provider;
use gmsa_test_support::https::{self, NAME, exchange};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::client::TlsStream;

/// How long an answer is waited for: longer than the API server does, so that what takes too long is seen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What is needed to connect.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    tls: https::Client,
}

impl Client {
    /// Trusts this CA alone.
    pub fn new(address: SocketAddr, ca: &str) -> Self {
        let mut tls = https::Client { name: address.ip().into(), ..https::Client::trusting(ca) };
        // Some attacks write TLS records of their own.
        Arc::make_mut(&mut tls.config).enable_secret_extraction = true;
        Self { address, tls }
    }

    /// A client that offers this protocol instead of HTTP/1.1.
    pub fn over(mut self, protocol: &[u8]) -> Self {
        Arc::make_mut(&mut self.tls.config).alpn_protocols = vec![protocol.to_vec()];
        self
    }

    /// A client that connects from this address.
    pub fn from(mut self, source: Ipv4Addr) -> Self {
        self.tls.source = source;
        self
    }

    /// A TLS connection.
    pub async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        self.tls.connect(self.address).await
    }

    /// Sends this on a new connection.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<TlsStream<TcpStream>> {
        let mut stream = self.connect().await?;
        stream.write_all(bytes).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// The same, and disconnects a little later.
    pub async fn send_and_leave(&self, bytes: &[u8], stay: Duration) -> io::Result<()> {
        let _stream = self.send(bytes).await?;
        sleep(stay).await;
        Ok(())
    }

    /// Posts a review on a connection of its own.
    pub async fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.post_on(&mut None, path, body).await
    }

    /// Posts a review on the connection that is kept, or on a new one, and keeps it.
    pub async fn post_on(&self, kept: &mut Option<TlsStream<TcpStream>>, path: &str, body: &[u8]) -> Answer {
        let request = request(path, body);
        if let Some(mut connection) = kept.take() {
            // The server may have closed it.
            let answer = Answer::within(PATIENCE, exchange(&mut connection, &request)).await;
            if answer.0.is_some() {
                *kept = Some(connection);
                return answer;
            }
        }
        let Ok(Ok(mut connection)) = timeout(PATIENCE, self.connect()).await else { return Answer(None) };
        let answer = Answer::within(PATIENCE, exchange(&mut connection, &request)).await;
        *kept = Some(connection);
        answer
    }
}

/// The first bytes of a client that speaks this version alone.
pub fn hello(version: &'static SupportedProtocolVersion) -> Bytes {
    let config = ClientConfig::builder_with_provider(crypto_provider()).with_protocol_versions(&[version]).unwrap();
    let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let mut client = ClientConnection::new(config.into(), NAME.try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello.into()
}

/// A review as it is posted.
pub fn request(path: &str, body: &[u8]) -> Vec<u8> {
    [head(path, body.len()).as_bytes(), body].concat()
}

/// The head of a review of this length, with the usual time limit unless the path names one.
pub fn head(path: &str, length: usize) -> String {
    let limit = if path.contains('?') { "" } else { "?timeout=10s" };
    https::post_head(&format!("{path}{limit}"), length)
}

/// Nothing where no whole answer came.
pub struct Answer(Option<https::Answer>);

impl Answer {
    /// What is read within this time.
    pub async fn within(time: Duration, read: impl Future<Output = io::Result<https::Answer>>) -> Self {
        Self(timeout(time, read).await.ok().and_then(Result::ok))
    }

    /// In a word: `allowed`, `denied 422`, `503`, `none`; for a request other than a review, the code.
    pub fn word(&self) -> String {
        let Some(answer) = &self.0 else { return "none".to_owned() };
        match serde_json::from_slice::<Value>(&answer.body) {
            Ok(review) if review["response"]["allowed"] == true => "allowed".to_owned(),
            Ok(review) if answer.status == 200 => format!("denied {}", review["response"]["status"]["code"]),
            _ => answer.status.as_u16().to_string(),
        }
    }
}

//! Connections to the server, and HTTP/1.1 by hand: what an attack sends is not always what a library would send.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gmsa_webhook::tls;
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, split},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How long an answer is waited for: longer than the API server does, so that what takes too long is seen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// What is needed to connect.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    source: Ipv4Addr,
    connector: TlsConnector,
}

impl Client {
    /// Trusts this CA alone. Like the API server, it never resumes a TLS session.
    pub fn new(address: SocketAddr, ca: &str) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(tls::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        // Some attacks write TLS records of their own.
        config.enable_secret_extraction = true;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { address, source: Ipv4Addr::LOCALHOST, connector: Arc::new(config).into() }
    }

    /// One that offers this protocol instead of HTTP/1.1.
    pub fn over(self, protocol: &[u8]) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.alpn_protocols = vec![protocol.to_vec()];
        Self { connector: Arc::new(config).into(), ..self }
    }

    /// One that connects from this address.
    pub fn from(self, source: Ipv4Addr) -> Self {
        Self { source, ..self }
    }

    /// A TLS connection.
    pub async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = connect(self.source, self.address).await?;
        stream.set_nodelay(true)?;
        self.connector.connect(ServerName::from(self.address.ip()), stream).await
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
            let answer = exchange(&mut connection, &request).await;
            if answer.0.is_some() {
                *kept = Some(connection);
                return answer;
            }
        }
        let Ok(Ok(mut connection)) = timeout(PATIENCE, self.connect()).await else { return Answer(None) };
        let answer = exchange(&mut connection, &request).await;
        *kept = Some(connection);
        answer
    }
}

/// A connection from this address.
pub async fn connect(source: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    socket.connect(to).await
}

/// Sends a request on a connection that is open, and reads while it writes.
async fn exchange(connection: &mut TlsStream<TcpStream>, request: &[u8]) -> Answer {
    let (mut from, mut to) = split(connection);
    let write = async {
        to.write_all(request).await?;
        to.flush().await
    };
    let exchange = async {
        // Where the server answers early, what is left of the body need not be written.
        let mut read = std::pin::pin!(read_answer(&mut from));
        tokio::select! {
            answer = &mut read => answer,
            _ = write => read.await,
        }
    };
    Answer::within(PATIENCE, exchange).await
}

/// A review as it is posted.
pub fn request(path: &str, body: &[u8]) -> Vec<u8> {
    [head(path, body.len()).as_bytes(), body].concat()
}

/// The head of a review of this length, with the usual time limit unless the path names one.
pub fn head(path: &str, length: usize) -> String {
    let limit = if path.contains('?') { "" } else { "?timeout=10s" };
    let length = format!("content-length: {length}");
    [&format!("POST {path}{limit} HTTP/1.1"), "host: localhost", "content-type: application/json", &length, "", ""]
        .join("\r\n")
}

/// Status code and body; nothing where no whole answer came.
pub struct Answer(pub Option<(u16, Vec<u8>)>);

impl Answer {
    /// What is read within this time.
    pub async fn within(time: Duration, read: impl Future<Output = io::Result<(u16, Vec<u8>)>>) -> Self {
        Self(timeout(time, read).await.ok().and_then(Result::ok))
    }

    /// In a word: `allowed`, `denied 422`, `503`, `none`.
    pub fn word(&self) -> String {
        match &self.0 {
            None => "none".to_owned(),
            Some((200, body)) => {
                let answer: Value = serde_json::from_slice(body).unwrap_or_default();
                match &answer["response"] {
                    response if response["allowed"] == true => "allowed".to_owned(),
                    response => format!("denied {}", response["status"]["code"]),
                }
            }
            Some((code, _)) => code.to_string(),
        }
    }
}

/// Reads one answer with a `content-length`, or none.
pub async fn read_answer(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(u16, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let invalid = || io::Error::from(io::ErrorKind::InvalidData);
            let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(invalid)?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(Ok(0), str::parse::<usize>).map_err(|_| invalid())?;
            let mut body = bytes.split_off(end + 4);
            let have = body.len();
            body.resize(length.min(MAX_ANSWER), 0);
            if have < body.len() {
                from.read_exact(&mut body[have..]).await?;
            }
            return Ok((code, body));
        }
        if from.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

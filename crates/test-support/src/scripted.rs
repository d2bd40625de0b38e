//! An HTTPS server with a list of answers: each connection gets the next one, and its request is recorded. It is for tests of clients.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::{crypto_provider, issue::Ca};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::https::read_head;

/// A server that ends with the test.
pub struct Scripted {
    pub address: SocketAddr,
    /// The CA that signs for it, as PEM.
    pub ca: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Scripted {
    /// Serves `answers`, which are whole answers of HTTP/1.1, under a name. After the last one it accepts no connection.
    pub async fn start(name: &str, answers: impl IntoIterator<Item = String>) -> Self {
        let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 3600));
        let ca = Ca::generate("scripted CA", now, day).unwrap();
        let leaf = ca.issue(name, &[name.to_owned()], now, day).unwrap().0;
        let chain = CertificateDer::pem_slice_iter(leaf.cert.as_bytes()).map(Result::unwrap).collect();
        let tls = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, answers) = (Arc::<Mutex<Vec<String>>>::default(), answers.into_iter().collect::<Vec<_>>());
        let recorded = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            for answer in answers {
                let (stream, _) = listener.accept().await.unwrap();
                // A client that does not trust the server ends the connection.
                let _ = serve(&acceptor, stream, &answer, &recorded).await;
            }
        });
        Self { address, ca: ca.cert_pem().to_owned(), requests, task }
    }

    /// Every request so far: its head, and its body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    answer: &str,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let head = read_head(&mut stream).await?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await?;
    let request = head + std::str::from_utf8(&body).unwrap();
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// An answer of HTTP/1.1, with more lines of its head, each with its line break.
pub fn answer(status: u16, head: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} status\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
}

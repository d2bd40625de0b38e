//! What stands between the replicas and the API server, and does to the watch on credential specs what a fault says. It
//! passes everything else on as it is.

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use gmsa_webhook::tls::{self, issue::Ca};
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use crate::chaos::PAST;

/// What happens to watches on credential specs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watches {
    /// They are passed on.
    Pass,
    /// Those that are open break, and so does each new one.
    Cut,
    /// They stay open, and nothing comes through.
    Stalled,
    /// Those that are open break, and each new one is answered with this code.
    Answered(u16),
}

/// It stops when it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    /// Who signed its certificate.
    pub ca_pem: String,
    watches: watch::Sender<Watches>,
    task: JoinHandle<()>,
}

type Upstream = Client<HttpsConnector<HttpConnector>, Incoming>;

impl Proxy {
    /// A proxy of the API server at `upstream`, whose certificate `ca` signed. Its own was valid long ago, too: for replicas
    /// whose clock is wrong.
    pub async fn start(upstream: SocketAddr, ca: &Ca) -> Self {
        let long_ago = SystemTime::now() - 2 * PAST;
        let own = Ca::generate("proxy", long_ago, 4 * PAST).unwrap();
        let pair = own.issue(&["127.0.0.1".to_owned()], long_ago, 4 * PAST).unwrap();
        let certificates = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(tls::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let client = client(ca);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let watches = watch::Sender::new(Watches::Pass);
        let fault = watches.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (acceptor, client, fault) = (acceptor.clone(), client.clone(), fault.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(move |request| pass(client.clone(), upstream, fault.clone(), request));
                    // An error is a client that went away, or a fault.
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { address, ca_pem: own.cert_pem().to_owned(), watches, task }
    }

    /// Does this to watches from now on, to those that are open too.
    pub fn set(&self, watches: Watches) {
        self.watches.send_replace(watches);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn client(ca: &Ca) -> Upstream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.cert_pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(tls::crypto_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp);
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn pass(
    client: Upstream,
    upstream: SocketAddr,
    fault: watch::Sender<Watches>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let is_watch = path.contains("/gmsacredentialspecs?") && path.contains("watch=true");
    let fault = fault.subscribe();
    if is_watch {
        match *fault.borrow() {
            Watches::Cut => return Err("cut".into()),
            Watches::Answered(code) => return Ok(Response::builder().status(code).body(Body::empty())?),
            Watches::Pass | Watches::Stalled => {}
        }
    }
    *request.uri_mut() = Uri::try_from(format!("https://{upstream}{path}"))?;
    *request.version_mut() = http::Version::HTTP_11;
    let (mut parts, body) = client.request(request).await?.into_parts();
    parts.version = http::Version::default();
    // Those are of one connection, and this is another.
    parts.headers.remove(http::header::TRANSFER_ENCODING);
    parts.headers.remove(http::header::CONNECTION);
    let body = if is_watch { Body::from_stream(stream::unfold((body, fault), next)) } else { Body::new(body) };
    Ok(Response::from_parts(parts, body))
}

/// What comes next on a watch, when the fault lets it through.
async fn next(
    (mut body, mut fault): (Incoming, watch::Receiver<Watches>),
) -> Option<(Result<Bytes, Box<dyn std::error::Error + Send + Sync>>, (Incoming, watch::Receiver<Watches>))> {
    loop {
        let now = *fault.borrow_and_update();
        match now {
            Watches::Cut | Watches::Answered(_) => return Some((Err("cut".into()), (body, fault))),
            Watches::Stalled => fault.changed().await.ok()?,
            Watches::Pass => {
                tokio::select! {
                    changed = fault.changed() => changed.ok()?,
                    frame = body.frame() => {
                        let data = frame?.map(|frame| frame.into_data().unwrap_or_default()).map_err(Into::into);
                        return Some((data, (body, fault)));
                    }
                }
            }
        }
    }
}

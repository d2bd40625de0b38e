//! What stands between the replicas and the API server, and does to the watch on credential specs what a fault says. It
//! passes everything else on as it is.

use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use futures::stream;
use gmsa_test_support::Tls;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::client;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

/// What happens to watches on credential specs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watches {
    /// They are passed on.
    Pass,
    /// Open and new watches break.
    Cut,
    /// They stay open, and nothing comes through.
    Stalled,
    /// Open watches break, and each new one is answered with this code.
    Answered(u16),
}

/// It stops when it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    /// Who signed its certificate.
    pub ca_pem: String,
    watches: watch::Sender<Watches>,
    _task: JoinSet<()>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Proxy {
    /// A proxy of the API server at `upstream`. Its certificate was valid long ago, too: for replicas whose clock is wrong.
    pub async fn start(upstream: SocketAddr) -> Self {
        let mut config = kube::Config::new(format!("https://{upstream}").parse().unwrap());
        // This test is not about trust.
        config.accept_invalid_certs = true;
        config.default_retry = false;
        let client = kube::Client::try_from(config).unwrap();
        let tls = Tls::new();
        let acceptor = tls.acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let watches = watch::Sender::new(Watches::Pass);
        let (fault, mut task) = (watches.clone(), JoinSet::new());
        task.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (acceptor, client, fault) = (acceptor.clone(), client.clone(), fault.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(move |request| pass(client.clone(), fault.subscribe(), request));
                    // An error is a client that went away, or a fault.
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { address, ca_pem: tls.pem(), watches, _task: task }
    }

    /// Does this to open and new watches from now on.
    pub fn set(&self, watches: Watches) {
        self.watches.send_replace(watches);
    }
}

async fn pass(
    client: kube::Client,
    fault: watch::Receiver<Watches>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Failure> {
    let query = request.uri().query().unwrap_or_default();
    let is_watch = request.uri().path().ends_with("/gmsacredentialspecs") && query.contains("watch=true");
    if is_watch {
        match *fault.borrow() {
            Watches::Cut => return Err("cut".into()),
            Watches::Answered(code) => return Ok(Response::builder().status(code).body(Body::empty())?),
            Watches::Pass | Watches::Stalled => {}
        }
    }
    let (mut parts, body) = request.into_parts();
    // Those are of one connection, and this is another.
    parts.version = http::Version::default();
    parts.headers.remove(header::HOST);
    let answer = client.send(Request::from_parts(parts, body.collect().await?.to_bytes().into())).await?;
    let (mut parts, body) = answer.into_parts();
    parts.version = http::Version::default();
    parts.headers.remove(header::TRANSFER_ENCODING);
    parts.headers.remove(header::CONNECTION);
    let body = if is_watch { Body::from_stream(stream::unfold((body, fault), next)) } else { Body::new(body) };
    Ok(Response::from_parts(parts, body))
}

/// A watch under way, and what is done to it.
type Passed = (client::Body, watch::Receiver<Watches>);

/// What comes next on a watch, when the fault lets it through.
async fn next((mut body, mut fault): Passed) -> Option<(Result<Bytes, Failure>, Passed)> {
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

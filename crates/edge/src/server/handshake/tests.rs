use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use axum::{Router, routing};
use gmsa_test_support::{
    eventually,
    https::{Client, read_head},
};
use rustix::process::getpriority_process;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, yield_now},
    time::advance,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    metrics::register,
    program::TESTED,
    server::{Listener, Serving, for_handshakes},
    tls::{Served, issue::Ca, server_config},
};

const WEB: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const FLOOD: Ipv4Addr = Ipv4Addr::LOCALHOST;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Tells on which thread a handshake is computed, and for which name; then waits until the gate is open.
#[derive(Debug)]
struct Gate {
    served: Arc<dyn ResolvesServerCert>,
    computed: UnboundedSender<(Option<String>, String)>,
    open: Mutex<mpsc::Receiver<()>>,
}

impl ResolvesServerCert for Gate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default().to_owned();
        self.computed.send((thread::current().name().map(str::to_owned), name)).unwrap();
        let _ = self.open.lock().unwrap().recv();
        self.served.resolve(hello)
    }
}

struct Lab {
    ca: Ca,
    config: Arc<ServerConfig>,
    computed: UnboundedReceiver<(Option<String>, String)>,
    /// Opens the gate when it is dropped.
    closed: mpsc::Sender<()>,
}

impl Lab {
    /// With a certificate for these names.
    fn new(names: &[&str]) -> Self {
        let ca = Ca::generate("test CA", SystemTime::now(), DAY).unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let served = Served::new(register(&TESTED, |_, _| ()).0);
        served.publish(ca.issue(TESTED.name, &names, SystemTime::now(), DAY).unwrap().1);
        let ((sent, computed), (closed, open)) = (unbounded_channel(), mpsc::channel());
        let mut config = ServerConfig::clone(&server_config(&served, None).unwrap());
        config.cert_resolver = Arc::new(Gate { served: config.cert_resolver, computed: sent, open: Mutex::new(open) });
        Self { ca, config: Arc::new(config), computed, closed }
    }

    fn client(&self, source: Ipv4Addr, name: &str) -> Client {
        let name = name.to_owned().try_into().unwrap();
        Client { source, name, ..Client::trusting(self.ca.cert_pem()) }
    }
}

/// One thread, as `gmsa-webhook` has it on two cores.
fn one_thread() -> Runtime {
    Builder::new_current_thread().thread_name("handshake").max_blocking_threads(1).build().unwrap()
}

async fn serve(handshakes: &Arc<Handshakes>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let (port, handshakes) = (listener.local_addr().unwrap().port(), Arc::clone(handshakes));
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            let handshakes = Arc::clone(&handshakes);
            // However it ends.
            tokio::spawn(async move { handshakes.accept(stream, peer.ip()).await.map(drop) });
        }
    });
    (Ipv4Addr::LOCALHOST, port).into()
}

#[tokio::test]
async fn handshakes_wait_for_a_turn_go_round_by_address_and_are_computed_on_threads_of_their_own() {
    let names = ["first.flood", "second.flood", "third.flood", "fourth.flood", "web"];
    let mut lab = Lab::new(&names);
    let threads = one_thread();
    let turns = Places::new(4, SHARE, usize::MAX);
    let handshakes =
        Arc::new(Handshakes { turns, ..Handshakes::new(Arc::clone(&lab.config), threads.handle().clone()) });
    let address = serve(&handshakes).await;
    let mut clients: Vec<JoinHandle<bool>> = Vec::new();
    // Half of the four turns are the flood's.
    for (name, waiting) in names.into_iter().zip([0, 0, 1, 2, 2]) {
        let client = lab.client(if name == "web" { WEB } else { FLOOD }, name);
        clients.push(tokio::spawn(async move { client.connect(address).await.is_ok() }));
        let held = clients.len() - waiting;
        eventually("it has a turn, or waits", || {
            (handshakes.turns.held(), handshakes.turns.ready()) == (held, waiting)
        })
        .await;
    }
    drop(lab.closed);
    for client in clients {
        assert!(client.await.unwrap());
    }
    for name in ["first.flood", "second.flood", "web", "third.flood", "fourth.flood"] {
        assert_eq!(lab.computed.recv().await, Some((Some("handshake".to_owned()), name.to_owned())));
    }
    drop(handshakes);
    threads.shutdown_background();
}

#[tokio::test]
async fn a_handshake_that_waits_for_its_client_has_no_turn() {
    let lab = Lab::new(&["web"]);
    let client = lab.client(FLOOD, "web");
    drop(lab.closed);
    let turns = Places::new(2, SHARE, usize::MAX);
    let handshakes = Arc::new(Handshakes { turns, ..Handshakes::new(lab.config, Handle::current()) });
    let address = serve(&handshakes).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut hello = Vec::new();
        let config = Arc::clone(&client.config);
        rustls::ClientConnection::new(config, "web".try_into().unwrap()).unwrap().write_tls(&mut hello).unwrap();
        stream.write_all(&hello).await.unwrap();
        // The server has answered with its certificate.
        assert_eq!(stream.read_u8().await.unwrap(), 22);
        silent.push(stream);
    }
    assert!(client.connect(address).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_handshake_whose_client_waits() {
    let mut lab = Lab::new(&["web"]);
    let handshakes = Handshakes::new(Arc::clone(&lab.config), Handle::current());
    let serving = Serving { tls: Some(handshakes), ..Serving::new(10, 10, DAY) };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), serving).unwrap();
    let (address, closing) = (listener.address(), CancellationToken::new());
    let router = Router::new().route("/", routing::post(async || "answered"));
    let served = tokio::spawn(listener.serve(router, closing.clone(), DAY));
    let client = lab.client(FLOOD, "web");
    let asked = tokio::spawn(async move {
        let mut stream = client.connect(address).await?;
        stream.write_all(b"POST / HTTP/1.1\r\nhost: web\r\ncontent-length: 0\r\n\r\n").await?;
        read_head(&mut stream).await
    });
    lab.computed.recv().await.unwrap();
    closing.cancel();
    // The listener is closed, and its last call is over.
    for _ in 0..100 {
        yield_now().await;
        advance(Duration::from_millis(10)).await;
    }
    drop(lab.closed);
    let head = asked.await.unwrap().unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("connection: close\r\n"), "{head}");
    assert_eq!(served.await.unwrap(), 0);
}

#[test]
fn the_threads_of_handshakes_come_behind_the_others() {
    let own = getpriority_process(None).unwrap();
    let threads = for_handshakes().unwrap();
    let theirs = threads.block_on(threads.spawn_blocking(|| getpriority_process(None).unwrap())).unwrap();
    assert_eq!(theirs, (own + 5).min(19));
    assert_eq!(getpriority_process(None).unwrap(), own);
}

//! A simulated API server: objects with resource versions, watches, access reviews and scripted faults, over real HTTP.
//!
//! Invariants: it answers a real `kube::Client` in the words of kube-apiserver (messages, codes, `details`), and
//! every request is recorded before anything else happens to it, so that tests can count calls. It knows nothing of the
//! webhook. It keeps no schema: objects are JSON.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Body;
use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::{JoinHandle, JoinSet, yield_now},
};

mod access;
mod answer;
mod faults;
mod store;
mod tls;
mod watches;
mod wire;

pub use faults::{Fault, Gate};
pub use store::Kind;
pub use tls::Tls;

/// The longest that a test waits for something that must happen. Far more than it needs: machines are busy at times.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What is done to a resource, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub verb: Verb,
    /// Path and query.
    pub path: String,
    /// The body as JSON; null where there is none.
    pub body: Value,
    /// What it is authorized by: the scheme and the token.
    pub authorization: Option<String>,
    /// The user and the group that it impersonates.
    pub impersonates: [Option<String>; 2],
}

/// Answers a request that asks to become a connection of another protocol, as `exec` does.
pub type Upgrade = Arc<dyn Fn(Request<Incoming>) -> Response<Body> + Send + Sync>;

/// All that the server's connections share.
#[derive(Default)]
struct World {
    upgrade: Mutex<Option<Upgrade>>,
    store: Mutex<store::Store>,
    script: Mutex<faults::Script>,
    requests: Mutex<Vec<Recorded>>,
    /// What access reviews allow.
    grants: Mutex<access::Grants>,
    /// Who has which token.
    tokens: Mutex<access::Tokens>,
    /// Rises with every change, bookmark and request.
    changes: watch::Sender<u64>,
    /// Rises whenever watches are to be cut.
    cuts: watch::Sender<u64>,
    /// The name of the object whose changes no watch delivers.
    withheld: Mutex<Option<String>>,
    /// Rises whenever the connections that are open go dead.
    freezes: watch::Sender<u64>,
    /// Connections since then.
    connections: AtomicUsize,
    /// Held by each request that is being answered.
    answering: Arc<()>,
    /// Bytes in the bodies of answers, but for those of watches.
    sent: AtomicU64,
}

impl World {
    fn store(&self) -> MutexGuard<'_, store::Store> {
        self.store.lock().unwrap()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// The server. It stops when it is dropped.
pub struct SimulatedApi {
    pub address: SocketAddr,
    world: Arc<World>,
    server: Option<JoinHandle<()>>,
    /// Bound while the server is stopped, so that no other process gets the port.
    placeholder: Option<TcpSocket>,
    tls: Option<Tls>,
}

impl Drop for SimulatedApi {
    fn drop(&mut self) {
        self.abort();
    }
}

impl SimulatedApi {
    /// Starts a server without objects, which denies every access review, on a free port of the loopback address.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server that speaks HTTP/2 over TLS, as a real one does.
    pub async fn start_with_tls() -> Self {
        Self::start_with(Some(Tls::new())).await
    }

    async fn start_with(tls: Option<Tls>) -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        let mut api = Self { address, world: Arc::default(), server: None, placeholder: None, tls };
        api.listen().await;
        api
    }

    async fn listen(&mut self) {
        self.placeholder = None;
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let world = Arc::clone(&self.world);
        let acceptor = self.tls.as_ref().map(Tls::acceptor);
        self.server = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (world, acceptor) = (Arc::clone(&world), acceptor.clone());
                world.connections.fetch_add(1, Ordering::SeqCst);
                let mut freezes = world.freezes.subscribe();
                let answer = service_fn(move |request: Request<Incoming>| answer::answer(Arc::clone(&world), request));
                // An error is a client that went away, or a scripted cut.
                let serve = async move {
                    let mut http = auto::Builder::new(TokioExecutor::new());
                    // Calls that are given up early do not end a connection: on a busy machine they come all at once.
                    http.http2().max_pending_accept_reset_streams(10_000).max_local_error_reset_streams(None);
                    let _ = match acceptor {
                        None => http.serve_connection_with_upgrades(TokioIo::new(stream), answer).await,
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => http.serve_connection_with_upgrades(TokioIo::new(stream), answer).await,
                            Err(_) => return,
                        },
                    };
                };
                connections.spawn(async move {
                    let mut serve = pin!(serve);
                    tokio::select! {
                        () = &mut serve => {}
                        // No task reads or writes any more. What arrives stays in the kernel, which acknowledges it.
                        _ = freezes.changed() => std::future::pending().await,
                    }
                });
            }
        }));
    }

    fn abort(&mut self) -> Option<JoinHandle<()>> {
        self.server.take().inspect(JoinHandle::abort)
    }

    /// Stops listening and cuts every connection. Objects stay.
    pub async fn stop(&mut self) {
        if let Some(server) = self.abort() {
            assert!(server.await.unwrap_err().is_cancelled());
            let socket = TcpSocket::new_v4().unwrap();
            // Connections that are ending still have the port.
            socket.set_reuseaddr(true).unwrap();
            // A child that another test is starting has the listener too, until it runs its program.
            let start = Instant::now();
            while let Err(error) = socket.bind(self.address) {
                assert!(start.elapsed() < PATIENCE, "{error}");
                yield_now().await;
            }
            self.placeholder = Some(socket);
        }
    }

    /// Listens again, on the same port.
    pub async fn resume(&mut self) {
        self.listen().await;
    }

    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// A client's configuration for this server.
    pub fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.url().parse().unwrap());
        // The trust store of the machine is not read for a server without TLS.
        config.root_cert = Some(self.tls.iter().map(Tls::authority).collect());
        config
    }

    /// Lets nothing through on the connections that are open now, in either direction, without closing them.
    pub fn freeze_connections(&self) {
        self.world.connections.store(0, Ordering::SeqCst);
        self.world.freezes.send_modify(|count| *count += 1);
    }

    /// How many connections were made, since the last were frozen.
    pub fn connections(&self) -> usize {
        self.world.connections.load(Ordering::SeqCst)
    }

    /// Whether no request is waiting for its answer to be made.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.world.answering) == 1
    }

    /// The bytes in the bodies of the answers so far, but for those of watches.
    pub fn bytes_sent(&self) -> u64 {
        self.world.sent.load(Ordering::SeqCst)
    }

    /// A kubeconfig for this server, for what runs in a process of its own.
    pub fn kubeconfig(&self) -> String {
        let cluster = json!({"server": self.url(), "insecure-skip-tls-verify": self.tls.is_some()});
        crate::kubeconfig(cluster, json!({})).to_string()
    }

    /// Creates an object or replaces it, as another client would; gives its resource version.
    pub fn apply(&self, object: Value) -> u64 {
        let version = self.world.store().apply(object);
        self.world.changed();
        version
    }

    /// Deletes an object, as another client would. An empty namespace is for kinds without one.
    pub fn delete(&self, plural: &str, namespace: &str, name: &str) {
        self.world.store().delete(plural, namespace, name);
        self.world.changed();
    }

    /// Puts another object of the same name in the place of one, at once: no reader finds none.
    pub fn replace(&self, plural: &str, object: Value) {
        let mut store = self.world.store();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        store.delete(plural, text("namespace"), text("name"));
        store.apply(object);
        drop(store);
        self.world.changed();
    }

    /// The object as it is stored.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.world.store().object(plural, namespace, name)
    }

    pub fn define(&self, kind: Kind) {
        self.world.store().define(kind);
    }

    /// Makes a kind unknown, and its objects with it, as if its `CustomResourceDefinition` had been deleted.
    pub fn undefine(&self, plural: &str) {
        self.world.store().undefine(plural);
        self.cut_watches();
    }

    /// Sends a bookmark to every watch that allows them.
    pub fn bookmark(&self) {
        self.world.store().bookmark();
        self.world.changed();
    }

    /// Has these objects alone, as after a restore of etcd from a backup: versions count from a number below those given before.
    pub fn restore(&self, objects: Vec<Value>) {
        let mut store = self.world.store();
        store.rewind();
        for object in objects {
            store.apply(object);
        }
    }

    /// Forgets the past: a watch from before now is answered with 410.
    pub fn compact(&self) {
        self.world.store().compact();
    }

    /// Cuts every watch in the middle of its stream.
    pub fn cut_watches(&self) {
        self.world.cuts.send_modify(|count| *count += 1);
    }

    /// From now on no watch delivers changes of the object with this name. Lists and reads show them.
    pub fn withhold(&self, name: &str) {
        *self.world.withheld.lock().unwrap() = Some(name.to_owned());
    }

    /// Allows in access reviews what is among these, and nothing else: `(namespace, service account, credential spec)`.
    pub fn grant_only(&self, grants: &[(&str, &str, &str)]) {
        let owned =
            grants.iter().map(|(namespace, account, spec)| ["use", namespace, account, spec].map(str::to_owned));
        *self.world.grants.lock().unwrap() = owned.collect();
    }

    /// Lets a service account export a credential spec too.
    pub fn grant_export(&self, namespace: &str, account: &str, spec: &str) {
        self.world.grants.lock().unwrap().insert(["export", namespace, account, spec].map(str::to_owned));
    }

    /// Accepts a token for these audiences, as that of `user`: the object that a `TokenReview` shows.
    pub fn accept_token(&self, token: &str, audiences: &[&str], user: Value) {
        let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        self.world.tokens.lock().unwrap().insert(token.to_owned(), (audiences, user));
    }

    /// Answers requests for another protocol, unless a fault is scripted for them.
    pub fn upgrade_by(&self, answer: impl Fn(Request<Incoming>) -> Response<Body> + Send + Sync + 'static) {
        *self.world.upgrade.lock().unwrap() = Some(Arc::new(answer));
    }

    /// Does `fault` to the next `times` requests with this verb whose path and query contain `path`, and to no others.
    /// Faults that match the same request are used up in the order in which they were scripted.
    pub fn fault(&self, verb: Verb, path: &str, times: usize, fault: Fault) {
        self.world.script.lock().unwrap().add(verb, path, "", times, fault);
    }

    /// Does `fault` to every request with this verb whose path and query contain `path`, and whose body contains `body` as JSON without
    /// white space.
    pub fn fault_of_body(&self, verb: Verb, path: &str, body: &str, fault: Fault) {
        self.world.script.lock().unwrap().add(verb, path, body, usize::MAX, fault);
    }

    /// Drops all faults that were not used up.
    pub fn heal(&self) {
        *self.world.script.lock().unwrap() = faults::Script::default();
    }

    /// The requests so far with this verb whose path and query contain `path`.
    pub fn requests(&self, verb: Verb, path: &str) -> Vec<Recorded> {
        let requests = self.world.requests.lock().unwrap();
        requests.iter().filter(|request| request.verb == verb && request.path.contains(path)).cloned().collect()
    }

    /// How many requests there were with this verb whose path and query contain `path`.
    pub fn count(&self, verb: Verb, path: &str) -> usize {
        self.requests(verb, path).len()
    }

    pub fn forget_requests(&self) {
        self.world.requests.lock().unwrap().clear();
    }

    /// Waits until there were at least `count` requests with this verb whose path and query contain `path`.
    pub async fn wait_for(&self, verb: Verb, path: &str, count: usize) {
        let mut changes = self.world.changes.subscribe();
        let enough = changes.wait_for(|_| self.count(verb, path) >= count);
        let waited = tokio::time::timeout(PATIENCE, enough).await.is_ok_and(|waited| waited.is_ok());
        let requests = self.world.requests.lock().unwrap();
        assert!(waited, "no {count} {verb:?} requests for {path:?} came; there were {requests:?}");
    }
}

/// Looks until there is something to give back; `what` is what is waited for.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// Waits until `condition` holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, async || condition().then_some(())).await;
}

pub fn credential_spec(name: &str, credspec: Value) -> Value {
    json!({
        "apiVersion": "windows.k8s.io/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": name},
        "credspec": credspec,
    })
}

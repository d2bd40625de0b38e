//! What a Service does: it passes each new connection on to one of the replicas that are ready, and asks them whether they
//! are, as often as the chart has the kubelet do it.
//!
//! Invariants: a connection that is passed on stays where it is, and one to a replica that does not answer fails. It
//! never tries another replica: a Service does not either.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{interval, timeout},
};

use crate::control_plane::Client;

/// The chart's readiness probe.
const PERIOD: Duration = Duration::from_secs(3);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const FAILURES: u32 = 2;

/// A replica, as the Service knows it.
struct Endpoint {
    address: SocketAddr,
    admin: Client,
    /// Probes that failed in a row.
    failures: u32,
}

/// It stops when it is dropped.
pub struct Balancer {
    pub port: u16,
    endpoints: Arc<Mutex<Vec<Endpoint>>>,
    _tasks: JoinSet<()>,
}

impl Balancer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoints: Arc<Mutex<Vec<Endpoint>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&endpoints)));
        tasks.spawn(probe(Arc::clone(&endpoints)));
        Self { port, endpoints, _tasks: tasks }
    }

    /// A replica that is ready now.
    pub fn add(&self, address: SocketAddr, admin: Client) {
        self.endpoints.lock().unwrap().push(Endpoint { address, admin, failures: 0 });
    }

    /// Nothing new goes to this replica.
    pub fn remove(&self, address: SocketAddr) {
        self.endpoints.lock().unwrap().retain(|known| known.address != address);
    }
}

async fn accept(listener: TcpListener, endpoints: Arc<Mutex<Vec<Endpoint>>>) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let replica = {
            let mut endpoints = endpoints.lock().unwrap();
            if !endpoints.is_empty() {
                endpoints.rotate_left(1);
            }
            endpoints.iter().find(|endpoint| endpoint.failures < FAILURES).map(|endpoint| endpoint.address)
        };
        tokio::spawn(async move {
            if let Some(replica) = replica
                && let Ok(mut replica) = TcpStream::connect(replica).await
            {
                client.set_nodelay(true).and_then(|()| replica.set_nodelay(true)).unwrap();
                // It ends when either side does.
                let _ = copy_bidirectional(&mut client, &mut replica).await;
            }
        });
    }
}

async fn probe(endpoints: Arc<Mutex<Vec<Endpoint>>>) {
    let mut period = interval(PERIOD);
    loop {
        period.tick().await;
        let known: Vec<_> =
            endpoints.lock().unwrap().iter().map(|endpoint| (endpoint.address, endpoint.admin.clone())).collect();
        let probes = known.into_iter().map(async |(address, admin)| {
            (address, timeout(PROBE_TIMEOUT, admin.text("/readyz")).await.is_ok_and(|answer| answer.is_ok()))
        });
        for (address, ready) in join_all(probes).await {
            if let Some(endpoint) = endpoints.lock().unwrap().iter_mut().find(|known| known.address == address) {
                endpoint.failures = if ready { 0 } else { endpoint.failures + 1 };
            }
        }
    }
}

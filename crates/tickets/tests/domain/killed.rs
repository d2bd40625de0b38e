//! What the end of the broker leaves, at any moment of an exchange.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use gmsa_test_support::{domain::root, until};
use serde_json::{Value, json};

use crate::{
    relay::{Conduct, Relay},
    world::{World, service},
};

const SERVICES: [&str; 2] = ["HTTP/killed.contoso.com", "MSSQLSvc/killed.contoso.com:1433"];

/// What a file holds, as a client of it sees it.
struct Watch {
    is_over: Arc<AtomicBool>,
    seen: JoinHandle<BTreeSet<Vec<u8>>>,
}

impl Watch {
    fn start(file: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let seen = thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !ends.load(Ordering::Relaxed) {
                seen.insert(fs::read(&file).unwrap());
                thread::sleep(Duration::from_millis(2));
            }
            seen
        });
        Self { is_over, seen }
    }

    fn end(self) -> BTreeSet<Vec<u8>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.seen.join().unwrap()
    }
}

/// The broker is killed before each of its first steps, and at some of the later ones: while it waits for the API server, the directory or
/// the KDC, and while its answer is on its way.
#[tokio::test]
async fn a_broker_that_is_killed_at_any_moment_leaves_whole_tickets() {
    service("Killed", &SERVICES);
    let mut world = World::start("Killed").await;
    world.web("KilledApp", &SERVICES.join(", ")).await;

    let api = Relay::start("127.0.0.1", world.plane.address());
    let directory = Relay::start("10.0.0.1", "10.0.0.1:636".parse().unwrap());
    let kdc = Relay::start("10.0.0.1", "10.0.0.1:88".parse().unwrap());
    let broker = Relay::start("127.0.0.1", world.address);
    let kubeconfig = world.temporary.path().join("broker.kubeconfig");
    let mut cluster: Value = serde_json::from_slice(&fs::read(&kubeconfig).unwrap()).unwrap();
    cluster["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", api.address));
    fs::write(kubeconfig, cluster.to_string()).unwrap();
    world.address = broker.address;
    world
        .restart(|domain| {
            domain["controllers"] = json!([format!("ldaps://dc1.contoso.com:{}", directory.address.port())]);
            domain["kdcPort"] = json!(kdc.address.port());
        })
        .await;

    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;
    let folder = root().join("tmp/Killed-web");
    let watch = Watch::start(folder.join("krb5cc"));
    let mut kills = 0;
    for relay in [&api, &directory, &kdc, &broker] {
        for pieces in [0, 1, 2, 5, 12, 30] {
            // This one has no key yet.
            world.restart(|_| ()).await;
            let before = agent.file("krb5cc");
            relay.conduct(Conduct::HoldAfter(pieces));
            let is_held = until("the broker is held up, or has given tickets", async || {
                let is_held = relay.is_holding();
                Some(is_held).filter(|is_held| *is_held || agent.file("krb5cc") != before)
            });
            let is_held = is_held.await;
            world.broker.end();
            relay.conduct(Conduct::Pass);
            if !is_held {
                break;
            }
            kills += 1;
            world.restart(|_| ()).await;
            until("there are tickets of the next broker", async || {
                agent.file("krb5cc").filter(|renewed| Some(renewed) != before.as_ref())
            })
            .await;
        }
    }
    assert!(kills > 12, "{kills}");
    world.restart(|_| ()).await;
    for cache in watch.end() {
        fs::write(folder.join("seen"), cache).unwrap();
        let listed = agent.prints("klist -c /tmp/Killed-web/seen");
        for service in SERVICES {
            assert!(listed.contains(&format!("  {service}@CONTOSO.COM\n")), "{listed}");
        }
    }
}

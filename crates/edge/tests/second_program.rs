//! A program of another name that serves with this crate: what it takes, and that nothing of the first one's name is in what it
//! shows. Its certificate comes from a Secret that it manages itself, with no webhook configuration.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::post};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    Program,
    admin::{self, Readiness},
    clock::Moment,
    metrics,
    object::ObjectName,
    server::{Handshakes, Listener, Serving},
    service_names::ServiceNames,
    shutdown::{Bound, EndError, Signals, Tasks},
    tls::{
        CaBundle, Served,
        self_managed::{CA_CERT, IssuancePolicy, SelfManaged, SelfManagedSettings, TLS_CERT},
        server_config,
    },
};
use gmsa_test_support::{
    SimulatedApi, Verb,
    https::{Client, exchange, post as request, read_answer},
    until,
};
use k8s_openapi::api::core::v1::Secret;
use prometheus_client::metrics::counter::Counter;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, runtime::Handle, sync::oneshot};
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

const PROGRAM: Program =
    Program { name: "gmsa-tickets", version: "1.2.3", noun: "broker", spans: "gmsa_tickets::trace" };

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long the next authority is known before it signs.
const STANDING: Duration = Duration::from_secs(5 * 24 * 3600);

gmsa_edge::metrics! {
    struct TicketMetrics {
        given: Counter = "given", "Tickets that this {noun} gave";
    }
}

fn certificates() -> SelfManagedSettings {
    SelfManagedSettings {
        secret: ObjectName::secret("tickets/tls").unwrap(),
        configurations: Vec::new(),
        issuance: IssuancePolicy {
            program: PROGRAM,
            names: ServiceNames::of("tickets", "tickets").0,
            ca_lifetime: 30 * DAY,
            leaf_lifetime: 10 * DAY,
            renewal_point: 66,
            bundle_standing: STANDING,
        },
        foreign_grace: DAY,
        check_interval: Duration::from_secs(10),
    }
}

/// The whole program. It tells where its port and its admin port are, once they are bound.
async fn serve(api: ApiServer, tell: oneshot::Sender<[SocketAddr; 2]>) -> Result<(), EndError> {
    let (signals, ending) = (Signals::install().unwrap(), CancellationToken::new());
    let (mut readiness, mut tasks) = (Readiness::new(ending.clone()), Tasks::new());
    let (edge, own, registry) = metrics::register(&PROGRAM, TicketMetrics::register);

    let (served, ready) = (Served::new(edge.clone()), readiness.expect("no certificate to serve with yet"));
    let clock = Arc::new(Moment::now);
    let managed =
        SelfManaged::new(Arc::new(api), certificates(), served.clone(), clock, edge.clone(), move || ready.set());
    tasks.spawn(async move { match managed.run().await {} });

    let serving = Serving {
        tls: Some(Handshakes::new(server_config(&served, None).unwrap(), Handle::current())),
        metrics: Some(edge),
        ending: ending.clone(),
        keeps_decided: true,
        ..Serving::new(10, 100, DAY)
    };
    let local: SocketAddr = ([127, 0, 0, 1], 0).into();
    let main = Listener::bind(local, serving).unwrap();
    let admin = Listener::bind(local, admin::serving(100)).unwrap();
    tell.send([main.address(), admin.address()]).unwrap();

    let give = async move || {
        own.given.inc();
        "a ticket"
    };
    let (main, admin) =
        ((main, Router::new().route("/v1/tickets", post(give))), (admin, admin::router(readiness, registry)));
    let (delay, drain) = (Duration::ZERO, Duration::from_secs(10));
    Bound { program: PROGRAM, main, admin, tasks, signals, ending, delay, drain, log_limits: &[] }.serve().await
}

/// What the admin port answers.
async fn admin(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: l\r\n\r\n").as_bytes()).await.unwrap();
    String::from_utf8(read_answer(&mut stream).await.unwrap().1.body).unwrap()
}

#[tokio::test]
async fn another_program_serves_under_its_own_name() {
    let api = SimulatedApi::start().await;
    api.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "tickets", "name": "tls"}}));
    let (tell, told) = oneshot::channel();
    let program = tokio::spawn(serve(ApiServer::new(api.config()).unwrap(), tell));
    let [address, probes] = told.await.unwrap();
    until("it is ready", async || (admin(probes, "/readyz").await == "ok\n").then_some(())).await;

    let secret: Secret = serde_json::from_value(api.object("secrets", "tickets", "tls").unwrap()).unwrap();
    let data = secret.data.unwrap();
    let leaf = CaBundle::salvage(&data[TLS_CERT].0);
    let (_, leaf) = X509Certificate::from_der(&leaf[0]).unwrap();
    assert_eq!(leaf.subject().to_string(), "CN=gmsa-tickets");
    assert!(leaf.issuer().to_string().starts_with("CN=gmsa-tickets CA "), "{}", leaf.issuer());
    for written in api.requests(Verb::Update, "") {
        assert!(written.path.ends_with("/tls?fieldManager=gmsa-tickets"), "{written:?}");
    }

    let ca = String::from_utf8(data[CA_CERT].0.clone()).unwrap();
    let client = Client { name: "tickets.tickets.svc".try_into().unwrap(), ..Client::trusting(&ca) };
    let mut kept = client.connect(address).await.unwrap();
    for _ in 0..2 {
        assert_eq!(exchange(&mut kept, &request("/v1/tickets", b"{}")).await.unwrap().body, b"a ticket");
    }
    let scrape = admin(probes, "/metrics").await;
    for line in [
        "# HELP gmsa_tickets_given_total Tickets that this broker gave.",
        "gmsa_tickets_given_total 2",
        "# HELP gmsa_tickets_connections Connections to the broker's port that are served now.",
        "gmsa_tickets_connections 1",
        "gmsa_tickets_certificate_steps_total{step=\"filled\"} 1",
    ] {
        assert!(scrape.lines().any(|shown| shown == line), "{line}\n{scrape}");
    }
    assert!(!scrape.contains("webhook"), "{scrape}");

    assert!(!scrape.contains("certificate_next_authority{"), "{scrape}");
    let first = CaBundle::salvage(ca.as_bytes())[0].clone();

    // Clients have to trust the next authority before it signs.
    let mut secret = api.object("secrets", "tickets", "tls").unwrap();
    secret["metadata"]["annotations"] = json!({"gmsa-tickets/rotate-ca": "now"});
    api.apply(secret);
    let next = until("there is a next authority", async || {
        let secret = api.object("secrets", "tickets", "tls").unwrap();
        let secret: Secret = serde_json::from_value(secret).unwrap();
        CaBundle::salvage(&secret.data.unwrap()[CA_CERT].0).iter().find(|authority| **authority != first).cloned()
    })
    .await;
    let (_, next) = X509Certificate::from_der(&next).unwrap();
    let key_id = next.iter_extensions().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(format!("{key:x}")),
        _ => None,
    });
    let key_id = key_id.unwrap();
    let expected = format!("gmsa_tickets_certificate_next_authority{{key_id=\"{key_id}\"}} 1");
    until("its key is shown", async || {
        admin(probes, "/metrics").await.lines().any(|line| line == expected).then_some(())
    })
    .await;

    // Whatever does not keep a connection ends it.
    assert_eq!(exchange(&mut kept, &request("/v1", b"{}")).await.unwrap().status, 404);
    exchange(&mut kept, &request("/v1/tickets", b"{}")).await.unwrap_err();
    kill_process(getpid(), Signal::TERM).unwrap();
    program.await.unwrap().unwrap();
}

/// Its clients take the authorities from the Secret, and keep them: the next one is there long before it signs, however often the program starts again.
#[tokio::test]
async fn the_next_authority_is_in_the_secret_before_it_signs() {
    let api = SimulatedApi::start().await;
    api.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "tickets", "name": "tls"}}));
    let connected = Arc::new(ApiServer::new(api.config()).unwrap());
    let begin = Moment::now();
    let mut known = Vec::new();
    // Two thirds of a life are over after 20 days.
    for (day, authorities, signs) in [(0, 1, 0), (19, 1, 0), (21, 2, 0), (25, 2, 0), (27, 2, 1), (29, 2, 1)] {
        let (metrics, ..) = metrics::register(&PROGRAM, TicketMetrics::register);
        let (served, clock) = (Served::new(metrics.clone()), Arc::new(move || begin + day * DAY));
        let read = api.count(Verb::Get, "/tls");
        let managed = SelfManaged::new(Arc::clone(&connected), certificates(), served.clone(), clock, metrics, || {});
        let task = tokio::spawn(async move { match managed.run().await {} });
        // It watches when it has nothing more to do.
        let watches = api.count(Verb::Watch, "");
        until("it has read the Secret", async || (api.count(Verb::Get, "/tls") > read).then_some(())).await;
        until("it has nothing to do", async || (api.count(Verb::Watch, "") > watches).then_some(())).await;
        task.abort();
        let secret: Secret = serde_json::from_value(api.object("secrets", "tickets", "tls").unwrap()).unwrap();
        let bundle = CaBundle::salvage(&secret.data.unwrap()[CA_CERT].0);
        bundle
            .iter()
            .filter(|ca| !known.contains(*ca))
            .cloned()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|ca| known.push(ca));
        let leaf = served.current().unwrap().issuer.clone();
        let (_, signer) = X509Certificate::from_der(&known[signs]).unwrap();
        assert_eq!((bundle.len(), leaf), (authorities, signer.subject().to_string()), "day {day}");
    }
}

//! A second program with another name, a Secret that it manages itself and no webhook configuration: its output never shows the name of the
//! first one. `gmsa-tickets` is such a program, and its own tests run it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::{sync::Arc, time::Duration};

use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    Program,
    clock::Moment,
    metrics::{register, scrape},
    object::ObjectName,
    service_names::ServiceNames,
    tls::{
        CaBundle, Served,
        self_managed::{CA_CERT, SelfManaged, SelfManagedSettings},
    },
};
use gmsa_test_support::{SimulatedApi, Verb, until};
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

const PROGRAM: Program =
    Program { name: "gmsa-tickets", version: "1.2.3", noun: "broker", spans: "gmsa_tickets::trace" };

const DAY: Duration = Duration::from_secs(24 * 3600);

fn certificates() -> SelfManagedSettings {
    SelfManagedSettings {
        secret: ObjectName::secret("tickets/tls").unwrap(),
        configurations: Vec::new(),
        program: PROGRAM,
        names: ServiceNames::parse("tickets.tickets").unwrap().0,
        ca_lifetime: 30 * DAY,
        leaf_lifetime: 10 * DAY,
        renewal_point: 66,
        // How long the next authority is known before it signs.
        bundle_standing: 5 * DAY,
        foreign_grace: DAY,
        check_interval: Duration::from_secs(10),
    }
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
        let (metrics, (), registry) = register(&PROGRAM, |_, _| ());
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
        let new: Vec<_> = bundle.iter().filter(|ca| !known.contains(*ca)).cloned().collect();
        known.extend(new);
        let leaf = served.current().unwrap();
        let (_, signer) = X509Certificate::from_der(&known[signs]).unwrap();
        assert_eq!((bundle.len(), &leaf.issuer), (authorities, &signer.subject().to_string()), "day {day}");
        assert_eq!(leaf.subject, "CN=gmsa-tickets");
        assert!(leaf.issuer.starts_with("CN=gmsa-tickets CA "), "{}", leaf.issuer);
        let shown = scrape(&registry).unwrap();
        assert!(!shown.contains("webhook"), "{shown}");
        let next = known.get(1).filter(|_| signs == 0).map(|next| {
            let (_, next) = X509Certificate::from_der(next).unwrap();
            let key_id = next.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(key) => Some(format!("{key:x}")),
                _ => None,
            });
            format!("gmsa_tickets_certificate_next_authority{{key_id=\"{}\"}} 1", key_id.unwrap())
        });
        let line = shown.lines().find(|line| line.starts_with("gmsa_tickets_certificate_next_authority{"));
        assert_eq!(line, next.as_deref(), "day {day}");
    }
    for written in api.requests(Verb::Update, "") {
        assert!(written.path.ends_with("/tls?fieldManager=gmsa-tickets"), "{written:?}");
    }
}

//! What the sidecar of Linux pods needs: a cluster with native sidecars, and the CAs of the broker in a file that changes.

use std::{fs, sync::Arc, time::SystemTime};

use gmsa_core::admission::{Failure, Sidecar, TicketSettings};
use gmsa_edge::tls::issue::Ca;
use gmsa_test_support::golden::sidecar;
use gmsa_webhook::sidecar_settings::{READ_INTERVAL, TicketsConfig};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{advance, pause, resume},
};

use super::{Duration, connect, failed};
use crate::support::{Fault, SimulatedApi, Verb};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn ca(name: &str) -> String {
    Ca::generate(name, SystemTime::now(), YEAR).unwrap().cert_pem().to_owned()
}

fn with(broker_ca: &str) -> TicketSettings {
    TicketSettings::On(Arc::new(Sidecar { broker_ca: broker_ca.to_owned(), ..sidecar() }))
}

fn version(name: &str) -> Fault {
    Fault::Object(json!({"major": "1", "minor": "x", "gitVersion": name, "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}))
}

#[tokio::test]
async fn pods_get_the_sidecar_once_the_cluster_can_run_it() {
    let folder = tempfile::tempdir().unwrap();
    let broker_ca = folder.path().join("ca.crt");
    let [first, next] = ["first", "next"].map(ca);
    fs::write(&broker_ca, &first).unwrap();
    let api = SimulatedApi::start().await;
    for answer in [version("v1.28.15-eks-0"), Fault::forbidden(), Fault::Text(200, "no version"), version("v1.29.0")] {
        api.fault(Verb::Get, "/version", 1, answer);
    }
    let (settings, mut current) = watch::channel(TicketSettings::Off);
    let config =
        TicketsConfig { broker_ca: broker_ca.clone(), sidecar: Sidecar { broker_ca: String::new(), ..sidecar() } };
    let kept = tokio::spawn(config.keep(Some(connect(&api)), YEAR, settings));
    let refused = Failure { refused: Some(403), ..failed("the API server answered 403: not allowed here") };
    for expected in [
        TicketSettings::TooOld("v1.28.15-eks-0".to_owned()),
        TicketSettings::Unknown(refused),
        TicketSettings::Unknown(failed("the API server's answer is not a version")),
        with(&first),
    ] {
        current.changed().await.unwrap();
        assert_eq!(*current.borrow_and_update(), expected);
        pause();
        advance(READ_INTERVAL).await;
        resume();
    }
    assert_eq!(api.count(Verb::Get, "/version"), 4);
    // What cannot be read changes nothing, and the next CA stands beside the first before it signs.
    fs::write(&broker_ca, "-----BEGIN CERTIFICATE-----\n").unwrap();
    fs::write(&broker_ca, first.clone() + &next).unwrap();
    current.changed().await.unwrap();
    assert_eq!(*current.borrow_and_update(), with(&(first + &next)));
    assert_eq!(api.count(Verb::Get, "/version"), 4);
    kept.abort();
}

#[tokio::test]
async fn without_the_ca_of_the_broker_a_pod_is_refused_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let broker_ca = folder.path().join("ca.crt");
    let (settings, mut current) = watch::channel(TicketSettings::Off);
    let config = TicketsConfig { broker_ca: broker_ca.clone(), sidecar: sidecar() };
    let kept = tokio::spawn(config.keep(None, YEAR, settings));
    current.changed().await.unwrap();
    let cause = format!("cannot read {}: No such file or directory (os error 2)", broker_ca.display());
    assert_eq!(*current.borrow_and_update(), TicketSettings::Unknown(failed(&cause)));
    let first = ca("first");
    fs::write(&broker_ca, &first).unwrap();
    current.changed().await.unwrap();
    assert_eq!(*current.borrow_and_update(), with(&first));
    kept.abort();
}

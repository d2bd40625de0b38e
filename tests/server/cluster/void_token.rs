//! A replica whose own token is void, as after a deletion by force: it is noticed, and asked again without reviews.

use std::sync::atomic::Ordering;

use gmsa_cluster::kubernetes_version::read;
use tokio::time::{Instant, advance, pause, resume};

use super::{Duration, connect};
use crate::support::{Fault, SimulatedApi, Verb, eventually};

#[tokio::test]
async fn a_void_token_counts_until_the_api_server_takes_one_again() {
    let simulated = SimulatedApi::start().await;
    let api = connect(&simulated);
    let refused = api.refuses_token();
    let is_refused = async |fault: Fault| {
        simulated.fault(Verb::Get, "/version", 1, fault);
        let _ = read(&api, Instant::now() + Duration::from_secs(60)).await;
        refused.load(Ordering::Acquire)
    };
    assert!(!is_refused(Fault::forbidden()).await);
    assert!(is_refused(Fault::Text(401, "Unauthorized")).await);
    assert!(!is_refused(Fault::Text(404, "")).await);
    assert!(is_refused(Fault::Text(401, "Unauthorized")).await);

    // Reviews would ask, but none arrive.
    let taken_again = async {
        pause();
        advance(Duration::from_secs(11)).await;
        resume();
        eventually("it is taken again", || !refused.load(Ordering::Acquire)).await;
    };
    tokio::select! {
        biased;
        never = api.ask_while_token_is_refused() => match never {},
        () = taken_again => {}
    }
    assert_eq!(simulated.count(Verb::Get, "/version"), 5);
}

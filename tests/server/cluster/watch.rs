//! The watch behind the cache: everything that can happen to it, and that no answer is wrong meanwhile.

use gmsa_cluster::resolver::{Freshness, Resolved};
use gmsa_core::admission::{FailureKind, Source, SpecFact};
use serde_json::json;
use tokio::time;

use super::{
    Duration, NO_DEFINITION, SPECS, failed,
    setup::{Setup, is, pass},
};
use crate::support::{Fault, Gate, Kind, SimulatedApi, Verb, credential_spec};

#[tokio::test]
async fn a_refused_watch_means_live_reads_and_readiness() {
    for verb in [Verb::List, Verb::Watch] {
        let api = SimulatedApi::start().await;
        api.apply(credential_spec("web", json!({"is": "first"})));
        api.fault(verb, SPECS, usize::MAX, Fault::forbidden());
        let setup = Setup::start(api);
        setup.ready().await;
        setup.becomes("live").await;
        for times in 1..=3 {
            assert_eq!(setup.look_up("web").await, is("first", Source::Api));
            assert_eq!(setup.reads(), times);
        }
        setup.knows(0).await;
        assert_eq!(setup.api.count(verb, SPECS), 1, "a refused permission is not asked for in a loop");
    }
}

#[tokio::test]
async fn a_permission_that_is_granted_later_is_found_without_a_restart() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    api.fault(Verb::List, SPECS, 1, Fault::forbidden());
    let setup = Setup::start(api);
    setup.becomes("live").await;
    pass(Duration::from_secs(5)).await;
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn an_api_server_that_refuses_until_it_knows_its_roles_is_soon_followed_again() {
    let setup = Setup::synced(&["web"]).await;
    for _ in 0..2 {
        setup.api.fault(Verb::Watch, SPECS, 1, Fault::forbidden());
        setup.api.cut_watches();
        setup.becomes("live").await;
        // What is known would be out of date.
        setup.knows(0).await;
        assert_eq!(setup.look_up("web").await, is("first", Source::Api));
        // As soon the second time as the first: in between it was permitted.
        pass(Duration::from_secs(5)).await;
        setup.becomes("synced").await;
        setup.says("web", "first").await;
    }
}

#[tokio::test]
async fn a_missing_definition_is_named_and_its_installation_noticed() {
    let api = SimulatedApi::start().await;
    api.undefine("gmsacredentialspecs");
    let setup = Setup::start(api);
    setup.ready().await;
    assert_eq!(setup.ask("web", Freshness::Any).await.fact, SpecFact::Failed(failed(NO_DEFINITION)));
    setup.api.define(Kind {
        api_version: "windows.k8s.io/v1",
        kind: "GMSACredentialSpec",
        plural: "gmsacredentialspecs",
        namespaced: false,
    });
    setup.api.apply(credential_spec("web", json!({"is": "first"})));
    pass(Duration::from_secs(30)).await;
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn a_definition_that_is_deleted_takes_what_is_known_with_it() {
    let setup = Setup::synced(&["web"]).await;
    setup.api.undefine("gmsacredentialspecs");
    setup.becomes("live").await;
    setup.knows(0).await;
    let Resolved { fact, source } = setup.ask("web", Freshness::Any).await;
    assert!(matches!(fact, SpecFact::Failed(_)), "{fact:?}");
    assert_eq!(source, Source::Api);
    assert!(setup.is_ready(), "once ready, always ready");
}

#[tokio::test]
async fn an_expired_watch_is_listed_again() {
    let setup = Setup::synced(&["web", "gone"]).await;
    // The watch breaks, and what happens meanwhile is forgotten before it is connected again.
    setup.api.fault(Verb::Watch, SPECS, 1, Fault::internal_error());
    setup.api.cut_watches();
    setup.becomes("stale").await;
    setup.api.delete("gmsacredentialspecs", "", "gone");
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    setup.api.compact();
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    assert!(setup.shows("gmsa_webhook_specs_known 1"));
    assert_eq!(setup.api.count(Verb::List, SPECS), 1);
}

#[tokio::test]
async fn a_watch_that_is_refused_as_expired_is_listed_again() {
    let setup = Setup::synced(&["web"]).await;
    setup.api.fault(Verb::Watch, SPECS, 1, Fault::gone());
    setup.api.cut_watches();
    setup.api.wait_for(Verb::List, SPECS, 1).await;
    setup.becomes("synced").await;
    setup.says("web", "first").await;
    assert_eq!(setup.reads(), 0);
}

#[tokio::test]
async fn a_cut_watch_goes_on_where_it_was_and_misses_nothing() {
    let setup = Setup::synced(&["web", "gone"]).await;
    let gate = Gate::new();
    setup.api.fault(Verb::Watch, SPECS, 1, Fault::Hold(gate.clone()));
    setup.api.cut_watches();
    setup.api.wait_for(Verb::Watch, SPECS, 1).await;
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    setup.api.delete("gmsacredentialspecs", "", "gone");
    // Not connected: memory is not asked.
    assert_eq!(setup.look_up("web").await, is("second", Source::Api));
    assert_eq!(setup.look_up("gone").await, is("missing", Source::Api));
    gate.open();
    setup.says("web", "second").await;
    setup.knows(1).await;
    assert_eq!(setup.api.count(Verb::List, SPECS), 0);
}

#[tokio::test]
async fn after_a_minute_of_failures_credential_specs_are_listed_again() {
    let setup = Setup::synced(&["another", "web"]).await;
    setup.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::internal_error());
    setup.api.cut_watches();
    setup.becomes("stale").await;
    // Both change meanwhile. One event arrives as soon as there is a watch again, the other one does not.
    setup.api.withhold("web");
    setup.api.apply(credential_spec("another", json!({"is": "second"})));
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    pass(Duration::from_secs(61)).await;
    setup.api.heal();
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    assert_eq!(setup.look_up("another").await, is("second", Source::Cache));
}

#[tokio::test]
async fn a_first_list_that_fails_is_readiness_because_credential_specs_are_read() {
    let fault = Fault::internal_error;
    let empty = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    let endless: &str = "x".repeat(5 << 20).leak();
    for fault in [fault(), Fault::Cut, Fault::Text(200, "<html>"), Fault::Text(200, endless), Fault::Object(empty)] {
        let api = SimulatedApi::start().await;
        api.apply(credential_spec("web", json!({"is": "first"})));
        api.fault(Verb::List, SPECS, usize::MAX, fault);
        let setup = Setup::start(api);
        setup.ready().await;
        setup.becomes("stale").await;
        assert_eq!(setup.look_up("web").await, is("first", Source::Api));
        setup.api.heal();
        setup.says("web", "first").await;
    }
}

#[tokio::test]
async fn pages_that_are_empty_without_end_are_asked_for_once_in_each_try() {
    let setup = Setup::synced(&["web"]).await;
    let empty = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    setup.api.fault(Verb::List, SPECS, usize::MAX, Fault::Object(empty));
    setup.api.fault(Verb::Watch, SPECS, 1, Fault::gone());
    setup.api.cut_watches();
    setup.api.wait_for(Verb::List, SPECS, 3).await;
    assert_eq!(setup.api.count(Verb::List, "continue="), 0);
    assert_eq!(setup.look_up("web").await, is("first", Source::Api));
    setup.api.heal();
    setup.says("web", "first").await;
}

#[tokio::test]
async fn a_line_without_an_end_is_no_event() {
    let setup = Setup::synced(&["web"]).await;
    let endless: &str = "x".repeat(5 << 20).leak();
    setup.api.fault(Verb::Watch, SPECS, 1, Fault::Text(200, endless));
    setup.api.cut_watches();
    setup.becomes("stale").await;
    setup.api.wait_for(Verb::Watch, SPECS, 2).await;
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    setup.says("web", "second").await;
    assert_eq!(setup.api.count(Verb::List, SPECS), 0, "it goes on where it was");
}

#[tokio::test]
async fn a_watch_that_breaks_after_its_first_bytes_is_begun_again() {
    let setup = Setup::synced(&["web"]).await;
    setup.api.fault(Verb::Watch, SPECS, 2, Fault::Cut);
    setup.api.cut_watches();
    setup.becomes("stale").await;
    setup.api.wait_for(Verb::Watch, SPECS, 3).await;
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    setup.says("web", "second").await;
}

#[tokio::test]
async fn tries_come_more_and_more_slowly() {
    let setup = Setup::synced(&["web"]).await;
    setup.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::internal_error());
    setup.api.cut_watches();
    let began = time::Instant::now();
    setup.api.wait_for(Verb::Watch, SPECS, 4).await;
    // Before them come at least the halves of 0.2, 0.4, 0.8 and 1.6 s.
    assert!(began.elapsed() >= Duration::from_millis(1500), "after {:?}", began.elapsed());
}

#[tokio::test]
async fn a_restart_of_the_api_server_ends_in_the_truth() {
    let mut setup = Setup::synced(&["web"]).await;
    setup.api.stop().await;
    setup.becomes("stale").await;
    let Resolved { fact, .. } = setup.ask("web", Freshness::Any).await;
    assert!(matches!(&fact, SpecFact::Failed(failure) if failure.kind == FailureKind::Failed), "{fact:?}");
    assert!(setup.is_ready(), "once ready, always ready");
    setup.api.apply(credential_spec("web", json!({"is": "second"})));
    setup.api.resume().await;
    assert_eq!(setup.look_up("web").await, is("second", Source::Api));
    setup.says("web", "second").await;
}

#[tokio::test]
async fn an_api_server_that_cannot_be_reached_is_no_readiness() {
    let mut api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    api.stop().await;
    let mut setup = Setup::start(api);
    let Resolved { fact, .. } = setup.ask("web", Freshness::Any).await;
    assert!(matches!(fact, SpecFact::Failed(_)), "{fact:?}");
    assert!(!setup.is_ready());
    setup.api.resume().await;
    setup.ready().await;
    setup.says("web", "first").await;
}

#[tokio::test]
async fn before_the_first_list_is_there_specs_are_read() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    let gate = Gate::new();
    api.fault(Verb::List, SPECS, 1, Fault::Hold(gate.clone()));
    let setup = Setup::start(api);
    setup.api.wait_for(Verb::List, SPECS, 1).await;
    assert!(!setup.is_ready());
    assert_eq!(setup.look_up("web").await, is("first", Source::Api));
    gate.open();
    setup.ready().await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
}

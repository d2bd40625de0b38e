//! The watch behind the cache: everything that can happen to it, and that no answer is wrong meanwhile.

use gmsa_cluster::resolver::{Freshness, Resolved};
use gmsa_core::admission::{Source, SpecFact};
use serde_json::json;

use super::{
    Duration, NO_DEFINITION, SPECS, failed,
    setup::{Setup, is, pass},
};
use crate::support::{Fault, Gate, Kind, SimulatedApi, Verb};

#[tokio::test]
async fn a_refused_watch_means_live_reads_and_readiness_until_it_is_permitted() {
    for verb in [Verb::List, Verb::Watch] {
        let api = SimulatedApi::start().await;
        api.fault(verb, SPECS, usize::MAX, Fault::forbidden());
        let setup = Setup::start_on(api, &["web"]);
        setup.ready().await;
        setup.becomes("live").await;
        for times in 1..=3 {
            assert_eq!(setup.look_up("web").await, is("first", Source::Api));
            assert_eq!(setup.reads(), times);
        }
        setup.knows(0).await;
        assert_eq!(setup.api.count(verb, SPECS), 1, "a refused permission is not asked for in a loop");
        setup.api.heal();
        pass(Duration::from_secs(5)).await;
        setup.becomes("synced").await;
        assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
    }
}

#[tokio::test]
async fn an_api_server_that_refuses_until_it_knows_its_roles_is_soon_followed_again() {
    let setup = Setup::synced(&["web"]).await;
    for _ in 0..2 {
        setup.cut_watch(1, Fault::forbidden());
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
    for is_deleted in [false, true] {
        let setup = if is_deleted {
            Setup::synced(&["web"]).await
        } else {
            let api = SimulatedApi::start().await;
            api.undefine("gmsacredentialspecs");
            Setup::start_on(api, &[])
        };
        setup.api.undefine("gmsacredentialspecs");
        setup.becomes("live").await;
        // What is known goes with it. Once ready, always ready.
        setup.knows(0).await;
        setup.ready().await;
        let Resolved { fact, source } = setup.ask("web", Freshness::Any).await;
        assert_eq!((fact, source), (SpecFact::Failed(failed(NO_DEFINITION)), Source::Api));
        setup.api.define(Kind::new("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs"));
        setup.apply("web", "second");
        pass(Duration::from_secs(30)).await;
        setup.becomes("synced").await;
        assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    }
}

#[tokio::test]
async fn an_expired_watch_is_listed_again() {
    let setup = Setup::synced(&["web", "gone"]).await;
    // The watch breaks, and what happens meanwhile is forgotten before it is connected again.
    setup.cut_watch(1, Fault::internal_error());
    setup.becomes("stale").await;
    setup.delete("gone");
    setup.apply("web", "second");
    setup.api.compact();
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    assert!(setup.shows("gmsa_webhook_specs_known 1"));
    assert_eq!(setup.api.count(Verb::List, SPECS), 1);
}

#[tokio::test]
async fn a_watch_that_breaks_is_begun_again_where_it_was_unless_that_is_too_old() {
    let line_without_end: &str = "x".repeat(5 << 20).leak();
    let after_its_first_bytes = Fault::Cut;
    for (fault, times, lists) in
        [(Fault::Text(200, line_without_end), 1, 0), (after_its_first_bytes, 2, 0), (Fault::gone(), 1, 1)]
    {
        let setup = Setup::synced(&["web"]).await;
        setup.cut_watch(times, fault);
        setup.api.wait_for(Verb::Watch, SPECS, times + 1).await;
        setup.apply("web", "second");
        setup.says("web", "second").await;
        assert_eq!(setup.api.count(Verb::List, SPECS), lists);
    }
}

#[tokio::test]
async fn a_cut_watch_goes_on_where_it_was_and_misses_nothing() {
    let setup = Setup::synced(&["web", "gone"]).await;
    let gate = Gate::new();
    setup.cut_watch(1, Fault::Hold(gate.clone()));
    setup.api.wait_for(Verb::Watch, SPECS, 1).await;
    setup.apply("web", "second");
    setup.delete("gone");
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
    setup.cut_watch(usize::MAX, Fault::internal_error());
    setup.becomes("stale").await;
    // Both change meanwhile. One event arrives as soon as there is a watch again, the other one does not.
    setup.api.withhold("web");
    setup.apply("another", "second");
    setup.apply("web", "second");
    pass(Duration::from_secs(61)).await;
    setup.api.heal();
    setup.becomes("synced").await;
    assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    assert_eq!(setup.look_up("another").await, is("second", Source::Cache));
}

#[tokio::test]
async fn a_first_list_that_fails_is_readiness_because_credential_specs_are_read() {
    let pages_without_end = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    let endless: &str = "x".repeat(5 << 20).leak();
    let texts = [Fault::Text(200, "<html>"), Fault::Text(200, endless)];
    for fault in [Fault::internal_error(), Fault::Cut, Fault::Object(pages_without_end)].into_iter().chain(texts) {
        let api = SimulatedApi::start().await;
        api.fault(Verb::List, SPECS, usize::MAX, fault);
        let setup = Setup::start_on(api, &["web"]);
        setup.ready().await;
        setup.becomes("stale").await;
        assert_eq!(setup.look_up("web").await, is("first", Source::Api));
        setup.api.heal();
        setup.says("web", "first").await;
    }
}

#[tokio::test]
async fn an_api_server_that_cannot_be_reached_is_no_readiness_and_named_with_what_the_system_said() {
    let mut api = SimulatedApi::start().await;
    api.stop().await;
    let mut setup = Setup::start_on(api, &["web"]);
    let cause = "the API server cannot be reached: client error (Connect): tcp connect error: \
                 Connection refused (os error 111)";
    assert_eq!(setup.ask("web", Freshness::Any).await.fact, SpecFact::Failed(failed(cause)));
    assert!(!setup.is_ready());
    setup.api.resume().await;
    setup.ready().await;
    setup.says("web", "first").await;
}

#[tokio::test]
async fn before_the_first_list_is_there_specs_are_read() {
    let api = SimulatedApi::start().await;
    let gate = Gate::new();
    api.fault(Verb::List, SPECS, 1, Fault::Hold(gate.clone()));
    let setup = Setup::start_on(api, &["web"]);
    setup.api.wait_for(Verb::List, SPECS, 1).await;
    assert!(!setup.is_ready());
    assert_eq!(setup.look_up("web").await, is("first", Source::Api));
    gate.open();
    setup.ready().await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
}

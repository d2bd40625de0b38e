//! The watch behind the cache: everything that can happen to it, and that no answer is wrong meanwhile.

use gmsa_cluster::resolver::{Freshness, Resolved};
use gmsa_core::admission::{Source, SpecFact};
use serde_json::json;
use tokio::time;

use super::{
    Duration, SPECS, failed,
    scene::{Scene, is, pass},
};
use crate::support::{Fault, Gate, Kind, SimulatedApi, Verb, credential_spec};

#[tokio::test]
async fn a_refused_watch_means_live_reads_and_readiness() {
    for verb in [Verb::List, Verb::Watch] {
        let api = SimulatedApi::start().await;
        api.apply(credential_spec("web", json!({"is": "first"})));
        api.fault(verb, SPECS, usize::MAX, Fault::forbidden());
        let scene = Scene::start(api);
        scene.ready().await;
        scene.becomes("live").await;
        for times in 1..=3 {
            assert_eq!(scene.look_up("web").await, is("first", Source::Api));
            assert_eq!(scene.reads(), times);
        }
        scene.knows(0).await;
        assert_eq!(scene.api.count(verb, SPECS), 1, "a refused permission is not asked for in a loop");
    }
}

#[tokio::test]
async fn a_permission_that_is_granted_later_is_found_without_a_restart() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    api.fault(Verb::List, SPECS, 1, Fault::forbidden());
    let scene = Scene::start(api);
    scene.becomes("live").await;
    pass(Duration::from_secs(5)).await;
    scene.becomes("synced").await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn an_api_server_that_refuses_until_it_knows_its_roles_is_soon_followed_again() {
    let scene = Scene::synced(&["web"]).await;
    for _ in 0..2 {
        scene.api.fault(Verb::Watch, SPECS, 1, Fault::forbidden());
        scene.api.cut_watches();
        scene.becomes("live").await;
        // What is known would be out of date.
        scene.knows(0).await;
        assert_eq!(scene.look_up("web").await, is("first", Source::Api));
        // As soon the second time as the first: in between it was permitted.
        pass(Duration::from_secs(5)).await;
        scene.becomes("synced").await;
        scene.says("web", "first").await;
    }
}

#[tokio::test]
async fn a_missing_definition_is_named_and_its_installation_noticed() {
    let api = SimulatedApi::start().await;
    api.undefine("gmsacredentialspecs");
    let scene = Scene::start(api);
    scene.ready().await;
    let cause = "the API server does not know GMSACredentialSpec: its CustomResourceDefinition \
                 gmsacredentialspecs.windows.k8s.io, version v1, is not installed";
    assert_eq!(scene.ask("web", Freshness::Any).await.fact, SpecFact::Failed(failed(cause)));
    scene.api.define(Kind {
        api_version: "windows.k8s.io/v1",
        kind: "GMSACredentialSpec",
        plural: "gmsacredentialspecs",
        namespaced: false,
    });
    scene.api.apply(credential_spec("web", json!({"is": "first"})));
    pass(Duration::from_secs(30)).await;
    scene.becomes("synced").await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn a_definition_that_is_deleted_takes_what_is_known_with_it() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.undefine("gmsacredentialspecs");
    scene.becomes("live").await;
    scene.knows(0).await;
    let Resolved { fact, source } = scene.ask("web", Freshness::Any).await;
    assert!(matches!(fact, SpecFact::Failed(_)), "{fact:?}");
    assert_eq!(source, Source::Api);
    assert!(scene.is_ready(), "once ready, always ready");
}

#[tokio::test]
async fn an_expired_watch_is_listed_again() {
    let scene = Scene::synced(&["web", "gone"]).await;
    // The watch breaks, and what happens meanwhile is forgotten before it is connected again.
    scene.api.fault(Verb::Watch, SPECS, 1, Fault::internal_error());
    scene.api.cut_watches();
    scene.becomes("stale").await;
    scene.api.delete("gmsacredentialspecs", "", "gone");
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.api.compact();
    scene.becomes("synced").await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Cache));
    assert!(scene.shows("gmsa_webhook_specs_known 1"));
    assert_eq!(scene.api.count(Verb::List, SPECS), 1);
}

#[tokio::test]
async fn a_watch_that_is_refused_as_expired_is_listed_again() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.fault(Verb::Watch, SPECS, 1, Fault::gone());
    scene.api.cut_watches();
    scene.api.wait_for(Verb::List, SPECS, 1).await;
    scene.becomes("synced").await;
    scene.says("web", "first").await;
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn a_cut_watch_goes_on_where_it_was_and_misses_nothing() {
    let scene = Scene::synced(&["web", "gone"]).await;
    let gate = Gate::new();
    scene.api.fault(Verb::Watch, SPECS, 1, Fault::Hold(gate.clone()));
    scene.api.cut_watches();
    scene.api.wait_for(Verb::Watch, SPECS, 1).await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.api.delete("gmsacredentialspecs", "", "gone");
    // Not connected: memory is not asked.
    assert_eq!(scene.look_up("web").await, is("second", Source::Api));
    assert_eq!(scene.look_up("gone").await, is("missing", Source::Api));
    gate.open();
    scene.says("web", "second").await;
    scene.knows(1).await;
    assert_eq!(scene.api.count(Verb::List, SPECS), 0);
}

#[tokio::test]
async fn after_a_minute_of_failures_credential_specs_are_listed_again() {
    let scene = Scene::synced(&["another", "web"]).await;
    scene.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::internal_error());
    scene.api.cut_watches();
    scene.becomes("stale").await;
    // Both change meanwhile. One event arrives as soon as there is a watch again, the other one does not.
    scene.api.withhold("web");
    scene.api.apply(credential_spec("another", json!({"is": "second"})));
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    pass(Duration::from_secs(61)).await;
    scene.api.heal();
    scene.becomes("synced").await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Cache));
    assert_eq!(scene.look_up("another").await, is("second", Source::Cache));
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
        let scene = Scene::start(api);
        scene.ready().await;
        scene.becomes("stale").await;
        assert_eq!(scene.look_up("web").await, is("first", Source::Api));
        scene.api.heal();
        scene.says("web", "first").await;
    }
}

#[tokio::test]
async fn pages_that_are_empty_without_end_are_asked_for_once_in_each_try() {
    let scene = Scene::synced(&["web"]).await;
    let empty = json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []});
    scene.api.fault(Verb::List, SPECS, usize::MAX, Fault::Object(empty));
    scene.api.fault(Verb::Watch, SPECS, 1, Fault::gone());
    scene.api.cut_watches();
    scene.api.wait_for(Verb::List, SPECS, 3).await;
    assert_eq!(scene.api.count(Verb::List, "continue="), 0);
    assert_eq!(scene.look_up("web").await, is("first", Source::Api));
    scene.api.heal();
    scene.says("web", "first").await;
}

#[tokio::test]
async fn a_line_without_an_end_is_no_event() {
    let scene = Scene::synced(&["web"]).await;
    let endless: &str = "x".repeat(5 << 20).leak();
    scene.api.fault(Verb::Watch, SPECS, 1, Fault::Text(200, endless));
    scene.api.cut_watches();
    scene.becomes("stale").await;
    scene.api.wait_for(Verb::Watch, SPECS, 2).await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.says("web", "second").await;
    assert_eq!(scene.api.count(Verb::List, SPECS), 0, "it goes on where it was");
}

#[tokio::test]
async fn a_watch_that_breaks_after_its_first_bytes_is_begun_again() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.fault(Verb::Watch, SPECS, 2, Fault::Cut);
    scene.api.cut_watches();
    scene.becomes("stale").await;
    scene.api.wait_for(Verb::Watch, SPECS, 3).await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.says("web", "second").await;
}

#[tokio::test]
async fn tries_come_more_and_more_slowly() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::internal_error());
    scene.api.cut_watches();
    let began = time::Instant::now();
    scene.api.wait_for(Verb::Watch, SPECS, 4).await;
    // Before them come at least the halves of 0.2, 0.4, 0.8 and 1.6 s.
    assert!(began.elapsed() >= Duration::from_millis(1500), "after {:?}", began.elapsed());
}

#[tokio::test]
async fn a_restart_of_the_api_server_ends_in_the_truth() {
    let mut scene = Scene::synced(&["web"]).await;
    scene.api.stop().await;
    scene.becomes("stale").await;
    let Resolved { fact, .. } = scene.ask("web", Freshness::Any).await;
    assert!(matches!(&fact, SpecFact::Failed(failure) if !failure.timed_out), "{fact:?}");
    assert!(scene.is_ready(), "once ready, always ready");
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.api.resume().await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Api));
    scene.says("web", "second").await;
}

#[tokio::test]
async fn an_api_server_that_cannot_be_reached_is_no_readiness() {
    let mut api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    api.stop().await;
    let mut scene = Scene::start(api);
    let Resolved { fact, .. } = scene.ask("web", Freshness::Any).await;
    assert!(matches!(fact, SpecFact::Failed(_)), "{fact:?}");
    assert!(!scene.is_ready());
    scene.api.resume().await;
    scene.ready().await;
    scene.says("web", "first").await;
}

#[tokio::test]
async fn before_the_first_list_is_there_specs_are_read() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "first"})));
    let gate = Gate::new();
    api.fault(Verb::List, SPECS, 1, Fault::Hold(gate.clone()));
    let scene = Scene::start(api);
    scene.api.wait_for(Verb::List, SPECS, 1).await;
    assert!(!scene.is_ready());
    assert_eq!(scene.look_up("web").await, is("first", Source::Api));
    gate.open();
    scene.ready().await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
}

//! A silent watch: quiet minutes cost no read, and what a watch withholds is found all the same.

use gmsa_core::admission::Source;
use serde_json::json;

use super::{
    Duration, SPECS,
    scene::{Scene, is, pass},
};
use crate::support::{Fault, SimulatedApi, Verb, credential_spec};

const SECOND: Duration = Duration::from_secs(1);
/// How old contents may be while a watch is stalled.
const STALLED: Duration = Duration::from_secs(75);
/// A list comes after less.
const LISTED: Duration = Duration::from_secs(600);

#[tokio::test]
async fn eight_quiet_minutes_cost_no_read_and_no_list() {
    let scene = Scene::synced_on(SimulatedApi::start_with_tls().await, &["another", "web"]).await;
    for second in 0..480 {
        scene.elapse(SECOND, SECOND, || true).await;
        pass(SECOND).await;
        // Never from the API server, not even where a watch ends and the next one begins.
        assert_eq!(scene.look_up("web").await, is("first", Source::Cache), "after {second} s");
    }
    assert_eq!((scene.reads(), scene.api.count(Verb::List, SPECS)), (0, 0));
}

#[tokio::test]
async fn a_connection_that_goes_dead_silently_is_replaced_within_seventy_five_seconds() {
    let scene = Scene::synced_on(SimulatedApi::start_with_tls().await, &["web"]).await;
    scene.api.freeze_connections();
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    scene.elapse(SECOND, STALLED, || scene.api.count(Verb::Watch, SPECS) == 1).await;
    scene.says("web", "second").await;
}

#[tokio::test]
async fn what_a_stalled_watch_withholds_is_found_within_seventy_five_seconds() {
    let scene = Scene::synced(&["web", "old"]).await;
    scene.hang_watch().await;
    for times in 1..=2 {
        let second = format!("change {times}");
        scene.api.apply(credential_spec("web", json!({"is": second})));
        scene.api.apply(credential_spec(&format!("new-{times}"), json!({"is": "first"})));
        scene.elapse(SECOND, STALLED, || scene.api.count(Verb::List, SPECS) == times).await;
        scene.says("web", &second).await;
        assert_eq!(scene.look_up(&format!("new-{times}")).await, is("first", Source::Cache));
    }
    scene.api.delete("gmsacredentialspecs", "", "old");
    assert_eq!(scene.look_up("old").await, is("first", Source::Cache));
    scene.elapse(SECOND, STALLED, || scene.api.count(Verb::List, SPECS) == 3).await;
    scene.knows(3).await;
    assert_eq!(scene.look_up("old").await, is("missing", Source::Api));
    assert_eq!(scene.reads(), 1);
}

#[tokio::test]
async fn a_change_that_the_watch_withholds_while_others_come_through_is_found_within_ten_minutes() {
    let scene = Scene::synced(&["another", "web"]).await;
    scene.api.withhold("web");
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.api.apply(credential_spec("another", json!({"is": "second"})));
    scene.says("another", "second").await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    scene.elapse(SECOND, LISTED, || scene.api.count(Verb::List, SPECS) == 1).await;
    scene.says("web", "second").await;
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn what_a_restored_etcd_does_not_have_or_has_in_an_older_version_goes_within_ten_minutes() {
    let scene = Scene::synced(&["gone"]).await;
    scene.api.apply(credential_spec("web", json!({"is": "latest"})));
    scene.says("web", "latest").await;
    // The versions begin again below those that are known, so that the watch has nothing to say.
    scene.api.restore(vec![credential_spec("web", json!({"is": "older"}))]);
    assert_eq!(scene.look_up("gone").await, is("first", Source::Cache));
    scene.elapse(SECOND, LISTED, || scene.api.count(Verb::List, SPECS) == 1).await;
    scene.says("web", "older").await;
    assert_eq!(scene.look_up("gone").await, is("missing", Source::Api));
    // From here on the watch follows the restored versions.
    scene.api.apply(credential_spec("web", json!({"is": "newer"})));
    scene.says("web", "newer").await;
}

#[tokio::test]
async fn a_list_that_is_refused_ends_in_live_reads() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    scene.api.fault(Verb::List, SPECS, 1, Fault::forbidden());
    let live = r#"gmsa_webhook_spec_watch_state{state="live"} 1"#;
    scene.elapse(SECOND, STALLED, || scene.shows(live)).await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Api));
}

//! A silent watch: quiet minutes cost no read, and what a watch withholds is found all the same.

use gmsa_core::admission::Source;

use super::{
    Duration, SPECS,
    setup::{Setup, is, pass},
    spec,
};
use crate::support::{Fault, SimulatedApi, Verb};

/// How old contents may be while a watch is stalled, in seconds.
const STALLED: u32 = 75;
/// A list comes after less.
const LISTED: u32 = 600;

#[tokio::test]
async fn eight_quiet_minutes_cost_no_read_and_no_list() {
    let setup = Setup::synced_on(SimulatedApi::start_with_tls().await, &["another", "web"]).await;
    for second in 0..480 {
        setup.elapse(1, || true).await;
        pass(Duration::from_secs(1)).await;
        // Never from the API server, not even where a watch ends and the next one begins.
        assert_eq!(setup.look_up("web").await, is("first", Source::Cache), "after {second} s");
    }
    assert_eq!((setup.reads(), setup.api.count(Verb::List, SPECS)), (0, 0));
}

#[tokio::test]
async fn a_connection_that_goes_dead_silently_is_replaced_within_seventy_five_seconds() {
    let setup = Setup::synced_on(SimulatedApi::start_with_tls().await, &["web"]).await;
    setup.api.freeze_connections();
    setup.apply("web", "second");
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
    setup.elapse(STALLED, || setup.api.count(Verb::Watch, SPECS) == 1).await;
    setup.says("web", "second").await;
}

#[tokio::test]
async fn what_a_stalled_watch_withholds_is_found_within_seventy_five_seconds() {
    let setup = Setup::synced(&["web", "old"]).await;
    setup.hang_watch().await;
    for (times, new) in [(1, "new"), (2, "newer")] {
        setup.apply("web", new);
        setup.apply(new, "first");
        setup.lists_within(STALLED, times).await;
        setup.says("web", new).await;
        assert_eq!(setup.look_up(new).await, is("first", Source::Cache));
    }
    setup.delete("old");
    assert_eq!(setup.look_up("old").await, is("first", Source::Cache));
    setup.lists_within(STALLED, 3).await;
    setup.knows(3).await;
    assert_eq!(setup.look_up("old").await, is("missing", Source::Api));
    assert_eq!(setup.reads(), 1);
}

#[tokio::test]
async fn a_change_that_the_watch_withholds_while_others_come_through_is_found_within_ten_minutes() {
    let setup = Setup::synced(&["another", "web"]).await;
    setup.api.withhold("web");
    setup.apply("web", "second");
    setup.apply("another", "second");
    setup.says("another", "second").await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
    setup.lists_within(LISTED, 1).await;
    setup.says("web", "second").await;
    assert_eq!(setup.reads(), 0);
}

#[tokio::test]
async fn what_a_restored_etcd_does_not_have_or_has_in_an_older_version_goes_within_ten_minutes() {
    let setup = Setup::synced(&["gone"]).await;
    setup.apply("web", "latest");
    setup.says("web", "latest").await;
    // The versions begin again below the known ones, so that the watch has no event.
    setup.api.restore(vec![spec("web", "older")]);
    assert_eq!(setup.look_up("gone").await, is("first", Source::Cache));
    setup.lists_within(LISTED, 1).await;
    setup.says("web", "older").await;
    assert_eq!(setup.look_up("gone").await, is("missing", Source::Api));
    // From here on the watch follows the restored versions.
    setup.apply("web", "newer");
    setup.says("web", "newer").await;
}

#[tokio::test]
async fn a_list_that_is_refused_ends_in_live_reads() {
    let setup = Setup::synced(&["web"]).await;
    setup.hang_watch().await;
    setup.api.fault(Verb::List, SPECS, 1, Fault::forbidden());
    setup.elapse(STALLED, || setup.shows(r#"gmsa_webhook_spec_watch_state{state="live"} 1"#)).await;
    assert_eq!(setup.look_up("web").await, is("first", Source::Api));
}

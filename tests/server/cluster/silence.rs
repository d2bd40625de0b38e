//! A silent watch: a quiet cluster costs next to nothing, and a watch that only looks quiet is found out.

use gmsa_core::admission::Source;
use serde_json::json;

use super::{
    Duration, SPECS,
    scene::{Scene, is, pass},
};
use crate::support::{Fault, Recorded, SimulatedApi, Verb, credential_spec};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
/// A list of one object.
const ONE: &str = "limit=1";
/// A page of a list of all objects' metadata.
const PAGE: &str = "limit=500";

#[tokio::test]
async fn a_quiet_hour_costs_one_object_a_minute_and_six_comparisons() {
    let specs = 2_000;
    let api = SimulatedApi::start().await;
    for n in 0..specs {
        let mut spec = credential_spec(&format!("spec-{n}"), json!({"is": "first"}));
        // What the API server adds on its own, in its usual size.
        spec["metadata"]["managedFields"] = json!([{"manager": "x".repeat(1000)}]);
        api.apply(spec);
    }
    let scene = Scene::start(api);
    scene.becomes("synced").await;
    scene.knows(specs).await;
    scene.api.forget_requests();
    let before = scene.api.bytes_sent();
    let step = Duration::from_secs(10);
    let mut elapsed = Duration::ZERO;
    while elapsed < HOUR {
        elapsed += scene.elapse(step, step, || true).await + step;
        pass(step).await;
        // Never from the API server, not even where it ends a watch and the next one begins.
        assert_eq!(scene.look_up("spec-7").await, is("first", Source::Cache), "after {elapsed:?}");
    }
    scene.elapse(step, step, || true).await;

    assert_eq!(scene.reads(), 0);
    assert_eq!(scene.stuck(), 0);
    let (ones, pages) = (scene.api.count(Verb::List, ONE), scene.api.count(Verb::List, PAGE));
    let lists = scene.api.requests(Verb::List, SPECS);
    assert_eq!(lists.len(), ones + pages);
    let is_page = |list: &Recorded| list.path.contains(PAGE);
    let mut comparisons = 0;
    for comparison in lists.chunk_by(|one, next| is_page(one) == is_page(next)).filter(|lists| is_page(&lists[0])) {
        comparisons += 1;
        // Where a watch ends during a comparison, the comparison begins again with the next watch.
        let last = comparison.iter().rposition(|page| !page.path.contains("continue=")).unwrap();
        assert_eq!(comparison.len() - last, specs / 500, "{comparison:?}");
    }
    assert_eq!(comparisons, 6);
    assert!((54..=66).contains(&ones), "{ones} lists of one object");
    let watches = scene.api.count(Verb::Watch, SPECS);
    assert!((11..=13).contains(&watches), "{watches} watches");
    let bytes = scene.api.bytes_sent() - before;
    // 1.2 KB for each object in each comparison.
    let bytes_per_object = bytes / (500 * pages as u64);
    assert!((1_160..1_240).contains(&bytes_per_object), "{bytes} bytes for {pages} pages");
}

#[tokio::test]
async fn a_connection_that_goes_dead_silently_is_replaced_within_forty_five_seconds() {
    let scene = Scene::synced_on(SimulatedApi::start_with_tls().await, &["web"]).await;
    scene.api.freeze_connections();
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    let elapsed = scene.elapse(SECOND, Duration::from_secs(60), || scene.api.count(Verb::Watch, SPECS) == 1).await;
    assert!((Duration::from_secs(43)..=Duration::from_secs(47)).contains(&elapsed), "{elapsed:?}");
    scene.says("web", "second").await;
    assert_eq!(scene.stuck(), 0);
    assert_eq!(scene.api.count(Verb::List, SPECS), 0, "it goes on where it was");
}

#[tokio::test]
async fn a_quiet_connection_that_answers_pings_is_kept() {
    let scene = Scene::synced_on(SimulatedApi::start_with_tls().await, &["web"]).await;
    let mut elapsed = Duration::ZERO;
    scene
        .elapse(SECOND, Duration::from_secs(250), || {
            elapsed += SECOND;
            elapsed > Duration::from_secs(240)
        })
        .await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    assert_eq!(scene.api.count(Verb::Watch, SPECS), 0, "the first watch goes on");
}

#[tokio::test]
async fn a_new_object_that_the_watch_withholds_is_found_within_seventy_five_seconds() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    for times in 1..=2 {
        scene.api.apply(credential_spec(&format!("new-{times}"), json!({"is": "first"})));
        scene.elapse(SECOND, Duration::from_secs(75), || scene.stuck() == times).await;
        scene.becomes("synced").await;
        assert_eq!(scene.look_up(&format!("new-{times}")).await, is("first", Source::Cache));
    }
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn a_deletion_that_the_watch_withholds_is_found_within_seventy_five_seconds() {
    let scene = Scene::synced(&["web", "old"]).await;
    scene.hang_watch().await;
    scene.api.delete("gmsacredentialspecs", "", "old");
    assert_eq!(scene.look_up("old").await, is("first", Source::Cache));
    scene.elapse(SECOND, Duration::from_secs(75), || scene.stuck() == 1).await;
    scene.becomes("synced").await;
    scene.knows(1).await;
    assert_eq!(scene.look_up("old").await, is("missing", Source::Api));
}

#[tokio::test]
async fn a_change_that_the_watch_withholds_is_found_within_eleven_minutes() {
    let scene = Scene::synced(&["another", "web"]).await;
    scene.hang_watch().await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    let elapsed = scene.elapse(SECOND, Duration::from_secs(660), || scene.stuck() == 1).await;
    assert!(elapsed > Duration::from_secs(500), "not every minute: {elapsed:?}");
    scene.says("web", "second").await;
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn a_change_that_the_watch_withholds_is_found_although_others_come_through() {
    for every in [1, 45] {
        let scene = Scene::synced(&["another", "web"]).await;
        scene.api.withhold("web");
        scene.api.apply(credential_spec("web", json!({"is": "second"})));
        let (mut seconds, settled) = (0, || scene.elapse(SECOND, SECOND, || true));
        while scene.stuck() == 0 {
            assert!(seconds < 660, "nothing is found");
            seconds += 1;
            pass(SECOND).await;
            settled().await;
            if seconds % every == 0 {
                // Its event arrives before the clock moves on: a list that is ahead of the watch starts a comparison.
                scene.api.apply(credential_spec("another", json!({"is": seconds.to_string()})));
                settled().await;
            }
        }
        assert!(seconds > 500, "not every minute: {seconds} s");
        scene.says("web", "second").await;
        assert_eq!(scene.reads(), 0);
    }
}

#[tokio::test]
async fn events_spare_the_verification_but_not_the_comparison() {
    let scene = Scene::synced(&["web"]).await;
    for n in 0..30 {
        // A comparison that is due, and the catching up of a new watch, end before the next change.
        for milliseconds in [44_500, 500] {
            pass(Duration::from_millis(milliseconds)).await;
            scene.elapse(SECOND, SECOND, || true).await;
        }
        let is = format!("change {n}");
        scene.api.apply(credential_spec("web", json!({"is": is})));
        scene.says("web", &is).await;
    }
    // Within 22 minutes: one every ten.
    assert_eq!(scene.api.count(Verb::List, PAGE), 2);
    assert_eq!(scene.api.count(Verb::List, SPECS), 2);
    assert_eq!((scene.reads(), scene.stuck()), (0, 0));
}

#[tokio::test]
async fn bookmarks_are_no_verification() {
    let scene = Scene::synced(&["web"]).await;
    let mut elapsed = Duration::ZERO;
    let lists = || scene.api.count(Verb::List, ONE);
    scene
        .elapse(SECOND, Duration::from_secs(200), || {
            elapsed += SECOND;
            scene.api.bookmark();
            lists() == 3
        })
        .await;
    assert!(elapsed >= Duration::from_secs(145), "{elapsed:?}");
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn what_cannot_be_verified_is_not_believed() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    scene.api.fault(Verb::List, SPECS, usize::MAX, Fault::internal_error());
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    let stale = r#"gmsa_webhook_spec_watch_state{state="stale"} 1"#;
    scene.elapse(SECOND, Duration::from_secs(75), || scene.shows(stale)).await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Api));
    scene.api.heal();
    scene.api.cut_watches();
    scene.says("web", "second").await;
    assert_eq!(scene.stuck(), 0);
}

#[tokio::test]
async fn a_list_that_is_refused_ends_in_live_reads() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.fault(Verb::List, SPECS, 1, Fault::forbidden());
    let live = r#"gmsa_webhook_spec_watch_state{state="live"} 1"#;
    scene.elapse(SECOND, Duration::from_secs(60), || scene.shows(live)).await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Api));
}

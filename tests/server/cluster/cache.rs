//! The cache: what is answered from memory, and what is not.

use std::sync::Arc;

use gmsa_cluster::resolver::{Freshness, Resolver as _};
use gmsa_core::{
    admission::{Source, SpecFact},
    credspec::{Contents, MAX_CONTENTS_BYTES},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    BUDGET, NO_MEMORY, SOON, SPECS, failed,
    setup::{Setup, describe, is},
    spec, spec_name, within,
};
use crate::support::{Fault, Gate, Recorded, SimulatedApi, Verb, credential_spec};

#[tokio::test]
async fn pages_shrink_where_objects_are_large() {
    let api = SimulatedApi::start().await;
    for n in 0..5 {
        api.apply(spec(&format!("huge-{n}"), &"x".repeat(1 << 20)));
    }
    let setup = Setup::start_on(api, &["web"]);
    setup.becomes("synced").await;
    setup.knows(6).await;
    let limit = |page: &Recorded| page.path.split("limit=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let limits: Vec<String> = setup.api.requests(Verb::List, SPECS).iter().map(limit).collect();
    assert_eq!(limits, ["250", "62", "15", "3", "3"]);
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
}

#[tokio::test]
async fn contents_that_no_pod_can_carry_are_known_to_be_too_long_and_not_read() {
    let setup = Setup::synced(&["web"]).await;
    let fits = "x".repeat(MAX_CONTENTS_BYTES - r#"{"is":""}"#.len());
    setup.apply("web", &fits);
    setup.says("web", &fits).await;
    for more in [1, 1 << 20] {
        setup.apply("web", &(fits.clone() + &"x".repeat(more)));
        let too_long = SpecFact::Contents(Contents::too_long());
        while setup.ask("web", Freshness::Any).await.fact != too_long {
            tokio::task::yield_now().await;
        }
        assert_eq!(setup.reads(), 0);
        // Before a denial.
        let read = setup.ask("web", Freshness::Live).await;
        assert_eq!((read.fact, read.source, setup.reads()), (too_long, Source::Api, 1));
        setup.api.forget_requests();
    }
}

#[tokio::test]
async fn contents_that_only_reviews_hold_take_a_part_of_the_budget_and_advice_its_own() {
    let api = SimulatedApi::start().await;
    api.fault(Verb::List, SPECS, usize::MAX, Fault::forbidden());
    let text = "x".repeat(60 << 10);
    for n in 0..200 {
        api.apply(spec(&format!("spec-{n}"), &text));
    }
    let setup = Setup::start_on(api, &[]);
    setup.becomes("live").await;
    let mut held = Vec::new();
    for n in 0..200 {
        held.push(setup.ask(&format!("spec-{n}"), Freshness::Any).await.fact);
    }
    let is_found = |fact: &&SpecFact| matches!(fact, SpecFact::Contents(_));
    let found = held.iter().filter(is_found).count();
    assert_eq!(found, BUDGET / 4 / 4 * 3 / (text.len() + r#"{"is":""}"#.len()));
    assert_eq!(held[199], SpecFact::Failed(failed(NO_MEMORY)));
    // Which is no decision's.
    let for_advice = setup.cache.for_advice();
    let found = for_advice.resolve(&spec_name("spec-199"), Freshness::Any, within(SOON)).await;
    assert!(matches!(found.fact, SpecFact::Contents(_)), "{found:?}");
    held.clear();
    assert_eq!(setup.look_up("spec-199").await, is(&text, Source::Api));
}

#[tokio::test]
async fn events_are_seen_at_once_and_not_found_is_never_said_from_memory() {
    let setup = Setup::synced(&["web"]).await;
    setup.apply("web", "second");
    setup.says("web", "second").await;
    setup.apply("new", "first");
    setup.knows(2).await;
    assert_eq!(setup.look_up("new").await, is("first", Source::Cache));
    setup.api.apply(credential_spec("new", json!("text")));
    setup.says("new", "unusable").await;
    setup.delete("web");
    setup.knows(1).await;
    for times in 0..3 {
        assert_eq!(setup.reads(), times);
        assert_eq!(setup.look_up("web").await, is("missing", Source::Api));
    }
}

#[tokio::test]
async fn what_is_read_is_remembered() {
    let setup = Setup::synced(&["web"]).await;
    setup.hang_watch().await;
    // In the moment in which it is created.
    setup.apply("new", "first");
    for source in [Source::Api, Source::Cache] {
        assert_eq!(setup.look_up("new").await, is("first", source));
    }
    setup.apply("web", "second");
    assert_eq!(setup.look_up("web").await, is("first", Source::Cache));
    let truth = setup.ask("web", Freshness::Live).await;
    assert_eq!((describe(&truth.fact), truth.source), is("second", Source::Api));
    assert_eq!(setup.look_up("web").await, is("second", Source::Cache));
    setup.delete("web");
    assert_eq!(setup.ask("web", Freshness::Live).await.fact, SpecFact::Missing);
    assert_eq!(setup.look_up("web").await, is("missing", Source::Api));
    assert_eq!(setup.reads(), 4);
}

#[tokio::test]
async fn who_asks_at_the_same_time_shares_one_read() {
    let setup = Setup::synced(&["web"]).await;
    let gate = Gate::new();
    setup.api.fault(Verb::Get, SPECS, usize::MAX, Fault::Hold(gate.clone()));
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        let cache = Arc::clone(&setup.cache);
        asking.spawn(async move { cache.resolve(&spec_name("unknown"), Freshness::Any, within(SOON)).await });
    }
    setup.api.wait_for(Verb::Get, SPECS, 1).await;
    gate.open();
    let answers = asking.join_all().await;
    assert_eq!(setup.reads(), 1);
    assert!(answers.iter().all(|answer| answer.fact == SpecFact::Missing), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.source == Source::Joined).count(), 199);
}

#[tokio::test]
async fn a_read_that_began_before_a_deletion_does_not_bring_the_object_back() {
    let setup = Setup::synced(&["web"]).await;
    let gate = Gate::new();
    setup.api.fault(Verb::Get, SPECS, 1, Fault::Hold(gate.clone()));
    let cache = Arc::clone(&setup.cache);
    let early = tokio::spawn(async move { cache.resolve(&spec_name("web"), Freshness::Live, within(SOON)).await });
    // The answer is made, and held.
    setup.api.wait_for(Verb::Get, SPECS, 1).await;
    setup.delete("web");
    setup.knows(0).await;
    assert_eq!(setup.look_up("web").await, is("missing", Source::Api), "the read from before is not shared");
    gate.open();
    assert_eq!(describe(&early.await.unwrap().fact), "first");
    assert_eq!(setup.look_up("web").await, is("missing", Source::Api));
    assert!(setup.shows("gmsa_webhook_specs_known 0"));
}

//! The cache: what is answered from memory, and what is not, through everything that can happen to a watch.

use std::sync::Arc;

use gmsa_webhook::{
    admission::{Source, SpecFact},
    metrics::{self, Metrics},
    resolver::{
        Freshness, Resolved, Resolver as _,
        cache::{Cache, SILENCE},
    },
};
use serde_json::json;
use tokio::{task::JoinSet, time};

use super::{
    Duration, SOON, SPECS, connect, failed, spec_name,
    support::{Fault, Gate, Kind, PATIENCE, SimulatedApi, Verb, credential_spec, eventually},
    timed_out, within,
};

/// A cache on a simulated API server; its watch runs until this is dropped.
struct Scene {
    api: SimulatedApi,
    cache: Arc<Cache>,
    registry: Box<dyn Fn() -> String>,
    _watch: JoinSet<std::convert::Infallible>,
}

impl Scene {
    /// A cache that has just been started.
    fn start(api: SimulatedApi) -> Self {
        let (metrics, registry) = Metrics::new("test");
        let (cache, watch) = Cache::new(connect(&api), metrics);
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        let scrape = move || metrics::scrape(&registry).unwrap();
        Self { api, cache: Arc::new(cache), registry: Box::new(scrape), _watch: owner }
    }

    /// A cache that knows these credential specs; the requests of its start are forgotten.
    async fn synced(names: &[&str]) -> Self {
        let api = SimulatedApi::start().await;
        for name in names {
            api.apply(credential_spec(name, json!({"is": "first"})));
        }
        let scene = Self::start(api);
        scene.becomes("synced").await;
        scene.api.forget_requests();
        scene
    }

    async fn ready(&self) {
        let mut ready = self.cache.ready();
        time::timeout(PATIENCE, ready.wait_for(|ready| *ready)).await.unwrap().unwrap();
    }

    fn is_ready(&self) -> bool {
        *self.cache.ready().borrow()
    }

    fn shows(&self, line: &str) -> bool {
        (self.registry)().lines().any(|shown| shown == line)
    }

    async fn becomes(&self, state: &str) {
        let line = format!("gmsa_webhook_spec_watch_state{{state=\"{state}\"}} 1");
        eventually(&line, || self.shows(&line)).await;
    }

    async fn knows(&self, specs: usize) {
        let line = format!("gmsa_webhook_specs_known {specs}");
        eventually(&line, || self.shows(&line)).await;
    }

    async fn ask(&self, name: &str, freshness: Freshness) -> Resolved {
        self.cache.resolve(&spec_name(name), freshness, within(SOON)).await
    }

    /// What is known of a credential spec, and from where: `("first", Source::Cache)`.
    async fn look_up(&self, name: &str) -> (String, Source) {
        let Resolved { fact, source } = self.ask(name, Freshness::Any).await;
        (describe(&fact), source)
    }

    /// Waits until memory says `wanted`.
    async fn says(&self, name: &str, wanted: &str) {
        let asking = async {
            while self.look_up(name).await != (wanted.to_owned(), Source::Cache) {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(time::timeout(PATIENCE, asking).await.is_ok(), "memory never said {wanted:?} of {name}");
    }

    fn reads(&self) -> usize {
        self.api.count(Verb::Get, SPECS)
    }

    /// Makes the watch silent: it is connected, but what happens does not come through.
    async fn hang_watch(&self) {
        let before = self.api.count(Verb::Watch, SPECS);
        self.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::Silence);
        self.api.cut_watches();
        self.api.wait_for(Verb::Watch, SPECS, before + 1).await;
        // Connected again: memory answers.
        self.says("web", "first").await;
        self.api.forget_requests();
    }
}

fn describe(fact: &SpecFact) -> String {
    match fact {
        SpecFact::Contents(contents) => {
            let text: serde_json::Value = serde_json::from_str(contents.text()).unwrap();
            text["is"].as_str().unwrap().to_owned()
        }
        SpecFact::Missing => "missing".to_owned(),
        SpecFact::Unusable => "unusable".to_owned(),
        SpecFact::Failed(failure) => failure.cause.clone(),
    }
}

fn is(text: &str, source: Source) -> (String, Source) {
    (text.to_owned(), source)
}

/// Moves the clock, which stands still only for this: sockets know no other clock than the real one.
async fn pass(duration: Duration) {
    time::pause();
    time::advance(duration).await;
    time::resume();
}

#[tokio::test]
async fn what_is_known_is_answered_from_memory_without_a_call() {
    let scene = Scene::synced(&["web", "other"]).await;
    for _ in 0..100 {
        assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
        assert_eq!(scene.look_up("other").await, is("first", Source::Cache));
    }
    assert_eq!(scene.reads(), 0);
    assert!(scene.shows("gmsa_webhook_specs_known 2"));
}

#[tokio::test]
async fn many_pages_are_one_list() {
    let api = SimulatedApi::start().await;
    for n in 0..601 {
        api.apply(credential_spec(&format!("spec-{n}"), json!({"is": "first"})));
    }
    let scene = Scene::start(api);
    scene.knows(601).await;
    scene.becomes("synced").await;
    let pages: Vec<String> = scene.api.requests(Verb::List, SPECS).into_iter().map(|page| page.path).collect();
    assert_eq!(pages.len(), 3, "{pages:?}");
    assert!(pages.iter().all(|page| page.contains("limit=250")), "{pages:?}");
    assert_eq!(scene.look_up("spec-600").await, is("first", Source::Cache));
}

#[tokio::test]
async fn events_are_seen_at_once() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    scene.says("web", "second").await;
    scene.api.apply(credential_spec("new", json!({"is": "first"})));
    scene.knows(2).await;
    assert_eq!(scene.look_up("new").await, is("first", Source::Cache));
    scene.api.delete("gmsacredentialspecs", "", "web");
    scene.knows(1).await;
    assert_eq!(scene.reads(), 0);
    assert_eq!(scene.look_up("web").await, is("missing", Source::Api));
    assert_eq!(scene.reads(), 1);
}

#[tokio::test]
async fn a_credspec_that_is_no_object_is_known_to_be_unusable() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.apply(credential_spec("web", json!("text")));
    scene.says("web", "unusable").await;
    assert_eq!(scene.reads(), 0);
}

#[tokio::test]
async fn not_found_is_never_said_from_memory() {
    let scene = Scene::synced(&["web"]).await;
    for times in 1..=3 {
        assert_eq!(scene.look_up("unknown").await, is("missing", Source::Api));
        assert_eq!(scene.reads(), times);
    }
}

#[tokio::test]
async fn a_spec_is_found_in_the_moment_in_which_it_is_created_and_then_remembered() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    scene.api.apply(credential_spec("new", json!({"is": "first"})));
    assert_eq!(scene.look_up("new").await, is("first", Source::Api));
    assert_eq!(scene.look_up("new").await, is("first", Source::Cache));
    assert_eq!(scene.reads(), 1);
}

#[tokio::test]
async fn truth_is_read_where_it_is_asked_for_and_memory_learns_it() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    let truth = scene.ask("web", Freshness::Live).await;
    assert_eq!((describe(&truth.fact), truth.source), is("second", Source::Api));
    assert_eq!(scene.look_up("web").await, is("second", Source::Cache));
    scene.api.delete("gmsacredentialspecs", "", "web");
    assert_eq!(scene.ask("web", Freshness::Live).await.fact, SpecFact::Missing);
    assert_eq!(scene.look_up("web").await, is("missing", Source::Api));
    assert_eq!(scene.reads(), 3);
}

#[tokio::test]
async fn who_asks_at_the_same_time_shares_one_read() {
    let scene = Scene::synced(&["web"]).await;
    let gate = Gate::new();
    scene.api.fault(Verb::Get, SPECS, usize::MAX, Fault::Hold(gate.clone()));
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        let cache = Arc::clone(&scene.cache);
        asking.spawn(async move { cache.resolve(&spec_name("unknown"), Freshness::Any, within(SOON)).await });
    }
    scene.api.wait_for(Verb::Get, SPECS, 1).await;
    gate.open();
    let answers = asking.join_all().await;
    assert_eq!(scene.reads(), 1);
    assert!(answers.iter().all(|answer| answer.fact == SpecFact::Missing), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.source == Source::Joined).count(), 199);
}

#[tokio::test]
async fn a_reader_that_is_out_of_time_says_so_and_does_not_fail_the_others() {
    let scene = Scene::synced(&["web"]).await;
    let gate = Gate::new();
    scene.api.fault(Verb::Get, SPECS, 1, Fault::Hold(gate.clone()));
    let unknown = spec_name("unknown");
    let hasty = scene.cache.resolve(&unknown, Freshness::Any, within(Duration::from_millis(200)));
    let patient = scene.cache.resolve(&unknown, Freshness::Any, within(Duration::from_secs(1)));
    let open = async {
        time::sleep(Duration::from_millis(300)).await;
        gate.open();
    };
    let (hasty, patient, ()) = tokio::join!(hasty, patient, open);
    let cause = "no answer from the API server within 0.2 s";
    assert_eq!(hasty, Resolved { fact: SpecFact::Failed(timed_out(cause)), source: Source::Api });
    assert_eq!(patient, Resolved { fact: SpecFact::Missing, source: Source::Joined });
    assert_eq!(scene.reads(), 1);
}

#[tokio::test]
async fn a_read_that_began_before_a_deletion_does_not_bring_the_object_back() {
    let scene = Scene::synced(&["web"]).await;
    let gate = Gate::new();
    scene.api.fault(Verb::Get, SPECS, 1, Fault::Hold(gate.clone()));
    let early = {
        let cache = Arc::clone(&scene.cache);
        tokio::spawn(async move { cache.resolve(&spec_name("web"), Freshness::Live, within(SOON)).await })
    };
    // The answer is made, and held.
    scene.api.wait_for(Verb::Get, SPECS, 1).await;
    scene.api.delete("gmsacredentialspecs", "", "web");
    scene.knows(0).await;
    assert_eq!(scene.look_up("web").await, is("missing", Source::Api), "the read from before is not shared");
    gate.open();
    assert_eq!(describe(&early.await.unwrap().fact), "first");
    assert_eq!(scene.look_up("web").await, is("missing", Source::Api));
    assert!(scene.shows("gmsa_webhook_specs_known 0"));
}

#[tokio::test]
async fn a_silent_watch_is_not_believed_for_longer_than_two_minutes() {
    let scene = Scene::synced(&["web"]).await;
    scene.hang_watch().await;
    scene.api.apply(credential_spec("web", json!({"is": "second"})));
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    pass(SILENCE).await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Api));
    scene.becomes("stale").await;
    // It is connected anew, and as silent as before: that says nothing.
    scene.api.wait_for(Verb::Watch, SPECS, 1).await;
    assert_eq!(scene.look_up("web").await, is("second", Source::Api));
    scene.api.heal();
    scene.api.cut_watches();
    scene.says("web", "second").await;
    scene.becomes("synced").await;
}

#[tokio::test]
async fn a_bookmark_is_as_good_as_an_event() {
    let scene = Scene::synced(&["web"]).await;
    pass(SILENCE).await;
    scene.becomes("stale").await;
    let synced = r#"gmsa_webhook_spec_watch_state{state="synced"} 1"#;
    eventually("bookmarks are heard", || {
        scene.api.bookmark();
        scene.shows(synced)
    })
    .await;
    assert_eq!(scene.look_up("web").await, is("first", Source::Cache));
    assert_eq!(scene.reads(), 0);
}

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
async fn an_expired_watch_is_listed_anew() {
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
async fn a_watch_that_is_refused_as_expired_is_listed_anew() {
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
async fn a_watch_that_breaks_after_its_first_bytes_is_begun_again() {
    let scene = Scene::synced(&["web"]).await;
    scene.api.fault(Verb::Watch, SPECS, 2, Fault::Cut);
    scene.api.cut_watches();
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

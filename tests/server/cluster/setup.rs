//! A cache on a simulated API server, and how to see what it knows.

use std::sync::Arc;

use gmsa_cluster::resolver::{Freshness, Resolved, Resolver as _};
use gmsa_core::admission::{Source, SpecFact};
use gmsa_webhook::{
    cache::Cache,
    metrics::{self, Metrics},
};
use prometheus_client::registry::Registry;
use tokio::{
    sync::SetOnce,
    task::{JoinSet, yield_now},
    time,
};

use super::{BUDGET, Duration, SOON, SPECS, connect, spec, spec_name, within};
use crate::support::{Fault, PATIENCE, SimulatedApi, Verb, eventually};

/// A cache on a simulated API server; its watch runs until this is dropped.
pub struct Setup {
    pub api: SimulatedApi,
    pub cache: Arc<Cache>,
    ready: Arc<SetOnce<()>>,
    registry: Registry,
    _watch: JoinSet<std::convert::Infallible>,
}

impl Setup {
    /// A cache that has just been started, where these credential specs are.
    pub fn start_on(api: SimulatedApi, names: &[&str]) -> Self {
        for name in names {
            api.apply(spec(name, "first"));
        }
        let (metrics, registry) = Metrics::new("test");
        let ready = Arc::new(SetOnce::new());
        let (cache, watch) = Cache::new(connect(&api), metrics, BUDGET, set(&ready));
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        Self { api, cache: Arc::new(cache), ready, registry, _watch: owner }
    }

    /// A cache that knows these credential specs; the requests of its start are forgotten.
    pub async fn synced(names: &[&str]) -> Self {
        Self::synced_on(SimulatedApi::start().await, names).await
    }

    /// The same, on a server that has been started.
    pub async fn synced_on(api: SimulatedApi, names: &[&str]) -> Self {
        let setup = Self::start_on(api, names);
        setup.becomes("synced").await;
        setup.api.forget_requests();
        setup
    }

    pub async fn ready(&self) {
        time::timeout(PATIENCE, self.ready.wait()).await.unwrap();
    }

    pub fn is_ready(&self) -> bool {
        self.ready.initialized()
    }

    /// Creates or changes a credential spec.
    pub fn apply(&self, name: &str, is: &str) {
        self.api.apply(spec(name, is));
    }

    pub fn delete(&self, name: &str) {
        self.api.delete("gmsacredentialspecs", "", name);
    }

    /// Cuts the watch, and does this to the next tries to connect it again.
    pub fn cut_watch(&self, times: usize, fault: Fault) {
        self.api.fault(Verb::Watch, SPECS, times, fault);
        self.api.cut_watches();
    }

    pub fn shows(&self, line: &str) -> bool {
        metrics::scrape(&self.registry).unwrap().lines().any(|shown| shown == line)
    }

    /// Moves the clock by a second at a time until `condition` holds. The clock stands still otherwise: time that the machine needs
    /// would let other timers end together than on a faster one.
    pub async fn elapse(&self, seconds: u32, mut condition: impl FnMut() -> bool) {
        time::pause();
        for _ in 0..=seconds {
            // Both sides run on this thread: each round lets all that is ready go on, looks at the sockets, and lets the
            // shortest timers end. A sleep would let the paused clock jump.
            let (mut quiet, mut sent) = (0, 0);
            while quiet < 10 {
                for _ in 0..20 {
                    yield_now().await;
                }
                // A busy kernel delivers later what was sent.
                std::thread::sleep(Duration::from_micros(250));
                time::advance(Duration::from_millis(1)).await;
                let before = std::mem::replace(&mut sent, self.api.bytes_sent());
                quiet = if self.api.is_idle() && before == sent { quiet + 1 } else { 0 };
            }
            if condition() {
                return time::resume();
            }
            time::advance(Duration::from_secs(1)).await;
        }
        panic!("nothing happened within {seconds} s");
    }

    /// Moves the clock until there were so many lists.
    pub async fn lists_within(&self, seconds: u32, times: usize) {
        self.elapse(seconds, || self.api.count(Verb::List, SPECS) == times).await;
    }

    pub async fn becomes(&self, state: &str) {
        let line = format!("gmsa_webhook_spec_watch_state{{state=\"{state}\"}} 1");
        eventually(&line, || self.shows(&line)).await;
    }

    pub async fn knows(&self, specs: usize) {
        let line = format!("gmsa_webhook_specs_known {specs}");
        eventually(&line, || self.shows(&line)).await;
    }

    pub async fn ask(&self, name: &str, freshness: Freshness) -> Resolved {
        self.cache.resolve(&spec_name(name), freshness, within(SOON)).await
    }

    /// What is known of a credential spec, and from where: `("first", Source::Cache)`.
    pub async fn look_up(&self, name: &str) -> (String, Source) {
        let Resolved { fact, source } = self.ask(name, Freshness::Any).await;
        (describe(&fact), source)
    }

    /// Waits until memory says `wanted`.
    pub async fn says(&self, name: &str, wanted: &str) {
        let asking = async {
            while self.look_up(name).await != (wanted.to_owned(), Source::Cache) {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(time::timeout(PATIENCE, asking).await.is_ok(), "memory never said {wanted:?} of {name}");
    }

    pub fn reads(&self) -> usize {
        self.api.count(Verb::Get, SPECS)
    }

    /// Makes the watch silent: it is connected, but what happens does not come through.
    pub async fn hang_watch(&self) {
        let before = self.api.count(Verb::Watch, SPECS);
        self.cut_watch(usize::MAX, Fault::Silence);
        self.api.wait_for(Verb::Watch, SPECS, before + 1).await;
        // Connected again: memory answers.
        self.says("web", "first").await;
        self.api.forget_requests();
    }
}

/// What a cache calls when it can answer.
pub fn set(ready: &Arc<SetOnce<()>>) -> impl Fn() + Send + Sync + use<> {
    let ready = Arc::clone(ready);
    // It may be called again.
    move || drop(ready.set(()))
}

pub fn describe(fact: &SpecFact) -> String {
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

pub fn is(text: &str, source: Source) -> (String, Source) {
    (text.to_owned(), source)
}

/// Moves the clock, which stands still only for this: sockets know no other clock than the real one.
pub async fn pass(duration: Duration) {
    time::pause();
    time::advance(duration).await;
    time::resume();
}

//! The webhook as it runs in a cluster, without its port, on a simulated API server: how to ask it, and how to see what it knows.

use std::sync::Arc;

use gmsa_cluster::{
    authorizer::access_review::Advisor,
    resolver::{Freshness, Resolved, Resolver as _},
};
use gmsa_core::admission::{Review, Source, SpecFact, Webhook};
use gmsa_edge::{authorization_cache::AuthorizationCache, metrics};
use gmsa_webhook::{
    cache::Cache,
    metrics::Metrics,
    server::{LookUpSources, Reviewer, thread::Thread},
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::{
    sync::SetOnce,
    task::{JoinSet, yield_now},
    time::{self, Instant},
};

use super::{BUDGET, Duration, REVIEWS, SOON, SPECS, connect, spec, spec_name, within};
use crate::{
    https::reviewer,
    reviews::{created, slot},
    support::{Fault, PATIENCE, SimulatedApi, Verb, control_plane::until, eventually},
};

pub const MUTATE: Webhook = Webhook::Mutate;

/// What `web` holds, and the denial of a pod that carries something else.
pub const WEB: &str = r#"{"is":"web"}"#;
pub const DIFFER: &str = "the GMSA cred spec contents for pod \"pod\" does not match the contents of GMSA resource \
                          \"web\": they hold other values";

/// A cache on a simulated API server, and a reviewer in front of it, without its port; the watch runs until this is dropped.
pub struct Setup {
    pub api: SimulatedApi,
    pub cache: Arc<Cache>,
    pub reviewer: Reviewer,
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
        let (_, metrics, registry) = Metrics::new();
        let server = connect(&api);
        let ready = Arc::new(SetOnce::new());
        let is_ready = Arc::clone(&ready);
        // It may be called again.
        let set_ready = move || drop(is_ready.set(()));
        let (cache, watch) = Cache::new(Arc::clone(&server), metrics.clone(), BUDGET, set_ready);
        let cache = Arc::new(cache);
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        let advisor = Arc::new(Advisor(Arc::clone(&server)));
        let authorizer = AuthorizationCache::new(server, SOON);
        let for_advice =
            LookUpSources { resolver: Arc::new(cache.for_advice()), authorizer: Arc::new(authorizer.asking(advisor)) };
        let for_decisions = LookUpSources { resolver: Arc::clone(&cache) as _, authorizer: Arc::new(authorizer) };
        let reviewer = reviewer(for_decisions, for_advice, metrics);
        Self { api, cache, reviewer, ready, registry, _watch: owner }
    }

    /// With the credential specs `web` and `db`, which `till` and `clerk` may use in `shop`, and a warm cache.
    pub async fn replica() -> Self {
        let api = SimulatedApi::start().await;
        for name in ["web", "db"] {
            api.apply(spec(name, name));
        }
        api.grant_only(&[
            ("shop", "till", "web"),
            ("shop", "till", "db"),
            ("shop", "clerk", "web"),
            ("mall", "till", "web"),
        ]);
        Self::synced_on(api, &[]).await
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

    /// Moves the clock until there were `times` lists.
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
        let what = format!("memory says {wanted:?} of {name}");
        until(&what, async || (self.look_up(name).await == is(wanted, Source::Cache)).then_some(())).await;
    }

    pub fn reads(&self) -> usize {
        self.api.count(Verb::Get, SPECS)
    }

    pub async fn allows(&self, webhook: Webhook, review: &Value) {
        let answer = decide(&self.reviewer, webhook, review).await;
        assert_eq!(answer["allowed"], true, "{answer}");
    }

    pub async fn denies(&self, webhook: Webhook, review: &Value, code: u16, message: &str) {
        let answer = decide(&self.reviewer, webhook, review).await;
        assert_eq!((&answer["allowed"], &answer["status"]["code"]), (&json!(false), &json!(code)), "{answer}");
        assert_eq!(answer["status"]["message"], message);
    }

    /// Reads and access reviews so far.
    pub fn calls(&self) -> (usize, usize) {
        (self.api.count(Verb::Get, SPECS), self.api.count(Verb::Create, REVIEWS))
    }

    /// Makes the watch silent: it is connected, but what happens does not come through.
    pub async fn hang_watch(&self) {
        let before = self.api.count(Verb::Watch, SPECS);
        self.cut_watch(usize::MAX, Fault::Silence);
        self.api.wait_for(Verb::Watch, SPECS, before + 1).await;
        // Connected again.
        until("memory answers", async || (self.look_up("web").await.1 == Source::Cache).then_some(())).await;
        self.api.forget_requests();
    }
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

/// The response to a review.
pub async fn decide(reviewer: &Reviewer, webhook: Webhook, review: &Value) -> Value {
    let body = review.to_string();
    let review = Arc::new(Review::parse(body.as_bytes(), webhook).unwrap());
    let started = Instant::now();
    let answer = reviewer.decide(webhook, &review, &Thread::Serving, started, started + SOON).await.unwrap();
    serde_json::from_slice::<Value>(&answer).unwrap()["response"].take()
}

pub fn create(namespace: &str, spec: &Value) -> Value {
    created(namespace, &json!({"metadata": {"name": "pod"}, "spec": spec}))
}

/// A pod whose own slot and first container name `web`, and whose second container names `db`.
pub fn pod(namespace: &str, account: &str, expanded: bool) -> Value {
    let slot = |name: &str| slot(Some(name), expanded.then(|| format!(r#"{{"is":"{name}"}}"#)).as_deref());
    let container = |name: &str, spec: &str| json!({"name": name, "securityContext": slot(spec)});
    let containers = [container("a", "web"), container("b", "db")];
    let spec = json!({"serviceAccountName": account, "securityContext": slot("web"), "containers": containers});
    create(namespace, &spec)
}

/// A pod that names only `web`, with this text.
pub fn simple(namespace: &str, account: &str, text: &str) -> Value {
    let slot = slot(Some("web"), Some(text));
    create(namespace, &json!({"serviceAccountName": account, "securityContext": slot, "containers": []}))
}

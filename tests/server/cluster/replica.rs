//! The webhook as it runs in a cluster, from the review to the decision.

use std::{convert::Infallible, sync::Arc};

use gmsa_cluster::authorizer::access_review::Advisor;
use gmsa_core::admission::{Decision, Review, Verdict, Webhook};
use gmsa_webhook::{
    authorization_cache::AuthorizationCache,
    cache::Cache,
    metrics::Metrics,
    server::{Reviewer, Sources, threads::Thread},
};
use serde_json::{Value, json};
use tokio::{
    sync::SetOnce,
    task::JoinSet,
    time::{self, Instant},
};

use super::{BUDGET, Duration, REVIEWS, SOON, SPECS, connect, setup::set, spec};
use crate::{
    https::reviewer,
    reviews::{created, slot},
    support::{PATIENCE, SimulatedApi, Table, Verb},
};

pub const MUTATE: Webhook = Webhook::Mutate;

/// What `web` holds, and the denial of a pod that carries something else.
pub const WEB: &str = r#"{"is":"web"}"#;
pub const DIFFER: &str = "the GMSA cred spec contents for pod \"pod\" does not match the contents of GMSA resource \
                          \"web\": they hold other values";

/// The webhook as it runs in a cluster, without its port.
pub struct Replica {
    pub api: SimulatedApi,
    pub reviewer: Reviewer,
    _watch: JoinSet<Infallible>,
}

impl Replica {
    /// With the credential specs `web` and `db`, which `till` and `clerk` may use in `shop`, and a warm cache.
    pub async fn start() -> Self {
        let api = SimulatedApi::start().await;
        for name in ["web", "db"] {
            api.apply(spec(name, name));
        }
        api.authorize_by(Table::of(&[
            ("shop", "till", "web"),
            ("shop", "till", "db"),
            ("shop", "clerk", "web"),
            ("mall", "till", "web"),
        ]));
        let (metrics, _) = Metrics::new("test");
        let server = connect(&api);
        let ready = Arc::new(SetOnce::new());
        let (cache, watch) = Cache::new(Arc::clone(&server), metrics.clone(), BUDGET, set(&ready));
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        time::timeout(PATIENCE, ready.wait()).await.unwrap();
        let advisor = Arc::new(Advisor(Arc::clone(&server)));
        let authorizer = AuthorizationCache::new(server, SOON);
        let for_advice =
            Sources { resolver: Arc::new(cache.for_advice()), authorizer: Arc::new(authorizer.asking(advisor)) };
        let for_decisions = Sources { resolver: Arc::new(cache), authorizer: Arc::new(authorizer) };
        api.forget_requests();
        Self { api, reviewer: reviewer(for_decisions, for_advice, metrics), _watch: owner }
    }

    pub async fn allows(&self, webhook: Webhook, review: &Value) {
        let decision = decide(&self.reviewer, webhook, review).await;
        assert!(decision.is_allowed(), "{decision:?}");
    }

    pub async fn denies(&self, webhook: Webhook, review: &Value, code: u16, message: &str) {
        let decision = decide(&self.reviewer, webhook, review).await;
        let Verdict::Denied(denial) = decision.verdict else { panic!("{decision:?}, where this should be: {message}") };
        assert_eq!((denial.code(), denial.to_string()), (code, message.to_owned()));
    }

    /// Waits until memory is believed; forgets the requests until then.
    pub async fn is_warm(&self) {
        loop {
            self.api.forget_requests();
            self.allows(MUTATE, &pod("shop", "till", false)).await;
            if self.calls() == (0, 0) {
                return;
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads and access reviews so far.
    pub fn calls(&self) -> (usize, usize) {
        (self.api.count(Verb::Get, SPECS), self.api.count(Verb::Create, REVIEWS))
    }
}

pub async fn decide(reviewer: &Reviewer, webhook: Webhook, review: &Value) -> Decision {
    let body = review.to_string();
    let review = Arc::new(Review::parse(body.as_bytes(), webhook).unwrap());
    let now = Instant::now();
    reviewer.decide(webhook, &review, &Thread::Serving, now, now + SOON).await.unwrap().0
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

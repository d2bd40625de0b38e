//! The webhook as it runs in a cluster, from the review to the decision.

use std::{convert::Infallible, sync::Arc};

use gmsa_cluster::authorizer::access_review::Advisor;
use gmsa_core::admission::{Decision, Enforcement, Review, Verdict, Webhook};
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

use super::{BUDGET, Duration, REVIEWS, SOON, SPECS, connect, pods::pod, setup::set};
use crate::support::{PATIENCE, SimulatedApi, Table, Verb, credential_spec};

pub const TTL: Duration = Duration::from_secs(10);
pub const MUTATE: Webhook = Webhook::Mutate;

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
            api.apply(credential_spec(name, json!({"is": name})));
        }
        api.authorize_by(Table::of(&[
            ("shop", "till", "web"),
            ("shop", "till", "db"),
            ("shop", "clerk", "web"),
            ("mall", "till", "web"),
        ]));
        Self::on(api).await
    }

    pub async fn on(api: SimulatedApi) -> Self {
        let (metrics, _) = Metrics::new("test");
        let server = connect(&api);
        let ready = Arc::new(SetOnce::new());
        let (cache, watch) = Cache::new(Arc::clone(&server), metrics.clone(), BUDGET, set(&ready));
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        time::timeout(PATIENCE, ready.wait()).await.unwrap();
        let advisor = Arc::new(Advisor(Arc::clone(&server)));
        let authorizer = AuthorizationCache::new(server, TTL);
        let for_advice =
            Sources { resolver: Arc::new(cache.for_advice()), authorizer: Arc::new(authorizer.asking(advisor)) };
        let reviewer = Reviewer {
            for_decisions: Sources { resolver: Arc::new(cache), authorizer: Arc::new(authorizer) },
            for_advice,
            random_hostname: false,
            strict_credential_specs: false,
            enforcement: Enforcement::Enforce,
            warn_namespaces: Arc::default(),
            metrics,
        };
        api.forget_requests();
        Self { api, reviewer, _watch: owner }
    }

    pub async fn decide(&self, webhook: Webhook, review: &Value) -> Decision {
        decide(&self.reviewer, webhook, review).await
    }

    pub async fn allows(&self, webhook: Webhook, review: &Value) {
        let decision = self.decide(webhook, review).await;
        assert!(decision.is_allowed(), "{decision:?}");
    }

    pub async fn denies(&self, webhook: Webhook, review: &Value, code: u16, message: &str) {
        match self.decide(webhook, review).await.verdict {
            Verdict::Denied(denial) => assert_eq!((denial.code(), denial.to_string()), (code, message.to_owned())),
            Verdict::Allowed | Verdict::WouldDeny(_) => {
                panic!("allowed, where this should be the denial: {message}")
            }
        }
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

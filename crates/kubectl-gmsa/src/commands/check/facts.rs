//! The facts that a decision needs; each is looked up once in a run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use gmsa_cluster::{
    authorizer::{Authorization, Authorizer},
    resolver::{Freshness, Resolved, Resolver},
};
use gmsa_core::{
    admission::{Decision, Enforcement, Facts, Review, Settings, Subject, Webhook},
    credspec::SpecName,
};

/// Looks facts up, and remembers them.
pub(super) struct FactFinder {
    resolver: Arc<dyn Resolver>,
    authorizer: Arc<dyn Authorizer>,
    /// How long one call may take.
    timeout: Duration,
    specs: HashMap<SpecName, Resolved>,
    uses: HashMap<(Subject, SpecName), Authorization>,
}

impl FactFinder {
    pub(super) fn new(resolver: Arc<dyn Resolver>, authorizer: Arc<dyn Authorizer>, timeout: Duration) -> Self {
        Self { resolver, authorizer, timeout, specs: HashMap::new(), uses: HashMap::new() }
    }

    /// What a webhook decides, with every denial. A host name, which the server draws at random, is not given.
    pub(super) async fn decide(&mut self, webhook: Webhook, review: &Review) -> Decision {
        let settings = Settings { enforcement: Enforcement::Warn, ..Settings::default() };
        let mut facts = Facts::default();
        loop {
            let needs = match review.decide(webhook, settings, &facts) {
                Ok(decision) => return decision,
                Err(needs) => needs,
            };
            debug_assert!(needs.live.is_empty(), "no fact is from a cache");
            for name in needs.specs {
                let known = self.spec(&name).await;
                facts.specs.push((name, known));
            }
            let Some(subject) = needs.subject else { continue };
            for name in needs.uses {
                let known = self.may_use(&subject, &name).await;
                facts.uses.push((name, known));
            }
        }
    }

    async fn spec(&mut self, name: &SpecName) -> Resolved {
        if let Some(known) = self.specs.get(name) {
            return known.clone();
        }
        let found = self.resolver.resolve(name, Freshness::Any, Instant::now() + self.timeout).await;
        self.specs.insert(name.clone(), found.clone());
        found
    }

    async fn may_use(&mut self, subject: &Subject, name: &SpecName) -> Authorization {
        let key = (subject.clone(), name.clone());
        if let Some(known) = self.uses.get(&key) {
            return known.clone();
        }
        let found = self.authorizer.may_use(subject, name, Instant::now() + self.timeout).await;
        self.uses.insert(key, found.clone());
        found
    }
}

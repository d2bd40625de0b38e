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
pub struct FactFinder {
    resolver: Arc<dyn Resolver>,
    authorizer: Arc<dyn Authorizer>,
    /// How long one call may take.
    timeout: Duration,
    specs: HashMap<SpecName, Resolved>,
    uses: HashMap<(Subject, SpecName), Authorization>,
}

impl FactFinder {
    pub fn new(resolver: Arc<dyn Resolver>, authorizer: Arc<dyn Authorizer>, timeout: Duration) -> Self {
        Self { resolver, authorizer, timeout, specs: HashMap::new(), uses: HashMap::new() }
    }

    /// What a webhook decides, with every denial. A host name, which the server draws at random, is not given.
    pub async fn decide(&mut self, webhook: Webhook, review: &Review) -> Decision {
        let settings = Settings { enforcement: Enforcement::Warn, ..Settings::default() };
        let (questions, mut facts) = (review.questions(webhook, settings), Facts::default());
        for question in &questions.all {
            let name = &question.spec;
            if question.contents {
                facts.specs.push((name.clone(), self.spec(name).await));
            }
            if let Some(subject) = questions.subject.as_ref().filter(|_| question.may_use) {
                facts.uses.push((name.clone(), self.may_use(subject, name).await));
            }
        }
        review.decide(webhook, settings, &facts)
    }

    pub async fn spec(&mut self, name: &SpecName) -> Resolved {
        if let Some(known) = self.specs.get(name) {
            return known.clone();
        }
        let found = self.resolver.resolve(name, Freshness::Any, Instant::now() + self.timeout).await;
        self.specs.insert(name.clone(), found.clone());
        found
    }

    pub async fn may_use(&mut self, subject: &Subject, name: &SpecName) -> Authorization {
        let key = (subject.clone(), name.clone());
        if let Some(known) = self.uses.get(&key) {
            return known.clone();
        }
        let found = self.authorizer.may_use(subject, name, Instant::now() + self.timeout).await;
        self.uses.insert(key, found.clone());
        found
    }
}

//! The facts that a decision needs; each is looked up once in a run.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use crate::connect::CALL;
use gmsa_cluster::{
    authorizer::Authorizer,
    resolver::{Freshness, Resolver},
};
use gmsa_core::{
    admission::{Facts, Needs, Source, SpecFact, Subject, UseFact},
    credspec::SpecName,
};

/// Looks facts up, and remembers them.
pub(super) struct FactFinder {
    resolver: Arc<dyn Resolver>,
    authorizer: Arc<dyn Authorizer>,
    specs: HashMap<SpecName, (SpecFact, Source)>,
    uses: HashMap<(Subject, SpecName), (UseFact, Source)>,
}

impl FactFinder {
    pub(super) fn new(resolver: Arc<dyn Resolver>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { resolver, authorizer, specs: HashMap::new(), uses: HashMap::new() }
    }

    /// Looks up what is needed, except the host name, which the server draws at random.
    pub(super) async fn facts(&mut self, needs: &Needs) -> Facts {
        let mut facts = Facts::default();
        for name in &needs.specs {
            let (fact, source) = self.spec(name).await;
            facts.specs.push((name.clone(), fact, source));
        }
        for name in needs.subject.iter().flat_map(|_| &needs.uses) {
            if let Some(subject) = &needs.subject {
                let (fact, source) = self.may_use(subject, name).await;
                facts.uses.push((name.clone(), fact, source));
            }
        }
        facts
    }

    async fn spec(&mut self, name: &SpecName) -> (SpecFact, Source) {
        if let Some(known) = self.specs.get(name) {
            return known.clone();
        }
        let resolved = self.resolver.resolve(name, Freshness::Any, Instant::now() + CALL).await;
        let found = (resolved.fact, resolved.source);
        self.specs.insert(name.clone(), found.clone());
        found
    }

    async fn may_use(&mut self, subject: &Subject, name: &SpecName) -> (UseFact, Source) {
        let key = (subject.clone(), name.clone());
        if let Some(known) = self.uses.get(&key) {
            return known.clone();
        }
        let answer = self.authorizer.may_use(subject, name, Instant::now() + CALL).await;
        let found = (answer.fact, answer.source);
        self.uses.insert(key, found.clone());
        found
    }
}

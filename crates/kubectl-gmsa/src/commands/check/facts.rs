//! The facts that a decision needs; each is looked up once in a run.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use crate::shared::connection::CALL;
use gmsa_cluster::{
    authorizer::{Authorization, Authorizer},
    resolver::{Freshness, Resolved, Resolver},
};
use gmsa_core::{
    admission::{Facts, Needs, Subject},
    credspec::SpecName,
};

/// Looks facts up, and remembers them.
pub(super) struct FactFinder {
    resolver: Arc<dyn Resolver>,
    authorizer: Arc<dyn Authorizer>,
    specs: HashMap<SpecName, Resolved>,
    uses: HashMap<(Subject, SpecName), Authorization>,
}

impl FactFinder {
    pub(super) fn new(resolver: Arc<dyn Resolver>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { resolver, authorizer, specs: HashMap::new(), uses: HashMap::new() }
    }

    /// Looks up what is needed, except the host name, which the server draws at random.
    pub(super) async fn facts(&mut self, needs: &Needs) -> Facts {
        let mut facts = Facts::default();
        for name in &needs.specs {
            let Resolved { fact, source } = self.spec(name).await;
            facts.specs.push((name.clone(), fact, source));
        }
        for name in needs.subject.iter().flat_map(|_| &needs.uses) {
            if let Some(subject) = &needs.subject {
                let Authorization { fact, source } = self.may_use(subject, name).await;
                facts.uses.push((name.clone(), fact, source));
            }
        }
        facts
    }

    async fn spec(&mut self, name: &SpecName) -> Resolved {
        if let Some(known) = self.specs.get(name) {
            return known.clone();
        }
        let found = self.resolver.resolve(name, Freshness::Any, Instant::now() + CALL).await;
        self.specs.insert(name.clone(), found.clone());
        found
    }

    async fn may_use(&mut self, subject: &Subject, name: &SpecName) -> Authorization {
        let key = (subject.clone(), name.clone());
        if let Some(known) = self.uses.get(&key) {
            return known.clone();
        }
        let found = self.authorizer.may_use(subject, name, Instant::now() + CALL).await;
        self.uses.insert(key, found.clone());
        found
    }
}

//! The facts that a decision needs; each is looked up once in a run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::bail;
use tokio::time::Instant;

use gmsa_cluster::{
    authorizer::{Authorization, Authorizer},
    resolver::{Freshness, Resolved, Resolver},
};
use gmsa_core::{
    admission::{Enforcement, Examined, Facts, MAX_SPECS_PER_POD, Review, Settings, Subject, Webhook},
    credspec::SpecName,
};

/// The most rounds of look-ups for one pod: each brings a fact about one of its credential specs, or whether one may be used.
const MAX_ROUNDS: usize = 2 * MAX_SPECS_PER_POD + 1;

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

    /// What a webhook finds, with every denial. A host name, which the server draws at random, is not given.
    pub async fn examine(&mut self, webhook: Webhook, review: &Review) -> anyhow::Result<Examined> {
        let settings = Settings { enforcement: Enforcement::Warn, ..Settings::default() };
        let mut facts = Facts::default();
        for _ in 0..MAX_ROUNDS {
            let needs = match review.examine(webhook, settings, &facts) {
                Ok(examined) => return Ok(examined),
                Err(needs) => needs,
            };
            // No fact is from a cache, so none is asked for live.
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
        bail!("not decided after {MAX_ROUNDS} rounds of look-ups")
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

#[cfg(test)]
mod tests {
    use futures::future::{BoxFuture, FutureExt as _, ready};
    use gmsa_core::admission::{Known, Source, SpecFact, UseFact};

    use super::*;

    /// Says of everything that a cache knows it to be unusable, even where it is asked for more.
    struct Stale;

    impl Resolver for Stale {
        fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
            ready(Known { fact: SpecFact::Unusable, source: Source::Cache }).boxed()
        }
    }

    impl Authorizer for Stale {
        fn may_use<'a>(&'a self, _: &'a Subject, _: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
            ready(Known { fact: UseFact::Allowed, source: Source::Files }).boxed()
        }
    }

    #[tokio::test]
    async fn the_rounds_end_whatever_the_sources_say() {
        let pod = r#"{"spec": {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "web"}}}}"#;
        let review = Review::of_pod("shop", pod).unwrap();
        let mut finder = FactFinder::new(Arc::new(Stale), Arc::new(Stale), Duration::from_secs(1));
        let error = finder.examine(Webhook::Mutate, &review).await.unwrap_err();
        assert_eq!(error.to_string(), "not decided after 49 rounds of look-ups");
    }
}

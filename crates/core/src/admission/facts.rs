//! Facts that were looked up for a review.
//!
//! Invariant: a credential spec, or its use, about which nothing is known is a denial; for workloads, a warning.

use std::sync::Arc;

use super::{Denial, Failure};
use crate::credspec::{Contents, SpecName, Verb};

word_enum! {
    /// Where a fact comes from, in logs, metrics and audit annotations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Source {
        /// YAML files.
        Files = "files",
        /// The API server, asked for this review.
        Api = "api",
        /// The watch cache, which may be behind.
        Cache = "cache",
        /// An answer of the API server, remembered.
        Remembered = "remembered",
        /// An answer of the API server to an equal question that was already on its way.
        Joined = "joined",
    }
}

/// A fact and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<F> {
    pub fact: F,
    pub source: Source,
}

/// The state of a credential spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecFact {
    Contents(Arc<Contents>),
    Missing,
    /// It exists, but its `credspec` is missing or is not a JSON object.
    Unusable,
    Failed(Failure),
}

impl From<Failure> for SpecFact {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl SpecFact {
    /// Every [`SpecFact::outcome`].
    pub const OUTCOMES: [&'static str; 4] = ["found", "missing", "unusable", "failed"];

    /// The word for metrics.
    pub fn outcome(&self) -> &'static str {
        let [found, missing, unusable, failed] = Self::OUTCOMES;
        match self {
            Self::Contents(_) => found,
            Self::Missing => missing,
            Self::Unusable => unusable,
            Self::Failed(_) => failed,
        }
    }
}

/// Whether a service account may use a credential spec, or export it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseFact {
    Allowed,
    Denied {
        /// The API server's reason, where it gave one.
        reason: Option<String>,
    },
    Failed(Failure),
}

impl From<Failure> for UseFact {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl UseFact {
    /// Every [`UseFact::outcome`].
    pub const OUTCOMES: [&'static str; 3] = ["allowed", "denied", "failed"];

    /// The word for metrics.
    pub fn outcome(&self) -> &'static str {
        let [allowed, denied, failed] = Self::OUTCOMES;
        match self {
            Self::Allowed => allowed,
            Self::Denied { .. } => denied,
            Self::Failed(_) => failed,
        }
    }

    /// The same as a denial, where it is one.
    ///
    /// # Errors
    /// Unless the service account may.
    pub fn allows(self, service_account: &str, verb: Verb, spec: &SpecName) -> Result<(), Denial> {
        let (service_account, spec) = (service_account.to_owned(), spec.clone());
        match self {
            Self::Allowed => Ok(()),
            Self::Denied { reason } => Err(Denial::NotAuthorized { service_account, verb, spec, reason }),
            Self::Failed(failure) => Err(Denial::AuthorizationFailed { service_account, verb, spec, failure }),
        }
    }
}

/// The reason of a fact that is not needed, because an earlier denial decides. So no answer shows it.
const NOT_NEEDED: &str = "it was not looked up";

/// The facts for one review: at most [`super::MAX_SPECS_PER_POD`] entries each, and two more for a workload with annotations, so they are searched
/// from the front.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub specs: Vec<(SpecName, Known<SpecFact>)>,
    /// What the pod's service account may do with them.
    pub uses: Vec<((Verb, SpecName), Known<UseFact>)>,
}

impl Facts {
    pub(super) fn spec(&self, name: &SpecName) -> Option<&Known<SpecFact>> {
        find(&self.specs, name)
    }

    pub(super) fn use_of(&self, verb: Verb, name: &SpecName) -> Option<&Known<UseFact>> {
        find(&self.uses, &(verb, name.clone()))
    }

    /// Stores the fact about a credential spec, and replaces an earlier one.
    pub(super) fn put_spec(&mut self, name: &SpecName, known: Known<SpecFact>) {
        match self.specs.iter_mut().find(|(spec, _)| spec == name) {
            Some((_, before)) => *before = known,
            None => self.specs.push((name.clone(), known)),
        }
    }

    /// Stores whether the service account may use a credential spec, or export it. It is looked up once.
    pub(super) fn put_use(&mut self, verb: Verb, name: &SpecName, known: Known<UseFact>) {
        self.uses.push(((verb, name.clone()), known));
    }

    /// The contents of a credential spec.
    pub(super) fn contents(&self, name: &SpecName) -> Result<&Contents, Denial> {
        let unreadable = |failure| Denial::SpecUnreadable { spec: name.clone(), failure };
        Err(match self.spec(name).map(|known| &known.fact) {
            Some(SpecFact::Contents(contents)) => return Ok(contents),
            Some(SpecFact::Missing) => Denial::SpecMissing(name.clone()),
            Some(SpecFact::Unusable) => Denial::SpecUnusable(name.clone()),
            Some(SpecFact::Failed(failure)) => unreadable(failure.clone()),
            None => unreadable(Failure::new(NOT_NEEDED)),
        })
    }

    /// Whether this service account may use a credential spec, or export it.
    pub(super) fn may(&self, service_account: &str, verb: Verb, name: &SpecName) -> Result<(), Denial> {
        let not_needed = || UseFact::Failed(Failure::new(NOT_NEEDED));
        let fact = self.use_of(verb, name).map_or_else(not_needed, |known| known.fact.clone());
        fact.allows(service_account, verb, name)
    }

    /// The credential specs that they are about.
    pub(super) fn names(&self) -> Vec<SpecName> {
        let mut names: Vec<SpecName> = Vec::new();
        for name in self.uses.iter().map(|((_, name), _)| name).chain(self.specs.iter().map(|(name, _)| name)) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The credential specs and where the facts about each come from: `web (use: api, contents: cache), other (use: remembered)`.
    pub(super) fn describe(&self, names: &[SpecName]) -> String {
        let one = |name: &SpecName| {
            let used = |verb: Verb| Some((verb.as_str(), self.use_of(verb, name)?.source));
            let read = self.spec(name).map(|known| ("contents", known.source));
            let all = Verb::ALL.into_iter().filter_map(used).chain(read);
            let all: Vec<String> = all.map(|(what, source)| format!("{what}: {}", source.as_str())).collect();
            format!("{name} ({})", all.join(", "))
        };
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn find<'f, K: PartialEq, F>(facts: &'f [(K, F)], key: &K) -> Option<&'f F> {
    facts.iter().find_map(|(known, fact)| (known == key).then_some(fact))
}

//! What must be known before a review can be decided, and what was found out.
//!
//! Invariants: a credential spec, or its use, that was not looked for, or about which nothing could be found out, is a denial; for
//! workloads, a warning.

use std::sync::Arc;

use super::{Denial, Failure, Subject};
use crate::credspec::{Contents, SpecName};

/// What must be known before a review can be decided, each distinct question once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The credential specs whose contents are needed.
    pub specs: Vec<SpecName>,
    /// Who wants to use credential specs; set where `uses` is not empty.
    pub subject: Option<Subject>,
    /// The credential specs on which the subject's `use` is needed.
    pub uses: Vec<SpecName>,
    /// Whether a random host name is needed.
    pub hostname: bool,
}

impl Needs {
    pub(super) fn add(list: &mut Vec<SpecName>, name: &SpecName) {
        if !list.contains(name) {
            list.push(name.clone());
        }
    }
}

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

/// What is known of something, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<F> {
    pub fact: F,
    pub source: Source,
}

/// What is known about a credential spec.
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
    words! {
        /// The word for metrics.
        outcome, OUTCOMES {
            Self::Contents(_) => "found",
            Self::Missing => "missing",
            Self::Unusable => "unusable",
            Self::Failed(_) => "failed",
        }
    }
}

/// Whether a subject may use a credential spec.
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
    words! {
        /// The word for metrics.
        outcome, OUTCOMES {
            Self::Allowed => "allowed",
            Self::Denied { .. } => "denied",
            Self::Failed(_) => "failed",
        }
    }
}

/// The facts for one review: at most [`super::MAX_SPECS_PER_POD`] entries each, so they are searched from the front.
#[derive(Debug, Default)]
pub struct Facts {
    pub specs: Vec<(SpecName, SpecFact, Source)>,
    /// Whether the review's subject may use them.
    pub uses: Vec<(SpecName, UseFact, Source)>,
    /// A random host name: a lower-case DNS label that starts with a letter.
    pub hostname: Option<String>,
}

impl Facts {
    pub(super) fn spec(&self, name: &SpecName) -> Option<&SpecFact> {
        self.specs.iter().find_map(|(known, fact, _)| (known == name).then_some(fact))
    }

    pub(super) fn spec_source(&self, name: &SpecName) -> Option<Source> {
        self.specs.iter().find_map(|(known, _, source)| (known == name).then_some(*source))
    }

    pub(super) fn may_use(&self, name: &SpecName) -> Option<&UseFact> {
        self.uses.iter().find_map(|(known, fact, _)| (known == name).then_some(fact))
    }

    /// The contents of a credential spec, or the denial that their absence means.
    pub(super) fn contents(&self, name: &SpecName) -> Result<&Arc<Contents>, Denial> {
        match self.spec(name) {
            Some(SpecFact::Contents(contents)) => Ok(contents),
            Some(SpecFact::Missing) => Err(Denial::SpecMissing(name.clone())),
            Some(SpecFact::Unusable) => Err(Denial::SpecUnusable(name.clone())),
            Some(SpecFact::Failed(failure)) => {
                Err(Denial::SpecUnreadable { spec: name.clone(), failure: failure.clone() })
            }
            None => Err(Denial::SpecUnreadable { spec: name.clone(), failure: Failure::not_asked() }),
        }
    }

    pub(super) fn names(&self) -> Vec<SpecName> {
        let mut names = Vec::new();
        let all = self.uses.iter().map(|(name, ..)| name).chain(self.specs.iter().map(|(name, ..)| name));
        for name in all {
            Needs::add(&mut names, name);
        }
        names
    }

    /// The credential specs and where the facts about each come from: `web (use: api, contents: cache), other (use: remembered)`.
    pub(super) fn describe(&self, names: &[SpecName]) -> String {
        let one = |name: &SpecName| {
            let used = self.uses.iter().find(|(known, ..)| known == name);
            let used = used.map(|(.., source)| format!("use: {}", source.as_str()));
            let read = self.spec_source(name).map(|source| format!("contents: {}", source.as_str()));
            let how: Vec<String> = used.into_iter().chain(read).collect();
            format!("{name} ({})", how.join(", "))
        };
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

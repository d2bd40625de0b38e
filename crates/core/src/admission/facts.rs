//! What must be known before a review can be decided, and what was found out.
//!
//! Invariants: [`Review::decide`](super::Review::decide) asks for a fact that it lacks and gives no decision without it; a credential
//! spec, or its use, about which nothing could be found out is a denial; for workloads, a warning.

use std::sync::Arc;

use super::{Failure, Subject};
use crate::credspec::{Contents, SpecName};

/// What must be found out next, each distinct question once. All of it may be asked at the same time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The credential specs whose contents are needed.
    pub specs: Vec<SpecName>,
    /// The credential specs that must be read from the API server: a cache, which may be behind, gave contents that lead to a denial.
    pub live: Vec<SpecName>,
    /// Who wants to use credential specs; set where `uses` is not empty.
    pub subject: Option<Subject>,
    /// The credential specs on which the subject's `use` is needed.
    pub uses: Vec<SpecName>,
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
}

/// The facts for one review: at most [`super::MAX_SPECS_PER_POD`] entries each, so they are searched from the front.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub specs: Vec<(SpecName, Known<SpecFact>)>,
    /// Whether the review's subject may use them.
    pub uses: Vec<(SpecName, Known<UseFact>)>,
    /// A random host name for a new pod that uses GMSA and has none: a lower-case DNS label that starts with a letter.
    pub hostname: Option<String>,
}

impl Facts {
    pub(super) fn spec(&self, name: &SpecName) -> Option<&Known<SpecFact>> {
        find(&self.specs, name)
    }

    pub(super) fn may_use(&self, name: &SpecName) -> Option<&Known<UseFact>> {
        find(&self.uses, name)
    }

    pub(super) fn names(&self) -> Vec<SpecName> {
        let mut names = Vec::new();
        for name in self.uses.iter().map(|(name, _)| name).chain(self.specs.iter().map(|(name, _)| name)) {
            Needs::add(&mut names, name);
        }
        names
    }

    /// The credential specs and where the facts about each come from: `web (use: api, contents: cache), other (use: remembered)`.
    pub(super) fn describe(&self, names: &[SpecName]) -> String {
        let one = |name: &SpecName| {
            let used = self.may_use(name).map(|known| format!("use: {}", known.source.as_str()));
            let read = self.spec(name).map(|known| format!("contents: {}", known.source.as_str()));
            format!("{name} ({})", used.into_iter().chain(read).collect::<Vec<_>>().join(", "))
        };
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn find<'f, F>(facts: &'f [(SpecName, F)], name: &SpecName) -> Option<&'f F> {
    facts.iter().find_map(|(known, fact)| (known == name).then_some(fact))
}

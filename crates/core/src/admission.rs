//! The decision: the [`Plan`] for a [`Review`] says what it [`Needs`], someone finds the [`Facts`], and the plan gives a
//! [`Decision`].
//!
//! Pure: no runtime, no client, no files, no clock, no random source. What always holds: [`Plan::decide`] is total and
//! synchronous, and a fact that is missing or could not be found is a denial, never an approval.

use crate::credspec::SpecName;

/// A method that gives a static word for each variant, and the list of these words, from one table.
macro_rules! words {
    ($(#[$about:meta])* $method:ident, $all:ident { $($pattern:pat => $word:literal,)+ }) => {
        /// Every word that there is.
        pub const $all: &[&'static str] = &[$($word),+];

        $(#[$about])*
        #[must_use]
        pub fn $method(&self) -> &'static str {
            match self { $($pattern => $word),+ }
        }
    };
}

pub mod advice;
mod credspec_review;
pub mod denial;
mod facts;
mod mutate;
pub mod pod;
pub mod review;
mod validate;
pub mod warning;
pub mod workload;

pub use denial::Denial;
pub use facts::{Facts, Failure, Needs, Source, SpecFact, Subject, UseFact};
pub use mutate::Patch;
pub use review::Review;

/// The most distinct credential specs that one pod may name.
pub const MAX_SPECS_PER_POD: usize = 24;

/// The largest JSON Patch in an answer, in bytes before base64.
pub const MAX_PATCH_BYTES: usize = 2 * 1024 * 1024;

/// Which of the admission webhooks is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// `/mutate`: expands names into contents.
    Mutate {
        /// Whether a pod that uses GMSA and has no host name is given a random one.
        random_hostname: bool,
    },
    /// `/validate`: authorises names and compares contents.
    Validate,
    /// `/validate-workload`: warns of what will happen to the pods of a workload.
    ValidateWorkload,
    /// `/validate-credspec`: lints a credential spec.
    ValidateCredspec {
        /// Whether a credential spec that cannot work is refused.
        strict: bool,
    },
}

/// On what grounds a review was allowed: a static word for logs, metrics and audit annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grounds {
    /// No slot that counts for this request names a credential spec or carries contents.
    NoGmsa,
    /// The pod is for Linux.
    Linux,
    /// The mutating webhook has nothing to do on this operation.
    NothingToMutate,
    /// Every slot with a name has contents already.
    AlreadyExpanded,
    /// The patch holds the contents.
    Expanded,
    /// An update that leaves the GMSA settings alone.
    Unchanged,
    /// The subject may use every credential spec, and all contents match.
    Authorized,
    /// A workload whose owner was looked at instead.
    Controlled,
    /// A workload that uses GMSA; what there is to say about it stands in the warnings.
    Workload,
    /// A credential spec is deleted.
    Deletion,
    /// A credential spec in which nothing was found.
    Clean,
    /// A credential spec in which something was found; it stands in the warnings.
    Findings,
}

impl Grounds {
    words! {
        /// The word for logs, metrics and audit annotations.
        as_str, REASONS {
            Self::NoGmsa => "no-gmsa",
            Self::Linux => "linux",
            Self::NothingToMutate => "nothing-to-mutate",
            Self::AlreadyExpanded => "already-expanded",
            Self::Expanded => "expanded",
            Self::Unchanged => "unchanged",
            Self::Authorized => "authorized",
            Self::Controlled => "controlled",
            Self::Workload => "workload",
            Self::Deletion => "deletion",
            Self::Clean => "clean",
            Self::Findings => "findings",
        }
    }
}

/// Yes or no.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may go on, changed by the patch where there is one.
    Allowed(Option<Patch>),
    /// The request is refused.
    Denied(Denial),
}

/// What the webhook answers, and what it says about it elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// Yes or no.
    pub verdict: Verdict,
    /// Why, as a static word.
    pub reason: &'static str,
    /// The credential specs that the decision is about.
    pub specs: Vec<SpecName>,
    /// Lines that `kubectl` shows to the user; each at most 120 characters.
    pub warnings: Vec<String>,
    /// Audit annotations: the API server puts the webhook's name in front of the keys.
    pub audit: Vec<(&'static str, String)>,
    /// A credential spec that was taken from a cache and whose contents led to a denial: the cache may be behind, so it is
    /// to be read from the API server and the review decided again before the denial is given.
    pub doubted: Option<SpecName>,
}

impl Decision {
    /// Whether the request may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed(_))
    }
}

/// What there is to do for a review, worked out once from the review alone: it says what must be found out, and then decides.
#[derive(Debug)]
pub struct Plan<'r> {
    review: &'r Review<'r>,
    steps: Steps<'r>,
}

#[derive(Debug)]
enum Steps<'r> {
    Mutate(Result<mutate::Plan<'r>, Denial>),
    Validate(Result<validate::Plan<'r>, Denial>),
    ValidateWorkload,
    ValidateCredspec { strict: bool },
}

impl<'r> Plan<'r> {
    /// Plans what `webhook` has to do for `review`.
    #[must_use]
    pub fn new(webhook: Webhook, review: &'r Review<'_>) -> Self {
        let steps = match webhook {
            Webhook::Mutate { random_hostname } => Steps::Mutate(mutate::plan(review, random_hostname)),
            Webhook::Validate => Steps::Validate(validate::plan(review)),
            Webhook::ValidateWorkload => Steps::ValidateWorkload,
            Webhook::ValidateCredspec { strict } => Steps::ValidateCredspec { strict },
        };
        Self { review, steps }
    }

    /// What must be found out before the review can be decided. Empty where the review itself says enough.
    #[must_use]
    pub fn needs(&self) -> Needs {
        match &self.steps {
            Steps::Mutate(Ok(plan)) => plan.needs(),
            Steps::Validate(Ok(plan)) => plan.needs(),
            Steps::ValidateWorkload => workload::needs(self.review),
            Steps::Mutate(Err(_)) | Steps::Validate(Err(_)) | Steps::ValidateCredspec { .. } => Needs::default(),
        }
    }

    /// Decides the review. A fact that was needed and is not among `facts` is one that could not be found out.
    #[must_use]
    pub fn decide(&self, facts: &Facts) -> Decision {
        let mut warnings = Vec::new();
        let (outcome, [specs_key, decision_key]) = match &self.steps {
            Steps::Mutate(plan) => {
                let outcome = plan.as_ref().map_err(Denial::clone).and_then(|plan| plan.decide(facts));
                (outcome, ["mutate-credential-specs", "mutate-decision"])
            }
            Steps::Validate(plan) => {
                let outcome = plan.as_ref().map_err(Denial::clone).and_then(|plan| plan.decide(facts));
                // Of the two webhooks for pods this one sees the pod as it will be.
                if outcome.is_ok() && self.review.operation == review::Operation::Create {
                    warnings = advice::on_pod(self.review);
                }
                (outcome.map(|grounds| (grounds, None)), ["validate-credential-specs", "validate-decision"])
            }
            Steps::ValidateWorkload => {
                let (grounds, lines) = workload::decide(self.review, facts);
                warnings = lines;
                (Ok((grounds, None)), ["workload-credential-specs", "workload-decision"])
            }
            Steps::ValidateCredspec { strict } => {
                let (outcome, lines) = credspec_review::decide(self.review, *strict);
                warnings = lines;
                (outcome.map(|grounds| (grounds, None)), ["credspec-credential-specs", "credspec-decision"])
            }
        };
        let doubted = outcome.as_ref().err().and_then(|denial| match denial {
            Denial::ContentsDiffer { spec, .. } | Denial::SpecUnusable(spec) => {
                (facts.spec_source(spec) == Some(Source::Cache)).then(|| spec.clone())
            }
            _ => None,
        });
        let (verdict, reason) = match outcome {
            Ok((grounds, patch)) => (Verdict::Allowed(patch), grounds.as_str()),
            Err(denial) => {
                let reason = denial.label();
                (Verdict::Denied(denial), reason)
            }
        };
        let specs = facts.names();
        let audit = if specs.is_empty() {
            Vec::new()
        } else {
            vec![(specs_key, facts.describe(&specs)), (decision_key, reason.to_owned())]
        };
        Decision { verdict, reason, specs, warnings, audit, doubted }
    }
}

/// Denies what neither webhook is made for: another kind, an operation without a new object.
fn expect_pod<'r, 'a>(review: &'r Review<'a>) -> Result<&'r pod::Pod<'a>, Denial> {
    if !review.is_pod() {
        return Err(Denial::UnexpectedKind(pod::Quoted::bare(&review.kind)));
    }
    match review.operation {
        review::Operation::Create | review::Operation::Update => {
            review.object.as_deref().ok_or(Denial::NoObject { field: "object", operation: review.operation })
        }
        operation => Err(Denial::UnexpectedOperation(operation)),
    }
}

/// Denies a pod that names more credential specs than any honest pod does, before anything is looked up.
fn bound_names(pod: &pod::Pod<'_>) -> Result<(), Denial> {
    let all = || pod.slots().filter_map(|slot| slot.name);
    // Nearly every pod has so few that they need not be told apart.
    if all().count() <= MAX_SPECS_PER_POD {
        return Ok(());
    }
    let mut names: Vec<&str> = Vec::new();
    for name in all() {
        if !names.contains(&name) {
            if names.len() == MAX_SPECS_PER_POD {
                return Err(Denial::TooManySpecs);
            }
            names.push(name);
        }
    }
    Ok(())
}

/// The name of a slot as one that can be trusted, or the denial.
fn trusted(name: &str, slot: &pod::Slot<'_>) -> Result<SpecName, Denial> {
    SpecName::parse(name)
        .ok_or_else(|| Denial::InvalidSpecName { name: pod::Quoted::new(name), slot: pod::SlotRef::from(slot) })
}

#[cfg(test)]
mod tests;

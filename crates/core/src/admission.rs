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

/// What happens to a pod that `/mutate` or `/validate` has to deny because of what it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It is denied.
    #[default]
    Enforce,
    /// It is allowed, and the denial becomes a warning. A failure of the webhook itself still denies.
    Warn,
}

/// Whether the request is admitted.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is admitted, changed by the patch where there is one.
    Allowed(Option<Patch>),
    /// The request is admitted although this denial applies: denials are not enforced.
    WouldDeny {
        /// What an enforcing webhook answers.
        denial: Denial,
        /// The contents that could be filled in.
        patch: Option<Patch>,
    },
    /// The request is refused.
    Denied(Denial),
}

impl Verdict {
    /// What the answer changes in the object.
    #[must_use]
    pub fn patch(&self) -> Option<&Patch> {
        match self {
            Self::Allowed(patch) | Self::WouldDeny { patch, .. } => patch.as_ref(),
            Self::Denied(_) => None,
        }
    }
}

/// What the webhook answers, and what it says about it elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is admitted.
    pub verdict: Verdict,
    /// Why, as a static word.
    pub reason: &'static str,
    /// The credential specs that the decision is about.
    pub specs: Vec<SpecName>,
    /// Lines that `kubectl` shows to the user; each at most 120 characters, or 256 for a denial that is not enforced.
    pub warnings: Vec<String>,
    /// Audit annotations: the API server puts the webhook's name in front of the keys.
    pub audit: Vec<(&'static str, String)>,
    /// A credential spec from a cache whose contents led to the denial: the cache may be behind, so the server reads the
    /// credential spec from the API server and decides again before it gives the answer.
    pub recheck_live: Option<SpecName>,
}

impl Decision {
    /// Whether the request is admitted.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        !matches!(self.verdict, Verdict::Denied(_))
    }
}

/// What there is to do for a review, worked out once from the review alone: it says what must be found out, and then decides.
#[derive(Debug)]
pub struct Plan<'r> {
    review: &'r Review<'r>,
    enforcement: Enforcement,
    steps: Steps<'r>,
}

#[derive(Debug)]
enum Steps<'r> {
    Mutate(Result<mutate::Expansion<'r>, Denial>),
    Validate(Result<validate::Checks<'r>, Denial>),
    ValidateWorkload,
    ValidateCredspec { strict: bool },
}

/// How a request that is admitted is answered.
#[derive(Debug)]
struct Admitted {
    grounds: Grounds,
    patch: Option<Patch>,
    /// The denials that are not enforced, in the order of the slots.
    not_enforced: Vec<Denial>,
}

impl From<Grounds> for Admitted {
    fn from(grounds: Grounds) -> Self {
        Self { grounds, patch: None, not_enforced: Vec::new() }
    }
}

impl<'r> Plan<'r> {
    /// Plans what `webhook` has to do for `review`. Denials are enforced.
    #[must_use]
    pub fn new(webhook: Webhook, review: &'r Review<'_>) -> Self {
        let steps = match webhook {
            Webhook::Mutate { random_hostname } => Steps::Mutate(mutate::plan(review, random_hostname)),
            Webhook::Validate => Steps::Validate(validate::plan(review)),
            Webhook::ValidateWorkload => Steps::ValidateWorkload,
            Webhook::ValidateCredspec { strict } => Steps::ValidateCredspec { strict },
        };
        Self { review, enforcement: Enforcement::Enforce, steps }
    }

    /// The same plan with another enforcement. It matters to `/mutate` and `/validate` alone.
    #[must_use]
    pub fn with_enforcement(self, enforcement: Enforcement) -> Self {
        Self { enforcement, ..self }
    }

    /// What must be found out before the review can be decided. Empty where the review itself says enough.
    #[must_use]
    pub fn needs(&self) -> Needs {
        match &self.steps {
            Steps::Mutate(Ok(expansion)) => expansion.needs(self.enforcement),
            Steps::Validate(Ok(checks)) => checks.needs(),
            Steps::ValidateWorkload => workload::needs(self.review),
            Steps::Mutate(Err(_)) | Steps::Validate(Err(_)) | Steps::ValidateCredspec { .. } => Needs::default(),
        }
    }

    /// Decides the review. A fact that was needed and is not among `facts` is one that could not be found out.
    #[must_use]
    pub fn decide(&self, facts: &Facts) -> Decision {
        let (outcome, warnings) = match &self.steps {
            Steps::Mutate(expansion) => {
                let expansion = expansion.as_ref().map_err(Denial::clone);
                (expansion.and_then(|expansion| expansion.decide(facts, self.enforcement)), Vec::new())
            }
            Steps::Validate(checks) => {
                let checks = checks.as_ref().map_err(Denial::clone);
                (checks.and_then(|checks| checks.decide(facts)).map(Admitted::from), Vec::new())
            }
            Steps::ValidateWorkload => {
                let (grounds, warnings) = workload::decide(self.review, facts);
                (Ok(grounds.into()), warnings)
            }
            Steps::ValidateCredspec { strict } => {
                let (outcome, warnings) = credspec_review::decide(self.review, *strict);
                (outcome.map(Admitted::from), warnings)
            }
        };
        self.conclude(outcome, warnings, facts)
    }

    fn conclude(&self, outcome: Result<Admitted, Denial>, mut warnings: Vec<String>, facts: &Facts) -> Decision {
        let judges_pods = matches!(self.steps, Steps::Mutate(_) | Steps::Validate(_));
        let (verdict, not_enforced, reason) = match outcome {
            Err(denial) if !(judges_pods && self.enforcement.allows(&denial)) => {
                let reason = denial.label();
                (Verdict::Denied(denial), Vec::new(), reason)
            }
            Err(denial) => {
                let reason = denial.label();
                (Verdict::WouldDeny { denial: denial.clone(), patch: None }, vec![denial], reason)
            }
            Ok(Admitted { grounds, patch, not_enforced }) => match not_enforced.first().cloned() {
                None => (Verdict::Allowed(patch), not_enforced, grounds.as_str()),
                Some(denial) => {
                    let reason = denial.label();
                    (Verdict::WouldDeny { denial, patch }, not_enforced, reason)
                }
            },
        };
        let denials = not_enforced.iter().chain(match &verdict {
            Verdict::Denied(denial) => Some(denial),
            _ => None,
        });
        let recheck_live = denials.into_iter().find_map(|denial| denial.rests_on_contents_from_a_cache(facts));
        warnings.extend(warning::not_enforced(&not_enforced));
        // Of the two webhooks for pods, /validate sees the pod as it will be.
        let is_new = self.review.operation == review::Operation::Create;
        if matches!(self.steps, Steps::Validate(_)) && is_new && !matches!(verdict, Verdict::Denied(_)) {
            warnings.extend(advice::on_pod(self.review));
        }
        let specs = facts.names();
        let audit = self.audit(&verdict, reason, &specs, facts);
        Decision { verdict, reason, specs, warnings, audit, recheck_live }
    }

    /// The keys differ between the webhooks: of two equal keys the API server drops one.
    fn audit(&self, verdict: &Verdict, reason: &str, specs: &[SpecName], facts: &Facts) -> Vec<(&'static str, String)> {
        let [specs_key, decision_key] = match &self.steps {
            Steps::Mutate(_) => ["mutate-credential-specs", "mutate-decision"],
            Steps::Validate(_) => ["validate-credential-specs", "validate-decision"],
            Steps::ValidateWorkload => ["workload-credential-specs", "workload-decision"],
            Steps::ValidateCredspec { .. } => ["credspec-credential-specs", "credspec-decision"],
        };
        let mut audit = Vec::new();
        if !specs.is_empty() {
            audit.push((specs_key, facts.describe(specs)));
        }
        match verdict {
            // Recorded whatever the pod names: nothing else in the cluster shows it.
            Verdict::WouldDeny { .. } => audit.push((decision_key, format!("would-deny: {reason}"))),
            Verdict::Allowed(_) | Verdict::Denied(_) if !specs.is_empty() => {
                audit.push((decision_key, reason.to_owned()));
            }
            Verdict::Allowed(_) | Verdict::Denied(_) => {}
        }
        audit
    }
}

impl Enforcement {
    /// Whether a request to which this denial applies is admitted with a warning.
    fn allows(self, denial: &Denial) -> bool {
        self == Self::Warn && denial.concerns_the_pod()
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

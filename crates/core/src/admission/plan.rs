//! From a review to its decision: the [`Plan`] says what it [`Needs`], the caller finds the [`Facts`], and the plan gives a
//! [`Decision`].
//!
//! Invariants: [`Plan::decide`] is total and synchronous, and for `/mutate` and `/validate` a credential spec, or its use, about
//! which nothing could be found out is a denial, never an approval. Without a random host name the pod keeps its own.

use super::{
    Decision, Denial, Enforcement, Facts, Needs, Review, Source, Verdict, Webhook, advice, decision::Admitted, mutate,
    operation::Operation, validate, validate_credspec, validate_workload, warning,
};
use crate::credspec::SpecName;

/// The plan for one review: it lists the facts to fetch, then decides.
#[derive(Debug)]
pub struct Plan<'r> {
    review: &'r Review,
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

impl<'r> Plan<'r> {
    /// Plans what `webhook` has to do for `review`. Denials are enforced.
    pub fn new(webhook: Webhook, review: &'r Review) -> Self {
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
    pub fn needs(&self) -> Needs {
        match &self.steps {
            Steps::Mutate(Ok(expansion)) => expansion.needs(self.enforcement),
            Steps::Validate(Ok(checks)) => checks.needs(),
            Steps::ValidateWorkload => validate_workload::needs(self.review),
            Steps::Mutate(Err(_)) | Steps::Validate(Err(_)) | Steps::ValidateCredspec { .. } => Needs::default(),
        }
    }

    /// Decides the review. A credential spec that is missing from `facts`, or its use, counts as a failed look-up.
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
                let (reason, warnings) = validate_workload::decide(self.review, facts);
                (Ok(reason.into()), warnings)
            }
            Steps::ValidateCredspec { strict } => {
                let (outcome, warnings) = validate_credspec::decide(self.review, *strict);
                (outcome.map(Admitted::from), warnings)
            }
        };
        self.conclude(outcome, warnings, facts)
    }

    /// Applies the enforcement, and adds the warnings, the audit annotations and what must be checked again.
    fn conclude(&self, outcome: Result<Admitted, Denial>, mut warnings: Vec<String>, facts: &Facts) -> Decision {
        let decides_about_pods = matches!(self.steps, Steps::Mutate(_) | Steps::Validate(_));
        let (verdict, not_enforced, reason) = match outcome {
            Err(denial) if !(decides_about_pods && self.enforcement.allows(&denial)) => {
                let reason = denial.reason();
                (Verdict::Denied(denial), Vec::new(), reason)
            }
            Err(denial) => {
                let reason = denial.reason();
                (Verdict::WouldDeny { denial: denial.clone(), patch: None }, vec![denial], reason)
            }
            Ok(Admitted { reason, patch, not_enforced }) => match not_enforced.first().cloned() {
                None => (Verdict::Allowed(patch), not_enforced, reason.as_str()),
                Some(denial) => {
                    let reason = denial.reason();
                    (Verdict::WouldDeny { denial, patch }, not_enforced, reason)
                }
            },
        };
        let denials = not_enforced.iter().chain(match &verdict {
            Verdict::Denied(denial) => Some(denial),
            _ => None,
        });
        let recheck_live = denials.into_iter().find_map(|denial| contents_from_a_cache(denial, facts));
        warnings.extend(warning::not_enforced(&not_enforced));
        // Of the two webhooks for pods, /validate sees the pod as it will be.
        let is_new = self.review.operation == Operation::Create;
        if matches!(self.steps, Steps::Validate(_)) && is_new && !matches!(verdict, Verdict::Denied(_)) {
            warnings.extend(advice::on_pod(self.review));
        }
        let specs = facts.names();
        let audit = self.audit(&verdict, reason, &specs, facts);
        Decision { verdict, reason, specs, warnings, audit, recheck_live }
    }

    /// The API server prefixes the keys with the name of the webhook, which `/mutate` and `/validate` share in the chart, and of two
    /// equal keys it drops one: so the keys differ.
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
            // Also where no credential spec was looked up: nothing else in the cluster shows it.
            Verdict::WouldDeny { .. } => audit.push((decision_key, format!("would-deny: {reason}"))),
            Verdict::Allowed(_) | Verdict::Denied(_) if !specs.is_empty() => {
                audit.push((decision_key, reason.to_owned()));
            }
            Verdict::Allowed(_) | Verdict::Denied(_) => {}
        }
        audit
    }
}

/// The credential spec whose contents, taken from a cache, led to a denial.
fn contents_from_a_cache(denial: &Denial, facts: &Facts) -> Option<SpecName> {
    match denial {
        Denial::ContentsDiffer { spec, .. } | Denial::SpecUnusable(spec) => {
            (facts.spec_source(spec) == Some(Source::Cache)).then(|| spec.clone())
        }
        _ => None,
    }
}

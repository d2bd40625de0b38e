//! From a review and the facts that were found out for it to its decision.
//!
//! Invariants: [`Case::decide`] is total and synchronous and collects every denial; an enforcing webhook answers the
//! first. For `/mutate` and `/validate` a failed look-up of a credential spec, or of its use, is a denial, never an
//! approval. Without a random host name the pod keeps its own.

use std::sync::Arc;

use super::{
    Denial, Facts, Patch, Review, Settings, SlotDenial, Source, Webhook, advice,
    claims::Claims,
    mutate,
    operation::Operation,
    tickets, validate, validate_credspec, validate_workload,
    warning::{self, Warnings},
};
use crate::credspec::SpecName;

/// Whether the request is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// The request is admitted although this denial, which an enforcing webhook answers, applies: denials are not enforced.
    WouldDeny(Denial),
    Denied(Denial),
}

/// The webhook's answer, with its reason for logs, metrics and audit annotations.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The changes to the object, if it is admitted; without enforcement, the contents that could be filled in.
    pub patch: Option<Patch>,
    /// Where denials are not enforced every denial, at most one for each slot; otherwise the one that decides.
    pub denials: Vec<SlotDenial>,
    /// Why: [`AllowReason::as_str`](super::AllowReason::as_str) or [`Denial::reason`].
    pub reason: &'static str,
    /// The credential specs that the decision is about.
    pub specs: Vec<SpecName>,
    /// Lines that `kubectl` shows to the user; each at most 120 characters, or 256 for a denial that is not enforced.
    pub warnings: Vec<String>,
    /// Audit annotations: the API server prefixes the keys with the webhook's name.
    pub audit: Vec<(String, String)>,
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        !matches!(self.verdict, Verdict::Denied(_))
    }
}

/// A review, and what is known for it.
#[derive(Debug)]
pub(super) struct Case {
    pub review: Arc<Review>,
    pub webhook: Webhook,
    pub settings: Settings,
    pub claims: Claims,
    pub facts: Facts,
}

impl Case {
    /// Decides the review. Also returns the credential specs whose denial rests on cached contents: they must be read live, in this order,
    /// and the review be decided again.
    pub fn decide(&self) -> (Decision, Vec<SpecName>) {
        let Self { review, webhook, settings, claims, facts } = self;
        let webhook = *webhook;
        let (mut denials, mut warnings, mut patch) = (Vec::new(), Vec::new(), None);
        let mut reason = claims.reason;
        match webhook {
            Webhook::Mutate => (patch, denials) = mutate::expand(review, claims, facts, settings),
            Webhook::Validate => denials = validate::check(review, claims, facts),
            Webhook::ValidateWorkload => {
                warnings = validate_workload::warnings(review, claims, facts, &settings.tickets);
            }
            Webhook::ValidateCredspec => {
                match validate_credspec::decide(review, settings.strict_credential_specs, &mut warnings) {
                    Ok(found) => reason = found,
                    Err(denial) => denials.push(SlotDenial { slot: None, denial }),
                }
            }
        }
        let mut unconfirmed: Vec<SpecName> = Vec::new();
        let first_decides = settings.first_denial_decides(webhook);
        for found in &denials {
            match from_a_cache(&found.denial, facts) {
                Some(spec) if !unconfirmed.contains(spec) => unconfirmed.push(spec.clone()),
                None if first_decides => break,
                _ => {}
            }
        }
        if first_decides && !denials.is_empty() {
            denials.truncate(1);
            patch = None;
        }
        let is_enforced = |denial: &&Denial| !settings.enforcement.allows(webhook, denial);
        let mut of_denials = denials.iter().map(|found| &found.denial);
        let (verdict, reason) = match (of_denials.clone().find(is_enforced), of_denials.next()) {
            (Some(denial), _) => (Verdict::Denied(denial.clone()), denial.reason()),
            (None, Some(denial)) => (Verdict::WouldDeny(denial.clone()), denial.reason()),
            (None, None) => (Verdict::Allowed, reason.as_str()),
        };
        if !matches!(verdict, Verdict::Denied(_)) {
            warnings.extend(warning::not_enforced(denials.iter().map(|found| &found.denial)));
            if webhook == Webhook::Mutate && review.operation == Operation::Create {
                let mut lines = Warnings::default();
                review.object.iter().for_each(|pod| tickets::warn(pod, &settings.tickets, &mut lines));
                warnings.extend(lines.into_lines());
            }
            // Only /validate sees the pod as it will be stored.
            if webhook == Webhook::Validate && review.operation == Operation::Create {
                warnings.extend(advice::on_pod(review));
            }
        }
        let specs = facts.names();
        let audit = audit(webhook, &verdict, reason, &specs, facts);
        (Decision { verdict, patch, denials, reason, specs, warnings, audit }, unconfirmed)
    }
}

fn audit(
    webhook: Webhook,
    verdict: &Verdict,
    reason: &str,
    specs: &[SpecName],
    facts: &Facts,
) -> Vec<(String, String)> {
    let mut audit = Vec::new();
    if !specs.is_empty() {
        audit.push((webhook.audit_key("credential-specs"), facts.describe(specs)));
    }
    // A would-be denial is recorded even without credential specs: nothing else in the cluster shows it.
    let would_deny = matches!(verdict, Verdict::WouldDeny(_));
    if would_deny || !specs.is_empty() {
        let start = if would_deny { "would-deny: " } else { "" };
        audit.push((webhook.audit_key("decision"), format!("{start}{reason}")));
    }
    audit
}

/// The credential spec whose contents, taken from a cache, led to a denial.
fn from_a_cache<'d>(denial: &'d Denial, facts: &Facts) -> Option<&'d SpecName> {
    match denial {
        Denial::ContentsDiffer { spec, .. } | Denial::SpecUnusable(spec) => {
            (facts.spec(spec)?.source == Source::Cache).then_some(spec)
        }
        _ => None,
    }
}

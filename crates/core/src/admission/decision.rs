//! From a review and the facts that are known so far to its decision, or to what must be found out first.
//!
//! Invariants: [`Review::decide`] is total and synchronous, and for `/mutate` and `/validate` a credential spec, or its use, about
//! which nothing could be found out is a denial, never an approval. Without a random host name the pod keeps its own.

use super::{
    Denial, Enforcement, Facts, Needs, Patch, Review, Settings, SlotDenial, Source, Webhook, advice,
    inquiry::{Admitted, Inquiry, Stop},
    mutate,
    operation::Operation,
    validate, validate_credspec, validate_workload, warning,
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

/// What the webhook answers, and what it says about it elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// What the answer changes in the object, if it is admitted; where denials are not enforced, the contents that could be filled in.
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

/// What applies to a request, whatever is enforced.
#[derive(Debug)]
pub struct Examined {
    /// What the answer changes in the object.
    pub patch: Option<Patch>,
    /// Where all are asked for every denial, at most one for each slot; otherwise the one that decides.
    pub denials: Vec<SlotDenial>,
    /// Why the request is admitted, or denied as a whole.
    reason: &'static str,
    /// What a workload or a credential spec is warned of.
    warnings: Vec<String>,
}

impl Review {
    /// Finds out what applies to this review, in which `webhook` was called.
    ///
    /// # Errors
    /// What must be found out first: the caller adds it to `facts` and asks again. What it does not find out it adds as a failure.
    pub fn examine(&self, webhook: Webhook, settings: Settings, facts: &Facts) -> Result<Examined, Needs> {
        let is_exhaustive = settings.enforcement == Enforcement::Warn || webhook == Webhook::ValidateWorkload;
        let mut inquiry = Inquiry::new(facts, is_exhaustive);
        let mut warnings = Vec::new();
        let outcome = match webhook {
            Webhook::Mutate => mutate::decide(self, &mut inquiry),
            Webhook::Validate => validate::decide(self, &mut inquiry).map(Admitted::from),
            Webhook::ValidateWorkload => {
                validate_workload::decide(self, &mut inquiry, &mut warnings).map(Admitted::from)
            }
            Webhook::ValidateCredspec => {
                let strict = settings.strict_credential_specs;
                validate_credspec::decide(self, strict, &mut warnings).map(Admitted::from).map_err(Stop::from)
            }
        };
        let Inquiry { mut denials, needs, .. } = inquiry;
        let (reason, patch) = match outcome {
            Ok(Admitted { reason, patch }) => (reason.as_str(), patch),
            Err(Stop::Lacking) => return Err(needs),
            Err(Stop::Denied(denial)) => {
                let reason = denial.reason();
                denials.push(SlotDenial { slot: None, denial });
                (reason, None)
            }
        };
        let mut live = Vec::new();
        for name in denials.iter().filter_map(|found| contents_from_a_cache(&found.denial, facts)) {
            Needs::add(&mut live, name);
        }
        if !live.is_empty() {
            return Err(Needs { live, ..Needs::default() });
        }
        Ok(Examined { patch, denials, reason, warnings })
    }

    /// Decides this review, in which `webhook` was called.
    ///
    /// # Errors
    /// As [`Review::examine`].
    pub fn decide(&self, webhook: Webhook, settings: Settings, facts: &Facts) -> Result<Decision, Needs> {
        let Examined { patch, denials, reason, mut warnings } = self.examine(webhook, settings, facts)?;
        let is_enforced = |denial: &&Denial| !settings.enforcement.allows(webhook, denial);
        let mut of_denials = denials.iter().map(|found| &found.denial);
        let (verdict, reason) = match (of_denials.clone().find(is_enforced), of_denials.next()) {
            (Some(denial), _) => (Verdict::Denied(denial.clone()), denial.reason()),
            (None, Some(denial)) => (Verdict::WouldDeny(denial.clone()), denial.reason()),
            (None, None) => (Verdict::Allowed, reason),
        };
        if !matches!(verdict, Verdict::Denied(_)) {
            warnings.extend(warning::not_enforced(denials.iter().map(|found| &found.denial)));
            // Of the two webhooks for pods, /validate sees the pod as it will be.
            if webhook == Webhook::Validate && self.operation == Operation::Create {
                warnings.extend(advice::on_pod(self));
            }
        }
        let specs = facts.names();
        let audit = audit(webhook, &verdict, reason, &specs, facts);
        Ok(Decision { verdict, patch, denials, reason, specs, warnings, audit })
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
    // What would be denied also where no credential spec was looked up: nothing else in the cluster shows it.
    let would_deny = matches!(verdict, Verdict::WouldDeny(_));
    if would_deny || !specs.is_empty() {
        let start = if would_deny { "would-deny: " } else { "" };
        audit.push((webhook.audit_key("decision"), format!("{start}{reason}")));
    }
    audit
}

/// The credential spec whose contents, taken from a cache, led to a denial.
fn contents_from_a_cache<'d>(denial: &'d Denial, facts: &Facts) -> Option<&'d SpecName> {
    match denial {
        Denial::ContentsDiffer { spec, .. } | Denial::SpecUnusable(spec) => {
            (facts.spec(spec)?.source == Source::Cache).then_some(spec)
        }
        _ => None,
    }
}

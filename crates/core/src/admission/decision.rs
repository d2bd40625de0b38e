//! From a review and the facts that were found out for it to its decision.
//!
//! Invariants: [`Case::decide`] is total and synchronous. It collects every denial of what was looked up; an enforcing webhook answers the first,
//! and looks up nothing after it. For `/mutate` and `/validate` a failed look-up of a credential spec, or of its use, is a denial, never an
//! approval; one that was not made because only warnings needed it is neither. Without a random host name the pod keeps its own.

use super::{
    Denial, SlotDenial, Source, Webhook,
    case::{Assessment, Case},
    mutate, validate, validate_credspec, validate_workload, warning,
};
use crate::credspec::SpecName;

/// Whether the request is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// Denials are not enforced: the request is admitted, and an enforcing webhook would answer this denial.
    WouldDeny(Denial),
    Denied(Denial),
}

/// The webhook's answer, with its reason for logs, metrics and audit annotations.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The changes to the object, if it is admitted, as a JSON Patch; without enforcement, the contents that could be filled in.
    pub patch: Option<Vec<u8>>,
    /// Every denial where denials are not enforced, at most one for each slot; otherwise the one that decides.
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

impl Case {
    /// Decides the review. Also returns the credential specs whose denial rests on cached contents: they must be read live, in this order,
    /// and the review be decided again.
    pub fn decide(&self) -> (Decision, Vec<SpecName>) {
        let Self { webhook, settings, facts, .. } = self;
        let Assessment { mut denials, mut patch, warnings, reason } = match webhook {
            Webhook::Mutate => mutate::expand(self),
            Webhook::Validate => validate::check(self),
            Webhook::ValidateWorkload => validate_workload::foresee(self),
            Webhook::ValidateCredspec => validate_credspec::lint(self),
        };
        let mut unconfirmed = Vec::new();
        if !denials.is_empty() {
            unconfirmed = self.unconfirmed(&denials);
            if settings.first_denial_decides(*webhook) {
                denials.truncate(1);
                patch = None;
            }
        }
        let each = || denials.iter().map(|found| &found.denial);
        let enforced = each().find(|denial| !settings.enforcement.allows(*webhook, denial));
        let (verdict, reason) = match (enforced, each().next()) {
            (Some(denial), _) => (Verdict::Denied(denial.clone()), denial.reason()),
            (None, Some(denial)) => (Verdict::WouldDeny(denial.clone()), denial.reason()),
            (None, None) => (Verdict::Allowed, reason.as_str()),
        };
        let warnings = match (&verdict, webhook) {
            // Warnings are about what a pod will do: a denied pod does nothing.
            (Verdict::Denied(_), Webhook::Mutate | Webhook::Validate) => Vec::new(),
            (Verdict::WouldDeny(_), _) => warning::not_enforced(each()).into_iter().chain(warnings).collect(),
            _ => warnings,
        };
        let (specs, mut audit) = (facts.names(), Vec::new());
        if !specs.is_empty() {
            audit.push((webhook.audit_key("credential-specs"), facts.describe(&specs)));
        }
        // A would-be denial is recorded even without credential specs: nothing else in the cluster shows it.
        let would_deny = matches!(verdict, Verdict::WouldDeny(_));
        if would_deny || !specs.is_empty() {
            let start = if would_deny { "would-deny: " } else { "" };
            audit.push((webhook.audit_key("decision"), format!("{start}{reason}")));
        }
        (Decision { verdict, patch, denials, reason, specs, warnings, audit }, unconfirmed)
    }

    /// The credential specs whose contents, taken from a cache, led to a denial that may decide: each is read live, once. That all contents
    /// together are too large stands: it would take a read of each of them.
    fn unconfirmed(&self, denials: &[SlotDenial]) -> Vec<SpecName> {
        let first_decides = self.settings.first_denial_decides(self.webhook);
        let is_cached = |spec: &&SpecName| self.facts.spec(spec).is_some_and(|known| known.source == Source::Cache);
        let mut unconfirmed: Vec<SpecName> = Vec::new();
        for found in denials {
            let spec = match &found.denial {
                Denial::ContentsDiffer { spec, .. } | Denial::SpecUnusable(spec) => Some(spec),
                _ => None,
            };
            match spec.filter(is_cached) {
                Some(spec) if !unconfirmed.contains(spec) => unconfirmed.push(spec.clone()),
                None if first_decides => break,
                _ => {}
            }
        }
        unconfirmed
    }
}

//! Which webhooks review a pod: both if manifests are checked without a cluster, otherwise the webhooks of the cluster.

use std::collections::BTreeMap;

use crate::shared::{
    rules,
    webhook::{Configured, matches},
};
use gmsa_core::{admission::Webhook, diagnostic::Rule};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Whether the webhooks of one kind review a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Reviews,
    /// Their selectors leave it out.
    LeavesOut,
    /// There are none.
    Missing,
}

/// Which webhooks review a pod.
#[derive(Debug)]
pub struct Reviewed {
    mutating: Coverage,
    validating: Coverage,
    /// Whether the cluster was asked for them and did not answer.
    pub is_unsure: bool,
}

impl Reviewed {
    /// By both.
    pub const ASSUMED: Self = Self { mutating: Coverage::Reviews, validating: Coverage::Reviews, is_unsure: false };

    /// By both, as far as is known.
    pub const UNSURE: Self = Self { is_unsure: true, ..Self::ASSUMED };

    /// What the webhooks of a cluster do with a pod with these labels, in a namespace with those.
    pub fn of(webhooks: &[Configured], namespace: &Labels, pod: &Labels) -> Self {
        let coverage = |mutating: bool| {
            let mut of_pods =
                webhooks.iter().filter(|found| found.mutating == mutating && found.is_of_pods()).peekable();
            if of_pods.peek().is_none() {
                return Coverage::Missing;
            }
            // The API server refuses a selector that cannot be read.
            let reviews = |found: &Configured| {
                let of_pod = matches(found.webhook.object_selector.as_ref(), Some(pod));
                found.selects(Some(namespace)).unwrap_or(true) && of_pod.unwrap_or(true)
            };
            if of_pods.any(reviews) { Coverage::Reviews } else { Coverage::LeavesOut }
        };
        Self { mutating: coverage(true), validating: coverage(false), is_unsure: false }
    }

    pub fn mutates(&self) -> bool {
        self.mutating == Coverage::Reviews
    }

    fn validates(&self) -> bool {
        self.validating == Coverage::Reviews
    }

    /// The webhooks that review it, in order.
    pub fn webhooks(&self) -> impl Iterator<Item = Webhook> {
        let both = [(Webhook::Mutate, self.mutates()), (Webhook::Validate, self.validates())];
        both.into_iter().filter_map(|(webhook, reviews)| reviews.then_some(webhook))
    }

    /// What is wrong where one of the two does not review the pod: the rule, the message, and what follows.
    pub fn problem(&self) -> Option<(&'static Rule, String, &'static str)> {
        let (which, consequence) = match (self.mutates(), self.validates()) {
            (true, true) => return None,
            (false, true) => ("mutating ", "the name gets no contents, so the validating webhook refuses the pod"),
            (true, false) => ("validating ", "nothing checks whether the pod may use the credential spec"),
            (false, false) => ("", "the container starts without its identity"),
        };
        let lacking = [self.mutating, self.validating];
        let (rule, why) = if lacking.contains(&Coverage::Missing) {
            (&rules::WEBHOOK_MISSING, "the cluster has none")
        } else {
            (&rules::NAMESPACES_EXCLUDED, "the selectors in its configuration leave out the namespace, or the pod")
        };
        Some((rule, format!("no {which}webhook for GMSA reviews this pod: {why}"), consequence))
    }
}

//! The values that labels take: enums and the words of the core, so that a scrape can never grow with what clients send.

use gmsa_core::{
    admission::{AllowReason, Denial, Source, SpecFact, UseFact, Webhook, operation::Operation},
    diagnostic::rules,
    word_enum,
};
use gmsa_edge::{labels, metrics::absent};

/// The operation on the object. In a review, the word has capital letters.
pub(super) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

word_enum! {
    /// How a review ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReviewOutcome {
        Allowed = "allowed",
        /// Denied for what the request is.
        Denied = "denied",
        /// Admitted although a denial applies: denials are not enforced.
        WouldDeny = "would-deny",
        /// Denied because something could not be found out.
        Error = "error",
    }
}

word_enum! {
    /// Where denials are enforced.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Enforced {
        Everywhere = "enforce",
        /// Everywhere but in the namespaces that the operator lists.
        OutsideNamespaces = "warn-in-namespaces",
        Nowhere = "warn",
    }
}

word_enum! {
    /// The state of the watch of credential specs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WatchState {
        /// Reading the first list.
        Starting = "starting",
        Synced = "synced",
        /// Not to be trusted at the moment: look-ups go to the API server.
        Stale = "stale",
        /// Not permitted, or no CustomResourceDefinition: look-ups go to the API server.
        Live = "live",
    }
}

labels! {
    // The version and its settings are known only when the process starts.
    BuildLabels {
        version: &'static str = ["VERSION"],
        enforcement: &'static str = Enforced::ALL.map(Enforced::as_str)
    } => absent
    ReviewLabels {
        path: &'static str = Webhook::ALL.map(Webhook::as_str),
        operation: &'static str = Operation::ALL.map(operation),
        outcome: &'static str = ReviewOutcome::ALL.map(ReviewOutcome::as_str),
        reason: &'static str = [&AllowReason::ALL.map(AllowReason::as_str)[..], &Denial::RULES.map(|rule| rule.id)].concat()
    } => counts_a_refusal
    PathLabel { path: &'static str = Webhook::ALL.map(Webhook::as_str) }
    // Codes of the server's `HttpRefusal`.
    CodeLabel { code: u16 = [400, 404, 405, 408, 413, 415, 500, 503, 504] }
    LookupLabels { source: &'static str = Source::ALL.map(Source::as_str), outcome: &'static str = SpecFact::OUTCOMES }
    AccessLabels { source: &'static str = Source::ALL.map(Source::as_str), outcome: &'static str = UseFact::OUTCOMES }
    StateLabel { state: &'static str = WatchState::ALL.map(WatchState::as_str) }
}

/// Pods and credential specs that were refused, for every reason: what alerts count.
fn counts_a_refusal(of: &ReviewLabels) -> bool {
    let is_wrong_spec = of.reason == rules::CREDENTIAL_SPEC_WRONG.id;
    let webhooks = if is_wrong_spec { &[Webhook::ValidateCredspec][..] } else { &[Webhook::Mutate, Webhook::Validate] };
    let is_change = [Operation::Create, Operation::Update].map(operation).contains(&of.operation);
    let is_denial = Denial::RULES.iter().any(|rule| rule.id == of.reason);
    let failures = [
        &rules::SPEC_UNREADABLE,
        &rules::AUTHORIZATION_FAILED,
        &rules::TICKETS_NOT_ENABLED,
        &rules::TICKETS_UNAVAILABLE,
    ];
    let is_failure = failures.iter().any(|rule| rule.id == of.reason);
    let outcomes = match (is_failure, is_wrong_spec) {
        (true, _) => &[ReviewOutcome::Error][..],
        (false, true) => &[ReviewOutcome::Denied],
        (false, false) => &[ReviewOutcome::Denied, ReviewOutcome::WouldDeny],
    };
    let fits = outcomes.iter().any(|outcome| outcome.as_str() == of.outcome);
    webhooks.iter().any(|webhook| webhook.as_str() == of.path) && is_change && is_denial && fits
}

//! The webhooks that this process serves, and the settings that change what they answer.
//!
//! A new webhook is:
//! - a line in the table of [`Webhook`], from which its path, its metric label, its audit annotations and the answer to a wrong path
//!   come;
//! - what it reads of a review, in `Review::parse`, what is looked up for it, in `Decision::begin`, and what it finds, in `Case::decide`;
//! - an entry of `mutatingwebhook.yaml` or `validatingwebhook.yaml` in the chart and, if `kubectl gmsa doctor` must check it, in
//!   `doctor/configuration.rs` of the plugin;
//! - a folder in `tests/golden`, and its lines in `docs/metrics.md` (`just generate`).

use super::{Denial, TicketSettings};

word_enum! {
    /// The called webhook. The word is its path without the slash, and its name in metrics and logs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Webhook {
        /// Expands names into contents.
        Mutate = "mutate",
        /// Authorises names and compares contents.
        Validate = "validate",
        /// Warns of what will happen to the pods of a workload.
        ValidateWorkload = "validate-workload",
        /// Lints a credential spec.
        ValidateCredspec = "validate-credspec",
    }
}

impl Webhook {
    /// The path that the API server calls.
    #[must_use]
    pub fn path(self) -> String {
        format!("/{}", self.as_str())
    }

    /// The key of an audit annotation. The API server prefixes it with the name of the webhook, which `/mutate` and `/validate` share
    /// in the chart, and drops one of two equal keys: so it begins with a word of the path.
    pub(super) fn audit_key(self, about: &str) -> String {
        format!("{}-{about}", self.as_str().trim_start_matches("validate-"))
    }
}

/// The operator's settings, and a random host name.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub enforcement: Enforcement,
    /// Whether `/validate-credspec` refuses a credential spec that cannot work.
    pub strict_credential_specs: bool,
    /// The random host name for a new pod that uses GMSA without a host name: a lower-case DNS label that starts with a letter. `None` leaves
    /// the pod without one.
    pub hostname: Option<String>,
    /// Whether Linux pods get tickets.
    pub tickets: TicketSettings,
}

impl Settings {
    /// Whether the first denial of a review is the answer, so that no other is asked for.
    pub(super) fn first_denial_decides(&self, webhook: Webhook) -> bool {
        self.enforcement == Enforcement::Enforce && webhook != Webhook::ValidateWorkload
    }

    /// Whether what is looked up changes warnings alone. Then its look-ups end after a while ([`NotAsked`](super::FailureKind::NotAsked)).
    /// `/mutate` is never one of these: it fills in what it can.
    pub fn facts_only_warn(&self, webhook: Webhook) -> bool {
        match webhook {
            Webhook::ValidateWorkload => true,
            Webhook::Validate => self.enforcement == Enforcement::Warn,
            Webhook::Mutate | Webhook::ValidateCredspec => false,
        }
    }
}

/// The effect of a denial by `/mutate` or `/validate` that concerns the pod itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It is denied, for the first reason that is found.
    #[default]
    Enforce,
    /// It is allowed, and every denial becomes a warning. Everything is looked up for that. A look-up that fails still denies; one that was not
    /// made in the time for warnings ([`NotAsked`](super::FailureKind::NotAsked)) does not.
    Warn,
}

impl Enforcement {
    /// Whether a request to `webhook` to which this denial applies is admitted with a warning.
    pub(super) fn allows(self, webhook: Webhook, denial: &Denial) -> bool {
        let is_of_pods = matches!(webhook, Webhook::Mutate | Webhook::Validate);
        self == Self::Warn && is_of_pods && (denial.concerns_the_pod() || denial.is_not_checked())
    }
}

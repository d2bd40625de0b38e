//! The webhooks that this process serves, and the settings that change what they answer.
//!
//! A new webhook is:
//! - a line in the table of [`Webhook`], from which its path, its metric label, its audit annotations and the answer to a wrong path
//!   come;
//! - what it reads of a review, in `Review::parse`, and what it answers, in `Review::decide`;
//! - an entry of `mutatingwebhook.yaml` or `validatingwebhook.yaml` in the chart and, if `kubectl gmsa doctor` must check it, in
//!   `doctor/install.rs` of the plugin;
//! - a folder in `tests/golden`, and its lines in `docs/metrics.md` (`just generate`).

use super::Denial;

macro_rules! webhooks {
    ($($(#[$about:meta])* $webhook:ident: $label:literal, $audit:literal;)+) => {
        /// Which of the webhooks is called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Webhook {
            $($(#[$about])* $webhook,)+
        }

        impl Webhook {
            /// Every webhook.
            pub const ALL: [Self; [$($label),+].len()] = [$(Self::$webhook),+];

            /// The path that the API server calls.
            #[must_use]
            pub fn path(self) -> &'static str {
                match self { $(Self::$webhook => concat!("/", $label)),+ }
            }

            /// The path without its slash: the word in metrics and logs.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Self::$webhook => $label),+ }
            }

            /// The keys of the audit annotations: which credential specs, and what was decided. The API server prefixes them with
            /// the name of the webhook, which `/mutate` and `/validate` share in the chart, and drops one of two equal keys.
            pub(super) fn audit_keys(self) -> [&'static str; 2] {
                match self {
                    $(Self::$webhook => [concat!($audit, "-credential-specs"), concat!($audit, "-decision")]),+
                }
            }
        }
    };
}

webhooks! {
    /// Expands names into contents.
    Mutate: "mutate", "mutate";
    /// Authorises names and compares contents.
    Validate: "validate", "validate";
    /// Warns of what will happen to the pods of a workload.
    ValidateWorkload: "validate-workload", "workload";
    /// Lints a credential spec.
    ValidateCredspec: "validate-credspec", "credspec";
}

impl Webhook {
    /// Whether it decides about pods, so that its denials may be left unenforced.
    pub(super) fn is_for_pods(self) -> bool {
        matches!(self, Self::Mutate | Self::Validate)
    }
}

/// What the operator chooses. A random host name is not among them: it is a fact, which the caller gives or does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub enforcement: Enforcement,
    /// Whether `/validate-credspec` refuses a credential spec that cannot work.
    pub strict_credential_specs: bool,
}

/// What happens to a pod that `/mutate` or `/validate` has to deny because of what it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It is denied, for the first reason that is found.
    #[default]
    Enforce,
    /// It is allowed, and every denial becomes a warning. A failure of the webhook itself still denies.
    Warn,
}

impl Enforcement {
    /// Whether a request to which this denial applies is admitted with a warning.
    pub(super) fn allows(self, denial: &Denial) -> bool {
        self == Self::Warn && denial.concerns_the_pod()
    }
}

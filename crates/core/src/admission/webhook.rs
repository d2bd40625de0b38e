//! Which webhook is called, and whether its denials are enforced.

use super::Denial;

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

/// What happens to a pod that `/mutate` or `/validate` has to deny because of what it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It is denied.
    #[default]
    Enforce,
    /// It is allowed, and the denial becomes a warning. A failure of the webhook itself still denies.
    Warn,
}

impl Enforcement {
    /// Whether a request to which this denial applies is admitted with a warning.
    pub(super) fn allows(self, denial: &Denial) -> bool {
        self == Self::Warn && denial.concerns_the_pod()
    }
}

//! Why a fact is not known.

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub timed_out: bool,
    /// The cause, for the person who reads the denial.
    pub cause: String,
}

impl Failure {
    /// A failure that is no time-out.
    pub fn new(cause: impl Into<String>) -> Self {
        Self { timed_out: false, cause: cause.into() }
    }

    /// The fact was not looked for: a mistake in this program, which must end as a denial (for workloads, as a
    /// warning).
    pub(super) fn not_asked() -> Self {
        Self::new("it was not looked up (this is a bug in the webhook)")
    }
}

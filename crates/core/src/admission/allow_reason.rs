//! Why a request is admitted.

/// Why a request is admitted: the reason in logs, metrics and audit annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllowReason {
    /// No slot that counts for this request names a credential spec or carries contents.
    NoGmsa,
    Linux,
    /// The mutating webhook has nothing to do on this operation.
    NothingToMutate,
    /// Every slot with a name has contents already.
    AlreadyExpanded,
    /// The patch holds the contents.
    Expanded,
    /// An update that leaves the GMSA settings alone.
    Unchanged,
    /// The subject may use every credential spec, and all contents match.
    Authorized,
    /// A workload that another object controls: that object has its own review.
    Controlled,
    /// A workload that uses GMSA; the warnings say what will happen to its pods.
    Workload,
    Deletion,
    /// A credential spec without findings.
    Clean,
    /// A credential spec with findings; the warnings say which.
    Findings,
}

impl AllowReason {
    words! {
        /// The reason in logs, metrics and audit annotations.
        as_str, REASONS {
            Self::NoGmsa => "no-gmsa",
            Self::Linux => "linux",
            Self::NothingToMutate => "nothing-to-mutate",
            Self::AlreadyExpanded => "already-expanded",
            Self::Expanded => "expanded",
            Self::Unchanged => "unchanged",
            Self::Authorized => "authorized",
            Self::Controlled => "controlled",
            Self::Workload => "workload",
            Self::Deletion => "deletion",
            Self::Clean => "clean",
            Self::Findings => "findings",
        }
    }
}

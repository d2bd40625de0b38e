//! Why a request is admitted.

word_enum! {
    /// Why a request is admitted: the reason in logs, metrics and audit annotations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AllowReason {
        /// No slot that counts for this request names a credential spec or carries contents.
        NoGmsa = "no-gmsa",
        Linux = "linux",
        /// The mutating webhook has nothing to do on this operation.
        NothingToMutate = "nothing-to-mutate",
        /// Every slot with a name has contents already.
        AlreadyExpanded = "already-expanded",
        /// The patch holds the contents.
        Expanded = "expanded",
        /// A Linux pod that asks for tickets: it has the sidecar, by the patch or already.
        Tickets = "tickets",
        /// An update that leaves the GMSA settings alone.
        Unchanged = "unchanged",
        /// The service account may use every credential spec, and all contents match.
        Authorized = "authorized",
        /// A workload that another object controls: that object has its own review.
        Controlled = "controlled",
        /// A workload that uses GMSA; the warnings say what will happen to its pods.
        Workload = "workload",
        Deletion = "deletion",
        /// A credential spec without findings.
        Clean = "clean",
        /// A credential spec with findings; the warnings say which.
        Findings = "findings",
    }
}

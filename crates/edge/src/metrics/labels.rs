//! The values that labels take: enums, or what the certificate names, so that a scrape can never grow with what clients send.

use gmsa_core::word_enum;

use super::absent;
use crate::labels;

word_enum! {
    /// Why a connection was not served.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unserved {
        /// The client closed it before it sent anything, as a health check of a load balancer does.
        Gone = "closed-by-client",
        /// It sent nothing in time, or nothing yet when too many waited.
        Silent = "silent",
        /// It sent something, and no place was free for it in time, or too many waited.
        NoPlace = "no-place",
    }
}

word_enum! {
    /// What a replica did to the certificates that the program manages itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CertificateStep {
        /// Filled the empty Secret.
        Filled = "filled",
        /// Rebuilt a Secret that was damaged or edited, or whose authority had expired.
        Rebuilt = "rebuilt",
        /// Renewed the serving certificate.
        Renewed = "renewed",
        /// Had a new authority sign.
        Rotated = "rotated",
        /// Wrote a webhook configuration.
        BundleWritten = "bundle-written",
        /// Found a webhook configuration without the authorities that it had before: another writer removed them.
        BundleLost = "bundle-lost",
        /// Left a certificate of another replica as it is for a while, though it would replace it: both replaced the other's before.
        HeldBack = "held-back",
        Failed = "failed",
    }
}

labels! {
    // An authority, by its key identifier.
    AuthorityLabel { key_id: String = ["KEY".to_owned()] } => absent
    UnservedLabel { reason: &'static str = Unserved::ALL.map(Unserved::as_str) }
    ReloadLabel { outcome: &'static str = ["served", "refused"] }
    StepLabel { step: &'static str = CertificateStep::ALL.map(CertificateStep::as_str) }
}

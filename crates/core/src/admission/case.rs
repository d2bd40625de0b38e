//! The input of a webhook's decision, and its findings.

use std::sync::Arc;

use super::{AllowReason, Facts, Review, Settings, SlotDenial, Webhook, claims::SpecClaims};

/// A review, and what is known for it.
#[derive(Debug)]
pub(super) struct Case {
    pub review: Arc<Review>,
    pub webhook: Webhook,
    pub settings: Settings,
    pub claims: SpecClaims,
    pub facts: Facts,
}

/// A webhook's findings on a case, whether denials are enforced or not.
#[derive(Debug)]
pub(super) struct Assessment {
    /// In the order in which they are decided.
    pub denials: Vec<SlotDenial>,
    pub patch: Option<Vec<u8>>,
    pub warnings: Vec<String>,
    /// Why the request is admitted where nothing denies it.
    pub reason: AllowReason,
}

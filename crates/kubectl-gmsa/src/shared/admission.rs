//! What the webhooks decide about a pod, made by their own code from facts that are looked up: in a cluster, or in manifests.

mod admit;
mod facts;
mod read;
mod reviewed;
mod sources;

pub use admit::{Admission, admit, is_unchecked};
pub use facts::FactFinder;
pub use read::{WrongType, review_of};
pub use reviewed::{Labels, Reviewed};
pub use sources::fact_finder;

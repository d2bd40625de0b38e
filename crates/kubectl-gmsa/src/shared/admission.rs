//! What the webhooks decide about a pod, made by their own code from facts that are looked up: in a cluster, or in manifests.

mod facts;
mod read;
mod reviewed;

pub use facts::{Admission, FactFinder, is_unchecked};
pub use read::NewPod;
pub use reviewed::{Labels, NotReviewed, Reviewed};

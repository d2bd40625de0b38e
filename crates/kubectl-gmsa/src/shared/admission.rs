//! The webhooks' decision about a pod, made by their own code from facts of a cluster or of manifests.

mod facts;
mod read;
mod reviewed;

pub use facts::{Admission, FactFinder, is_unchecked};
pub use read::{NewPod, WrongType};
pub use reviewed::{Labels, NotReviewed, Reviewed};

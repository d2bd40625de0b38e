//! The webhooks' decision about a pod, made by their own code from facts of a cluster or of manifests.

mod facts;
mod new_pod;
mod reviewed;

pub use facts::{Admission, FactFinder, is_unchecked};
pub use new_pod::{NewPod, WrongType};
pub use reviewed::{Labels, NotReviewed, Reviewed};

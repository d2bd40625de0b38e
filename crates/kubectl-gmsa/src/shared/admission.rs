//! A new pod, and the webhooks that review it.

mod new_pod;
mod reviewed;

pub use new_pod::{NewPod, WrongType, review_of};
pub use reviewed::{Labels, NotReviewed, Reviewed};

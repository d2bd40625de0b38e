//! The server: the routes of the TLS port, and what decides a review.
//!
//! Invariants: nothing in here calls the API server or reads a file; what does comes in as [`LookUpSources`].

pub(crate) mod deadline;
mod random_hostname;
mod refusal;
pub mod reviewer;
pub mod routes;
pub mod thread;

pub use reviewer::{LookUpSources, Reviewer};
pub use routes::LOG_LIMITS;

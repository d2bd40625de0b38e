//! What a credential spec is, and what the webhook decides about a review: the pure core.
//!
//! What always holds: nothing in here does I/O, reads a clock, draws random numbers or knows a runtime; the crate's
//! dependencies and its `clippy.toml` keep it so. Random host names and the time come in as values.

pub mod admission;
pub mod credspec;
pub mod diagnostic;

//! What a credential spec is, and what the webhook decides about a review: the pure core.
//!
//! Invariants: nothing in here does I/O, reads a clock, draws random numbers or knows a runtime; the crate's
//! dependencies and its `clippy.toml` keep it so. Random host names and the time come in as values.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | `json` | how JSON from outside is read, within bounds |
//! | `quote` | how a text from outside is put into a message |
//! | [`diagnostic`] | one thing that is wrong, and the table of rules |
//! | [`credspec`] | a credential spec: its name, its contents text, the comparison, the linter, the generator |
//! | [`account`] | an account of the directory, and what is wrong with it |
//! | [`admission`] | a review: parsed, decided, answered |

pub mod account;
pub mod admission;
pub mod credspec;
pub mod diagnostic;
mod json;
pub mod quote;

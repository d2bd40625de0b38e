//! One module for each command. Commands do not import each other: code that two of them need is in `shared`.
//!
//! A new command is:
//! - a module here, with `Options`, `run` and `EXAMPLES`, whose commands a test runs: `tests/examples/transcript` has what they print;
//! - a variant of `Command` in `main.rs` and its line in `dispatch`, which the compiler asks for, and its place in `GROUPS`, which a test asks for;
//! - its section of `docs/cli.md` (`UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`).

pub mod account;
pub mod check;
pub mod complete;
pub mod credspec;
pub mod doctor;
pub mod explain;
pub mod grant;
pub mod outdated;
pub mod probe;
pub mod verify;
pub mod version;
pub mod who_can;
pub mod why;

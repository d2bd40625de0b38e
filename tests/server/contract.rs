//! The decisions against their contract: golden cases, every combination of one slot, and properties of any pod.

use gmsa_test_support::{hostile, oracle};

mod exhaustive;
mod golden;
mod properties;
mod world;

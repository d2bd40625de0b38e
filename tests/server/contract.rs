//! The decisions against their contract: golden cases, and properties of any pod.

use gmsa_test_support::{hostile, oracle};

mod golden;
mod properties;
mod world;

//! What the targets of the core share with the tests.
#![allow(dead_code, reason = "each target uses its own part")]

#[path = "../tests/support/hostile.rs"]
pub mod hostile;
#[path = "../tests/server/contract/oracle.rs"]
mod oracle;
#[path = "../tests/support/slow_json.rs"]
mod slow_json;

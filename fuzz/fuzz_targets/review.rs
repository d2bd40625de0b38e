//! Any request body: parsed, decided by every webhook with hostile facts, answered, its patch applied.

#![no_main]

#[path = "../../tests/support/hostile.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod hostile;
#[path = "../../tests/server/contract/oracle.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod oracle;
#[path = "../../tests/support/slow_json.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod slow_json;

libfuzzer_sys::fuzz_target!(|body: &[u8]| hostile::review(body));

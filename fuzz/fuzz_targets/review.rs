//! Any request body: parsed, decided by every webhook with hostile facts, answered. `tests/golden/*/review.json` make a
//! good corpus.

#![no_main]

#[path = "../../tests/support/hostile.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|body: &[u8]| hostile::review(body));

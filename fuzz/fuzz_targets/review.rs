//! Any request body: parsed, decided by every webhook with hostile facts, answered, its patch applied.

#![no_main]

use gmsa_test_support::hostile;

libfuzzer_sys::fuzz_target!(|body: &[u8]| hostile::review(body));

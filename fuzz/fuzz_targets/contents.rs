//! Any `credspec`: printed, read back, printed again.

#![no_main]

#[path = "../../tests/support/hostile.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|credspec: &[u8]| hostile::contents(credspec));

//! A Corefile: read within its bounds, and what is written of it is read back as the same.

#![no_main]

use gmsa_test_support::hostile;

libfuzzer_sys::fuzz_target!(|text: &str| hostile::corefile(text));

//! What a KDC answers, outside and inside of what is encrypted.

#![no_main]

use gmsa_test_support::hostile;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    hostile::kdc_answer(*kind, bytes);
});

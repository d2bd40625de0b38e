//! Two contents texts, with a NUL between them.

#![no_main]

#[path = "../../tests/support/hostile.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|texts: &str| {
    if let Some((one, other)) = texts.split_once('\0') {
        hostile::compared(one, other);
    }
});

//! Credential specs. The first byte says what the rest is: two contents texts with a NUL between them (`0`), a `credspec` that
//! is printed (`1`), and what is linted, or was written by `Get-ADDomain` or for Docker (any other).

#![no_main]

use gmsa_test_support::hostile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut rest = text.chars();
    match rest.next() {
        Some('0') => {
            if let Some((one, other)) = rest.as_str().split_once('\0') {
                hostile::compared(one, other);
            }
        }
        Some('1') => hostile::contents(rest.as_str().as_bytes()),
        _ => hostile::linted(rest.as_str()),
    }
});

//! Wiping of the stack: AES and HMAC copy keys there when their values move, and wipe only the last copy.
//!
//! The compiler promises nothing about the stack, so this is best effort; `tests/kerberos/memory.rs` searches a process for what is left.

use zeroize::Zeroize as _;

/// More than AES, HMAC-SHA1 and PBKDF2 use, in a debug build too.
const DEPTH: usize = 16 << 10;

/// Calculates with keys, and overwrites the stack that it used.
pub fn wiped<T>(calculate: impl FnOnce() -> T) -> T {
    let result = calculated(calculate);
    overwrite();
    result
}

/// Never inlined, so that its stack is below that of the caller, where [`overwrite`] writes.
#[inline(never)]
fn calculated<T>(calculate: impl FnOnce() -> T) -> T {
    calculate()
}

#[inline(never)]
fn overwrite() {
    let mut below = [0u8; DEPTH];
    below.zeroize();
}

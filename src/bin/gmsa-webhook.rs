//! The webhook server: a process around the library.

fn main() {}

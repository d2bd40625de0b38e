//! The tool for people: `kubectl gmsa`.

fn main() {}

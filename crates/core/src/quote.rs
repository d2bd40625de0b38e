//! Quotes a string from outside for a message.

use std::fmt;

/// A string from a pod, as it is put into a message: in quotes, control characters escaped, at most 253 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// The longest valid Kubernetes name.
    const MAX: usize = 253;

    pub fn new(text: &str) -> Self {
        let mut chars = text.chars();
        let head: String = chars.by_ref().take(Self::MAX).collect();
        let cut = if chars.next().is_some() { "…" } else { "" };
        Self(format!("{head:?}{cut}"))
    }

    /// Escapes and cuts a string without putting it in quotes: for a kind, which the API server gives.
    pub fn bare(text: &str) -> Self {
        Self(text.chars().take(Self::MAX).flat_map(char::escape_debug).collect())
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

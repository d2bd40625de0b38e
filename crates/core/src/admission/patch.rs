//! A JSON Patch (RFC 6902) that adds texts.

use super::{Denial, MAX_PATCH_BYTES};

/// A JSON Patch, as it is written into the answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Patch(Vec<u8>);

impl Patch {
    /// The patch as JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The operations of a patch, without its closing bracket.
#[derive(Default)]
pub(super) struct PatchWriter(Vec<u8>);

impl PatchWriter {
    /// Adds one operation, or none where the patch gets too large. The path holds only field names and numbers: nothing in
    /// it needs an escape.
    pub(super) fn add(&mut self, at: &str, quoted_value: &str) -> Result<(), Denial> {
        let separator = if self.0.is_empty() { "[" } else { "," };
        let parts = [separator, r#"{"op":"add","path":""#, at, r#"","value":"#, quoted_value, "}"];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.0.len() + length >= MAX_PATCH_BYTES {
            return Err(Denial::PatchTooLarge);
        }
        self.0.reserve(length + 1);
        for part in parts {
            self.0.extend_from_slice(part.as_bytes());
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Option<Patch> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b']');
        Some(Patch(self.0))
    }
}

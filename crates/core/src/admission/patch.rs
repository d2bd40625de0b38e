//! A JSON Patch (RFC 6902) that adds values.

use serde::Serialize;

use super::{Denial, MAX_PATCH_BYTES};

/// The operations of a patch, without its closing bracket.
#[derive(Default)]
pub(super) struct PatchWriter(Vec<u8>);

/// An operation. It is written as the Go webhook writes it: Go's escapes are in the contents text already.
#[derive(Serialize)]
struct Add<'a, V: ?Sized> {
    op: &'static str,
    path: &'a str,
    value: &'a V,
}

impl PatchWriter {
    /// Adds one operation, or none where the patch gets too large.
    pub(super) fn add<V: Serialize + ?Sized>(&mut self, path: &str, value: &V) -> Result<(), Denial> {
        let before = self.0.len();
        self.0.push(if before == 0 { b'[' } else { b',' });
        // Writing text and trees of values into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.0, &Add { op: "add", path, value });
        if self.0.len() >= MAX_PATCH_BYTES {
            self.0.truncate(before);
            return Err(Denial::PatchTooLarge);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b']');
        self.0.shrink_to_fit();
        Some(self.0)
    }
}

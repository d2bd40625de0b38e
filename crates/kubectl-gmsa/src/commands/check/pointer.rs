//! JSON Pointers (RFC 6901) in their two notations, and the walk over the fields below a value.

use std::fmt::Write as _;

use gmsa_core::pointer::{escape, unescape};
use serde_json::Value;

/// A step from a value to a part of it.
#[derive(Clone, Copy)]
pub(super) enum Segment<'v> {
    Field(&'v str),
    Item(usize),
}

/// The pointer of a value.
pub(super) fn pointer(path: &[Segment<'_>]) -> String {
    let mut pointer = String::new();
    for step in path {
        // Writing into a String cannot fail.
        let _ = match step {
            Segment::Field(key) => write!(pointer, "/{}", escape(key)),
            Segment::Item(index) => write!(pointer, "/{index}"),
        };
    }
    pointer
}

/// Visits each field below a value, with its path. Descends into a field if `visit` returns true.
pub(super) fn walk<'v>(
    value: &'v Value,
    path: &mut Vec<Segment<'v>>,
    visit: &mut impl FnMut(&[Segment<'v>], &'v str, &'v Value) -> bool,
) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(Segment::Field(key));
                if visit(path, key, value) {
                    walk(value, path, visit);
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Segment::Item(index));
                walk(item, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// A JSON Pointer in dotted notation: `/spec/containers/0/name` is `spec.containers[0].name`, and a key with a dot or a slash
/// is in brackets.
pub(super) fn dotted(pointer: &str) -> String {
    let mut field = String::with_capacity(pointer.len());
    for step in pointer.split('/').skip(1) {
        let step = unescape(step);
        if (!step.is_empty() && step.bytes().all(|b| b.is_ascii_digit())) || step.contains(['.', '/']) {
            field.extend(["[", &step, "]"]);
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(&step);
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_written_as_fields() {
        assert_eq!(dotted("/spec/containers/0/name"), "spec.containers[0].name");
        let path = [Segment::Field("items"), Segment::Item(1), Segment::Field("pod.alpha.windows.kubernetes.io/gmsa~")];
        assert_eq!(pointer(&path), "/items/1/pod.alpha.windows.kubernetes.io~1gmsa~0");
        assert_eq!(dotted(&pointer(&path)), "items[1][pod.alpha.windows.kubernetes.io/gmsa~]");
        assert_eq!(dotted(""), "");
    }
}

//! JSON Pointers (RFC 6901), in whose keys `~` and `/` are escaped.

/// The key, as it stands between two slashes of a pointer.
#[must_use]
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The key that stands between two slashes of a pointer.
#[must_use]
pub fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A JSON Pointer in dotted notation: `/spec/containers/0/name` is `spec.containers[0].name`, and a key with a dot or a slash
/// is in brackets.
#[must_use]
pub fn dotted(pointer: &str) -> String {
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
    fn a_key_is_found_again_by_its_pointer() {
        for (key, step) in [("a", "a"), ("kubernetes.io/os", "kubernetes.io~1os"), ("~1", "~01"), ("~/", "~0~1")] {
            assert_eq!((escape(key).as_str(), unescape(step).as_str()), (step, key));
        }
    }

    #[test]
    fn pointers_are_written_as_fields() {
        assert_eq!(dotted("/spec/containers/0/name"), "spec.containers[0].name");
        let places = dotted("/items/1/pod.alpha.windows.kubernetes.io~1gmsa~0");
        assert_eq!(places, "items[1][pod.alpha.windows.kubernetes.io/gmsa~]");
        assert_eq!(dotted(""), "");
    }
}

//! Keys in JSON Pointers (RFC 6901), where `~` and `/` are escaped.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_again_by_its_pointer() {
        for (key, step) in [("a", "a"), ("kubernetes.io/os", "kubernetes.io~1os"), ("~1", "~01"), ("~/", "~0~1")] {
            assert_eq!((escape(key).as_str(), unescape(step).as_str()), (step, key));
        }
    }
}

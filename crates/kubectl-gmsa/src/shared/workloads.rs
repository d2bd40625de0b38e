//! The words that `kubectl` has for pods and workloads.

pub use gmsa_core::admission::workload::Kind;

/// Whether a word is for pods.
pub fn is_pod(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let (word, version) = word.split_once('.').unwrap_or((&*word, ""));
    ["pod", "pods", "po"].contains(&word) && ["", "v1", "v1."].contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_the_words_of_kubectl() {
        for (word, is_of_pods) in [
            ("po", true),
            ("Pods", true),
            ("pods.v1.", true),
            ("pod.apps", false),
            ("pods.v1.apps", false),
            ("podlog", false),
        ] {
            assert_eq!(is_pod(word), is_of_pods, "{word}");
        }
    }
}

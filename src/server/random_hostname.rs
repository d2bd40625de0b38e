//! Random host names for pods that use GMSA: Windows loses the trust of pods that share an account and a host name.

/// A host name of 15 characters, the limit of NetBIOS: a letter, then letters and digits; 77 random bits. `None`
/// where the system has no randomness to give: the pod then keeps the host name that Kubernetes gives it.
pub(super) fn random_hostname() -> Option<String> {
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = [0; 15];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!(%error, "no randomness for a host name");
        return None;
    }
    // 26 and 36 do not divide 256: some letters are slightly more frequent, which costs less than one bit of the whole name.
    let letter = |(at, byte): (usize, u8)| ALPHABET.get(usize::from(byte) % if at == 0 { 26 } else { 36 });
    let name = bytes.into_iter().enumerate().filter_map(letter).map(|letter| char::from(*letter)).collect();
    Some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn host_names_are_random_dns_labels_of_fifteen_characters() {
        let names: HashSet<String> = (0..1000).filter_map(|_| random_hostname()).collect();
        assert_eq!(names.len(), 1000);
        for name in &names {
            assert_eq!(name.len(), 15, "{name}");
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{name}");
        }
    }
}

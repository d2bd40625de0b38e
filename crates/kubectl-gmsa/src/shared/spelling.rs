//! The existing name that a misspelt one is meant to be.

/// The most similar name: at most a third of its characters differ.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Docker's credential specs are files.
    let name = name.strip_suffix(".json").unwrap_or(name);
    let distances = known.map(|known| (strsim::osa_distance(known, name), known));
    distances.filter(|(distance, _)| *distance <= name.len() / 3).min().map(|(_, known)| known)
}

/// The end of the error about a name: the nearest one, if there is any.
pub fn meant<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest(name, known).map(|nearest| format!(": is {nearest} meant?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let nearest = |name| nearest(name, ["webapp1", "webapp2", "sql"].into_iter());
        assert_eq!(nearest("webap1"), Some("webapp1"));
        assert_eq!(nearest("wepapp2"), Some("webapp2"));
        assert_eq!(nearest("sql.json"), Some("sql"));
        assert_eq!(nearest("sq"), None);
        assert_eq!(nearest("print"), None);
    }
}

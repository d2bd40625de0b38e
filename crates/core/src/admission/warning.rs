//! The warnings that `kubectl` shows to the user who sent a request.
//!
//! Invariants: a line ends with the name of its rule in brackets, except the line that counts omitted ones, and has at most
//! 120 characters, because the API server and its clients cut longer ones; the text of a denial that is not enforced may have
//! 256, and no rule follows it. Names from a request are quoted, escaped, and cut rather than the sentence around them. The
//! number of lines is bounded, and no line is given twice.

use super::Denial;
use crate::{
    diagnostic::{Diagnostic, Rule},
    quote::{bare, shorten},
};

/// The most characters of a warning that clients are asked to show (`k8s.io/api/admission/v1`).
pub const MAX_CHARS: usize = 120;

/// The most characters of a warning that the API server keeps where there are many (`k8s.io/apiserver/pkg/warning`).
const MAX_CHARS_KEPT: usize = 256;

/// The most characters of all warnings of a request that the API server keeps, less those of the line that counts what is left
/// out (`truncateAtTotalRunes` in `k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
const MAX_CHARS_TOGETHER: usize = 4 * 1024 - 64;

/// The most lines of advice for one request.
const MAX_LINES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Warnings {
    lines: Vec<String>,
    left_out: usize,
}

impl Warnings {
    /// Adds a line: `sentence`, in which the next of `names` replaces each `{}`.
    pub(super) fn add(&mut self, rule: &Rule, sentence: &str, names: &[&str]) {
        self.push(rule, &text(rule, sentence, names));
    }

    /// Adds a line that needs no names.
    pub(super) fn push(&mut self, rule: &Rule, text: &str) {
        let line = format!("{} [{}]", shorten(text, room(rule)), rule.id);
        if self.lines.contains(&line) {
            return;
        }
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a line for each of these, which fit into one.
    pub(super) fn extend(&mut self, advice: impl IntoIterator<Item = Diagnostic>) {
        for Diagnostic { rule, message, .. } in advice {
            self.push(rule, &message);
        }
    }

    pub(super) fn into_lines(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.lines.push(format!("{} more GMSA warnings are left out", self.left_out));
        }
        self.lines
    }
}

/// The lines for denials that are not enforced: as many as the API server passes on.
pub(super) fn not_enforced<'d>(denials: impl IntoIterator<Item = &'d Denial>) -> Vec<String> {
    let (mut warnings, mut room) = (Warnings::default(), MAX_CHARS_TOGETHER);
    for denial in denials {
        let line = shorten(&format!("GMSA, not enforced: {denial}"), MAX_CHARS_KEPT).into_owned();
        if warnings.lines.contains(&line) {
            continue;
        }
        if let Some(rest) = room.checked_sub(line.chars().count()) {
            room = rest;
            warnings.lines.push(line);
        } else {
            warnings.left_out += 1;
        }
    }
    warnings.into_lines()
}

/// How many characters of a line are left for its text.
fn room(rule: &Rule) -> usize {
    MAX_CHARS.saturating_sub(rule.id.len() + " []".len())
}

/// The text of a line without its rule: `sentence`, in which the next of `names` replaces each `{}`.
pub(super) fn text(rule: &Rule, sentence: &str, names: &[&str]) -> String {
    let bare = sentence.replace("{}", "");
    // Two quotes around each name.
    let room_for_names = room(rule).saturating_sub(bare.chars().count() + 2 * names.len());
    let mut names = share(names, room_for_names).into_iter();
    let mut line = String::with_capacity(MAX_CHARS);
    for (position, part) in sentence.split("{}").enumerate() {
        if position > 0 {
            line.push('"');
            line.push_str(&names.next().unwrap_or_default());
            line.push('"');
        }
        line.push_str(part);
    }
    shorten(&line, room(rule)).into_owned()
}

/// The names, escaped and cut to `room` characters together: what a short one leaves goes to the longer ones.
fn share(names: &[&str], mut room: usize) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| bare(name, MAX_CHARS)).collect();
    let mut left = names.len();
    let mut by_length: Vec<&mut String> = names.iter_mut().collect();
    by_length.sort_by_key(|name| name.chars().count());
    for name in by_length {
        *name = shorten(name, room / left.max(1)).into_owned();
        room = room.saturating_sub(name.chars().count());
        left -= 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_CHARS, MAX_LINES, Warnings, text};
    use crate::diagnostic::rules::{LINUX_NODE, NOT_AUTHORIZED};

    #[test]
    fn names_are_cut_and_the_sentence_is_not() {
        let long = "a".repeat(300);
        let mut warnings = Warnings::default();
        let sentence = "service account {} may not use GMSA cred spec {}: its pods will be refused";
        warnings.add(&NOT_AUTHORIZED, sentence, &[&long, "web"]);
        assert_eq!(
            warnings.into_lines(),
            [
                "service account \"aaaaaaaaaaaaaaaaaaaaaaaaa…\" may not use GMSA cred spec \"web\": its pods will be refused [not-authorized]"
            ]
        );
    }

    #[test]
    fn long_names_share_what_the_sentence_leaves() {
        let long = "a".repeat(300);
        // The rule takes 13 characters of the line, the quotes two for each name.
        let one = text(&LINUX_NODE, "{}", &[&long]);
        assert_eq!(one, format!("\"{}…\"", "a".repeat(MAX_CHARS - 13 - 2 - 1)));
        let two = text(&LINUX_NODE, "{} {}", &[&long, &long]);
        let half = (MAX_CHARS - 13 - 4 - 1) / 2;
        assert_eq!(two, format!("\"{0}…\" \"{0}…\"", "a".repeat(half - 1)));
    }

    #[test]
    fn equal_lines_are_given_once_and_many_are_counted() {
        let mut warnings = Warnings::default();
        for n in 0..20 {
            warnings.add(&LINUX_NODE, "{} is odd", &[&n.to_string()]);
            warnings.add(&LINUX_NODE, "{} is odd", &["0"]);
        }
        let lines = warnings.into_lines();
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines[MAX_LINES], "4 more GMSA warnings are left out");
    }

    proptest! {
        #[test]
        fn a_line_is_never_too_long(name in any::<String>(), other in ".{0,400}") {
            let mut warnings = Warnings::default();
            warnings.add(&LINUX_NODE, "{} and {}: two names", &[&name, &other]);
            warnings.push(&LINUX_NODE, &text(&NOT_AUTHORIZED, "{}", &[&other]));
            for line in warnings.into_lines() {
                prop_assert!(line.chars().count() <= MAX_CHARS, "{line}");
                prop_assert!(line.ends_with(" [linux-node]") && !line.contains('\n'), "{line}");
            }
        }
    }
}

//! Strings from outside, from a file, a pod, a client or an API server, made fit to be read by people.
//!
//! Invariants: what is escaped here holds no terminal control, no character that hides others, no start of a command of a pipeline's log
//! and, unless it says otherwise, no line break; a string is cut by one of the bounds below, or by one that Kubernetes sets for its place, and
//! never in the middle of a character.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

pub mod shell;

/// Prefixes that start a command anywhere in a line of a pipeline's log: `##[…]` for GitHub (`ActionCommand.TryParse` of its runner), `##vso[…]` for
/// Azure Pipelines.
const LOG_COMMAND: &str = "##";

/// The most characters of a wrong value in a finding: enough to find it by. It may be anything, a password too.
pub const VALUE: usize = 60;

/// The most characters of a name: the longest that Kubernetes accepts.
pub const NAME: usize = 253;

/// The most characters of what another program says, and of a cell of a table: four names, and words around them.
pub const MESSAGE: usize = 1024;

/// The string up to `most` characters.
pub fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The string in at most `most` characters; the last one marks where the rest was cut.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if cut(text, most).len() == text.len() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{}…", cut(text, most.saturating_sub(1))))
    }
}

/// The string in quotes, escaped, up to `most` characters of it.
pub fn quoted(text: &str, most: usize) -> String {
    let head = cut(text, most);
    format!("{head:?}{}", if head.len() < text.len() { "…" } else { "" })
}

/// The string escaped, up to `most` characters of it.
pub fn bare(text: &str, most: usize) -> String {
    cut(text, most).chars().flat_map(char::escape_debug).collect()
}

/// The output of another program, on one line within [`MESSAGE`].
pub fn remark(text: &str) -> String {
    shorten(text.trim(), MESSAGE).replace(char::is_control, " ")
}

/// Up to five names, and the number of the others.
pub fn first_five<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(5).map(|name| name.as_ref().to_owned()).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A string from a pod as it is put into a message, up to [`NAME`] characters of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    pub fn new(text: &str) -> Self {
        Self(quoted(text, NAME))
    }

    /// Without quotes: for a kind, which the API server gives.
    pub fn bare(text: &str) -> Self {
        Self(bare(text, NAME))
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text on one line: control characters, line breaks and characters that are invisible or turn the direction of
/// writing are escaped, and commands of a pipeline's log.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(hides) && !text.contains(LOG_COMMAND) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' | '\r' | '\n' => out.extend(c.escape_default()),
            c if hides(c) || (c == '#' && out.ends_with('#')) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The text with its line feeds, each line made safe like [`one_line`].
pub fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// A JSON text, in which such characters occur only in strings, in ASCII where it would hide something or begin a command of a pipeline's log.
pub fn json(text: &str) -> String {
    json_without(text, |c, before| c != '\n' && (hides(c) || (c == '#' && before.ends_with('#'))))
}

/// A JSON text with escapes for the characters that `is_escaped` says, given each with the text before it.
pub fn json_without(text: &str, is_escaped: impl Fn(char, &str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c, &out) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character is invisible, or changes how others are shown.
fn hides(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Directions.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line breaks, and what has no width.
            | '\u{2028}' | '\u{2029}' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            // Tags.
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_cut_between_two_characters() {
        assert_eq!((cut("éàü", 2), cut("éàü", 3), cut("", 0)), ("éà", "éàü", ""));
        assert!(matches!(shorten("éàü", 3), Cow::Borrowed("éàü")));
        assert_eq!((&*shorten("éàü!", 3), &*shorten("ab", 0)), ("éà…", "…"));
        assert_eq!((quoted("a\n\"", 2), quoted("a\n\"", 3)), (r#""a\n"…"#.to_owned(), r#""a\n\"""#.to_owned()));
        assert_eq!(bare("a\u{1b}[31m", 4), r"a\u{1b}[3");
    }

    #[test]
    fn what_another_program_says_is_one_line_within_the_bound() {
        assert_eq!(remark("a\r\nb\u{1b}[0m\n"), "a  b [0m");
        assert_eq!(remark(&"x".repeat(MESSAGE)), "x".repeat(MESSAGE));
        assert_eq!(remark(&"é".repeat(MESSAGE + 1)), format!("{}…", "é".repeat(MESSAGE - 1)));
    }

    #[test]
    fn what_hides_is_escaped_and_nothing_else() {
        assert!(matches!(one_line("Grüße 日本 😀 \\n"), Cow::Borrowed("Grüße 日本 😀 \\n")));
        assert_eq!(one_line("a\r\n\tb\u{1b}[2J\u{7f}\u{9b}"), "a\\r\\n\\tb\\u{1b}[2J\\u{7f}\\u{9b}");
        assert_eq!(one_line("\u{202e}x\u{2066}\u{2028}\u{feff}"), "\\u{202e}x\\u{2066}\\u{2028}\\u{feff}");
        assert_eq!(lines("a\nb\r\u{202e}\n"), "a\nb\\r\\u{202e}\n");
    }

    #[test]
    fn no_text_begins_a_command_of_a_log() {
        assert_eq!(
            one_line("# a ##[add-path]b ##vso[task.x]###"),
            "# a #\\u{23}[add-path]b #\\u{23}vso[task.x]#\\u{23}#"
        );
        assert_eq!(json(r###"{"a": "##[error]#"}"###), r##"{"a": "#\u0023[error]#"}"##);
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({"\u{202e}": "a\u{9b}\u{7f}\u{1b}\n\u{e0041}é"});
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(|c| hides(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

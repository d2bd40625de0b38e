//! Text from files and clusters, made safe to print: it contains no terminal control and no line break.

use std::{borrow::Cow, fmt::Write as _};

/// The string on one line: control characters, line breaks and characters that are invisible or turn the direction of
/// writing are escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' | '\r' | '\n' => out.extend(c.escape_default()),
            c if hides(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The string with its line feeds, each line made safe like [`one_line`].
pub fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// A string of JSON, in which such characters occur only in strings, in ASCII where it would hide something.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !hides(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
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
    fn what_hides_is_escaped_and_nothing_else() {
        assert!(matches!(one_line("Grüße 日本 😀 \\n"), Cow::Borrowed("Grüße 日本 😀 \\n")));
        assert_eq!(one_line("a\r\n\tb\u{1b}[2J\u{7f}\u{9b}"), "a\\r\\n\\tb\\u{1b}[2J\\u{7f}\\u{9b}");
        assert_eq!(one_line("\u{202e}x\u{2066}\u{2028}\u{feff}"), "\\u{202e}x\\u{2066}\\u{2028}\\u{feff}");
        assert_eq!(lines("a\nb\r\u{202e}\n"), "a\nb\\r\\u{202e}\n");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({"\u{202e}": "a\u{9b}\u{7f}\u{1b}\n\u{e0041}é"});
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(|c| hides(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

//! The words of a Corefile.

use super::{CorefileError, MAX_WORDS};

/// A word, without the quotes around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    /// Counted from 1.
    pub line: usize,
    /// Whether it is the first word on its line.
    pub starts_line: bool,
}

/// Splits a text into words. `#` starts a comment also within a word; quotes count only at the start of a word.
pub(super) fn words(text: &str) -> Result<Vec<Word>, CorefileError> {
    let mut words: Vec<Word> = Vec::new();
    // The line on which the last word ended.
    let (mut line, mut last_line) = (1, 0);
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '\n' => line += 1,
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            c if c.is_whitespace() => {}
            first => {
                let mut word = Word { text: String::new(), line, starts_line: line > last_line };
                let is_whole = if first == '"' {
                    quoted(&mut rest, &mut word.text, &mut line)
                } else {
                    word.text.push(first);
                    while let Some(c) = rest.next_if(|c| *c == '\r' || (!c.is_whitespace() && *c != '#')) {
                        word.text.extend(Some(c).filter(|c| *c != '\r'));
                    }
                    true
                };
                last_line = line;
                // An open empty quotation at the end of the text is not a word.
                if is_whole || !word.text.is_empty() {
                    words.push(word);
                }
                if words.len() > MAX_WORDS {
                    return Err(CorefileError::TooLarge);
                }
            }
        }
    }
    Ok(words)
}

/// Reads up to the closing quote, which a backslash escapes. Returns whether there is one.
fn quoted(rest: &mut impl Iterator<Item = char>, text: &mut String, line: &mut usize) -> bool {
    let mut is_escaped = false;
    for c in rest {
        match c {
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            '"' if !is_escaped => return true,
            '\n' => *line += 1,
            _ => {}
        }
        if is_escaped && c != '"' {
            text.push('\\');
        }
        text.push(c);
        is_escaped = false;
    }
    false
}

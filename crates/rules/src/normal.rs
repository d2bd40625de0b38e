//! The normal form of a text. Text pasted from terminals, logs, YAML, JSON and Go becomes equal in it.
//!
//! Invariant: the form is made in one pass, and is at most 1.5 times as long as the text (a letter in lower case can be one byte longer).

/// The marks for an opening and a closing double quote.
pub(super) const OPENS: char = '\u{1}';
pub(super) const ENDS: char = '\u{2}';

/// Frames, prompts and marks of quoted lines.
const FRAMES: [&str; 4] = [">", "|", "+", "│"];

/// In lower case, with one space between words, without escapes, frames and colours, and with [`OPENS`] and [`ENDS`] for double quotes.
pub(super) fn normal(text: &str) -> String {
    let mut form = Form { out: String::with_capacity(text.len()), quotes: Vec::new() };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = form.take(c, rest);
        rest = rest.get(taken..).unwrap_or_default();
    }
    form.space();
    form.out.truncate(form.out.trim_end().len());
    form.out
}

struct Form {
    out: String,
    /// The open strings, each with the number of backslashes before its quotes.
    quotes: Vec<usize>,
}

impl Form {
    /// Takes the token that starts with `c`, and returns its length.
    fn take(&mut self, c: char, rest: &str) -> usize {
        match c {
            '\\' => return self.escape(rest),
            '\'' => return self.apostrophes(rest),
            // A colour of a terminal.
            '\u{1b}' if rest.starts_with("\u{1b}[") => {
                let end = rest.char_indices().take(16).find(|(_, c)| c.is_ascii_alphabetic());
                return end.map_or(1, |(end, _)| end + 1);
            }
            c => self.push(c, 0),
        }
        c.len_utf8()
    }

    /// A backslash: a separator in a name or path, or the start of an escape.
    fn escape(&mut self, rest: &str) -> usize {
        let after = rest.trim_start_matches('\\');
        let run = rest.len() - after.len();
        let mut next = after.chars();
        let c = next.next().unwrap_or(' ');
        let code = after.get(1..5).filter(|_| c == 'u').and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let Some(c) = code.and_then(char::from_u32) {
            self.push(c, run);
            return run + 5;
        }
        // In a string whose quotes have n backslashes, 2n + 1 backslashes are an escape. Outside, `\n` can be part of a path.
        let is_escape = match self.quotes.last() {
            Some(before) => run <= 2 * before + 1,
            None => run == 1 && !next.next().is_some_and(char::is_lowercase),
        };
        match c {
            '"' => self.push(c, run),
            'n' | 'r' | 't' if is_escape => self.space(),
            _ => {
                let is_within = self.out.ends_with(|c: char| c.is_alphanumeric() || ":.$-_%)".contains(c));
                self.out.push_str(if run == 1 || is_within { "\\" } else { "\\\\" });
                return run;
            }
        }
        run + 1
    }

    /// YAML doubles apostrophes within single quotes. Two without adjacent words are an empty string.
    fn apostrophes(&mut self, rest: &str) -> usize {
        let after = rest.trim_start_matches('\'');
        let run = rest.len() - after.len();
        let is_beside_word = self.out.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        let is_doubled = run.is_multiple_of(2) && (run > 2 || is_beside_word);
        self.out.extend(std::iter::repeat_n('\'', if is_doubled { run / 2 } else { run }));
        run
    }

    /// A character after this many backslashes.
    fn push(&mut self, c: char, backslashes: usize) {
        match c {
            c if c.is_whitespace() => self.space(),
            '"' | '\u{201c}' | '\u{201d}' => self.quote(backslashes),
            '\u{2018}' | '\u{2019}' => self.out.push('\''),
            OPENS | ENDS => {}
            c => self.out.extend(c.to_lowercase()),
        }
        // Microsoft's page has a line break here, the events do not.
        if c == 'n' && self.out.ends_with("plug-in") {
            self.out.truncate(self.out.len() - "-in".len());
            self.out.push_str("in");
        }
    }

    fn quote(&mut self, backslashes: usize) {
        if let Some(open) = self.quotes.iter().position(|open| *open == backslashes) {
            self.quotes.truncate(open);
            self.out.push(ENDS);
        } else {
            self.quotes.push(backslashes);
            self.out.push(OPENS);
        }
    }

    /// Ends a word.
    fn space(&mut self) {
        for frame in FRAMES {
            let before = self.out.strip_suffix(frame).filter(|before| before.is_empty() || before.ends_with(' '));
            if let Some(length) = before.map(str::len) {
                self.out.truncate(length);
                return;
            }
        }
        if !self.out.is_empty() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_form() {
        for (text, form) in [
            ("  The  RPC\r\n\tServer\u{a0}is ", "the rpc server is"),
            ("> a\n> b", "a b"),
            ("│ a |\n│ b", "a b"),
            ("a + b+c", "a b+c"),
            ("didn''t match Pod''s", "didn't match pod's"),
            ("user ''. user ''''.", "user ''. user ''."),
            ("user ''App''", "user 'app'"),
            ("the container\u{2019}s plug-in", "the container's plugin"),
            (r#"{"a": "x \"y\" z"}"#, "{\u{1}a\u{2}: \u{1}x \u{1}y\u{2} z\u{2}}"),
            (r#""\u0022y\u0022 \u003cb\u003e""#, "\u{1}\u{1}y\u{2} <b>\u{2}"),
            (r#""Code:\t0x12\nnext C:\\new""#, "\u{1}code: 0x12 next c:\\new\u{2}"),
            (r"Code:\t\t0x12\nResult", "code: 0x12 result"),
            (r"nt authority\network service", r"nt authority\network service"),
            (r#""nt authority\\network service""#, "\u{1}nt authority\\network service\u{2}"),
            (r"path '\\fs\share'", r"path '\\fs\share'"),
            (r#""path '\\\\fs\\share'""#, "\u{1}path '\\\\fs\\share'\u{2}"),
            ("\u{1b}[31mfail\u{1b}[0m: x", "fail: x"),
            ("\u{1}\u{2}\u{1b}", "\u{1b}"),
            ("", ""),
        ] {
            assert_eq!(normal(text), form, "{text}");
        }
    }
}

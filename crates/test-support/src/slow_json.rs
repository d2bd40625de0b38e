//! JSON written a second time, slowly and without the code under test: texts are read into trees, trees are compared, and a
//! text is checked for being what Go's `encoding/json` prints of a tree.

use std::{iter::Peekable, str::Chars};

/// Deeper texts are not read here: where exactly the code under test stops is not what is compared.
const MAX_DEPTH: usize = 100;

#[derive(Debug, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    /// In the order of the text.
    Object(Vec<(String, Tree)>),
}

/// What a text is.
pub enum Read {
    Json(Tree),
    NotJson,
    TooDeep,
}

pub fn read(text: &str) -> Read {
    let mut reader = Reader { chars: text.chars().peekable(), too_deep: false };
    let tree = reader.value(0);
    reader.space();
    match tree {
        Some(tree) if reader.chars.peek().is_none() => Read::Json(tree),
        _ if reader.too_deep => Read::TooDeep,
        _ => Read::NotJson,
    }
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    too_deep: bool,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).is_some() {}
    }

    fn word(&mut self, word: &str) -> Option<()> {
        word.chars().all(|c| self.chars.next() == Some(c)).then_some(())
    }

    fn value(&mut self, depth: usize) -> Option<Tree> {
        if depth > MAX_DEPTH {
            self.too_deep = true;
            return None;
        }
        self.space();
        match *self.chars.peek()? {
            'n' => self.word("null").map(|()| Tree::Null),
            't' => self.word("true").map(|()| Tree::Bool(true)),
            'f' => self.word("false").map(|()| Tree::Bool(false)),
            '"' => self.text().map(Tree::Text),
            '[' => self.items(']', |reader| reader.value(depth + 1)).map(Tree::List),
            '{' => {
                let entry = |reader: &mut Self| {
                    reader.space();
                    let key = reader.text()?;
                    reader.space();
                    reader.word(":")?;
                    Some((key, reader.value(depth + 1)?))
                };
                self.items('}', entry).map(Tree::Object)
            }
            _ => self.number(),
        }
    }

    fn items<T>(&mut self, end: char, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.chars.next();
        self.space();
        let mut items = Vec::new();
        if self.chars.next_if_eq(&end).is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            self.space();
            match self.chars.next()? {
                ',' => {}
                c => return (c == end).then_some(items),
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        self.word("\"")?;
        let mut units = Vec::new();
        loop {
            let c = match self.chars.next()? {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => match self.chars.next()? {
                    c @ ('"' | '\\' | '/') => c,
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'u' => {
                        let digits: String = self.chars.by_ref().take(4).collect();
                        let plain = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                        units.push(u16::from_str_radix(&digits, 16).ok().filter(|_| plain)?);
                        continue;
                    }
                    _ => return None,
                },
                '\0'..='\x1f' => return None,
                c => c,
            };
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
    }

    fn number(&mut self) -> Option<Tree> {
        let mut text = String::new();
        while let Some(c) = self.chars.next_if(|c| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')) {
            text.push(c);
        }
        let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        let valid = is_number(digits)
            && (digits == "0" || !digits.starts_with('0'))
            && fraction.is_none_or(is_number)
            && exponent.is_none_or(|exponent| is_number(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
        if !valid {
            return None;
        }
        match text.parse() {
            Ok(int) => Some(Tree::Int(int)),
            Err(_) => text.parse().ok().filter(|float: &f64| float.is_finite()).map(Tree::Float),
        }
    }
}

/// Whether some object in it holds a key twice.
pub fn has_duplicate_key(tree: &Tree) -> bool {
    match tree {
        Tree::List(items) => items.iter().any(has_duplicate_key),
        Tree::Object(entries) => entries
            .iter()
            .enumerate()
            .any(|(at, (key, value))| entries[..at].iter().any(|(other, _)| other == key) || has_duplicate_key(value)),
        _ => false,
    }
}

/// Whether two trees without duplicate keys are the same value.
pub fn equal(one: &Tree, other: &Tree) -> bool {
    match (one, other) {
        (Tree::Int(int), Tree::Float(float)) | (Tree::Float(float), Tree::Int(int)) => {
            #[expect(clippy::cast_possible_truncation, reason = "integral and below 1e38: exact")]
            let same = float.fract() == 0.0 && float.abs() < 1e38 && *float as i128 == i128::from(*int);
            same
        }
        (Tree::List(one), Tree::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Tree::Object(one), Tree::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.iter().any(|(name, other)| name == key && equal(one, other)))
        }
        _ => one == other,
    }
}

/// What is left of `text` behind what Go prints of a tree without duplicate keys; `None` where it prints something else.
pub fn after_printed<'t>(text: &'t str, tree: &Tree) -> Option<&'t str> {
    match tree {
        Tree::Null => text.strip_prefix("null"),
        Tree::Bool(value) => text.strip_prefix(&value.to_string()),
        Tree::Int(int) => text.strip_prefix(&int.to_string()),
        Tree::Float(float) => {
            let end = text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e')).unwrap_or(text.len());
            let (number, rest) = text.split_at(end);
            is_printed_float(number, *float).then_some(rest)
        }
        Tree::Text(value) => text.strip_prefix(&quoted(value)),
        Tree::List(items) => {
            let mut rest = text.strip_prefix('[')?;
            for (at, item) in items.iter().enumerate() {
                rest = after_printed(if at > 0 { rest.strip_prefix(',')? } else { rest }, item)?;
            }
            rest.strip_prefix(']')
        }
        Tree::Object(entries) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
            let mut rest = text.strip_prefix('{')?;
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                rest = if at > 0 { rest.strip_prefix(',')? } else { rest };
                rest = after_printed(rest.strip_prefix(&quoted(key))?.strip_prefix(':')?, value)?;
            }
            rest.strip_prefix('}')
        }
    }
}

/// The shortest number that reads back the same. Where two are equally short, which one it is is not said here.
fn is_printed_float(text: &str, float: f64) -> bool {
    if float == 0.0 {
        return text == "0";
    }
    let shortest = format!("{:e}", float.abs());
    let count = |number: &str| {
        let mantissa = number.split('e').next().unwrap_or_default().replace('.', "");
        mantissa.trim_start_matches('0').trim_end_matches('0').len()
    };
    let plain = text.strip_prefix('-').unwrap_or(text);
    let by_exponent = !(1e-6..1e21).contains(&float.abs());
    let exponent = plain.split_once('e');
    text.parse() == Ok(float)
        && text.starts_with('-') == float.is_sign_negative()
        && count(plain) == count(&shortest)
        && by_exponent == exponent.is_some()
        && !plain.split('e').next().unwrap_or_default().ends_with('.')
        && (!plain.contains('.') || !plain.split('e').next().unwrap_or_default().ends_with('0'))
        && exponent.is_none_or(|(mantissa, exponent)| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or_default();
            !digits.starts_with('0') && mantissa.find('.').unwrap_or(mantissa.len()) == 1
        })
        && (by_exponent || !plain.starts_with('0') || plain.starts_with("0."))
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

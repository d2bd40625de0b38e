//! JSON compared and printed a second time, slowly and without the code under test: `serde_json` reads texts into trees, which are
//! compared, and a text is checked for being what Go's `encoding/json` prints of a tree.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    /// In the order of the text.
    #[serde(deserialize_with = "entries")]
    Object(Vec<(String, Tree)>),
}

fn entries<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<(String, Tree)>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, Tree)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| map.next_entry().transpose()).collect()
        }
    }
    input.deserialize_map(Entries)
}

/// The tree of a text; `None` where it is not JSON, or is too deep.
pub fn read(text: &str) -> Option<Tree> {
    serde_json::from_str(text).ok()
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
    let json = serde_json::to_string(text).unwrap();
    let escaped = json.chars().map(|c| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    escaped.collect()
}

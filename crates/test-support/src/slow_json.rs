//! JSON compared and printed a second time, slowly and without the code under test: `serde_json` reads texts into trees, which are
//! compared, and printed as Go's `encoding/json` prints them.

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

/// A tree without duplicate keys as Go prints it.
pub fn printed(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".to_owned(),
        Tree::Bool(value) => value.to_string(),
        Tree::Int(int) => int.to_string(),
        Tree::Float(float) => printed_float(*float),
        Tree::Text(text) => quoted(text),
        Tree::List(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(",")),
        Tree::Object(entries) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|one, other| one.0.cmp(&other.0));
            let fields: Vec<_> = sorted.iter().map(|(key, value)| quoted(key) + ":" + &printed(value)).collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

/// The shortest number that reads back the same, of two that are equally near the even one; with an exponent where it is very small
/// or very large.
fn printed_float(float: f64) -> String {
    let shortest = format!("{float:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let precision = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    // Rust takes the even one only if the format gives the number of digits.
    let (even, places) = (format!("{float:.precision$e}"), i32::try_from(precision).unwrap() - exponent);
    let (mantissa, _) = even.split_once('e').unwrap();
    match usize::try_from(places) {
        _ if float == 0.0 => "0".to_owned(),
        _ if !(-6..21).contains(&exponent) => format!("{mantissa}e{exponent:+}"),
        Ok(places) => format!("{float:.places$}"),
        Err(_) => mantissa.replace('.', "") + &"0".repeat(places.unsigned_abs() as usize),
    }
}

fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap();
    let escaped = json.chars().map(|c| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    escaped.collect()
}

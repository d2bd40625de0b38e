//! Whether a pod's contents text and its credential spec are equal as JSON values.
//!
//! Objects are unordered and white space never matters. A duplicate key, at any level, makes texts unequal,
//! because another parser may use the other value, and with it another account. An integer that fits an `int64` is compared
//! exactly; any other number is rounded to a `float64`, as by the API server that stored it.

use std::{cell::OnceCell, cmp::Ordering};

use serde_json::{Number, Value};

use super::{Contents, MAX_CONTENTS_BYTES, text};
use crate::json::structure;

/// How a contents text differs from its credential spec. It never contains a part of either text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The text is longer than [`MAX_CONTENTS_BYTES`].
    #[error("they are longer than the 64 KiB that the API server accepts")]
    TooLong,
    /// The text is not JSON, or has 128 levels or more.
    #[error("they are not valid JSON")]
    NotJson,
    /// An object has a duplicate key.
    #[error("a key stands twice in them")]
    DuplicateKey,
    /// The text has another value.
    #[error("they hold other values{}", if *as_injected { AS_INJECTED } else { "" })]
    Value {
        /// The text is in the form that the webhook injects: it may come from an earlier version of the credential spec.
        as_injected: bool,
    },
}

const AS_INJECTED: &str =
    ", in the form in which the webhook writes them: the resource may have changed meanwhile, try again";

/// The contents of a credential spec, to compare many texts with: they are parsed once, and only for a text that is not the
/// same byte for byte.
#[derive(Debug)]
pub struct ExpectedContents<'s> {
    text: &'s str,
    /// `None` where it is not JSON: [`Contents::too_long`].
    value: OnceCell<Option<Value>>,
}

impl<'s> ExpectedContents<'s> {
    /// The contents that pods with this credential spec must carry.
    pub fn new(spec: &'s Contents) -> Self {
        Self { text: spec.text(), value: OnceCell::new() }
    }

    /// Compares with the text that a pod carries.
    ///
    /// # Errors
    /// How they differ.
    pub fn compare(&self, pod_text: &str) -> Result<(), Difference> {
        // A longer text is cut when the pod is parsed.
        if pod_text.len() > MAX_CONTENTS_BYTES {
            return Err(Difference::TooLong);
        }
        // The usual case: the text that the mutating webhook injected, unchanged.
        if pod_text == self.text {
            return Ok(());
        }
        let theirs: Value = serde_json::from_str(pod_text).map_err(|_| Difference::NotJson)?;
        // The value has one of two equal keys. The text has a colon behind each, and no other outside its strings.
        if structure(pod_text).filter(|(_, byte)| *byte == b':').count() != keys(&theirs) {
            return Err(Difference::DuplicateKey);
        }
        let ours = self.value.get_or_init(|| serde_json::from_str(self.text).ok());
        if ours.as_ref().is_some_and(|ours| ours.is_object() && equal(&theirs, ours)) {
            return Ok(());
        }
        Err(Difference::Value { as_injected: theirs.is_object() && text::print(&theirs) == pod_text })
    }
}

/// Compares the text that a pod carries with the contents of the credential spec that it names.
///
/// # Errors
/// How they differ.
pub fn compare(pod_text: &str, spec: &Contents) -> Result<(), Difference> {
    ExpectedContents::new(spec).compare(pod_text)
}

/// Whether two JSON values are equal, numbers by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => equal_numbers(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

fn equal_numbers(a: &Number, b: &Number) -> bool {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64().partial_cmp(&b.as_f64()) == Some(Ordering::Equal),
        _ => false,
    }
}

/// The number as an exact integer, `1.0` and `1e3` included, if it is one and its size is below 1e38.
fn integer(number: &Number) -> Option<i128> {
    if let Some(int) = number.as_i64() {
        return Some(int.into());
    }
    // 1e38 is below the maximum of i128; from there on a float64 is compared as one.
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e38)?;
    #[expect(clippy::cast_possible_truncation, reason = "integral and within range: exact")]
    Some(float as i128)
}

/// How many keys the objects of a value have.
fn keys(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(keys).sum(),
        Value::Object(entries) => entries.values().map(|value| keys(value) + 1).sum(),
        _ => 0,
    }
}

//! The contents text that a pod carries, kept as the JSON string that stands in the review.
//!
//! What always holds: the string can be read. Nearly always it is just what the mutating webhook wrote, which is known
//! without reading it: it is full of escapes.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected},
};
use serde_json::value::RawValue;

use crate::credspec::{
    Contents,
    compare::{Difference, compare},
};

/// What stands in `windowsOptions.gmsaCredentialSpec`. Not validated. Two are equal where their texts are.
#[derive(Clone, Copy, Debug)]
pub struct Carried<'a> {
    /// A JSON string, quotes included.
    json: &'a str,
}

impl<'a> Carried<'a> {
    /// The text, without JSON's escapes.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        // It was read once, where that could fail at all; should this be wrong, no credential spec is the empty text.
        read(self.json).unwrap_or_default()
    }

    /// Whether it says the same as the credential spec that the pod names.
    ///
    /// # Errors
    /// In what way they differ.
    pub fn compare(self, spec: &Contents) -> Result<(), Difference> {
        if self.json == spec.quoted() { Ok(()) } else { compare(&self.text(), spec) }
    }
}

impl PartialEq for Carried<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json || self.text() == other.text()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Carried<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(input)?.get();
        if !json.starts_with('"') {
            return Err(D::Error::invalid_type(Unexpected::Other("another type"), &"a string"));
        }
        // Of the escapes only these can be wrong in a string that was stepped over.
        if json.contains(r"\u") && read(json).is_none() {
            return Err(D::Error::custom("an escape in a string that makes no character"));
        }
        Ok(Self { json })
    }
}

fn read(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str(json).ok().map(|Borrowed(text)| text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn carried(json: &str) -> Result<Option<Carried<'_>>, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_string_is_what_it_says_however_it_is_written() {
        let plain = carried(r#""{\"a\":\"é\"}""#).unwrap().unwrap();
        assert_eq!(plain.text(), r#"{"a":"é"}"#);
        for same in [r#" "{\u0022a\":\"\u00e9\"}""#, r#""{\"a\u0022:\"é\"}" "#] {
            assert_eq!(carried(same), Ok(Some(plain)), "{same}");
        }
        assert_ne!(carried(r#""{\"a\":\"e\"}""#), Ok(Some(plain)));
        assert_eq!(carried("null"), Ok(None));
        assert_eq!(carried(r#""\ud83d\ude00""#).unwrap().unwrap().text(), "😀");
    }

    #[test]
    fn what_is_no_string_that_can_be_read_is_refused() {
        let not_a_string = "invalid type: another type, expected a string";
        for (json, error) in [
            ("1", not_a_string),
            ("{}", not_a_string),
            (r#"["x"]"#, not_a_string),
            ("true", not_a_string),
            (r#""\ud800""#, "an escape in a string that makes no character"),
            (r#""\ud800\u0041""#, "an escape in a string that makes no character"),
            (r#""\x""#, "invalid escape at line 1 column 3"),
            ("\"a\nb\"", "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 2"),
        ] {
            assert_eq!(carried(json), Err(error.to_owned()), "{json}");
        }
    }

    #[test]
    fn it_is_compared_as_json_whether_or_not_it_stands_there_as_it_was_written() {
        let spec = Contents::of(json!({"a": "<é>", "b": [1]}).as_object().unwrap());
        let reordered = Value::from(r#"{ "b":[1], "a":"<é>" }"#).to_string();
        let other = Value::from(r#"{"a":"<é>","b":[2]}"#).to_string();
        for (json, compared) in [
            (spec.quoted(), Ok(())),
            (&Value::from(spec.text()).to_string(), Ok(())),
            (&reordered, Ok(())),
            (&other, Err(Difference::Value { as_injected: false })),
            ("\"\"", Err(Difference::NotJson)),
        ] {
            assert_eq!(carried(json).unwrap().unwrap().compare(&spec), compared, "{json}");
        }
    }
}

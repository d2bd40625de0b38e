//! The contents text that a pod carries.

use serde::{Deserialize, Deserializer};

use crate::{
    credspec::{
        Contents, MAX_CONTENTS_BYTES,
        compare::{Difference, Expected},
    },
    json::{cut, string},
};

/// The value of `windowsOptions.gmsaCredentialSpec`, cut where it is longer than the API server accepts. Not validated.
#[derive(Clone, Copy, Debug)]
pub struct PodContents<'p>(&'p str);

impl<'p> PodContents<'p> {
    pub fn text(self) -> &'p str {
        self.0
    }

    /// Compares it with the credential spec that the pod names.
    ///
    /// # Errors
    /// How they differ.
    pub fn compare(self, spec: &Contents) -> Result<(), Difference> {
        self.compare_to(&Expected::new(spec))
    }

    /// The same, where several slots name one credential spec.
    pub(crate) fn compare_to(self, expected: &Expected<'_>) -> Result<(), Difference> {
        if self.is_cut() { Err(Difference::TooLong) } else { expected.compare(self.0) }
    }

    /// Whether both are the same text, byte for byte. A text that is cut equals no other.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.0 == other.0 && !self.is_cut()
    }

    fn is_cut(self) -> bool {
        self.0.len() > MAX_CONTENTS_BYTES
    }
}

/// The text as it is kept.
#[derive(Clone, Debug)]
pub(super) struct ContentsText(Box<str>);

impl ContentsText {
    pub(super) fn as_contents(&self) -> PodContents<'_> {
        PodContents(&self.0)
    }
}

impl<'de> Deserialize<'de> for ContentsText {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "a string", |text| Some(Self(cut(text, MAX_CONTENTS_BYTES).into())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(json: &str) -> Result<Option<String>, String> {
        let text: Result<Option<ContentsText>, _> = serde_json::from_str(json);
        text.map(|text| text.map(|text| text.0.into())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_string_is_what_it_says_however_it_is_written() {
        for (json, text) in [
            (r#""{\"a\":\"é\"}""#, r#"{"a":"é"}"#),
            (r#" "{\u0022a\":\"\u00e9\"}""#, r#"{"a":"é"}"#),
            (r#""\ud83d\ude00""#, "😀"),
        ] {
            assert_eq!(read(json), Ok(Some(text.to_owned())), "{json}");
        }
        assert_eq!(read("null"), Ok(None));
    }

    #[test]
    fn what_is_no_string_that_can_be_read_is_refused() {
        for json in ["1", "{}", r#"["x"]"#, "true", r#""\ud800""#, r#""\ud800\u0041""#, r#""\x""#, "\"a\nb\""] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_and_differs_from_everything() {
        let whole = "é".repeat(MAX_CONTENTS_BYTES / 2);
        assert_eq!(read(&Value::from(whole.clone()).to_string()), Ok(Some(whole.clone())));
        let long = ContentsText(read(&Value::from(whole.repeat(3)).to_string()).unwrap().unwrap().into());
        assert_eq!(long.0.len(), MAX_CONTENTS_BYTES + 2);
        assert!(PodContents(&whole).is_same(PodContents(&whole)));
        assert!(!long.as_contents().is_same(long.as_contents()));
        let spec = Contents::of(json!({"a": "x".repeat(MAX_CONTENTS_BYTES)}).as_object().unwrap());
        assert_eq!(PodContents(spec.text()).compare(&spec), Err(Difference::TooLong));
    }
}

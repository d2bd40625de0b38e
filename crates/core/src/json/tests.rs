//! Bounded texts, and errors without values.

use serde_json::json;

use super::*;
use crate::credspec::MAX_CONTENTS_BYTES;

fn read<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| explain(&error, json, json))
}

#[test]
fn a_text_is_cut_at_a_character_and_is_longer_than_a_whole_one() {
    for (text, kept) in [
        ("x".repeat(MAX_TEXT), MAX_TEXT),
        ("x".repeat(MAX_TEXT + 1), MAX_TEXT + 1),
        ("x".repeat(8 * MAX_TEXT), MAX_TEXT + 1),
        ("€".repeat(MAX_TEXT), MAX_TEXT + 1),
        ("é".repeat(MAX_TEXT), MAX_TEXT + 2),
        ("\n".repeat(MAX_TEXT + 5), MAX_TEXT + 1),
    ] {
        let cut: Text = read(&json!(text).to_string()).unwrap();
        assert_eq!(cut.len(), kept);
        assert!(text.starts_with(&*cut));
    }
}

#[test]
fn a_string_is_what_it_says_however_it_is_written() {
    for (json, text) in [
        (r#""{\"a\":\"é\"}""#, r#"{"a":"é"}"#),
        (r#" "{\u0022a\":\"\u00e9\"}""#, r#"{"a":"é"}"#),
        (r#""\ud83d\ude00""#, "😀"),
    ] {
        assert_eq!(read::<Option<Text>>(json).unwrap().as_deref(), Some(text), "{json}");
    }
    assert_eq!(read::<Option<Text>>("null"), Ok(None));
}

#[test]
fn what_is_no_string_that_can_be_read_is_refused() {
    for json in ["1", "{}", r#"["x"]"#, "true", r#""\ud800""#, r#""\ud800\u0041""#, r#""\x""#, "\"a\nb\""] {
        assert!(read::<Option<Text>>(json).is_err(), "{json}");
    }
}

#[test]
fn each_kind_of_text_has_its_own_bound() {
    let whole = "é".repeat(MAX_CONTENTS_BYTES / 2);
    for (text, kept) in [(whole.clone(), MAX_CONTENTS_BYTES), (whole.repeat(3), MAX_CONTENTS_BYTES + 2)] {
        let read: Text<MAX_CONTENTS_BYTES> = read(&json!(text).to_string()).unwrap();
        assert_eq!(read.len(), kept);
        assert!(text.starts_with(&*read));
    }
}

#[test]
fn no_error_grows_with_the_value_that_is_wrong() {
    let long = json!("\u{301}".repeat(100_000)).to_string();
    let column = long.len();
    assert_eq!(read::<Object<()>>(&long).unwrap_err(), format!("expected an object at line 1 column {column}"));
    assert_eq!(read::<Flag>(&long).unwrap_err(), format!("expected a boolean at line 1 column {column}"));
    let list = |json: &str| {
        let mut input = serde_json::Deserializer::from_str(json);
        fold(&mut input, 0, |count, _: Text| *count += 1).map_err(|error| explain(&error, json, json))
    };
    assert_eq!(list(&long).unwrap_err(), format!("expected a sequence at line 1 column {column}"));
    assert_eq!((list("null"), list(r#"["a","b"]"#)), (Ok(0), Ok(2)));
}

#[test]
fn a_flag_is_true_or_false() {
    assert_eq!(["true", "false"].map(read::<Flag>), [Ok(Flag(true)), Ok(Flag(false))]);
    assert_eq!(read::<Flag>("7").unwrap_err(), "expected a boolean at line 1 column 1");
}

#[test]
fn an_error_in_a_part_is_placed_in_the_whole() {
    for whole in ["{\"a\": 1, \"b\": [7]}", "{\"a\": 1,\n \"b\":\n [7]}", "{\"b\":\n[\n7]}"] {
        let part = whole.find('[').map(|start| &whole[start..whole.len() - 1]).unwrap();
        let error = serde_json::from_str::<Vec<Text>>(part).unwrap_err();
        let before = &whole[..=whole.find('7').unwrap()];
        let line = before.lines().count();
        let column = before.lines().last().unwrap().len();
        assert_eq!(
            explain(&error, part, whole),
            format!("expected a string at line {line} column {column}"),
            "{whole:?}"
        );
    }
}

#[test]
fn a_value_is_read_at_its_place() {
    let read = |json, place| {
        let text = at(json, place).map(|value| value.map_or("", RawValue::get));
        text.map_err(|error| error.to_string().split(" at line").next().unwrap().to_owned())
    };
    for (json, place, expected) in [
        (r#"{"spec":{"replicas":2,"template":{"a":[1]}},"metadata":{}}"#, "/spec/template", r#"{"a":[1]}"#),
        (r#"{"template":1,"spec":{"spec":{"template":2},"templates":3,"templ\u0061te":4}}"#, "/spec/template", "4"),
        (r#"{"spec":null}"#, "/spec/template", ""),
        (r#"{"spec":{"template": null }}"#, "/spec/template", ""),
        (r#"{"spec/template":1,"spec":{"/template":3}}"#, "/spec/template", ""),
        (r#"{"spec":{},"spec":{"template":1,"template":2}}"#, "/spec/template", "2"),
        ("{}", "/spec", ""),
    ] {
        assert_eq!(read(json, place), Ok(expected), "{json}");
    }
    for (json, expected) in [
        (r#"{"spec":"text"}"#, "expected an object"),
        (r#"{"spec":[]}"#, "invalid type: sequence, expected an object"),
        (r#"{"spec":"#, "EOF while parsing a value"),
    ] {
        assert_eq!(read(json, "/spec/template"), Err(expected.to_owned()), "{json}");
    }
}

//! The contents text against Go's own output, names, and the comparison of contents.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Contents, MAX_CONTENTS_BYTES, SpecMetadata, SpecName,
    compare::{Difference, compare},
    is_dns_label, text,
};

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn contents(json: &str) -> Contents {
    Contents::of(parse(json).as_object().unwrap())
}

/// Every right side was printed by Go 1.26: integers that fit `int64` as such, other numbers as `float64`.
#[test]
fn numbers_are_printed_as_go_prints_them() {
    for (read, printed) in [
        ("0", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("-1", "-1"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("1.5", "1.5"),
        ("-1.5", "-1.5"),
        ("0.1", "0.1"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("123456.789e3", "123456789"),
        ("1e20", "100000000000000000000"),
        ("1488658924656565655.555", "1488658924656565800"),
        ("999999999999999900000", "999999999999999900000"),
        ("1e21", "1e+21"),
        ("-1e21", "-1e+21"),
        ("1e22", "1e+22"),
        ("1e23", "1e+23"),
        ("123456789012345678901234", "1.2345678901234569e+23"),
        ("0.000001", "0.000001"),
        ("1e-6", "0.000001"),
        ("0.0000001", "1e-7"),
        ("1e-7", "1e-7"),
        ("-1e-7", "-1e-7"),
        ("1.5e-10", "1.5e-10"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740993.0", "9007199254740992"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854776000"),
        ("18446744073709551615", "18446744073709552000"),
        ("-9223372036854775809", "-9223372036854776000"),
        // Halfway between two forms of the same length: the even one.
        ("74157417884931.125", "74157417884931.12"),
        ("74157417884931.375", "74157417884931.38"),
        ("0.0000012345", "0.0000012345"),
        ("0.012345", "0.012345"),
        // Digits that a fast parser reads one step off.
        ("278908409818195070000", "278908409818195070000"),
        ("2.7715077941825975e-163", "2.7715077941825975e-163"),
        ("-4.026380313612261e+293", "-4.026380313612261e+293"),
    ] {
        assert_eq!(text::print(&parse(read)), printed, "{read}");
    }
}

#[test]
fn strings_are_escaped_as_go_escapes_them() {
    for (read, printed) in [
        ("", r#""""#),
        ("<a>&b", r#""\u003ca\u003e\u0026b""#),
        ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
        ("\"\\/", r#""\"\\/""#),
        ("\n\r\t\u{8}\u{c}", r#""\n\r\t\b\f""#),
        ("\0\u{1}\u{b}\u{1f}", r#""\u0000\u0001\u000b\u001f""#),
        ("\u{7f}\u{80}é😀'", "\"\u{7f}\u{80}é😀'\""),
    ] {
        assert_eq!(text::print(read), printed, "{read:?}");
    }
}

#[test]
fn keys_are_sorted_by_their_bytes_at_every_level() {
    let nested =
        r#"{"b":1, "a":{"d":null, "c":[true, false, {"z":"", "y":[]}, {}]}, "B":2, "":0, "é":1, "aa":1, "a<b":"<"}"#;
    assert_eq!(
        contents(nested).text(),
        r#"{"":0,"B":2,"a":{"c":[true,false,{"y":[],"z":""},{}],"d":null},"a\u003cb":"\u003c","aa":1,"b":1,"é":1}"#
    );
    assert_eq!(contents("{\"\u{1f600}\":1,\"\u{ffee}\":2,\"~\":3}").text(), "{\"~\":3,\"\u{ffee}\":2,\"\u{1f600}\":1}");
    assert_eq!(contents("{}").text(), "{}");
}

#[test]
fn a_json_string_of_the_contents_is_what_go_prints() {
    let contents = contents(r#"{"a":"<\\\""}"#);
    assert_eq!(contents.text(), r#"{"a":"\u003c\\\""}"#);
    assert_eq!(serde_json::to_string(contents.text()).unwrap(), r#""{\"a\":\"\\u003c\\\\\\\"\"}""#);
}

#[test]
fn contents_are_there_where_credspec_is_an_object() {
    for (object, text) in [
        (json!({"credspec": {}}), Some("{}")),
        (json!({"credspec": {"a": 1}, "metadata": {"name": "web", "labels": {}}, "kind": 7}), Some(r#"{"a":1}"#)),
        (json!({}), None),
        (json!({"credspec": null}), None),
        (json!({"credspec": []}), None),
        (json!({"credspec": "{}"}), None),
        (json!({"CredSpec": {}}), None),
        (json!({"spec": {"credspec": {}}}), None),
    ] {
        assert_eq!(Contents::of_spec(&object).as_ref().map(Contents::text), text, "{object}");
    }
}

#[test]
fn absent_and_null_metadata_fields_are_empty() {
    for object in [json!({}), json!({"name": null, "resourceVersion": null})] {
        let metadata: SpecMetadata = serde_json::from_value(object).unwrap();
        assert_eq!((metadata.name.as_str(), metadata.resource_version.as_str()), ("", ""));
    }
    let metadata: SpecMetadata = serde_json::from_value(json!({"name": "web", "resourceVersion": "12"})).unwrap();
    assert_eq!((metadata.name.as_str(), metadata.resource_version.as_str()), ("web", "12"));
}

#[test]
fn a_spec_name_is_a_dns_subdomain() {
    let longest = ["a".repeat(63).as_str(); 4].join(".")[..253].to_owned();
    let too_long = format!("{longest}a");
    for name in ["a", "0", "gmsa-webapp1", "a.b", "1.2.3.4", "a-b.c--d", &"a".repeat(253), &longest] {
        assert_eq!(SpecName::parse(name).unwrap().as_str(), name);
    }
    for name in [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "-a",
        "a-",
        "a.-b",
        "a-.b",
        "A",
        "gmsa-WebApp1",
        "a_b",
        "a b",
        " a",
        "a\n",
        "a\0",
        "ä",
        "ａ",
        "a/b",
        "../../version",
        "x?watch=true",
        "x#y",
        "x%2fy",
        "*",
        &too_long,
        &"a".repeat(254),
    ] {
        assert_eq!(SpecName::parse(name), None, "{name:?}");
    }
}

#[test]
fn a_namespace_is_a_dns_label() {
    for (name, is_one) in [("a", true), ("kube-system", true), (&"a".repeat(63), true), (&"a".repeat(64), false)] {
        assert_eq!(is_dns_label(name), is_one, "{name}");
    }
    for name in ["", "a.b", "A", "-a", "a/b", "a:b"] {
        assert!(!is_dns_label(name), "{name}");
    }
}

#[test]
fn equal_values_are_equal_however_they_are_written() {
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    for (spec, pod) in [
        (r#"{"a":1,"b":[1,2]}"#, r#"{"a":1,"b":[1,2]}"#),
        (r#"{"a":1,"b":[1,2]}"#, " {\n\t\"b\" : [ 1 , 2 ] ,\r\n \"a\":1 } "),
        (r#"{"a":{"c":1,"d":2}}"#, r#"{"a":{"d":2,"c":1}}"#),
        (r#"{"a":"<é"}"#, r#"{"\u0061":"<\u00e9"}"#),
        (r#"{"a":1}"#, r#"{"a":1.0}"#),
        (r#"{"a":100}"#, r#"{"a":1e2}"#),
        (r#"{"a":-7,"b":null,"c":true}"#, r#"{"c":true, "b":null, "a":-7}"#),
        (r#"{"a":0}"#, r#"{"a":-0}"#),
        (r#"{"a":0}"#, r#"{"a":-0.0}"#),
        (r#"{"a":0.1}"#, r#"{"a":1e-1}"#),
        (r#"{"a":1e300}"#, r#"{"a":10e299}"#),
        (r#"{"a":9223372036854775808}"#, r#"{"a":9223372036854775808}"#),
        (r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551615}"#),
        (r#"{"a":18446744073709551616}"#, r#"{"a":18446744073709552000}"#),
        (r#"{"a":170141183460469231731687303715884105728}"#, r#"{"a":170141183460469231731687303715884105728}"#),
        ("{}", "{ }"),
        (&format!(r#"{{"a":{deep}}}"#), &format!(r#"{{"a": {deep}}}"#)),
    ] {
        assert_eq!(compare(pod, &contents(spec)), Ok(()), "{spec} {pod}");
    }
}

#[test]
fn other_values_are_different() {
    let other = Difference::Value { as_injected: false };
    let injected = Difference::Value { as_injected: true };
    for (spec, pod, difference) in [
        (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, injected),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, injected),
        (r#"{"a":1}"#, r#"{"b":2,"a":1}"#, other),
        (r#"{"a":1}"#, "{}", injected),
        (r#"{"a":"<"}"#, r#"{"a":"<<"}"#, other),
        (r#"{"a":"<"}"#, r#"{"a":"\u003c\u003c"}"#, injected),
        (r#"{"a":1}"#, r#"{"a":2}"#, injected),
        (r#"{"a":1}"#, r#"{"a": 2}"#, other),
        (r#"{"a":1}"#, r#"{"a":"1"}"#, injected),
        (r#"{"a":1}"#, r#"{"a":true}"#, injected),
        (r#"{"a":0}"#, r#"{"a":null}"#, injected),
        (r#"{"a":null}"#, "{}", injected),
        (r#"{"a":"x"}"#, r#"{"a":"X"}"#, injected),
        (r#"{"a":"x"}"#, r#"{"A":"x"}"#, injected),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, injected),
        (r#"{"a":[1,2]}"#, r#"{"a":[1,2,3]}"#, injected),
        (r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, injected),
        (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#, injected),
        (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740993.0}"#, other),
        (r#"{"a":9223372036854775807}"#, r#"{"a":9223372036854775808}"#, other),
        (r#"{"a":-1}"#, r#"{"a":1}"#, injected),
        (r#"{"a":0.1}"#, r#"{"a":0.10000000000000002}"#, injected),
        (r#"{"a":1}"#, r#"{"a":1.5}"#, injected),
        ("{}", "[]", other),
        ("{}", "null", other),
        ("{}", r#""{}""#, other),
    ] {
        assert_eq!(compare(pod, &contents(spec)), Err(difference), "{spec} {pod}");
    }
}

#[test]
fn a_key_that_stands_twice_is_never_equal() {
    for pod in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        r#"{"a":[{"b":1,"b":1}]}"#,
        r#"{":":{"\":":",:","\":" :1}}"#,
    ] {
        assert_eq!(compare(pod, &contents(r#"{"a":1}"#)), Err(Difference::DuplicateKey), "{pod}");
    }
}

#[test]
fn what_is_not_json_is_never_equal() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for pod in [
        "",
        " ",
        "{",
        "{}}",
        "{} {}",
        "{'a':1}",
        "{a:1}",
        r#"{"a":1,}"#,
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":NaN}"#,
        r#"{"a":1e999}"#,
        r#"{"a":1}//"#,
        r#"{"a":1,"a":1} trailing"#,
        r#"[{"a":1,"a":1}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\n\"}",
        "\u{feff}{}",
        "{}\0",
        &deep,
    ] {
        assert_eq!(compare(pod, &contents("{}")), Err(Difference::NotJson), "{pod}");
    }
}

#[test]
fn what_is_longer_than_the_api_server_accepts_is_never_equal() {
    let of_bytes = |count: usize| Contents::of(json!({"a": "x".repeat(count - 8)}).as_object().unwrap());
    for (count, outcome) in [(MAX_CONTENTS_BYTES, Ok(())), (MAX_CONTENTS_BYTES + 1, Err(Difference::TooLong))] {
        let spec = of_bytes(count);
        assert_eq!((spec.text().len(), compare(spec.text(), &spec)), (count, outcome));
    }
}

#[test]
fn a_difference_says_what_is_wrong_without_either_text() {
    for (difference, text) in [
        (Difference::TooLong, "they are longer than the 64 KiB that the API server accepts"),
        (Difference::NotJson, "they are not valid JSON"),
        (Difference::DuplicateKey, "a key stands twice in them"),
        (Difference::Value { as_injected: false }, "they hold other values"),
        (
            Difference::Value { as_injected: true },
            "they hold other values, in the form in which the webhook writes them: the resource may have changed meanwhile, try again",
        ),
    ] {
        assert_eq!(difference.to_string(), text);
    }
}

#[test]
fn numbers_in_lists_are_compared_by_value_too() {
    let contents = contents(r#"{"a":[1,[2]]}"#);
    assert_eq!(compare(r#"{"a": [1.0, [2e0]]}"#, &contents), Ok(()));
    for other in [r#"{"a": [1.5, [2]]}"#, r#"{"a": [1, [2], 3]}"#, r#"{"a": [1]}"#] {
        assert!(compare(other, &contents).is_err(), "{other}");
    }
}

#[test]
fn a_name_is_looked_up_by_its_text() {
    let known = std::collections::HashMap::from([(SpecName::parse("web").unwrap(), 7)]);
    assert_eq!((known.get("web"), known.get("other")), (Some(&7), None));
}

/// Contents whose text has this many bytes.
fn contents_of(bytes: usize) -> Contents {
    let text = "x".repeat(bytes - r#"{"a":""}"#.len());
    Contents::of(json!({ "a": text }).as_object().unwrap())
}

#[test]
fn contents_are_equal_by_their_text_and_return_their_permit() {
    let permit = Arc::new(());
    let with_permit = contents_of(9).with_permit(Arc::clone(&permit));
    assert!(with_permit == contents_of(9) && with_permit != contents_of(10));
    assert_eq!(Arc::strong_count(&permit), 2);
    drop(with_permit);
    assert_eq!(Arc::strong_count(&permit), 1);
}

#[test]
fn what_is_too_long_is_one_byte_more_than_a_pod_can_carry_and_equal_to_no_text() {
    let too_long = Contents::too_long();
    assert_eq!(too_long.text().len(), MAX_CONTENTS_BYTES + 1);
    assert!(Arc::ptr_eq(&too_long, &Contents::too_long()));
    assert!(too_long.is_too_long() && !contents_of(MAX_CONTENTS_BYTES).is_too_long());
    assert_eq!(compare(too_long.text(), &too_long), Err(Difference::TooLong));
    assert_eq!(compare("{ }", &too_long), Err(Difference::Value { as_injected: false }));
    assert_eq!(compare("{}", &too_long), Err(Difference::Value { as_injected: true }));
    assert_eq!(compare("null", &too_long), Err(Difference::Value { as_injected: false }));
    assert_eq!(compare("{", &too_long), Err(Difference::NotJson));
}

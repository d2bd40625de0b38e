//! The contents text: JSON exactly as Go's `encoding/json` prints a `map[string]interface{}`.
//!
//! Pods created by the Go webhook and by this one must carry the same bytes: keys
//! sorted by their bytes at every level, no spaces, `<`, `>`, `&`, U+2028 and U+2029 escaped (Go's `HTMLEscape`), numbers
//! as Go prints an `int64` or a `float64`. `serde_json` agrees in all but the escapes and the numbers.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

pub fn object(map: &Map<String, Value>) -> String {
    let mut out = String::with_capacity(512);
    write_object(&mut out, map);
    out
}

/// Prints a text as a JSON string, quotes included, with the same escapes.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 2);
    write_string(&mut out, text);
    out
}

pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

// Recursion is bounded by the parsers: serde_json reads at most 128 levels.
fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => write_object(out, map),
    }
}

fn write_object(out: &mut String, map: &Map<String, Value>) {
    // serde_json's map is sorted only as long as no crate in the build switches `preserve_order` on.
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_string(out: &mut String, text: &str) {
    // No escape of serde_json contains one of these characters.
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
}

/// Go's client reads an integer that fits `int64` as one and every other number as a `float64`.
fn write_number(out: &mut String, number: &Number) {
    if let Some(int) = number.as_i64() {
        out.push_str(&int.to_string());
    } else if let Some(float) = number.as_f64() {
        write_float(out, float);
    }
}

/// `encoding/json`'s `floatEncoder`: the shortest digits that read back the same; with an exponent below 1e-6 and from
/// 1e21 on, the exponent's sign always and no padding zero.
fn write_float(out: &mut String, float: f64) {
    if float == 0.0 {
        // The API server prints a negative zero as "-0", which Go's client reads as the integer 0.
        out.push('0');
        return;
    }
    if float < 0.0 {
        out.push('-');
    }
    let size = float.abs();
    let (digits, point) = shortest(size);
    let places = usize::try_from(point).unwrap_or(0);
    if !(1e-6..1e21).contains(&size) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
        let dot = if rest.is_empty() { "" } else { "." };
        out.extend([first, dot, rest, &format!("e{:+}", point - 1)]);
    } else if places == 0 {
        out.push_str("0.");
        out.extend((point..0).map(|_| '0'));
        out.push_str(&digits);
    } else if let Some((whole, rest)) = digits.split_at_checked(places).filter(|(_, rest)| !rest.is_empty()) {
        out.extend([whole, ".", rest]);
    } else {
        out.push_str(&digits);
        out.extend((digits.len()..places).map(|_| '0'));
    }
}

/// The shortest digits of a positive number, and the position of the decimal point: `("15", -2)` is 0.0015.
fn shortest(size: f64) -> (String, i32) {
    // Of two shortest forms that are equally near, Go and serde_json take the even one; Rust's own `Display` does not.
    let text = Value::from(size).to_string();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    // A float64's digits and exponent are a few hundred at most, whichever way they are written.
    let before = i32::try_from(whole.len()).unwrap_or(0) - i32::try_from(all.len() - digits.len()).unwrap_or(0);
    (digits.trim_end_matches('0').to_owned(), before + exponent.parse().unwrap_or(0))
}

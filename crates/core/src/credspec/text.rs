//! The contents text: JSON exactly as Go's `encoding/json` prints a `map[string]interface{}`.
//!
//! Pods created by the Go webhook and by this one must carry the same bytes: keys
//! sorted by their bytes at every level, no spaces, `<`, `>`, `&`, U+2028 and U+2029 escaped (Go's `HTMLEscape`), numbers
//! as Go prints an `int64` or a `float64`. `serde_json` agrees in all but the escapes and the numbers; its map is sorted as long
//! as no crate in the build switches `preserve_order` on, which `deny.toml` refuses.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{
    Value,
    ser::{Formatter, Serializer},
};

/// Prints a JSON value; a text is one, and gets its quotes.
#[expect(clippy::missing_panics_doc, reason = "it never panics")]
pub fn print(value: &(impl Serialize + ?Sized)) -> String {
    let mut out = Vec::with_capacity(512);
    // Recursion is bounded by the parsers: serde_json reads fewer than 128 levels.
    #[expect(clippy::expect_used, reason = "JSON is written into memory, which cannot fail, as UTF-8")]
    {
        value.serialize(&mut Serializer::with_formatter(&mut out, Go)).expect("a value makes JSON");
        String::from_utf8(out).expect("JSON is UTF-8")
    }
}

struct Go;

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let is_escaped = |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        for run in fragment.split_inclusive(is_escaped) {
            match run.strip_suffix(is_escaped).zip(run.chars().next_back()) {
                Some((before, c)) => write!(out, "{before}\\u{:04x}", u32::from(c))?,
                None => out.write_all(run.as_bytes())?,
            }
        }
        Ok(())
    }

    /// Go's client reads an integer that fits `int64` as one and every other number as a `float64`.
    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, number: u64) -> io::Result<()> {
        match i64::try_from(number) {
            Ok(int) => self.write_i64(out, int),
            #[expect(clippy::cast_precision_loss, reason = "it is lost in Go too")]
            Err(_) => self.write_f64(out, number as f64),
        }
    }

    /// `encoding/json`'s `floatEncoder`: the shortest digits that read back the same; with an exponent below 1e-6 and from
    /// 1e21 on, the exponent's sign always and no padding zero.
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, float: f64) -> io::Result<()> {
        if float == 0.0 {
            // The API server prints a negative zero as "-0", which Go's client reads as the integer 0.
            return out.write_all(b"0");
        }
        let (sign, size) = (if float < 0.0 { "-" } else { "" }, float.abs());
        let (digits, point) = shortest(size);
        let places = usize::try_from(point).unwrap_or(0);
        if !(1e-6..1e21).contains(&size) {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            let dot = if rest.is_empty() { "" } else { "." };
            write!(out, "{sign}{first}{dot}{rest}e{:+}", point - 1)
        } else if places == 0 {
            let zeros: String = (point..0).map(|_| '0').collect();
            write!(out, "{sign}0.{zeros}{digits}")
        } else if let Some((whole, rest)) = digits.split_at_checked(places).filter(|(_, rest)| !rest.is_empty()) {
            write!(out, "{sign}{whole}.{rest}")
        } else {
            write!(out, "{sign}{digits:0<places$}")
        }
    }
}

/// The shortest digits of a positive number, and the position of the decimal point: `("15", -2)` is 0.0015.
fn shortest(size: f64) -> (String, i32) {
    // Where two shortest forms are equally near, Go and serde_json take the even one; Rust's own `Display` does not.
    let text = Value::from(size).to_string();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    // A float64's digits and exponent are a few hundred at most, in any notation.
    let before = i32::try_from(whole.len()).unwrap_or(0) - i32::try_from(all.len() - digits.len()).unwrap_or(0);
    (digits.trim_end_matches('0').to_owned(), before + exponent.parse().unwrap_or(0))
}

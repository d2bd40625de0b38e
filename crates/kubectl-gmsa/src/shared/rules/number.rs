//! Statuses as numbers in a text: `0xc0020017`, `#3489792023`, `-1073610729`, `error 1355`.

use super::code::Status;

/// The text as one number.
pub(super) fn alone(text: &str) -> Option<Status> {
    let text = text.trim();
    hexadecimal(text).or_else(|| decimal(text)).or_else(|| {
        // Eight digits without a prefix, as a debugger prints them; with a letter, so that it is no decimal number.
        let is_hex = text.len() == 8
            && text.bytes().all(|b| b.is_ascii_hexdigit())
            && text.bytes().any(|b| b.is_ascii_alphabetic());
        is_hex.then(|| u32::from_str_radix(text, 16).ok().map(Status)).flatten()
    })
}

/// The numbers that the text gives as a status: hexadecimal ones, those that are negative or have the highest bit as every failed HRESULT
/// and NTSTATUS has, and small ones behind the word `error`, as in `System error 53`.
pub(super) fn find(text: &str) -> impl Iterator<Item = Status> {
    let mut before = "";
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '#' | '-' | '_'))
        .filter(|word| !word.is_empty())
        .filter_map(move |word| {
            let is_named = std::mem::replace(&mut before, word).eq_ignore_ascii_case("error");
            hexadecimal(word).or_else(|| decimal(word).filter(|Status(value)| *value > i32::MAX as u32 || is_named))
        })
}

fn hexadecimal(word: &str) -> Option<Status> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))?;
    // A signed status is printed as 64 bits by some tools.
    let digits = match digits.len() {
        16 => digits
            .get(..8)
            .filter(|upper| upper.eq_ignore_ascii_case("ffffffff") || *upper == "00000000")
            .and(digits.get(8..))?,
        _ => digits,
    };
    if digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok().map(Status)
}

/// Unsigned, or signed as Windows prints an exit code.
fn decimal(word: &str) -> Option<Status> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    if let Ok(value) = digits.parse::<u32>() {
        return Some(Status(value));
    }
    digits.starts_with('-').then(|| digits.parse::<i32>().ok()).flatten().map(|value| Status(value.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_number_is_read() {
        for (text, expected) in [
            ("3489792023", Some(0xd002_0017)),
            ("#3489792023", Some(0xd002_0017)),
            ("0xD0020017", Some(0xd002_0017)),
            ("0xFFFFFFFFC0020017", Some(0xc002_0017)),
            ("0x00000000C0020017", Some(0xc002_0017)),
            ("-1073610729", Some(0xc002_0017)),
            ("C0020017", Some(0xc002_0017)),
            ("1355", Some(1355)),
            ("0x52e", Some(1326)),
            ("0", Some(0)),
            ("00001355", Some(1355)),
            ("deadbeef0", None),
            ("0x1FFFFFFFFC0020017", None),
            ("0x", None),
            ("4294967296", None),
            ("-2147483649", None),
            ("", None),
        ] {
            assert_eq!(alone(text), expected.map(Status), "{text}");
        }
    }

    #[test]
    fn a_number_counts_only_where_it_is_a_status() {
        let numbers = |text| find(text).map(|Status(value)| value).collect::<Vec<_>>();
        assert_eq!(numbers("winapi error #3489792023: unknown"), [0xd002_0017]);
        assert_eq!(numbers("System error 53 has occurred."), [53]);
        assert_eq!(numbers("is unavailable. (0xC0020017)."), [0xc002_0017]);
        assert_eq!(numbers("klist failed with 0xc000018b/-1073741429: The SAM"), [0xc000_018b, 0xc000_018b]);
        assert_eq!(numbers("Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE"), [1722]);
        assert_eq!(numbers("exit code 5, restarted 1326 times in 53 minutes, pod-5 error-5"), Vec::<u32>::new());
        assert_eq!(numbers("rpc error: code = Unknown desc = 1722"), Vec::<u32>::new());
    }
}

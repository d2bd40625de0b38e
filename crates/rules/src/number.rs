//! Statuses as numbers in a text: `0xc0020017`, `#3489792023`, `-1073610729`, `error 1355`.

use super::{status::WindowsStatus, symbols};

/// The text as one number.
pub(super) fn alone(text: &str) -> Option<WindowsStatus> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "()[]{}<>,.;:'\"`".contains(c));
    // The suffix of C.
    let text = text.trim_end_matches(['l', 'L']);
    hexadecimal(text).or_else(|| bare(text)).or_else(|| decimal(text)).or_else(|| {
        // A debugger prints no prefix. A letter shows that the number is not decimal.
        let status = digits(text).filter(|_| text.bytes().any(|b| b.is_ascii_alphabetic()))?;
        let is_code = text.len() == 8 || status.is_named() && text.bytes().any(|b| b.is_ascii_digit());
        is_code.then_some(status)
    })
}

/// Whether the text is a number that many programs have a meaning for: an exit code, a code of Windows, Kerberos or LDAP.
pub(super) fn is_small(text: &str) -> bool {
    text.trim().parse::<u8>().is_ok_and(|number| number > 0)
}

/// The status numbers in a text in its normal form. Each has a speaker: the form of a failed HRESULT or NTSTATUS or of MIT Kerberos, with all
/// digits or as a signed number; `0x`, where it is not small or is behind a word for a code; `#` of hcsshim; `System error` of Windows; a
/// code of LDAP or Kerberos that says so. Other digits in a text mean nothing: they are times, errors of the system's calls, or numbers of
/// other programs.
pub(super) fn find(text: &str) -> impl Iterator<Item = WindowsStatus> {
    const CODE: [&str; 9] = ["error", "substatus", "failure", "code", "status", "failed", "with", "hresult", "result"];
    let has_codes = symbols::has_codes(text);
    let (mut before, mut first) = ("", "");
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '#' | '-' | '_'))
        .filter(|word| !word.is_empty())
        .filter_map(move |word| {
            let second = std::mem::replace(&mut before, word);
            let first = std::mem::replace(&mut first, second);
            let is_code =
                |status: &WindowsStatus| status.0 > 0xff || CODE.contains(&second) || decimal(second) == Some(*status);
            let is_spoken = |status: &WindowsStatus| {
                let is_code =
                    (first, second) == ("system", "error") || second == "systemfehler" || has_codes && second == "code";
                // A small exit code is the program's own, not a status.
                let is_exit =
                    matches!(second, "code" | "status" | "exitcode") && (first.starts_with("exit") || first == "with");
                status.has_form() || word.starts_with('#') || is_code || (is_exit && status.0 > 0xffff)
            };
            // Many programs exit with -1.
            let word = Some(word).filter(|word| !matches!(*word, "-1" | "4294967295"))?;
            hexadecimal(word).filter(is_code).or_else(|| bare(word)).or_else(|| decimal(word).filter(is_spoken))
        })
}

/// The small exit code of a program in the text. Large ones are Windows statuses.
pub(super) fn exit(text: &str) -> Option<u32> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty());
    let (mut first, mut second) = ("", "");
    words.find_map(|word| {
        let is_exit = (matches!(second, "code" | "status") && (first.starts_with("exit") || first == "with"))
            || second == "exitcode";
        first = std::mem::replace(&mut second, word);
        // -1 is not a status: many programs exit with it.
        let code = if word == "-1" { Some(u32::MAX) } else { word.parse().ok() };
        code.filter(|code| is_exit && (*code <= 0xffff || *code == u32::MAX))
    })
}

/// A status without a prefix, as in netlogon.log and some clients: `c000005e`, `80090303`. Decimal numbers of eight digits are never
/// failures, and a hash would have to equal a named status.
fn bare(word: &str) -> Option<WindowsStatus> {
    let status = digits(word).filter(|_| word.len() == 8)?;
    // Windows has more codes of its facility than names.
    let is_of_windows = |status: &WindowsStatus| status.is_named() || word.starts_with("8007");
    Some(status).filter(|status| status.is_failure() && is_of_windows(status))
}

fn hexadecimal(word: &str) -> Option<WindowsStatus> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))?;
    // Some tools print a signed status with 64 bits.
    let is_extension = |upper: &str| upper.eq_ignore_ascii_case("ffffffff") || upper == "00000000";
    let lower = digits.split_at_checked(8).filter(|(upper, lower)| lower.len() == 8 && is_extension(upper));
    self::digits(lower.map_or(digits, |(_, lower)| lower))
}

/// Up to eight hexadecimal digits.
fn digits(text: &str) -> Option<WindowsStatus> {
    let are_digits = text.len() <= 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| are_digits).map(WindowsStatus)
}

/// A decimal status, unsigned or signed as Windows prints an exit code.
fn decimal(word: &str) -> Option<WindowsStatus> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    let signed = || digits.parse().ok().map(i32::cast_unsigned);
    digits.parse().ok().or_else(signed).map(WindowsStatus)
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
            ("80070005", Some(0x8007_0005)),
            ("80004005", Some(0x8000_4005)),
            ("80090308", Some(0x8009_0308)),
            ("(0xC0020017L)", Some(0xc002_0017)),
            ("52e", Some(1326)),
            ("0000052E", Some(1326)),
            ("89999999", Some(89_999_999)),
            ("add", None),
            ("5fffe", None),
            ("deadbeef0", None),
            ("0x1FFFFFFFFC0020017", None),
            ("0x", None),
            ("4294967296", None),
            ("-2147483649", None),
            ("", None),
        ] {
            assert_eq!(alone(text), expected.map(WindowsStatus), "{text}");
        }
    }

    #[test]
    fn a_small_exit_code_is_read_behind_its_words() {
        for (text, expected) in [
            ("command terminated with exit code 137", Some(137)),
            ("exit code: 0", Some(0)),
            ("exited with code 2", Some(2)),
            ("exit status 1", Some(1)),
            ("exit code: -1", Some(u32::MAX)),
            ("exitcode: 4294967295", Some(u32::MAX)),
            (r#""exitcode":139"#, Some(139)),
            ("exit code: 3221225794", None),
            ("status code 137", None),
            ("exit 137", None),
        ] {
            assert_eq!(exit(text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_counts_only_where_it_is_a_status() {
        let numbers =
            |text| find(&super::super::normal::normal(text)).map(|WindowsStatus(value)| value).collect::<Vec<_>>();
        assert_eq!(numbers("winapi error #3489792023: unknown"), [0xd002_0017]);
        assert_eq!(numbers("System error 53 has occurred."), [53]);
        assert_eq!(numbers("is unavailable. (0xC0020017)."), [0xc002_0017]);
        assert_eq!(numbers("klist failed with 0xc000018b/-1073741429: The SAM"), [0xc000_018b, 0xc000_018b]);
        assert_eq!(numbers("Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE"), [1722]);
        assert_eq!(numbers("Status = 5 0x5 ERROR_ACCESS_DENIED, substatus): 0x5, (0x52e)"), [5, 5, 0x52e]);
        assert_eq!(
            numbers("NlSetStatusClientSession: Set connection status to c000005e, hash c00a1b2c"),
            [0xc000_005e]
        );
        assert_eq!(numbers("Exit Code: 3221225794, exited with code -1073741502"), [0xc000_0142, 0xc000_0142]);
        assert_eq!(numbers("LDAP: error code 49"), [49]);
        assert_eq!(numbers("error 80090322 from AcceptSecurityContext returned 80004005"), [0x8009_0322, 0x8000_4005]);
        assert_eq!(numbers("commit 80c0ffee of 89999999"), Vec::<u32>::new());
        assert_eq!(numbers("Error 3/14/2023 10:22:17 AM Containers-CCG 8 None"), Vec::<u32>::new());
        assert_eq!(numbers("panic: signal SIGSEGV code=0x1 addr=0x57, main.run(0x5, 0xc000123456)"), [1]);
        assert_eq!(numbers("exit code 5, restarted 1326 times in 53 minutes, pod-5 error-5"), Vec::<u32>::new());
        assert_eq!(numbers("rpc error: code = Unknown desc = 1722"), Vec::<u32>::new());
    }
}

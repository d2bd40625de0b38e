//! Entries: a distinguished name and attributes.

use std::collections::BTreeMap;

use gmsa_core::quote::cut;
use gmsa_kerberos::der::date_time;
use time::{OffsetDateTime, UtcDateTime};
use uuid::Uuid;

use crate::Sid;

/// The most characters of a name or another text. In Active Directory a part of a distinguished name has at most 255 (Microsoft: Active Directory
/// maximum limits), and names have few long parts.
pub const MAX_TEXT: usize = 2048;

/// One object of the directory, with the attributes that were asked for and may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The distinguished name.
    pub name: String,
    /// The values, by the name of the attribute in lower case.
    pub attributes: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Entry {
    /// All values of an attribute; empty if it is unset.
    pub fn values(&self, attribute: &str) -> &[Vec<u8>] {
        self.attributes.get(&attribute.to_ascii_lowercase()).map_or(&[], Vec::as_slice)
    }

    pub fn value(&self, attribute: &str) -> Option<&[u8]> {
        self.values(attribute).first().map(Vec::as_slice)
    }

    /// The values that are text, each cut.
    pub fn texts(&self, attribute: &str) -> impl Iterator<Item = &str> {
        self.values(attribute).iter().filter_map(|value| Some(cut(str::from_utf8(value).ok()?, MAX_TEXT)))
    }

    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.texts(attribute).next()
    }

    pub fn number(&self, attribute: &str) -> Option<i64> {
        self.text(attribute)?.parse().ok()
    }

    pub fn sid(&self, attribute: &str) -> Option<Sid> {
        Sid::from_bytes(self.value(attribute)?)
    }

    /// A GUID ([MS-DTYP] 2.3.4).
    pub fn guid(&self, attribute: &str) -> Option<Uuid> {
        Uuid::from_slice_le(self.value(attribute)?).ok()
    }

    /// A time, such as `20261123091244.0Z`.
    pub fn time(&self, attribute: &str) -> Option<UtcDateTime> {
        date_time(self.text(attribute)?.split('.').next()?)
    }

    /// A time, such as `134398986131659491`.
    pub fn file_time(&self, attribute: &str) -> Option<UtcDateTime> {
        self.number(attribute).and_then(time_of_file)
    }

    /// Whether it is of a class, or of one below it.
    pub fn is_a(&self, class: &str) -> bool {
        self.texts("objectClass").any(|name| name.eq_ignore_ascii_case(class))
    }
}

/// A time as a number of 100 ns since 1601 ([MS-DTYP] 2.3.3).
pub(crate) fn time_of_file(number: i64) -> Option<UtcDateTime> {
    const SECONDS_TO_1970: i64 = 11_644_473_600;
    OffsetDateTime::from_unix_timestamp(number / 10_000_000 - SECONDS_TO_1970).ok().map(OffsetDateTime::to_utc)
}

/// The parts of a distinguished name, still escaped. A comma of a name is escaped (RFC 4514, 2.4).
pub fn parts(name: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    let parts = name.split(move |c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    });
    // Unescaped white space around a part does not belong to it.
    parts.map(trimmed).filter(|part| !part.is_empty())
}

fn trimmed(part: &str) -> &str {
    let part = part.trim_start_matches(' ');
    let end = part.trim_end_matches(' ');
    // The first space after a backslash is a part of the value.
    if end.ends_with('\\') { part.get(..end.len() + 1).unwrap_or(end) } else { end }
}

/// The DNS name of the domain that an object is in: `contoso.com` of `CN=…,DC=contoso,DC=com`.
pub fn domain_of(name: &str) -> Option<String> {
    let labels = parts(name).filter_map(|part| part.split_once('=')).filter(|(key, _)| key.eq_ignore_ascii_case("DC"));
    let labels: Vec<String> = labels.map(|(_, label)| unescaped(label).to_ascii_lowercase()).collect();
    (!labels.is_empty()).then(|| labels.join("."))
}

/// The distinguished name of the domain that an object is in; empty where it is in none.
pub fn base_of(name: &str) -> String {
    let is_label = |part: &&str| part.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("DC="));
    parts(name).filter(is_label).collect::<Vec<_>>().join(",")
}

/// Whether a name is below another one, or the same.
pub fn is_within(name: &str, base: &str) -> bool {
    let (name, base): (Vec<&str>, Vec<&str>) = (parts(name).collect(), parts(base).collect());
    let tail = name.len().checked_sub(base.len()).and_then(|start| name.get(start..));
    let is_equal = |(one, other): (&&str, &&str)| unescaped(one).eq_ignore_ascii_case(&unescaped(other));
    tail.is_some_and(|tail| tail.iter().zip(&base).all(is_equal))
}

/// The value of the first part, without its escapes: `Web, the first` of `CN=Web\, the first,DC=…`.
pub fn first_value(name: &str) -> String {
    let value = parts(name).next().and_then(|part| part.split_once('=')).map_or("", |(_, value)| value);
    unescaped(value)
}

/// A part of a distinguished name without its escapes (RFC 4514, 2.4): a backslash before a character, or before two hexadecimal
/// digits, which are a byte of UTF-8: `\2C` is a comma.
fn unescaped(part: &str) -> String {
    let hex = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut plain, mut bytes) = (Vec::with_capacity(part.len()), part.bytes());
    while let Some(byte) = bytes.next() {
        let mut after = bytes.clone();
        let pair = (hex(after.next()), hex(after.next()));
        match pair {
            (Some(high), Some(low)) if byte == b'\\' => {
                plain.push(high << 4 | low);
                bytes = after;
            }
            _ if byte == b'\\' => plain.push(bytes.next().unwrap_or(byte)),
            _ => plain.push(byte),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_read() {
        let mut entry = Entry::default();
        entry.attributes.insert("currenttime".to_owned(), vec![b"20261123091244.0Z".to_vec()]);
        entry.attributes.insert("pwdlastset".to_owned(), vec![b"134398986131659491".to_vec()]);
        assert_eq!(entry.time("currentTime").unwrap().unix_timestamp(), 1_795_425_164);
        assert_eq!(entry.file_time("pwdLastSet").unwrap().unix_timestamp(), 1_795_425_013);
        assert_eq!((entry.time("pwdLastSet"), entry.file_time("currentTime")), (None, None));
    }

    #[test]
    fn a_guid_is_printed_as_windows_does() {
        let mut entry = Entry::default();
        let stored = b"\x43\x31\xb4\xeb\xa5\xd4\xe3\x4f\xba\x21\xa9\x8c\xd6\xaf\x08\xde".to_vec();
        entry.attributes.insert("objectguid".to_owned(), vec![stored]);
        assert_eq!(entry.guid("objectGUID").unwrap().to_string(), "ebb43143-d4a5-4fe3-ba21-a98cd6af08de");
        entry.attributes.insert("objectguid".to_owned(), vec![vec![0; 15]]);
        assert_eq!(entry.guid("objectGUID"), None);
    }

    #[test]
    fn a_comma_in_a_name_ends_no_part_of_it() {
        let name = r"CN=Web\, DC=evil,OU=a\\,DC=Contoso,DC=com";
        assert_eq!(domain_of(name).as_deref(), Some("contoso.com"));
        assert_eq!(first_value(name), "Web, DC=evil");
        assert!(is_within(name, "dc=contoso,dc=com") && !is_within("DC=com", "DC=contoso,DC=com"));
        assert!(!is_within(name, "DC=evil,DC=com"));
    }

    #[test]
    fn both_forms_of_an_escape_mean_the_same() {
        assert_eq!(first_value(r"CN=Web\2C the first,DC=a"), "Web, the first");
        assert_eq!(first_value(r"CN=Caf\C3\A9 \\ \+\23,DC=a"), r"Café \ +#");
        assert_eq!(first_value(r"CN=\5cA\g\,DC=a"), r"\Ag,DC=a");
        assert!(is_within(r"CN=x,OU=a\2cb,DC=c", r"OU=A\,B,DC=c"));
        assert!(!is_within(r"CN=x,OU=a\2Cb,DC=c", r"OU=b,DC=c"));
    }
}

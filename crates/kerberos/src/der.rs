//! DER as Kerberos uses it (ITU-T X.690; RFC 4120, appendix A), and what LDAP needs of BER (RFC 4511, 5.1): definite lengths only.
//!
//! Invariants: reading borrows from the message, whose length bounds every other one; nothing recurses. No secret is written.

use time::{PrimitiveDateTime, UtcDateTime, format_description};

use crate::Error;

pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
pub const OCTETS: u8 = 0x04;
pub const ENUMERATED: u8 = 0x0A;
pub const STRING: u8 = 0x1B;
const TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
const CONTEXT: u8 = 0xA0;
const APPLICATION: u8 = 0x60;

/// A value with its tag.
pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    if let Ok(short @ 0..=0x7F) = u8::try_from(content.len()) {
        bytes.push(short);
    } else {
        let length: Vec<u8> = content.len().to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        #[expect(clippy::cast_possible_truncation, reason = "at most eight bytes")]
        bytes.push(0x80 | length.len() as u8);
        bytes.extend(length);
    }
    bytes.extend(content);
    bytes
}

pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// A field of a sequence, by its number.
pub fn field(number: u8, content: &[u8]) -> Vec<u8> {
    value(CONTEXT | number, content)
}

/// A message or another type of the protocol, by its number.
pub fn application(number: u8, content: &[u8]) -> Vec<u8> {
    value(APPLICATION | number, content)
}

pub fn integer(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    // A byte is left out if the sign of the next one says the same.
    let is_needless = |pair: &&[u8]| matches!(pair, [0, 0..=0x7F] | [0xFF, 0x80..=0xFF]);
    let start = bytes.windows(2).take_while(is_needless).count();
    value(INTEGER, bytes.get(start..).unwrap_or_default())
}

pub fn octets(content: &[u8]) -> Vec<u8> {
    value(OCTETS, content)
}

pub fn string(text: &str) -> Vec<u8> {
    value(STRING, text.as_bytes())
}

/// 32 flags.
pub fn flags(flags: u32) -> Vec<u8> {
    value(BITS, &[&[0], flags.to_be_bytes().as_slice()].concat())
}

/// A time without fractions of a second.
pub fn time(at: UtcDateTime) -> Vec<u8> {
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.as_hms();
    let text = format!("{year:04}{:02}{day:02}{hour:02}{minute:02}{second:02}Z", u8::from(month));
    value(TIME, text.as_bytes())
}

/// A time of fourteen digits, such as `20261123091244`.
pub fn date_time(digits: &str) -> Option<UtcDateTime> {
    let format = format_description::parse_borrowed::<2>("[year][month][day][hour][minute][second]").ok()?;
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    PrimitiveDateTime::parse(digits, &format).ok().map(PrimitiveDateTime::as_utc)
}

/// The content of an integer.
pub fn number(bytes: &[u8]) -> Option<i64> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
    (bytes.len() <= 8).then(|| bytes.iter().fold(sign, |all, byte| all << 8 | i64::from(*byte)))
}

/// The tag of a value and the lengths of its header and its content; `None` if more bytes are needed.
///
/// # Errors
/// If the length is indefinite or longer than four bytes, or the tag longer than one byte: neither protocol has such values.
pub fn header(bytes: &[u8]) -> Result<Option<(u8, usize, usize)>, Error> {
    let [tag, first, rest @ ..] = bytes else { return Ok(None) };
    let count = match *first {
        _ if tag & 0x1F == 0x1F => return Err(Error::Malformed("tag")),
        0..=0x7F => return Ok(Some((*tag, 2, usize::from(*first)))),
        0x81..=0x84 => usize::from(first & 0x7F),
        _ => return Err(Error::Malformed("length")),
    };
    let length = rest.get(..count).map(|length| length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)));
    Ok(length.map(|length| (*tag, 2 + count, length)))
}

/// Bytes that are read from the start to the end.
#[derive(Clone, Copy, Debug)]
pub struct DerReader<'b>(pub &'b [u8]);

impl<'b> DerReader<'b> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next value: its tag, its content, and what follows it.
    fn split(self) -> Option<(u8, &'b [u8], Self)> {
        let (tag, header, length) = header(self.0).ok()??;
        let (content, rest) = self.0.get(header..)?.split_at_checked(length)?;
        Some((tag, content, Self(rest)))
    }

    /// The next value, with its tag.
    pub fn any(&mut self) -> Option<(u8, &'b [u8])> {
        let (tag, content, rest) = self.split()?;
        *self = rest;
        Some((tag, content))
    }

    /// The content of the next value, which must have this tag.
    pub fn read(&mut self, tag: u8) -> Option<&'b [u8]> {
        let (found, content, rest) = self.split()?;
        *self = if found == tag { rest } else { return None };
        Some(content)
    }

    /// The next field with this number; fields with lower numbers are skipped.
    pub fn field(&mut self, number: u8) -> Option<Self> {
        loop {
            let (found, content, rest) = self.split()?;
            if !(CONTEXT..=CONTEXT | number).contains(&found) {
                return None;
            }
            *self = rest;
            if found == CONTEXT | number {
                return Some(Self(content));
            }
        }
    }

    /// The content of the only value in these bytes, which must have this tag.
    pub fn only(mut self, tag: u8) -> Option<&'b [u8]> {
        self.read(tag).filter(|_| self.is_empty())
    }

    /// The values within the only one, which is a sequence.
    pub fn sequence(self) -> Option<Self> {
        self.only(SEQUENCE).map(Self)
    }

    /// The sequence of the only value, a type of the protocol with this number.
    pub fn application(self, number: u8) -> Option<Self> {
        Self(self.only(APPLICATION | number)?).sequence()
    }

    /// The values, each of which is a sequence; `None` for one that is broken.
    pub fn sequences(mut self) -> impl Iterator<Item = Option<Self>> {
        std::iter::from_fn(move || {
            (!self.is_empty()).then(|| {
                let next = self.read(SEQUENCE).map(Self);
                // Bytes after a broken value are not read.
                self = if next.is_some() { self } else { Self(&[]) };
                next
            })
        })
    }

    pub fn integer(self) -> Option<i64> {
        number(self.only(INTEGER)?)
    }

    pub fn octets(self) -> Option<&'b [u8]> {
        self.only(OCTETS)
    }

    pub fn string(self) -> Option<&'b [u8]> {
        self.only(STRING)
    }

    /// The first 32 flags.
    pub fn flags(self) -> Option<u32> {
        let [_unused, flags @ ..] = self.only(BITS)? else { return None };
        flags.first_chunk().map(|flags| u32::from_be_bytes(*flags))
    }

    pub fn time(self) -> Option<UtcDateTime> {
        date_time(str::from_utf8(self.only(TIME)?).ok()?.strip_suffix('Z')?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_signed_and_as_short_as_can_be() {
        for (number, bytes) in [
            (0, &[2, 1, 0][..]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (-128, &[2, 1, 128]),
            (-129, &[2, 2, 255, 127]),
            (i64::from(u32::MAX), &[2, 5, 0, 255, 255, 255, 255]),
            (i64::MIN, &[2, 8, 128, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!((integer(number).as_slice(), DerReader(bytes).integer()), (bytes, Some(number)));
        }
        assert_eq!(
            (DerReader(&[2, 0]).integer(), DerReader(&[2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1]).integer()),
            (None, None)
        );
    }

    #[test]
    fn lengths_and_tags_that_kerberos_never_uses_are_refused() {
        for bytes in [
            &[0x30, 0x80, 0, 0][..],
            &[0x30, 0x85, 0, 0, 0, 0, 0],
            &[0x3F, 1, 0],
            &[0x30],
            &[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF, 0],
            &[0x30, 0x84, 0x80, 0, 0, 0, 0],
            &[0x30, 0, 0],
        ] {
            assert!(DerReader(bytes).sequence().is_none(), "{bytes:?}");
        }
        for bytes in [&[0x30, 0x80][..], &[0x30, 0x85, 0, 0, 0, 0, 1], &[0x3F, 0x81, 1]] {
            header(bytes).unwrap_err();
        }
        assert_eq!([&[0x30][..], &[0x30, 0x82, 1]].map(|bytes| header(bytes).unwrap()), [None; 2]);
        assert_eq!(header(&[0x30, 0x82, 1, 2]).unwrap(), Some((0x30, 4, 0x102)));
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let bytes = [field(1, &integer(1)), field(3, &integer(3))].concat();
        let mut reader = DerReader(&bytes);
        assert_eq!(reader.field(0).map(|_| ()), None);
        assert_eq!(reader.field(2).map(|_| ()), None);
        assert_eq!(reader.field(3).and_then(DerReader::integer), Some(3));
    }

    #[test]
    fn times_are_those_of_a_calendar() {
        let at = UtcDateTime::from_unix_timestamp(1_795_425_164).unwrap();
        assert_eq!(time(at), *b"\x18\x0f20261123091244Z");
        assert_eq!(DerReader(&time(at)).time(), Some(at));
        for text in [
            "20261323091244Z",
            "20260230091244Z",
            "20261123241244Z",
            "20261123091244",
            "2026112309124+Z",
            "20261123091244.5Z",
            "é261123091244Z",
        ] {
            assert_eq!(DerReader(&value(TIME, text.as_bytes())).time(), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<i64>(), bits in any::<u32>(), seconds in 0..253_402_300_799i64, content in prop::collection::vec(any::<u8>(), 0..70_000)) {
            let at = UtcDateTime::from_unix_timestamp(seconds).unwrap();
            let bytes = sequence(&[field(0, &integer(number)), field(1, &flags(bits)), field(2, &time(at)), field(3, &octets(&content))]);
            let mut reader = DerReader(&bytes).sequence().unwrap();
            prop_assert_eq!(reader.field(0).and_then(DerReader::integer), Some(number));
            prop_assert_eq!(reader.field(1).and_then(DerReader::flags), Some(bits));
            prop_assert_eq!(reader.field(2).and_then(DerReader::time), Some(at));
            prop_assert_eq!(reader.field(3).and_then(DerReader::octets), Some(content.as_slice()));
            prop_assert!(reader.is_empty());
        }
    }
}

//! BER as LDAP uses it (RFC 4511, 5.1): definite lengths only.
//!
//! Invariants: reading borrows, so a value exists only in its message, which can be wiped; lengths are bounded by the
//! message; nothing recurses.

const INTEGER: u8 = 0x02;
const BOOLEAN: u8 = 0x01;
const OCTETS: u8 = 0x04;
const ENUMERATED: u8 = 0x0A;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// A value with its tag.
pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    if let Ok(short @ 0..=0x7F) = u8::try_from(content.len()) {
        bytes.push(short);
    } else {
        let length = content.len().to_be_bytes();
        let from = length.iter().take_while(|byte| **byte == 0).count();
        let length = length.get(from..).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "at most eight bytes")]
        bytes.push(0x80 | length.len() as u8);
        bytes.extend(length);
    }
    bytes.extend(content);
    bytes
}

pub fn sequence(content: &[u8]) -> Vec<u8> {
    value(SEQUENCE, content)
}

#[cfg(test)]
pub fn set(content: &[u8]) -> Vec<u8> {
    value(SET, content)
}

pub fn octets(content: &[u8]) -> Vec<u8> {
    value(OCTETS, content)
}

pub fn boolean(is: bool) -> Vec<u8> {
    value(BOOLEAN, &[if is { 0xFF } else { 0 }])
}

pub fn enumerated(number: u8) -> Vec<u8> {
    value(ENUMERATED, &[number])
}

pub fn integer(number: u32) -> Vec<u8> {
    // A leading zero: it is signed.
    let bytes = u64::from(number).to_be_bytes();
    let from = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    let from = if bytes.get(from).is_some_and(|byte| *byte >= 0x80) { from - 1 } else { from };
    value(INTEGER, bytes.get(from..).unwrap_or_default())
}

/// An operation of LDAP.
pub fn application(tag: u8, content: &[u8]) -> Vec<u8> {
    value(0x60 | tag, content)
}

/// A primitive value with a context-specific tag: its number in a choice or a sequence.
pub fn context(tag: u8, content: &[u8]) -> Vec<u8> {
    value(0x80 | tag, content)
}

pub fn constructed(tag: u8, content: &[u8]) -> Vec<u8> {
    value(0xA0 | tag, content)
}

/// The bytes that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct BerReader<'b>(pub &'b [u8]);

impl<'b> BerReader<'b> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next value, with its tag.
    pub fn next(&mut self) -> Option<(u8, &'b [u8])> {
        let (tag, header, length) = header(self.0).ok()??;
        let (content, rest) = self.0.get(header..)?.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The next value, which must have this tag.
    pub fn expect(&mut self, tag: u8) -> Option<&'b [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// The values within the next one, which must have this tag.
    pub fn within(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self)
    }

    pub fn octets(&mut self) -> Option<&'b [u8]> {
        self.expect(OCTETS)
    }

    /// A number that is not negative.
    pub fn integer(&mut self) -> Option<u32> {
        number(self.expect(INTEGER)?)
    }

    pub fn enumerated(&mut self) -> Option<u32> {
        number(self.expect(ENUMERATED)?)
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    let is_number = (1..=5).contains(&bytes.len()) && bytes.first().is_some_and(|first| *first < 0x80);
    let number = bytes.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    is_number.then(|| u32::try_from(number).ok()).flatten()
}

/// The tag of a value and the lengths of its header and its content; `None` if more bytes are needed.
///
/// # Errors
/// If the length is indefinite or longer than four bytes, or the tag longer than one byte: LDAP has no such elements.
pub fn header(bytes: &[u8]) -> Result<Option<(u8, usize, usize)>, ()> {
    let [tag, first, rest @ ..] = bytes else { return Ok(None) };
    if tag & 0x1F == 0x1F {
        return Err(());
    }
    match *first {
        short @ 0..=0x7F => Ok(Some((*tag, 2, usize::from(short)))),
        long @ 0x81..=0x84 => {
            let count = usize::from(long & 0x7F);
            let Some(length) = rest.get(..count) else { return Ok(None) };
            let length = length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
            Ok(Some((*tag, 2 + count, length)))
        }
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_signed_and_as_short_as_can_be() {
        for (of, bytes) in [
            (0, &[2, 1, 0][..]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (u32::MAX, &[2, 5, 0, 255, 255, 255, 255]),
        ] {
            assert_eq!((integer(of).as_slice(), BerReader(bytes).integer()), (bytes, Some(of)));
        }
        assert_eq!(BerReader(&[2, 1, 0x80]).integer(), None);
        assert_eq!(BerReader(&[2, 0]).integer(), None);
    }

    #[test]
    fn what_ldap_does_not_use_is_refused() {
        assert_eq!(header(&[0x30, 0x80]), Err(()));
        assert_eq!(header(&[0x30, 0x85, 0, 0, 0, 0, 1]), Err(()));
        assert_eq!(header(&[0x3F, 0x81, 1]), Err(()));
        assert_eq!(header(&[0x30]), Ok(None));
        assert_eq!(header(&[0x30, 0x82, 1]), Ok(None));
        assert_eq!(header(&[0x30, 0x82, 1, 2]), Ok(Some((0x30, 4, 0x102))));
    }

    proptest! {
        #[test]
        fn any_content_survives(tag in 0u8..0x1F, content in prop::collection::vec(any::<u8>(), 0..70_000), after in any::<u8>()) {
            let mut bytes = value(tag, &content);
            bytes.push(after);
            let mut reader = BerReader(&bytes);
            prop_assert_eq!(reader.next(), Some((tag, content.as_slice())));
            prop_assert_eq!(reader.0, &[after]);
        }
    }
}

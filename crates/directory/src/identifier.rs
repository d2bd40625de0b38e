//! SIDs and GUIDs, which the directory stores as bytes.

use std::fmt;

/// A security identifier ([MS-DTYP] 2.4.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid {
    authority: u64,
    parts: Vec<u32>,
}

/// The most parts of a SID, `SID_MAX_SUB_AUTHORITIES`.
const MAX_PARTS: usize = 15;

impl Sid {
    /// Of its bytes ([MS-DTYP] 2.4.2.2), which must end with it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sid, rest) = Self::first(bytes)?;
        rest.is_empty().then_some(sid)
    }

    /// The SID at the start, and what follows it.
    pub(crate) fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([1, count, authority @ ..], rest) = bytes.split_first_chunk::<8>()? else { return None };
        let authority = authority.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let count = usize::from(*count);
        let (parts, rest) = (count <= MAX_PARTS).then(|| rest.split_at_checked(count * 4)).flatten()?;
        let (parts, _) = parts.as_chunks();
        Some((Self { authority, parts: parts.iter().copied().map(u32::from_le_bytes).collect() }, rest))
    }

    /// Of its text ([MS-DTYP] 2.4.2.1), such as `S-1-5-32-544`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("S-1-")?.split('-');
        let authority = parts.next()?.parse().ok().filter(|authority| *authority < 1 << 48)?;
        let parts = parts.map(|part| part.parse().ok()).collect::<Option<Vec<_>>>()?;
        (parts.len() <= MAX_PARTS).then_some(Self { authority, parts })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "at most 15 parts")]
        let mut bytes = vec![1, self.parts.len() as u8];
        bytes.extend(self.authority.to_be_bytes().into_iter().skip(2));
        bytes.extend(self.parts.iter().flat_map(|part| part.to_le_bytes()));
        bytes
    }

    /// The domain that it is of, and its number there.
    pub fn split(&self) -> Option<(Self, u32)> {
        let (number, domain) = self.parts.split_last()?;
        Some((Self { authority: self.authority, parts: domain.to_vec() }, *number))
    }

    /// Whether it is of a domain, and not the same everywhere (`S-1-5-21-…`).
    pub fn is_of_domain(&self) -> bool {
        self.authority == 5 && self.parts.first() == Some(&21)
    }

    /// The name of a SID that is the same everywhere ([MS-DTYP] 2.4.2.4), of those that hold many principals.
    pub fn well_known(&self) -> Option<&'static str> {
        match (self.authority, self.parts.as_slice()) {
            (1, [0]) => Some("Everyone"),
            (5, [7]) => Some("Anonymous Logon"),
            (5, [9]) => Some("Enterprise Domain Controllers"),
            (5, [11]) => Some("Authenticated Users"),
            (5, [18]) => Some("Local System"),
            (5, [32, 544]) => Some("Administrators"),
            (5, [32, 545]) => Some("Users"),
            _ => None,
        }
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-1-{}", self.authority)?;
        self.parts.iter().try_for_each(|part| write!(f, "-{part}"))
    }
}

/// A GUID ([MS-DTYP] 2.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid([u8; 16]);

impl Guid {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// In lower case, without braces.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first three parts are numbers, lowest byte first.
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        for (place, index) in ORDER.into_iter().enumerate() {
            let separator = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{separator}{:02x}", self.0.get(index).copied().unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_domain_controller_stores_is_read() {
        let bytes = |text| BASE64_STANDARD.decode(text).unwrap();
        let sid = Sid::from_bytes(&bytes("AQUAAAAAAAUVAAAA0TCVWm2mKBrNPWk8UgQAAA==")).unwrap();
        assert_eq!(sid.to_string(), "S-1-5-21-1519726801-438871661-1013530061-1106");
        let (domain, number) = sid.split().unwrap();
        assert_eq!((domain.to_string().as_str(), number), ("S-1-5-21-1519726801-438871661-1013530061", 1106));
        let guid = Guid::from_bytes(&bytes("QzG066XU40+6IamM1q8I3g==")).unwrap();
        assert_eq!(guid.to_string(), "ebb43143-d4a5-4fe3-ba21-a98cd6af08de");
        assert_eq!(Guid::from_bytes(&[0; 15]), None);
    }

    #[test]
    fn what_is_no_sid_is_refused() {
        for text in [
            "",
            "S-1-",
            "S-2-5",
            "S-1-5-x",
            "S-1-5-4294967296",
            "S-1-281474976710656",
            "S-1-5-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16",
        ] {
            assert_eq!(Sid::parse(text), None, "{text}");
        }
        for bytes in [
            &b""[..],
            &[1, 1, 0, 0, 0, 0, 0, 5, 1, 2, 3],
            &[2, 0, 0, 0, 0, 0, 0, 5],
            &[1, 0, 0, 0, 0, 0, 0, 5, 0],
            &[1, 16, 0, 0, 0, 0, 0, 5],
        ] {
            assert_eq!(Sid::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_sid_survives_bytes_and_text(authority in 0u64..1 << 48, parts in prop::collection::vec(any::<u32>(), 0..=MAX_PARTS)) {
            let sid = Sid { authority, parts };
            prop_assert_eq!(Sid::from_bytes(&sid.to_bytes()), Some(sid.clone()));
            prop_assert_eq!(Sid::parse(&sid.to_string()), Some(sid));
        }
    }
}

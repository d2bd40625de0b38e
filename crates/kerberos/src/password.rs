//! A password, and the key that is made of it (RFC 3962, 4; [MS-KILE] 3.1.1.2).
//!
//! Invariants: a password is wiped when dropped, and never printed or sent; the work that a KDC can ask for is bounded.

use std::num::NonZeroU32;

use ring::pbkdf2;
use zeroize::Zeroizing;

use crate::{EncryptionType, Error, Key, stack};

/// The most iterations that a KDC can ask for; Active Directory asks for 4,096.
pub const MAX_ITERATIONS: u32 = 65_536;
/// The number of iterations without `s2kparams` (RFC 3962, 4).
const DEFAULT_ITERATIONS: u32 = 4096;

/// How the KDC makes a key of the password: an entry of `ETYPE-INFO2` (RFC 4120, 5.2.7.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtypeInfo2Entry {
    pub etype: EncryptionType,
    pub salt: Vec<u8>,
    pub iterations: u32,
}

impl EtypeInfo2Entry {
    /// `s2kparams` holds the iterations, in four bytes.
    ///
    /// # Errors
    /// If it has another length, or asks for too many.
    pub(crate) fn new(etype: EncryptionType, salt: &[u8], s2kparams: Option<&[u8]>) -> Result<Self, Error> {
        let iterations = match s2kparams {
            None => DEFAULT_ITERATIONS,
            Some(bytes) => bytes.try_into().map(u32::from_be_bytes).map_err(|_| Error::Malformed("iterations"))?,
        };
        // Zero stands for 2^32.
        if !(1..=MAX_ITERATIONS).contains(&iterations) {
            return Err(Error::Iterations(if iterations == 0 { 1 << 32 } else { iterations.into() }));
        }
        Ok(Self { etype, salt: salt.to_vec(), iterations })
    }
}

/// A password in UTF-8, wiped when it is dropped.
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.as_bytes().to_vec()))
    }

    /// A password that the domain manages: any bytes, read as UTF-16. An unpaired surrogate becomes U+FFFD and U+0000 becomes U+0001, as in domain
    /// controllers.
    pub fn managed(bytes: &[u8]) -> Self {
        let units = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
        // It never moves while it is written, so that no copy of it is left.
        let mut text = Zeroizing::new(Vec::with_capacity(bytes.len() / 2 * 3));
        for unit in char::decode_utf16(units) {
            let c = match unit.unwrap_or(char::REPLACEMENT_CHARACTER) {
                '\0' => '\u{1}',
                c => c,
            };
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Self(text)
    }

    /// The key of the account.
    ///
    /// # Errors
    /// None, for an entry that a KDC sent.
    pub fn key(&self, EtypeInfo2Entry { etype, salt, iterations }: &EtypeInfo2Entry) -> Result<Key, Error> {
        let iterations = NonZeroU32::new(*iterations).ok_or(Error::Iterations(0))?;
        stack::wiped(|| {
            let stretched = Key::filled(*etype, |bytes| {
                pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, iterations, salt, &self.0, bytes);
                Ok::<(), Error>(())
            })?;
            stretched.derived(b"kerberos")
        })
    }

    /// The keys of the account of every type. In Active Directory they have one salt ([MS-KILE] 3.1.1.2).
    ///
    /// # Errors
    /// As [`Self::key`].
    pub fn keys(&self, salt: &EtypeInfo2Entry) -> Result<Vec<Key>, Error> {
        EncryptionType::ALL.into_iter().map(|etype| self.key(&EtypeInfo2Entry { etype, ..salt.clone() })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::bytes;

    #[test]
    fn keys_are_those_of_the_standard() {
        let x = |count| "X".repeat(count);
        let binary = [0x12, 0x34, 0x56, 0x78, 0x78, 0x56, 0x34, 0x12];
        // RFC 3962, appendix B
        for (iterations, password, salt, short, long) in [
            (
                1,
                "password".to_owned(),
                &b"ATHENA.MIT.EDUraeburn"[..],
                "42263c6e89f4fc28b8df68ee09799f15",
                "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161",
            ),
            (
                2,
                "password".to_owned(),
                b"ATHENA.MIT.EDUraeburn",
                "c651bf29e2300ac27fa469d693bdda13",
                "a2e16d16b36069c135d5e9d2e25f896102685618b95914b467c67622225824ff",
            ),
            (
                1200,
                "password".to_owned(),
                b"ATHENA.MIT.EDUraeburn",
                "4c01cd46d632d01e6dbe230a01ed642a",
                "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a",
            ),
            (
                5,
                "password".to_owned(),
                &binary,
                "e9b23d52273747dd5c35cb55be619d8e",
                "97a4e786be20d81a382d5ebc96d5909cabcdadc87ca48f574504159f16c36e31",
            ),
            (
                1200,
                x(64),
                b"pass phrase equals block size",
                "59d1bb789a828b1aa54ef9c2883f69ed",
                "89adee3608db8bc71f1bfbfe459486b05618b70cbae22092534e56c553ba4b34",
            ),
            (
                1200,
                x(65),
                b"pass phrase exceeds block size",
                "cb8005dc5f90179a7f02104c0018751d",
                "d78c5c9cb872a8c9dad4697f0bb5b2d21496c82beb2caeda2112fceea057401b",
            ),
            (
                50,
                "\u{1d11e}".to_owned(),
                b"EXAMPLE.COMpianist",
                "f149c1f2e154a73452d43e7fe62a56e5",
                "4b6d9839f84406df1f09cc166db4b83c571848b784a3d6bdc346589a3e393f9e",
            ),
        ] {
            for (etype, expected) in [(EncryptionType::Aes128, short), (EncryptionType::Aes256, long)] {
                let salt = EtypeInfo2Entry { etype, salt: salt.to_vec(), iterations };
                assert_eq!(Password::new(&password).key(&salt).unwrap().as_bytes(), bytes(expected), "{salt:?}");
            }
        }
    }

    #[test]
    fn a_managed_password_is_any_bytes() {
        // A, NUL, a pair of surrogates, a low one alone, a high one alone before B, a high one at the end.
        let units = [0x41, 0, 0xD834, 0xDD1E, 0xDC00, 0xD800, 0x42, 0xFFFF, 0xDBFF];
        let bytes: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_le_bytes()).collect();
        assert_eq!(*Password::managed(&bytes).0, "A\u{1}\u{1d11e}\u{fffd}\u{fffd}B\u{ffff}\u{fffd}".as_bytes());
        assert!(Password::managed(&bytes).0.capacity() <= bytes.len() / 2 * 3);
    }

    #[test]
    fn the_work_that_a_kdc_asks_for_is_bounded() {
        let of =
            |bytes: &[u8]| EtypeInfo2Entry::new(EncryptionType::Aes256, b"", Some(bytes)).map(|salt| salt.iterations);
        assert_eq!(of(&[0, 1, 0, 0]).unwrap(), 65_536);
        assert!(matches!(of(&[0, 1, 0, 1]), Err(Error::Iterations(65_537))));
        assert!(matches!(of(&[0x80, 0, 0, 0]), Err(Error::Iterations(0x8000_0000))));
        assert!(matches!(of(&[0; 4]), Err(Error::Iterations(0x1_0000_0000))));
        assert!(matches!(of(&[0; 3]), Err(Error::Malformed("iterations"))));
        assert_eq!(EtypeInfo2Entry::new(EncryptionType::Aes256, b"", None).unwrap().iterations, 4096);
    }
}

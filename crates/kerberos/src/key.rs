//! Keys, and what is done with them (RFC 3961, 5.3; RFC 3962).
//!
//! Invariants: a key is on the heap alone, so that no copy is left when it moves; it is wiped when dropped, and never printed. What a calculation
//! leaves on the stack is wiped.

use std::fmt;

use aes::Block;
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::{
    Error,
    cipher::{self, Aes, BLOCK, n_fold},
    stack,
};

/// The usage of a key (RFC 4120, 7.5.1).
pub mod usage {
    pub const AS_REQ_PA_ENC_TS: u32 = 1;
    pub const KDC_REP_TICKET: u32 = 2;
    pub const AS_REP_ENCPART: u32 = 3;
    pub const TGS_REQ_AUTH_CKSUM: u32 = 6;
    pub const TGS_REQ_AUTH: u32 = 7;
    pub const TGS_REP_ENCPART_SESSKEY: u32 = 8;
}

/// The last byte of the constants that keys for encryption, integrity and checksums are derived with.
const ENCRYPTION: u8 = 0xAA;
const INTEGRITY: u8 = 0x55;
const CHECKSUM: u8 = 0x99;
/// The length of an HMAC-SHA1 that is cut to 96 bits.
const TAG: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionType {
    /// `aes256-cts-hmac-sha1-96`
    Aes256,
    /// `aes128-cts-hmac-sha1-96`
    Aes128,
}

impl EncryptionType {
    /// In the order in which they are asked for.
    pub const ALL: [Self; 2] = [Self::Aes256, Self::Aes128];

    /// The assigned numbers of the type and of the checksum with such a key, the length of a key in bytes, and the name.
    fn facts(self) -> (i32, i32, usize, &'static str) {
        match self {
            Self::Aes256 => (18, 16, 32, "aes256-cts-hmac-sha1-96"),
            Self::Aes128 => (17, 15, 16, "aes128-cts-hmac-sha1-96"),
        }
    }

    /// The assigned number.
    pub fn number(self) -> i32 {
        self.facts().0
    }

    /// `None` for another type.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|etype| i64::from(etype.number()) == number)
    }

    /// The assigned number of the checksum with such a key.
    pub fn checksum(self) -> i32 {
        self.facts().1
    }

    /// In bytes.
    pub fn key_length(self) -> usize {
        self.facts().2
    }
}

impl fmt::Display for EncryptionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().3)
    }
}

/// A key of an account, a session or a service.
pub struct Key {
    etype: EncryptionType,
    bytes: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.etype)
    }
}

impl Key {
    /// A copy of these bytes; `None` where their number is another one.
    pub fn new(etype: EncryptionType, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == etype.key_length()).then(|| Self { etype, bytes: Zeroizing::new(bytes.to_vec()) })
    }

    /// A key that `fill` writes.
    pub(crate) fn filled<E>(etype: EncryptionType, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = Zeroizing::new(vec![0; etype.key_length()]);
        fill(&mut bytes)?;
        Ok(Self { etype, bytes })
    }

    /// # Errors
    /// Where the system gives no random bytes.
    pub fn random(etype: EncryptionType) -> Result<Self, Error> {
        Self::filled(etype, random)
    }

    pub fn etype(&self) -> EncryptionType {
        self.etype
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn aes(&self) -> Result<Aes, Error> {
        Aes::new(&self.bytes).ok_or(Error::Key)
    }

    /// The key that is derived with a constant (DK).
    pub(crate) fn derived(&self, constant: &[u8]) -> Result<Self, Error> {
        let aes = self.aes()?;
        let mut previous = Block::from(n_fold(constant));
        let derived = Self::filled(self.etype, |bytes| {
            for part in bytes.chunks_exact_mut(BLOCK) {
                aes.encrypt(&mut previous);
                part.copy_from_slice(&previous);
            }
            Ok(())
        });
        zeroize::Zeroize::zeroize(previous.as_mut_slice());
        derived
    }

    fn for_usage(&self, usage: u32, purpose: u8) -> Result<Self, Error> {
        let [a, b, c, d] = usage.to_be_bytes();
        self.derived(&[a, b, c, d, purpose])
    }

    fn tag(&self, usage: u32, purpose: u8, text: &[u8]) -> Result<Vec<u8>, Error> {
        let key = self.for_usage(usage, purpose)?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key.bytes), text);
        Ok(tag.as_ref().iter().take(TAG).copied().collect())
    }

    /// The keyed checksum of a text.
    ///
    /// # Errors
    /// None, for a key that exists.
    pub fn checksum(&self, usage: u32, text: &[u8]) -> Result<Vec<u8>, Error> {
        stack::wiped(|| self.tag(usage, CHECKSUM, text))
    }

    /// # Errors
    /// Where the system gives no random bytes.
    pub fn encrypt(&self, usage: u32, text: &[u8]) -> Result<Vec<u8>, Error> {
        let mut confounder = [0; BLOCK];
        random(&mut confounder)?;
        stack::wiped(|| {
            let text = Zeroizing::new([confounder.as_slice(), text].concat());
            let mut encrypted = cipher::encrypt(&self.for_usage(usage, ENCRYPTION)?.aes()?, &text);
            encrypted.extend(self.tag(usage, INTEGRITY, &text)?);
            Ok(encrypted)
        })
    }

    /// # Errors
    /// If it was encrypted with another key or for another usage, or was changed.
    pub fn decrypt(&self, usage: u32, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        stack::wiped(|| {
            let split = encrypted.len().checked_sub(TAG).and_then(|at| encrypted.split_at_checked(at));
            let (bytes, tag) = split.ok_or(Error::Decrypt)?;
            let mut text = cipher::decrypt(&self.for_usage(usage, ENCRYPTION)?.aes()?, bytes).ok_or(Error::Decrypt)?;
            if !bool::from(self.tag(usage, INTEGRITY, &text)?.ct_eq(tag)) {
                return Err(Error::Decrypt);
            }
            text.drain(..BLOCK);
            Ok(text)
        })
    }
}

/// Random bytes of the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Error> {
    SystemRandom::new().fill(bytes).map_err(|_| Error::Random)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes that a text of hexadecimal digits says.
    pub fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    const SHORT: &str = "42263c6e89f4fc28b8df68ee09799f15";
    const LONG: &str = "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161";

    #[test]
    fn derived_keys_are_those_of_mit() {
        // MIT Kerberos, t_derive.c
        for (etype, key, purpose, expected) in [
            (EncryptionType::Aes128, SHORT, CHECKSUM, "34280a382bc92769b2da2f9ef066854b"),
            (EncryptionType::Aes128, SHORT, ENCRYPTION, "5b14fc4e250e14ddf9dccf1af6674f53"),
            (EncryptionType::Aes128, SHORT, INTEGRITY, "4ed31063621684f09ae8d89991af3e8f"),
            (
                EncryptionType::Aes256,
                LONG,
                CHECKSUM,
                "bfab388bdcb238e9f9c98d6a878304f04d30c82556375ac507a7a852790f4674",
            ),
            (
                EncryptionType::Aes256,
                LONG,
                ENCRYPTION,
                "c7cfd9cd75fe793a586a542d87e0d1396f1134a104bb1a9190b8c90ada3ddf37",
            ),
            (
                EncryptionType::Aes256,
                LONG,
                INTEGRITY,
                "97151b4c76945063e2eb0529dc067d97d7bba90776d8126d91f34f3101aea8ba",
            ),
        ] {
            let key = Key::new(etype, &bytes(key)).unwrap();
            assert_eq!(key.for_usage(2, purpose).unwrap().as_bytes(), bytes(expected), "{etype} {purpose:x}");
        }
    }

    #[test]
    fn what_mit_encrypted_is_read() {
        // MIT Kerberos, t_decrypt.c
        for (etype, text, usage, key, encrypted) in [
            (
                EncryptionType::Aes128,
                "",
                0,
                "5a5c0f0ba54f3828b2195e66ca24a289",
                "49ff8e11c173d9583a3254fbe7b1f1df36c538e8416784a1672e6676",
            ),
            (
                EncryptionType::Aes128,
                "30 bytes bytes bytes bytes byt",
                4,
                "dceeb70b3de76562e689226c76429148",
                "c96081032d5d8eeb7e32b4089f789d0faa481dea74c0f97cbf3146ddfcf8e800156ecb532fc203e30ff600b63b350939fece510f02d7ff1e7bac",
            ),
            (
                EncryptionType::Aes256,
                "1",
                1,
                "b9477e1ff0329c0050e20ce6c72d2dff27e8fe541ab0954429a9cb5b4f7b1e2a",
                "406150b97aeb76d43b36b62cc1ecdfbe6f40e95755e0beb5c27825f3a4",
            ),
        ] {
            let key = Key::new(etype, &bytes(key)).unwrap();
            let encrypted = bytes(encrypted);
            assert_eq!(key.decrypt(usage, &encrypted).unwrap().as_slice(), text.as_bytes());
            assert!(matches!(key.decrypt(usage + 1, &encrypted), Err(Error::Decrypt)));
            for at in 0..encrypted.len() {
                let mut changed = encrypted.clone();
                changed[at] ^= 1;
                assert!(matches!(key.decrypt(usage, &changed), Err(Error::Decrypt)));
                assert!(matches!(key.decrypt(usage, &encrypted[..at]), Err(Error::Decrypt)));
            }
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = Key::new(EncryptionType::Aes128, &[0xAB; 16]).unwrap();
        assert_eq!(format!("{key:?}"), "Key(aes128-cts-hmac-sha1-96)");
        assert!(Key::new(EncryptionType::Aes128, &[0; 32]).is_none());
    }
}

//! AES in CBC mode with ciphertext stealing, and n-fold (RFC 3961, 5.1 and appendix A; RFC 3962, 5).
//!
//! Invariant: the initial vector is zero, as RFC 3962 says: each message begins with a random block.

use std::array;

use aes::{
    Aes128, Aes256, Block,
    cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _},
};
use zeroize::Zeroizing;

pub const BLOCK: usize = 16;

/// AES with its key. What it keeps of the key is wiped when it is dropped.
pub enum Aes {
    Short(Aes128),
    Long(Aes256),
}

impl Aes {
    /// `None` for a key of another length.
    pub fn new(key: &[u8]) -> Option<Self> {
        Aes256::new_from_slice(key).map(Self::Long).or_else(|_| Aes128::new_from_slice(key).map(Self::Short)).ok()
    }

    pub fn encrypt(&self, block: &mut Block) {
        match self {
            Self::Short(aes) => aes.encrypt_block(block),
            Self::Long(aes) => aes.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut Block) {
        match self {
            Self::Short(aes) => aes.decrypt_block(block),
            Self::Long(aes) => aes.decrypt_block(block),
        }
    }
}

/// A block of up to 16 bytes, the others zero.
fn block(bytes: &[u8]) -> Block {
    let mut block = Block::default();
    block.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    block
}

fn xor(block: &mut Block, other: &Block) {
    block.iter_mut().zip(other).for_each(|(to, from)| *to ^= from);
}

/// The text must have at least one block.
pub fn encrypt(aes: &Aes, text: &[u8]) -> Vec<u8> {
    let mut previous = Block::default();
    let mut blocks: Vec<Block> = text
        .chunks(BLOCK)
        .map(|chunk| {
            let mut next = block(chunk);
            xor(&mut next, &previous);
            aes.encrypt(&mut next);
            previous = next;
            next
        })
        .collect();
    // The last two are swapped, and the last one is cut.
    if let [.., last_but_one, last] = blocks.as_mut_slice() {
        std::mem::swap(last_but_one, last);
    }
    let mut bytes: Vec<u8> = blocks.into_iter().flatten().collect();
    bytes.truncate(text.len());
    bytes
}

/// `None` for less than a block.
pub fn decrypt(aes: &Aes, bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut blocks: Vec<Block> = bytes.chunks(BLOCK).map(block).collect();
    // The last one, which was cut, is completed from the one before, and they are swapped.
    if let [.., last_but_one, last] = blocks.as_mut_slice() {
        let mut completed = *last_but_one;
        aes.decrypt(&mut completed);
        let kept = bytes.len() - (bytes.len() - 1) / BLOCK * BLOCK;
        last.iter_mut().zip(&completed).skip(kept).for_each(|(to, from)| *to = *from);
        std::mem::swap(last_but_one, last);
    }
    // It never moves while it is written, so that no copy of it is left.
    let mut text = Zeroizing::new(Vec::with_capacity(blocks.len() * BLOCK));
    let mut previous = Block::default();
    for encrypted in blocks {
        let mut next = encrypted;
        aes.decrypt(&mut next);
        xor(&mut next, &previous);
        text.extend_from_slice(&next);
        zeroize::Zeroize::zeroize(next.as_mut_slice());
        previous = encrypted;
    }
    text.truncate(bytes.len());
    (bytes.len() >= BLOCK).then_some(text)
}

/// Folds a text, which is not empty, to a block: the sum of the blocks of an endless text, up to where both end together. Each copy of the
/// text in it is rotated by 13 bits more to the right, and a carry of the first bit goes to the last one.
pub fn n_fold(text: &[u8]) -> [u8; BLOCK] {
    let bits = text.len() * 8;
    let bit = |at: usize| text.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let byte = |at: usize| {
        let start = at % text.len() * 8 + bits - at / text.len() * 13 % bits;
        (0..8).fold(0, |byte, next| byte << 1 | bit((start + next) % bits))
    };
    let copies = (1..=text.len()).find(|copies| (copies * BLOCK).is_multiple_of(text.len())).unwrap_or(1);
    let blocks = (0..copies).map(|copy| u128::from_be_bytes(array::from_fn(|at| byte(copy * BLOCK + at))));
    let sum = blocks.fold(0, |sum: u128, block| {
        let (sum, carry) = sum.overflowing_add(block);
        sum + u128::from(carry)
    });
    sum.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::tests::bytes;

    #[test]
    fn n_fold_is_that_of_the_standard() {
        // RFC 3961, appendix A.1, which has one of this length; the constants of keys are tested by the keys of MIT Kerberos.
        assert_eq!(n_fold(b"kerberos").as_slice(), bytes("6b65726265726f737b9b5b2b93132b93"));
    }

    #[test]
    fn ciphertext_stealing_is_that_of_the_standard() {
        // RFC 3962, appendix B
        let text = b"I would like the General Gau's Chicken, please, and wonton soup.";
        let aes = Aes::new(b"chicken teriyaki").unwrap();
        for (length, expected) in [
            (17, "c6353568f2bf8cb4d8a580362da7ff7f97"),
            (31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"),
            (32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"),
            (47, "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5"),
            (48, "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc98ebf5a8"),
            (
                64,
                "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8",
            ),
        ] {
            let encrypted = encrypt(&aes, &text[..length]);
            assert_eq!(encrypted, bytes(expected), "{length}");
            assert_eq!(decrypt(&aes, &encrypted).unwrap().as_slice(), &text[..length]);
        }
        assert!((0..BLOCK).all(|length| decrypt(&aes, &text[..length]).is_none()));
    }

    proptest! {
        #[test]
        fn any_text_of_a_block_and_more_survives(text in prop::collection::vec(any::<u8>(), BLOCK..300)) {
            let aes = Aes::new(&[7; 32]).unwrap();
            let decrypted = decrypt(&aes, &encrypt(&aes, &text)).unwrap();
            prop_assert_eq!(decrypted.as_slice(), text);
        }
    }
}

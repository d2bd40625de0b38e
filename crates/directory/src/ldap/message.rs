//! Messages (RFC 4511, 4.1.1).
//!
//! Pure. Invariants: what is read borrows from the message; what is wrong in it is an error, never a panic.

use gmsa_core::quote::cut;
use zeroize::Zeroizing;

use super::ber::{self, BerReader, SEQUENCE, SET, boolean, context, integer, octets, sequence, value};
use crate::{Entry, entry::MAX_TEXT};

/// Upgrades to TLS (RFC 4511, 4.14).
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Searches by pages (RFC 2696).
const PAGED: &str = "1.2.840.113556.1.4.319";
/// Names with the GUID and the SID of their object ([MS-ADTS] 3.1.1.3.4.1.5).
const EXTENDED_NAMES: &str = "1.2.840.113556.1.4.529";

/// An extension of a request (a control).
pub enum Control<'c> {
    /// At most this many entries, from where the last page ended.
    Page(u32, &'c [u8]),
    ExtendedNames,
}

impl Control<'_> {
    fn encode(&self) -> Vec<u8> {
        let (name, content) = match self {
            Self::Page(size, cookie) => (PAGED, [integer(*size), octets(cookie)].concat()),
            Self::ExtendedNames => (EXTENDED_NAMES, integer(1)),
        };
        sequence(&[octets(name.as_bytes()), boolean(true), octets(&sequence(&content))].concat())
    }
}

/// A request with its number.
pub fn request(number: u32, operation: &[u8], controls: &[Control<'_>]) -> Vec<u8> {
    let mut content = integer(number);
    content.extend(operation);
    if !controls.is_empty() {
        content.extend(value(0xA0, &controls.iter().map(Control::encode).collect::<Vec<_>>().concat()));
    }
    sequence(&content)
}

/// A simple bind, whole: the only request with a secret in it, so it is made in memory that is wiped.
pub fn bind(number: u32, user: &str, password: &str) -> Zeroizing<Vec<u8>> {
    const LDAP_3: u32 = 3;
    let password = Zeroizing::new(context(0, password.as_bytes()));
    let content = Zeroizing::new([integer(LDAP_3).as_slice(), &octets(user.as_bytes()), &password].concat());
    let operation = Zeroizing::new(ber::application(0, &content));
    Zeroizing::new(request(number, &operation, &[]))
}

pub fn start_tls() -> Vec<u8> {
    ber::application(23, &context(0, START_TLS.as_bytes()))
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The result code (RFC 4511, 4.1.9).
    pub code: u32,
    pub message: String,
}

#[derive(Debug)]
pub enum LdapAnswer<'m> {
    /// An entry, whose values are still in the message.
    Entry(FoundEntry<'m>),
    /// A referral to another server, which the search does not follow.
    Reference,
    /// The end, and where the next page begins; empty after the last one.
    Done(Ending, &'m [u8]),
}

/// An entry of a message.
#[derive(Debug)]
pub struct FoundEntry<'m> {
    name: &'m [u8],
    attributes: BerReader<'m>,
}

impl<'m> FoundEntry<'m> {
    /// Each attribute, and its values; `None` where it is broken.
    fn attributes(&self) -> impl Iterator<Item = Option<(&'m [u8], BerReader<'m>)>> {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            (!rest.is_empty()).then(|| {
                let mut one = rest.within(SEQUENCE);
                // Nothing after a malformed element is read.
                if one.is_none() {
                    rest = BerReader(&[]);
                }
                let one = one.as_mut()?;
                Some((one.octets()?, one.within(SET)?))
            })
        })
    }

    /// The first value of an attribute, which is not copied, or an empty one; `None` where it is broken.
    pub fn value(&self, attribute: &str) -> Option<&'m [u8]> {
        for found in self.attributes() {
            let (name, mut values) = found?;
            if name.eq_ignore_ascii_case(attribute.as_bytes()) {
                return Some(values.octets().unwrap_or_default());
            }
        }
        Some(&[])
    }

    /// The approximate memory of a copy, beyond the bytes of its message; `None` if it is malformed.
    pub fn cost(&self) -> Option<usize> {
        // A node of the map of attributes, a key with its list, a value.
        const ENTRY: usize = 512;
        const ITEM: usize = 64;
        let mut cost = ENTRY;
        for found in self.attributes() {
            let (_, mut values) = found?;
            cost += ITEM;
            while !values.is_empty() {
                values.octets()?;
                cost += ITEM;
            }
        }
        Some(cost)
    }

    /// A copy, its name cut; `None` where it is broken.
    pub fn entry(&self) -> Option<Entry> {
        let mut entry = Entry { name: cut(str::from_utf8(self.name).ok()?, MAX_TEXT).to_owned(), ..Entry::default() };
        for found in self.attributes() {
            let (name, mut values) = found?;
            let name = str::from_utf8(name).ok()?.to_ascii_lowercase();
            let mut own = Vec::new();
            while !values.is_empty() {
                own.push(values.octets()?.to_vec());
            }
            entry.attributes.insert(name, own);
        }
        Some(entry)
    }
}

/// Reads a whole message: the number of the request that it answers, and the answer. `None` where it is broken.
pub fn read(message: &[u8]) -> Option<(u32, LdapAnswer<'_>)> {
    const ENTRY: u8 = 0x64;
    const REFERENCE: u8 = 0x73;
    const ENDINGS: [u8; 4] = [0x61, 0x65, 0x69, 0x78];
    let mut outer = BerReader(message);
    let mut message = outer.within(SEQUENCE)?;
    let number = message.integer()?;
    let (tag, content) = message.next()?;
    let mut content = BerReader(content);
    let answer = match tag {
        ENTRY => LdapAnswer::Entry(FoundEntry { name: content.octets()?, attributes: content.within(SEQUENCE)? }),
        REFERENCE => LdapAnswer::Reference,
        tag if ENDINGS.contains(&tag) => {
            let code = content.enumerated()?;
            let _matched = content.octets()?;
            let message_of = String::from_utf8_lossy(content.octets()?).into_owned();
            LdapAnswer::Done(Ending { code, message: message_of }, next_page(message).unwrap_or_default())
        }
        _ => return None,
    };
    Some((number, answer))
}

/// The cookie of the control of pages.
fn next_page(mut message: BerReader<'_>) -> Option<&[u8]> {
    const CONTROLS: u8 = 0xA0;
    let mut controls = message.within(CONTROLS)?;
    while !controls.is_empty() {
        let mut control = controls.within(SEQUENCE)?;
        let is_paged = control.octets()? == PAGED.as_bytes();
        while let Some((tag, content)) = control.next() {
            if is_paged && tag == 0x04 {
                let mut content = BerReader(content).within(SEQUENCE)?;
                let _estimate = content.integer()?;
                return content.octets();
            }
        }
    }
    None
}

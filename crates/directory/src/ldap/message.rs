//! Messages (RFC 4511, 4.1.1).
//!
//! Pure. Invariants: what is read borrows from the message; what is wrong in it is an error, never a panic.

use gmsa_core::quote::cut;
use gmsa_kerberos::der::{
    self, BOOLEAN, DerReader, ENUMERATED, INTEGER, OCTETS, SEQUENCE, SET, application, field, integer, octets,
    sequence, value,
};
use zeroize::Zeroizing;

use crate::{Entry, entry::MAX_TEXT};

/// Upgrades to TLS (RFC 4511, 4.14).
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Searches by pages (RFC 2696).
const PAGED: &str = "1.2.840.113556.1.4.319";
/// Names with the GUID and the SID of their object ([MS-ADTS] 3.1.1.3.4.1.5).
const EXTENDED_NAMES: &str = "1.2.840.113556.1.4.529";

/// The tag of a primitive value with the number 0 in a choice or a sequence.
const PRIMITIVE: u8 = 0x80;

/// An extension of a request (a control).
pub enum Control<'c> {
    /// At most this many entries, from where the last page ended.
    Page(u32, &'c [u8]),
    ExtendedNames,
}

impl Control<'_> {
    fn encode(&self) -> Vec<u8> {
        let (name, content) = match self {
            Self::Page(size, cookie) => (PAGED, vec![integer((*size).into()), octets(cookie)]),
            Self::ExtendedNames => (EXTENDED_NAMES, vec![integer(1)]),
        };
        sequence(&[octets(name.as_bytes()), value(BOOLEAN, &[0xFF]), octets(&sequence(&content))])
    }
}

/// A request with its number.
pub fn request(number: u32, operation: &[u8], controls: &[Control<'_>]) -> Vec<u8> {
    let controls: Vec<u8> = controls.iter().flat_map(Control::encode).collect();
    let controls = if controls.is_empty() { controls } else { field(0, &controls) };
    value(SEQUENCE, &Zeroizing::new([&integer(number.into()), operation, &controls].concat()))
}

/// A simple bind, whole: the only request with a secret in it, so it is made in memory that is wiped.
pub fn bind(number: u32, user: &str, password: &str) -> Zeroizing<Vec<u8>> {
    const LDAP_3: i64 = 3;
    let password = Zeroizing::new(value(PRIMITIVE, password.as_bytes()));
    let content = Zeroizing::new([integer(LDAP_3).as_slice(), &octets(user.as_bytes()), &password].concat());
    let operation = Zeroizing::new(application(0, &content));
    Zeroizing::new(request(number, &operation, &[]))
}

pub fn start_tls() -> Vec<u8> {
    application(23, &value(PRIMITIVE, START_TLS.as_bytes()))
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
    attributes: DerReader<'m>,
}

impl<'m> FoundEntry<'m> {
    /// Each attribute, and its values; `None` where it is broken.
    fn attributes(&self) -> impl Iterator<Item = Option<(&'m [u8], DerReader<'m>)>> {
        let attribute = |mut one: DerReader<'m>| Some((one.read(OCTETS)?, DerReader(one.read(SET)?)));
        self.attributes.sequences().map(move |one| one.and_then(attribute))
    }

    /// The first value of an attribute, which is not copied, or an empty one; `None` where it is broken.
    pub fn value(&self, attribute: &str) -> Option<&'m [u8]> {
        for found in self.attributes() {
            let (name, mut values) = found?;
            if name.eq_ignore_ascii_case(attribute.as_bytes()) {
                return Some(values.read(OCTETS).unwrap_or_default());
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
                values.read(OCTETS)?;
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
                own.push(values.read(OCTETS)?.to_vec());
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
    let mut message = DerReader(message).sequence()?;
    let request = number(message.read(INTEGER)?)?;
    let (tag, content) = message.any()?;
    let mut content = DerReader(content);
    let answer = match tag {
        ENTRY => {
            let (name, attributes) = (content.read(OCTETS)?, DerReader(content.read(SEQUENCE)?));
            LdapAnswer::Entry(FoundEntry { name, attributes })
        }
        REFERENCE => LdapAnswer::Reference,
        tag if ENDINGS.contains(&tag) => {
            let code = number(content.read(ENUMERATED)?)?;
            let _matched = content.read(OCTETS)?;
            let message_of = String::from_utf8_lossy(content.read(OCTETS)?).into_owned();
            LdapAnswer::Done(Ending { code, message: message_of }, next_page(message).unwrap_or_default())
        }
        _ => return None,
    };
    Some((request, answer))
}

/// A number that is not negative.
fn number(content: &[u8]) -> Option<u32> {
    u32::try_from(der::number(content)?).ok()
}

/// The cookie of the control of pages.
fn next_page(mut message: DerReader<'_>) -> Option<&[u8]> {
    const CONTROLS: u8 = 0xA0;
    for control in DerReader(message.read(CONTROLS)?).sequences() {
        let mut control = control?;
        let is_paged = control.read(OCTETS)? == PAGED.as_bytes();
        while let Some((tag, content)) = control.any() {
            if is_paged && tag == OCTETS {
                let mut content = DerReader(content).sequence()?;
                let _estimate = content.read(INTEGER)?;
                return content.read(OCTETS);
            }
        }
    }
    None
}

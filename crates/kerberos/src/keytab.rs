//! A keytab of MIT Kerberos, version 0x0502: the keys of a service, for programs that accept tickets.

use time::UtcDateTime;
use zeroize::Zeroizing;

use crate::{
    Key, Principal,
    ccache::{data, names, seconds},
};

/// The version of the format.
const HEADER: [u8; 2] = [5, 2];

/// The bytes of an entry besides its names and its key: time, number, type and length of the key, and the whole number.
const FIXED: usize = 13;

/// A key of a principal.
#[derive(Clone, Copy, Debug)]
pub struct KeytabEntry<'k> {
    pub principal: &'k Principal,
    /// When the key was made.
    pub made: UtcDateTime,
    /// The number of the key (`kvno`).
    pub kvno: u32,
    pub key: &'k Key,
}

/// The content of a keytab with these entries. It is wiped when dropped.
pub fn keytab(entries: &[KeytabEntry<'_>]) -> Zeroizing<Vec<u8>> {
    let principals: Vec<Vec<u8>> = entries.iter().map(|entry| principal(entry.principal)).collect();
    let sizes = || {
        entries.iter().zip(&principals).map(|(entry, principal)| principal.len() + entry.key.as_bytes().len() + FIXED)
    };
    // It never moves while it is written, so that no copy of a key is left.
    let mut file = Zeroizing::new(Vec::with_capacity(2 + sizes().map(|size| size + 4).sum::<usize>()));
    file.extend_from_slice(&HEADER);
    for ((KeytabEntry { made, kvno, key, .. }, principal), size) in entries.iter().zip(&principals).zip(sizes()) {
        file.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes());
        file.extend_from_slice(principal);
        file.extend_from_slice(&seconds(*made).to_be_bytes());
        let [.., low] = kvno.to_be_bytes();
        file.push(low);
        file.extend_from_slice(&u16::try_from(key.etype().number()).unwrap_or(u16::MAX).to_be_bytes());
        data::<2>(&mut file, key.as_bytes());
        // Readers that know this field ignore the eight bits above.
        file.extend_from_slice(&kvno.to_be_bytes());
    }
    file
}

/// An entry as it is written, with the time and the number of its key.
struct Written<'f> {
    bytes: &'f [u8],
    made: u32,
    kvno: u32,
}

/// The entries of a keytab, up to the first one that is broken.
fn written(file: &[u8]) -> impl Iterator<Item = Written<'_>> {
    let mut rest = file.strip_prefix(&HEADER).unwrap_or_default();
    std::iter::from_fn(move || {
        let size = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        let (bytes, after) = rest.split_at_checked(size.checked_add(4)?)?;
        rest = after;
        let (parts, mut names) = bytes.get(4..)?.split_first_chunk()?;
        // The realm, and the parts of the name.
        for _ in 0..=u16::from_be_bytes(*parts) {
            let (length, after) = names.split_first_chunk()?;
            names = after.get(usize::from(u16::from_be_bytes(*length))..)?;
        }
        let made = u32::from_be_bytes(*names.get(4..)?.first_chunk()?);
        Some(Written { bytes, made, kvno: u32::from_be_bytes(*bytes.last_chunk()?) })
    })
}

/// A keytab with the entries of a former one that it lacks, until the keys that came after them are made before `since`.
pub fn with_former(file: &[u8], former: &[u8], since: UtcDateTime) -> Zeroizing<Vec<u8>> {
    let is_kept = |entry: &Written<'_>| {
        let next = written(file).filter(|other| other.kvno >= entry.kvno).min_by_key(|other| other.kvno);
        next.is_some_and(|next| next.kvno > entry.kvno && next.made > seconds(since))
    };
    let mut all = Zeroizing::new(Vec::with_capacity(file.len() + former.len()));
    all.extend_from_slice(file);
    written(former).filter(is_kept).for_each(|entry| all.extend_from_slice(entry.bytes));
    all
}

fn principal(Principal { name, realm }: &Principal) -> Vec<u8> {
    [names::<2>(name, realm).as_slice(), &name.name_type.to_be_bytes()].concat()
}

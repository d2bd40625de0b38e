//! A credential cache of MIT Kerberos, version 4.

use time::UtcDateTime;
use zeroize::Zeroizing;

use crate::{PrincipalName, Realm, Ticket};

/// Version 4, and a header with one field: a time offset of zero.
const HEADER: [u8; 16] = [5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];

/// The bytes of a ticket besides its names, its key and itself: at most this many.
const FIXED: usize = 64;

/// The content of a cache with these tickets, which are of one client; empty without tickets. It is wiped when dropped: it holds session keys.
///
/// A ticket of another realm stands in it twice, under the service's realm and under the client's: clients that do not know the service's realm
/// look for it under their own.
pub fn ccache(tickets: &[Ticket]) -> Zeroizing<Vec<u8>> {
    let Some(first) = tickets.first() else { return Zeroizing::default() };
    let client = principal(&first.client.name, &first.client.realm);
    let principals = |ticket: &Ticket, realm| [client.clone(), principal(&ticket.service.name, realm)].concat();
    let entries = tickets.iter().flat_map(|ticket| ticket.realms().map(move |realm| (ticket, realm)));
    let entries: Vec<(&Ticket, Vec<u8>)> = entries.map(|(ticket, realm)| (ticket, principals(ticket, realm))).collect();
    let sizes = entries
        .iter()
        .map(|(ticket, names)| names.len() + ticket.session_key.as_bytes().len() + ticket.encoded.len() + FIXED);
    // It never moves while it is written, so that no copy of a key is left.
    let mut cache = Zeroizing::new(Vec::with_capacity(HEADER.len() + client.len() + sizes.sum::<usize>()));
    cache.extend_from_slice(&HEADER);
    cache.extend_from_slice(&client);
    for (ticket, names) in &entries {
        cache.extend_from_slice(names);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "17 or 18")]
        cache.extend_from_slice(&(ticket.session_key.etype().number() as u16).to_be_bytes());
        data::<4>(&mut cache, ticket.session_key.as_bytes());
        for time in [ticket.authtime, ticket.starttime, ticket.endtime] {
            cache.extend_from_slice(&seconds(time).to_be_bytes());
        }
        // The time of the last renewal (none), whether it is encrypted with a session key (no), the flags, no address, no authorization data.
        cache.extend_from_slice(&[0; 5]);
        cache.extend_from_slice(&ticket.flags.to_be_bytes());
        cache.extend_from_slice(&[0; 8]);
        data::<4>(&mut cache, &ticket.encoded);
        data::<4>(&mut cache, &[]);
    }
    cache
}

fn principal(name: &PrincipalName, realm: &Realm) -> Vec<u8> {
    [name.name_type.to_be_bytes().as_slice(), &names::<4>(name, realm)].concat()
}

/// The realm and the parts of a name, after the number of the parts.
pub(crate) fn names<const N: usize>(name: &PrincipalName, realm: &Realm) -> Vec<u8> {
    let mut bytes = length::<N>(name.parts.len()).to_vec();
    data::<N>(&mut bytes, realm.as_str().as_bytes());
    name.parts.iter().for_each(|part| data::<N>(&mut bytes, part.as_bytes()));
    bytes
}

/// Bytes after their number, which has 4 bytes here, and 2 in a keytab: nothing counted here is larger than a message of 64 KiB, and nothing there
/// than a name of 1 KiB.
pub(crate) fn data<const N: usize>(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&length::<N>(bytes.len()));
    to.extend_from_slice(bytes);
}

fn length<const N: usize>(count: usize) -> [u8; N] {
    count.to_be_bytes().last_chunk().copied().unwrap_or([u8::MAX; N])
}

/// Seconds since 1970. A time beyond 2106 is the last one that fits.
pub(crate) fn seconds(time: UtcDateTime) -> u32 {
    u32::try_from(time.unix_timestamp().max(0)).unwrap_or(u32::MAX)
}

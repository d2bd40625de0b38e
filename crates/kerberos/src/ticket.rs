//! A ticket, with its session key.

use time::UtcDateTime;

use crate::{Key, Principal, Realm};

/// Its session key is wiped when it is dropped. Times and flags have the names of `EncKDCRepPart` (RFC 4120, 5.4.2).
#[derive(Debug)]
pub struct Ticket {
    /// The account that the ticket belongs to.
    pub client: Principal,
    /// The service that the ticket is for.
    pub service: Principal,
    pub session_key: Key,
    /// `TicketFlags` (RFC 4120, 5.3).
    pub flags: u32,
    pub authtime: UtcDateTime,
    pub starttime: UtcDateTime,
    pub endtime: UtcDateTime,
    /// The DER of `Ticket`, as it is sent to the service.
    pub encoded: Vec<u8>,
}

impl Ticket {
    /// The realms under which it stands in a cache: that of the service, and that of the client where it is another.
    pub fn realms(&self) -> impl Iterator<Item = &Realm> {
        let (service, client) = (&self.service.realm, &self.client.realm);
        [service].into_iter().chain(Some(client).filter(|client| *client != service))
    }

    /// The realm whose KDCs take this ticket; `None` where it is not a ticket-granting ticket.
    pub fn granting_realm(&self) -> Option<Realm> {
        match self.service.name.parts.as_slice() {
            [class, realm] if class == "krbtgt" => Realm::from_domain(realm),
            _ => None,
        }
    }
}

//! A ticket, with its session key.

use time::UtcDateTime;

use crate::{Key, Principal};

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

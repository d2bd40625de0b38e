//! `AS-REP` and `TGS-REP` (RFC 4120, 5.4.2).
//!
//! Invariant: a ticket is made only of a reply that is for the request: its realms, client, service and nonce are compared, and what is encrypted
//! decrypts with the expected key for the expected usage.

use time::UtcDateTime;

use crate::{EncryptionType, Error, KdcRequest, Key, Principal, PrincipalName, Ticket, der::DerReader};

/// `KDC-REP`, in which nothing is verified.
pub struct KdcReply<'m> {
    /// `METHOD-DATA`
    pub padata: Option<DerReader<'m>>,
    crealm: &'m [u8],
    cname: DerReader<'m>,
    /// As it is encoded.
    ticket: DerReader<'m>,
    enc_part: EncryptedData<'m>,
}

/// `EncryptedData` (RFC 4120, 5.2.9)
pub struct EncryptedData<'m> {
    pub etype: i64,
    /// The number of the key.
    pub kvno: Option<i64>,
    pub cipher: &'m [u8],
}

/// `EncKDCRepPart` (RFC 4120, 5.4.2)
struct EncKdcRepPart<'m> {
    key: Key,
    nonce: i64,
    flags: u32,
    authtime: UtcDateTime,
    starttime: Option<UtcDateTime>,
    endtime: UtcDateTime,
    srealm: &'m [u8],
    sname: DerReader<'m>,
}

impl<'m> KdcReply<'m> {
    /// `None` where it is not a reply with this number.
    pub fn read(message: &'m [u8], number: u8) -> Option<Self> {
        const PVNO: i64 = 5;
        let mut reader = DerReader(message).application(number)?;
        let is_reply = reader.field(0)?.integer()? == PVNO && reader.field(1)?.integer()? == number.into();
        // The list is optional, and comes before what is not.
        let padata = reader.field(2);
        let reply = Self {
            padata,
            crealm: reader.field(3)?.string()?,
            cname: reader.field(4)?,
            ticket: reader.field(5)?,
            enc_part: EncryptedData::read(reader.field(6)?)?,
        };
        is_reply.then_some(reply)
    }

    /// The ticket, once everything agrees with the request.
    pub fn ticket(&self, request: &KdcRequest, usage: u32, key: &Key) -> Result<Ticket, Error> {
        let KdcRequest { client, realm, service, .. } = request;
        let same = |is: bool, what| if is { Ok(()) } else { Err(Error::Mismatch(what)) };
        let (ticket_realm, ticket_service) = service_of(self.ticket).ok_or(Error::Malformed("ticket"))?;
        same(self.crealm == client.realm.as_str().as_bytes(), "realm")?;
        same(client.name.matches(self.cname), "client")?;
        same(ticket_realm == realm.as_str().as_bytes(), "realm")?;
        same(self.enc_part.etype == i64::from(key.etype().number()), "encryption type")?;
        let text = key.decrypt(usage, self.enc_part.cipher)?;
        let part = EncKdcRepPart::read(&text).ok_or(Error::Malformed("encrypted part"))?;
        same(part.nonce == i64::from(request.nonce), "nonce")?;
        same(part.srealm == realm.as_str().as_bytes(), "realm")?;
        // A referral counts only by what is encrypted.
        let referral = || PrincipalName::read_krbtgt(part.sname).filter(|_| request.with_referrals);
        let service = if service.matches(part.sname) { Some(service.clone()) } else { referral() };
        let service = service.filter(|service| service.matches(ticket_service)).ok_or(Error::Mismatch("service"))?;
        Ok(Ticket {
            client: client.clone(),
            service: Principal { name: service, realm: realm.clone() },
            session_key: part.key,
            flags: part.flags,
            authtime: part.authtime,
            starttime: part.starttime.unwrap_or(part.authtime),
            endtime: part.endtime,
            encoded: self.ticket.0.to_vec(),
        })
    }
}

impl<'m> EncryptedData<'m> {
    fn read(data: DerReader<'m>) -> Option<Self> {
        let mut data = data.sequence()?;
        let (etype, kvno) = (data.field(0)?.integer()?, data.field(1).and_then(DerReader::integer));
        Some(Self { etype, kvno, cipher: data.field(2)?.octets()? })
    }
}

impl Ticket {
    /// Its content, which is encrypted with a key of the service.
    pub fn enc_part(&self) -> Option<EncryptedData<'_>> {
        EncryptedData::read(DerReader(&self.encoded).application(1)?.field(3)?)
    }
}

/// Realm and name of the service of a `Ticket` (RFC 4120, 5.3).
fn service_of(ticket: DerReader<'_>) -> Option<(&[u8], DerReader<'_>)> {
    let mut ticket = ticket.application(1)?;
    Some((ticket.field(1)?.string()?, ticket.field(2)?))
}

impl<'m> EncKdcRepPart<'m> {
    /// Some KDCs send `EncTGSRepPart` in an `AS-REP` (RFC 4120, 5.4.2).
    fn read(text: &'m [u8]) -> Option<Self> {
        let mut part = DerReader(text).application(25).or_else(|| DerReader(text).application(26))?;
        let mut key = part.field(0)?.sequence()?;
        let etype = EncryptionType::from_number(key.field(0)?.integer()?)?;
        let key = Key::new(etype, key.field(1)?.octets()?)?;
        let nonce = part.field(2)?.integer()?;
        let flags = part.field(4)?.flags()?;
        let mut time = |number| part.field(number).map_or(Some(None), |field| field.time().map(Some));
        let (authtime, starttime) = (time(5)??, time(6)?);
        let endtime = time(7)??;
        let (srealm, sname) = (part.field(9)?.string()?, part.field(10)?);
        Some(Self { key, nonce, flags, authtime, starttime, endtime, srealm, sname })
    }
}

//! `AS-REQ` and `TGS-REQ` (RFC 4120, 5.4.1): what is sent, and how its answer is read.
//!
//! Invariants: the only option is `canonicalize`, where referrals are followed, so tickets are neither forwardable nor renewable nor proxiable; what is sent holds no secret in clear.
//! There is no subkey: a reply for another request has another nonce.

use time::UtcDateTime;

use crate::{
    EncryptionType, Error, EtypeInfo2Entry, KdcError, KdcRefusal, Key, Principal, PrincipalName, Realm, Ticket,
    der::{application, field, flags, integer, octets, sequence, string, time},
    kdc_error::etype_info2,
    key::{random, usage},
    reply::KdcReply,
};

const PVNO: i64 = 5;
const AS_REQ: u8 = 10;
const AS_REP: u8 = 11;
const TGS_REQ: u8 = 12;
const TGS_REP: u8 = 13;
const AP_REQ: u8 = 14;
const AUTHENTICATOR: u8 = 2;
const PA_TGS_REQ: i64 = 1;
const PA_ENC_TIMESTAMP: i64 = 2;
/// Of `KDCOptions`: the answer can be a referral (RFC 6806, 8).
const CANONICALIZE: u32 = 0x0001_0000;

/// A request, and what its answer must agree with.
pub struct KdcRequest {
    bytes: Vec<u8>,
    /// The number of the answer.
    reply: u8,
    pub(crate) nonce: u32,
    pub(crate) client: Principal,
    /// That of the KDC.
    pub(crate) realm: Realm,
    pub(crate) service: PrincipalName,
    /// Whether the ticket can be one for the KDCs of another realm.
    pub(crate) with_referrals: bool,
    created: UtcDateTime,
}

impl KdcRequest {
    /// Asks for a TGT. Without a key, the answer says how one is made of the password.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn as_req(
        client: &Principal,
        key: Option<&Key>,
        created: UtcDateTime,
        till: UtcDateTime,
    ) -> Result<Self, Error> {
        let service = PrincipalName::krbtgt(&client.realm);
        let nonce = nonce()?;
        // With another type, the KDC would encrypt the reply with another key.
        let etypes = key.map_or(EncryptionType::ALL.to_vec(), |key| vec![key.etype()]);
        let body = req_body(Some(&client.name), &client.realm, 0, &service, till, nonce, &etypes);
        let padata = match key {
            Some(key) => {
                let timestamp = sequence(&[field(0, &time(created)), field(1, &integer(created.microsecond().into()))]);
                vec![pa_data(PA_ENC_TIMESTAMP, &encrypted_data(key, usage::AS_REQ_PA_ENC_TS, &timestamp)?)]
            }
            None => Vec::new(),
        };
        let bytes = message(AS_REQ, &padata, &body);
        let (client, realm) = (client.clone(), client.realm.clone());
        Ok(Self { bytes, reply: AS_REP, nonce, client, realm, service, with_referrals: false, created })
    }

    /// Asks for a ticket for a service, with a TGT, a KDC of the realm that takes it. With referrals, the ticket can be a TGT of another realm.
    ///
    /// # Errors
    /// As [`Self::as_req`].
    pub fn tgs_req(
        tgt: &Ticket,
        service: &PrincipalName,
        with_referrals: bool,
        created: UtcDateTime,
        till: UtcDateTime,
    ) -> Result<Self, Error> {
        let realm = tgt.granting_realm().unwrap_or_else(|| tgt.service.realm.clone());
        let Ticket { client, session_key, encoded, .. } = tgt;
        let nonce = nonce()?;
        let body = req_body(
            None,
            &realm,
            if with_referrals { CANONICALIZE } else { 0 },
            service,
            till,
            nonce,
            &EncryptionType::ALL,
        );
        let checksum = sequence(&[
            field(0, &integer(session_key.etype().checksum().into())),
            field(1, &octets(&session_key.checksum(usage::TGS_REQ_AUTH_CKSUM, &body)?)),
        ]);
        let authenticator = sequence(&[
            field(0, &integer(PVNO)),
            field(1, &string(client.realm.as_str())),
            field(2, &client.name.encode()),
            field(3, &checksum),
            field(4, &integer(created.microsecond().into())),
            field(5, &time(created)),
        ]);
        let authenticator = application(AUTHENTICATOR, &authenticator);
        let ap_req = sequence(&[
            field(0, &integer(PVNO)),
            field(1, &integer(AP_REQ.into())),
            field(2, &flags(0)),
            field(3, encoded),
            field(4, &encrypted_data(session_key, usage::TGS_REQ_AUTH, &authenticator)?),
        ]);
        let bytes = message(TGS_REQ, &[pa_data(PA_TGS_REQ, &application(AP_REQ, &ap_req))], &body);
        let (client, service) = (client.clone(), service.clone());
        Ok(Self { bytes, reply: TGS_REP, nonce, client, realm, service, with_referrals, created })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The ticket in the answer: to an `AS-REQ` with the key of the account, to a `TGS-REQ` with the session key of the TGT.
    ///
    /// # Errors
    /// Where the KDC refuses, or the answer is broken, for another request, or from a sender that does not know the key.
    pub fn ticket(&self, answer: &[u8], key: &Key) -> Result<Ticket, Error> {
        let usage = if self.reply == AS_REP { usage::AS_REP_ENCPART } else { usage::TGS_REP_ENCPART_SESSKEY };
        self.read(answer)?.ticket(self, usage, key)
    }

    /// How keys of the account are made of its password, as the answer to an `AS-REQ` without a key says.
    ///
    /// # Errors
    /// As [`Self::ticket`], and where the KDC offers no AES.
    pub fn salt(&self, answer: &[u8]) -> Result<EtypeInfo2Entry, Error> {
        let entries = match self.read(answer) {
            // An account that needs no pre-authentication.
            Ok(reply) => reply.padata.and_then(etype_info2).transpose()?.unwrap_or_default(),
            Err(Error::Refused(error)) if error.refusal() == KdcRefusal::PreauthenticationRequired => error.etype_info2,
            Err(error) => return Err(error),
        };
        entries.into_iter().next().ok_or(Error::NoAes)
    }

    /// # Errors
    /// Where the KDC says that it is not available: another KDC can be asked.
    pub(crate) fn available(&self, answer: &[u8]) -> Result<(), Error> {
        match self.read(answer) {
            Err(error) if error.is_unanswered() => Err(error),
            _ => Ok(()),
        }
    }

    fn read<'m>(&self, answer: &'m [u8]) -> Result<KdcReply<'m>, Error> {
        match KdcError::read(answer, self.created) {
            Some(refused) => Err(Error::Refused(Box::new(refused?))),
            None => KdcReply::read(answer, self.reply).ok_or(Error::Malformed("reply")),
        }
    }
}

/// `KDC-REQ-BODY`. Only an `AS-REQ` names the client.
fn req_body(
    cname: Option<&PrincipalName>,
    realm: &Realm,
    options: u32,
    service: &PrincipalName,
    till: UtcDateTime,
    nonce: u32,
    etypes: &[EncryptionType],
) -> Vec<u8> {
    let etypes: Vec<Vec<u8>> = etypes.iter().map(|etype| integer(etype.number().into())).collect();
    sequence(&[
        field(0, &flags(options)),
        cname.map(|name| field(1, &name.encode())).unwrap_or_default(),
        field(2, &string(realm.as_str())),
        field(3, &service.encode()),
        field(5, &time(till)),
        field(7, &integer(nonce.into())),
        field(8, &sequence(&etypes)),
    ])
}

/// `KDC-REQ`
fn message(number: u8, padata: &[Vec<u8>], body: &[u8]) -> Vec<u8> {
    let padata = if padata.is_empty() { Vec::new() } else { field(3, &sequence(padata)) };
    application(
        number,
        &sequence(&[field(1, &integer(PVNO)), field(2, &integer(number.into())), padata, field(4, body)]),
    )
}

/// `PA-DATA`
fn pa_data(padata_type: i64, content: &[u8]) -> Vec<u8> {
    sequence(&[field(1, &integer(padata_type)), field(2, &octets(content))])
}

/// `EncryptedData`
fn encrypted_data(key: &Key, usage: u32, text: &[u8]) -> Result<Vec<u8>, Error> {
    let cipher = key.encrypt(usage, text)?;
    Ok(sequence(&[field(0, &integer(key.etype().number().into())), field(2, &octets(&cipher))]))
}

/// 31 random bits: some KDCs read it as a signed number.
fn nonce() -> Result<u32, Error> {
    let mut bytes = [0; 4];
    random(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes) >> 1)
}

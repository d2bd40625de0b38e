//! `KRB-ERROR` (RFC 4120, 5.9.1): a refusal, with both forms of `e-data`.
//!
//! A new refusal is:
//! - a variant and its code here, and a row in `tests/kerberos/exchange.rs`;
//! - in gmsa-tickets an arm in `broker/controller_failures.rs` and a row in `tests/broker/statuses.rs`; a new reason in `reasons` of `api.rs`, or in its
//!   `RULES` where it is a rule of the core;
//! - in the plugin an arm in `accounts/src/ticket.rs`, and its words in `crates/rules/data`.
//!
//! It is not authenticated, so anyone on the path can forge it. No refusal makes a client try a password again, or set its clock.

use std::fmt;

use time::{Duration, UtcDateTime};

use crate::{EncryptionType, Error, EtypeInfo2Entry, der::DerReader};

/// The most characters of a text.
const MAX_TEXT: usize = 200;

/// The meaning of a refusal, by Active Directory's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KdcRefusal {
    /// The clocks differ too much.
    Clock,
    Disabled,
    Expired,
    Locked,
    /// Disabled, expired or locked: the KDC does not say which.
    Revoked,
    /// The password has expired, or must be changed first.
    MustChangePassword,
    WrongPassword,
    UnknownAccount,
    UnknownService,
    /// The KDC is not one of the account's realm.
    WrongRealm,
    NoAes,
    /// A policy, such as one that requires armored requests (FAST) or certain hosts.
    Policy,
    TicketExpired,
    PreauthenticationRequired,
    Unavailable,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KdcError {
    /// `error-code` (RFC 4120, 7.5.9)
    pub code: i64,
    /// `e-text`, cut and without control characters.
    pub text: Option<String>,
    /// A status of Windows ([MS-ERREF] 2.3).
    pub status: Option<u32>,
    /// How far the clock of the KDC (`stime` and `susec`) is ahead of this machine's.
    pub clock_difference: Duration,
    /// How AES keys are made of the password, in the order of the KDC.
    pub etype_info2: Vec<EtypeInfo2Entry>,
}

impl KdcError {
    const KRB_ERROR: u8 = 30;

    /// `sent` is the time of the request. `None` where it is no `KRB-ERROR`.
    ///
    /// # Errors
    /// If it is broken, or asks for too much work.
    pub(crate) fn read(message: &[u8], sent: UtcDateTime) -> Option<Result<Self, Error>> {
        let reader = DerReader(message).application(Self::KRB_ERROR)?;
        Some(Self::fields(reader, sent).unwrap_or(Err(Error::Malformed("KRB-ERROR"))))
    }

    fn fields(mut reader: DerReader<'_>, sent: UtcDateTime) -> Option<Result<Self, Error>> {
        const PVNO: i64 = 5;
        if (reader.field(0)?.integer()?, reader.field(1)?.integer()?) != (PVNO, Self::KRB_ERROR.into()) {
            return None;
        }
        let (time, micros) = (reader.field(4)?.time()?, reader.field(5)?.integer()?);
        let server_time = time.checked_add(Duration::microseconds(micros.clamp(0, 999_999)))?;
        let code = reader.field(6)?.integer()?;
        let text = reader.field(11).and_then(DerReader::string).map(shown).filter(|text| !text.is_empty());
        let data = reader.field(12).and_then(DerReader::octets).map(DerReader);
        let etype_info2 = match data.and_then(etype_info2).transpose() {
            Ok(etype_info2) => etype_info2.unwrap_or_default(),
            Err(error) => return Some(Err(error)),
        };
        let clock_difference = server_time - sent;
        Some(Ok(Self { code, text, status: data.and_then(status), clock_difference, etype_info2 }))
    }

    /// Its meaning.
    pub fn refusal(&self) -> KdcRefusal {
        match (self.code, self.status) {
            (_, Some(0xC000_0072)) => KdcRefusal::Disabled,
            (_, Some(0xC000_0193)) => KdcRefusal::Expired,
            (_, Some(0xC000_0234)) => KdcRefusal::Locked,
            (_, Some(0xC000_0224 | 0xC000_0071)) | (23, _) => KdcRefusal::MustChangePassword,
            // Hours and hosts of logons.
            (_, Some(0xC000_006F | 0xC000_0070)) | (12, _) => KdcRefusal::Policy,
            (1, _) => KdcRefusal::Expired,
            (6, _) => KdcRefusal::UnknownAccount,
            (7, _) => KdcRefusal::UnknownService,
            (14, _) => KdcRefusal::NoAes,
            (18, _) => KdcRefusal::Revoked,
            (24, _) => KdcRefusal::WrongPassword,
            (25, _) => KdcRefusal::PreauthenticationRequired,
            (29, _) => KdcRefusal::Unavailable,
            (32, _) => KdcRefusal::TicketExpired,
            (37, _) => KdcRefusal::Clock,
            (68, _) => KdcRefusal::WrongRealm,
            _ => KdcRefusal::Other,
        }
    }
}

impl fmt::Display for KdcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kerberos code {}", self.code)?;
        if let Some(status) = self.status {
            write!(f, ", status {status:#010x}")?;
        }
        self.text.iter().try_for_each(|text| write!(f, " ({text})"))
    }
}

impl std::error::Error for KdcError {}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_TEXT)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// A status of Windows: `KERB-ERROR-DATA` with `KERB-EXT-ERROR` ([MS-KILE] 2.2.1 and 2.2.2).
fn status(data: DerReader<'_>) -> Option<u32> {
    const EXTENDED: i64 = 3;
    let mut data = data.sequence()?;
    let is_extended = data.field(1)?.integer()? == EXTENDED;
    let [a, b, c, d, _reserved_and_flags @ ..] = data.field(2)?.octets()? else { return None };
    is_extended.then_some(u32::from_le_bytes([*a, *b, *c, *d]))
}

/// The AES entries of `ETYPE-INFO2` in `METHOD-DATA` (RFC 4120, 5.2.7.5). `None` without `ETYPE-INFO2`.
pub(crate) fn etype_info2(method_data: DerReader<'_>) -> Option<Result<Vec<EtypeInfo2Entry>, Error>> {
    const PA_ETYPE_INFO2: i64 = 19;
    let entries = method_data.sequence()?.sequences().find_map(|pa_data| {
        let mut pa_data = pa_data?;
        let is_etype_info2 = pa_data.field(1)?.integer()? == PA_ETYPE_INFO2;
        DerReader(pa_data.field(2)?.octets()?).sequence().map(DerReader::sequences).filter(|_| is_etype_info2)
    })?;
    let read = |entry: Option<_>| entry.and_then(etype_info2_entry).unwrap_or(Err(Error::Malformed("ETYPE-INFO2")));
    Some(entries.map(read).filter_map(Result::transpose).collect())
}

/// `None` where it is broken, `Ok(None)` for an encryption type other than AES.
fn etype_info2_entry(mut entry: DerReader<'_>) -> Option<Result<Option<EtypeInfo2Entry>, Error>> {
    let Some(etype) = EncryptionType::from_number(entry.field(0)?.integer()?) else { return Some(Ok(None)) };
    let salt = entry.field(1)?.string()?;
    let s2kparams = match entry.field(2) {
        Some(s2kparams) => Some(s2kparams.octets()?),
        None => None,
    };
    Some(EtypeInfo2Entry::new(etype, salt, s2kparams).map(Some))
}

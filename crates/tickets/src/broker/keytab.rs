//! The keys of an account for its keytab: their numbers, how long former ones stay in it, and when they are read again.
//!
//! Invariants: keys are in memory alone, and AES. In the five minutes before a change, the next keys are read and given out beside those in force, so
//! that acceptors have both when the KDC makes the change. A key stays [`KEPT_FOR`] after the directory has shown it last: that is how long
//! clients hold tickets for it. The directory shows fewer: after an interval in which nobody read the password, its previous one was never in force.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use gmsa_directory::ManagedPassword;
use gmsa_kerberos::{EncryptionType, Key, KeytabEntry, Principal, PrincipalName, Ticket, keytab, usage};
use time::UtcDateTime;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::api::{KEPT_FOR, Reason, Refusal};

/// The longest time between two reads: a password that was reset is noticed after that at the latest.
const LONGEST: Duration = Duration::from_secs(3600);

/// The shortest, while the next password is expected.
const SHORTEST: Duration = Duration::from_secs(15);

/// How long after an expected change the password is read.
const MARGIN: Duration = Duration::from_secs(5);

/// The most versions that are kept, whatever the directory shows.
const MOST: usize = 8;

/// The keys of one password.
#[derive(Clone)]
struct KeyVersion {
    kvno: u32,
    keys: Arc<[Key]>,
    made: UtcDateTime,
    /// `None` as long as the directory shows them.
    until: Option<Instant>,
}

/// The keys of an account.
pub struct AccountKeys {
    pub client: Principal,
    /// The number of the key in force.
    pub kvno: u32,
    versions: Vec<KeyVersion>,
    asked: Instant,
    /// When they are read again.
    pub next: Instant,
}

impl AccountKeys {
    /// The keys of a password that was asked for at this time, by their numbers, and those of former ones that clients may hold tickets for.
    pub fn new(
        client: Principal,
        password: &ManagedPassword,
        keys: Vec<(u32, Vec<Key>)>,
        asked: Instant,
        former: Option<&Self>,
    ) -> Self {
        let (kvno, former) = (password.kvno.unwrap_or_default(), former.map_or(&[][..], |former| &former.versions));
        if !former.is_empty() && former.iter().all(|version| version.kvno < kvno) {
            tracing::warn!(account = %client, kvno, "the password changed before its next keys were given out: services may have refused clients");
        }
        let shown = keys.into_iter().map(|(kvno, keys)| {
            let known = former.iter().find(|version| version.kvno == kvno);
            let made = known.map_or_else(UtcDateTime::now, |version| version.made);
            KeyVersion { kvno, keys: keys.into(), made, until: None }
        });
        let mut versions: Vec<KeyVersion> = shown.collect();
        for version in former {
            let until = version.until.or_else(|| asked.checked_add(KEPT_FOR));
            if until.is_none_or(|until| asked < until) && versions.iter().all(|shown| shown.kvno != version.kvno) {
                versions.push(KeyVersion { until, ..version.clone() });
            }
        }
        versions.sort_by_key(|version| Reverse(version.kvno));
        versions.truncate(MOST);
        let change = if password.is_before_change() { password.query } else { password.unchanged };
        let wait = change.saturating_add(MARGIN).clamp(SHORTEST, LONGEST);
        Self { client, kvno, versions, asked, next: asked.checked_add(wait).unwrap_or(asked) }
    }

    pub fn is_current(&self) -> bool {
        Instant::now() < self.next
    }

    /// Whether they were read after this time.
    pub fn is_since(&self, time: Instant) -> bool {
        self.asked >= time
    }

    /// Whether they hold keys that the directory may not show any more.
    pub fn is_needed(&self) -> bool {
        self.asked.elapsed() < KEPT_FOR
    }

    /// The keytab: for the account's own name and these, every key.
    pub fn keytab(&self, names: impl IntoIterator<Item = PrincipalName>) -> Zeroizing<Vec<u8>> {
        let services = names.into_iter().map(|name| Principal { name, realm: self.client.realm.clone() });
        let principals: Vec<Principal> = [self.client.clone()].into_iter().chain(services).collect();
        let entries = self.versions.iter().flat_map(|KeyVersion { kvno, keys, made, .. }| {
            let entry = move |principal, key| KeytabEntry { principal, made: *made, kvno: *kvno, key };
            principals.iter().flat_map(move |principal| keys.iter().map(move |key| entry(principal, key)))
        });
        keytab(&entries.collect::<Vec<_>>())
    }

    /// Whether one of them opens a ticket that the KDC gave.
    ///
    /// # Errors
    /// Why programs with the keytab would refuse it.
    pub fn open(&self, ticket: &Ticket) -> Result<(), Refusal> {
        let refused = |why: String| {
            let message =
                format!("the keytab of {} does not open the ticket for {}: {why}", self.client, ticket.service);
            Err(Refusal::no_logon(Reason::KeytabKeys, message))
        };
        let unreadable = || Refusal::bad_gateway(Reason::TicketAnswer, "the ticket of the KDC cannot be read");
        let enc_part = ticket.enc_part().ok_or_else(unreadable)?;
        if EncryptionType::from_number(enc_part.etype).is_none() {
            return refused(format!("its encryption type is {}, and a keytab has AES keys alone", enc_part.etype));
        }
        let is_meant = |version: &&KeyVersion| enc_part.kvno.is_none_or(|kvno| kvno == i64::from(version.kvno));
        let mut meant = self.versions.iter().filter(is_meant).flat_map(|version| version.keys.iter()).peekable();
        if meant.peek().is_none() {
            let kvno = enc_part.kvno.unwrap_or_default();
            return refused(format!("its key has the number {kvno}, where the directory has {}", self.kvno));
        }
        if !meant.any(|key| key.decrypt(usage::KDC_REP_TICKET, enc_part.cipher).is_ok()) {
            let why = "another account has this name, or the password was reset by hand";
            return refused(format!("{why}, and is right again after its next change"));
        }
        Ok(())
    }
}

//! The accounts that the broker logs on as: their keys and ticket-granting tickets, and what was refused.
//!
//! Invariants: keys are kept, passwords are not. A logon is a task that its caller cannot end. One logon at a time reads the password of an account
//! and tries new keys, and requests for listed services share it; logons with a key that has yielded a ticket run side by side. A key that the KDC
//! called wrong is not tried again for [`WRONG_FOR`], unless another one yields a ticket, and at most two are tried in a logon, so no number of
//! requests locks an account out.
//!
//! A refusal is not authenticated, and may come from a controller that lags. So a key that has yielded a ticket is tried again, after [`RETRIES`]:
//! domains do not count a try with one of the last two passwords (Microsoft: "Password history check (N-2)"). A ticket-granting ticket is used
//! before any refusal is remembered.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gmsa_directory::account::Account;
use gmsa_kerberos::{Error, KdcRefusal, Kdcs, Key, Password, Principal, PrincipalName, Ticket};
use parking_lot::Mutex;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout, timeout_at},
};

use super::{
    controller_failures,
    domain::{Secret, TicketDomain},
    keytab::AccountKeys,
    room::RoomPlace,
    spec::SpecAccount,
};
use crate::{
    api::{Reason, Refusal},
    limits::{MAX_ACCOUNTS, MAX_KEPT_TICKET, RETRIES, TRIES, WRONG_FOR},
    metrics::{BrokerMetrics, Exchange},
};

/// The life of tickets, unless the domain's policy gives them less.
pub const LIFE: Duration = Duration::from_secs(3600);
/// How long the broker uses a ticket-granting ticket: a disabled account is noticed after that at the latest.
const USED_FOR: Duration = Duration::from_secs(600);

/// A ticket-granting ticket of an account.
pub struct Logon {
    pub client: Principal,
    pub tgt: Ticket,
    pub kdcs: Arc<Kdcs>,
    at: Instant,
}

/// A key of an account, made of a password that the directory gave.
struct AccountKey {
    client: Principal,
    key: Key,
    kdcs: Arc<Kdcs>,
    /// When the password is read again; `None` where the time is beyond what a clock can hold.
    until: Option<Instant>,
    /// How long it is remembered once the KDC calls it wrong.
    wrong_for: Duration,
    /// Whether it has yielded a ticket.
    is_proven: AtomicBool,
}

/// A key that the KDC called wrong.
struct WrongKey {
    key: Arc<AccountKey>,
    tries: usize,
    last: Instant,
}

/// The account of a credential spec.
pub struct KeptAccount {
    spec: SpecAccount,
    domain: Arc<TicketDomain>,
    metrics: BrokerMetrics,
    state: Mutex<AccountState>,
    /// The right to read the password and to try new keys.
    turn: Arc<AsyncMutex<()>>,
    /// Whether the holder of that right waits until the passwords of other accounts are read.
    is_queued: AtomicBool,
}

#[derive(Default)]
struct AccountState {
    key: Option<Arc<AccountKey>>,
    logon: Option<Arc<Logon>>,
    /// No KDC of the key answered: the next logon reads the password, and with it which KDCs there are.
    is_unanswered: bool,
    wrong: Vec<WrongKey>,
    refused: Option<(Instant, Refusal)>,
    /// For keytabs.
    keys: Option<Arc<AccountKeys>>,
}

/// Why a key yielded no ticket.
enum NoTicket {
    /// The KDC calls the key wrong.
    Wrong(Refusal),
    /// No KDC answered.
    Unanswered(Refusal),
    Refused(Refusal),
}

/// The accounts, by what credential specs say of them.
pub struct Accounts {
    by_spec: Mutex<HashMap<SpecAccount, Arc<KeptAccount>>>,
    metrics: BrokerMetrics,
}

impl Logon {
    /// Whether the broker may still use it.
    fn is_fresh(&self) -> bool {
        let life = Duration::try_from(self.tgt.endtime - self.tgt.starttime).unwrap_or_default();
        self.at.elapsed() < USED_FOR.min(life / 2)
    }

    /// Whether it was made after this time.
    pub fn is_since(&self, time: Instant) -> bool {
        self.at >= time
    }
}

impl Accounts {
    pub fn new(metrics: BrokerMetrics) -> Self {
        Self { by_spec: Mutex::default(), metrics }
    }

    /// The account of a credential spec.
    ///
    /// # Errors
    /// Where there is no room for another one.
    pub fn get(&self, domain: &Arc<TicketDomain>, spec: &SpecAccount) -> Result<Arc<KeptAccount>, Refusal> {
        let mut accounts = self.by_spec.lock();
        if let Some(account) = accounts.get(spec) {
            return Ok(Arc::clone(account));
        }
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || account.state.lock().is_needed());
        }
        if accounts.len() >= MAX_ACCOUNTS {
            let message =
                format!("the broker keeps the keys of {MAX_ACCOUNTS} accounts, and has no room for another one");
            return Err(Refusal::unavailable(Reason::TicketBusy, message));
        }
        let account = Arc::new(KeptAccount {
            spec: spec.clone(),
            domain: Arc::clone(domain),
            metrics: self.metrics.clone(),
            state: Mutex::default(),
            turn: Arc::default(),
            is_queued: AtomicBool::new(false),
        });
        Ok(Arc::clone(accounts.entry(spec.clone()).or_insert(account)))
    }
}

impl KeptAccount {
    /// Logs on. A logon of its own has a ticket-granting ticket that nobody else uses. A logon with a proven key keeps the request's place until it
    /// ends.
    ///
    /// # Errors
    /// Why the account, or the broker, is refused.
    pub async fn log_on(
        self: &Arc<Self>,
        own: bool,
        place: &Arc<RoomPlace>,
        deadline: Instant,
    ) -> Result<Arc<Logon>, Refusal> {
        if let Some(known) = self.known(own) {
            return known;
        }
        let mut tries = TRIES;
        // Separate tasks: a caller that disconnects must not cause another try of the password.
        let is_proven = |key: &Arc<AccountKey>| key.is_valid() && key.is_proven.load(Ordering::Relaxed);
        let proven = self.state.lock().key.clone().filter(|key| own && is_proven(key));
        if let Some(key) = proven {
            let (account, place) = (Arc::clone(self), Arc::clone(place));
            let task = tokio::spawn(async move {
                let _place = place;
                account.log_on_with(&key).await
            });
            match timeout_at(deadline, task).await.ok().and_then(Result::ok).ok_or_else(|| self.late())? {
                Ok(logon) => return Ok(logon),
                Err(NoTicket::Refused(refusal)) => {
                    let refused = Err(refusal);
                    self.state.lock().remember(&refused, own);
                    return refused;
                }
                // The password must be read.
                Err(NoTicket::Wrong(_)) => tries -= 1,
                Err(NoTicket::Unanswered(_)) => {}
            }
        }
        let account = Arc::clone(self);
        let work = Box::pin(async move {
            let logon = account.renew(tries).await;
            account.state.lock().remember(&logon, own);
            logon
        });
        self.in_turn(deadline, || self.known(own), work).await
    }

    /// Its keys: those of the last read, unless it is time for the next one, or they are `outdated`.
    ///
    /// # Errors
    /// Why the account, or the broker, is refused.
    pub async fn keys(
        self: &Arc<Self>,
        outdated: Option<&Arc<AccountKeys>>,
        deadline: Instant,
    ) -> Result<Arc<AccountKeys>, Refusal> {
        let known = || {
            let keys = self.state.lock().keys.clone().filter(|keys| keys.is_current())?;
            outdated.is_none_or(|outdated| !Arc::ptr_eq(outdated, &keys)).then_some(Ok(keys))
        };
        let account = Arc::clone(self);
        let work = Box::pin(async move { account.read(true, |secret| account.keys_of(secret)).await });
        self.in_turn(deadline, known, work).await
    }

    /// Discards a logon, so that it is not used again. Where no KDC answered, the next logon finds out which KDCs there are.
    pub fn forget(&self, logon: &Arc<Logon>, is_unanswered: bool) {
        let mut state = self.state.lock();
        if state.logon.take_if(|kept| Arc::ptr_eq(kept, logon)).is_some() {
            state.is_unanswered = is_unanswered;
        }
    }

    /// The answer without asking a controller.
    fn known(&self, own: bool) -> Option<Result<Arc<Logon>, Refusal>> {
        let state = self.state.lock();
        if let Some(logon) = state.logon.as_ref().filter(|logon| !own && logon.is_fresh()) {
            return Some(Ok(Arc::clone(logon)));
        }
        let (since, refusal) = state.refused.as_ref()?;
        let left = self.domain.times.pause.saturating_sub(since.elapsed());
        (!left.is_zero()).then(|| Err(refusal.clone().after(left)))
    }

    /// The request has no time left.
    fn late(&self) -> Refusal {
        let domain = &self.domain.config.kdcs.name;
        if self.is_queued.load(Ordering::Relaxed) {
            let message = format!(
                "too many requests wait for the domain controllers of {domain}: the passwords of other accounts are read first"
            );
            return Refusal::unavailable(Reason::TicketBusy, message);
        }
        self.no_answer()
    }

    /// No controller answered in the time of a logon.
    fn no_answer(&self) -> Refusal {
        let message = format!("no domain controller of {} answers in time", self.domain.config.kdcs.name);
        Refusal::unavailable(Reason::LdapUnreachable, message)
    }

    /// A ticket-granting ticket with this key.
    async fn log_on_with(&self, key: &Arc<AccountKey>) -> Result<Arc<Logon>, NoTicket> {
        let AccountKey { client, kdcs, .. } = &**key;
        let answered = timeout(self.domain.times.logon, kdcs.tgt(client, &key.key, LIFE)).await;
        let answered = answered.map_or(Err(None), |tgt| tgt.map_err(Some));
        let error = match self.metrics.exchange(Exchange::InitialTicket, answered) {
            Ok(tgt) => {
                key.is_proven.store(true, Ordering::Relaxed);
                let mut state = self.state.lock();
                state.is_unanswered = false;
                // The domain counts from 0 again, too. What a KDC refuses that makes a change later than the directory is right soon.
                state.wrong.clear();
                let (client, kdcs) = (client.clone(), Arc::clone(kdcs));
                return Ok(Arc::new(Logon { client, tgt, kdcs, at: Instant::now() }));
            }
            Err(Some(error)) => error,
            Err(None) => return Err(NoTicket::Refused(self.no_answer())),
        };
        let refusal = controller_failures::of_kdc(&error, client, &client.realm, None);
        match error {
            Error::Refused(error) if error.refusal() == KdcRefusal::WrongPassword => {
                self.state.lock().add_wrong(key);
                Err(NoTicket::Wrong(refusal))
            }
            error if error.is_unanswered() => {
                self.state.lock().is_unanswered = true;
                Err(NoTicket::Unanswered(refusal))
            }
            _ => Err(NoTicket::Refused(refusal)),
        }
    }

    /// Logs on with the key that is kept, or else with a password that is read now. After a wrong one the password is read once more, then the other
    /// one that the directory gives is tried; `tries` is how many keys may be.
    async fn renew(&self, mut tries: usize) -> Result<Arc<Logon>, Refusal> {
        let mut refusal = None;
        let (kept, is_unanswered) = {
            let mut state = self.state.lock();
            state.refused = None;
            (state.key.clone().filter(|key| key.is_valid()), std::mem::take(&mut state.is_unanswered))
        };
        if let Some(key) = kept.filter(|_| !is_unanswered) {
            match self.log_on_with(&key).await {
                Ok(logon) => return Ok(logon),
                Err(NoTicket::Wrong(wrong)) => {
                    refusal = Some(wrong);
                    tries -= 1;
                }
                // Another KDC may answer, which the directory knows.
                Err(NoTicket::Unanswered(_)) => {}
                Err(NoTicket::Refused(refusal)) => return Err(refusal),
            }
        }
        for _ in 0..tries {
            let key = self.read(false, |secret| self.key(secret)).await?;
            let logon = self.log_on_with(&key).await;
            if !matches!(logon, Err(NoTicket::Wrong(_))) {
                self.state.lock().key = Some(key);
            }
            match logon {
                Ok(logon) => return Ok(logon),
                Err(NoTicket::Wrong(wrong)) => refusal = Some(wrong),
                Err(NoTicket::Unanswered(refusal) | NoTicket::Refused(refusal)) => return Err(refusal),
            }
        }
        Err(refusal.unwrap_or_else(|| Refusal::no_logon(Reason::LogonDenied, "no password is left to try")))
    }

    /// Does this work once no other one reads the password, unless its result is known by then. The work is a task of its own.
    async fn in_turn<T: Send + 'static>(
        &self,
        deadline: Instant,
        known: impl Fn() -> Option<Result<T, Refusal>>,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        if let Some(known) = known() {
            return known;
        }
        let turn = timeout_at(deadline, Arc::clone(&self.turn).lock_owned()).await.map_err(|_| self.late())?;
        if let Some(known) = known() {
            return known;
        }
        let task = tokio::spawn(async move {
            let _turn = turn;
            work.await
        });
        timeout_at(deadline, task).await.ok().and_then(Result::ok).unwrap_or_else(|| Err(self.late()))
    }

    /// Reads the password, and makes something of it.
    async fn read<T, M: Future<Output = Result<T, Refusal>>>(
        &self,
        numbered: bool,
        make: impl FnOnce(Secret) -> M,
    ) -> Result<T, Refusal> {
        self.is_queued.store(true, Ordering::Relaxed);
        let mut reader = self.domain.reader.lock().await;
        self.is_queued.store(false, Ordering::Relaxed);
        let read = async {
            let secret = self.domain.secret(&mut reader, &self.spec, numbered).await;
            let secret = self.metrics.exchange(Exchange::Password, secret)?;
            drop(reader);
            make(secret).await
        };
        timeout(self.domain.times.logon, read).await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    /// The keys of these passwords, and the former ones.
    async fn keys_of(&self, secret: Secret) -> Result<Arc<AccountKeys>, Refusal> {
        let Secret { asked, account, password, kdcs } = secret;
        let client = self.client(&account)?;
        let of_kdc = |error: Error| controller_failures::of_kdc(&error, &client, &client.realm, None);
        let salt = kdcs.salt(&client).await.map_err(of_kdc)?;
        let keys = password
            .numbered()
            .map(|(kvno, password)| Ok((kvno, Password::managed(password).keys(&salt)?)))
            .collect::<Result<Vec<_>, Error>>()
            .map_err(of_kdc)?;
        if keys.iter().any(|(kvno, _)| *kvno == 0) {
            let message = format!(
                "{client} has had several passwords, and the domain gives the keys of all the number 1: its dSHeuristics set fKVNOEmuW2K"
            );
            return Err(Refusal::no_logon(Reason::KeytabKeys, message));
        }
        let mut state = self.state.lock();
        let keys = Arc::new(AccountKeys::new(client, &password, keys, asked, state.keys.as_deref()));
        state.keys = Some(Arc::clone(&keys));
        Ok(keys)
    }

    /// Its name in Kerberos.
    fn client(&self, account: &Account) -> Result<Principal, Refusal> {
        let name = PrincipalName::account(&format!("{}$", account.sam)).ok_or_else(|| {
            Refusal::forbidden(Reason::AccountDiffers, "Kerberos cannot have the name of the account")
        })?;
        Ok(Principal { name, realm: self.domain.config.kdcs.realm.clone() })
    }

    /// The first key of these passwords that may be tried.
    async fn key(&self, secret: Secret) -> Result<Arc<AccountKey>, Refusal> {
        let Secret { asked, account, password, kdcs } = secret;
        let client = self.client(&account)?;
        // A key that the KDC refuses before the change is right after it.
        let wrong_for = if password.is_before_change() { password.query } else { WRONG_FOR };
        for candidate in password.candidates() {
            let key = kdcs.key(&client, &Password::managed(candidate)).await;
            let key = key.map_err(|error| controller_failures::of_kdc(&error, &client, &client.realm, None))?;
            if self.state.lock().may_try(&key) {
                let (kdcs, until) = (Arc::new(kdcs), asked.checked_add(password.query));
                return Ok(Arc::new(AccountKey { client, key, kdcs, until, wrong_for, is_proven: false.into() }));
            }
        }
        Err(controller_failures::wrong_passwords(&client))
    }
}

impl AccountKey {
    fn is_valid(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    fn is_same(&self, key: &Key) -> bool {
        self.key.as_bytes() == key.as_bytes()
    }
}

impl WrongKey {
    fn is_remembered(&self) -> bool {
        self.last.elapsed() < self.key.wrong_for
    }

    /// Whether it is time to try it again.
    fn is_due(&self) -> bool {
        let pause = self.tries.checked_sub(1).and_then(|number| RETRIES.get(number));
        self.key.is_proven.load(Ordering::Relaxed) && pause.is_some_and(|pause| self.last.elapsed() >= *pause)
    }
}

impl AccountState {
    /// Whether it holds a valid key, keys for keytabs, or a wrong key that must not be tried again.
    fn is_needed(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.is_valid())
            || self.keys.as_ref().is_some_and(|keys| keys.is_needed())
            || self.wrong.iter().any(WrongKey::is_remembered)
    }

    fn remember(&mut self, logon: &Result<Arc<Logon>, Refusal>, own: bool) {
        match logon {
            Ok(logon) if !own && logon.tgt.encoded.len() <= MAX_KEPT_TICKET => self.logon = Some(Arc::clone(logon)),
            Ok(_) => {}
            Err(refusal) => self.refused = Some((Instant::now(), refusal.clone())),
        }
    }

    fn may_try(&mut self, key: &Key) -> bool {
        self.wrong.retain(WrongKey::is_remembered);
        self.wrong.iter().find(|wrong| wrong.key.is_same(key)).is_none_or(WrongKey::is_due)
    }

    /// The KDC called this key wrong. Another key of the same password may be proven.
    fn add_wrong(&mut self, key: &Arc<AccountKey>) {
        let kept = self.key.take_if(|kept| kept.is_same(&key.key));
        let known = self.wrong.iter().position(|wrong| wrong.key.is_same(&key.key));
        let known = known.map(|index| self.wrong.swap_remove(index));
        let former = [kept.as_ref(), known.as_ref().map(|wrong| &wrong.key)];
        if former.into_iter().flatten().any(|former| former.is_proven.load(Ordering::Relaxed)) {
            key.is_proven.store(true, Ordering::Relaxed);
        }
        // Exchanges that ran side by side count once.
        let tries = known.map_or(1, |wrong| wrong.tries + usize::from(wrong.is_due()));
        self.wrong.push(WrongKey { key: Arc::clone(key), tries, last: Instant::now() });
    }
}

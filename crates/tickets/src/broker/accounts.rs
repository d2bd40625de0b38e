//! The accounts that the broker logs on as: their keys and ticket-granting tickets, and what was refused.
//!
//! Invariants: keys are kept, passwords are not; a logon is a task that its caller cannot end, one at a time for each account, and requests for
//! listed services share it; a key that the KDC called wrong is not tried again for [`WRONG_FOR`], and at most two are tried in a logon, so no
//! number of requests locks an account out.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gmsa_core::diagnostic::rules;
use gmsa_kerberos::{Error, KdcRefusal, Kdcs, Key, Password, Principal, PrincipalName, Ticket};
use parking_lot::Mutex;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout, timeout_at},
};

use super::{
    controller_failures,
    domain::{Secret, TicketDomain},
    spec::SpecAccount,
};
use crate::{
    api::{Refusal, reasons},
    limits::{MAX_ACCOUNTS, MAX_KEPT_TICKET},
    metrics::{BrokerMetrics, Exchange},
};

/// The life of tickets, unless the domain's policy gives them less.
pub const LIFE: Duration = Duration::from_secs(3600);
/// How long the broker uses a ticket-granting ticket: a disabled account is noticed after that at the latest.
const USED_FOR: Duration = Duration::from_secs(600);
/// How long a wrong key is remembered: longer than the window in which domains count wrong passwords, by default 30 minutes.
const WRONG_FOR: Duration = Duration::from_secs(35 * 60);
/// The most keys that one logon tries.
const TRIES: usize = 2;

/// A ticket-granting ticket of an account.
pub struct Logon {
    pub client: Principal,
    pub tgt: Ticket,
    pub kdcs: Arc<Kdcs>,
    at: Instant,
}

/// The account's key, made of a password that the domain still uses.
struct KeptKey {
    client: Principal,
    key: Key,
    kdcs: Arc<Kdcs>,
    /// When the password is read again; `None` where the time is beyond what a clock can hold.
    until: Option<Instant>,
}

/// The state of an account.
#[derive(Default)]
pub struct AccountState {
    key: Option<KeptKey>,
    logon: Option<Arc<Logon>>,
    wrong: Vec<(Key, Instant)>,
    refused: Option<(Instant, Refusal)>,
}

type AccountLock = Arc<AsyncMutex<AccountState>>;

/// The accounts, by what credential specs say of them.
pub struct Accounts {
    by_spec: Mutex<HashMap<SpecAccount, AccountLock>>,
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

    /// A ticket for a service.
    ///
    /// # Errors
    /// As [`Kdcs::service_ticket`].
    pub async fn service_ticket(&self, service: &PrincipalName) -> Result<Ticket, Error> {
        self.kdcs.service_ticket(&self.tgt, service, LIFE).await
    }
}

impl Accounts {
    pub fn new(metrics: BrokerMetrics) -> Self {
        Self { by_spec: Mutex::default(), metrics }
    }

    /// Logs on as an account. A logon of its own has a ticket-granting ticket that nobody else uses.
    ///
    /// # Errors
    /// Why the account, or the broker, is refused.
    pub async fn log_on(
        &self,
        domain: &Arc<TicketDomain>,
        wanted: &SpecAccount,
        own: bool,
        deadline: Instant,
    ) -> Result<Arc<Logon>, Refusal> {
        let late = || {
            let message = format!("no domain controller of {} answers in time", domain.config.name);
            Refusal::unavailable(reasons::LDAP_UNREACHABLE, message)
        };
        let account = self.account(wanted)?;
        let mut state = timeout_at(deadline, account.lock_owned()).await.map_err(|_| late())?;
        if let Some(known) = state.known(own, domain.times.pause) {
            return known;
        }
        let (domain, wanted, metrics, refusal) = (Arc::clone(domain), wanted.clone(), self.metrics.clone(), late());
        // A separate task: a caller that disconnects must not cause another try of the password.
        let task = tokio::spawn(async move {
            let logon = timeout(domain.times.logon, state.logon(&domain, &wanted, &metrics)).await;
            let logon = logon.unwrap_or(Err(refusal)).map(Arc::new);
            match &logon {
                Ok(logon) if !own && logon.tgt.encoded.len() <= MAX_KEPT_TICKET => {
                    state.logon = Some(Arc::clone(logon));
                }
                Ok(_) => {}
                Err(refusal) => state.refused = Some((Instant::now(), refusal.clone())),
            }
            logon
        });
        timeout_at(deadline, task).await.ok().and_then(Result::ok).unwrap_or_else(|| Err(late()))
    }

    /// Discards a logon, so that it is not used again.
    pub async fn forget(&self, wanted: &SpecAccount, logon: &Arc<Logon>, deadline: Instant) {
        let account = self.by_spec.lock().get(wanted).cloned();
        let Some(account) = account else { return };
        if let Ok(mut state) = timeout_at(deadline, account.lock()).await {
            state.logon.take_if(|kept| Arc::ptr_eq(kept, logon));
        }
    }

    fn account(&self, wanted: &SpecAccount) -> Result<AccountLock, Refusal> {
        let mut accounts = self.by_spec.lock();
        if let Some(account) = accounts.get(wanted) {
            return Ok(Arc::clone(account));
        }
        if accounts.len() >= MAX_ACCOUNTS {
            // A locked account is in use by a logon.
            accounts.retain(|_, account| account.try_lock().map_or(true, |state| state.is_needed()));
        }
        if accounts.len() >= MAX_ACCOUNTS {
            let message =
                format!("the broker keeps the keys of {MAX_ACCOUNTS} accounts, and has no room for another one");
            return Err(Refusal::unavailable(rules::TICKET_BUSY.id, message));
        }
        Ok(Arc::clone(accounts.entry(wanted.clone()).or_default()))
    }
}

impl AccountState {
    /// Whether it holds a valid key, or a wrong key that must not be tried again.
    fn is_needed(&self) -> bool {
        self.key.as_ref().is_some_and(KeptKey::is_valid) || self.wrong.iter().any(|(_, at)| at.elapsed() < WRONG_FOR)
    }

    /// The answer without asking a controller.
    fn known(&self, own: bool, pause: Duration) -> Option<Result<Arc<Logon>, Refusal>> {
        if let Some((since, refusal)) = &self.refused
            && since.elapsed() < pause
        {
            return Some(Err(refusal.clone()));
        }
        let logon = self.logon.as_ref().filter(|logon| !own && logon.is_fresh())?;
        Some(Ok(Arc::clone(logon)))
    }

    /// With the key that is kept, or else with a password that is read now. After a wrong one the password is read once more, then the
    /// previous one is tried.
    async fn logon(
        &mut self,
        domain: &TicketDomain,
        wanted: &SpecAccount,
        metrics: &BrokerMetrics,
    ) -> Result<Logon, Refusal> {
        self.refused = None;
        self.wrong.retain(|(_, at)| at.elapsed() < WRONG_FOR);
        let mut tries = TRIES;
        let mut refusal = None;
        if let Some(kept) = self.key.take().filter(KeptKey::is_valid) {
            match kept.tgt(metrics).await {
                Ok(tgt) => return Ok(self.keep(kept, tgt)),
                Err(error) if is_wrong(&error) => {
                    refusal = Some(controller_failures::of_kdc(&error, &kept.client, None));
                    self.wrong.push((kept.key, Instant::now()));
                    tries -= 1;
                }
                // Another controller may answer, which the directory knows.
                Err(error) if error.is_unanswered() => self.key = Some(kept),
                Err(error) => {
                    let refusal = controller_failures::of_kdc(&error, &kept.client, None);
                    self.key = Some(kept);
                    return Err(refusal);
                }
            }
        }
        for _ in 0..tries {
            let secret = metrics.exchange(Exchange::Password, domain.secret(wanted).await)?;
            let kept = self.untried(secret, domain).await?;
            match kept.tgt(metrics).await {
                Ok(tgt) => return Ok(self.keep(kept, tgt)),
                Err(error) if is_wrong(&error) => {
                    refusal = Some(controller_failures::of_kdc(&error, &kept.client, None));
                    self.wrong.push((kept.key, Instant::now()));
                }
                Err(error) => return Err(controller_failures::of_kdc(&error, &kept.client, None)),
            }
        }
        Err(refusal.unwrap_or_else(|| Refusal::no_logon(reasons::LOGON_DENIED, "no password is left to try")))
    }

    fn keep(&mut self, kept: KeptKey, tgt: Ticket) -> Logon {
        let logon = Logon { client: kept.client.clone(), tgt, kdcs: Arc::clone(&kept.kdcs), at: Instant::now() };
        self.key = Some(kept);
        logon
    }

    /// The key of the current password; of the previous one if the KDC refused the current.
    async fn untried(&self, secret: Secret, domain: &TicketDomain) -> Result<KeptKey, Refusal> {
        let Secret { account, password, kdcs } = secret;
        let name = PrincipalName::account(&format!("{}$", account.sam));
        let name = name.ok_or_else(|| {
            Refusal::forbidden(rules::ACCOUNT_DIFFERS.id, "Kerberos cannot have the name of the account")
        })?;
        let client = Principal { name, realm: domain.config.realm.clone() };
        let until = Instant::now().checked_add(password.query);
        let previous = password.previous.as_ref();
        for password in [Some(&password.current), previous].into_iter().flatten() {
            let key = kdcs.key(&client, &Password::managed(password)).await;
            let key = key.map_err(|error| controller_failures::of_kdc(&error, &client, None))?;
            if !self.wrong.iter().any(|(wrong, _)| wrong.as_bytes() == key.as_bytes()) {
                return Ok(KeptKey { client, key, kdcs: Arc::new(kdcs), until });
            }
        }
        Err(controller_failures::wrong_passwords(&client))
    }
}

impl KeptKey {
    fn is_valid(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    async fn tgt(&self, metrics: &BrokerMetrics) -> Result<Ticket, Error> {
        metrics.exchange(Exchange::InitialTicket, self.kdcs.tgt(&self.client, &self.key, LIFE).await)
    }
}

fn is_wrong(error: &Error) -> bool {
    matches!(error, Error::Refused(error) if error.refusal() == KdcRefusal::WrongPassword)
}

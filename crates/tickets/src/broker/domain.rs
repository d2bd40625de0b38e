//! One domain: how its directory is read and its KDCs are found.
//!
//! Invariants: one read of a password at a time, so a user whose password is wrong is tried once with it; a refused password is not tried
//! again until its file holds another one. After no controller answered, reads are refused with the same cause for [`Times::pause`],
//! without asking.

use std::{net::SocketAddr, time::Duration};

use gmsa_core::{diagnostic::rules, quote::Quoted};
use gmsa_directory::{
    Access, Address, Budget, Credentials, Directory, Error, ManagedPassword,
    account::{Account, AccountName},
};
use gmsa_kerberos::Kdcs;
use tokio::{
    net::lookup_host,
    sync::{Mutex, Semaphore},
    time::{Instant, timeout},
};
use zeroize::Zeroizing;

use super::{controller_failures, spec::SpecAccount};
use crate::{
    api::{Refusal, reasons},
    domains::DomainConfig,
    limits::Times,
};

/// A domain, and what its controllers said last.
pub struct TicketDomain {
    pub config: DomainConfig,
    pub times: Times,
    /// For requests that wait for tickets of its accounts.
    pub room: Semaphore,
    most: usize,
    reader: Mutex<PasswordReader>,
}

#[derive(Default)]
struct PasswordReader {
    /// The password that the domain refused.
    refused: Option<Zeroizing<String>>,
    /// Why no controller answered.
    unanswered: Option<(Instant, Refusal)>,
}

/// An account that agrees with a credential spec, and its password.
pub struct Secret {
    pub account: Account,
    pub password: ManagedPassword,
    /// The KDC of the controller that gave the password, then the others.
    pub kdcs: Kdcs,
}

impl TicketDomain {
    pub fn new(config: DomainConfig, times: Times, room: usize) -> Self {
        Self { config, times, room: Semaphore::new(room), most: room, reader: Mutex::default() }
    }

    /// How many requests wait for tickets of its accounts.
    pub fn waiting(&self) -> usize {
        self.most - self.room.available_permits()
    }

    /// Reads the account of a credential spec, and its password.
    ///
    /// # Errors
    /// 403 where the account is not that of the credential spec, 502 and 503 where the directory gives no password.
    pub async fn secret(&self, wanted: &SpecAccount) -> Result<Secret, Refusal> {
        let PasswordReader { refused, unanswered } = &mut *self.reader.lock().await;
        if let Some((since, refusal)) = unanswered
            && since.elapsed() < self.times.pause
        {
            return Err(refusal.clone());
        }
        *unanswered = None;
        let of_user = |what: String| Refusal::bad_gateway(reasons::LDAP_CREDENTIALS, what);
        let password = self.config.password().map_err(of_user)?;
        let user = Quoted::new(&self.config.user);
        let hint = format!("it is not tried again until {} changes", self.config.password_file.display());
        if refused.as_ref() == Some(&password) {
            return Err(of_user(format!("{} refused the password of the user {user}: {hint}", self.config.name)));
        }
        let error = match self.read_from_any(&password, wanted).await {
            Ok(read) => return read,
            Err(error) => error,
        };
        let mut refusal = controller_failures::of_directory(&error, &self.config);
        if error.counts_as_wrong_password() {
            refusal.message = format!("{}; {hint}", refusal.message);
            *refused = Some(password);
        }
        if error.is_unanswered() {
            *unanswered = Some((Instant::now(), refusal.clone()));
        }
        Err(refusal)
    }

    /// Asks one controller after the other until one answers.
    async fn read_from_any(
        &self,
        password: &Zeroizing<String>,
        wanted: &SpecAccount,
    ) -> Result<Result<Secret, Refusal>, Error> {
        let named = self.config.controllers.iter().cloned().map(Address::Controller);
        let mut addresses: Vec<Address> = named.collect();
        if addresses.is_empty() {
            addresses.push(Address::Domain(self.config.name.clone()));
        }
        let mut failed = None;
        for address in addresses {
            match self.read(address, password.clone(), wanted).await {
                // Nothing was sent where the certificate is not trusted.
                Err(error) if error.is_unanswered() || is_of_certificate(&error) => failed = failed.or(Some(error)),
                read => return read,
            }
        }
        let none = || Error::NotLocated { domain: self.config.name.clone(), why: "none is configured".to_owned() };
        Err(failed.unwrap_or_else(none))
    }

    async fn read(
        &self,
        address: Address,
        password: Zeroizing<String>,
        wanted: &SpecAccount,
    ) -> Result<Result<Secret, Refusal>, Error> {
        let name = &self.config.name;
        let mut directory = Directory::connect(Access {
            address,
            resolver: None,
            authority: self.config.ca_file.clone(),
            credentials: Credentials { user: self.config.user.clone(), password },
            budget: Budget::of_one_account(),
            confirm: None,
        })
        .await?;
        let typed = AccountName::Sam(wanted.sam.clone(), Some(name.clone()));
        let Some(account) = directory.account(&typed).await? else {
            let message = format!("there is no account {} in {name}", Quoted::new(&wanted.sam));
            return Ok(Err(Refusal::forbidden(rules::ACCOUNT_UNKNOWN.id, message)));
        };
        if let Err(refusal) = agrees(&account, wanted) {
            return Ok(Err(refusal));
        }
        let Some(password) = directory.managed_password(&account).await? else {
            let message = format!(
                "the user {} may not retrieve the password of {}, or the domain makes none",
                Quoted::new(&self.config.user),
                account.sam
            );
            return Ok(Err(Refusal::bad_gateway(rules::ACCOUNT_PASSWORD.id, message)));
        };
        let kdcs = self.kdcs(SocketAddr::new(password.controller, self.config.kdc_port)).await;
        Ok(Ok(Secret { account, password, kdcs }))
    }

    /// The KDC `first`, then those of the configured controllers whose names the DNS resolves.
    async fn kdcs(&self, first: SocketAddr) -> Kdcs {
        const LIMIT: Duration = Duration::from_secs(2);
        let mut kdcs = vec![first];
        // The logon has a limit too, and the first one is enough for it.
        let _ = timeout(LIMIT, async {
            for controller in &self.config.controllers {
                if let Ok(addresses) = lookup_host((&*controller.host, self.config.kdc_port)).await {
                    let new: Vec<_> = addresses.filter(|address| !kdcs.contains(address)).take(2).collect();
                    kdcs.extend(new);
                }
            }
        })
        .await;
        Kdcs::new(kdcs, self.times.kdc)
    }
}

fn is_of_certificate(error: &Error) -> bool {
    matches!(error, Error::Certificate(..) | Error::CertificateName(..) | Error::CertificateTime(..) | Error::Tls(..))
}

/// Whether the account is that of the credential spec: by class, name, domain and SID of the domain.
fn agrees(account: &Account, wanted: &SpecAccount) -> Result<(), Refusal> {
    let name = Quoted::new(&wanted.sam);
    if !account.is_group_managed() || account.is_left_over {
        let class = Quoted::new(account.class.as_deref().unwrap_or_default());
        let message = format!("{name} is not a group Managed Service Account of {}, but {class}", wanted.domain);
        return Err(Refusal::forbidden(rules::ACCOUNT_CLASS.id, message));
    }
    let sid = account.domain_sid().map(|sid| sid.to_string());
    let is_same = account.sam.to_lowercase() == wanted.sam
        && account.domain().is_some_and(|domain| domain.eq_ignore_ascii_case(&wanted.domain))
        && sid.as_deref() == Some(&*wanted.domain_sid);
    if is_same {
        return Ok(());
    }
    let (has, says) = (sid.unwrap_or_default(), &wanted.domain_sid);
    let message = format!("the account {name} of {} is in the domain {has}, the cred spec says {says}", wanted.domain);
    Err(Refusal::forbidden(rules::ACCOUNT_DIFFERS.id, message))
}

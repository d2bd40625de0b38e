//! One domain: how its directory is read and its KDCs are found.
//!
//! Invariants: one read of a password at a time, so a user whose password is wrong is tried once with it. A refused password is tried again when
//! its file holds another one, and otherwise once in [`REFUSED_FOR`]: that locks no user out. After no controller answered, reads are refused with
//! the same cause for [`Times::pause`], without asking.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gmsa_core::quote::Quoted;
use gmsa_directory::{
    Access, Address, Budget, Credentials, Directory, Error, ManagedPassword, NameServers,
    account::{Account, AccountName},
};
use gmsa_kerberos::Kdcs;
use tokio::{
    net::lookup_host,
    sync::Mutex,
    time::{Instant, timeout},
};
use zeroize::Zeroizing;

use super::{controller_failures, room::Room, spec::SpecAccount};
use crate::{
    api::{Reason, Refusal},
    domains::{DomainConfig, DomainKdcs},
    limits::{REFUSED_FOR, Times},
};

/// A domain, and what its controllers said last.
pub struct TicketDomain {
    pub config: DomainConfig,
    pub times: Times,
    /// For requests that are given tickets of its accounts.
    pub room: Arc<Room>,
    /// The other domains that its KDCs may refer to.
    pub referrals: Vec<OtherRealm>,
    /// One read of a password at a time.
    pub reader: Mutex<PasswordReader>,
}

/// The right to read a password, and what the last reads ended with.
#[derive(Default)]
pub struct PasswordReader {
    /// The password that the domain refused, and when.
    refused: Option<(Zeroizing<String>, Instant)>,
    /// Why no controller answered.
    unanswered: Option<(Instant, Refusal)>,
    /// The KDCs that the configuration and the DNS name.
    kdcs: Option<(Instant, Vec<SocketAddr>)>,
}

/// The KDCs of a realm, or since when and why none answers.
type Located = Result<Arc<Kdcs>, (Instant, Refusal)>;

/// A domain that referrals may lead to.
pub struct OtherRealm {
    pub domain: DomainKdcs,
    /// `None` before the first referral to it.
    pub kdcs: Mutex<Option<Located>>,
}

/// An account that agrees with a credential spec, and its password.
pub struct Secret {
    /// When it was asked for.
    pub asked: Instant,
    pub account: Account,
    pub password: ManagedPassword,
    /// The KDC of the controller that gave the password, then the others.
    pub kdcs: Kdcs,
}

impl TicketDomain {
    pub fn new(config: DomainConfig, times: Times, room: Room) -> Self {
        let other = |domain: &DomainKdcs| OtherRealm { domain: domain.clone(), kdcs: Mutex::default() };
        let referrals = config.referrals.iter().map(other).collect();
        Self { config, times, room: Arc::new(room), referrals, reader: Mutex::default() }
    }

    /// Reads the account of a credential spec, and its password, `numbered` with the numbers of its keys.
    ///
    /// # Errors
    /// 403 where the account is not that of the credential spec, 502 and 503 where the directory gives no password.
    pub async fn secret(
        &self,
        reader: &mut PasswordReader,
        wanted: &SpecAccount,
        numbered: bool,
    ) -> Result<Secret, Refusal> {
        let asked = Instant::now();
        let PasswordReader { refused, unanswered, kdcs } = reader;
        if let Some((since, refusal)) = unanswered
            && let Some(left) = self.times.pause.checked_sub(since.elapsed())
            && !left.is_zero()
        {
            return Err(refusal.clone().after(left));
        }
        *unanswered = None;
        let of_user = |what: String| Refusal::bad_gateway(Reason::LdapCredentials, what);
        let password = self.config.password().map_err(of_user)?;
        let (user, file) = (Quoted::new(&self.config.user), self.config.password_file.display());
        let way_out = |left: Duration| {
            let minutes = left.as_secs().div_ceil(60);
            format!(
                "it is tried again in {minutes} min, or as soon as {file} holds another one or the broker is restarted"
            )
        };
        if let Some((_, at)) = refused.as_ref().filter(|(refused, _)| *refused == password)
            && let Some(left) = REFUSED_FOR.checked_sub(at.elapsed())
            && !left.is_zero()
        {
            let message =
                format!("{} refused the password of the user {user}: {}", self.config.kdcs.name, way_out(left));
            return Err(of_user(message));
        }
        let error = match self.read_from_any(&password, wanted, numbered).await {
            Ok(read) => {
                let (account, password) = read?;
                let (_, others) = match kdcs.take().filter(|(at, _)| at.elapsed() < self.times.pause) {
                    Some(known) => kdcs.insert(known),
                    None => kdcs.insert((Instant::now(), self.located_kdcs(&self.config.kdcs).await)),
                };
                let first = SocketAddr::new(password.controller, self.config.kdcs.kdc_port);
                let others = others.iter().copied().filter(|other| *other != first);
                let kdcs = Kdcs::new([first].into_iter().chain(others).collect(), self.times.kdc);
                return Ok(Secret { asked, account, password, kdcs });
            }
            Err(error) => error,
        };
        let mut refusal = controller_failures::of_directory(&error, &self.config);
        if error.counts_as_wrong_password() {
            refusal.message = format!("{}; {}", refusal.message, way_out(REFUSED_FOR));
            *refused = Some((password, Instant::now()));
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
        numbered: bool,
    ) -> Result<Result<(Account, ManagedPassword), Refusal>, Error> {
        let named = self.config.kdcs.controllers.iter().cloned().map(Address::Controller);
        let mut addresses: Vec<Address> = named.collect();
        if addresses.is_empty() {
            addresses.push(Address::Domain(self.config.kdcs.name.clone()));
        }
        let mut failed = None;
        for address in addresses {
            match self.read(address, password.clone(), wanted, numbered).await {
                // Nothing was sent where the certificate is not trusted.
                Err(error) if error.is_unanswered() || is_of_certificate(&error) => failed = failed.or(Some(error)),
                read => return read,
            }
        }
        let none = || Error::NotLocated { domain: self.config.kdcs.name.clone(), why: "none is configured".to_owned() };
        Err(failed.unwrap_or_else(none))
    }

    async fn read(
        &self,
        address: Address,
        password: Zeroizing<String>,
        wanted: &SpecAccount,
        numbered: bool,
    ) -> Result<Result<(Account, ManagedPassword), Refusal>, Error> {
        let name = &self.config.kdcs.name;
        let mut directory = Directory::connect(Access {
            address,
            resolver: None,
            authority: self.config.ca_file.clone(),
            credentials: Credentials { user: self.config.user.clone(), password },
            budget: Budget::of_one_account().into(),
            confirm: None,
        })
        .await?;
        let typed = AccountName::Sam(wanted.sam.clone(), Some(name.clone()));
        let Some(account) = directory.account(&typed).await? else {
            let message = format!("there is no account {} in {name}", Quoted::new(&wanted.sam));
            return Ok(Err(Refusal::forbidden(Reason::AccountUnknown, message)));
        };
        if let Err(refusal) = agrees(&account, wanted) {
            return Ok(Err(refusal));
        }
        let password = if numbered {
            directory.numbered_password(&account).await?
        } else {
            directory.managed_password(&account).await?
        };
        let Some(password) = password else {
            let message = format!(
                "the user {} may not retrieve the password of {}, or the domain makes none",
                Quoted::new(&self.config.user),
                account.sam
            );
            return Ok(Err(Refusal::bad_gateway(Reason::AccountPassword, message)));
        };
        Ok(Ok((account, password)))
    }

    /// The KDCs of the configured controllers whose names the DNS resolves, then those that the DNS names.
    pub async fn located_kdcs(&self, domain: &DomainKdcs) -> Vec<SocketAddr> {
        const LIMIT: Duration = Duration::from_secs(2);
        let mut kdcs = Vec::new();
        let mut add = |new: Vec<SocketAddr>| {
            let new: Vec<_> = new.into_iter().filter(|address| !kdcs.contains(address)).collect();
            kdcs.extend(new);
        };
        // At home, the KDC of the controller that gave the password is enough for a logon.
        let _ = timeout(LIMIT, async {
            for controller in &domain.controllers {
                let addresses = lookup_host((&*controller.host, domain.kdc_port)).await;
                add(addresses.into_iter().flatten().take(2).collect());
            }
            let servers = self.config.name_servers.clone().or_else(|| NameServers::of_system().ok());
            if let Some(servers) = servers {
                add(servers.kdcs(&domain.name).await.unwrap_or_default());
            }
        })
        .await;
        kdcs
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
        return Err(Refusal::forbidden(Reason::AccountClass, message));
    }
    let differs = |has: String, says: &dyn std::fmt::Display| {
        let message = format!("the account {name} {has}, the cred spec says {says}");
        Err(Refusal::forbidden(Reason::AccountDiffers, message))
    };
    let (sid, domain) = (account.domain_sid().map(|sid| sid.to_string()), account.domain().unwrap_or_default());
    // The directory compares names without case and accents.
    if account.sam.to_lowercase() != wanted.sam {
        return differs(format!("is in the domain {domain} under the name {}", Quoted::new(&account.sam)), &name);
    }
    if !domain.eq_ignore_ascii_case(&wanted.domain) {
        return differs(format!("is in the domain {domain}"), &wanted.domain);
    }
    if sid.as_deref() != Some(&*wanted.domain_sid) {
        return differs(format!("of {domain} is in the domain {}", sid.unwrap_or_default()), &wanted.domain_sid);
    }
    Ok(())
}

//! Tests whether an account can log on with the password from the directory.
//!
//! Invariants: password and keys are wiped, and the ticket dropped, before anything is printed; a password is tried once, at the controller
//! that gave it; each refusal maps to a rule.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use gmsa_core::{
    causes,
    diagnostic::{Check, Diagnostic, Rule, Severity, rules as core},
};
use gmsa_directory::{Directory, account::Account};
use gmsa_kerberos::{Error, KdcError, KdcRefusal, Kdcs, Password, Principal, PrincipalName, Realm, Ticket};
use gmsa_rules as rules;
use time::UtcDateTime;

use crate::lint::remedy;

const ABOUT: &str = "ticket";
const PORT: u16 = 88;
/// The same limit as for an LDAP answer.
const LIMIT: Duration = Duration::from_secs(30);
/// A short life, because the ticket is dropped at once.
const LIFE: Duration = Duration::from_secs(600);

/// The rule of a refusal, its cause, and a remedy if the rule's own does not fit here.
type LogonRefusal = (&'static Rule, String, Option<&'static str>);

/// Logs on as the account. `None` if the directory gives no password.
///
/// # Errors
/// If the directory cannot be read, or the KDC's answer cannot be trusted.
pub async fn ticket(directory: &mut Directory, account: &Account) -> anyhow::Result<Option<Check>> {
    let domain = account.domain().context("the directory does not say which domain the account is in")?;
    let Some(password) = directory.managed_password(account).await? else { return Ok(None) };
    let kdc = SocketAddr::new(password.controller, PORT);
    logon(kdc, account, &domain, &Password::managed(&password.current)).await.map(Some)
}

async fn logon(kdc: SocketAddr, account: &Account, domain: &str, password: &Password) -> anyhow::Result<Check> {
    let name = format!("{}$", account.sam);
    let client = Principal {
        name: PrincipalName::account(&name).context("Kerberos cannot have the name of the account")?,
        realm: Realm::from_domain(domain).context("no realm can have the name of the domain")?,
    };
    let kdcs = Kdcs::new(vec![kdc], LIMIT);
    let ticket = async {
        let key = kdcs.key(&client, password).await?;
        kdcs.tgt(&client, &key, LIFE).await
    };
    Ok(match ticket.await {
        Ok(Ticket { client, session_key, endtime, .. }) => {
            let (kdc, etype, until) = (kdc.ip(), session_key.etype(), second(endtime));
            Check::pass(ABOUT, format!("{client} can log on: {kdc} gave a ticket with {etype} until {until}"))
        }
        Err(error) => Check::found(ABOUT, refused(account, domain, kdc, error)?),
    })
}

/// A time to the second.
fn second(time: UtcDateTime) -> String {
    let (hour, minute, second) = time.as_hms();
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", time.date())
}

/// The finding for an error about the account, the domain or the network.
fn refused(account: &Account, domain: &str, kdc: SocketAddr, error: Error) -> Result<Diagnostic, Error> {
    const PORT_CLOSED: &str = "Let TCP 88 of the domain controller through from this machine.";
    let (rule, why, fix) = match &error {
        Error::Refused(error) => {
            let (rule, why, fix) = logon_refusal(error);
            (rule, format!("{why} ({}: {error})", kdc.ip()), fix)
        }
        Error::NoAes => (&rules::TICKET_ENCRYPTION, format!("the domain holds no AES key of it ({})", kdc.ip()), None),
        error if error.is_unanswered() => (&rules::KDC_UNREACHABLE, causes::chain(error), Some(PORT_CLOSED)),
        _ => return Err(error),
    };
    let message = format!("account {} cannot log on: {why}", account.sam);
    let fix = fix.map_or_else(|| remedy(rule, &account.sam, Some(domain)), str::to_owned);
    // An error here, because it caused the refusal, even if the rule is a warning elsewhere.
    Ok(Diagnostic::new(rule, message).with_fix(fix).with_severity(Severity::Error))
}

fn logon_refusal(error: &KdcError) -> LogonRefusal {
    const LOG: &str = "The security log of the domain controller says more: events 4768 and 4771.";
    const REPLICATION: &str = "The domain controllers may not agree yet on a password that has changed: try again in some minutes. `repadmin /showrepl` lists what is not replicated.";
    const REALM: &str = "Name a domain controller of the account's own domain: `--directory ldaps://HOST`.";
    const POLICY: &str = "Look at authentication policies and silos, and at the group policy `KDC support for claims, compound authentication and Kerberos armoring`: with `Fail unarmored authentication requests`, members of the domain alone can log on.";
    const CHANGE: &str = "Domain controllers change the password of a gMSA themselves. `Get-ADServiceAccount`, with `-Properties PasswordLastSet,PasswordExpired`, says when they did.";
    let (rule, why, fix) = match error.refusal() {
        KdcRefusal::Clock => return (&core::DIRECTORY_CLOCK, clock(error.clock_difference), None),
        KdcRefusal::Disabled => (&core::ACCOUNT_DISABLED, "it is disabled", None),
        KdcRefusal::Expired => (&core::ACCOUNT_EXPIRED, "it has expired", None),
        KdcRefusal::Locked => (&rules::ACCOUNT_LOCKED, "it is locked out", None),
        KdcRefusal::Revoked => (&rules::ACCOUNT_REVOKED, "it is disabled, locked out or has expired", None),
        KdcRefusal::MustChangePassword => {
            (&rules::PASSWORD_EXPIRED, "its password has expired, or must be changed first", Some(CHANGE))
        }
        KdcRefusal::WrongPassword => {
            (&rules::LOGON_DENIED, "the password that the directory gave is wrong", Some(REPLICATION))
        }
        KdcRefusal::UnknownAccount => (&core::ACCOUNT_UNKNOWN, "the domain controller does not know it", None),
        KdcRefusal::WrongRealm => {
            (&rules::KERBEROS_CONFIGURATION, "the domain controller is of another realm", Some(REALM))
        }
        KdcRefusal::NoAes => (&rules::TICKET_ENCRYPTION, "the domain controller gives it no ticket with AES", None),
        KdcRefusal::Policy => {
            let why = "a policy of the domain refuses it, or requires armored requests (FAST), which this is not";
            (&rules::LOGON_RESTRICTED, why, Some(POLICY))
        }
        KdcRefusal::Unavailable => (&rules::KDC_UNREACHABLE, "the domain controller is not available", Some(LOG)),
        KdcRefusal::UnknownService
        | KdcRefusal::TicketExpired
        | KdcRefusal::PreauthenticationRequired
        | KdcRefusal::Other => (&rules::LOGON_DENIED, "the domain controller refuses it", Some(LOG)),
    };
    (rule, why.to_owned(), fix)
}

fn clock(difference: time::Duration) -> String {
    let seconds = difference.unsigned_abs().as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "seconds"),
        120..7200 => ((seconds + 30) / 60, "minutes"),
        7200..172_800 => ((seconds + 1800) / 3600, "hours"),
        _ => ((seconds + 43_200) / 86_400, "days"),
    };
    let which = if difference.is_negative() { "behind" } else { "ahead of" };
    format!("the clock of the domain controller is {count} {unit} {which} that of this machine")
}

#[cfg(test)]
mod tests;

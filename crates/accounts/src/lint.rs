//! The linter of accounts, of their forest, and of credential specs that name them.
//!
//! Invariants: what could not be read is not a fault, and is said to be unknown; names are escaped where they are printed, and quoted where
//! they are part of a command, or the rule says what to do.

use gmsa_core::{
    causes,
    credspec::is_dns_subdomain,
    diagnostic::{Diagnostic, Diagnostics, rules, rules::Rule},
    quote::{Quoted, shell::powershell},
};

use time::UtcDateTime;

use crate::principal::Principals;
use gmsa_directory::{Directory, Error, account::Account};

mod account;
mod forest;
mod password;
mod privileged;
mod retrieval;
mod services;
mod spec;

pub use account::account;
pub(crate) use account::ended;
use account::{class, left_over};
use forest::{forest, root_key};
pub use password::password;
pub use spec::{against, credential_spec, credential_specs};

/// The property that holds who may retrieve the password.
const RETRIEVERS: &str = "PrincipalsAllowedToRetrieveManagedPassword";
/// A plugin logs on as a user, which is listed here too.
const OF_NODES: &str = "a group of the nodes, or of the user that the plugin or the broker logs on as";
const WITHOUT_DENIALS: &str = "which writes the list again, without denials";
const LATER: &str = "; a computer learns of its groups when it restarts";
/// How a file becomes whole.
const LDAPSEARCH: &str = "Print all of it, in pages: `ldapsearch -E pr=1000/noprompt` with the filter \
    `(|(objectClass=domainDNS)(objectClass=group)(objectClass=user)(objectClass=foreignSecurityPrincipal))`.";
/// How many names are printed.
const SHOWN: usize = 5;

/// A finding on an account, with what its rule says to do.
fn found(rule: &'static Rule, account: &Account, field: &str, problem: impl Into<String>) -> Diagnostic {
    let found = about(format!("account {}", account.sam), rule, problem);
    Diagnostic { field: field.to_owned(), ..found.with_fix(remedy(rule, &account.sam, None)) }
}

/// The rule's remedy, with the names of the account and its domain in its commands.
pub(crate) fn remedy(rule: &Rule, sam: &str, domain: Option<&str>) -> String {
    let domain = domain.filter(|domain| is_dns_subdomain(&domain.to_ascii_lowercase())).unwrap_or("DOMAIN");
    // The logon name ends with `$`, which PowerShell would expand without quotes.
    let [name, logon] = [sam, &format!("{sam}$")].map(powershell);
    let named = rule.remedy.replace("-Server DOMAIN", &format!("-Server {domain}"));
    let named =
        named.replace("ADServiceAccount NAME", &format!("ADServiceAccount {}", name.as_deref().unwrap_or("NAME")));
    named.replace("'NAME$'", logon.as_deref().unwrap_or("'NAME$'"))
}

fn about(object: String, rule: &'static Rule, problem: impl Into<String>) -> Diagnostic {
    Diagnostic { object, ..Diagnostic::new(rule, problem).with_fix(rule.remedy) }
}

/// Adds the consequence. Without a fix for this account, the remedy of the rule stays.
fn finding(
    rule: &'static Rule,
    account: &Account,
    field: &str,
    problem: impl Into<String>,
    consequence: &'static str,
    fix: Option<String>,
) -> Diagnostic {
    Diagnostic { consequence: Some(consequence), ..found(rule, account, field, problem).fixed(fix) }
}

/// The command that changes the account.
fn set(account: &Account, what: &str) -> Option<String> {
    Some(format!("Set-ADServiceAccount {} {what}", powershell(&account.sam)?))
}

/// A command about the account, which has the place of NAME in it.
fn for_logon(account: &Account, command: &str) -> Option<String> {
    Some(command.replace("NAME", &powershell(&format!("{}$", account.sam))?))
}

/// The command that sets who may retrieve the password.
fn set_retrievers(account: &Account, group: &str) -> Option<String> {
    set(account, &format!("-{RETRIEVERS} GROUP, {group}"))
}

/// The fix that makes a distribution group a security group.
fn to_security(group: &str) -> Option<String> {
    Some(format!("Set-ADGroup {} -GroupCategory Security{LATER}", powershell(group)?))
}

/// The first of these names, quoted.
fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.take(SHOWN).map(|name| Quoted::new(name).to_string()).collect::<Vec<_>>().join(", ")
}

/// A time to the minute.
fn minute(time: UtcDateTime) -> String {
    format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
}

fn not_checked(what: &str, domain: &str, error: &Error) -> Diagnostic {
    let problem = format!("{what} could not be checked in {domain}: {}", causes::chain(error));
    Diagnostic::new(&rules::NOT_CHECKED, problem)
}

/// Checks accounts that have to serve clients under these names, also against the others of their forest, and the forest itself. `principals`
/// are those behind the SIDs of the accounts, `now` is the clock of this machine.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn accounts(
    directory: &mut Directory,
    accounts: &[Account],
    principals: &Principals,
    services: &[String],
    now: UtcDateTime,
) -> Result<Diagnostics, Error> {
    let mut list = Diagnostics::default();
    list.extend(directory.incomplete().map(|why| Diagnostic::new(&rules::NOT_CHECKED, why).with_fix(LDAPSEARCH)));
    for one in accounts {
        list.extend(account(one, principals, services, now));
    }
    let managed: Vec<&Account> = accounts.iter().filter(|one| one.is_group_managed()).collect();
    list.extend(services::namesakes(directory, &managed).await?);
    list.extend(services::duplicates(directory, &managed).await?);
    list.extend(privileged::nested(directory, &managed).await?);
    list.extend(forest(directory, &managed, now).await?);
    let unread = principals.unread.iter();
    list.extend(unread.map(|(domain, error)| not_checked("who may retrieve passwords", domain, error)));
    Ok(list)
}

#[cfg(test)]
mod tests;

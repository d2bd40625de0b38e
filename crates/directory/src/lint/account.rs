//! What makes an account wrong, before a host asks the domain for its password.
//!
//! Pure. Invariants: a property that was not printed is not checked, and is reported as missing; each quoted text is
//! escaped and cut; a name that cannot be quoted for a command is in none, and the rule says what to do.

use gmsa_core::{
    credspec::generate::scalar,
    diagnostic::{Diagnostic, Severity, rules},
    quote::{Quoted, cut, shell::powershell},
};

use time::UtcDateTime;

use super::{RETRIEVERS, finding, minute, retrieval::retrieval, services::covers, set};
use crate::{
    account::{Account, CLASS, encryption_names},
    principal::Principals,
};

/// The most characters of a name without its `$`: the host refers to the account as to a computer, by a NetBIOS name.
const MAX_NAME: usize = 15;

/// AES128 and AES256.
const AES: u64 = 0x18;

/// `WORKSTATION_TRUST_ACCOUNT` of `userAccountControl`, which NETLOGON in a container needs (Microsoft: Troubleshoot gMSAs for
/// Windows containers).
const WORKSTATION_TRUST: u64 = 0x1000;

/// Both of DES, and RC4.
const DES: u64 = 0x3;
const RC4: u64 = 0x4;

/// Microsoft: Windows Server 2025 has no DES, and releases since Windows 7 have it disabled.
const NO_DES: &str =
    "domain controllers give no ticket that is encrypted with DES, so every logon of the account fails";

/// `USE_DES_KEY_ONLY` ([MS-ADTS] 2.2.16).
const DES_ONLY: u64 = 0x20_0000;

/// Checks an account that has to serve clients under these service principal names. `principals` are those behind the SIDs of who may
/// retrieve its password. Of what is no group Managed Service Account nothing else is said.
pub fn account(account: &Account, principals: &Principals, wanted: &[String], now: UtcDateTime) -> Vec<Diagnostic> {
    if let Some(class) = class(account) {
        return vec![class];
    }
    let properties = [incomplete(account), name(account), enabled(account), expired(account, now)];
    let mut list: Vec<Diagnostic> = properties.into_iter().flatten().collect();
    list.extend(retrieval(account, principals));
    list.extend(services(account, wanted));
    list.extend([encryption(account), des(account), trust(account)].into_iter().flatten());
    list
}

fn incomplete(account: &Account) -> Option<Diagnostic> {
    let missing: Vec<&str> = [
        (account.class.is_none(), "ObjectClass"),
        (account.enabled.is_none(), "Enabled"),
        (account.retrieval.is_none(), RETRIEVERS),
        (account.service_principals.is_none(), "ServicePrincipalNames"),
        (account.encryption.is_none(), "msDS-SupportedEncryptionTypes"),
    ]
    .into_iter()
    .filter_map(|(missing, name)| missing.then_some(name))
    .collect();
    let problem = format!("was printed without {}", missing.join(", "));
    let fix = powershell(&account.sam)
        .map(|name| format!("Get-ADServiceAccount {name} -Properties * | ConvertTo-Json -Depth 4"));
    let why = "these properties are not checked";
    (!missing.is_empty()).then(|| finding(&rules::ACCOUNT_INCOMPLETE, account, "", problem, why, fix))
}

fn name(account: &Account) -> Option<Diagnostic> {
    let length = account.sam.chars().count();
    let problem = format!("{} has {length} characters, more than {MAX_NAME}", Quoted::new(&account.sam));
    let fix = format!("make an account with a shorter name, such as {}", scalar(cut(&account.sam, MAX_NAME)));
    let why = "it is the name of the container as a computer of the domain, which cannot be longer";
    (length > MAX_NAME).then(|| finding(&rules::ACCOUNT_NAME, account, "SamAccountName", problem, why, Some(fix)))
}

/// Whether it is another kind of account.
pub fn class(account: &Account) -> Option<Diagnostic> {
    let class = account.class.as_deref().filter(|_| !account.is_group_managed())?;
    let problem = format!("{} is not {CLASS}", Quoted::new(class));
    let why = "a credential spec works with a group Managed Service Account only";
    let fix = format!(
        "New-ADServiceAccount NAME -DNSHostName NAME.DOMAIN -{RETRIEVERS} GROUP, with a name that nothing else has"
    );
    Some(finding(&rules::ACCOUNT_CLASS, account, "ObjectClass", problem, why, Some(fix)))
}

/// Whether it is disabled.
pub fn enabled(account: &Account) -> Option<Diagnostic> {
    let why = "the domain refuses every logon of the account";
    let fix = set(account, "-Enabled $true");
    (account.enabled == Some(false))
        .then(|| finding(&rules::ACCOUNT_DISABLED, account, "Enabled", "is false", why, fix))
}

/// Whether it has expired.
pub fn expired(account: &Account, now: UtcDateTime) -> Option<Diagnostic> {
    let expires = account.expires.filter(|expires| *expires <= now)?;
    let why = "the domain refuses every logon of the account";
    let fix =
        powershell(&format!("{}$", account.sam)).map(|name| format!("Clear-ADAccountExpiration -Identity {name}"));
    let problem = format!("is {}", minute(expires));
    Some(finding(&rules::ACCOUNT_EXPIRED, account, "AccountExpirationDate", problem, why, fix))
}

fn services(account: &Account, wanted: &[String]) -> Vec<Diagnostic> {
    const WHY: &str = "clients that ask for a ticket to the service get none, and fall back to NTLM or fail";
    let Some(own) = &account.service_principals else { return Vec::new() };
    let finding = |problem, fix| finding(&rules::ACCOUNT_SPN, account, "ServicePrincipalNames", problem, WHY, fix);
    if own.is_empty() && wanted.is_empty() {
        let fix = set(account, "-ServicePrincipalNames @{Add='host/HOST'}, with the host name that clients use");
        let problem = "is empty: clients cannot log on to a service of this account with Kerberos";
        // Of an account that only calls other services that is right.
        return vec![finding(problem.to_owned(), fix).with_severity(Severity::Note)];
    }
    let missing = wanted.iter().filter(|name| !own.iter().any(|own| covers(own, name)));
    let add = |name: &String| set(account, &format!("-ServicePrincipalNames @{{Add={}}}", powershell(name)?));
    missing.map(|name| finding(format!("does not hold {}", Quoted::new(name)), add(name))).collect()
}

fn encryption(account: &Account) -> Option<Diagnostic> {
    let types = account.encryption.filter(|types| types & AES == 0)?;
    let problem = match encryption_names(types).as_slice() {
        [] => "names no encryption type".to_owned(),
        ["RC4"] => "holds RC4 alone".to_owned(),
        names => format!("holds no AES, only {}", names.join(", ")),
    };
    let fix = set(account, "-KerberosEncryptionType AES128,AES256, then wait for the password to change");
    let found = |why| finding(&rules::ACCOUNT_ENCRYPTION, account, "msDS-SupportedEncryptionTypes", problem, why, fix);
    if types & (RC4 | AES) == 0 && types & DES != 0 {
        return Some(found(NO_DES).with_severity(Severity::Error));
    }
    // Microsoft KB5073381: by default, accounts without a type get AES tickets only, and RC4 only where it is set explicitly.
    Some(found(
        "domain controllers are being moved off RC4: which tickets the account gets depends on their updates and settings",
    ))
}

fn des(account: &Account) -> Option<Diagnostic> {
    let control = account.control.filter(|control| control & DES_ONLY != 0)?;
    let problem = format!("is {control:#x}, with USE_DES_KEY_ONLY ({DES_ONLY:#x})");
    let fix = powershell(&format!("{}$", account.sam))
        .map(|name| format!("Set-ADAccountControl {name} -UseDESKeyOnly $false"));
    let found = finding(&rules::ACCOUNT_ENCRYPTION, account, "userAccountControl", problem, NO_DES, fix);
    Some(found.with_severity(Severity::Error))
}

fn trust(account: &Account) -> Option<Diagnostic> {
    let control = account.control.filter(|control| control & WORKSTATION_TRUST == 0)?;
    let problem = format!("is {control:#x}, without WORKSTATION_TRUST_ACCOUNT ({WORKSTATION_TRUST:#x})");
    let why = "NETLOGON in the container cannot talk to domain controllers: names cannot be resolved to SIDs";
    // As Microsoft's page does it: no other kind of account at the same time.
    let control = (control & 0x7FFF_C5FF & !DES_ONLY) | WORKSTATION_TRUST;
    let fix = powershell(&account.sam)
        .map(|name| format!("Set-ADObject (Get-ADServiceAccount {name}) -Replace @{{userAccountControl={control}}}"));
    Some(finding(&rules::ACCOUNT_TRUST, account, "userAccountControl", problem, why, fix))
}

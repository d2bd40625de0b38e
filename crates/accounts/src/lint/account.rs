//! Faults of an account, found before a host asks the domain for its password.
//!
//! Pure. Invariants: a property that was not printed is not checked, and is reported as missing; each quoted text is escaped and cut;
//! a name that cannot be quoted is never part of a command; the remedy of the rule is shown instead.

use gmsa_core::{
    credspec::generate::scalar,
    diagnostic::{Diagnostic, Severity, rules},
    quote::{Quoted, cut, shell::powershell},
};

use time::{Duration, UtcDateTime};

use super::{
    RETRIEVERS, finding, for_logon, minute,
    privileged::privileged,
    retrieval::{delegated, retrieval},
    services::{covers, malformed},
    set,
};
use crate::principal::Principals;
use gmsa_directory::{
    account::{Account, CLASS, SMARTCARD_REQUIRED, encryption_names},
    entry::first_value,
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

/// Checks an account that has to serve clients under these service principal names. `principals` belong to the SIDs of who may
/// retrieve its password. For other kinds of objects, nothing else is reported.
pub fn account(account: &Account, principals: &Principals, wanted: &[String], now: UtcDateTime) -> Vec<Diagnostic> {
    if let Some(whole) = left_over(account).or_else(|| class(account)) {
        return vec![whole];
    }
    let properties = [incomplete(account), name(account), logon(account), superseded(account), interval(account)];
    let mut list: Vec<Diagnostic> = properties.into_iter().flatten().collect();
    list.extend(ended(account, now));
    list.extend(retrieval(account, principals, now));
    list.extend(services(account, wanted));
    list.extend([encryption(account), des(account), trust(account), protected(account)].into_iter().flatten());
    list.extend(weakened(account).into_iter().chain([privileged(account), delegated(account)].into_iter().flatten()));
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
fn enabled(account: &Account) -> Option<Diagnostic> {
    let why = "the domain refuses every logon of the account";
    let fix = set(account, "-Enabled $true");
    (account.enabled == Some(false))
        .then(|| finding(&rules::ACCOUNT_DISABLED, account, "Enabled", "is false", why, fix))
}

/// Whether it is disabled, has expired, or expires soon.
pub fn ended(account: &Account, now: UtcDateTime) -> impl Iterator<Item = Diagnostic> {
    [enabled(account), expired(account, now)].into_iter().flatten()
}

/// Whether it has expired, or expires soon.
fn expired(account: &Account, now: UtcDateTime) -> Option<Diagnostic> {
    const SOON: Duration = Duration::days(30);
    let expires = account.expires.filter(|expires| *expires <= now + SOON)?;
    let (why, severity) = if expires <= now {
        ("the domain refuses every logon of the account", Severity::Error)
    } else {
        ("from then on the domain refuses every logon of the account", Severity::Warning)
    };
    let fix = for_logon(account, "Clear-ADAccountExpiration -Identity NAME");
    let problem = format!("is {}", minute(expires));
    let found = finding(&rules::ACCOUNT_EXPIRED, account, "AccountExpirationDate", problem, why, fix);
    Some(found.with_severity(severity))
}

/// Whether it is deleted, so that nothing else is reported about it.
pub fn left_over(account: &Account) -> Option<Diagnostic> {
    let why = "nothing can log on with this account";
    let fix =
        "Use the account that is there, or restore this one: Get-ADObject -IncludeDeletedObjects, Restore-ADObject.";
    let problem = "is a deleted object, or a conflict of replication (CNF)";
    account
        .is_left_over
        .then(|| finding(&rules::ACCOUNT_DELETED, account, "DistinguishedName", problem, why, Some(fix.to_owned())))
}

/// Settings that keep an enabled account from getting a ticket.
fn logon(account: &Account) -> Option<Diagnostic> {
    let why = "the domain gives the account no ticket";
    let control = account.control.filter(|control| control & SMARTCARD_REQUIRED != 0);
    if let Some(control) = control {
        let problem = format!("is {control:#x}, with SMARTCARD_REQUIRED ({SMARTCARD_REQUIRED:#x})");
        let fix = set_control(account, &format!("-band -bnot {SMARTCARD_REQUIRED:#x}"));
        return Some(finding(&rules::ACCOUNT_LOGON, account, "userAccountControl", problem, why, fix));
    }
    let fix = set(account, "-Clear logonHours");
    account
        .has_no_hours
        .then(|| finding(&rules::ACCOUNT_LOGON, account, "logonHours", "allows no hour of the week", why, fix))
}

/// The command that changes bits of `userAccountControl`, as it is by then: another fix may have changed it.
fn set_control(account: &Account, change: &str) -> Option<String> {
    let name = powershell(&account.sam)?;
    Some(format!(
        "$a = Get-ADServiceAccount {name} -Properties userAccountControl; Set-ADObject $a -Replace @{{userAccountControl=$a.userAccountControl {change}}}"
    ))
}

/// A delegated Managed Service Account (dMSA) replaces another account, which is disabled at the end.
fn superseded(account: &Account) -> Option<Diagnostic> {
    let by = account.superseded_by.as_deref()?;
    let problem =
        format!("is {}: a delegated Managed Service Account takes the place of this account", Quoted::new(by));
    let why = "at the end of the migration this account is disabled, and Windows containers cannot use its successor";
    let fix = powershell(&account.sam).map(|name| {
        format!("Reset-ADServiceAccountMigration or Undo-ADServiceAccountMigration for {name}, or use another group Managed Service Account")
    });
    Some(finding(&rules::ACCOUNT_SUPERSEDED, account, "msDS-SupersededByManagedAccountLink", problem, why, fix))
}

/// Domain controllers refuse 0 where an account is made, and other tools may write it.
fn interval(account: &Account) -> Option<Diagnostic> {
    let days = account.password_interval.filter(|days| *days <= 0)?;
    let problem = format!("is {days} days");
    let why = "the password has no time for which it is valid, so domain controllers make none, or another one at each request";
    let fix = format!(
        "Make the account again: the interval cannot be changed. New-ADServiceAccount NAME -ManagedPasswordIntervalInDays 30 -{RETRIEVERS} GROUP"
    );
    Some(finding(&rules::ACCOUNT_PASSWORD, account, "msDS-ManagedPasswordInterval", problem, why, Some(fix)))
}

/// A member of Protected Users has neither RC4 nor delegation, and tickets of four hours (Microsoft: Protected Users Security Group).
fn protected(account: &Account) -> Option<Diagnostic> {
    let is_it = |group: &&String| first_value(group).eq_ignore_ascii_case("Protected Users");
    account.groups.iter().find(is_it)?;
    let problem = "holds Protected Users";
    let why = "the account gets only AES tickets, for at most four hours, and can neither be delegated nor use NTLM";
    let fix = for_logon(account, "Remove-ADGroupMember 'Protected Users' -Members NAME");
    Some(finding(&rules::ACCOUNT_PROTECTED, account, "MemberOf", problem, why, fix))
}

/// Bits of `userAccountControl` ([MS-ADTS] 2.2.16) that make an account easier to abuse: what each means, and how it is cleared.
const WEAKENED: [(u64, &str, &str, &str); 4] = [
    (
        0x8_0000,
        "TRUSTED_FOR_DELEGATION",
        "unconstrained delegation: anybody who runs a pod with the account gets the tickets of all users who log on to it, domain administrators included",
        "-TrustedForDelegation $false",
    ),
    (
        0x100_0000,
        "TRUSTED_TO_AUTH_FOR_DELEGATION",
        "protocol transition: anybody who runs a pod with the account gets tickets as any user to the services in msDS-AllowedToDelegateTo",
        "-TrustedToAuthForDelegation $false",
    ),
    (0x20, "PASSWD_NOTREQD", "the account may have an empty password", "-PasswordNotRequired $false"),
    (
        0x40_0000,
        "DONT_REQ_PREAUTH",
        "everybody on the network gets an answer that is encrypted with the key of the account",
        "-DoesNotRequirePreAuth $false",
    ),
];

fn weakened(account: &Account) -> Vec<Diagnostic> {
    let Some(control) = account.control else { return Vec::new() };
    let set = WEAKENED.iter().filter(|(bit, ..)| control & bit != 0);
    set.map(|(bit, name, why, clear)| {
        let problem = format!("is {control:#x}, with {name} ({bit:#x})");
        let fix = for_logon(account, &format!("Set-ADAccountControl NAME {clear}"));
        finding(&rules::ACCOUNT_WEAKENED, account, "userAccountControl", problem, why, fix)
    })
    .collect()
}

fn services(account: &Account, wanted: &[String]) -> Vec<Diagnostic> {
    const WHY: &str = "clients that ask for a ticket to the service get none, and fall back to NTLM or fail";
    let Some(own) = &account.service_principals else { return Vec::new() };
    let finding = |problem, fix| finding(&rules::ACCOUNT_SPN, account, "ServicePrincipalNames", problem, WHY, fix);
    if own.is_empty() && wanted.is_empty() {
        let fix = set(account, "-ServicePrincipalNames @{Add='host/HOST'}, with the host name that clients use");
        let problem = "is empty: clients cannot log on to a service of this account with Kerberos";
        // An account that only calls other services needs no name.
        return vec![finding(problem.to_owned(), fix).with_severity(Severity::Note)];
    }
    let malformed = own.iter().filter_map(|name| {
        let why = malformed(name)?;
        let remove = |name| set(account, &format!("-ServicePrincipalNames @{{Remove={name}}}, and add CLASS/HOST"));
        let fix = powershell(name).and_then(remove);
        Some(finding(format!("holds {}, which no client asks for: {why}", Quoted::new(name)), fix))
    });
    let missing = wanted.iter().filter(|name| !own.iter().any(|own| covers(own, name)));
    let add = |name: &String| set(account, &format!("-ServicePrincipalNames @{{Add={}}}", powershell(name)?));
    let missing = missing.map(|name| finding(format!("does not hold {}", Quoted::new(name)), add(name)));
    malformed.chain(missing).chain(short_name(account, own)).collect()
}

/// The first service that has a short name alone, where most clients ask for the full one.
fn short_name(account: &Account, own: &[String]) -> Option<Diagnostic> {
    let is_short = |name: &&String| {
        let full = |other: &String| cut(other, name.len() + 1).eq_ignore_ascii_case(&format!("{name}."));
        malformed(name).is_none() && !name.contains(['.', ':']) && !own.iter().any(full)
    };
    let short = own.iter().find(is_short)?;
    let problem = format!("holds {}, and not the full name of the host", Quoted::new(short));
    let fix = account.domain().and_then(|domain| powershell(&format!("{short}.{domain}")));
    let fix = fix.and_then(|full| set(account, &format!("-ServicePrincipalNames @{{Add={full}}}")));
    let why = "clients that use the full name get no ticket to the service";
    let found = finding(&rules::ACCOUNT_SPN, account, "ServicePrincipalNames", problem, why, fix);
    Some(found.with_severity(Severity::Note))
}

fn encryption(account: &Account) -> Option<Diagnostic> {
    let types = account.encryption.filter(|types| types & AES == 0)?;
    let problem = match encryption_names(types).as_slice() {
        [] => "names no encryption type".to_owned(),
        ["RC4"] => "holds RC4 alone".to_owned(),
        names => format!("holds no AES, only {}", names.join(", ")),
    };
    // The attribute rules which tickets there are; domain controllers have AES keys of the password at any time.
    let fix = set(account, "-KerberosEncryptionType AES128,AES256");
    let found = |why| finding(&rules::ACCOUNT_ENCRYPTION, account, "msDS-SupportedEncryptionTypes", problem, why, fix);
    if types & (RC4 | AES) == 0 && types & DES != 0 {
        return Some(found(NO_DES).with_severity(Severity::Error));
    }
    // Microsoft KB5073381: by default, accounts without a type get AES tickets only, and RC4 only where it is set explicitly.
    Some(found(
        "domain controllers are being moved off RC4: which tickets the account gets depends on their updates and settings; Linux pods get none without AES",
    ))
}

fn des(account: &Account) -> Option<Diagnostic> {
    let control = account.control.filter(|control| control & DES_ONLY != 0)?;
    let problem = format!("is {control:#x}, with USE_DES_KEY_ONLY ({DES_ONLY:#x})");
    let fix = for_logon(account, "Set-ADAccountControl NAME -UseDESKeyOnly $false");
    let found = finding(&rules::ACCOUNT_ENCRYPTION, account, "userAccountControl", problem, NO_DES, fix);
    Some(found.with_severity(Severity::Error))
}

fn trust(account: &Account) -> Option<Diagnostic> {
    let control = account.control.filter(|control| control & WORKSTATION_TRUST == 0)?;
    let problem = format!("is {control:#x}, without WORKSTATION_TRUST_ACCOUNT ({WORKSTATION_TRUST:#x})");
    let why = "NETLOGON in the container cannot talk to domain controllers: names cannot be resolved to SIDs";
    // As Microsoft's page does it: no other kind of account at the same time.
    let fix = set_control(account, &format!("-band 0x7FFFC5FF -bor {WORKSTATION_TRUST:#x}"));
    Some(finding(&rules::ACCOUNT_TRUST, account, "userAccountControl", problem, why, fix))
}

//! Faults of a credential spec, compared with its account and the account's domain.

use gmsa_core::{
    credspec::{
        KIND, Verb,
        domain_join::{DomainJoinConfig, accounts},
        generate::{Domain, scalar},
        is_dns_subdomain,
        lint::{WRONG_DOMAIN, against as domain},
        services::{Services, list_of},
    },
    diagnostic::{
        Diagnostic, Severity,
        rules::{self, Rule},
    },
    quote::Quoted,
};
use serde_json::Value;
use time::UtcDateTime;

use super::{
    class, ended, finding,
    forest::quota,
    left_over, quoted,
    services::{of_keytab, of_tickets},
};
use crate::principal::Principals;
use gmsa_directory::{
    Directory, Error,
    account::{Account, AccountName},
    forest::Forest,
};

/// Faults of an account that are reported for the credential spec that names it.
const SAID_OF_SPECS: [&Rule; 3] = [&rules::ACCOUNT_CLASS, &rules::ACCOUNT_DISABLED, &rules::ACCOUNT_EXPIRED];

/// Compares accounts with the credential spec that pods get; `spec` is the whole object.
pub fn against(accounts: &[Account], spec: &Value) -> Vec<Diagnostic> {
    let name = text(spec, "/metadata/name");
    let join = DomainJoinConfig::of_spec(spec);
    let wanted = join.machine_account_name.unwrap_or_default();
    let spec_name = Quoted::new(name);
    let Some(account) = accounts.iter().find(|account| account.sam.eq_ignore_ascii_case(wanted)) else {
        let names = quoted(accounts.iter().take(3).map(|account| account.sam.as_str()));
        let problem =
            format!("credential spec {spec_name} is for the account {}, not for {names}", Quoted::new(wanted));
        let fix = accounts.first().map(|account| format!("MachineAccountName: {}", scalar(&account.sam)));
        return vec![Diagnostic {
            object: format!("{KIND} {name}"),
            field: "SamAccountName".to_owned(),
            fix,
            consequence: Some("the host asks the domain for another account"),
            ..Diagnostic::new(&rules::ACCOUNT_DIFFERS, problem)
        }];
    };
    let mut list: Vec<Diagnostic> = listed(account, spec).into_iter().chain(any_service(account, spec)).collect();
    // The account's domain differs from the credential spec's.
    let mut same = |field: &str, own: Option<String>, key: &str, written: Option<&str>| {
        let written = written.unwrap_or_default();
        if let Some(own) = own.filter(|own| !own.eq_ignore_ascii_case(written)) {
            let named = Quoted::new(written);
            let problem = format!("the domain is {}, and {named} in credential spec {spec_name}", Quoted::new(&own));
            list.push(differs(account, field, problem, WRONG_DOMAIN, format!("{key}: {}", scalar(&own))));
        }
    };
    same("DistinguishedName", account.domain(), "DnsName", join.dns_name);
    same("SID", account.domain_sid().map(|sid| sid.to_string()), "Sid", join.sid);
    let written = join.guid.unwrap_or_default();
    if account.guid.as_deref().is_some_and(|guid| guid.eq_ignore_ascii_case(written)) {
        let problem = format!("credential spec {spec_name} has the GUID of the account instead of the domain");
        let fix = "Guid: (Get-ADDomain).ObjectGUID".to_owned();
        list.push(differs(account, "ObjectGUID", problem, WRONG_DOMAIN, fix));
    }
    list
}

fn differs(account: &Account, field: &str, problem: String, why: &'static str, fix: String) -> Diagnostic {
    finding(&rules::ACCOUNT_DIFFERS, account, field, problem, why, Some(fix))
}

/// Where the credential spec does not list the account that it is for.
fn listed(account: &Account, spec: &Value) -> Option<Diagnostic> {
    if accounts(spec).any(|listed| listed.eq_ignore_ascii_case(&account.sam)) {
        return None;
    }
    let name = Quoted::new(text(spec, "/metadata/name"));
    let problem = format!("credential spec {name} does not list {} for the host", Quoted::new(&account.sam));
    let (sam, scope) = (scalar(&account.sam), scalar(DomainJoinConfig::of_spec(spec).dns_name.unwrap_or_default()));
    let fix = format!("add {{Name: {sam}, Scope: {scope}}} to GroupManagedServiceAccounts");
    Some(differs(account, "SamAccountName", problem, "the host fetches no password for it", fix))
}

/// Where pods get a ticket-granting ticket of an account with service principal names: with it they get tickets as any user to its services
/// (`S4U2Self`).
fn any_service(account: &Account, spec: &Value) -> Option<Diagnostic> {
    if Services::of(Verb::Use, list_of(spec, Verb::Use)) != Ok(Services::Any) || account.services().is_empty() {
        return None;
    }
    let names = quoted(account.services().iter().map(String::as_str));
    let problem = format!(
        "credential spec {} gives pods a ticket-granting ticket (*), and the account has {names}",
        Quoted::new(text(spec, "/metadata/name"))
    );
    let why = "a pod gets a ticket as administrator to each service that runs as the account";
    let fix = is_dns_subdomain(text(spec, "/metadata/name"))
        .then(|| rules::TICKET_ANY.remedy.replace("SPEC", text(spec, "/metadata/name")));
    Some(finding(&rules::TICKET_ANY, account, "ServicePrincipalNames", problem, why, fix))
}

/// Compares a credential spec with the directory of its forest: its domain and its account, which is returned if it exists, with the index of the
/// directory that has it. A domain outside these forests is reported as such.
///
/// # Errors
/// Where a directory cannot be asked.
pub async fn credential_spec(
    directories: &mut [Directory],
    spec: &Value,
    now: UtcDateTime,
) -> Result<(Vec<Diagnostic>, Option<(usize, Account)>), Error> {
    for (place, directory) in directories.iter_mut().enumerate() {
        let forest = directory.forest.clone().ok_or(Error::NoDomains)?;
        if !is_elsewhere(spec, &forest) {
            let (found, account) = of_forest(directory, &forest, spec, now).await?;
            return Ok((found, account.map(|account| (place, account))));
        }
    }
    Ok((vec![elsewhere(spec)], None))
}

/// Compares credential specs with the directories of their forests, then lints their accounts: that each exists, is enabled and has a
/// principal that may retrieve its password.
///
/// # Errors
/// Where a directory cannot be asked.
pub async fn credential_specs(
    directories: &mut [Directory],
    specs: &[Value],
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
    let mut list = Vec::new();
    let mut accounts: Vec<Vec<Account>> = directories.iter().map(|_| Vec::new()).collect();
    for spec in specs {
        let (found, account) = credential_spec(directories, spec, now).await?;
        let name = text(spec, "/metadata/name");
        list.extend(found.into_iter().map(|found| Diagnostic { object: name.to_owned(), ..found }));
        if let Some((place, account)) = account
            && let Some(of_directory) = accounts.get_mut(place)
            // Several credential specs may be for one account.
            && of_directory.iter().all(|other| other.name != account.name)
        {
            of_directory.push(account);
        }
    }
    for (directory, mut accounts) in directories.iter_mut().zip(accounts) {
        accounts.sort_by(|one, other| one.name.cmp(&other.name));
        let principals = Principals::of(directory, &accounts).await?;
        let of_accounts = super::accounts(directory, &accounts, &principals, &[], now).await?;
        let of_accounts = of_accounts.into_iter().filter(|found| !SAID_OF_SPECS.contains(&found.rule));
        list.extend(of_accounts.map(|found| match found.more {
            0 => found,
            more => Diagnostic { message: format!("{} (and {more} more like this)", found.message), ..found },
        }));
    }
    Ok(list)
}

async fn of_forest(
    directory: &mut Directory,
    forest: &Forest,
    spec: &Value,
    now: UtcDateTime,
) -> Result<(Vec<Diagnostic>, Option<Account>), Error> {
    const MACHINE: &str = "credspec.DomainJoinConfig.MachineAccountName";
    let join = DomainJoinConfig::of_spec(spec);
    let named = join.dns_name.and_then(|dns| forest.named(dns).ok());
    let Some(sam) = join.machine_account_name else {
        // A missing field is another finding.
        let compared = named.or_else(|| forest.own());
        let found = compared.map(|compared| domain(spec, &compared.facts)).unwrap_or_default();
        return Ok((found, None));
    };
    let typed = AccountName::Sam(sam.to_owned(), named.map(|named| named.facts.dns.clone()));
    let account = directory.account(&typed).await?;
    // Where the DNS name is wrong, the account says which domain is meant.
    let of_account = account.as_ref().and_then(|account| forest.of_object(&account.name));
    let meant = named.or(of_account).or_else(|| forest.own());
    let mut found = meant.map(|meant| domain(spec, &meant.facts)).unwrap_or_default();
    if let Ok(services) = Services::of(Verb::Use, list_of(spec, Verb::Use)) {
        if let Services::Listed(listed) = &services {
            found.extend(of_tickets(directory, listed).await?);
        }
        // A ticket for the directory is enough to create computer objects.
        let severity = if services == Services::Any { Severity::Warning } else { Severity::Note };
        if let Some(meant) = meant {
            found.extend(quota(directory, meant).await?.map(|found| found.with_severity(severity)));
        }
    }
    let at_account = |problem: Diagnostic| Diagnostic { field: MACHINE.to_owned(), ..problem };
    let Some(account) = account else {
        let place = meant.map_or_else(|| directory.places(), |meant| meant.facts.dns.clone());
        let missing = format!("there is no account {} in", Quoted::new(sam));
        let domain = meant.map(|meant| meant.facts.dns.as_str());
        let (rule, problem, fix) = match directory.incomplete() {
            Some(why) => (&rules::NOT_CHECKED, format!("{missing} the file, and {why}"), super::LDAPSEARCH.to_owned()),
            None => (
                &rules::ACCOUNT_UNKNOWN,
                format!("{missing} {place}"),
                super::remedy(&rules::ACCOUNT_UNKNOWN, sam, domain),
            ),
        };
        found.push(at_account(Diagnostic::new(rule, problem).with_fix(fix)));
        return Ok((found, None));
    };
    let of_account: Vec<Diagnostic> = if let Some(whole) = left_over(&account).or_else(|| class(&account)) {
        vec![whole]
    } else {
        found.extend(listed(&account, spec).into_iter().chain(any_service(&account, spec)));
        if let Ok(Services::Listed(names)) = Services::of(Verb::Export, list_of(spec, Verb::Export)) {
            found.extend(of_keytab(directory, &account, &names).await?);
        }
        ended(&account, now).collect()
    };
    found.extend(of_account.into_iter().map(|found| {
        let message = format!("{}: {} {}", found.object, found.field, found.message);
        at_account(Diagnostic { message, ..found })
    }));
    Ok((found, Some(account)))
}

/// The finding about a credential spec whose domain is in none of the directories.
fn elsewhere(spec: &Value) -> Diagnostic {
    let dns = DomainJoinConfig::of_spec(spec).dns_name.unwrap_or_default();
    let (named, ask) = if is_dns_subdomain(&dns.to_ascii_lowercase()) {
        (dns.to_owned(), dns.to_ascii_lowercase())
    } else {
        (Quoted::new(dns).to_string(), "DOMAIN".to_owned())
    };
    let problem = format!("is of {named}, which is not a domain of the queried forests");
    let fix = format!("Ask its directory too: add `--directory {ask} --directory-user USER@{ask}`.");
    // A cluster may have pods of two forests.
    let found = Diagnostic::new(&rules::NOT_CHECKED, problem).with_severity(Severity::Note).with_fix(fix);
    Diagnostic { field: "credspec.DomainJoinConfig".to_owned(), ..found }
}

/// Whether no field of the domain matches a domain of the forest. Two forests may share a NetBIOS name, so its match alone proves nothing.
fn is_elsewhere(spec: &Value, forest: &Forest) -> bool {
    let DomainJoinConfig { dns_name, dns_tree_name, sid, guid, net_bios_name, .. } = DomainJoinConfig::of_spec(spec);
    let is_written = |text: &&str| !text.is_empty();
    let is_own = |text: &str| {
        let has = |Domain { dns, forest, netbios, sid, guid }: &Domain| {
            [dns, forest, netbios, sid, guid].into_iter().any(|own| own.eq_ignore_ascii_case(text))
        };
        forest.domains.iter().any(|domain| has(&domain.facts))
    };
    let mut others = [dns_name, dns_tree_name, sid, guid].into_iter().flatten().filter(is_written).peekable();
    let netbios = net_bios_name.filter(is_written).filter(|_| others.peek().is_none());
    let mut all = others.chain(netbios).peekable();
    all.peek().is_some() && !all.any(is_own)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

//! What is wrong with a credential spec, by the account that it names and the domain of that.

use gmsa_core::{
    credspec::{
        KIND,
        generate::scalar,
        lint::{WRONG_DOMAIN, against as domain},
    },
    diagnostic::{
        Diagnostic,
        rules::{self, Rule},
    },
    quote::Quoted,
};
use serde_json::Value;

use super::{class, enabled, fixed, found};
use crate::{
    Directory, Error,
    account::{Account, AccountName},
};

/// What is wrong with an account, and said of the credential spec that names it.
pub const SAID_OF_SPECS: [&Rule; 2] = [&rules::ACCOUNT_CLASS, &rules::ACCOUNT_DISABLED];

/// Compares accounts with the credential spec that pods get; `spec` is the whole object.
pub fn against(accounts: &[Account], spec: &Value) -> Vec<Diagnostic> {
    let name = text(spec, "/metadata/name");
    let join = |key: &str| text(spec, &format!("/credspec/DomainJoinConfig/{key}"));
    let wanted = join("MachineAccountName");
    let spec_name = Quoted::new(name);
    let Some(account) = accounts.iter().find(|account| account.sam.eq_ignore_ascii_case(wanted)) else {
        let names: Vec<String> = accounts.iter().take(3).map(|account| Quoted::new(&account.sam).to_string()).collect();
        let problem = format!(
            "credential spec {spec_name} is for the account {}, not for {}",
            Quoted::new(wanted),
            names.join(", ")
        );
        let fix = accounts.first().map(|account| format!("MachineAccountName: {}", scalar(&account.sam)));
        return vec![Diagnostic {
            object: format!("{KIND} {name}"),
            field: "SamAccountName".to_owned(),
            fix,
            consequence: Some("the host asks the domain for another account"),
            ..Diagnostic::new(&rules::ACCOUNT_DIFFERS, problem)
        }];
    };
    let mut list: Vec<Diagnostic> = listed(account, spec).into_iter().collect();
    // A domain of the account that differs from that of the credential spec.
    let mut same = |field: &str, own: Option<String>, key: &str| {
        if let Some(own) = own.filter(|own| !own.eq_ignore_ascii_case(join(key))) {
            let named = Quoted::new(join(key));
            let problem = format!("the domain is {}, and {named} in credential spec {spec_name}", Quoted::new(&own));
            list.push(differs(account, field, problem, WRONG_DOMAIN, format!("{key}: {}", scalar(&own))));
        }
    };
    same("DistinguishedName", account.domain(), "DnsName");
    same("SID", account.domain_sid().map(|sid| sid.to_string()), "Sid");
    if account.guid.as_deref().is_some_and(|guid| guid.eq_ignore_ascii_case(join("Guid"))) {
        let problem =
            format!("credential spec {spec_name} has the GUID of the account where that of the domain belongs");
        let fix = "Guid: (Get-ADDomain).ObjectGUID".to_owned();
        list.push(differs(account, "ObjectGUID", problem, WRONG_DOMAIN, fix));
    }
    list
}

fn differs(account: &Account, field: &str, problem: String, why: &'static str, fix: String) -> Diagnostic {
    let found = found(&rules::ACCOUNT_DIFFERS, account, field, problem);
    Diagnostic { consequence: Some(why), ..fixed(found, Some(fix)) }
}

/// Where the credential spec does not list the account that it is for.
fn listed(account: &Account, spec: &Value) -> Option<Diagnostic> {
    let listed = spec.pointer("/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts").and_then(Value::as_array);
    let mut names = listed.into_iter().flatten().map(|entry| text(entry, "/Name"));
    if names.any(|listed| listed.eq_ignore_ascii_case(&account.sam)) {
        return None;
    }
    let name = Quoted::new(text(spec, "/metadata/name"));
    let problem = format!("credential spec {name} does not list {} for the host", Quoted::new(&account.sam));
    let (sam, scope) = (scalar(&account.sam), scalar(text(spec, "/credspec/DomainJoinConfig/DnsName")));
    let fix = format!("add {{Name: {sam}, Scope: {scope}}} to GroupManagedServiceAccounts");
    Some(differs(account, "SamAccountName", problem, "the host fetches no password for it", fix))
}

/// Compares a credential spec with the directory: its domain, and its account, which is returned where there is one.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn credential_spec(
    directory: &mut Directory,
    spec: &Value,
) -> Result<(Vec<Diagnostic>, Option<Account>), Error> {
    const MACHINE: &str = "credspec.DomainJoinConfig.MachineAccountName";
    let forest = directory.forest.clone().ok_or(Error::NoDomains)?;
    let join = |key: &str| spec.pointer(&format!("/credspec/DomainJoinConfig/{key}")).and_then(Value::as_str);
    let named = join("DnsName").and_then(|dns| forest.named(dns).ok());
    let Some(sam) = join("MachineAccountName") else {
        // What is missing is another finding.
        let of = named.or_else(|| forest.own());
        return Ok((of.map(|of| domain(spec, &of.domain)).unwrap_or_default(), None));
    };
    let typed = AccountName::Sam(sam.to_owned(), named.map(|of| of.domain.dns.clone()));
    let account = directory.account(&typed).await?;
    // Where the DNS name is wrong, the account says which domain is meant.
    let of_account = account.as_ref().and_then(|account| forest.of_object(&account.name));
    let meant = named.or(of_account).or_else(|| forest.own());
    let mut list = meant.map(|of| domain(spec, &of.domain)).unwrap_or_default();
    let Some(account) = account else {
        let place = meant.map_or_else(|| directory.places(), |of| of.domain.dns.clone());
        let problem = format!("there is no account {} in {place}", Quoted::new(sam));
        list.push(Diagnostic {
            field: MACHINE.to_owned(),
            ..Diagnostic::new(&rules::ACCOUNT_UNKNOWN, problem).with_fix(rules::ACCOUNT_UNKNOWN.remedy)
        });
        return Ok((list, None));
    };
    list.extend(listed(&account, spec));
    let of_account = [class(&account), enabled(&account)].into_iter().flatten();
    list.extend(of_account.map(|found| Diagnostic {
        field: MACHINE.to_owned(),
        message: format!("{}: {} {}", found.object, found.field, found.message),
        ..found
    }));
    Ok((list, Some(account)))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

//! `GroupManagedServiceAccounts`: which accounts the host may fetch, and under which of the domain's names.

use serde_json::Value;

use super::{
    CANNOT_START, Findings, Severity,
    domain::{Join, account_name},
    quote, yaml,
};
use crate::diagnostic::rules::{self, Rule};

const PATH: &str = "credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts";
const RULE: &Rule = &rules::ACCOUNTS;

/// The most entries that are checked.
const MAX_ENTRIES: usize = 64;

pub(super) fn check(findings: &mut Findings, value: Option<&Value>, join: &Join<'_>) {
    const REMEDY: &str = "two entries of {Name, Scope}: the account with the DNS name, and with the NetBIOS name";
    let problem = match value {
        Some(Value::Array(entries)) if !entries.is_empty() => return list(findings, entries, join),
        Some(Value::Array(_)) => "is empty",
        None | Some(Value::Null) => "is missing",
        Some(_) => "is not a list",
    };
    let why = "the host has no account to fetch: the container has no identity in the domain";
    findings.add(RULE, PATH, problem, why, REMEDY);
}

fn list(findings: &mut Findings, entries: &[Value], join: &Join<'_>) {
    let mut scopes = Vec::new();
    let mut own = false;
    for (index, entry) in entries.iter().enumerate().take(MAX_ENTRIES) {
        let field = format!("{PATH}[{index}]");
        let Some(map) = entry.as_object() else {
            findings.add(RULE, &field, "is not an object", CANNOT_START, "{Name: …, Scope: …}");
            continue;
        };
        findings.unknown_keys(&field, map, &["Name", "Scope"]);
        let why = "the host cannot tell which account of which domain to fetch";
        let (name_field, scope_field) = (format!("{field}.Name"), format!("{field}.Scope"));
        let name = findings.text(RULE, &name_field, map.get("Name"), why, "the account's SAM name");
        let scope = findings.text(RULE, &scope_field, map.get("Scope"), why, "the domain's DNS or NetBIOS name");
        if let Some(name) = name {
            account_name(findings, &name_field, name, join.written);
            own |= join.account.is_some_and(|account| account.eq_ignore_ascii_case(name));
            scopes.extend(scope.map(|scope| (name, scope)));
        }
    }
    if let Some(account) = join.account.filter(|_| !own) {
        let problem = format!("does not name the account {} of DomainJoinConfig", quote(account));
        let why = "the host fetches another account than the one that the container logs on with";
        findings.add_as(
            Severity::Warning,
            RULE,
            PATH,
            problem,
            why,
            format!("Name: {}, as in MachineAccountName", yaml(account)),
        );
    }
    missing_scopes(findings, &scopes, own, join);
}

/// Warns where the account is listed under only one of the domain's two names.
fn missing_scopes(findings: &mut Findings, scopes: &[(&str, &str)], own: bool, join: &Join<'_>) {
    for (what, domain) in [("DNS", join.dns), ("NetBIOS", join.netbios)] {
        let Some(domain) = domain else { continue };
        let counts = |name: &str| !own || join.account.is_none_or(|account| account.eq_ignore_ascii_case(name));
        if scopes.iter().any(|(name, scope)| counts(name) && scope.eq_ignore_ascii_case(domain)) {
            continue;
        }
        let problem = format!("has no entry whose Scope is the {what} name {}", quote(domain));
        let why = "logons that spell the domain in this way fail";
        let account = join.account.map_or("the account".to_owned(), yaml);
        let remedy = format!("add the entry {{Name: {account}, Scope: {}}}", yaml(domain));
        findings.add_as(Severity::Warning, RULE, PATH, problem, why, remedy);
    }
}

//! `DomainJoinConfig`: the names and IDs of the domain, and the account.

use serde_json::{Map, Value};

use super::{CANNOT_START, Findings, Severity, WRONG_DOMAIN, quote, yaml};
use crate::{
    credspec::{ccg_plugin::has_guid_shape, domain_join::DomainJoinConfig, placeholder::is_placeholder},
    diagnostic::rules::{self, Rule},
};

const PATH: &str = "credspec.DomainJoinConfig";

/// The valid names, which other fields are compared with.
#[derive(Default)]
pub(super) struct Join<'v> {
    pub dns: Option<&'v str>,
    pub netbios: Option<&'v str>,
    pub account: Option<&'v str>,
    /// The DNS names as they are written, valid or not.
    pub written: [Option<&'v str>; 2],
}

/// `written` has the fields of `join` that are text.
pub(super) fn check<'v>(
    findings: &mut Findings,
    join: Option<&'v Map<String, Value>>,
    written: &DomainJoinConfig<'v>,
) -> Join<'v> {
    let written = [written.dns_name, written.dns_tree_name];
    let Some(join) = join else { return Join::default() };
    let known = ["DnsName", "DnsTreeName", "Guid", "MachineAccountName", "NetBiosName", "Sid"];
    findings.unknown_keys(PATH, join, &known);
    let is_of_account = sid(findings, join.get("Sid"));
    guid(findings, join.get("Guid"), is_of_account);
    let account = machine_account(findings, join.get("MachineAccountName"), written);
    let dns = dns_name(findings, "DnsName", join.get("DnsName"), "(Get-ADDomain).DNSRoot");
    let tree = dns_name(findings, "DnsTreeName", join.get("DnsTreeName"), "(Get-ADDomain).Forest");
    if let (Some(dns), Some(tree)) = (dns, tree)
        && is_below(tree, dns)
    {
        let problem = format!("{} is below DnsName: the root of a forest is never below a domain", quote(tree));
        let remedy = "(Get-ADDomain).Forest, and (Get-ADDomain).DNSRoot for DnsName";
        findings.add(&rules::DNS_TREE_NAME, &format!("{PATH}.DnsTreeName"), problem, WRONG_DOMAIN, remedy);
    }
    let netbios = netbios_name(findings, join.get("NetBiosName"));
    let [dns, netbios, account] = [dns, netbios, account].map(|name| name.filter(|name| !is_placeholder(name)));
    Join { dns, netbios, account, written }
}

fn is_below(child: &str, parent: &str) -> bool {
    let (child, parent) = (child.to_ascii_lowercase(), parent.to_ascii_lowercase());
    child.strip_suffix(&parent).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns whether it is the SID of an account.
fn sid(findings: &mut Findings, value: Option<&Value>) -> bool {
    const REMEDY: &str = "(Get-ADDomain).DomainSID.Value";
    let field = format!("{PATH}.Sid");
    let Some(sid) = findings.text(&rules::SID, &field, value, CANNOT_START, REMEDY) else { return false };
    let numbers: Option<Vec<u32>> =
        sid.strip_prefix("S-1-5-21-").and_then(|rest| rest.split('-').map(number).collect());
    match numbers.as_deref() {
        Some([_, _, _]) => {}
        Some([a, b, c, _]) => {
            let problem = format!("{} is an account's SID: one number too many", quote(sid));
            let remedy = format!("S-1-5-21-{a}-{b}-{c}, to be compared with {REMEDY}");
            findings.add(&rules::SID, &field, problem, WRONG_DOMAIN, remedy);
            return true;
        }
        _ => {
            let problem = format!("{} is not a domain's SID, which reads S-1-5-21-a-b-c", quote(sid));
            findings.add(&rules::SID, &field, problem, WRONG_DOMAIN, REMEDY);
        }
    }
    false
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `with_account` says that the SID is the account's: both are on the same page of PowerShell's output.
fn guid(findings: &mut Findings, value: Option<&Value>, with_account: bool) {
    const REMEDY: &str = "(Get-ADDomain).ObjectGUID (of the domain, not of the account)";
    let field = format!("{PATH}.Guid");
    let Some(guid) = findings.text(&rules::GUID, &field, value, CANNOT_START, REMEDY) else { return };
    if has_guid_shape(guid, |b| b.is_ascii_hexdigit()) {
        if with_account {
            let problem = format!("{} may be the account's too: Sid is the account's", quote(guid));
            findings.add_as(Severity::Warning, &rules::GUID, &field, problem, WRONG_DOMAIN, REMEDY);
        }
        return;
    }
    let inner = guid.trim_start_matches('{').trim_end_matches('}');
    let (problem, remedy) = if inner != guid && has_guid_shape(inner, |b| b.is_ascii_hexdigit()) {
        (format!("{} is in braces", quote(guid)), inner.to_owned())
    } else {
        (format!("{} is not a GUID", quote(guid)), REMEDY.to_owned())
    };
    findings.add(&rules::GUID, &field, problem, CANNOT_START, remedy);
}

fn machine_account<'v>(
    findings: &mut Findings,
    value: Option<&'v Value>,
    domains: [Option<&str>; 2],
) -> Option<&'v str> {
    let field = format!("{PATH}.MachineAccountName");
    let name = findings.text(&rules::ACCOUNT, &field, value, CANNOT_START, ACCOUNT_REMEDY)?;
    if !account_name(findings, &field, name, domains) {
        return None;
    }
    let length = name.chars().count();
    if length > MAX_ACCOUNT {
        let problem = format!("{} has {length} characters, more than {MAX_ACCOUNT}", quote(name));
        let why = "it is the name of the container as a computer of the domain, which cannot be longer";
        findings.add_as(Severity::Warning, &rules::ACCOUNT, &field, problem, why, "use an account with a shorter name");
    }
    Some(name)
}

/// The longest name of an account, without the `$` (Microsoft: `New-ADServiceAccount -SamAccountName`).
const MAX_ACCOUNT: usize = 15;

const ACCOUNT_REMEDY: &str = "(Get-ADServiceAccount NAME).SamAccountName.TrimEnd('$')";

/// Checks the name of an account, which must be the SAM name alone; returns whether it is. A SAM name may hold a dot (Microsoft:
/// SAM-Account-Name attribute), so what follows one is a domain only if it is one of `domains`.
pub(super) fn account_name(findings: &mut Findings, field: &str, name: &str, domains: [Option<&str>; 2]) -> bool {
    const WHY: &str =
        "the host asks the domain for an account of this name and finds none: the container does not start";
    let common = name.get(..3).filter(|start| start.eq_ignore_ascii_case("cn=")).and(name.get(3..));
    let sam = common.and_then(|rest| rest.split(',').next()).unwrap_or(name);
    let sam = sam.rsplit(['\\', '/']).next().unwrap_or(sam);
    let sam = sam.split('@').next().unwrap_or(sam);
    let is_domain = |end: &str| domains.iter().flatten().any(|domain| domain.eq_ignore_ascii_case(end));
    let bare_sam = sam.match_indices('.').find_map(|(at, _)| {
        let (start, end) = sam.split_at_checked(at)?;
        is_domain(end.get(1..)?).then_some(start)
    });
    let has_domain_behind = name.contains('@') || bare_sam.is_some();
    let sam = bare_sam.unwrap_or(sam).trim_end_matches('$');
    let what = if common.is_some() {
        "is a distinguished name"
    } else if name.contains(['\\', '/']) {
        "carries its domain in front"
    } else if has_domain_behind {
        "carries its domain behind"
    } else if name.ends_with('$') {
        "ends with $, which Windows adds itself"
    } else {
        return true;
    };
    let remedy = if sam.is_empty() { ACCOUNT_REMEDY.to_owned() } else { yaml(sam) };
    findings.add(&rules::ACCOUNT, field, format!("{} {what}", quote(name)), WHY, remedy);
    false
}

fn dns_name<'v>(findings: &mut Findings, key: &str, value: Option<&'v Value>, remedy: &str) -> Option<&'v str> {
    let rule = if key == "DnsName" { &rules::DNS_NAME } else { &rules::DNS_TREE_NAME };
    let field = format!("{PATH}.{key}");
    let name = findings.text(rule, &field, value, CANNOT_START, remedy)?;
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || !b.is_ascii())
    };
    if !name.split('.').all(label) {
        findings.add(rule, &field, format!("{} is not a DNS name", quote(name)), WRONG_DOMAIN, remedy);
        return None;
    }
    if !name.contains('.') {
        // Single-label domains exist (Microsoft: Deployment and operation of Active Directory domains by single-label DNS names).
        let problem = format!("{} has no dot: it looks like the NetBIOS name", quote(name));
        findings.add_as(Severity::Warning, rule, &field, problem, WRONG_DOMAIN, remedy);
    }
    if is_below(name, "onmicrosoft.com") {
        let problem =
            format!("{} is the name of a tenant: right only for Microsoft Entra Domain Services", quote(name));
        findings.add_as(Severity::Warning, rule, &field, problem, WRONG_DOMAIN, remedy);
    }
    Some(name)
}

fn netbios_name<'v>(findings: &mut Findings, value: Option<&'v Value>) -> Option<&'v str> {
    const REMEDY: &str = "(Get-ADDomain).NetBIOSName";
    const RULE: &Rule = &rules::NETBIOS_NAME;
    let field = format!("{PATH}.NetBiosName");
    let name = findings.text(RULE, &field, value, CANNOT_START, REMEDY)?;
    let (severity, problem) = if name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|']) {
        (Severity::Error, r#"holds one of \/:*?"<>|"#)
    } else if name.chars().count() > 15 {
        (Severity::Error, "is longer than 15 characters")
    } else if name.contains('.') {
        (Severity::Warning, "has a dot: it looks like the DNS name")
    } else {
        return Some(name);
    };
    findings.add_as(severity, RULE, &field, format!("{} {problem}", quote(name)), WRONG_DOMAIN, REMEDY);
    None
}

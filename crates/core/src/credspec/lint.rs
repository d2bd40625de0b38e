//! Faults of a credential spec, found before a container fails to start with it: the same rules for the linter, the
//! generator and the webhook. Each rule is an entry of [`crate::diagnostic::rules`] and a function here.
//!
//! Pure. Invariants: a finding names the field, says what is wrong, what happens at run time and how to get the
//! right value; no finding quotes a plugin's input, which may contain a secret; each quoted text is
//! escaped and cut.

use std::collections::HashSet;

use serde_json::{Map, Value};

pub use super::suggest_name;
use super::{
    Contents, GROUP, KIND, MAX_CONTENTS_BYTES, VERSION, Verb,
    ccg_plugin::holds_secret,
    domain_join::DomainJoinConfig,
    generate::{Domain, scalar},
    is_dns_subdomain,
    manifest::{MAX_BYTES, MAX_VALUES},
    placeholder::is_placeholder,
};
use crate::diagnostic::{
    Diagnostic, Severity,
    rules::{self, Rule},
};
use crate::quote;

mod accounts;
mod domain;
mod plugin;
mod services;

pub use services::corrected as corrected_services;

/// The most findings on one credential spec: more than any mistake causes; a bound for hostile objects.
const MAX_FINDINGS: usize = 64;

/// Checks a whole `GMSACredentialSpec` object. The findings come in the order of the fields that they are about.
pub fn object(object: &Value) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let Some(object) = object.as_object() else {
        findings.add(&rules::OBJECT, "", "is not an object", NOTHING_TO_EXPAND, WRITE_NEW);
        return findings.0;
    };
    let placeholders = placeholders(object);
    api_version(&mut findings, object);
    name(&mut findings, object.get("metadata"));
    let join = object.get("credspec").map(DomainJoinConfig::of).unwrap_or_default();
    for verb in Verb::ALL {
        services::check(&mut findings, object.get("metadata"), &join, verb);
    }
    findings.unknown_keys("", object, &["apiVersion", "kind", "metadata", "credspec"]);
    match object.get("credspec") {
        None | Some(Value::Null) => {
            findings.add(&rules::CREDSPEC, "credspec", "is missing", NOTHING_TO_EXPAND, WRITE_NEW);
        }
        Some(Value::Object(credspec)) => contents(&mut findings, credspec, &join),
        Some(_) => {
            findings.add(&rules::CREDSPEC, "credspec", "is not an object", NOTHING_TO_EXPAND, WRITE_NEW);
        }
    }
    unfilled(findings, &placeholders)
}

/// The fields whose values are still to be filled in, each with its value.
fn placeholders(object: &Map<String, Value>) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    found.extend(name.filter(|name| is_placeholder(name)).map(|name| ("metadata.name".to_owned(), name)));
    let mut open: Vec<(String, &Value)> =
        object.get("credspec").map(|below| ("credspec".to_owned(), below)).into_iter().collect();
    while let Some((field, value)) = open.pop() {
        match value {
            Value::String(text) if is_unfilled(&field, text) => found.push((field, text)),
            Value::Object(fields) => {
                open.extend(fields.iter().rev().map(|(key, below)| (format!("{field}.{}", bare(key)), below)));
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().rev().map(|(index, below)| (format!("{field}[{index}]"), below)));
            }
            _ => {}
        }
    }
    found
}

/// Whether the value of a field is still a placeholder.
fn is_unfilled(field: &str, text: &str) -> bool {
    match field.rsplit('.').next() {
        // A possible password is reported as one.
        Some("PluginInput") => is_placeholder(text) && !holds_secret(text),
        // Every GUID of a plugin is in braces.
        Some("PluginGUID") => is_placeholder(text.trim_start_matches('{').trim_end_matches('}')),
        _ => is_placeholder(text),
    }
}

/// The findings, with one for all placeholders instead of what follows from them.
fn unfilled(findings: Findings, placeholders: &[(String, &str)]) -> Vec<Diagnostic> {
    let Some((first, value)) = placeholders.first() else { return findings.0 };
    let follows = |found: &Diagnostic| {
        let is_around = |field: &String| {
            field.strip_prefix(&found.field).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        placeholders.iter().any(|(field, _)| is_around(field))
    };
    let mut seen = HashSet::new();
    let names = placeholders.iter().map(|(field, _)| field.rsplit('.').next().unwrap_or(field));
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    let problem = match placeholders.len() {
        1 => format!("is still a placeholder: {}", quote(value)),
        count => format!("{count} values are still placeholders: {}", quote::first_five(&names)),
    };
    let mut unfilled = Findings::default();
    unfilled.add(&rules::PLACEHOLDER, first, problem, CANNOT_START, WRITE_NEW);
    unfilled.0.extend(findings.0.into_iter().filter(|found| !follows(found)));
    unfilled.0
}

/// The finding about an object whose `credspec` is too large to read.
pub fn too_large() -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let problem = format!("is longer than {} KiB or holds more than {MAX_VALUES} values", MAX_BYTES / 1024);
    findings.add(&rules::SIZE, "credspec", problem, NOT_ACCEPTED, "fewer accounts, a shorter PluginInput");
    findings.0
}

const NOT_ACCEPTED: &str = "the API server refuses every pod that carries it";
const NOT_KNOWN: &str = "the API server knows no such kind, and refuses the object";
const NOTHING_TO_EXPAND: &str = "pods that name this credential spec are refused, because it has no contents";
const WRITE_NEW: &str =
    "kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json";

fn api_version(findings: &mut Findings, object: &Map<String, Value>) {
    let text = |key| object.get(key).and_then(Value::as_str);
    let right = format!("apiVersion: {GROUP}/{VERSION}");
    match text("apiVersion").map(|version| version.strip_prefix(GROUP).unwrap_or(version)) {
        None | Some("/v1") => {}
        Some("/v1alpha1") => {
            let (problem, why) = ("is deprecated", "a later version of the custom resource may no longer serve it");
            findings.add(&rules::API_VERSION, "apiVersion", problem, why, right);
        }
        Some(_) => {
            let problem = format!("{} is not {GROUP}/{VERSION}", quote(text("apiVersion").unwrap_or_default()));
            findings.add_as(Severity::Error, &rules::API_VERSION, "apiVersion", problem, NOT_KNOWN, right);
        }
    }
    if let Some(kind) = text("kind").filter(|kind| *kind != KIND) {
        let problem = format!("{} is not {KIND}", quote(kind));
        findings.add_as(Severity::Error, &rules::API_VERSION, "kind", problem, NOT_KNOWN, format!("kind: {KIND}"));
    }
}

fn name(findings: &mut Findings, metadata: Option<&Value>) {
    let field = |name| metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default();
    let name = field("name");
    if is_dns_subdomain(name) || (name.is_empty() && !field("generateName").is_empty()) {
        return;
    }
    let (problem, remedy) = if name.is_empty() {
        ("is missing".to_owned(), "any lower-case DNS name".to_owned())
    } else {
        (format!("{} is not a lower-case DNS subdomain", quote(name)), format!("name: {}", suggest_name(name)))
    };
    let why = "the API server refuses to create an object of this name";
    findings.add(&rules::NAME, "metadata.name", problem, why, remedy);
}

fn contents(findings: &mut Findings, credspec: &Map<String, Value>, written: &DomainJoinConfig<'_>) {
    const ROOT: &str = "credspec";
    if Contents::of(credspec).text().len() > MAX_CONTENTS_BYTES {
        let problem = format!("is longer than {} KiB when printed as JSON", MAX_CONTENTS_BYTES / 1024);
        findings.add(&rules::SIZE, ROOT, problem, NOT_ACCEPTED, "fewer accounts, a shorter PluginInput");
    }
    findings.unknown_keys(ROOT, credspec, &["ActiveDirectoryConfig", "CmsPlugins", "DomainJoinConfig"]);
    cms_plugins(findings, credspec.get("CmsPlugins"));
    let join = findings.section("credspec.DomainJoinConfig", credspec.get("DomainJoinConfig"));
    let join = domain::check(findings, join, written);
    let directory = findings.section("credspec.ActiveDirectoryConfig", credspec.get("ActiveDirectoryConfig"));
    if let Some(directory) = directory {
        findings.unknown_keys(
            "credspec.ActiveDirectoryConfig",
            directory,
            &["GroupManagedServiceAccounts", "HostAccountConfig"],
        );
        accounts::check(findings, directory.get("GroupManagedServiceAccounts"), &join);
        plugin::check(findings, directory.get("HostAccountConfig"));
    }
}

fn cms_plugins(findings: &mut Findings, plugins: Option<&Value>) {
    let problem = match plugins {
        None | Some(Value::Null) => "is missing",
        Some(Value::Array(plugins)) if plugins.iter().any(|plugin| plugin == "ActiveDirectory") => return,
        Some(Value::Array(_)) => "does not hold ActiveDirectory",
        Some(_) => "is not a list",
    };
    let why = "Windows ignores the rest of the credential spec and the container starts without the account";
    findings.add(&rules::CMS_PLUGINS, "credspec.CmsPlugins", problem, why, "CmsPlugins: [ActiveDirectory]");
}

/// The findings so far.
#[derive(Default)]
struct Findings(Vec<Diagnostic>);

pub const WRONG_DOMAIN: &str = "the container starts, but has no trust with the domain: every logon fails";
const CANNOT_START: &str = "Windows cannot read the credential spec: the container does not start";
const PRUNED: &str = "kubectl refuses it, and for other clients the API server drops it silently";

impl Findings {
    fn add(
        &mut self,
        rule: &'static Rule,
        field: &str,
        problem: impl Into<String>,
        consequence: &'static str,
        remedy: impl Into<String>,
    ) {
        self.add_as(rule.severity, rule, field, problem, consequence, remedy);
    }

    /// Adds a finding with another severity than its rule has.
    fn add_as(
        &mut self,
        severity: Severity,
        rule: &'static Rule,
        field: &str,
        problem: impl Into<String>,
        consequence: &'static str,
        remedy: impl Into<String>,
    ) {
        if self.0.len() < MAX_FINDINGS {
            self.0.push(Diagnostic {
                severity,
                field: field.to_owned(),
                consequence: Some(consequence),
                fix: Some(remedy.into()),
                ..Diagnostic::new(rule, problem)
            });
        }
    }

    /// A required part of the credential spec, which must be an object.
    fn section<'v>(&mut self, field: &str, value: Option<&'v Value>) -> Option<&'v Map<String, Value>> {
        let problem = match value {
            Some(Value::Object(section)) => return Some(section),
            None | Some(Value::Null) => "is missing",
            Some(_) => "is not an object",
        };
        self.add(&rules::SECTION, field, problem, CANNOT_START, WRITE_NEW);
        None
    }

    /// A required text. The finding for a missing one says what is expected.
    fn text<'v>(
        &mut self,
        rule: &'static Rule,
        field: &str,
        value: Option<&'v Value>,
        consequence: &'static str,
        remedy: &str,
    ) -> Option<&'v str> {
        let problem = match value {
            Some(Value::String(text)) if !text.is_empty() => return Some(text),
            None | Some(Value::Null) => "is missing",
            Some(Value::String(_)) => "is empty",
            Some(_) => "is not a string",
        };
        self.add(rule, field, problem, consequence, remedy);
        None
    }

    fn unknown_keys(&mut self, parent: &str, object: &Map<String, Value>, known: &[&str]) {
        for (key, value) in object.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let field = if parent.is_empty() { bare(key) } else { format!("{parent}.{}", bare(key)) };
            let other_case = known.iter().find(|known| known.eq_ignore_ascii_case(key));
            let meant = other_case.or_else(|| known.iter().find(|known| is_typo(key, known)));
            // The contents under another name.
            let is_contents = || value.get("DomainJoinConfig").or(value.get("CmsPlugins")).is_some();
            let meant = meant.or_else(|| known.iter().find(|known| **known == "credspec" && is_contents()));
            let remedy =
                meant.map_or_else(|| format!("remove it; known are: {}", known.join(", ")), |k| format!("{k}:"));
            self.add(&rules::UNKNOWN_KEY, &field, "is not a field of a credential spec", PRUNED, remedy);
        }
    }
}

/// Whether `key` is `known` in another case, or with one letter added, removed or changed, or two swapped.
fn is_typo(key: &str, known: &str) -> bool {
    let (a, b) = (key.to_ascii_lowercase().into_bytes(), known.to_ascii_lowercase().into_bytes());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let rest = |bytes: &[u8]| bytes.len().saturating_sub(head + tail);
    rest(&a) <= 2 && rest(&b) <= 2 && a.len().abs_diff(b.len()) <= 1
}

/// A value from the object, fit for a message.
fn quote(text: &str) -> String {
    quote::quoted(text, quote::VALUE)
}

/// A key from the object, fit for a field's path.
fn bare(text: &str) -> String {
    quote::bare(text, quote::VALUE)
}

/// A value from the object or the domain as YAML, as a remedy shows it.
fn yaml(text: &str) -> String {
    scalar(quote::cut(text, quote::VALUE))
}

/// Differences between a credential spec and the domain's own output. Missing fields are found by [`object`].
pub fn against(spec: &Value, domain: &Domain) -> Vec<Diagnostic> {
    let join = DomainJoinConfig::of_spec(spec);
    let wanted: [(&'static Rule, &str, Option<&str>, &str); 5] = [
        (&rules::DNS_NAME, "DnsName", join.dns_name, &domain.dns),
        (&rules::DNS_TREE_NAME, "DnsTreeName", join.dns_tree_name, &domain.forest),
        (&rules::NETBIOS_NAME, "NetBiosName", join.net_bios_name, &domain.netbios),
        (&rules::SID, "Sid", join.sid, &domain.sid),
        (&rules::GUID, "Guid", join.guid, &domain.guid),
    ];
    let differs = |(rule, key, found, right): (&'static Rule, &str, Option<&str>, &str)| {
        let found = found?;
        (!found.eq_ignore_ascii_case(right)).then(|| Diagnostic {
            consequence: Some(WRONG_DOMAIN),
            // Digits and hyphens, without quotes as everywhere.
            fix: Some(format!("{key}: {}", if key == "Guid" { bare(right) } else { yaml(right) })),
            field: format!("credspec.DomainJoinConfig.{key}"),
            ..Diagnostic::new(rule, format!("{} is not what the domain says, {}", quote(found), quote(right)))
        })
    };
    wanted.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests;

//! The annotations that opt in to tickets and a keytab for Linux pods.
//!
//! Invariant: without an annotation there is nothing to say, as most credential specs are for Windows pods alone.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::{Findings, Severity, quote};
use crate::{
    credspec::{
        Verb,
        domain_join::DomainJoinConfig,
        services::{Services, ServicesError, annotation_for, rule_for, service, words},
    },
    diagnostic::rules::{self, Rule},
};

const LIST: &str = "HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433";
const NO_TICKETS: &str = "the broker refuses every pod that asks for tickets of this credential spec";
const NO_KEYTAB: &str = "the broker refuses every pod that asks for a keytab of this credential spec";
const NOT_ASKED: &str = "clients ask for another name, for which the keytab has no key";
const NOT_FOUND: &str = "clients find no ticket: they compare its name byte by byte with the one that they ask for";
const NOT_KNOWN: &str = "where no account has this service principal name, the broker gets none of the tickets";
const READS_ALL: &str =
    "with such a ticket a pod can read the directory, create computer objects, or write delegation onto them";
const ANY: &str = "with it a pod gets tickets for every service, and, for services of the same account, as any user";

/// Classes as clients spell them, and what is written for them by mistake.
const CLASSES: [(&str, &[&str]); 8] = [
    ("HTTP", &["https"]),
    ("MSSQLSvc", &["mssql", "sqlserver", "mssqlserver"]),
    ("cifs", &["smb"]),
    ("host", &["ssh"]),
    ("kafka", &[]),
    ("ldap", &["ldaps"]),
    ("nfs", &[]),
    ("postgres", &["postgresql"]),
];

/// The protocols before a host in connection strings of SQL Server.
const PROTOCOLS: [&str; 4] = ["admin", "lpc", "np", "tcp"];

/// Classes that domain controllers alone have: the directory, the global catalog, replication.
const OF_CONTROLLERS: [&str; 3] = ["ldap", "gc", "e3514235-4b06-11d1-ab04-00c04fc2dcd2"];

/// Classes of every computer, which make a controller's services dangerous.
const OF_COMPUTERS: [&str; 6] = ["host", "cifs", "rpcss", "dns", "wsman", "restrictedkrbhost"];

/// The annotation of this verb.
pub(super) fn check(findings: &mut Findings, metadata: Option<&Value>, join: &DomainJoinConfig<'_>, verb: Verb) {
    let (key, rule) = (annotation_for(verb), rule_for(verb));
    let nothing = if verb == Verb::Use { NO_TICKETS } else { NO_KEYTAB };
    let field = &*format!("metadata.annotations[{key}]");
    let annotation = metadata.and_then(|metadata| metadata.get("annotations")?.get(key));
    let text = match annotation {
        None => return,
        Some(Value::String(text)) => text,
        Some(_) => {
            let why = "the API server refuses the object";
            return findings.add(rule, field, "is not a string", why, format!("\"{LIST}\""));
        }
    };
    let parsed = Services::parse(text);
    match &parsed {
        Ok(Services::Any) if verb == Verb::Export => {
            findings.add(rule, field, "is *: a keytab is for names of its own", nothing, "\"HTTP/app.contoso.com\"");
        }
        Ok(Services::Any) => {
            let problem = "is *: pods get a ticket-granting ticket";
            findings.add_as(Severity::Note, &rules::TICKET_ANY, field, problem, ANY, format!("\"{LIST}\""));
        }
        Err(error @ (ServicesError::Empty | ServicesError::NotAlone | ServicesError::TooMany)) => {
            findings.add(rule, field, error.to_string(), nothing, format!("\"{LIST}\""));
        }
        Ok(Services::Listed(_)) | Err(_) => {}
    }
    for word in words(text).filter(|word| *word != "*") {
        match service(word) {
            Err(error) => {
                let other = match error {
                    ServicesError::OfTheKdc(_) => "remove it",
                    _ => "each as CLASS/HOST, without a realm",
                };
                let remedy = meant(word).unwrap_or_else(|| other.to_owned());
                findings.add(rule, field, error.to_string(), nothing, remedy);
            }
            Ok(service) => {
                // Older clients of SQL Server ask without the port first, so both forms may be listed.
                let with_port = format!("{service}:");
                let lists_both = |services: &Services| match services {
                    Services::Listed(all) => all.iter().any(|other| other.starts_with(&with_port)),
                    Services::Any => false,
                };
                if parsed.as_ref().is_ok_and(lists_both) {
                    continue;
                }
                if let Some((of_ticket, problem, why, remedy)) = fault(&service, join) {
                    let (rule, why) = match verb {
                        Verb::Use => (of_ticket, why),
                        Verb::Export => (&rules::TICKET_SERVICE, NOT_ASKED),
                    };
                    findings.add(rule, field, format!("lists {}{problem}", quote(word)), why, remedy);
                }
            }
        }
    }
}

/// The annotation in its right form, if each of its words shows which service is meant.
pub fn corrected(text: &str) -> Option<String> {
    let services: Option<Vec<String>> = words(text).map(|word| service(word).ok().or_else(|| meant(word))).collect();
    services.map(|services| services.join(",")).filter(|services| !services.is_empty())
}

/// The service meant by a word that is not one: a URL, a principal with its realm, a name of GSSAPI, another separator.
fn meant(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', '\'', '[', ']', '(', ')', ';']);
    if word.contains(';') {
        let all: Option<Vec<String>> = word.split(';').filter(|part| !part.is_empty()).map(meant).collect();
        return all.map(|services| services.join(", "));
    }
    let word = word.replace('\\', "/");
    let (class, rest) = word.split_once("://").or_else(|| word.split_once('/')).unwrap_or(("HTTP", &word));
    // `HTTP@app.contoso.com` is how GSSAPI writes a service, `HTTP/app.contoso.com@CONTOSO.COM` how Kerberos does.
    let (class, target) = match (word.contains('/'), rest.split_once('@')) {
        (true, Some((target, _))) => (class, target),
        (false, Some((class, host))) => (class, host),
        (true, None) => (class, rest),
        (false, None) => rest
            .split_once(':')
            .filter(|(class, host)| !class.contains('.') && host.contains('.'))
            .unwrap_or((class, rest)),
    };
    let is_url = word.contains("://");
    let target = if is_url { target.split(['/', ':', '?']).next().unwrap_or_default() } else { target };
    let is_host = target.split([':', '/']).next().is_some_and(|host| host.contains('.'));
    let meant = service(&format!("{}/{}", spelled(class).unwrap_or(class), target.trim_end_matches('/')));
    meant.ok().filter(|_| is_host)
}

/// How clients spell this class, if that is known.
fn spelled(class: &str) -> Option<&'static str> {
    let is_it = |own: &str| own.eq_ignore_ascii_case(class);
    CLASSES
        .iter()
        .find(|(right, wrong)| is_it(right) || wrong.iter().any(|wrong| is_it(wrong)))
        .map(|(right, _)| *right)
}

/// The fault of a service that is valid for Kerberos: the rule, the problem, the consequence, and the right form.
fn fault(service: &str, join: &DomainJoinConfig<'_>) -> Option<(&'static Rule, &'static str, &'static str, String)> {
    const REMOVE: &str = "remove it, or use an account for it that no other application has";
    let (class, target) = service.split_once('/')?;
    let (host, rest) = target.split_at(target.find([':', '/']).unwrap_or(target.len()));
    let by_name = || format!("{class}/NAME.{}{rest}", join.dns_name.unwrap_or("contoso.com"));
    let own = |problem, why, remedy| Some((&rules::TICKET_SERVICE, problem, why, remedy));
    if target.parse::<Ipv6Addr>().is_ok() || host.parse::<Ipv4Addr>().is_ok() {
        let right = format!("{class}/NAME.{}", join.dns_name.unwrap_or("contoso.com"));
        return own(": clients get no ticket for an address, only for a name", NOT_KNOWN, right);
    }
    if is_of_controller(class, host, rest, join) {
        return Some((&rules::TICKET_CONTROLLER, ", a service of a domain controller", READS_ALL, REMOVE.to_owned()));
    }
    if let Some(named) = rest.strip_prefix(':').filter(|named| PROTOCOLS.contains(&host) && named.contains('.')) {
        let problem = ": clients ask without the protocol of the connection string";
        return own(problem, NOT_FOUND, format!("{}/{named}", spelled(class).unwrap_or(class)));
    }
    if let Some(right) = spelled(class).filter(|right| *right != class) {
        return own(": clients spell the class in another way", NOT_FOUND, format!("{right}/{target}"));
    }
    if host.ends_with('.') {
        return own(
            ": clients leave the dot at the end out",
            NOT_FOUND,
            format!("{class}/{}{rest}", host.trim_end_matches('.')),
        );
    }
    if class == "HTTP" && rest.starts_with(':') {
        return own(": web clients ask without a port", NOT_FOUND, format!("{class}/{host}"));
    }
    if host.split('.').skip(1).any(|label| label == "svc") {
        return own(": accounts have names of the domain, not of the cluster", NOT_KNOWN, by_name());
    }
    if !host.contains('.') {
        return own(
            ": clients append a domain to a short name, in pods that of the cluster",
            NOT_FOUND,
            format!("{class}/{host}.{}{rest}", join.dns_name.unwrap_or("contoso.com")),
        );
    }
    if class == "MSSQLSvc" && rest.is_empty() {
        return own(": clients of SQL Server ask with the port", NOT_FOUND, format!("{service}:1433"));
    }
    None
}

/// Whether a service is one of a domain controller, as far as its name says: by its class, by the name of the domain, or by a host called `dc1`.
fn is_of_controller(class: &str, host: &str, rest: &str, join: &DomainJoinConfig<'_>) -> bool {
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(class));
    let domains = || [join.dns_name, join.dns_tree_name, join.net_bios_name].into_iter().flatten();
    let is_domain = |name: &str| domains().any(|domain| domain.eq_ignore_ascii_case(name));
    let label = host.split('.').next().unwrap_or_default();
    let mut words = label.split(['-', '_']).map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let is_named_so = words.any(|word| matches!(word, "dc" | "pdc" | "bdc" | "rodc" | "addc"));
    let is_so = is_named_so || is_domain(host) || host.contains("._msdcs.");
    is(&OF_CONTROLLERS) || rest.strip_prefix('/').is_some_and(is_domain) || (is(&OF_COMPUTERS) && is_so)
}

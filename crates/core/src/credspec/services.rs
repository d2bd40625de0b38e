//! The services that a credential spec's owner lists in its annotation. The broker, the linter and `check` read it here.
//!
//! Invariants: without the annotation there are no tickets; `*` stands alone; a service is a class and a host, as clients spell them in
//! the name of a cached ticket, which they compare byte by byte.

use std::fmt;

use serde_json::Value;

use super::Verb;
use crate::{
    diagnostic::rules::{self, Rule},
    quote::Quoted,
};

/// The annotation of a `GMSACredentialSpec`.
pub const ANNOTATION: &str = "gmsa-webhook/services";

/// The annotation of a `GMSACredentialSpec` that lists the names in its keytab, under which clients ask for the service that accepts them.
pub const KEYTAB: &str = "gmsa-webhook/keytab";

/// The most services of a credential spec: each is a ticket for each pod.
pub const MAX_SERVICES: usize = 32;

/// The longest service principal name (Active Directory's `servicePrincipalName`: 260 characters), in bytes.
const MAX_LENGTH: usize = 260;

/// The services that tickets are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Services {
    /// `*`: a ticket-granting ticket, with which the pod gets tickets for any service.
    Any,
    /// Service principal names without a realm: `HTTP/app.contoso.com`, `MSSQLSvc/sql1.contoso.com:1433`.
    Listed(Vec<String>),
}

/// Why a credential spec gives no tickets, or no keytab.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTickets {
    #[error("its owner lists no {} in the annotation {}", if *.0 == Verb::Use { "services" } else { "names" }, annotation_for(*.0))]
    NotOptedIn(Verb),
    #[error("its annotation {} {}", annotation_for(*.0), .1)]
    Wrong(Verb, ServicesError),
}

/// Why the annotation cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServicesError {
    #[error("is empty: list services, such as HTTP/app.contoso.com, or * for any")]
    Empty,
    #[error("names * beside services")]
    NotAlone,
    #[error(
        "lists {0}, which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433"
    )]
    NotAService(Quoted),
    #[error("lists {0}, a service of the KDC itself: * alone gives a ticket-granting ticket")]
    OfTheKdc(Quoted),
    #[error("lists more than {MAX_SERVICES} services")]
    TooMany,
}

impl Services {
    /// What a credential spec with this annotation ([`annotation_for`] the verb) gives tickets for; or the names for which its keytab has entries
    /// beside the account's own name, which are spelled in the same way, without `*`.
    ///
    /// # Errors
    /// Where its owner did not opt in, or not in the right form.
    pub fn of(verb: Verb, annotation: Option<&str>) -> Result<Self, NoTickets> {
        let parsed = match Self::parse(annotation.ok_or(NoTickets::NotOptedIn(verb))?) {
            Ok(Self::Any) if verb == Verb::Export => Err(ServicesError::NotAService(Quoted::new("*"))),
            parsed => parsed,
        };
        parsed.map_err(|error| NoTickets::Wrong(verb, error))
    }

    /// Reads the annotation. Of equal services one is kept.
    ///
    /// # Errors
    /// If it is empty, or lists what is not a service.
    pub fn parse(text: &str) -> Result<Self, ServicesError> {
        if words(text).any(|word| word == "*") {
            return if words(text).count() == 1 { Ok(Self::Any) } else { Err(ServicesError::NotAlone) };
        }
        let mut services = Vec::new();
        for word in words(text) {
            let service = service(word)?;
            if !services.contains(&service) {
                services.push(service);
            }
            if services.len() > MAX_SERVICES {
                return Err(ServicesError::TooMany);
            }
        }
        if services.is_empty() { Err(ServicesError::Empty) } else { Ok(Self::Listed(services)) }
    }

    /// As the answer lists them.
    pub fn list(&self) -> Vec<String> {
        match self {
            Self::Any => vec!["*".to_owned()],
            Self::Listed(services) => services.clone(),
        }
    }
}

impl fmt::Display for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list().join(", "))
    }
}

/// The annotation of a whole credential spec that opts in to what this verb gives: [`ANNOTATION`], or [`KEYTAB`]; `None` too where it is not a text.
pub fn list_of(spec: &Value, verb: Verb) -> Option<&str> {
    spec.pointer("/metadata/annotations")?.get(annotation_for(verb))?.as_str()
}

/// The annotation of a credential spec by which its owner opts in to what this verb gives.
pub fn annotation_for(verb: Verb) -> &'static str {
    match verb {
        Verb::Use => ANNOTATION,
        Verb::Export => KEYTAB,
    }
}

/// The rule that a credential spec breaks whose [`annotation_for`] this verb is missing or wrong.
pub fn rule_for(verb: Verb) -> &'static Rule {
    match verb {
        Verb::Use => &rules::TICKET_SERVICES,
        Verb::Export => &rules::KEYTAB_NAMES,
    }
}

/// Whether the host of a service is in this domain or below it, by its name.
pub fn is_in(service: &str, domain: &str) -> bool {
    let host = service.split(['/', ':']).nth(1);
    host.and_then(|host| host.strip_suffix(domain)).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The words of the annotation, which are separated by commas or white space.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\r', '\n']).filter(|word| !word.is_empty())
}

/// A service in the spelling of clients: a class `http` is written `HTTP` and a host in lower case, otherwise the spelling stays.
///
/// # Errors
/// If it is not a service, or one of the KDC.
pub fn service(word: &str) -> Result<String, ServicesError> {
    let service = normalized(word).ok_or_else(|| ServicesError::NotAService(Quoted::new(word)))?;
    // Its ticket is one for more tickets, or for changing passwords.
    let is_of_the_kdc =
        |(class, _): (&str, &str)| ["krbtgt", "kadmin"].iter().any(|own| class.eq_ignore_ascii_case(own));
    if service.split_once('/').is_some_and(is_of_the_kdc) {
        return Err(ServicesError::OfTheKdc(Quoted::new(word)));
    }
    Ok(service)
}

/// `None` where it is not a class and a host.
fn normalized(word: &str) -> Option<String> {
    let (class, target) = word.split_once('/')?;
    // A third part names the domain or the service's name: `ldap/dc1.contoso.com/contoso.com`.
    let (host, rest) = target.split_at(target.find([':', '/']).unwrap_or(target.len()));
    let is_part = |part: &str, more: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let is_rest = rest.is_empty() || rest.get(1..)?.split('/').all(|part| is_part(part, "-._:\\"));
    if word.len() > MAX_LENGTH || !is_part(class, "-_.") || !is_part(host, "-._") || !is_rest {
        return None;
    }
    let class = if class.eq_ignore_ascii_case("http") { "HTTP" } else { class };
    Some(format!("{class}/{}{rest}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, String> {
        Services::parse(text).map(|services| services.list()).map_err(|error| error.to_string())
    }

    fn listed(text: &str, services: &[&str]) {
        assert_eq!(parsed(text), Ok(services.iter().map(|service| (*service).to_owned()).collect()));
    }

    #[test]
    fn services_are_spelled_as_clients_ask_for_them() {
        let twice = "http/App.Contoso.com, MSSQLSvc/SQL1.contoso.com:1433\n HTTP/app.contoso.com";
        listed(twice, &["HTTP/app.contoso.com", "MSSQLSvc/sql1.contoso.com:1433"]);
        listed("ldap/dc1.contoso.com/contoso.com", &["ldap/dc1.contoso.com/contoso.com"]);
        listed("MSSQLSvc/sql1.contoso.com:SQLEXPRESS", &["MSSQLSvc/sql1.contoso.com:SQLEXPRESS"]);
        assert_eq!(Services::parse(" * "), Ok(Services::Any));
    }

    #[test]
    fn without_the_annotation_there_are_no_tickets() {
        let said = |annotation| Services::of(Verb::Use, annotation).map_err(|why| why.to_string());
        assert_eq!(said(Some("*")), Ok(Services::Any));
        let none = "its owner lists no services in the annotation gmsa-webhook/services";
        assert_eq!(said(None), Err(none.to_owned()));
        assert_eq!(
            said(Some("*, x/y")),
            Err("its annotation gmsa-webhook/services names * beside services".to_owned())
        );
    }

    #[test]
    fn a_keytab_needs_names_of_services() {
        let said = |annotation| Services::of(Verb::Export, annotation).map_err(|why| why.to_string());
        let names = Services::Listed(vec!["HTTP/app.contoso.com".to_owned()]);
        assert_eq!(said(Some("http/App.contoso.com")), Ok(names));
        assert_eq!(said(None), Err("its owner lists no names in the annotation gmsa-webhook/keytab".to_owned()));
        let wrong = "its annotation gmsa-webhook/keytab lists \"*\", which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433";
        assert_eq!(said(Some("*")), Err(wrong.to_owned()));
    }

    #[test]
    fn what_is_not_a_list_of_services_is_an_error() {
        let refused =
            |text: &str, word: &str, what: &str| assert_eq!(parsed(text), Err(format!("lists {word:?}, {what}")));
        for word in [
            "app.contoso.com",
            "HTTP/",
            "/app",
            "HTTP/a@B",
            "HTTP/a:",
            "http://app.contoso.com",
            "HTTP/*",
            "HTTP/a/",
            "HTTP/a:1/",
            "HTTP/a//b",
            "HTTP/a/b/",
        ] {
            let what = "which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433";
            refused(word, word, what);
            refused(&format!("HTTP/a, {word}"), word, what);
        }
        for word in ["krbtgt/CONTOSO.COM", "KrbTgt/contoso.com", "kadmin/changepw"] {
            refused(word, word, "a service of the KDC itself: * alone gives a ticket-granting ticket");
        }
        assert_eq!(
            parsed(" , "),
            Err("is empty: list services, such as HTTP/app.contoso.com, or * for any".to_owned())
        );
        assert_eq!(parsed("*, HTTP/a"), Err("names * beside services".to_owned()));
        let many: Vec<String> = (0..33).map(|number| format!("HTTP/h{number}")).collect();
        assert_eq!(parsed(&many.join(",")), Err("lists more than 32 services".to_owned()));
        assert_eq!(parsed(&many[..32].join(",")).unwrap().len(), 32);
        let long = |length: usize| parsed(&format!("HTTP/{}", "a".repeat(length)));
        assert!(long(255).is_ok() && long(256).is_err());
    }
}

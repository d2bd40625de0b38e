//! Values of options, and what they are read from.

use crate::shared::rules;
use gmsa_core::{
    admission::Subject,
    credspec::{SpecName, is_dns_subdomain},
    diagnostic::Rule,
};

pub fn spec_name(text: &str) -> Result<SpecName, String> {
    SpecName::parse(text).ok_or_else(|| "expected a lower-case DNS name".to_owned())
}

pub fn service_account(text: &str) -> Result<Subject, String> {
    let (namespace, name) = text.split_once(':').ok_or("expected NAMESPACE:NAME")?;
    if namespace.contains('.') || !is_dns_subdomain(namespace) {
        return Err(format!("{namespace:?} is not the name of a namespace"));
    }
    if !is_dns_subdomain(name) {
        return Err(format!("{name:?} is not the name of a service account"));
    }
    Ok(Subject { namespace: namespace.into(), service_account: name.into() })
}

/// A rule that may be ignored, by its name.
pub fn rule(text: &str) -> Result<&'static Rule, String> {
    let rule = rules::all().find(|rule| rule.id == text);
    match rule {
        None => Err(format!("there is no such rule; {} has all of them", rules::PAGE)),
        Some(rule) if [rules::UNREADABLE.id, rules::NOT_CHECKED.id].contains(&rule.id) => {
            Err("what could not be read or checked may not be ignored".to_owned())
        }
        Some(rule) => Ok(rule),
    }
}

/// A service principal name as it is typed.
pub fn service(text: &str) -> Result<String, String> {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| !c.is_whitespace() && !c.is_control());
    match text.split_once('/') {
        Some((class, host)) if is_part(class) && is_part(host) => Ok(text.to_owned()),
        _ => Err("expected CLASS/HOST, such as http/web.contoso.com".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_typed_with_their_namespace() {
        let parsed = service_account("shop:web.v1").unwrap();
        assert_eq!(parsed, Subject { namespace: "shop".into(), service_account: "web.v1".into() });
        for (text, error) in [
            ("web", "expected NAMESPACE:NAME"),
            ("a.b:web", "\"a.b\" is not the name of a namespace"),
            ("shop:", "\"\" is not the name of a service account"),
            ("shop:a/b", "\"a/b\" is not the name of a service account"),
        ] {
            assert_eq!(service_account(text).unwrap_err(), error);
        }
    }
}

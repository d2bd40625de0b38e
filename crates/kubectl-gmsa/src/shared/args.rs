//! Option values and their parsers.

use std::time::Duration;

use crate::shared::rules;
use gmsa_core::{
    admission::ServiceAccount,
    credspec::{SpecName, is_dns_subdomain, lint::suggest_name},
    duration::go_duration,
};

/// Unlimited in practice, and short enough to add to an `Instant`.
const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

/// A time-out as client-go reads it (`clientcmd.ParseTimeout`): a number of seconds, or a number with its unit.
pub fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::from_secs).ok().or_else(|| go_duration(text)) {
        Some(Duration::ZERO) => Ok(UNLIMITED),
        Some(read) => Ok(read.min(UNLIMITED)),
        None => Err("expected a duration such as 1s, 2m or 3h, or 0 for no limit".to_owned()),
    }
}

/// A number of bytes, as Kubernetes writes a quantity of memory.
pub fn size(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u32); 3] = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
    let unit = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = unit.unwrap_or((text, 0));
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| "expected a number of bytes such as 64Mi".to_owned())
}

pub fn spec_name(text: &str) -> Result<SpecName, String> {
    let such_as = || Some(suggest_name(text)).filter(|_| !text.contains('/')).map(|name| format!(", such as {name}"));
    SpecName::parse(text).ok_or_else(|| format!("expected a lower-case DNS name{}", such_as().unwrap_or_default()))
}

pub fn service_account(text: &str) -> Result<ServiceAccount, String> {
    // As RBAC and the log of the webhook write its user.
    let text = text.strip_prefix("system:serviceaccount:").unwrap_or(text);
    let (namespace, name) = text.split_once(':').ok_or_else(|| match text.split_once('/') {
        Some((namespace, name)) => format!("expected NAMESPACE:NAME, such as {namespace}:{name}"),
        None => "expected NAMESPACE:NAME".to_owned(),
    })?;
    if namespace.contains('.') || !is_dns_subdomain(namespace) {
        return Err(format!("{namespace:?} is not the name of a namespace"));
    }
    if !is_dns_subdomain(name) {
        return Err(format!("{name:?} is not the name of a service account"));
    }
    Ok(ServiceAccount { namespace: namespace.into(), name: name.into() })
}

/// The name of a rule that may be ignored. A removed rule stays valid.
pub fn rule(text: &str) -> Result<String, String> {
    match rules::all().find(|rule| rule.id == text) {
        None if rules::removed(text).is_none() => {
            Err(format!("there is no such rule; {} has all of them", rules::PAGE))
        }
        Some(rule) if [rules::UNREADABLE.id, rules::NOT_CHECKED.id].contains(&rule.id) => {
            Err("what could not be read or checked may not be ignored".to_owned())
        }
        _ => Ok(text.to_owned()),
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
        for text in ["shop:web.v1", "system:serviceaccount:shop:web.v1"] {
            let parsed = service_account(text).unwrap();
            assert_eq!(parsed, ServiceAccount { namespace: "shop".into(), name: "web.v1".into() });
        }
        for (text, error) in [
            ("web", "expected NAMESPACE:NAME"),
            ("shop/web", "expected NAMESPACE:NAME, such as shop:web"),
            ("a.b:web", "\"a.b\" is not the name of a namespace"),
            ("shop:", "\"\" is not the name of a service account"),
            ("shop:a/b", "\"a/b\" is not the name of a service account"),
        ] {
            assert_eq!(service_account(text).unwrap_err(), error);
        }
    }

    #[test]
    fn a_size_is_a_quantity_of_memory() {
        for (text, bytes) in [("0", 0), ("512", 512), ("1Ki", 1 << 10), ("64Mi", 64 << 20), ("2Gi", 2 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "1.5Mi", "64MB", "99999999999Gi"] {
            assert_eq!(size(text), Err("expected a number of bytes such as 64Mi".to_owned()), "{text}");
        }
    }

    #[test]
    fn a_timeout_is_read_as_kubectl_reads_it() {
        for (text, read) in [
            ("0", UNLIMITED),
            ("0s", UNLIMITED),
            ("30", Duration::from_secs(30)),
            ("1m30s", Duration::from_secs(90)),
            ("500ms", Duration::from_millis(500)),
            ("1.5h", Duration::from_secs(5400)),
            ("2000000h", UNLIMITED),
            ("18446744073709551615", UNLIMITED),
        ] {
            assert_eq!(timeout(text), Ok(read), "{text}");
        }
        for text in ["", "-1s", "soon", "1 fortnight", "5124095576030431h"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }
}

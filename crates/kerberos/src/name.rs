//! Realms, and names of principals.
//!
//! Invariant: a name has no control character and a bounded length, so it cannot change a message, a cache or a configuration file.

use std::fmt;

use crate::der::{self, DerReader};

/// The most bytes of a name.
const MAX_NAME: usize = 1024;

/// A realm of Active Directory: the DNS name of a domain, in upper case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Realm(String);

impl Realm {
    /// `None` where it is not the DNS name of a domain.
    pub fn from_domain(domain: &str) -> Option<Self> {
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_domain = (1..=MAX_NAME).contains(&domain.len()) && domain.chars().all(is_allowed);
        is_domain.then(|| Self(domain.chars().map(upper_case).collect()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One character stays one, as in Windows: `ß` has no upper case.
fn upper_case(c: char) -> char {
    let mut upper = c.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(c)
}

impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an account or a service in a realm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrincipalName {
    /// `name-type` (RFC 4120, 6.2).
    pub(crate) name_type: i32,
    pub(crate) parts: Vec<String>,
}

impl PrincipalName {
    /// `KRB5_NT_PRINCIPAL` and `KRB5_NT_SRV_INST`
    const NT_PRINCIPAL: i32 = 1;
    const NT_SRV_INST: i32 = 2;

    /// An account by its SAM name, such as `WebApp1$`.
    pub fn account(name: &str) -> Option<Self> {
        Self::new(Self::NT_PRINCIPAL, [name])
    }

    /// A service by its principal name, such as `HTTP/app.contoso.com` or `MSSQLSvc/sql1.contoso.com:1433`.
    pub fn service(name: &str) -> Option<Self> {
        Self::new(Self::NT_SRV_INST, name.split('/')).filter(|name| name.parts.len() > 1)
    }

    /// The service that gives the other tickets of a realm.
    pub fn krbtgt(realm: &Realm) -> Self {
        Self { name_type: Self::NT_SRV_INST, parts: vec!["krbtgt".to_owned(), realm.0.clone()] }
    }

    /// An encoded `krbtgt` of a realm, in a referral to its KDCs.
    pub(crate) fn read_krbtgt(encoded: DerReader<'_>) -> Option<Self> {
        let mut parts = encoded.sequence()?.field(1)?.sequence()?;
        parts.read(der::STRING)?;
        let realm = Realm::from_domain(std::str::from_utf8(parts.read(der::STRING)?).ok()?)?;
        Some(Self::krbtgt(&realm)).filter(|krbtgt| krbtgt.matches(encoded))
    }

    fn new<'p>(name_type: i32, parts: impl IntoIterator<Item = &'p str>) -> Option<Self> {
        let parts: Vec<String> = parts.into_iter().map(str::to_owned).collect();
        let is_name = |part: &String| !part.is_empty() && !part.contains(|c: char| c.is_control());
        let length: usize = parts.iter().map(String::len).sum();
        (length <= MAX_NAME && parts.iter().all(is_name)).then_some(Self { name_type, parts })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = self.parts.iter().map(|part| der::string(part)).collect();
        der::sequence(&[der::field(0, &der::integer(self.name_type.into())), der::field(1, &der::sequence(&parts))])
    }

    /// Whether an encoded name is equal to this one. The type is a hint and is not compared (RFC 4120, 6.2).
    pub(crate) fn matches(&self, encoded: DerReader<'_>) -> bool {
        let parts = encoded.sequence().and_then(|mut name| name.field(1)?.sequence());
        parts.is_some_and(|mut parts| {
            let is_same = |part: &String| parts.read(der::STRING) == Some(part.as_bytes());
            self.parts.iter().all(is_same) && parts.is_empty()
        })
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("/"))
    }
}

/// A principal of a realm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    pub name: PrincipalName,
    pub realm: Realm,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.realm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_change_a_file_or_a_message_is_refused() {
        assert_eq!(Realm::from_domain("contoso.com").unwrap().as_str(), "CONTOSO.COM");
        assert_eq!(Realm::from_domain("größe.example").unwrap().as_str(), "GRÖßE.EXAMPLE");
        for domain in ["", "contoso.com\n", "a b", "a{", "a/b", "a@b", "a=b", &"a".repeat(1025)] {
            assert_eq!(Realm::from_domain(domain), None, "{domain}");
        }
        for name in ["", "a\0", "a\n", &"a".repeat(1025)] {
            assert_eq!(PrincipalName::account(name), None, "{name}");
        }
        for name in ["ldap", "/dc1", "ldap/", "ldap/a\n", ""] {
            assert_eq!(PrincipalName::service(name), None, "{name}");
        }
    }

    #[test]
    fn an_encoded_name_equals_itself_alone() {
        let service = |name: &str| PrincipalName::service(name).unwrap();
        let encoded = service("MSSQLSvc/sql1.contoso.com:1433").encode();
        assert!(service("MSSQLSvc/sql1.contoso.com:1433").matches(DerReader(&encoded)));
        for other in ["mssqlsvc/sql1.contoso.com:1433", "MSSQLSvc/sql1.contoso.com:1433/x", "MSSQLSvc/x"] {
            assert!(!service(other).matches(DerReader(&encoded)), "{other}");
        }
        assert!(!service("a/b").matches(DerReader(&[])));
    }
}

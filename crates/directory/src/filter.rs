//! Search filters (RFC 4511, 4.5.1.7). They have no text, so nothing in a name from outside can change one.

use std::collections::{HashMap, HashSet};

use crate::{
    Entry,
    entry::is_within,
    ldap::ber::{self, constructed, context, octets},
};

/// Active Directory's rule for links: membership through nested groups too ([MS-ADTS] 3.1.1.3.4.4.3).
const IN_CHAIN: &str = "1.2.840.113556.1.4.1941";

#[derive(Clone, Debug)]
pub enum LdapFilter {
    All(Vec<LdapFilter>),
    Any(Vec<LdapFilter>),
    Present(&'static str),
    Equals(&'static str, Vec<u8>),
    /// The attribute names this object, or one that leads to it.
    Leads(&'static str, String),
}

impl LdapFilter {
    pub fn equals(attribute: &'static str, value: impl Into<Vec<u8>>) -> Self {
        Self::Equals(attribute, value.into())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let all = |filters: &[Self]| filters.iter().map(Self::encode).collect::<Vec<_>>().concat();
        match self {
            Self::All(filters) => constructed(0, &all(filters)),
            Self::Any(filters) => constructed(1, &all(filters)),
            Self::Present(attribute) => context(7, attribute.as_bytes()),
            Self::Equals(attribute, value) => constructed(3, &[octets(attribute.as_bytes()), octets(value)].concat()),
            Self::Leads(attribute, name) => {
                let parts = [(1, IN_CHAIN), (2, attribute), (3, name.as_str())];
                let parts = parts.map(|(tag, part)| context(tag, part.as_bytes())).concat();
                constructed(9, &parts)
            }
        }
    }

    /// Whether an entry fits, among all that are known by their names.
    fn fits(&self, entry: &Entry, all: &ByName<'_>) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.fits(entry, all)),
            Self::Any(filters) => filters.iter().any(|filter| filter.fits(entry, all)),
            Self::Present(attribute) => !entry.values(attribute).is_empty(),
            Self::Equals("distinguishedName", value) => equal(entry.name.as_bytes(), value),
            Self::Equals(attribute, value) => entry.values(attribute).iter().any(|own| equal(own, value)),
            Self::Leads(attribute, name) => leads(entry, attribute, name, all),
        }
    }
}

/// Text in any case; bytes, such as those of a SID, as they are.
fn equal(one: &[u8], other: &[u8]) -> bool {
    one == other || (!one.iter().any(u8::is_ascii_control) && one.eq_ignore_ascii_case(other))
}

/// Entries by their distinguished names, in lower case.
type ByName<'e> = HashMap<String, &'e Entry>;

/// Whether the attribute of an entry leads to a name.
fn leads(entry: &Entry, attribute: &str, name: &str, all: &ByName<'_>) -> bool {
    let (mut seen, mut next) = (HashSet::new(), entry.texts(attribute).collect::<Vec<_>>());
    while let Some(at) = next.pop() {
        if at.eq_ignore_ascii_case(name) {
            return true;
        }
        if seen.insert(at.to_ascii_lowercase()) {
            next.extend(all.get(&at.to_ascii_lowercase()).into_iter().flat_map(|entry| entry.texts(attribute)));
        }
    }
    false
}

/// How far below its base a search looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchScope {
    Base,
    Subtree,
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct LdapSearch<'s> {
    /// The distinguished name of the object at the top.
    pub base: &'s str,
    pub scope: SearchScope,
    pub filter: LdapFilter,
    /// The attributes that are asked for.
    pub attributes: &'s [&'s str],
}

impl LdapSearch<'_> {
    /// One object, by its name.
    pub fn object<'s>(name: &'s str, attributes: &'s [&'s str]) -> LdapSearch<'s> {
        LdapSearch { base: name, scope: SearchScope::Base, filter: LdapFilter::Present("objectClass"), attributes }
    }

    /// Of these entries those that fit.
    pub(crate) fn within(&self, entries: &[Entry]) -> Vec<Entry> {
        let is_in_scope = |entry: &&Entry| match self.scope {
            SearchScope::Base => entry.name.eq_ignore_ascii_case(self.base),
            SearchScope::Subtree => is_within(&entry.name, self.base),
        };
        let all = entries.iter().map(|entry| (entry.name.to_ascii_lowercase(), entry)).collect();
        entries.iter().filter(is_in_scope).filter(|entry| self.filter.fits(entry, &all)).cloned().collect()
    }

    /// `SearchRequest`, without limits of its own: the client has some.
    pub(crate) fn encode(&self) -> Vec<u8> {
        const NEVER_DEREFERENCE: u8 = 0;
        let scope = match self.scope {
            SearchScope::Base => 0,
            SearchScope::Subtree => 2,
        };
        let attributes = self.attributes.iter().map(|name| octets(name.as_bytes())).collect::<Vec<_>>().concat();
        let parts = [
            octets(self.base.as_bytes()),
            ber::enumerated(scope),
            ber::enumerated(NEVER_DEREFERENCE),
            ber::integer(0),
            ber::integer(0),
            ber::boolean(false),
            self.filter.encode(),
            ber::sequence(&attributes),
        ];
        ber::application(3, &parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, attributes: &[(&str, &str)]) -> Entry {
        let mut entry = Entry { name: name.to_owned(), ..Entry::default() };
        for (attribute, value) in attributes {
            entry.attributes.entry((*attribute).to_owned()).or_default().push(value.as_bytes().to_vec());
        }
        entry
    }

    #[test]
    fn membership_is_found_through_groups_that_hold_each_other() {
        let all = [
            entry("CN=a,DC=x", &[("memberof", "CN=B,DC=x")]),
            entry("CN=b,DC=x", &[("memberof", "CN=c,DC=x"), ("memberof", "CN=d,DC=x")]),
            entry("CN=c,DC=x", &[("memberof", "CN=b,DC=x")]),
        ];
        let names = |group: &str| -> Vec<String> {
            let filter = LdapFilter::Leads("memberOf", group.to_owned());
            let search = LdapSearch { base: "dc=X", scope: SearchScope::Subtree, filter, attributes: &[] };
            search.within(&all).into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names("cn=d,dc=x"), ["CN=a,DC=x", "CN=b,DC=x", "CN=c,DC=x"]);
        assert_eq!(names("CN=e,DC=x"), [""; 0]);
    }

    #[test]
    fn bytes_are_compared_as_they_are() {
        assert!(equal(b"WebApp1$", b"webapp1$") && !equal(b"WebApp1", b"WebApp2"));
        assert!(equal(&[1, 0x41], &[1, 0x41]) && !equal(&[1, 0x41], &[1, 0x61]));
    }

    #[test]
    fn a_filter_is_what_its_values_are() {
        // As OpenLDAP's ldapsearch sends (&(cn=a*)(x)(y)) with the value in octets: nothing in it is special.
        let filter = LdapFilter::All(vec![LdapFilter::equals("cn", "a*)(b"), LdapFilter::Present("x")]);
        assert_eq!(filter.encode(), b"\xa0\x10\xa3\x0b\x04\x02cn\x04\x05a*)(b\x87\x01x");
        let chain = LdapFilter::Leads("memberOf", "CN=g".to_owned());
        assert_eq!(chain.encode(), b"\xa9\x29\x81\x171.2.840.113556.1.4.1941\x82\x08memberOf\x83\x04CN=g");
    }
}

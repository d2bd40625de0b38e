//! Search filters (RFC 4511, 4.5.1.7). They have no text, so nothing in a name from outside can change one.

use gmsa_kerberos::der::{BOOLEAN, ENUMERATED, application, field, integer, octets, sequence, value};

use crate::{Entry, entry::is_within};

#[derive(Clone, Debug)]
pub enum LdapFilter {
    Any(Vec<LdapFilter>),
    Present(&'static str),
    Equals(&'static str, Vec<u8>),
}

impl LdapFilter {
    pub fn equals(attribute: &'static str, value: impl Into<Vec<u8>>) -> Self {
        Self::Equals(attribute, value.into())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        const PRESENT: u8 = 0x87;
        match self {
            Self::Any(filters) => field(1, &filters.iter().flat_map(Self::encode).collect::<Vec<u8>>()),
            Self::Present(attribute) => value(PRESENT, attribute.as_bytes()),
            Self::Equals(attribute, value) => field(3, &[octets(attribute.as_bytes()), octets(value)].concat()),
        }
    }

    fn fits(&self, entry: &Entry) -> bool {
        match self {
            Self::Any(filters) => filters.iter().any(|filter| filter.fits(entry)),
            Self::Present(attribute) => !entry.values(attribute).is_empty(),
            Self::Equals("distinguishedName", value) => equal(entry.name.as_bytes(), value),
            Self::Equals(attribute, value) => entry.values(attribute).iter().any(|own| equal(own, value)),
        }
    }
}

/// Text in any case; bytes, such as those of a SID, as they are.
fn equal(one: &[u8], other: &[u8]) -> bool {
    one == other || (!one.iter().any(u8::is_ascii_control) && one.eq_ignore_ascii_case(other))
}

/// How far below its base a search looks, by its number in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchScope {
    Base = 0,
    Subtree = 2,
}

/// A search: its base, its filter, and the attributes to read.
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

    /// The entries that match.
    pub(crate) fn within(&self, entries: &[Entry]) -> Vec<Entry> {
        let is_in_scope = |entry: &&Entry| match self.scope {
            SearchScope::Base => entry.name.eq_ignore_ascii_case(self.base),
            SearchScope::Subtree => is_within(&entry.name, self.base),
        };
        entries.iter().filter(is_in_scope).filter(|entry| self.filter.fits(entry)).cloned().collect()
    }

    /// `SearchRequest`, without limits of its own: the client has some.
    pub(crate) fn encode(&self) -> Vec<u8> {
        const NEVER_DEREFERENCE: u8 = 0;
        let attributes: Vec<_> = self.attributes.iter().map(|name| octets(name.as_bytes())).collect();
        let parts = [
            octets(self.base.as_bytes()),
            value(ENUMERATED, &[self.scope as u8]),
            value(ENUMERATED, &[NEVER_DEREFERENCE]),
            integer(0),
            integer(0),
            value(BOOLEAN, &[0]),
            self.filter.encode(),
            sequence(&attributes),
        ];
        application(3, &parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_as_they_are() {
        assert!(equal(b"WebApp1$", b"webapp1$") && !equal(b"WebApp1", b"WebApp2"));
        assert!(equal(&[1, 0x41], &[1, 0x41]) && !equal(&[1, 0x41], &[1, 0x61]));
    }

    #[test]
    fn a_filter_is_what_its_values_are() {
        // As OpenLDAP's ldapsearch sends (|(cn=a*)(x)(y)) with the value in octets: nothing in it is special.
        let filter = LdapFilter::Any(vec![LdapFilter::equals("cn", "a*)(b"), LdapFilter::Present("x")]);
        assert_eq!(filter.encode(), b"\xa1\x10\xa3\x0b\x04\x02cn\x04\x05a*)(b\x87\x01x");
    }
}

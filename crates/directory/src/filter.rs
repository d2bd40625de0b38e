//! Search filters (RFC 4511, 4.5.1.7). They have no text, so nothing in a name from outside can change one.

use crate::{
    Entry,
    entry::is_within,
    ldap::ber::{self, constructed, context, octets},
};

/// Active Directory's rule for links: membership through nested groups too ([MS-ADTS] 3.1.1.3.4.4.3).
const IN_CHAIN: &str = "1.2.840.113556.1.4.1941";

#[derive(Clone, Debug)]
pub enum Filter {
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Present(&'static str),
    Equals(&'static str, Vec<u8>),
    /// The attribute names this object, or one that leads to it.
    Leads(&'static str, String),
}

impl Filter {
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

    /// Whether an entry fits, among all that are known.
    pub(crate) fn fits(&self, entry: &Entry, all: &[Entry]) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.fits(entry, all)),
            Self::Any(filters) => filters.iter().any(|filter| filter.fits(entry, all)),
            Self::Present(attribute) => !entry.values(attribute).is_empty(),
            Self::Equals(attribute, value) => entry.values(attribute).iter().any(|own| own.eq_ignore_ascii_case(value)),
            Self::Leads(attribute, name) => leads(entry, attribute, name, all),
        }
    }
}

/// Whether the attribute of an entry leads to a name, over at most as many steps as there are entries.
fn leads(entry: &Entry, attribute: &str, name: &str, all: &[Entry]) -> bool {
    let (mut seen, mut next) = (Vec::<&str>::new(), entry.texts(attribute).collect::<Vec<_>>());
    while let Some(at) = next.pop() {
        if at.eq_ignore_ascii_case(name) {
            return true;
        }
        if !seen.contains(&at) {
            seen.push(at);
            let of = all.iter().find(|entry| entry.name.eq_ignore_ascii_case(at));
            next.extend(of.into_iter().flat_map(|entry| entry.texts(attribute)));
        }
    }
    false
}

/// How far below its base a search looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Base,
    Subtree,
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Search<'s> {
    /// The distinguished name of the object at the top.
    pub base: &'s str,
    pub scope: Scope,
    pub filter: Filter,
    /// The attributes that are asked for.
    pub attributes: &'s [&'s str],
}

impl Search<'_> {
    /// One object, by its name.
    pub fn object<'s>(name: &'s str, attributes: &'s [&'s str]) -> Search<'s> {
        Search { base: name, scope: Scope::Base, filter: Filter::Present("objectClass"), attributes }
    }

    /// Of these entries those that fit.
    pub(crate) fn within(&self, entries: &[Entry]) -> Vec<Entry> {
        let is_in_scope = |entry: &&Entry| match self.scope {
            Scope::Base => entry.name.eq_ignore_ascii_case(self.base),
            Scope::Subtree => is_within(&entry.name, self.base),
        };
        entries.iter().filter(is_in_scope).filter(|entry| self.filter.fits(entry, entries)).cloned().collect()
    }

    /// `SearchRequest`, without limits of its own: the client has some.
    pub(crate) fn encode(&self) -> Vec<u8> {
        const NEVER_DEREFERENCE: u8 = 0;
        let scope = match self.scope {
            Scope::Base => 0,
            Scope::Subtree => 2,
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

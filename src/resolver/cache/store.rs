//! The credential specs in memory, and the rules by which they change.
//!
//! Invariants: nothing older replaces what is newer, by resource version, which kube-apiserver counts upwards; what
//! a read returns is ignored if an object was deleted, or a new list began, since the read began: the read may have
//! seen deleted objects; nothing is answered while the watch is not connected, or memory has not been confirmed within
//! [`TRUST`].

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gmsa_cluster::resolver::live::Read;
use gmsa_core::credspec::{Contents, SpecName};
use tokio::time::Instant;

use super::TRUST;

/// A credential spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The object's resource version.
    pub version: Version,
    /// `None` where its `credspec` is missing or is not a JSON object.
    pub contents: Option<Arc<Contents>>,
}

/// A resource version. One that is not a number is neither older nor newer than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version(Option<u64>);

impl Version {
    pub fn parse(version: &str) -> Self {
        Self(version.parse().ok())
    }

    fn is_at_least(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(a), Some(b)) if a >= b)
    }

    fn is_newer_than(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(a), Some(b)) if a > b)
    }
}

/// When memory was last known to be right. A list counts from its request, not from its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verified {
    /// By a list, an event or a verification.
    pub confirmed: Instant,
    /// By the name and version of each object.
    pub compared: Instant,
}

/// What was known when a read began.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeRead {
    removals: u64,
    version: Option<Version>,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    specs: HashMap<SpecName, Entry>,
    /// How often something may have been removed.
    removals: u64,
    /// Whether a list has been read, and has not been given up since.
    listed: bool,
    connected: bool,
    /// `None` until memory is compared with the API server, and again after a difference or a failed verification.
    verified: Option<Verified>,
    /// The object that a comparison found to differ, until an event of this object arrives.
    differing: Option<SpecName>,
    /// Names of objects that reads found while there was no list. Only an administrator creates such objects, which bounds
    /// their number.
    found: HashSet<SpecName>,
}

impl Store {
    /// A credential spec, if memory can be trusted.
    pub fn get(&self, name: &SpecName) -> Option<&Entry> {
        if self.is_trusted() { self.specs.get(name) } else { None }
    }

    /// A credential spec as it was last known, which may be outdated.
    pub fn last_known(&self, name: &SpecName) -> Option<&Entry> {
        self.specs.get(name)
    }

    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether memory can be trusted.
    pub fn is_trusted(&self) -> bool {
        self.trusted().is_some()
    }

    /// When memory was last known to be right, if it can be trusted.
    pub fn trusted(&self) -> Option<Verified> {
        self.verified.filter(|verified| self.connected && verified.confirmed.elapsed() < TRUST)
    }

    /// Whether an object of this name exists, as far as is known, be memory right or not.
    pub fn is_known(&self, name: &SpecName) -> bool {
        self.specs.contains_key(name) || self.found.contains(name)
    }

    /// At `at` the watch delivered an event, or the number of objects was the known one. This prolongs trust and does not
    /// restore it: after a long interruption one event does not show that the others have arrived.
    pub fn prolong(&mut self, at: Instant) {
        if let Some(Verified { confirmed, compared }) = self.trusted() {
            self.verified = Some(Verified { confirmed: confirmed.max(at), compared });
        }
    }

    /// At `at` each object was as it is known.
    pub fn compared(&mut self, at: Instant) {
        self.verified = Some(Verified { confirmed: at, compared: at });
        self.differing = None;
    }

    /// The API server has another version of this object, or only one of the two has the object.
    pub fn mark_differing(&mut self, name: SpecName) {
        self.verified = None;
        self.differing = Some(name);
    }

    /// Whether the object was found to differ, and no event of it has arrived since.
    pub fn is_differing(&self, name: &SpecName) -> bool {
        self.differing.as_ref() == Some(name)
    }

    /// Memory could not be verified.
    pub fn distrust(&mut self) {
        self.verified = None;
    }

    /// Whether memory has the object in this version or a later one. Versions that are not numbers cannot be compared.
    pub fn has(&self, name: &str, version: Version) -> bool {
        self.specs.get(name).is_some_and(|known| known.version.is_at_least(version))
    }

    /// A known object that is not among the `listed` ones of a list that was made at `version`.
    pub fn unlisted(&self, listed: &HashSet<String>, version: Version) -> Option<&SpecName> {
        let is_unlisted = |(name, known): &(&SpecName, &Entry)| {
            !listed.contains(name.as_str()) && !known.version.is_newer_than(version)
        };
        self.specs.iter().find(is_unlisted).map(|(name, _)| name)
    }

    /// The watch is connected, or not any more.
    pub fn connected(&mut self, connected: bool) {
        self.connected = connected;
    }

    /// An event: the object was added or changed.
    pub fn apply(&mut self, name: SpecName, entry: Entry) {
        self.differing.take_if(|differing| *differing == name);
        self.put(name, entry);
    }

    fn put(&mut self, name: SpecName, entry: Entry) {
        if !self.specs.get(&name).is_some_and(|known| known.version.is_newer_than(entry.version)) {
            self.specs.insert(name, entry);
        }
    }

    /// An event: the object was deleted; `version` is that of its deletion.
    pub fn remove(&mut self, name: &SpecName, version: Version) {
        self.differing.take_if(|differing| differing == name);
        self.removals += 1;
        // It may have been created again, and read, before the event came.
        if !self.specs.get(name).is_some_and(|known| known.version.is_newer_than(version)) {
            self.specs.remove(name);
        }
    }

    /// A list of all objects, which was requested at `at` and made at `version`.
    pub fn replace(&mut self, at: Instant, version: Version, specs: impl IntoIterator<Item = (SpecName, Entry)>) {
        self.removals += 1;
        // What was read since the list was made stays: its deletion would be an event that is still to come.
        self.specs.retain(|_, known| known.version.is_newer_than(version));
        for (name, entry) in specs {
            self.put(name, entry);
        }
        self.specs.shrink_to_fit();
        self.listed = true;
        self.found = HashSet::new();
        self.compared(at);
    }

    /// There will be no events: nothing is kept that could not be brought up to date.
    pub fn give_up(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        found.extend(std::mem::take(&mut self.specs).into_keys());
        *self = Self { removals: self.removals + 1, found, ..Self::default() };
    }

    pub fn before_read(&self, name: &SpecName) -> BeforeRead {
        BeforeRead { removals: self.removals, version: self.specs.get(name).map(|entry| entry.version) }
    }

    /// The result of a read of `name`, which began at `before`.
    pub fn after_read(&mut self, name: &SpecName, before: BeforeRead, read: &Read) {
        if !self.listed {
            match read {
                Read::Found { .. } => self.found.insert(name.clone()),
                Read::Missing => self.found.remove(name),
            };
            return;
        }
        if self.is_differing(name) {
            // A read would hide that the watch withholds what happened to the object.
            return;
        }
        let known = self.specs.get(name).map(|entry| entry.version);
        match read {
            Read::Found { resource_version, contents } => {
                let version = Version::parse(resource_version);
                let is_news = match known {
                    None => version.0.is_some() && self.removals == before.removals,
                    Some(known) => version.is_newer_than(known),
                };
                if is_news {
                    self.specs.insert(name.clone(), Entry { version, contents: contents.clone() });
                }
            }
            Read::Missing => {
                // What was known before the read, and has not changed since, is gone.
                if known.is_some() && known == before.version {
                    self.removals += 1;
                    self.specs.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

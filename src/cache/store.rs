//! The credential specs in memory, and the rules for changes.
//!
//! Invariants: what is kept, names included, stays within the budget; a list is the truth, and what it does not have goes; an event
//! or a read never replaces a later resource version; what a read returns is ignored if anything was removed, or a list was read,
//! since the read began, because the object may have been deleted meanwhile; nothing older than [`OLDEST`], by any clock, is answered.

use std::{collections::HashMap, time::Duration};

use gmsa_cluster::resolver::live::SpecRead;
use gmsa_core::{admission::SpecFact, credspec::SpecName};
use gmsa_edge::clock::Moment;

/// The age of the oldest contents that are answered: as long as `watch.rs` may take to notice that it misses something.
pub(super) const OLDEST: Duration = Duration::from_secs(131);

/// Bytes that an object takes beside its name and its contents: its place in the map, which may be half empty, and the heads of
/// what it points to.
const OVERHEAD: usize = 224;

/// A resource version, which kube-apiserver counts upwards; `None` if it is not a number.
pub(super) type Version = Option<u64>;

#[derive(Debug)]
struct CachedSpec {
    version: Version,
    /// The fact for a decision; `None` where only the name is known, and a decision reads it live.
    fact: Option<SpecFact>,
    /// The number of the list that brought it; 0 where none did.
    list: u64,
}

impl CachedSpec {
    fn bytes(&self, name: &SpecName) -> usize {
        OVERHEAD + name.as_str().len() + self.text_bytes()
    }

    /// Bytes of the text; text too long for a pod is not kept.
    fn text_bytes(&self) -> usize {
        match &self.fact {
            Some(SpecFact::Contents(contents)) if !contents.is_too_long() => contents.text().len(),
            _ => 0,
        }
    }
}

/// The state of the store when a read began.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeRead {
    removals: u64,
    /// The version of the object of this name, if one is known.
    pub known: Option<Version>,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    /// Bytes that all of it may take.
    budget: usize,
    specs: HashMap<SpecName, CachedSpec>,
    /// Bytes of all entries.
    bytes: usize,
    /// How many credential specs can be answered.
    pub held: usize,
    /// Rises with each removal and each list.
    removals: u64,
    list: u64,
    /// While the watch is healthy, a moment up to which everything that happened is in here; without it nothing is answered from here.
    pub synced: Option<Moment>,
    /// Whether there will be a watch: without it only names are kept.
    followed: bool,
}

impl Store {
    pub fn new(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }

    /// The fact about a credential spec, if it is known and the watch is healthy. What was brought before the machine was suspended, or before it
    /// was restored from a snapshot, is too old.
    pub fn get(&self, name: &SpecName, now: Moment) -> Option<SpecFact> {
        self.synced.filter(|synced| now.longest_since(synced) <= OLDEST)?;
        self.specs.get(name)?.fact.clone()
    }

    fn put(&mut self, name: SpecName, version: Version, fact: Option<SpecFact>, list: u64) {
        self.take(&name);
        let fact = fact.filter(|_| self.followed);
        let mut entry = CachedSpec { version, fact, list };
        // The rest is for names: they tell reads of existing specs from made-up names.
        if entry.text_bytes() > 0 && self.bytes + entry.bytes(&name) > self.budget / 8 * 7 {
            entry.fact = None;
        }
        let bytes = entry.bytes(&name);
        if self.bytes + bytes <= self.budget {
            self.bytes += bytes;
            self.held += usize::from(entry.fact.is_some());
            self.specs.insert(name, entry);
        }
    }

    fn take(&mut self, name: &SpecName) {
        if let Some(entry) = self.specs.remove(name) {
            self.bytes -= entry.bytes(name);
            self.held -= usize::from(entry.fact.is_some());
        }
    }

    fn has_later(&self, name: &SpecName, version: Version) -> bool {
        self.specs.get(name).is_some_and(|known| known.version > version)
    }

    /// A list begins: its entries replace what is known, and [`Self::end_list`] removes the rest.
    pub fn begin_list(&mut self) {
        self.list += 1;
        self.removals += 1;
        self.followed = true;
    }

    /// An entry of the list. It replaces a later version too, which a read may have brought meanwhile: versions go back where etcd is
    /// restored, and then the later one would stay. Otherwise the watch, which begins at the list, brings it again at once.
    pub fn listed(&mut self, name: SpecName, version: Version, fact: Option<SpecFact>) {
        self.put(name, version, fact, self.list);
    }

    pub fn end_list(&mut self) {
        self.removals += 1;
        let gone: Vec<SpecName> =
            self.specs.iter().filter(|(_, known)| known.list < self.list).map(|(name, _)| name.clone()).collect();
        for name in &gone {
            self.take(name);
        }
        self.specs.shrink_to_fit();
    }

    /// An event: the object was added or changed.
    pub fn apply(&mut self, name: SpecName, version: Version, fact: Option<SpecFact>) {
        if !self.has_later(&name, version) {
            self.put(name, version, fact, 0);
        }
    }

    /// An event: the object was deleted at `version`.
    pub fn remove(&mut self, name: &SpecName, version: Version) {
        self.removals += 1;
        // It may have been created again, and read, before the event came.
        if !self.has_later(name, version) {
            self.take(name);
        }
    }

    /// Without a watch only names are kept, so that existing names keep their own read limit.
    pub fn give_up(&mut self) {
        (self.synced, self.followed) = (None, false);
        let names: Vec<SpecName> = self.specs.keys().cloned().collect();
        for name in names {
            self.put(name, None, None, 0);
        }
    }

    pub fn before_read(&self, name: &SpecName) -> BeforeRead {
        BeforeRead { removals: self.removals, known: self.specs.get(name).map(|known| known.version) }
    }

    /// The result of a read of `name`, which began at `before`.
    pub fn after_read(&mut self, name: &SpecName, before: BeforeRead, read: &SpecRead) {
        let known = self.specs.get(name).map(|known| known.version);
        match read {
            _ if self.removals != before.removals => {}
            // An entry from before the read that has not changed since was deleted.
            SpecRead { fact: SpecFact::Missing, .. } => {
                if known.is_some() && known == before.known {
                    self.remove(name, known.flatten());
                }
            }
            SpecRead { version, fact } if version.is_some() && known.is_none_or(|known| known < *version) => {
                self.put(name.clone(), *version, Some(fact.clone()), 0);
            }
            SpecRead { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! Those who may retrieve a password, by name.

use std::collections::BTreeMap;

use crate::{Directory, Entry, Error, Filter, Scope, Search, Sid};

/// How many are asked for at once.
const AT_ONCE: usize = 50;

/// What is behind a SID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A user or a computer.
    Single(String),
    Group {
        name: String,
        /// The SAM names of the users and computers in it, those of nested groups included, where they could be read.
        members: Option<Vec<String>>,
    },
    /// The same everywhere, and many.
    WellKnown(&'static str),
    /// Its domain no longer has it.
    Orphan,
    /// Of a domain outside the forest, or not in what was printed.
    Elsewhere,
}

/// The principals that were asked for.
#[derive(Debug, Default)]
pub struct Principals {
    known: BTreeMap<Sid, Principal>,
    /// Why domains could not be asked, by their distinguished names.
    pub unread: BTreeMap<String, Error>,
}

impl Principals {
    pub fn get(&self, sid: &Sid) -> Option<&Principal> {
        self.known.get(sid)
    }

    /// The name of one, or its SID.
    pub fn name(&self, sid: &Sid) -> String {
        match self.known.get(sid) {
            Some(Principal::Single(name) | Principal::Group { name, .. }) => name.clone(),
            Some(Principal::WellKnown(name)) => (*name).to_owned(),
            _ => sid.to_string(),
        }
    }

    /// Looks up those that are not yet known. Those of a domain that cannot be asked stay unknown.
    pub async fn look_up(&mut self, directory: &mut Directory, sids: impl IntoIterator<Item = &Sid>) {
        let mut by_domain: BTreeMap<String, Vec<Sid>> = BTreeMap::new();
        for sid in sids {
            if self.known.contains_key(sid) {
                continue;
            }
            if let Some(name) = sid.well_known() {
                self.known.insert(sid.clone(), Principal::WellKnown(name));
                continue;
            }
            let forest = directory.forest.as_ref();
            let domain = forest.and_then(|forest| if sid.is_of_domain() { forest.of_sid(sid) } else { forest.own() });
            match domain {
                _ if !directory.is_live() => by_domain.entry(String::new()).or_default().push(sid.clone()),
                Some(domain) => by_domain.entry(domain.name.clone()).or_default().push(sid.clone()),
                None => {
                    self.known.insert(sid.clone(), Principal::Elsewhere);
                }
            }
        }
        for (base, mut sids) in by_domain {
            sids.sort();
            sids.dedup();
            for some in sids.chunks(AT_ONCE) {
                if let Err(error) = self.look_up_in(directory, &base, some).await {
                    self.unread.insert(base, error);
                    break;
                }
            }
        }
    }

    async fn look_up_in(&mut self, directory: &mut Directory, base: &str, sids: &[Sid]) -> Result<(), Error> {
        let filter = Filter::Any(sids.iter().map(|sid| Filter::equals("objectSid", sid.to_bytes())).collect());
        let attributes = &["member", "objectClass", "objectSid", "sAMAccountName"];
        let search = Search { base, scope: Scope::Subtree, filter, attributes };
        let found = directory.search(&search).await?;
        for sid in sids {
            let principal = match found.iter().find(|entry| entry.sid("objectSid").as_ref() == Some(sid)) {
                None if directory.is_live() => Principal::Orphan,
                None => Principal::Elsewhere,
                Some(entry) => of(directory, base, entry, sid).await?,
            };
            self.known.insert(sid.clone(), principal);
        }
        Ok(())
    }
}

async fn of(directory: &mut Directory, base: &str, entry: &Entry, sid: &Sid) -> Result<Principal, Error> {
    let name = entry.text("sAMAccountName").unwrap_or(&entry.name).trim_end_matches('$').to_owned();
    if !entry.is_a("group") {
        return Ok(Principal::Single(entry.text("sAMAccountName").unwrap_or(&entry.name).to_owned()));
    }
    let mut by = vec![Filter::Leads("memberOf", entry.name.clone())];
    // A primary group is no membership ([MS-ADTS] 3.1.1.3.4.4.3 says nothing of it).
    by.extend(sid.split().map(|(_, number)| Filter::equals("primaryGroupID", number.to_string())));
    let filter = Filter::All(vec![Filter::equals("objectClass", "user"), Filter::Any(by)]);
    let search = Search { base, scope: Scope::Subtree, filter, attributes: &["sAMAccountName"] };
    let found = directory.search(&search).await?;
    let mut members: Vec<String> =
        found.iter().filter_map(|entry| entry.text("sAMAccountName")).map(str::to_owned).collect();
    // Those of other domains are known by name alone.
    let others = entry.texts("member").filter(|member| !crate::entry::is_within(member, base));
    members.extend(others.map(crate::entry::first_value));
    members.sort_by_key(|name| name.to_ascii_lowercase());
    // A printed group may be printed without its members.
    let is_known = directory.is_live() || !members.is_empty();
    Ok(Principal::Group { name, members: is_known.then_some(members) })
}

//! Those who may retrieve a password, by name.

use std::collections::{BTreeMap, HashSet};

use crate::{
    Directory, Entry, Error, LdapFilter, LdapSearch, SearchScope, Sid,
    account::Account,
    entry::{first_value, is_within},
};

/// How many are asked for at once.
const AT_ONCE: usize = 50;
const ATTRIBUTES: [&str; 4] = ["member", "objectClass", "objectSid", "sAMAccountName"];

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
    /// Those behind the SIDs of these accounts.
    ///
    /// # Errors
    /// Where the budget of the command is exceeded.
    pub async fn of(directory: &mut Directory, accounts: &[Account]) -> Result<Self, Error> {
        let mut principals = Self::default();
        principals.look_up(directory, accounts.iter().flat_map(Account::named)).await?;
        Ok(principals)
    }

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
    async fn look_up(&mut self, directory: &mut Directory, sids: impl IntoIterator<Item = &Sid>) -> Result<(), Error> {
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
                match self.look_up_in(directory, &base, some).await {
                    Ok(()) => {}
                    Err(error @ Error::Exhausted(..)) => return Err(error),
                    Err(error) => {
                        self.unread.insert(base, error);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    async fn look_up_in(&mut self, directory: &mut Directory, base: &str, sids: &[Sid]) -> Result<(), Error> {
        let filter = LdapFilter::Any(sids.iter().map(|sid| LdapFilter::equals("objectSid", sid.to_bytes())).collect());
        let search = LdapSearch { base, scope: SearchScope::Subtree, filter, attributes: &ATTRIBUTES };
        let found = directory.search(&search).await?;
        for sid in sids {
            let principal = match found.iter().find(|entry| entry.sid("objectSid").as_ref() == Some(sid)) {
                None if directory.is_live() => Principal::Orphan,
                None => Principal::Elsewhere,
                Some(entry) => of(directory, base, entry).await?,
            };
            self.known.insert(sid.clone(), principal);
        }
        Ok(())
    }
}

async fn of(directory: &mut Directory, base: &str, entry: &Entry) -> Result<Principal, Error> {
    let name = entry.text("sAMAccountName").unwrap_or(&entry.name);
    if !entry.is_a("group") {
        return Ok(Principal::Single(name.to_owned()));
    }
    let mut members = members(directory, base, entry).await?;
    members.sort_by_key(|name| name.to_ascii_lowercase());
    members.dedup();
    // A printed group may be printed without its members.
    let is_known = directory.is_live() || !members.is_empty();
    Ok(Principal::Group { name: name.to_owned(), members: is_known.then_some(members) })
}

/// The users and computers in a group, those of the groups in it included.
async fn members(directory: &mut Directory, base: &str, group: &Entry) -> Result<Vec<String>, Error> {
    let (mut names, mut seen, mut groups) = (Vec::new(), HashSet::new(), vec![group.clone()]);
    while let Some(group) = groups.pop() {
        // A primary group is no membership.
        let number = group.sid("objectSid").and_then(|sid| sid.split());
        let mut by: Vec<LdapFilter> =
            number.into_iter().map(|(_, number)| LdapFilter::equals("primaryGroupID", number.to_string())).collect();
        // A controller gives a part of many members only ([MS-ADTS] 3.1.1.3.1.3.3), and a file may not hold them at all.
        let is_whole = directory.is_live() && !group.attributes.keys().any(|name| name.starts_with("member;"));
        if !is_whole {
            by.push(LdapFilter::Leads("memberOf", group.name.clone()));
        }
        let filter = LdapFilter::All(vec![LdapFilter::equals("objectClass", "user"), LdapFilter::Any(by)]);
        let search = LdapSearch { base, scope: SearchScope::Subtree, filter, attributes: &ATTRIBUTES };
        names.extend(directory.search(&search).await?.iter().filter_map(name_of));
        let direct = group.texts("member").filter(|name| seen.insert(name.to_ascii_lowercase()));
        // Those of other domains are known by name alone.
        let (here, elsewhere): (Vec<&str>, Vec<&str>) = direct.partition(|name| is_within(name, base));
        names.extend(elsewhere.into_iter().map(first_value));
        for some in here.chunks(AT_ONCE) {
            let filter =
                LdapFilter::Any(some.iter().map(|name| LdapFilter::equals("distinguishedName", *name)).collect());
            let search = LdapSearch { base, scope: SearchScope::Subtree, filter, attributes: &ATTRIBUTES };
            for found in directory.search(&search).await? {
                if found.is_a("group") {
                    groups.push(found);
                } else {
                    names.extend(name_of(&found));
                }
            }
        }
    }
    Ok(names)
}

fn name_of(entry: &Entry) -> Option<String> {
    entry.text("sAMAccountName").map(str::to_owned)
}

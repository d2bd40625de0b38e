//! The principals that may retrieve a password, by name, and the members of their groups.
//!
//! Nested groups are walked here: for `account lint`, `doctor`, and the names that `account test` shows. `account test` asks the controller
//! which groups its user is in, by `tokenGroups` (`lint/password.rs`).
//!
//! Invariants: a group holds only members that get its rights, so none of a distribution group, nested ones included.
//! Members from trusted domains are known by SID alone, members from unreachable domains by name alone; both count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use time::{Duration, UtcDateTime};

use gmsa_directory::{
    Directory, Entry, Error, LdapFilter, LdapSearch, SearchScope, Sid,
    account::{Account, DISABLED, SMARTCARD_REQUIRED, expiry, has_no_hours},
    entry::{base_of, first_value, parts},
    identifier::{EVERY_COMPUTER, EVERY_USER, WellKnown},
};

const ATTRIBUTES: [&str; 15] = [
    "accountExpires",
    "groupType",
    "isDeleted",
    "lockoutTime",
    "logonHours",
    "member",
    "objectClass",
    "msDS-SupportedEncryptionTypes",
    COMPUTED,
    "objectSid",
    "primaryGroupID",
    "pwdLastSet",
    "sAMAccountName",
    "userAccountControl",
    "whenCreated",
];

/// The user's state, as the controller reports it now: a lock that has run out, or an old password ([MS-ADTS] 3.1.1.4.5.17).
const COMPUTED: &str = "msDS-User-Account-Control-Computed";

/// The principal of a SID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryPrincipal {
    Single(Member),
    Group(Group),
    /// The same everywhere.
    WellKnown(&'static WellKnown),
    /// It was deleted from its domain.
    Orphan,
    /// A principal of a domain outside the forest.
    Elsewhere,
    /// It is not among the printed entries.
    NotPrinted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The users and computers in it and in its nested groups, where they could be read; without the members of wide groups.
    pub members: Option<Vec<Member>>,
    /// The groups in it, itself included.
    pub groups: BTreeSet<Sid>,
    /// It is, or holds, a wide group: its name, and who is in it.
    pub wide: Option<(String, &'static str)>,
    /// It is for mail alone, and gives no access.
    pub is_distribution: bool,
    /// It gives access in its own domain alone.
    pub is_domain_local: bool,
    /// The name of a distribution group nested in it.
    pub distribution: Option<String>,
}

/// A user or a computer in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// `None` where it is known by name alone.
    pub sid: Option<Sid>,
    pub primary_group: Option<Sid>,
    /// Why it cannot log on, where that is known; continues a sentence: `is disabled`.
    pub obstacle: Option<Obstacle>,
}

/// Why a user or a computer cannot log on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Continues a sentence: `is disabled`.
    pub what: &'static str,
    /// The command that removes it, with NAME in it.
    pub command: &'static str,
    /// It holds from this time on.
    from: UtcDateTime,
    until: UtcDateTime,
}

impl Obstacle {
    /// The reason for which this entry cannot log on. The password of a computer may be old. `lockout` is the time for which the domain locks.
    fn of(entry: &Entry, lockout: Option<Duration>) -> Option<Self> {
        const LOCKOUT: i64 = 0x10;
        const PASSWORD_EXPIRED: i64 = 0x80_0000;
        const LOCKED_OUT: (&str, &str) = ("is locked out", "Unlock-ADAccount -Identity NAME");
        let computed = entry.number(COMPUTED).unwrap_or_default();
        // A controller says itself who is locked out; what was printed has the time.
        let is_printed = entry.number(COMPUTED).is_none() && entry.number("lockoutTime") > Some(0);
        let locked = entry.file_time("lockoutTime").filter(|_| is_printed);
        let (mut from, mut until) = (UtcDateTime::MIN, UtcDateTime::MAX);
        let control = entry.number("userAccountControl").map_or(0, i64::cast_unsigned);
        let is_user = entry.is_a("user") && !entry.is_a("computer");
        let (what, command) = match () {
            () if entry.text("isDeleted").is_some_and(|is| is.eq_ignore_ascii_case("TRUE")) => (
                "is deleted",
                "Get-ADObject -IncludeDeletedObjects -Filter {sAMAccountName -eq NAME} | Restore-ADObject",
            ),
            () if control & DISABLED != 0 => ("is disabled", "Enable-ADAccount -Identity NAME"),
            () if control & SMARTCARD_REQUIRED != 0 => {
                ("needs a smart card to log on", "Set-ADUser NAME -SmartcardLogonRequired $false")
            }
            () if has_no_hours(entry) => ("has no logon hours", "Set-ADUser NAME -Clear logonHours"),
            () if is_user && computed & LOCKOUT != 0 => LOCKED_OUT,
            () if is_user && locked.is_some() => {
                until = locked.zip(lockout).map_or(until, |(at, time)| at.saturating_add(time));
                LOCKED_OUT
            }
            // A plugin cannot change it.
            () if is_user && entry.number("pwdLastSet") == Some(0) => {
                ("must change its password", "Set-ADUser NAME -ChangePasswordAtLogon $false")
            }
            () if is_user && computed & PASSWORD_EXPIRED != 0 => {
                ("has an expired password", "Set-ADAccountPassword -Identity NAME -Reset")
            }
            () => {
                from = entry.number("accountExpires").and_then(expiry)?;
                ("has expired", "Clear-ADAccountExpiration -Identity NAME")
            }
        };
        Some(Self { what, command, from, until })
    }

    /// `None` where it does not hold at this time.
    pub fn at(self, now: UtcDateTime) -> Option<Self> {
        Some(self).filter(|obstacle| (obstacle.from..obstacle.until).contains(&now))
    }
}

impl Member {
    /// A member known by name alone.
    fn named(name: String) -> Self {
        Self { name, sid: None, primary_group: None, obstacle: None }
    }

    fn of(entry: &Entry, lockout: Option<Duration>) -> Self {
        let sid = entry.sid("objectSid");
        let number = entry.number("primaryGroupID").and_then(|number| u32::try_from(number).ok());
        let primary_group =
            sid.as_ref().and_then(Sid::split).zip(number).map(|((domain, _), number)| domain.of(number));
        let name = entry.text("sAMAccountName").unwrap_or(&entry.name).to_owned();
        Self { name, sid, primary_group, obstacle: Obstacle::of(entry, lockout) }
    }
}

impl DirectoryPrincipal {
    /// The wide group that it is or holds: its name, and who is in it.
    pub fn wide(&self) -> Option<(&str, &'static str)> {
        match self {
            Self::Group(group) => group.wide.as_ref().map(|(name, who)| (name.as_str(), *who)),
            Self::WellKnown(known) => Some((known.name, known.wide?)),
            _ => None,
        }
    }
}

/// The principals that were asked for.
#[derive(Debug, Default)]
pub struct Principals {
    known: BTreeMap<Sid, DirectoryPrincipal>,
    /// Why domains could not be asked, by their distinguished names.
    pub unread: BTreeMap<String, Error>,
    /// Whether they came from a file, which may hold only some.
    pub is_printed: bool,
    /// For how long the domain of a file locks a user out; `None` for ever.
    lockout: Option<Duration>,
}

impl Principals {
    /// Reads the principals of the SIDs of these accounts. Those of a domain that cannot be asked are unknown.
    ///
    /// # Errors
    /// Where the budget of the command is exceeded.
    pub async fn of(directory: &mut Directory, accounts: &[Account]) -> Result<Self, Error> {
        Self::read_all(directory, accounts.iter().flat_map(Account::named)).await
    }

    /// Reads the principals of these SIDs.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub async fn read_all<'s>(directory: &mut Directory, sids: impl Iterator<Item = &'s Sid>) -> Result<Self, Error> {
        let lockout = lockout(directory).await?;
        let mut principals = Self { is_printed: !directory.is_live(), lockout, ..Self::default() };
        let mut by_domain: BTreeMap<String, BTreeSet<&Sid>> = BTreeMap::new();
        for sid in sids {
            let forest = directory.forest.as_ref();
            let domain = forest.and_then(|forest| if sid.is_of_domain() { forest.of_sid(sid) } else { forest.own() });
            let base = match domain {
                // BUILTIN groups: look at the members.
                _ if sid.well_known().is_some() && !sid.is_builtin() => None,
                _ if !directory.is_live() => Some(String::new()),
                domain => domain.map(|domain| domain.name.clone()),
            };
            if let Some(base) = base {
                by_domain.entry(base).or_default().insert(sid);
            } else {
                principals.known.insert(sid.clone(), absent(sid, directory));
            }
        }
        for (base, sids) in by_domain {
            let by: Vec<_> = sids.iter().map(|sid| LdapFilter::equals("objectSid", sid.to_bytes())).collect();
            let found = directory.search_any(&base, &by, &ATTRIBUTES, &mut principals.unread).await?;
            let is_whole = !principals.unread.contains_key(&base);
            // In a file, the entry for a principal of a trusted domain has only its SID.
            let own = found.iter().filter(|entry| !entry.is_a(FOREIGN));
            // The first of two entries with one SID.
            let by_sid: HashMap<Sid, &Entry> =
                own.rev().filter_map(|entry| Some((entry.sid("objectSid")?, entry))).collect();
            for sid in sids {
                let principal = match by_sid.get(sid) {
                    Some(entry) => principals.read(directory, entry).await?,
                    None if is_whole => absent(sid, directory),
                    // It stays unknown.
                    None => continue,
                };
                principals.known.insert(sid.clone(), principal);
            }
        }
        Ok(principals)
    }

    pub fn get(&self, sid: &Sid) -> Option<&DirectoryPrincipal> {
        self.known.get(sid)
    }

    /// The name of a principal, or its SID.
    pub fn name(&self, sid: &Sid) -> String {
        match self.known.get(sid) {
            Some(DirectoryPrincipal::Single(Member { name, .. }) | DirectoryPrincipal::Group(Group { name, .. })) => {
                name.clone()
            }
            Some(DirectoryPrincipal::WellKnown(known)) => known.name.to_owned(),
            _ => sid.to_string(),
        }
    }

    async fn read(&mut self, directory: &mut Directory, entry: &Entry) -> Result<DirectoryPrincipal, Error> {
        if !entry.is_a("group") {
            return Ok(DirectoryPrincipal::Single(Member::of(entry, self.lockout)));
        }
        let name = entry.text("sAMAccountName").unwrap_or(&entry.name);
        // GROUP_TYPE_RESOURCE_GROUP ([MS-ADTS] 2.2.12). Those of BUILTIN are the same in every domain.
        let is_domain_local = entry.number("groupType").is_some_and(|kind| kind & 0x4 != 0)
            && entry.sid("objectSid").is_some_and(|sid| sid.is_of_domain());
        let is_distribution = is_distribution(entry);
        let mut group = Group { name: name.to_owned(), is_distribution, is_domain_local, ..Group::default() };
        if !group.is_distribution {
            self.expand_group(directory, &mut group, entry).await?;
        }
        Ok(DirectoryPrincipal::Group(group))
    }

    /// Reads the users and computers in a group and in its nested groups. The command's [`Budget`](gmsa_directory::Budget) bounds it, and a
    /// group that is found again is not read again.
    async fn expand_group(&mut self, directory: &mut Directory, group: &mut Group, entry: &Entry) -> Result<(), Error> {
        let (mut seen, mut to_read) = (HashSet::from([entry.name.to_ascii_lowercase()]), vec![entry.clone()]);
        let (mut members, mut is_whole) = (Vec::new(), true);
        while let Some(nested) = to_read.pop() {
            let sid = nested.sid("objectSid");
            if let Some(wide) = sid.as_ref().and_then(Sid::wide_group) {
                let name = nested.text("sAMAccountName").unwrap_or(wide.name);
                group.wide = group.wide.take().or_else(|| Some((name.to_owned(), wide.wide?)));
                continue;
            }
            group.groups.extend(sid);
            // A printed group may be printed without its members.
            is_whole &=
                directory.is_live() || ["member", "whenCreated"].iter().any(|name| nested.value(name).is_some());
            let (entries, foreign, unknown) = self.direct_members(directory, &nested).await?;
            members.extend(unknown);
            for sid in foreign {
                if let Some(wide) = wide_of(&sid, directory) {
                    group.wide.get_or_insert(wide);
                } else if sid.well_known().is_none() {
                    let of = if sid.is_of_domain() { " of another domain" } else { "" };
                    let name = format!("{sid}{of}");
                    members.push(Member { sid: Some(sid), ..Member::named(name) });
                }
            }
            for found in entries {
                if !seen.insert(found.name.to_ascii_lowercase()) {
                    continue;
                }
                if is_distribution(&found) {
                    let name = found.text("sAMAccountName").unwrap_or(&found.name);
                    group.distribution.get_or_insert_with(|| name.to_owned());
                } else if found.is_a("group") {
                    to_read.push(found);
                } else {
                    members.push(Member::of(&found, self.lockout));
                }
            }
        }
        members.sort_by_key(|member| member.name.to_ascii_lowercase());
        members.dedup();
        group.members = (is_whole || !members.is_empty()).then_some(members);
        Ok(())
    }

    /// The direct members of a group: users, computers and groups of the forest; those of other domains, or well-known ones; and those in a domain
    /// that cannot be asked, or not in the file.
    async fn direct_members(
        &mut self,
        directory: &mut Directory,
        group: &Entry,
    ) -> Result<(Vec<Entry>, Vec<Sid>, Vec<Member>), Error> {
        let mut by = Vec::new();
        // Those whose primary group it is are not listed in its `member`.
        let sid = group.sid("objectSid").filter(Sid::is_of_domain);
        if let Some((_, number)) = sid.as_ref().and_then(Sid::split) {
            by.push(LdapFilter::equals("primaryGroupID", number.to_string()));
        }
        // A controller gives a part of many members only ([MS-ADTS] 3.1.1.3.1.3.3), and a file may not hold them at all.
        if !directory.is_live() || group.attributes.keys().any(|name| name.starts_with("member;")) {
            by.push(LdapFilter::equals("memberOf", group.name.clone()));
        }
        let mut entries = directory.search_any(&base_of(&group.name), &by, &ATTRIBUTES, &mut self.unread).await?;
        let names = group.attributes.keys().filter(|name| *name == "member" || name.starts_with("member;"));
        let (foreigners, names): (Vec<&str>, Vec<&str>) =
            names.flat_map(|name| group.texts(name)).partition(|name| foreign(name).is_some());
        let (listed, unknown) = self.listed(directory, &names).await?;
        entries.extend(listed);
        let foreign_names = entries.iter().map(|entry| entry.name.as_str()).chain(foreigners);
        let foreign_sids = foreign_names.filter_map(foreign).collect();
        entries.retain(|entry| foreign(&entry.name).is_none());
        Ok((entries, foreign_sids, unknown))
    }

    /// The entries of these distinguished names, and a member for each name whose domain cannot be asked, or is not in the file.
    async fn listed(&mut self, directory: &mut Directory, names: &[&str]) -> Result<(Vec<Entry>, Vec<Member>), Error> {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        let mut by_domain: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for name in names {
            by_domain.entry(base_of(name)).or_default().push(name);
        }
        for (base, names) in by_domain {
            let by: Vec<_> = names.iter().map(|name| LdapFilter::equals("distinguishedName", *name)).collect();
            let entries = directory.search_any(&base, &by, &ATTRIBUTES, &mut self.unread).await?;
            let known: HashSet<String> = entries.iter().map(|entry| entry.name.to_ascii_lowercase()).collect();
            let others = names.iter().filter(|name| !known.contains(&name.to_ascii_lowercase()));
            unknown.extend(others.map(|name| Member::named(first_value(name))));
            found.extend(entries);
        }
        Ok((found, unknown))
    }
}

/// For how long the domain of a file locks a user out, and otherwise what Windows proposes. A controller says itself who is locked out.
async fn lockout(directory: &mut Directory) -> Result<Option<Duration>, Error> {
    const DURATION: &str = "lockoutDuration";
    const PROPOSED: Duration = Duration::minutes(30);
    if directory.is_live() {
        return Ok(None);
    }
    let (filter, scope) = (LdapFilter::Present(DURATION), SearchScope::Subtree);
    let domains = directory.search(&LdapSearch { base: "", scope, filter, attributes: &[DURATION] }).await?;
    // In units of -100 ns; the smallest number is for ever.
    let duration = domains.iter().find_map(|domain| domain.number(DURATION));
    Ok(duration.map_or(Some(PROPOSED), |units| Some(Duration::seconds(units.checked_neg()? / 10_000_000))))
}

const FOREIGN: &str = "foreignSecurityPrincipal";

/// The SID of a member of a trusted domain, or of a well-known principal: `CN=S-1-5-11,CN=ForeignSecurityPrincipals,DC=…`.
pub(crate) fn foreign(name: &str) -> Option<Sid> {
    let place = parts(name).nth(1).filter(|place| place.eq_ignore_ascii_case("CN=ForeignSecurityPrincipals"));
    place.and_then(|_| Sid::parse(&first_value(name)))
}

/// The display name of a SID without an object in the directory.
fn absent(sid: &Sid, directory: &Directory) -> DirectoryPrincipal {
    let is_of_forest = directory.forest.as_ref().map(|forest| forest.of_sid(sid).is_some());
    if let Some(known) = sid.well_known() {
        DirectoryPrincipal::WellKnown(known)
    } else if let Some((name, who)) = wide_of(sid, directory) {
        DirectoryPrincipal::Group(Group { name: name.clone(), wide: Some((name, who)), ..Group::default() })
    } else {
        match is_of_forest {
            Some(false) => DirectoryPrincipal::Elsewhere,
            Some(true) if directory.is_live() => DirectoryPrincipal::Orphan,
            _ => DirectoryPrincipal::NotPrinted,
        }
    }
}

/// The name of a SID that is wide by definition, and who has it.
fn wide_of(sid: &Sid, directory: &Directory) -> Option<(String, &'static str)> {
    if let Some(known) = sid.well_known() {
        return Some((known.name.to_owned(), known.wide?));
    }
    let (known, (domain, _)) = (sid.wide_group()?, sid.split()?);
    if directory.forest.as_ref().is_some_and(|forest| forest.of_sid(sid).is_some()) {
        return Some((known.name.to_owned(), known.wide?));
    }
    let who = match known.wide? {
        EVERY_USER => "every user of that domain",
        EVERY_COMPUTER => "every computer of that domain",
        who => who,
    };
    Some((format!("{} of {domain}", known.name), who))
}

/// Whether a group is for mail alone: it is not enabled for security ([MS-ADTS] 2.2.12).
fn is_distribution(entry: &Entry) -> bool {
    const SECURITY_ENABLED: i64 = 0x8000_0000;
    entry.is_a("group") && entry.number("groupType").is_some_and(|kind| kind & SECURITY_ENABLED == 0)
}

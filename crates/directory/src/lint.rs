//! What is wrong with an account, or with its forest, that only the directory knows.
//!
//! Invariants: what could not be read is not a fault, and is said to be unknown; names are escaped where they are printed, and quoted where
//! they are part of a command, or the rule says what to do.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use gmsa_core::{
    account, causes,
    diagnostic::{Diagnostic, Diagnostics, Severity, rules, rules::Rule},
    quote::{Quoted, shell},
};
use time::{Duration, UtcDateTime};

use crate::{
    Directory, Entry, Error, Filter, Retrieval, Scope, Search, Sid, Unknown,
    account::{Found, NO_SUCH_OBJECT, PASSWORD},
    principal::{Principal, Principals},
};

/// What clients see of a name that several accounts have, and other consequences.
const NO_TICKET: &str = "the domain gives no ticket for it, so clients fall back to NTLM or fail";
const NO_PASSWORD: &str = "no container starts with the account there";
/// After a root key is made, domain controllers wait so long before they use it ([MS-GKDI] 3.1.4.1).
const KEY_DELAY: Duration = Duration::hours(10);
/// What Kerberos allows by default (Microsoft: Maximum tolerance for computer clock synchronization).
const MAX_SKEW: Duration = Duration::minutes(5);
/// Windows Server 2012, the first that makes passwords of gMSAs ([MS-ADTS] 6.1.4.4).
const FIRST_LEVEL: i64 = 5;
/// How many names are asked for at once, and printed.
const AT_ONCE: usize = 25;
const SHOWN: usize = 5;

fn found(rule: &'static Rule, account: &Found, field: &str, problem: impl Into<String>) -> Diagnostic {
    Diagnostic { field: field.to_owned(), ..about(format!("account {}", account.sam()), rule, problem) }
}

/// With a fix that fits, where there is one; otherwise what the rule says stays.
fn fixed(found: Diagnostic, fix: Option<String>) -> Diagnostic {
    Diagnostic { fix: fix.or(found.fix), ..found }
}

fn about(object: String, rule: &'static Rule, problem: impl Into<String>) -> Diagnostic {
    Diagnostic { object, ..Diagnostic::new(rule, problem).with_fix(rule.remedy) }
}

/// Checks accounts that have to serve clients under these names: what a print of their properties shows too, and what it does not.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn accounts(
    directory: &mut Directory,
    accounts: &[Found],
    services: &[String],
) -> Result<Diagnostics, Error> {
    let mut principals = Principals::default();
    principals.look_up(directory, accounts.iter().flat_map(Found::named)).await?;
    let duplicates = duplicates(directory, accounts).await?;
    let mut list = Diagnostics::default();
    for one in accounts {
        list.extend(account::lint::account(&one.account(&principals), services));
        list.extend(retrieval(one, &principals));
    }
    list.extend(duplicates);
    let unread = principals.unread.iter();
    list.extend(unread.map(|(domain, error)| not_checked("who may retrieve passwords", domain, error)));
    Ok(list)
}

/// What is wrong with those who may retrieve the password.
fn retrieval(account: &Found, principals: &Principals) -> Vec<Diagnostic> {
    const FIELD: &str = "PrincipalsAllowedToRetrieveManagedPassword";
    // What was not printed is another finding.
    let Some(retrieval) = &account.retrieval else { return Vec::new() };
    let whole: Option<(&'static Rule, _)> = match retrieval {
        Retrieval::Unreadable => Some((&rules::ACCOUNT_HOSTS, "is no security descriptor")),
        Retrieval::Everybody => {
            Some((&rules::ACCOUNT_HOSTS_WIDE, "has no list, so everybody may retrieve the password"))
        }
        Retrieval::Listed { .. } => None,
    };
    if let Some((rule, problem)) = whole {
        return vec![found(rule, account, FIELD, problem)];
    }
    let listed: HashSet<&Sid> = retrieval.principals().collect();
    let problem = |sid: &&Sid| {
        let (rule, problem): (&'static Rule, _) = match principals.get(sid)? {
            Principal::Orphan => (&rules::ACCOUNT_HOSTS_ORPHANED, format!("{sid} no longer exists")),
            Principal::WellKnown(name @ ("Everyone" | "Authenticated Users" | "Users" | "Anonymous Logon")) => (
                &rules::ACCOUNT_HOSTS_WIDE,
                format!("holds {name}, so every user of the domain may retrieve the password"),
            ),
            Principal::Group { name, members: Some(members) } if members.is_empty() => {
                (&rules::ACCOUNT_HOSTS_EMPTY, format!("group {} has no members", Quoted::new(name)))
            }
            _ => return None,
        };
        Some(found(rule, account, FIELD, problem))
    };
    let mut sids: Vec<&Sid> = listed.into_iter().collect();
    sids.sort();
    let mut list: Vec<Diagnostic> = sids.iter().filter_map(problem).collect();
    // Where nobody else is listed, nobody gets it.
    let is_nobody = |found: &Diagnostic| *found.rule != rules::ACCOUNT_HOSTS_WIDE;
    if retrieval.unknown().is_empty() && !list.is_empty() && list.len() == sids.len() && list.iter().all(is_nobody) {
        for found in &mut list {
            found.severity = Severity::Error;
            found.consequence = Some(NO_PASSWORD);
        }
    }
    list.extend(retrieval.unknown().iter().map(|Unknown { kind, to }| {
        let who = to.as_ref().map_or("somebody".to_owned(), |sid| Quoted::new(&principals.name(sid)).to_string());
        let problem = format!("holds an entry for {who} that is not understood (kind {kind})");
        let why = "it may give the right to retrieve the password, or take it";
        Diagnostic { consequence: Some(why), ..found(&rules::ACCOUNT_HOSTS_UNKNOWN, account, FIELD, problem) }
    }));
    list
}

fn not_checked(what: &str, domain: &str, error: &Error) -> Diagnostic {
    let problem = format!("{what} could not be checked in {domain}: {}", causes::chain(error));
    Diagnostic::new(&rules::NOT_CHECKED, problem)
}

/// Service principal names that other accounts have too, in any domain of the forest.
async fn duplicates(directory: &mut Directory, accounts: &[Found]) -> Result<Diagnostics, Error> {
    const FIELD: &str = "ServicePrincipalNames";
    let names = || accounts.iter().flat_map(|one| one.services().iter().map(move |name| (one, name.as_str())));
    let Owners { owners, unread } = owners(directory, names().map(|(_, name)| name)).await?;
    let problem = |(one, name): (&Found, &str)| {
        let others: Vec<String> = owners
            .get(&name.to_ascii_lowercase())?
            .iter()
            .filter(|owner| !owner.eq_ignore_ascii_case(&one.name))
            .take(SHOWN)
            .map(|owner| Quoted::new(owner).to_string())
            .collect();
        let problem = format!("{} is a name of {} too", Quoted::new(name), others.join(", "));
        let fix = shell::cmd(name).map(|name| format!("setspn -D {name} ACCOUNT, for the one that does not serve it"));
        (!others.is_empty()).then(|| Diagnostic {
            consequence: Some(NO_TICKET),
            ..fixed(found(&rules::ACCOUNT_SPN_DUPLICATE, one, FIELD, problem), fix)
        })
    };
    let unread = unread.iter().map(|(domain, error)| not_checked("duplicate service principal names", domain, error));
    let mut list = Diagnostics::default();
    list.extend(names().filter_map(problem).chain(unread));
    Ok(list)
}

/// Who has service principal names.
pub struct Owners {
    /// The distinguished names of the objects that have a name, which is in lower case.
    pub owners: BTreeMap<String, Vec<Arc<str>>>,
    /// Why domains could not be asked, by their distinguished names.
    pub unread: BTreeMap<String, Error>,
}

/// Looks for the owners of service principal names in every domain of the forest.
///
/// # Errors
/// Where it is not known which domains there are, or the budget of the command is exceeded.
pub async fn owners<'n>(directory: &mut Directory, names: impl Iterator<Item = &'n str>) -> Result<Owners, Error> {
    let wanted: HashSet<String> = names.map(str::to_ascii_lowercase).collect();
    let names: Vec<&String> = wanted.iter().collect();
    let mut found = Owners { owners: BTreeMap::new(), unread: BTreeMap::new() };
    for base in directory.all_bases()? {
        for some in names.chunks(AT_ONCE) {
            let filter =
                Filter::Any(some.iter().map(|name| Filter::equals("servicePrincipalName", name.as_str())).collect());
            let search = Search { base: &base, scope: Scope::Subtree, filter, attributes: &["servicePrincipalName"] };
            let entries = match directory.search(&search).await {
                Ok(entries) => entries,
                Err(error @ Error::Exhausted(..)) => return Err(error),
                Err(error) => {
                    found.unread.insert(base, error);
                    break;
                }
            };
            for entry in entries {
                let owner: Arc<str> = entry.name.as_str().into();
                let own = entry.texts("servicePrincipalName").map(str::to_ascii_lowercase);
                // An owner may have many others.
                for name in own.filter(|name| wanted.contains(name)) {
                    found.owners.entry(name).or_default().push(Arc::clone(&owner));
                }
            }
        }
    }
    Ok(found)
}

/// What is wrong with the forest, for all its accounts. `now` is the clock of this machine.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn forest(directory: &mut Directory, accounts: &[Found], now: UtcDateTime) -> Result<Vec<Diagnostic>, Error> {
    let mut list = Vec::new();
    let Some(forest) = directory.forest.clone() else { return Ok(list) };
    if let Some(facts) = &forest.controller {
        if let Some(level) = facts.level.filter(|level| *level < FIRST_LEVEL) {
            let problem = format!("is of functional level {level}, before Windows Server 2012 ({FIRST_LEVEL})");
            list.push(about(directory.address().to_owned(), &rules::DIRECTORY_LEVEL, problem));
        }
        if let Some(difference) = facts.time.map(|time| now - time).filter(|difference| difference.abs() > MAX_SKEW) {
            let word = if difference.is_negative() { "ahead of" } else { "behind" };
            let minutes = difference.abs().whole_minutes();
            let problem = format!("its clock is {minutes} minutes {word} that of this machine");
            list.push(about(directory.address().to_owned(), &rules::DIRECTORY_CLOCK, problem));
        }
    }
    list.extend(root_key(directory, &forest.configuration, accounts, now).await?);
    Ok(list)
}

/// What is wrong with the root key, of which passwords are made.
async fn root_key(
    directory: &mut Directory,
    configuration: &str,
    accounts: &[Found],
    now: UtcDateTime,
) -> Result<Option<Diagnostic>, Error> {
    let base = format!("CN=Master Root Keys,CN=Group Key Distribution Service,CN=Services,{configuration}");
    let search = Search {
        base: &base,
        scope: Scope::Subtree,
        filter: Filter::Present("objectClass"),
        attributes: &["msKds-UseStartTime"],
    };
    let keys: Vec<Entry> = match directory.search(&search).await {
        Ok(found) => found.into_iter().filter(|entry| !entry.name.eq_ignore_ascii_case(&base)).collect(),
        Err(Error::Refused(_, _, NO_SUCH_OBJECT)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let diagnostic = |rule, problem: String| about("KDS root key".to_owned(), rule, problem);
    if keys.is_empty() {
        // Without one, no account has a password; and who prints accounts need not print keys.
        let is_unknown = directory.is_live() && !accounts.iter().any(|account| account.has_password);
        // By default, only administrators of the domain see them.
        let problem = "none is to be seen: there is none, or this user may not see it";
        return Ok(
            is_unknown.then(|| diagnostic(&rules::KDS_ROOT_KEY, problem.to_owned()).with_severity(Severity::Warning))
        );
    }
    let times: Vec<UtcDateTime> = keys.iter().filter_map(|key| key.file_time("msKds-UseStartTime")).collect();
    let usable = times.iter().map(|start| *start + KEY_DELAY).min();
    Ok(usable.filter(|usable| *usable > now && times.len() == keys.len()).map(|usable| {
        let (date, time) = (usable.date(), usable.time());
        let problem = format!(
            "is used from {date} {:02}:{:02} UTC on, 10 hours after its effective time",
            time.hour(),
            time.minute()
        );
        diagnostic(&rules::KDS_ROOT_KEY, problem)
    }))
}

/// Whether the user that is logged on may retrieve the password of an account: nothing where it came, otherwise why not.
///
/// # Errors
/// Where the directory could not be asked.
pub async fn password(
    directory: &mut Directory,
    account: &Found,
    user: &str,
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
    const FIELD: &str = "PrincipalsAllowedToRetrieveManagedPassword";
    if directory.holds(&Search::object(&account.name, &[PASSWORD]), PASSWORD).await? == Some(true) {
        return Ok(Vec::new());
    }
    let user = Quoted::new(user);
    let refused = |field: &str, problem: String| found(&rules::ACCOUNT_PASSWORD, account, field, problem);
    if !account.is_group_managed() {
        return Ok(account::lint::account(&account.account(&Principals::default()), &[])
            .into_iter()
            .filter(|found| *found.rule == rules::ACCOUNT_CLASS)
            .collect());
    }
    let token = token(directory).await?;
    let mut principals = Principals::default();
    principals.look_up(directory, account.named()).await?;
    let is_allowed = account.retrieval.as_ref().is_some_and(|retrieval| retrieval.allows(&token));
    if !is_allowed {
        let names: Vec<String> = account
            .principals()
            .map(|sid| match principals.get(sid) {
                Some(Principal::Group { name, .. }) => format!("group {}", Quoted::new(name)),
                Some(Principal::Orphan) => format!("{sid}, which no longer exists"),
                _ => Quoted::new(&principals.name(sid)).to_string(),
            })
            .take(SHOWN)
            .collect();
        let unknown = account.retrieval.as_ref().map_or(0, |retrieval| retrieval.unknown().len());
        let problem = match (names.as_slice(), unknown) {
            ([], 0) => format!("is empty, so {user} may not retrieve the password, nor may anybody"),
            ([], _) => format!("{user} is neither listed nor a member"),
            (names, _) => format!("{user} is neither listed nor a member: it holds {}", names.join(", ")),
        };
        let problem = match unknown {
            0 => problem,
            1 => format!("{problem}; an entry is not understood: see `kubectl gmsa account lint`"),
            some => format!("{problem}; {some} entries are not understood: see `kubectl gmsa account lint`"),
        };
        let group = account.principals().find_map(|sid| match principals.get(sid) {
            Some(Principal::Group { name, .. }) => Some(name),
            _ => None,
        });
        let fix = match group {
            Some(group) => shell::powershell(group).map(|group| {
                format!("Add-ADGroupMember {group} USER; a computer learns of its groups when it restarts")
            }),
            None => shell::powershell(account.sam()).map(|account| {
                format!("Set-ADServiceAccount {account} -{FIELD} GROUP, a group with the user or the nodes")
            }),
        };
        return Ok(vec![fixed(refused(FIELD, problem), fix)]);
    }
    let mut list = forest(directory, std::slice::from_ref(account), now).await?;
    list.retain(|found| *found.rule == rules::KDS_ROOT_KEY);
    let why = if list.is_empty() { "" } else { ": see the root key" };
    let problem = format!("{user} may retrieve the password, but the domain controller makes none{why}");
    list.insert(0, refused("", problem).with_fix("Look at the root key as an administrator (`Get-KdsRootKey`), and at the event log of the domain controller."));
    Ok(list)
}

/// The SIDs of the user that is logged on: its own, and those of its groups ([MS-ADTS] 3.1.1.3.2.27).
async fn token(directory: &mut Directory) -> Result<HashSet<Sid>, Error> {
    let root = directory.search(&Search { attributes: &["tokenGroups"], ..crate::forest::ROOT }).await?;
    Ok(root.iter().flat_map(|root| root.values("tokenGroups")).filter_map(|sid| Sid::from_bytes(sid)).collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration as Waiting, SystemTime};

    use super::*;
    use crate::{account::CLASS, ldif};

    /// A forest with one account, and what else is in it.
    fn directory(more: &str) -> Directory {
        let text = format!(
            "dn: CN=CONTOSO,CN=Partitions,CN=Configuration,DC=contoso,DC=com\nobjectClass: crossRef\ndnsRoot: contoso.com\nnETBIOSName: CONTOSO\n\
             nCName: <GUID=8259123b-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-1-2-3>;DC=contoso,DC=com\n\n\
             dn: CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com\nobjectClass: {CLASS}\nsAMAccountName: WebApp1$\n\
             servicePrincipalName: http/web\nuserAccountControl: 4096\nmsDS-SupportedEncryptionTypes: 24\n\n{more}"
        );
        Directory::printed(ldif::read(&text).unwrap())
    }

    fn said(found: &[Diagnostic]) -> Vec<String> {
        found.iter().map(|found| format!("{} {}", found.rule.id, found.message)).collect()
    }

    fn of_forest(more: &str) -> Vec<String> {
        let mut directory = directory(more);
        // 2026-11-23T09:12:44Z
        let now = UtcDateTime::from(SystemTime::UNIX_EPOCH + Waiting::from_secs(1_795_425_164));
        let accounts = block_on(directory.accounts()).unwrap();
        said(&block_on(forest(&mut directory, &accounts, now)).unwrap())
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    fn key(start: &str) -> String {
        format!(
            "dn: CN=1,CN=Master Root Keys,CN=Group Key Distribution Service,CN=Services,CN=Configuration,DC=contoso,DC=com\n\
             objectClass: msKds-ProvRootKey\n{start}\n"
        )
    }

    #[test]
    fn a_root_key_is_used_ten_hours_after_its_effective_time() {
        assert_eq!(of_forest(""), [""; 0]);
        // 2026-11-22T23:12:44Z, and a second later.
        assert_eq!(of_forest(&key("msKds-UseStartTime: 134398627640000000")), [""; 0]);
        let later = ["kds-root-key is used from 2026-11-23 09:12 UTC on, 10 hours after its effective time"];
        assert_eq!(of_forest(&key("msKds-UseStartTime: 134398627650000000")), later);
        // Others than administrators see that it is there, and not since when.
        assert_eq!(of_forest(&key("cn: 1")), [""; 0]);
    }

    #[test]
    fn a_name_is_no_code_of_the_command_that_removes_it() {
        let fix = |name: &str| {
            let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, name);
            let other = |of: &str, class: &str| {
                format!(
                    "dn: CN={of},DC=contoso,DC=com\nobjectClass: {class}\nsAMAccountName: {of}$\nwhenCreated: 1\nservicePrincipalName:: {encoded}\n"
                )
            };
            let mut directory = directory(&(other("a", CLASS) + "\n" + &other("b", "user")));
            let all = block_on(directory.accounts()).unwrap();
            let found = block_on(accounts(&mut directory, &all, &[])).unwrap();
            let found = found.into_iter().find(|found| *found.rule == rules::ACCOUNT_SPN_DUPLICATE).unwrap();
            found.fix.unwrap()
        };
        let of = |argument: &str| format!("setspn -D {argument} ACCOUNT, for the one that does not serve it");
        assert_eq!(fix("http/a"), of("http/a"));
        assert_eq!(fix("http/web & calc & rem"), of("\"http/web & calc & rem\""));
        for refused in ["http/%PATH%", "http/a\" & calc", "http/$(calc)", "http/a\r\ncalc"] {
            assert_eq!(fix(refused), rules::ACCOUNT_SPN_DUPLICATE.remedy);
        }
    }

    #[test]
    fn an_entry_that_is_not_understood_is_a_finding() {
        // D:(XA;;RP;;;S-1-5-21-1-2-3-1103;(…)): an entry of kind 9.
        let (mut descriptor, read) = (crate::allowing(&[Sid::parse("S-1-5-21-1-2-3-1103").unwrap()]), 44);
        descriptor[read] = 9;
        let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, descriptor);
        let name = "dn: CN=w\\,eb,DC=contoso,DC=com\nobjectClass: group\nobjectSid:: AQUAAAAAAAUVAAAAAQAAAAIAAAADAAAATwQAAA==\nsAMAccountName: we\"b\n";
        let account = format!(
            "dn: CN=kept,DC=contoso,DC=com\nobjectClass: {CLASS}\nsAMAccountName: kept$\nservicePrincipalName: http/kept\n\
             userAccountControl: 4096\nmsDS-SupportedEncryptionTypes: 24\nmsDS-GroupMSAMembership:: {encoded}\n\n{name}"
        );
        let mut directory = directory(&account);
        let all = vec![block_on(directory.account(&crate::account::AccountName::parse("kept"))).unwrap().unwrap()];
        let found = block_on(accounts(&mut directory, &all, &[])).unwrap();
        assert_eq!(
            said(found.as_slice()),
            ["account-hosts-unknown holds an entry for \"we\\\"b\" that is not understood (kind 9)"]
        );
    }

    #[test]
    fn a_name_that_two_accounts_have_is_found() {
        let other = "dn: CN=old,DC=contoso,DC=com\nobjectClass: user\nservicePrincipalName: HTTP/WEB\n";
        let mut directory = directory(other);
        let all = block_on(directory.accounts()).unwrap();
        let found = block_on(accounts(&mut directory, &all, &[])).unwrap();
        let wanted = [
            "account-incomplete was printed without PrincipalsAllowedToRetrieveManagedPassword",
            "account-spn-duplicate \"http/web\" is a name of \"CN=old,DC=contoso,DC=com\" too",
        ];
        assert_eq!(said(found.as_slice()), wanted);
    }
}

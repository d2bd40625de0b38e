//! Faults of the forest that concern all its accounts.

use gmsa_core::diagnostic::{Diagnostic, Severity, rules};
use time::{Duration, UtcDateTime};
use uuid::Uuid;

use super::{about, finding, minute};
use gmsa_directory::{
    Directory, Entry, Error, LdapFilter, LdapSearch, SearchScope,
    account::{Account, NO_SUCH_OBJECT},
    entry::first_value,
    forest::ForestDomain,
};

/// The classes of objects that the user may make in a folder ([MS-ADTS] 3.1.1.4.5.12).
const MAY_MAKE: &str = "allowedChildClassesEffective";
const ATTRIBUTES: [&str; 3] = [MAY_MAKE, "msKds-UseStartTime", "objectClass"];
/// After a root key is made, domain controllers wait so long before they use it ([MS-GKDI] 3.1.4.1).
const KEY_DELAY: Duration = Duration::hours(10);
/// The clock skew that Kerberos allows by default (Microsoft: Maximum tolerance for computer clock synchronization).
const MAX_SKEW: Duration = Duration::minutes(5);
/// Windows Server 2012, the first that makes passwords of gMSAs ([MS-ADTS] 6.1.4.4).
const FIRST_LEVEL: i64 = 5;

/// Faults of the forest that concern all its accounts. `now` is the clock of this machine.
pub(super) async fn forest(
    directory: &mut Directory,
    accounts: &[&Account],
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
    let mut list = Vec::new();
    if let Some(facts) = directory.forest.as_ref().and_then(|forest| forest.controller.clone()) {
        if let Some(level) = facts.level.filter(|level| *level < FIRST_LEVEL) {
            let problem = format!("is of functional level {level}, before Windows Server 2012 ({FIRST_LEVEL})");
            list.push(about(directory.address().to_owned(), &rules::DIRECTORY_LEVEL, problem));
        }
        if let Some(difference) = facts.time.map(|time| now - time).filter(|difference| difference.abs() > MAX_SKEW) {
            let word = if difference.is_negative() { "ahead of" } else { "behind" };
            let minutes = difference.abs().whole_minutes();
            let problem = format!("its clock is {minutes} minutes {word} this machine's clock");
            list.push(about(directory.address().to_owned(), &rules::DIRECTORY_CLOCK, problem));
        }
    }
    list.extend(root_key(directory, accounts, now).await?);
    Ok(list)
}

/// Whether every user of a domain may create computer objects.
pub(super) async fn quota(directory: &mut Directory, domain: &ForestDomain) -> Result<Option<Diagnostic>, Error> {
    const QUOTA: &str = "ms-DS-MachineAccountQuota";
    let entries = match directory.search(&LdapSearch::object(&domain.name, &[QUOTA])).await {
        Err(Error::Refused(..)) => Vec::new(),
        found => found?,
    };
    let quota = entries.iter().find_map(|entry| entry.number(QUOTA)).filter(|quota| *quota > 0);
    let dns = &domain.facts.dns;
    let problem = |quota| format!("in {dns} every user, and so a pod, may create {quota} computer objects ({QUOTA})");
    let fix = rules::DIRECTORY_QUOTA.remedy.replace("ADDomain DOMAIN", &format!("ADDomain {dns}"));
    Ok(quota.map(|quota| Diagnostic::new(&rules::DIRECTORY_QUOTA, problem(quota)).with_fix(fix)))
}

/// Problems of the KDS root keys, from which passwords are generated.
pub(super) async fn root_key(
    directory: &mut Directory,
    accounts: &[&Account],
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
    // Printed output may omit the domains.
    let base = directory.forest.as_ref().map_or(String::new(), |forest| {
        format!("CN=Master Root Keys,CN=Group Key Distribution Service,CN=Services,{}", forest.configuration)
    });
    let is_key = LdapFilter::equals("objectClass", "msKds-ProvRootKey");
    let filter = LdapFilter::Any(vec![is_key, LdapFilter::equals("cn", "Master Root Keys")]);
    let search = LdapSearch { base: &base, scope: SearchScope::Subtree, filter, attributes: &ATTRIBUTES };
    let entries = match directory.search(&search).await {
        Err(Error::Refused(_, _, NO_SUCH_OBJECT)) => Vec::new(),
        found => found?,
    };
    let (keys, folder): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| entry.is_a("msKds-ProvRootKey"));
    let diagnostic = |rule, problem: String| about("KDS root key".to_owned(), rule, problem);
    // A key that an administrator sees has its time.
    let starts: Vec<UtcDateTime> = keys.iter().filter_map(|key| key.file_time("msKds-UseStartTime")).collect();
    // Without the right to read keys an empty list proves nothing. A user who may create keys may read all.
    let may_make = |folder: &Entry| folder.texts(MAY_MAKE).any(|class| class.eq_ignore_ascii_case("msKds-ProvRootKey"));
    let sees_all = !keys.is_empty() || folder.iter().any(may_make);
    let names: Vec<String> = keys.iter().map(|key| first_value(&key.name)).collect();
    let is_gone = |key: &Uuid| !names.iter().any(|name| name.eq_ignore_ascii_case(&key.to_string()));
    let without_key = |one: &&Account| {
        let key = one.root_key.filter(|key| sees_all && is_gone(key))?;
        let problem = format!("names the KDS root key {key}, which is not there");
        let why = "no domain controller can make the password";
        let fix = "Restore the key from a backup of the forest root, or make the account again, of a key of `Get-KdsRootKey`: \
                   `Remove-ADServiceAccount`, then `New-ADServiceAccount`.";
        Some(finding(&rules::KDS_ROOT_KEY, one, "msDS-ManagedPasswordId", problem, why, Some(fix.to_owned())))
    };
    let mut list: Vec<Diagnostic> = accounts.iter().filter_map(without_key).collect();
    // Without one, no account has a password; and who prints accounts need not print keys.
    let is_shown = keys.is_empty() && (directory.is_live() || !folder.is_empty());
    if is_shown && sees_all {
        list.push(diagnostic(&rules::KDS_ROOT_KEY, "there is none".to_owned()));
    } else if is_shown && !accounts.iter().any(|account| account.has_password) {
        // By default, only administrators of the domain see them.
        let problem = "none is visible: there is none, or this user may not see it".to_owned();
        let remedy = rules::KDS_ROOT_KEY.remedy;
        let fix = format!("Run `Get-KdsRootKey` as an administrator. If it shows none: {remedy}");
        let found = diagnostic(&rules::KDS_ROOT_KEY, problem);
        list.push(found.with_severity(Severity::Warning).with_fix(fix));
    }
    let usable = starts.iter().map(|start| *start + KEY_DELAY).min();
    let is_used = accounts.iter().any(|account| account.root_key.as_ref().is_some_and(|key| !is_gone(key)));
    list.extend(usable.filter(|usable| *usable > now && starts.len() == keys.len() && !is_used).map(|usable| {
        let problem = format!("is used from {} on, 10 hours after its effective time", minute(usable));
        diagnostic(&rules::KDS_ROOT_KEY, problem).with_fix("Wait until then: a second key is not used sooner.")
    }));
    Ok(list)
}

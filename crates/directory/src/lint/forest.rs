//! What is wrong with the forest, for all its accounts.

use gmsa_core::diagnostic::{Diagnostic, Severity, rules};
use time::{Duration, UtcDateTime};

use super::about;
use crate::{
    Directory, Entry, Error, LdapFilter, LdapSearch, SearchScope,
    account::{Account, NO_SUCH_OBJECT},
};

/// After a root key is made, domain controllers wait so long before they use it ([MS-GKDI] 3.1.4.1).
const KEY_DELAY: Duration = Duration::hours(10);
/// What Kerberos allows by default (Microsoft: Maximum tolerance for computer clock synchronization).
const MAX_SKEW: Duration = Duration::minutes(5);
/// Windows Server 2012, the first that makes passwords of gMSAs ([MS-ADTS] 6.1.4.4).
const FIRST_LEVEL: i64 = 5;

/// What is wrong with the forest, for all its accounts. `now` is the clock of this machine.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn forest(
    directory: &mut Directory,
    accounts: &[Account],
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
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
    accounts: &[Account],
    now: UtcDateTime,
) -> Result<Option<Diagnostic>, Error> {
    let base = format!("CN=Master Root Keys,CN=Group Key Distribution Service,CN=Services,{configuration}");
    let search = LdapSearch {
        base: &base,
        scope: SearchScope::Subtree,
        filter: LdapFilter::Present("objectClass"),
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

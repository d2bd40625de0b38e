//! Whether a user may retrieve the password of an account, and if not, why.

use std::collections::HashSet;

use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    quote::{Quoted, shell},
};
use time::UtcDateTime;

use super::{RETRIEVERS, SHOWN, class, fixed, forest, found};
use crate::{
    Directory, Error, LdapSearch, Sid,
    account::{Account, PASSWORD},
    principal::{Principal, Principals},
};

/// Whether the user that is logged on may retrieve the password of an account: nothing where it came, otherwise why not.
///
/// # Errors
/// Where the directory could not be asked.
pub async fn password(
    directory: &mut Directory,
    account: &Account,
    user: &str,
    now: UtcDateTime,
) -> Result<Vec<Diagnostic>, Error> {
    if directory.holds(&LdapSearch::object(&account.name, &[PASSWORD]), PASSWORD).await? == Some(true) {
        return Ok(Vec::new());
    }
    let user = Quoted::new(user);
    let refused = |field: &str, problem: String| found(&rules::ACCOUNT_PASSWORD, account, field, problem);
    if !account.is_group_managed() {
        return Ok(class(account).into_iter().collect());
    }
    let token = token(directory).await?;
    let principals = Principals::of(directory, std::slice::from_ref(account)).await?;
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
            None => shell::powershell(&account.sam).map(|account| {
                format!("Set-ADServiceAccount {account} -{RETRIEVERS} GROUP, a group with the user or the nodes")
            }),
        };
        return Ok(vec![fixed(refused(RETRIEVERS, problem), fix)]);
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
    let root = directory.search(&LdapSearch { attributes: &["tokenGroups"], ..crate::forest::ROOT }).await?;
    Ok(root.iter().flat_map(|root| root.values("tokenGroups")).filter_map(|sid| Sid::from_bytes(sid)).collect())
}

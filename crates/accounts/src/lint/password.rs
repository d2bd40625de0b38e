//! Whether a user may retrieve the password of an account, and if not, why.

use std::collections::HashSet;

use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    quote::{Quoted, shell},
};
use time::UtcDateTime;

use super::{LATER, RETRIEVERS, SHOWN, WITHOUT_DENIALS, class, found, root_key, set_retrievers, to_security};
use crate::principal::{DirectoryPrincipal, Group, Principals};
use gmsa_directory::{
    AccessRule, Directory, Error, LdapSearch, Retrieval, Sid,
    account::{Account, PASSWORD},
    forest::ROOT,
};

const LOOK: &str =
    "Look at the root key as an administrator (`Get-KdsRootKey`), and at the event log of the domain controller.";

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
    if let Some(class) = class(account) {
        return Ok(vec![class]);
    }
    // A controller that cannot make a password says no more than that.
    let said = match directory.secret(&LdapSearch::object(&account.name, &[PASSWORD]), PASSWORD).await {
        Ok(Some(_)) => return Ok(Vec::new()),
        Ok(_) => String::new(),
        Err(Error::Refused(_, said, _)) => format!(" ({said})"),
        Err(error) => return Err(error),
    };
    let typed = user;
    let user = Quoted::new(typed);
    let refused = |field: &str, problem: String| found(&rules::ACCOUNT_PASSWORD, account, field, problem);
    let token = token(directory).await?;
    let principals = Principals::of(directory, std::slice::from_ref(account)).await?;
    let decides = match &account.retrieval {
        Some(Retrieval::Everybody) => Some(true),
        Some(retrieval) => match retrieval.deciding(&token) {
            Some(AccessRule { allows: false, to }) => {
                let who = Quoted::new(&principals.name(to)).to_string();
                let problem = format!("an entry denies it to {who}, before any that allows it to {user}");
                return Ok(vec![refused(RETRIEVERS, problem).fixed(set_retrievers(account, WITHOUT_DENIALS))]);
            }
            decides => decides.map(|_| true),
        },
        None => None,
    };
    if decides.is_none() {
        let problem = not_listed(account, &user, &principals);
        return Ok(vec![refused(RETRIEVERS, problem).fixed(way_in(account, &principals, typed))]);
    }
    let mut list = root_key(directory, &[account], now).await?;
    let (why, fix) = match &account.root_key {
        _ if !list.is_empty() => (": see the root key".to_owned(), ""),
        // By default, only administrators of the domain see it.
        Some(key) => (format!("; probably it cannot use the KDS root key {key} of the password"), LOOK),
        None => (said, LOOK),
    };
    let problem = format!("{user} may retrieve the password, but the domain controller makes none{why}");
    list.insert(0, refused("", problem).with_fix(fix));
    Ok(list)
}

/// The listed principals, if the user is not among them.
fn not_listed(account: &Account, user: &Quoted, principals: &Principals) -> String {
    let names: Vec<String> = account
        .principals()
        .map(|sid| match principals.get(sid) {
            Some(DirectoryPrincipal::Group(Group { name, is_distribution: true, .. })) => {
                format!("group {}, which is a distribution group and gives nothing", Quoted::new(name))
            }
            Some(DirectoryPrincipal::Group(Group { name, .. })) => format!("group {}", Quoted::new(name)),
            Some(DirectoryPrincipal::Orphan) => format!("{sid}, which no longer exists"),
            _ => Quoted::new(&principals.name(sid)).to_string(),
        })
        .take(SHOWN)
        .collect();
    let unknown = account.retrieval.as_ref().map_or(0, |retrieval| retrieval.unknown().len());
    let problem = match (names.as_slice(), unknown) {
        ([], 0) => format!("is empty, so no user may retrieve the password, not even {user}"),
        ([], _) => format!("{user} is neither listed nor a member"),
        (names, _) => format!("{user} is neither listed nor a member: it holds {}", names.join(", ")),
    };
    match unknown {
        0 => problem,
        1 => format!("{problem}; an entry is not understood: see `kubectl gmsa account lint`"),
        some => format!("{problem}; {some} entries are not understood: see `kubectl gmsa account lint`"),
    }
}

/// The step that lets the user retrieve the password.
fn way_in(account: &Account, principals: &Principals, user: &str) -> Option<String> {
    let groups = || {
        account.principals().filter_map(|sid| match principals.get(sid) {
            // Skip wide groups, such as Domain Computers: members cannot be added by hand.
            Some(DirectoryPrincipal::Group(group)) if group.wide.is_none() => Some(group),
            _ => None,
        })
    };
    if let Some(group) = groups().find(|group| !group.is_distribution) {
        let [group, member] = [&*group.name, member(user)].map(shell::powershell);
        return Some(format!("Add-ADGroupMember {} {}{LATER}", group?, member?));
    }
    if let Some(group) = groups().next() {
        return to_security(&group.name);
    }
    set_retrievers(account, "a group with the user or the nodes")
}

/// The user as `Add-ADGroupMember` takes it: a distinguished name, or the name without its domain.
fn member(user: &str) -> &str {
    if user.contains('=') {
        return user;
    }
    user.rsplit('\\').next().and_then(|user| user.split('@').next()).unwrap_or(user)
}

/// The SIDs of the logged-on user and its groups ([MS-ADTS] 3.1.1.3.2.27).
async fn token(directory: &mut Directory) -> Result<HashSet<Sid>, Error> {
    let root = directory.search(&LdapSearch { attributes: &["tokenGroups"], ..ROOT }).await?;
    Ok(root.iter().flat_map(|root| root.values("tokenGroups")).filter_map(|sid| Sid::from_bytes(sid)).collect())
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn the_user_that_logged_on_is_the_member_to_add() {
        for user in ["plugin@contoso.com", "CONTOSO\\plugin", "contoso.com\\plugin", "plugin"] {
            assert_eq!(member(user), "plugin", "{user}");
        }
        let name = "CN=plugin@home,CN=Users,DC=contoso,DC=com";
        assert_eq!(member(name), name);
    }
}

//! What is wrong with those who may retrieve the password of an account.

use std::collections::HashSet;

use gmsa_core::{
    diagnostic::{Diagnostic, Severity, rules, rules::Rule},
    quote::Quoted,
};

use super::{RETRIEVERS, fixed, found, set};
use crate::{
    Retrieval, Sid, Unknown,
    account::Account,
    principal::{Principal, Principals},
};

const NO_PASSWORD: &str = "no container starts with the account there";

/// What is wrong with those who may retrieve the password.
pub(super) fn retrieval(account: &Account, principals: &Principals) -> Vec<Diagnostic> {
    // What was not printed is another finding.
    let Some(retrieval) = &account.retrieval else { return Vec::new() };
    if retrieval.is_empty() {
        // A plugin logs on as a user, which is listed here too.
        let what = format!("-{RETRIEVERS} GROUP, a group of the nodes, or of the user that the plugin logs on as");
        let why = "no host gets the password, so no container starts with the account";
        let empty = fixed(found(&rules::ACCOUNT_HOSTS, account, RETRIEVERS, "is empty"), set(account, &what));
        return vec![Diagnostic { consequence: Some(why), ..empty }];
    }
    let whole: Option<(&'static Rule, _)> = match retrieval {
        Retrieval::Unreadable => Some((&rules::ACCOUNT_HOSTS, "is no security descriptor")),
        Retrieval::Everybody => {
            Some((&rules::ACCOUNT_HOSTS_WIDE, "has no list, so everybody may retrieve the password"))
        }
        Retrieval::Listed { .. } | Retrieval::Named(_) => None,
    };
    if let Some((rule, problem)) = whole {
        return vec![found(rule, account, RETRIEVERS, problem)];
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
        Some(found(rule, account, RETRIEVERS, problem))
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
        Diagnostic { consequence: Some(why), ..found(&rules::ACCOUNT_HOSTS_UNKNOWN, account, RETRIEVERS, problem) }
    }));
    list
}

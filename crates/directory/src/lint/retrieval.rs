//! What is wrong with those who may retrieve the password of an account.
//!
//! Invariant: entries count in their order, as the domain controller reads them: a denial takes the right from those who get it later alone.

use std::collections::BTreeSet;

use gmsa_core::{
    diagnostic::{Diagnostic, Severity, rules, rules::Rule},
    quote::{Quoted, shell::powershell},
};

use super::{LDAPSEARCH, RETRIEVERS, SHOWN, fixed, found, set};
use crate::{
    AccessRule, Retrieval, Sid, Unknown,
    account::Account,
    entry::{first_value, parts},
    identifier::{EVERYBODY, wide_by_name},
    principal::{Group, Member, Principal, Principals, foreign},
};

const NO_PASSWORD: &str = "no container starts with the account there";

/// What is wrong with those who may retrieve the password.
pub(super) fn retrieval(account: &Account, principals: &Principals) -> Vec<Diagnostic> {
    // What was not printed is another finding.
    let Some(retrieval) = &account.retrieval else { return Vec::new() };
    let whole: Option<(&'static Rule, _)> = match retrieval {
        Retrieval::Unreadable => Some((&rules::ACCOUNT_HOSTS, "is no security descriptor")),
        Retrieval::Everybody => {
            Some((&rules::ACCOUNT_HOSTS_WIDE, "has no list, so everybody may retrieve the password"))
        }
        _ if !retrieval.is_empty() => None,
        _ if retrieval.rules().is_empty() => Some((&rules::ACCOUNT_HOSTS, "is empty")),
        _ => Some((&rules::ACCOUNT_HOSTS, "denies it to some, and allows it to nobody")),
    };
    if let Some((rule, problem)) = whole {
        let whole = found(rule, account, RETRIEVERS, problem);
        if *rule != rules::ACCOUNT_HOSTS {
            return vec![whole];
        }
        // A plugin logs on as a user, which is listed here too.
        let what = format!("-{RETRIEVERS} GROUP, a group of the nodes, or of the user that the plugin logs on as");
        let why = "no host gets the password, so no container starts with the account";
        return vec![Diagnostic { consequence: Some(why), ..fixed(whole, set(account, &what)) }];
    }
    if let Retrieval::Named(names) = retrieval {
        return names.iter().filter_map(|name| named(account, name)).collect();
    }
    let mut list: Vec<Diagnostic> = Vec::new();
    let (mut denied, mut seen) = (Denied::default(), BTreeSet::new());
    let mut is_given = false;
    for AccessRule { allows, to } in retrieval.rules() {
        if !allows {
            denied.add(to, principals);
        } else if seen.insert(to) {
            let problem = problem(account, to, &denied, principals);
            is_given |= problem.as_ref().is_none_or(|(_, gives)| *gives);
            list.extend(problem.map(|(found, _)| found));
        }
    }
    // Where nobody else is listed, nobody gets it.
    let is_nobody = !is_given && retrieval.unknown().is_empty() && !seen.is_empty();
    for found in list.iter_mut().filter(|_| is_nobody) {
        found.severity = Severity::Error;
        found.consequence = Some(NO_PASSWORD);
    }
    list.extend(not_printed(account, retrieval, principals));
    list.extend(retrieval.unknown().iter().map(|Unknown { kind, to }| {
        let who = to.as_ref().map_or("somebody".to_owned(), |sid| Quoted::new(&principals.name(sid)).to_string());
        let problem = match kind {
            0 | 1 => format!("holds an entry for {who} with generic rights alone, which an access check need not map"),
            _ => format!("holds an entry for {who} that is not understood (kind {kind})"),
        };
        let why = "it may give the right to retrieve the password, or take it";
        Diagnostic { consequence: Some(why), ..found(&rules::ACCOUNT_HOSTS_UNKNOWN, account, RETRIEVERS, problem) }
    }));
    list
}

/// What is wrong with somebody of whom PowerShell printed the name.
fn named(account: &Account, name: &str) -> Option<Diagnostic> {
    let known = foreign(name).as_ref().and_then(Sid::well_known);
    let known = known.or_else(|| wide_by_name(&first_value(name), parts(name).nth(1)?))?;
    let problem = format!("holds {}, so {} may retrieve the password", known.name, known.wide?);
    Some(found(&rules::ACCOUNT_HOSTS_WIDE, account, RETRIEVERS, problem))
}

/// What could not be seen, because a file does not hold it.
fn not_printed(account: &Account, retrieval: &Retrieval, principals: &Principals) -> Vec<Diagnostic> {
    let note = |problem: String| {
        let note = found(&rules::NOT_CHECKED, account, RETRIEVERS, problem).with_fix(LDAPSEARCH);
        note.with_severity(Severity::Note)
    };
    let shown = |names: &BTreeSet<String>| {
        let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
        format!("{}{more}", names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", "))
    };
    let listed = retrieval.rules().iter().map(|rule| &rule.to);
    let unknown: BTreeSet<String> =
        listed.clone().filter(|sid| principals.get(sid) == Some(&Principal::NotPrinted)).map(Sid::to_string).collect();
    let members = listed.filter_map(|sid| match principals.get(sid) {
        Some(Principal::Group(Group { members: Some(members), .. })) if principals.is_printed => Some(members),
        _ => None,
    });
    let unseen = members.flatten().filter(|member| member.sid.is_none());
    let unseen: BTreeSet<String> = unseen.map(|member| Quoted::new(&member.name).to_string()).collect();
    let bare: BTreeSet<String> = retrieval
        .rules()
        .iter()
        .filter_map(|rule| match principals.get(&rule.to) {
            Some(Principal::Group(Group { name, members: None, wide: None, is_distribution: false, .. })) => Some(name),
            _ => None,
        })
        .filter(|_| principals.is_printed)
        .map(|name| Quoted::new(name).to_string())
        .collect();
    let mut list = Vec::new();
    if !bare.is_empty() {
        list.push(note(format!(
            "the file holds no members of {}, so whether there are any could not be checked",
            shown(&bare)
        )));
    }
    if !unknown.is_empty() {
        list.push(note(format!(
            "the file does not hold {}, so who may retrieve the password could not be checked",
            shown(&unknown)
        )));
    }
    if !unseen.is_empty() {
        list.push(note(format!(
            "the file does not hold the members {} of its groups, so whether these are groups could not be checked",
            shown(&unseen)
        )));
    }
    list
}

/// Whether an entry gives the right to somebody all the same.
type Gives = bool;

/// What is wrong with an entry that allows it to this principal, after these denials.
fn problem(account: &Account, to: &Sid, denied: &Denied<'_>, principals: &Principals) -> Option<(Diagnostic, Gives)> {
    let found = |rule, problem: String| found(rule, account, RETRIEVERS, problem);
    let principal = principals.get(to);
    if let Some(by) = denied.whole(to, principal) {
        let (who, by) = (Quoted::new(&principals.name(to)).to_string(), Quoted::new(&principals.name(by)).to_string());
        let problem = format!("allows it to {who}, after it is denied to {by}, so {who} may not");
        return Some((with_new_list(account, found(&rules::ACCOUNT_HOSTS_DENIED, problem)), false));
    }
    if let Some((name, who)) = principal.and_then(Principal::wide) {
        let holds = match principal {
            Some(Principal::Group(group)) if group.name != name => {
                format!("holds group {}, in which {name} is", Quoted::new(&group.name))
            }
            _ => format!("holds {name}"),
        };
        return Some((found(&rules::ACCOUNT_HOSTS_WIDE, format!("{holds}, so {who} may retrieve the password")), true));
    }
    if let Some(Principal::WellKnown(known)) = principal.filter(|principal| principal.is_local()) {
        let problem = format!("holds {}, which nobody has who asks a domain controller over the network", known.name);
        let what = format!("-{RETRIEVERS} GROUP, a group of the nodes, or of the user that the plugin logs on as");
        return Some((fixed(found(&rules::ACCOUNT_HOSTS_EMPTY, problem), set(account, &what)), false));
    }
    match principal? {
        Principal::Orphan => Some((found(&rules::ACCOUNT_HOSTS_ORPHANED, format!("{to} no longer exists")), false)),
        Principal::Group(Group { name, is_distribution: true, .. }) => {
            let problem =
                format!("group {} is a distribution group, which gives no access to its members", Quoted::new(name));
            Some((fixed(found(&rules::ACCOUNT_HOSTS_DISTRIBUTION, problem), to_security(name)), false))
        }
        Principal::Group(Group { name, members: Some(members), distribution: Some(inner), .. }) => {
            let (name, quoted) = (Quoted::new(name), Quoted::new(inner));
            let problem =
                format!("group {name} holds {quoted}, a distribution group, which gives no access to its members");
            let found = fixed(found(&rules::ACCOUNT_HOSTS_DISTRIBUTION, problem), to_security(inner));
            let gives = members.iter().any(|member| denied.of_member(member).is_none());
            Some((found, gives))
        }
        Principal::Group(Group { name, members: Some(members), .. }) => {
            let (without, with): (Vec<&Member>, Vec<&Member>) =
                members.iter().partition(|member| denied.of_member(member).is_some());
            let name = Quoted::new(name);
            if members.is_empty() {
                return Some((found(&rules::ACCOUNT_HOSTS_EMPTY, format!("group {name} has no members")), false));
            }
            if members.iter().all(|member| member.is_disabled) {
                let names: Vec<String> =
                    members.iter().take(SHOWN).map(|member| Quoted::new(&member.name).to_string()).collect();
                let problem = format!("every member of group {name} is disabled: {}", names.join(", "));
                return Some((fixed(found(&rules::ACCOUNT_HOSTS_EMPTY, problem), enable(members.first()?)), false));
            }
            let names: Vec<String> =
                without.iter().take(SHOWN).map(|member| Quoted::new(&member.name).to_string()).collect();
            let problem =
                format!("denies it to {} of group {name}, before it is allowed to the group", names.join(", "));
            let denied = || (with_new_list(account, found(&rules::ACCOUNT_HOSTS_DENIED, problem)), !with.is_empty());
            (!without.is_empty()).then(denied)
        }
        Principal::Single(member) if member.is_disabled => {
            let problem = format!("holds {}, which is disabled, so it cannot log on", Quoted::new(&member.name));
            Some((fixed(found(&rules::ACCOUNT_HOSTS_EMPTY, problem), enable(member)), false))
        }
        _ => None,
    }
}

/// The fix that lets a user or a computer log on again.
fn enable(member: &Member) -> Option<String> {
    Some(format!("Enable-ADAccount -Identity {}", powershell(&member.name)?))
}

/// The fix that makes a group one that gives access.
fn to_security(group: &str) -> Option<String> {
    let name = powershell(group)?;
    Some(format!("Set-ADGroup {name} -GroupCategory Security; a computer learns of its groups when it restarts"))
}

/// The fix that writes the list again.
fn with_new_list(account: &Account, found: Diagnostic) -> Diagnostic {
    fixed(found, set(account, &format!("-{RETRIEVERS} GROUP, which writes the list again, without denials")))
}

/// Those to whom the entries before have denied it.
#[derive(Default)]
struct Denied<'a> {
    /// All, because of this one.
    everybody: Option<&'a Sid>,
    /// Each with the one that is denied: itself, or a group.
    sids: Vec<(&'a Sid, &'a Sid)>,
}

impl<'a> Denied<'a> {
    fn add(&mut self, to: &'a Sid, principals: &'a Principals) {
        self.sids.push((to, to));
        match principals.get(to) {
            Some(principal) if principal.wide().is_some_and(|(_, who)| who == EVERYBODY) => {
                self.everybody.get_or_insert(to);
            }
            Some(Principal::Group(group)) if !group.is_distribution => {
                let members = group.members.iter().flatten().filter_map(|member| member.sid.as_ref());
                self.sids.extend(group.groups.iter().chain(members).map(|sid| (sid, to)));
            }
            _ => {}
        }
    }

    fn of(&self, sid: &Sid) -> Option<&'a Sid> {
        self.everybody.or_else(|| self.sids.iter().find(|(denied, _)| *denied == sid).map(|(_, by)| *by))
    }

    fn of_member(&self, member: &Member) -> Option<&'a Sid> {
        member.sid.iter().chain(&member.primary_group).find_map(|sid| self.of(sid))
    }

    /// The one by whose denial nobody of a principal may.
    fn whole(&self, to: &Sid, principal: Option<&Principal>) -> Option<&'a Sid> {
        let members = match principal {
            Some(Principal::Group(Group { members: Some(members), wide: None, is_distribution: false, .. })) => {
                members.as_slice()
            }
            Some(Principal::Single(single)) => std::slice::from_ref(single),
            _ => &[],
        };
        let of_members = || {
            let by = self.of_member(members.first()?)?;
            members.iter().all(|member| self.of_member(member).is_some()).then_some(by)
        };
        self.of(to).or_else(of_members)
    }
}

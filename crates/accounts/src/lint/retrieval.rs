//! Faults of the list of principals that may retrieve an account's password.
//!
//! Invariant: entries count in their order, as the domain controller reads them: a denial counts only against the entries after it.

use std::collections::BTreeSet;

use gmsa_core::{
    diagnostic::{Diagnostic, Severity, rules, rules::Rule},
    quote::{Quoted, first_five, shell::powershell},
};
use time::UtcDateTime;

use super::{
    LATER, LDAPSEARCH, OF_NODES, RETRIEVERS, WITHOUT_DENIALS, finding, found, quoted, set, set_retrievers, to_security,
};
use crate::principal::{DirectoryPrincipal, Group, Member, Obstacle, Principals, foreign};
use gmsa_directory::{
    AccessRule, Retrieval, Sid, Unknown,
    account::Account,
    entry::{first_value, parts},
    identifier::{EVERYBODY, wide_by_name},
};

const NO_PASSWORD: &str = "no container starts with the account there";

/// Faults of the list of principals that may retrieve the password.
pub(super) fn retrieval(account: &Account, principals: &Principals, now: UtcDateTime) -> Vec<Diagnostic> {
    // A missing property is another finding.
    let Some(retrieval) = &account.retrieval else { return Vec::new() };
    let whole: Option<(&'static Rule, _)> = match retrieval {
        Retrieval::Unreadable => Some((&rules::ACCOUNT_HOSTS, "is no security descriptor")),
        Retrieval::Everybody => {
            Some((&rules::ACCOUNT_HOSTS_WIDE, "has no list, so everybody may retrieve the password"))
        }
        _ if of_controllers(retrieval) => {
            Some((&rules::ACCOUNT_HOSTS, "holds only domain controllers, on which no pod runs"))
        }
        _ if !retrieval.is_empty() => None,
        _ if retrieval.rules().is_empty() => Some((&rules::ACCOUNT_HOSTS, "is empty")),
        _ => Some((&rules::ACCOUNT_HOSTS, "denies it to some and allows it to none")),
    };
    if let Some((rule, problem)) = whole {
        let why = "no host gets the password, so no container starts with the account";
        return vec![if *rule == rules::ACCOUNT_HOSTS {
            finding(rule, account, RETRIEVERS, problem, why, set_retrievers(account, OF_NODES))
        } else {
            found(rule, account, RETRIEVERS, problem)
        }];
    }
    if let Retrieval::Named(names) = retrieval {
        let found = |(known, who)| {
            let problem = format!("holds {known}, so {who} may retrieve the password");
            found(&rules::ACCOUNT_HOSTS_WIDE, account, RETRIEVERS, problem)
        };
        return names.iter().filter_map(|name| wide_named(name)).map(found).collect();
    }
    let mut list: Vec<Diagnostic> = Vec::new();
    let (mut denied, mut seen) = (Denied::default(), BTreeSet::new());
    let mut is_given = false;
    for AccessRule { allows, to } in retrieval.rules() {
        if !allows {
            denied.add(to, principals);
        } else if seen.insert(to) {
            let fault = fault(account, to, &denied, principals, now);
            is_given |= fault.as_ref().is_none_or(|(.., gives)| *gives);
            list.extend(fault.map(|(rule, message, fix, _)| found(rule, account, RETRIEVERS, message).fixed(fix)));
        }
    }
    // If no other principal is listed, no principal gets it.
    let is_nobody = !is_given && retrieval.unknown().is_empty() && !seen.is_empty();
    for found in list.iter_mut().filter(|_| is_nobody) {
        found.severity = Severity::Error;
        found.consequence = Some(NO_PASSWORD);
    }
    list.extend(not_printed(account, retrieval, principals));
    list.extend(retrieval.unknown().iter().map(|Unknown { kind, to }| {
        let who = to.as_ref().map_or("a principal".to_owned(), |sid| Quoted::new(&principals.name(sid)).to_string());
        let problem = match kind {
            0 | 1 => format!("holds an entry for {who} with generic rights alone, which an access check need not map"),
            _ => format!("holds an entry for {who} that is not understood (kind {kind})"),
        };
        let why = "it may give the right to retrieve the password, or take it";
        finding(&rules::ACCOUNT_HOSTS_UNKNOWN, account, RETRIEVERS, problem, why, None)
    }));
    list
}

/// The wide group that PowerShell printed by name, and who is in it.
fn wide_named(name: &str) -> Option<(&'static str, &'static str)> {
    let known = foreign(name).as_ref().and_then(Sid::well_known);
    let known = known.or_else(|| wide_by_name(&first_value(name), parts(name).nth(1)?))?;
    Some((known.name, known.wide?))
}

/// Whether a list allows it to domain controllers alone.
fn of_controllers(retrieval: &Retrieval) -> bool {
    let is_named = |name: &String| {
        foreign(name).map_or_else(|| first_value(name) == "Domain Controllers", |sid| sid.is_of_controllers())
    };
    if let Retrieval::Named(names) = retrieval {
        return !names.is_empty() && names.iter().all(is_named);
    }
    let mut allowed = retrieval.principals().peekable();
    allowed.peek().is_some() && retrieval.unknown().is_empty() && allowed.all(Sid::is_of_controllers)
}

/// The principals that may log on to the account's services as any user, if that is everybody.
pub(super) fn delegated(account: &Account) -> Option<Diagnostic> {
    let wide = |sid: &Sid| {
        let known = sid.well_known().or_else(|| sid.wide_group())?;
        Some((known.name, known.wide?))
    };
    let (holds, who) = match account.delegation.as_ref()? {
        Retrieval::Everybody => ("no list", EVERYBODY),
        Retrieval::Named(names) => names.iter().find_map(|name| wide_named(name))?,
        listed => listed.principals().find_map(wide)?,
    };
    let problem = format!(
        "holds {holds}, so {who} may log on to the services of the account as any user, administrators included"
    );
    let why = "resource-based delegation: one user of the domain is enough to take the services over";
    let fix = set(account, "-PrincipalsAllowedToDelegateToAccount $null");
    Some(finding(&rules::ACCOUNT_WEAKENED, account, "PrincipalsAllowedToDelegateToAccount", problem, why, fix))
}

/// Principals that could not be checked, because the file does not hold them.
fn not_printed(account: &Account, retrieval: &Retrieval, principals: &Principals) -> Vec<Diagnostic> {
    let (mut bare, mut unknown, mut unseen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for AccessRule { to, .. } in retrieval.rules() {
        match principals.get(to) {
            Some(DirectoryPrincipal::NotPrinted) => {
                unknown.insert(to.to_string());
            }
            Some(DirectoryPrincipal::Group(group)) if principals.is_printed => match &group.members {
                Some(members) => {
                    let by_name = members.iter().filter(|member| member.sid.is_none());
                    unseen.extend(by_name.map(|member| Quoted::new(&member.name).to_string()));
                }
                None if group.wide.is_none() && !group.is_distribution => {
                    bare.insert(Quoted::new(&group.name).to_string());
                }
                None => {}
            },
            _ => {}
        }
    }
    let [members, others, groups] = [bare, unknown, unseen].map(|names| first_five(&names));
    let notes = [
        (&members, format!("holds no members of {members}, so whether there are any")),
        (&others, format!("does not hold {others}, so who may retrieve the password")),
        (&groups, format!("does not hold the members {groups} of its groups, so whether these are groups")),
    ];
    let note = |problem: String| {
        let problem = format!("the file {problem} could not be checked");
        found(&rules::NOT_CHECKED, account, RETRIEVERS, problem).with_fix(LDAPSEARCH).with_severity(Severity::Note)
    };
    notes.into_iter().filter(|(names, _)| !names.is_empty()).map(|(_, problem)| note(problem)).collect()
}

/// A fault of an entry that allows a principal: its rule, its message, its remedy, and whether anybody still gets the password by the entry.
type EntryFault = (&'static Rule, String, Option<String>, bool);

/// Why an allowed principal does not get the password after these denials, or why too many get it.
fn fault(
    account: &Account,
    to: &Sid,
    denied: &Denied<'_>,
    principals: &Principals,
    now: UtcDateTime,
) -> Option<EntryFault> {
    let principal = principals.get(to);
    if let Some(by) = denied.whole(to, principal) {
        let (who, by) = (Quoted::new(&principals.name(to)).to_string(), Quoted::new(&principals.name(by)).to_string());
        let message = format!("allows it to {who}, after it is denied to {by}, so {who} may not");
        return Some((&rules::ACCOUNT_HOSTS_DENIED, message, set_retrievers(account, WITHOUT_DENIALS), false));
    }
    let principal = principal?;
    if let Some((name, who)) = principal.wide() {
        let holds = match principal {
            DirectoryPrincipal::Group(group) if group.name != name => {
                format!("group {}, in which {name} is", Quoted::new(&group.name))
            }
            _ => name.to_owned(),
        };
        let message = format!("holds {holds}, so {who} may retrieve the password");
        return Some((&rules::ACCOUNT_HOSTS_WIDE, message, None, true));
    }
    let (rule, message, fix) = match principal {
        DirectoryPrincipal::WellKnown(known) if known.is_local => {
            let message = format!("holds {}, which no client has that logs on over the network", known.name);
            (&rules::ACCOUNT_HOSTS_EMPTY, message, set_retrievers(account, OF_NODES))
        }
        DirectoryPrincipal::Orphan => (&rules::ACCOUNT_HOSTS_ORPHANED, format!("{to} no longer exists"), None),
        DirectoryPrincipal::Group(Group { name, is_distribution: true, .. }) => {
            let message =
                format!("group {} is a distribution group, which gives no access to its members", Quoted::new(name));
            (&rules::ACCOUNT_HOSTS_DISTRIBUTION, message, to_security(name))
        }
        DirectoryPrincipal::Group(Group { name, is_domain_local: true, .. }) if is_of_another_domain(account, to) => {
            let message = format!(
                "group {} is a domain-local group of another domain, which gives its members nothing in the domain of the account",
                Quoted::new(name)
            );
            let fix = powershell(name).map(|name| format!("Set-ADGroup {name} -GroupScope Universal{LATER}"));
            (&rules::ACCOUNT_HOSTS_EMPTY, message, fix)
        }
        DirectoryPrincipal::Group(group @ Group { members: Some(members), .. }) => {
            return fault_of_members(account, group, members, denied, now);
        }
        // To log on and retrieve its password, the account would already need it.
        DirectoryPrincipal::Single(_) if account.sid.as_ref() == Some(to) => {
            let message = "holds the account itself, which needs its password to log on".to_owned();
            (&rules::ACCOUNT_HOSTS_EMPTY, message, set_retrievers(account, OF_NODES))
        }
        DirectoryPrincipal::Single(member) => {
            let Obstacle { what, command, .. } = member.obstacle?.at(now)?;
            let message = format!("holds {}, which {what}, so it cannot log on", Quoted::new(&member.name));
            (&rules::ACCOUNT_HOSTS_EMPTY, message, remove(member, command))
        }
        _ => return None,
    };
    Some((rule, message, fix, false))
}

/// Why members of a group do not get the password.
fn fault_of_members(
    account: &Account,
    Group { name, distribution, .. }: &Group,
    members: &[Member],
    denied: &Denied<'_>,
    now: UtcDateTime,
) -> Option<EntryFault> {
    let (denied, allowed): (Vec<&Member>, Vec<&Member>) =
        members.iter().partition(|member| denied.of_member(member).is_some());
    let group = Quoted::new(name);
    if let Some(inner) = distribution {
        let message = format!(
            "group {group} holds {}, a distribution group, which gives no access to its members",
            Quoted::new(inner)
        );
        return Some((&rules::ACCOUNT_HOSTS_DISTRIBUTION, message, to_security(inner), !allowed.is_empty()));
    }
    if members.is_empty() {
        return Some((&rules::ACCOUNT_HOSTS_EMPTY, format!("group {group} has no members"), None, false));
    }
    let obstacles: Vec<_> = members.iter().filter_map(|member| Some((member, member.obstacle?.at(now)?))).collect();
    if obstacles.len() == members.len() {
        let names = quoted(members.iter().map(|member| member.name.as_str()));
        let (first, Obstacle { what, command, .. }) = *obstacles.first()?;
        let message = if obstacles.iter().all(|(_, other)| other.what == what) {
            format!("every member of group {group} {what}: {names}")
        } else {
            format!("no member of group {group} can log on: {names}; {} {what}", Quoted::new(&first.name))
        };
        return Some((&rules::ACCOUNT_HOSTS_EMPTY, message, remove(first, command), false));
    }
    // Computers renew their passwords themselves; a user that a plugin logs on as does not.
    if let Some((message, fix)) = users_of(name, &obstacles) {
        return Some((&rules::ACCOUNT_HOSTS_EMPTY, message, fix, true));
    }
    let names = quoted(denied.iter().map(|member| member.name.as_str()));
    let message = format!("denies it to {names} of group {group}, before it is allowed to the group");
    let fix = set_retrievers(account, WITHOUT_DENIALS);
    (!denied.is_empty()).then_some((&rules::ACCOUNT_HOSTS_DENIED, message, fix, !allowed.is_empty()))
}

/// The users of a group that cannot log on, and what lets them.
fn users_of(group: &str, obstacles: &[(&Member, Obstacle)]) -> Option<(String, Option<String>)> {
    let users: Vec<_> = obstacles.iter().filter(|(member, _)| !member.name.ends_with('$')).collect();
    let ((first, Obstacle { what, .. }), others) = users.split_first()?;
    let more = others.iter().map(|(other, Obstacle { what, .. })| format!(", {} {what}", Quoted::new(&other.name)));
    let (more, they) = (more.collect::<String>(), if others.is_empty() { "it" } else { "they" });
    let message =
        format!("{} of group {} {what}{more}, so {they} cannot log on", Quoted::new(&first.name), Quoted::new(group));
    let fixes = users.iter().map(|(user, obstacle)| remove(user, obstacle.command));
    Some((message, fixes.collect::<Option<Vec<_>>>().map(|fixes| fixes.join("; "))))
}

fn is_of_another_domain(account: &Account, sid: &Sid) -> bool {
    let of_sid = sid.split().map(|(domain, _)| domain);
    account.domain_sid().zip(of_sid).is_some_and(|(own, other)| own != other)
}

/// The fix that lets a user or a computer log on again.
fn remove(member: &Member, command: &str) -> Option<String> {
    // `Set-ADUser` does not find computers.
    let computer = member.name.strip_suffix('$').and_then(|_| command.strip_prefix("Set-ADUser"));
    let command = computer.map_or_else(|| command.to_owned(), |rest| format!("Set-ADComputer{rest}"));
    Some(command.replacen("NAME", &powershell(&member.name)?, 1))
}

/// The principals that earlier entries deny.
#[derive(Default)]
struct Denied<'a> {
    /// Set if everybody is denied: the SID of that entry.
    everybody: Option<&'a Sid>,
    /// Each denied SID, with the SID of the entry: the same, or a group.
    sids: Vec<(&'a Sid, &'a Sid)>,
}

impl<'a> Denied<'a> {
    fn add(&mut self, to: &'a Sid, principals: &'a Principals) {
        self.sids.push((to, to));
        match principals.get(to) {
            Some(principal) if principal.wide().is_some_and(|(_, who)| who == EVERYBODY) => {
                self.everybody.get_or_insert(to);
            }
            Some(DirectoryPrincipal::Group(group)) if !group.is_distribution => {
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

    /// The SID whose denial excludes all members of a principal.
    fn whole(&self, to: &Sid, principal: Option<&DirectoryPrincipal>) -> Option<&'a Sid> {
        let members = match principal {
            Some(DirectoryPrincipal::Group(Group {
                members: Some(members),
                wide: None,
                is_distribution: false,
                ..
            })) => members.as_slice(),
            Some(DirectoryPrincipal::Single(single)) => std::slice::from_ref(single),
            _ => &[],
        };
        let of_members = || {
            let by = self.of_member(members.first()?)?;
            members.iter().all(|member| self.of_member(member).is_some()).then_some(by)
        };
        self.of(to).or_else(of_members)
    }
}

//! Accounts in groups that administer the domain: everybody who runs a pod with such an account does too.

use std::collections::BTreeSet;

use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    quote::Quoted,
};
use gmsa_directory::{Directory, Error, Sid, account::Account, entry::first_value};

use super::{finding, for_logon};
use crate::principal::{DirectoryPrincipal, Group, Principals};

/// By their numbers; those in BUILTIN begin with 544 (Microsoft: Protected accounts and groups in Active Directory).
const GROUPS: [(u32, &str); 10] = [
    (512, "Domain Admins"),
    (519, "Enterprise Admins"),
    (518, "Schema Admins"),
    (526, "Key Admins"),
    (527, "Enterprise Key Admins"),
    (544, "Administrators"),
    (551, "Backup Operators"),
    (548, "Account Operators"),
    (549, "Server Operators"),
    (550, "Print Operators"),
];

const FIELD: &str = "MemberOf";
const WHY: &str = "everybody who runs a pod with the account can take the domain over";

/// A group that the account is a member of itself.
pub(super) fn privileged(account: &Account) -> Option<Diagnostic> {
    let is_own = |known: &str| account.groups.iter().any(|group| first_value(group).eq_ignore_ascii_case(known));
    let (_, group) = GROUPS.iter().find(|(_, known)| is_own(known))?;
    let fix = for_logon(account, &format!("Remove-ADGroupMember '{group}' -Members NAME"));
    Some(finding(&rules::ACCOUNT_WEAKENED, account, FIELD, format!("holds {group}"), WHY, fix))
}

/// A group that an account is in by others.
pub(super) async fn nested(directory: &mut Directory, accounts: &[&Account]) -> Result<Vec<Diagnostic>, Error> {
    let domains: BTreeSet<Sid> = accounts.iter().filter_map(|one| one.domain_sid()).collect();
    let sids = GROUPS.iter().flat_map(|(number, _)| match number {
        544.. => Vec::from_iter(Sid::parse(&format!("S-1-5-32-{number}"))),
        _ => domains.iter().map(|domain| domain.of(*number)).collect(),
    });
    let sids: Vec<Sid> = sids.collect();
    let groups = Principals::read_all(directory, sids.iter()).await?;
    let of_account = |one: &&Account| {
        let holds = |sid: &&Sid| match groups.get(sid) {
            Some(DirectoryPrincipal::Group(Group { members: Some(members), .. })) => {
                members.iter().any(|member| member.sid.is_some() && member.sid == one.sid)
            }
            _ => false,
        };
        let group = groups.name(sids.iter().find(holds).filter(|_| privileged(one).is_none())?);
        let fix = "Get-ADPrincipalGroupMembership NAME lists its groups: remove it from the one that leads there";
        let problem = format!("leads to {}", Quoted::new(&group));
        Some(finding(&rules::ACCOUNT_WEAKENED, one, FIELD, problem, WHY, for_logon(one, fix)))
    };
    Ok(accounts.iter().filter_map(of_account).collect())
}

//! Users and computers that have the name of an account without its `$`.

use std::collections::BTreeMap;

use gmsa_core::{
    diagnostic::{Diagnostics, rules},
    quote::Quoted,
};

use super::{found, not_checked};
use gmsa_directory::{Directory, Error, LdapFilter, account::Account, entry::base_of};

/// Other objects with these names, in the domain of each account.
pub(super) async fn namesakes(directory: &mut Directory, accounts: &[&Account]) -> Result<Diagnostics, Error> {
    const NAME: &str = "sAMAccountName";
    let mut by_domain: BTreeMap<String, Vec<&Account>> = BTreeMap::new();
    for account in accounts {
        let base = if directory.is_live() { base_of(&account.name) } else { String::new() };
        by_domain.entry(base).or_default().push(account);
    }
    let (mut list, mut unread) = (Diagnostics::default(), BTreeMap::new());
    for (base, accounts) in by_domain {
        let by: Vec<_> = accounts.iter().map(|account| LdapFilter::equals(NAME, account.sam.as_str())).collect();
        for entry in directory.search_any(&base, &by, &[NAME], &mut unread).await? {
            let of_name =
                |account: &&&Account| entry.text(NAME).is_some_and(|name| name.eq_ignore_ascii_case(&account.sam));
            list.extend(accounts.iter().find(of_name).map(|account| {
                let problem = format!("{} has the same name: {}", Quoted::new(&entry.name), Quoted::new(&account.sam));
                found(&rules::ACCOUNT_USER_NAME, account, "SamAccountName", problem)
            }));
        }
    }
    let unread = unread.iter().map(|(domain, error)| not_checked("users with the name of an account", domain, error));
    list.extend(unread);
    Ok(list)
}

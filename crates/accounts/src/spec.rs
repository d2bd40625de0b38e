//! A new credential spec for an account of a directory.

use anyhow::{Context as _, bail, ensure};
use gmsa_core::{
    credspec::{
        generate::{Draft, Plugin},
        lint::suggest_name,
    },
    diagnostic::Diagnostic,
    quote::one_line,
};
use gmsa_directory::{
    Directory, Error,
    account::{Account, AccountName},
};
use time::UtcDateTime;

use crate::lint::ended;

/// Every group Managed Service Account of a domain, by default of the controller's own.
///
/// # Errors
/// If there is none, or the directory cannot be asked.
pub async fn accounts(directory: &mut Directory, domain: Option<&str>) -> anyhow::Result<Vec<Account>> {
    let mut found = directory.accounts(domain).await?;
    found.retain(Account::is_group_managed);
    found.sort_by_key(|account| account.sam.to_lowercase());
    if found.is_empty() {
        bail!("there is not a group Managed Service Account in {}", domain.unwrap_or("the directory"));
    }
    Ok(found)
}

/// The credential spec of an account, and why no pod can log on with it, or soon none. Its default name is made from the account's.
///
/// # Errors
/// If the account or an additional one cannot have one.
pub async fn draft(
    directory: &mut Directory,
    account: &Account,
    name: Option<String>,
    additional: &[String],
    plugin: Option<Plugin>,
) -> anyhow::Result<(Draft, Vec<Diagnostic>)> {
    ensure!(account.is_group_managed(), "{} is not a group Managed Service Account", account.name);
    let left_over = "is a deleted object, or a conflict of replication: restore it, or name the account that is there";
    ensure!(!account.is_left_over, "{} {left_over}", one_line(&account.name));
    let forest = directory.forest.as_ref().ok_or(Error::NoDomains)?;
    let of_account = forest.of_object(&account.name).map(|domain| domain.facts.clone());
    let domain = of_account.with_context(|| format!("{} is in no domain of the forest", account.name))?;
    for additional in additional {
        let name = AccountName::Sam(additional.clone(), Some(domain.dns.clone()));
        let found = directory.account(&name).await?;
        let found = found.with_context(|| format!("there is no account {additional} in {}", domain.dns))?;
        ensure!(found.is_group_managed(), "{} is not a group Managed Service Account", found.name);
    }
    let name = name.unwrap_or_else(|| suggest_name(&account.sam));
    let found = ended(account, UtcDateTime::now()).collect();
    Ok((Draft::new(name, account.sam.clone(), domain, additional, plugin), found))
}

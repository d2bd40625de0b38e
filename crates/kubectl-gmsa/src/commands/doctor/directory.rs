//! The comparison of credential specs with the directories.

use gmsa_core::diagnostic::Diagnostic;
use gmsa_directory::{
    Directory,
    account::Account,
    lint::{self, SAID_OF_SPECS},
    principal::Principals,
};
use serde_json::Value;
use time::UtcDateTime;

use crate::shared::{
    directory::Source,
    unread::{Read, Unread},
};

pub(super) const DIRECTORY: &str = "directory";

/// Checks in the directories that the account of each credential spec exists, is enabled, and has a principal that may retrieve its
/// password, and that all fields are right. Reports directories that cannot be opened, and asks the others.
pub(super) async fn ask(sources: Vec<Source>, specs: &[Value]) -> Read<Vec<Diagnostic>> {
    let unread = |error| Unread::of("read", "the directory", &error);
    let (mut directories, mut closed) = (Vec::new(), Vec::new());
    for source in sources {
        match source.open().await {
            Ok(directory) => directories.push(directory),
            Err(error) => closed.push(unread(error)),
        }
    }
    if directories.is_empty()
        && let Some(first) = closed.first()
    {
        return Err(first.clone());
    }
    let mut list = found(directories, specs).await.map_err(unread)?;
    list.extend(closed.iter().filter_map(|unread| unread.check(DIRECTORY).result.err()));
    Ok(list)
}

async fn found(mut directories: Vec<Directory>, specs: &[Value]) -> anyhow::Result<Vec<Diagnostic>> {
    let (mut list, now) = (Vec::new(), UtcDateTime::now());
    let mut accounts: Vec<Vec<Account>> = directories.iter().map(|_| Vec::new()).collect();
    for spec in specs {
        let name = spec.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let found = lint::credential_spec(&mut directories, spec, now).await?;
        list.extend(found.found.into_iter().map(|found| Diagnostic { object: name.to_owned(), ..found }));
        if let Some((of, account)) =
            found.account.and_then(|(place, account)| Some((accounts.get_mut(place)?, account)))
        {
            of.push(account);
        }
    }
    for (directory, mut accounts) in directories.iter_mut().zip(accounts) {
        // Several credential specs may be for one account.
        accounts.sort_by(|one, other| one.name.cmp(&other.name));
        accounts.dedup_by(|one, other| one.name == other.name);
        let principals = Principals::of(directory, &accounts).await?;
        let of_accounts = lint::accounts(directory, &accounts, &principals, &[], now).await?;
        let of_accounts = of_accounts.into_iter().filter(|found| !SAID_OF_SPECS.contains(&found.rule));
        list.extend(of_accounts.map(|found| match found.more {
            0 => found,
            more => Diagnostic { message: format!("{} (and {more} more like this)", found.message), ..found },
        }));
    }
    Ok(list)
}

//! What the directory says of the credential specs.

use gmsa_core::diagnostic::Diagnostic;
use gmsa_directory::{
    Directory,
    lint::{self, SAID_OF_SPECS, SpecFindings},
    principal::Principals,
};
use serde_json::Value;
use time::UtcDateTime;

use crate::shared::{
    directory::Source,
    not_checked::{Read, Unread},
};

/// Asks the directory whether the account of each credential spec exists, is enabled, and has somebody who may retrieve its password, and
/// whether all fields are right.
pub async fn ask(source: Source, specs: &[Value]) -> Read<Vec<Diagnostic>> {
    let asked = async { found(source.open().await?, specs).await };
    asked.await.map_err(|error| Unread::of("read", "the directory", &error))
}

async fn found(mut directory: Directory, specs: &[Value]) -> anyhow::Result<Vec<Diagnostic>> {
    let (mut list, mut accounts, now) = (Vec::new(), Vec::new(), UtcDateTime::now());
    for spec in specs {
        let name = spec.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let SpecFindings { found, account, is_elsewhere } = lint::credential_spec(&mut directory, spec, now).await?;
        let found = found.into_iter().chain(is_elsewhere.then(|| lint::elsewhere(spec)));
        list.extend(found.map(|found| Diagnostic { object: name.to_owned(), ..found }));
        accounts.extend(account);
    }
    // Several credential specs may be for one account.
    accounts.sort_by(|one, other| one.name.cmp(&other.name));
    accounts.dedup_by(|one, other| one.name == other.name);
    let principals = Principals::of(&mut directory, &accounts).await?;
    let of_accounts = lint::accounts(&mut directory, &accounts, &principals, &[], now).await?;
    let of_accounts = of_accounts.into_iter().filter(|found| !SAID_OF_SPECS.contains(&found.rule));
    list.extend(of_accounts.map(|found| match found.more {
        0 => found,
        more => Diagnostic { message: format!("{} (and {more} more like this)", found.message), ..found },
    }));
    Ok(list)
}

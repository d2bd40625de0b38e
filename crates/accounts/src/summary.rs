//! The properties of accounts in the directory, for people.

use std::{collections::BTreeSet, fmt::Write as _};

use gmsa_core::quote::{MESSAGE, first_five, one_line, shorten};
use gmsa_directory::{
    Retrieval, Sid,
    account::{Account, encryption_names},
};

use time::format_description::well_known::Rfc3339;

use crate::principal::{DirectoryPrincipal, Group, Principals};

/// The columns of [`rows`].
pub const COLUMNS: [&str; 5] = ["ACCOUNT", "DOMAIN", "ENABLED", "ENCRYPTION", "PASSWORD FOR"];

/// A row for each account.
pub fn rows(accounts: &[Account], principals: &Principals) -> BTreeSet<[String; 5]> {
    let row = |one: &Account| {
        let enabled = one.enabled.map_or("-", yes_or_no);
        [
            one.sam.clone(),
            one.domain().unwrap_or_default(),
            enabled.to_owned(),
            encryption_names(one.encryption.unwrap_or_default()).join(", "),
            first_five(retrievers(one, principals)),
        ]
    };
    accounts.iter().map(row).collect()
}

/// One account, a line for each property.
pub fn properties(one: &Account, principals: &Principals) -> String {
    let or = |texts: Vec<String>, none: &str| if texts.is_empty() { vec![none.to_owned()] } else { texts };
    let text = |text: Option<String>| Vec::from_iter(text);
    let encryption = encryption_names(one.encryption.unwrap_or_default());
    let set = one.password_set.and_then(|set| Some(format!("set {}", set.format(&Rfc3339).ok()?)));
    let every = one.password_interval.map(|days| format!("changes every {days} days"));
    let password: Vec<String> = set.into_iter().chain(every).collect();
    let rows: [(&str, Vec<String>); 10] = [
        ("Account", vec![one.sam.clone()]),
        ("Name", vec![one.name.clone()]),
        ("Class", text(one.class.clone())),
        ("Enabled", text(one.enabled.map(|enabled| yes_or_no(enabled).to_owned()))),
        ("SID", text(one.sid.as_ref().map(Sid::to_string))),
        ("DNS host name", text(one.host_name.clone())),
        ("Services", or(one.services().to_vec(), "none")),
        ("Encryption", vec![if encryption.is_empty() { "not set".to_owned() } else { encryption.join(", ") }]),
        ("Password", vec![password.join(", ")]),
        ("Password for", retrievers(one, principals)),
    ];
    let mut out = String::new();
    for (name, values) in rows.iter().filter(|(_, values)| values.iter().any(|value| !value.is_empty())) {
        for (place, value) in values.iter().enumerate() {
            let name = if place == 0 { format!("{name}:") } else { String::new() };
            // Writing into a String cannot fail.
            let _ = writeln!(out, "{name:14} {}", one_line(value));
        }
    }
    out
}

fn yes_or_no(enabled: bool) -> &'static str {
    if enabled { "yes" } else { "no" }
}

/// The principals that may retrieve the password.
fn retrievers(account: &Account, principals: &Principals) -> Vec<String> {
    let all = match &account.retrieval {
        None | Some(Retrieval::Unreadable) => return vec!["not known".to_owned()],
        Some(Retrieval::Everybody) => return vec!["Everyone".to_owned()],
        Some(Retrieval::Named(names)) => names.clone(),
        Some(listed @ Retrieval::Listed { .. }) => {
            let unknown = listed.unknown().iter().map(|entry| match &entry.to {
                None => "an entry that is not understood".to_owned(),
                Some(sid) => format!("{} (an entry that is not understood)", principals.name(sid)),
            });
            listed.principals().map(|sid| retriever(sid, principals)).chain(unknown).collect()
        }
    };
    if all.is_empty() {
        return vec!["nobody".to_owned()];
    }
    all.iter().map(|one| shorten(one, MESSAGE).into_owned()).collect()
}

fn retriever(sid: &Sid, principals: &Principals) -> String {
    match principals.get(sid) {
        Some(DirectoryPrincipal::Group(Group { name, members: None, .. })) => format!("group {name}"),
        Some(DirectoryPrincipal::Group(Group { name, members: Some(members), .. })) if members.is_empty() => {
            format!("group {name} (no members)")
        }
        Some(DirectoryPrincipal::Group(Group { name, members: Some(members), .. })) => {
            format!("group {name} ({})", first_five(members.iter().map(|member| &member.name)))
        }
        Some(DirectoryPrincipal::Orphan) => format!("{sid} (no longer exists)"),
        _ => principals.name(sid),
    }
}

//! `account get`: what the directory holds of accounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use clap::{Args, builder::NonEmptyStringValueParser};
use gmsa_core::{
    account::encryption_names,
    quote::{MESSAGE, one_line, shorten},
};
use serde::Serialize;

use crate::shared::{
    Outcome,
    connection::block_on,
    directory::{self, DirectoryOptions},
    output::{Shape, first_five, json, table::table},
    print,
};
use gmsa_directory::{
    Retrieval, Sid,
    account::Found,
    principal::{Principal, Principals},
};

#[derive(Debug, Args)]
pub struct Options {
    /// The account: its SAM name, NAME@DOMAIN, DOMAIN\NAME or a distinguished name; repeatable [default: all of the domain]
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
    #[command(flatten)]
    directory: DirectoryOptions,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Shape,
}

#[derive(Debug, Serialize)]
struct Accounts<'p> {
    accounts: Vec<Shown<'p>>,
}

/// An account, as JSON shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'p> {
    name: String,
    domain: String,
    distinguished_name: String,
    class: Option<String>,
    enabled: Option<bool>,
    sid: Option<String>,
    guid: Option<String>,
    dns_host_name: Option<String>,
    service_principal_names: Vec<String>,
    encryption_types: Vec<&'static str>,
    /// In days.
    password_interval: Option<i64>,
    /// In UTC, to the second.
    password_last_set: Option<String>,
    /// `null` where it is not known.
    may_retrieve: Option<Vec<Retriever<'p>>>,
}

/// One that may retrieve the password.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Retriever<'p> {
    sid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    kind: &'static str,
    /// Of a group, those of nested ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<&'p [String]>,
}

/// An entry that may give the right, or take it.
const NOT_UNDERSTOOD: &str = "notUnderstood";

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let source = options.directory.source()?;
    let (found, principals) = block_on(async {
        let Some(source) = source else { anyhow::bail!("missing: --directory URL, DOMAIN or FILE") };
        let mut opened = source.open().await?;
        let mut found = Vec::new();
        for name in &options.names {
            found.push(directory::account(&mut opened, name).await?);
        }
        if options.names.is_empty() {
            found = opened.accounts().await?;
        }
        let mut principals = Principals::default();
        principals.look_up(&mut opened, found.iter().flat_map(Found::named)).await?;
        Ok((found, principals))
    })?;
    if options.output == Shape::Json && size(&found, &principals) > MAX_SIZE {
        anyhow::bail!("those who may retrieve the passwords take more than 64 MiB to print: name single accounts");
    }
    let accounts: Vec<Shown<'_>> = found.iter().map(|found| Shown::of(found, &principals)).collect();
    match options.output {
        Shape::Json => print(json::object(Outcome::Clean, Accounts { accounts })?),
        Shape::Table if accounts.is_empty() => print("no group Managed Service Accounts\n"),
        Shape::Table => print(match accounts.as_slice() {
            [one] if !options.names.is_empty() => properties(one),
            all => list(all),
        }),
    }
}

/// The most bytes that are printed of those who may retrieve passwords: each account prints the members of its groups again.
const MAX_SIZE: usize = 64 << 20;

/// About how many bytes they take.
fn size(accounts: &[Found], principals: &Principals) -> usize {
    const ONE: usize = 64;
    let of_one = |sid: &Sid| match principals.get(sid) {
        Some(Principal::Group { members: Some(members), .. }) => members.iter().map(|name| ONE + name.len()).sum(),
        _ => ONE,
    };
    let mut sizes: BTreeMap<&Sid, usize> = BTreeMap::new();
    accounts.iter().flat_map(Found::named).map(|sid| *sizes.entry(sid).or_insert_with(|| of_one(sid))).sum()
}

fn list(accounts: &[Shown<'_>]) -> String {
    let row = |one: &Shown<'_>| {
        let enabled = one.enabled.map_or("-", |enabled| if enabled { "yes" } else { "no" });
        let retrievers = one.retrievers();
        [
            one.name.clone(),
            one.domain.clone(),
            enabled.to_owned(),
            one.encryption_types.join(", "),
            first_five(&retrievers),
        ]
    };
    table(
        ["ACCOUNT", "DOMAIN", "ENABLED", "ENCRYPTION", "PASSWORD FOR"],
        &accounts.iter().map(row).collect::<BTreeSet<_>>(),
    )
}

/// One account, a line for each property.
fn properties(one: &Shown<'_>) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let lines = |texts: Vec<String>| if texts.is_empty() { vec!["none".to_owned()] } else { texts };
    let rows: [(&str, Vec<String>); 10] = [
        ("Account", vec![one.name.clone()]),
        ("Name", vec![one.distinguished_name.clone()]),
        ("Class", vec![text(&one.class)]),
        ("Enabled", vec![one.enabled.map_or(String::new(), |enabled| if enabled { "yes" } else { "no" }.to_owned())]),
        ("SID", vec![text(&one.sid)]),
        ("DNS host name", vec![text(&one.dns_host_name)]),
        ("Services", lines(one.service_principal_names.clone())),
        (
            "Encryption",
            vec![if one.encryption_types.is_empty() { "not set".to_owned() } else { one.encryption_types.join(", ") }],
        ),
        ("Password", {
            let set = one.password_last_set.as_ref().map(|set| format!("set {set}"));
            let every = one.password_interval.map(|days| format!("changes every {days} days"));
            vec![set.into_iter().chain(every).collect::<Vec<_>>().join(", ")]
        }),
        ("Password for", one.retrievers()),
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

impl<'p> Shown<'p> {
    fn of(found: &Found, principals: &'p Principals) -> Self {
        let account = found.account(principals);
        Self {
            name: account.sam,
            domain: found.domain.clone(),
            distinguished_name: found.name.clone(),
            class: account.class,
            enabled: account.enabled,
            sid: account.sid,
            guid: account.guid,
            dns_host_name: found.host_name.clone(),
            service_principal_names: account.service_principals.unwrap_or_default(),
            encryption_types: encryption_names(account.encryption.unwrap_or_default()),
            password_interval: found.password_interval,
            password_last_set: found.password_set.map(|set| {
                let (date, time) = (set.date(), set.time());
                format!("{date}T{:02}:{:02}:{:02}Z", time.hour(), time.minute(), time.second())
            }),
            may_retrieve: found.retrieval.as_ref().and_then(|retrieval| Retriever::all(retrieval, principals)),
        }
    }
}

impl Shown<'_> {
    /// Who may retrieve the password, for people.
    fn retrievers(&self) -> Vec<String> {
        match self.may_retrieve.as_deref() {
            None => vec!["not known".to_owned()],
            Some([]) => vec!["nobody".to_owned()],
            Some(some) => some.iter().map(|one| shorten(&one.text(), MESSAGE).into_owned()).collect(),
        }
    }
}

impl<'p> Retriever<'p> {
    fn all(retrieval: &Retrieval, principals: &'p Principals) -> Option<Vec<Self>> {
        let everyone = || Self::of("S-1-1-0".to_owned(), Some(&Principal::WellKnown("Everyone")));
        match retrieval {
            Retrieval::Everybody => Some(vec![everyone()]),
            Retrieval::Listed { .. } => {
                let known = retrieval.principals().map(|sid| Self::of(sid.to_string(), principals.get(sid)));
                let unknown = retrieval.unknown().iter().map(|entry| Self {
                    sid: entry.to.as_ref().map(Sid::to_string).unwrap_or_default(),
                    name: entry.to.as_ref().map(|sid| principals.name(sid)),
                    kind: NOT_UNDERSTOOD,
                    members: None,
                });
                Some(known.chain(unknown).collect())
            }
            Retrieval::Unreadable => None,
        }
    }

    fn of(sid: String, principal: Option<&'p Principal>) -> Self {
        let (kind, name, members) = match principal {
            Some(Principal::Single(name)) => ("user", Some(name.clone()), None),
            Some(Principal::Group { name, members }) => ("group", Some(name.clone()), members.as_deref()),
            Some(Principal::WellKnown(name)) => ("wellKnown", Some((*name).to_owned()), None),
            Some(Principal::Orphan) => ("missing", None, None),
            Some(Principal::Elsewhere) | None => ("unknown", None, None),
        };
        Self { sid, name, kind, members }
    }

    fn text(&self) -> String {
        let name = self.name.as_deref().unwrap_or(&self.sid);
        match (&self.members, self.kind) {
            (Some([]), _) => format!("group {name} (no members)"),
            (Some(members), _) => format!("group {name} ({})", first_five(members)),
            (None, "group") => format!("group {name}"),
            (None, "missing") => format!("{name} (no longer exists)"),
            (None, NOT_UNDERSTOOD) if name.is_empty() => "an entry that is not understood".to_owned(),
            (None, NOT_UNDERSTOOD) => format!("{name} (an entry that is not understood)"),
            (None, _) => name.to_owned(),
        }
    }
}

//! `account lint`: what is wrong with an account of Active Directory, from its properties as PowerShell prints them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::shared::{
    Outcome,
    args::spec_name,
    connection::{Connection, block_on},
    credspecs::is_credential_spec,
    input,
    output::{Filter, Format, Report},
};
use gmsa_cluster::{
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::{
    account::{self, Account},
    causes,
    diagnostic::{Diagnostic, Location, rules},
};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find what is wrong with accounts, before a node asks for their password
    Lint(LintOptions),
}

#[derive(Debug, Args)]
pub struct LintOptions {
    /// A file, or - for standard input, that holds the output of: Get-ADServiceAccount NAME -Properties * | ConvertTo-Json;
    /// repeatable
    #[arg(long = "filename", short, value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Compare with a credential spec: a file that holds one, or the name of one in the cluster
    #[arg(long, value_name = "FILE|NAME")]
    credspec: Option<PathBuf>,
    /// A service principal name that clients ask for, such as http/web.contoso.com; repeatable
    #[arg(long = "service", value_name = "CLASS/HOST")]
    services: Vec<String>,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    let Command::Lint(options) = command;
    let (mut accounts, mut findings, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for path in &options.files {
        let name = if path == Path::new(input::STDIN) { "<stdin>".into() } else { path.to_string_lossy() };
        let at = |finding: Diagnostic| finding.at(Location::file(&name));
        match read(path) {
            Ok(read) => {
                findings.extend(read.iter().flat_map(|one| account::lint::account(one, &options.services)).map(at));
                accounts.extend(read.into_iter().map(|account| (name.clone(), account)));
            }
            Err(error) => unreadable.push(at(Diagnostic::new(&rules::UNREADABLE, causes::chain(error.as_ref())))),
        }
    }
    if accounts.is_empty() && unreadable.is_empty() {
        bail!("no account in the files");
    }
    if let Some(asked) = &options.credspec {
        let spec = credential_spec(asked, connection)?;
        let read: Vec<Account> = accounts.iter().map(|(_, account)| account.clone()).collect();
        let file = accounts.first().map_or("", |(name, _)| name);
        if !read.is_empty() {
            findings
                .extend(account::lint::against(&read, &spec).into_iter().map(|found| found.at(Location::file(file))));
        }
    }
    let mut report = Report { documents: accounts.len(), ..Report::default() };
    report.findings.extend(unreadable.into_iter().chain(findings));
    report.print(options.output, &options.filter)
}

fn read(path: &Path) -> anyhow::Result<Vec<Account>> {
    Ok(account::read(&input::text(path)?)?)
}

/// The credential spec of a file, or of the cluster where no file has the name.
fn credential_spec(asked: &Path, connection: &Connection) -> anyhow::Result<Value> {
    if asked == Path::new(input::STDIN) || asked.exists() {
        let Manifests { documents, .. } = input::manifests(&[asked.to_owned()]);
        let mut specs: Vec<&Document> = documents.iter().filter(|document| is_credential_spec(document)).collect();
        let (Some(spec), None) = (specs.pop(), specs.pop()) else {
            bail!("expected one credential spec in {}", asked.display())
        };
        return Ok(spec.value.clone());
    }
    let Some(Ok(name)) = asked.to_str().map(spec_name) else {
        bail!("there is no file {}, and a credential spec cannot have this name", asked.display())
    };
    block_on(async {
        let spec = connection.cluster().await?.find(&format!("{}/{name}", collection())).await?;
        spec.with_context(|| {
            format!("there is neither a file {name} nor a credential spec of this name in the cluster")
        })
    })
}

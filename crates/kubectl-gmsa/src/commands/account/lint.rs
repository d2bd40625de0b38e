//! `account lint`: what is wrong with an account of Active Directory, from the directory itself, or from its properties as PowerShell or
//! `ldapsearch` prints them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, builder::NonEmptyStringValueParser};
use serde_json::Value;
use time::UtcDateTime;

use crate::shared::{
    Outcome,
    args::spec_name,
    connection::{Connection, block_on},
    credspecs::is_credential_spec,
    directory::{self, DirectoryOptions},
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
    diagnostic::{Diagnostic, Diagnostics, Location, rules},
};
use gmsa_directory::{Directory, account::Found, ldif, lint, principal::Principals};

#[derive(Debug, Args)]
pub struct Options {
    /// An account of the directory: its SAM name, NAME@DOMAIN, DOMAIN\NAME or a distinguished name; repeatable [default: all of the domain]
    #[arg(value_name = "NAME", requires = "directory", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
    /// A file, or - for standard input, that holds the output of: Get-ADServiceAccount NAME -Properties * | ConvertTo-Json, or LDIF;
    /// repeatable
    #[arg(
        long = "filename",
        short,
        value_name = "FILE",
        required_unless_present = "directory",
        conflicts_with = "directory"
    )]
    files: Vec<PathBuf>,
    /// Compare with a credential spec: a file that holds one, or the name of one in the cluster
    #[arg(long, value_name = "FILE|NAME")]
    credspec: Option<PathBuf>,
    /// A service principal name that clients ask for, such as http/web.contoso.com; repeatable
    #[arg(long = "service", value_name = "CLASS/HOST", value_parser = directory::service)]
    services: Vec<String>,
    #[command(flatten)]
    directory: DirectoryOptions,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let mut read = Read::default();
    if let Some(source) = options.directory.source()? {
        block_on(async { read.directory(source.open().await?, options).await })?;
    }
    for path in &options.files {
        let name = if path == Path::new(input::STDIN) { "<stdin>".into() } else { path.to_string_lossy() };
        if let Err(error) = read.file(path, &name, options) {
            let found = Diagnostic::new(&rules::UNREADABLE, causes::chain(error.as_ref()));
            read.findings.push(found.at(Location::file(&name)));
        }
    }
    let Read { accounts, mut findings } = read;
    if accounts.is_empty() && findings.is_empty() {
        bail!("no account in the {}", if options.files.is_empty() { "directory" } else { "files" });
    }
    if let Some(asked) = options.credspec.as_ref().filter(|_| !accounts.is_empty()) {
        let spec = credential_spec(asked, connection)?;
        let all: Vec<Account> = accounts.iter().map(|(_, account)| account.clone()).collect();
        let file = accounts.first().and_then(|(name, _)| name.as_deref());
        findings.extend(account::lint::against(&all, &spec).into_iter().map(|found| located(found, file)));
    }
    let mut report = Report { documents: accounts.len(), ..Report::default() };
    report.findings.extend(findings);
    report.print(options.output, &options.filter)
}

/// The finding, in the file that it is about; one about the directory is in none.
fn located(found: Diagnostic, file: Option<&str>) -> Diagnostic {
    match file {
        Some(file) => found.at(Location::file(file)),
        None => found,
    }
}

/// What was read: the accounts, each with its file, and what is wrong with them.
#[derive(Default)]
struct Read {
    accounts: Vec<(Option<String>, Account)>,
    findings: Diagnostics,
}

impl Read {
    async fn directory(&mut self, mut directory: Directory, options: &Options) -> anyhow::Result<()> {
        let mut accounts = Vec::new();
        for name in &options.names {
            accounts.push(directory::account(&mut directory, name).await?);
        }
        if options.names.is_empty() {
            accounts = directory.accounts().await?;
        }
        self.found(&mut directory, &accounts, None, &options.services).await?;
        let of_forest = lint::forest(&mut directory, &accounts, UtcDateTime::now()).await?;
        self.findings.extend(of_forest);
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str, options: &Options) -> anyhow::Result<()> {
        let text = input::text(path)?;
        if ldif::is_ldif(&text) {
            let mut directory = Directory::printed(ldif::read(&text)?);
            return block_on(async {
                let accounts = directory.accounts().await?;
                self.found(&mut directory, &accounts, Some(name), &options.services).await
            });
        }
        let accounts = account::read(&text)?;
        let findings = accounts.iter().flat_map(|one| account::lint::account(one, &options.services));
        self.findings.extend(findings.map(|found| located(found, Some(name))));
        self.accounts.extend(accounts.into_iter().map(|account| (Some(name.to_owned()), account)));
        Ok(())
    }

    async fn found(
        &mut self,
        directory: &mut Directory,
        accounts: &[Found],
        file: Option<&str>,
        services: &[String],
    ) -> anyhow::Result<()> {
        let findings = lint::accounts(directory, accounts, services).await?;
        self.findings.extend(findings.into_iter().map(|found| located(found, file)));
        let account = |found: &Found| (file.map(str::to_owned), found.account(&Principals::default()));
        self.accounts.extend(accounts.iter().map(account));
        Ok(())
    }
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

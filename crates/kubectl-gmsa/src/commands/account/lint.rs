//! `account lint`: the properties and problems of accounts, read from the directory, or from the output of PowerShell or `ldapsearch`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, builder::NonEmptyStringValueParser};
use serde_json::Value;
use time::UtcDateTime;

use crate::shared::{
    Outcome,
    args::{service, spec_name},
    connection::{Connection, block_on},
    credspecs::is_credential_spec,
    directory::{DirectoryOptions, opened, typed_account},
    input,
    output::{Filter, Report, Shape, table::table},
    rules,
};
use gmsa_accounts::{ldif, lint, powershell, principal::Principals, summary};
use gmsa_cluster::{
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::{
    causes,
    diagnostic::{Diagnostic, Diagnostics, Location},
};
use gmsa_directory::{Directory, account::Account};

const EXAMPLES: &str = "Examples:
  # Compare an account with its credential spec
  kubectl gmsa account lint -f account.json --credspec webapp1.yaml

  # Lint an account of an LDIF file
  kubectl gmsa account lint WebApp1 --directory contoso.ldif

  # Lint all accounts of a domain
  kubectl gmsa account lint --directory contoso.com --directory-user reader@contoso.com";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// An account; repeatable [default: all of the domain]
    ///
    /// Its SAM name, NAME@DOMAIN, DOMAIN\NAME or a distinguished name
    #[arg(value_name = "NAME", requires = "directory", value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
    /// A file of accounts, or - for stdin; repeatable
    ///
    /// LDIF, or the output of: Get-ADServiceAccount NAME -Properties * | ConvertTo-Json
    #[arg(long = "filename", short, value_name = "FILE", conflicts_with = "directory")]
    files: Vec<PathBuf>,
    /// Compare with a credential spec
    ///
    /// A file that holds one, or the name of one in the cluster
    #[arg(long, value_name = "FILE|NAME")]
    credspec: Option<PathBuf>,
    /// An SPN that clients ask for; repeatable
    ///
    /// A service principal name, such as http/web.contoso.com, as clients or a keytab have it
    #[arg(long = "service", visible_alias = "keytab", value_name = "CLASS/HOST", value_parser = service)]
    services: Vec<String>,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    directory: DirectoryOptions,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let mut linted = Linted::default();
    if !options.names.is_empty() {
        options.directory.expect_one()?;
    }
    let sources = options.directory.sources()?;
    if sources.is_empty() && options.files.is_empty() {
        bail!("missing: --directory DOMAIN, with --directory-user; or a file: --filename FILE");
    }
    let summary = block_on(async {
        let mut summary = String::new();
        for directory in opened(sources).await? {
            summary += &linted.directory(directory, None, options).await?;
        }
        anyhow::Ok(summary)
    })?;
    for path in &options.files {
        let name = if path == Path::new(input::STDIN) { "<stdin>".into() } else { path.to_string_lossy() };
        if let Err(error) = linted.file(path, &name, options) {
            let found = Diagnostic::new(&rules::UNREADABLE, causes::chain(error.as_ref()));
            linted.findings.push(found.at(Location::file(&name)));
        }
    }
    let Linted { accounts, file, mut findings } = linted;
    if accounts.is_empty() && findings.is_empty() {
        bail!("no account in the {}", if options.files.is_empty() { "directory" } else { "files" });
    }
    if let Some(asked) = options.credspec.as_ref().filter(|_| !accounts.is_empty()) {
        let spec = credential_spec(asked, connection)?;
        findings.extend(located(lint::against(&accounts, &spec), file.as_deref()));
    }
    let report = Report { head: summary, documents: accounts.len(), findings, ..Report::default() };
    report.print(options.output, &options.filter)
}

/// Adds the file to findings. Those about the directory have none.
fn located(found: impl IntoIterator<Item = Diagnostic>, file: Option<&str>) -> impl Iterator<Item = Diagnostic> {
    found.into_iter().map(move |found| Diagnostic { location: file.map(Location::file), ..found })
}

/// The accounts and the findings about them.
#[derive(Default)]
struct Linted {
    accounts: Vec<Account>,
    /// The file of the first account.
    file: Option<String>,
    findings: Diagnostics,
}

impl Linted {
    /// Adds the requested accounts of a directory, and returns their summary.
    async fn directory(
        &mut self,
        mut directory: Directory,
        file: Option<&str>,
        options: &Options,
    ) -> anyhow::Result<String> {
        let mut accounts = Vec::new();
        for name in &options.names {
            accounts.push(typed_account(&mut directory, name).await?);
        }
        if options.names.is_empty() {
            accounts = directory.accounts(None).await?;
        }
        let principals = Principals::of(&mut directory, &accounts).await?;
        let summary = match accounts.as_slice() {
            [one] if !options.names.is_empty() => summary::properties(one, &principals) + "\n",
            [] => String::new(),
            all => table(summary::COLUMNS, &summary::rows(all, &principals)) + "\n",
        };
        let now = UtcDateTime::now();
        let found = lint::accounts(&mut directory, &accounts, &principals, &options.services, now).await?;
        self.add(accounts, found, file);
        Ok(summary)
    }

    fn file(&mut self, path: &Path, name: &str, options: &Options) -> anyhow::Result<()> {
        let text = input::text(path)?;
        if ldif::is_ldif(&text) {
            let directory = ldif::directory(&text)?;
            return block_on(self.directory(directory, Some(name), options)).map(drop);
        }
        let (accounts, now) = (powershell::accounts(&text)?, UtcDateTime::now());
        let of_account = |account| lint::account(account, &Principals::default(), &options.services, now);
        let found: Vec<Diagnostic> = accounts.iter().flat_map(of_account).collect();
        self.add(accounts, found, Some(name));
        Ok(())
    }

    fn add(&mut self, accounts: Vec<Account>, found: impl IntoIterator<Item = Diagnostic>, file: Option<&str>) {
        self.findings.extend(located(found, file));
        if self.accounts.is_empty() && !accounts.is_empty() {
            self.file = file.map(str::to_owned);
        }
        self.accounts.extend(accounts);
    }
}

/// The credential spec from a file, or from the cluster if there is no such file.
fn credential_spec(asked: &Path, connection: &Connection) -> anyhow::Result<Value> {
    if asked == Path::new(input::STDIN) || asked.exists() {
        let Manifests { documents, .. } = input::manifests(&[asked.to_owned()], "account lint --credspec -", None);
        let mut specs: Vec<&Document> = documents.iter().filter(|document| is_credential_spec(document)).collect();
        let (Some(spec), None) = (specs.pop(), specs.pop()) else {
            bail!("expected one credential spec in {}", asked.display())
        };
        return Ok(spec.value());
    }
    let Some(Ok(name)) = asked.to_str().map(spec_name) else {
        bail!("there is no file {}, and a credential spec cannot have this name", asked.display())
    };
    block_on(async {
        let no_cluster =
            || format!("there is no file {name}, and no cluster to find a credential spec of this name in");
        let cluster = connection.cluster().await.with_context(no_cluster)?;
        let spec = cluster.find(&format!("{}/{name}", collection())).await?;
        spec.with_context(|| {
            format!("there is neither a file {name} nor a credential spec of this name in the cluster")
        })
    })
}

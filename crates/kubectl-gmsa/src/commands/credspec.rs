//! `credspec new` and `credspec lint`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::shared::{
    Outcome,
    args::spec_name,
    connection::{Connection, block_on},
    credspecs::{findings, is_credential_spec, located},
    directory::{DirectoryOptions, Source, opened},
    input,
    output::{Filter, Format, Report},
    print,
};
use gmsa_cluster::{
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::credspec::{
    GROUP, KIND, SpecName, VERSION,
    ccg_plugin::{KnownPlugin, aws_input, azure_input, rancher_input},
    generate::{Domain, Draft, Plugin},
    lint,
};
use gmsa_core::{diagnostic::Severity, quote::one_line};
use gmsa_directory::{
    Directory, Error,
    account::{Account, AccountName},
    lint::credential_spec,
};
use serde_json::Value;
use time::UtcDateTime;

/// The one value that no file about the domain contains.
const ACCOUNT: &str = "--account";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a credential spec, from flags, from the directory, or from what PowerShell prints
    New(Box<NewOptions>),
    /// Find what is wrong with credential specs
    Lint(Box<LintOptions>),
}

#[derive(Debug, Args)]
pub struct NewOptions {
    /// The name of the credential spec [default: made from the account's]
    name: Option<String>,
    /// The account's SAM name, without $ and without the domain; repeatable; with --directory, NAME@DOMAIN, DOMAIN\NAME and a
    /// distinguished name too
    #[arg(long, value_name = "NAME")]
    account: Vec<String>,
    /// Every group Managed Service Account of the domain that --directory asks, or of the one in its forest that --domain names
    #[arg(long, requires = "directory", conflicts_with_all = ["account", "name"])]
    all: bool,
    /// The domain's DNS name: (Get-ADDomain).DNSRoot
    #[arg(long, value_name = "DNS")]
    domain: Option<String>,
    /// The domain's NetBIOS name: (Get-ADDomain).NetBIOSName
    #[arg(long, value_name = "NAME")]
    netbios: Option<String>,
    /// The domain's SID: (Get-ADDomain).DomainSID.Value
    #[arg(long, value_name = "SID")]
    domain_sid: Option<String>,
    /// The domain's GUID: (Get-ADDomain).ObjectGUID
    #[arg(long, value_name = "GUID")]
    domain_guid: Option<String>,
    /// The DNS name of the forest's root: (Get-ADDomain).Forest [default: the domain's, where that has at most two labels]
    #[arg(long, value_name = "DNS")]
    forest: Option<String>,
    /// Another account that the host may fetch; repeatable
    #[arg(long = "additional-account", value_name = "NAME")]
    additional: Vec<String>,
    #[command(flatten)]
    plugin: PluginOptions,
    /// Take the domain from a file, or - for standard input, that holds the output of: Get-ADDomain | ConvertTo-Json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["domain", "netbios", "domain_sid", "domain_guid", "forest"])]
    from_ad: Option<PathBuf>,
    /// Convert a file that New-CredentialSpec wrote for Docker, or one for Amazon ECS
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_ad", "directory", "account", "all", "domain", "netbios", "domain_sid",
        "domain_guid", "forest", "additional", "plugin", "azure_object_id", "aws_credential_arn", "rancher_secret"])]
    from_docker: Option<PathBuf>,
    /// What is written: the manifest of the credential spec, or the values of the chart gmsa-accounts with an entry for it
    #[arg(long, short, value_enum, default_value = "manifest")]
    output: Written,
    /// Write to a file instead of standard output
    #[arg(long, short = 'w', value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    directory: DirectoryOptions,
}

/// What `credspec new` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// The manifest of the credential spec
    Manifest,
    /// Values of the chart gmsa-accounts
    Values,
}

/// The plugin, and what it needs to know.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plugin, for hosts that are not joined to the domain")]
struct PluginOptions {
    /// The plugin: azure, aws, rancher, or a GUID in braces
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
    /// What the plugin is given, as its maker documents it; not a password
    #[arg(long, value_name = "TEXT", requires = "plugin")]
    plugin_input: Option<String>,
    /// For azure: the object ID of the managed identity that may read the secret
    #[arg(long, value_name = "GUID", requires = "azure_secret_uri", conflicts_with = "plugin_input")]
    azure_object_id: Option<String>,
    /// For azure: the address of the secret in the key vault, with https and /secrets/NAME
    #[arg(long, value_name = "URI", requires = "azure_object_id", conflicts_with = "plugin_input")]
    azure_secret_uri: Option<String>,
    /// For aws: the ARN of the secret or the parameter
    #[arg(long, value_name = "ARN", conflicts_with = "plugin_input")]
    aws_credential_arn: Option<String>,
    /// For rancher: the namespace of the account provider
    #[arg(long, value_name = "NAME", requires = "rancher_secret", conflicts_with = "plugin_input")]
    rancher_namespace: Option<String>,
    /// For rancher: the Secret in that namespace
    #[arg(long, value_name = "NAME", requires = "rancher_namespace", conflicts_with = "plugin_input")]
    rancher_secret: Option<String>,
}

impl PluginOptions {
    /// The inputs whose parts were given, each with the plugin that takes it.
    fn inputs(&self) -> impl Iterator<Item = (KnownPlugin, String)> {
        let azure = self.azure_object_id.as_ref().zip(self.azure_secret_uri.as_ref());
        let rancher = self.rancher_namespace.as_ref().zip(self.rancher_secret.as_ref());
        [
            azure.map(|(object_id, secret_uri)| (KnownPlugin::Azure, azure_input(object_id, secret_uri))),
            self.aws_credential_arn.as_ref().map(|arn| (KnownPlugin::Aws, aws_input(arn))),
            rancher.map(|(namespace, secret)| (KnownPlugin::Rancher, rancher_input(namespace, secret))),
        ]
        .into_iter()
        .flatten()
    }

    /// The plugin, where one is named; flags that it needs and that are not given are missing.
    fn plugin(&self, missing: &mut Vec<&'static str>) -> anyhow::Result<Option<Plugin>> {
        let Some(typed) = &self.plugin else {
            missing.extend(self.inputs().next().map(|(known, _)| match known {
                KnownPlugin::Azure => "--plugin azure",
                KnownPlugin::Aws => "--plugin aws",
                KnownPlugin::Rancher => "--plugin rancher",
            }));
            return Ok(None);
        };
        let known = KnownPlugin::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(typed) || known.guid().eq_ignore_ascii_case(typed));
        if let Some((other, _)) = self.inputs().find(|(of, _)| Some(*of) != known) {
            bail!("--plugin {typed} takes no --{}-… options", other.as_str());
        }
        let made = self.inputs().next().map(|(_, input)| input);
        let Some(input) = self.plugin_input.clone().or(made) else {
            missing.push(match known {
                Some(KnownPlugin::Azure) => "--azure-object-id and --azure-secret-uri, or --plugin-input",
                Some(KnownPlugin::Aws) => "--aws-credential-arn, or --plugin-input",
                Some(KnownPlugin::Rancher) => "--rancher-namespace and --rancher-secret, or --plugin-input",
                None => "--plugin-input",
            });
            return Ok(None);
        };
        Ok(Some(Plugin { guid: known.map_or(typed.clone(), |known| known.guid().to_owned()), input }))
    }
}

#[derive(Debug, Args)]
pub struct LintOptions {
    /// A credential spec of the cluster; repeatable
    #[arg(value_name = "NAME", value_parser = spec_name)]
    names: Vec<SpecName>,
    /// A file, a folder, or - for standard input; repeatable
    #[arg(long = "filename", short, value_name = "FILE", required_unless_present = "names")]
    files: Vec<PathBuf>,
    /// Compare with the domain: a file that holds the output of: Get-ADDomain | ConvertTo-Json
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    from_ad: Option<PathBuf>,
    #[command(flatten)]
    directory: DirectoryOptions,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

pub fn run(command: &Command, connection: &Connection) -> anyhow::Result<Outcome> {
    match command {
        Command::New(options) => new(options),
        Command::Lint(options) => lint(options, connection),
    }
}

fn new(options: &NewOptions) -> anyhow::Result<Outcome> {
    let drafts = match &options.from_docker {
        Some(path) => {
            let json = input::text(path)?;
            let draft = Draft::from_docker(options.name.clone(), &json)
                .with_context(|| format!("cannot convert {}", path.display()))?;
            for change in draft.changes(&json) {
                writeln!(io::stderr(), "note: {}", one_line(&change))?;
            }
            vec![draft]
        }
        None => from_options(options)?,
    };
    let (mut good, mut is_clean, count) = (Vec::new(), true, drafts.len());
    for draft in drafts {
        let found = reported(&draft, count > 1)?;
        is_clean &= found.is_none();
        if found != Some(Severity::Error) {
            good.push(draft);
        } else if options.all {
            writeln!(io::stderr(), "{} was left out", one_line(&draft.account))?;
        } else {
            writeln!(io::stderr(), "nothing was written")?;
            return Ok(Outcome::Findings);
        }
    }
    if good.is_empty() {
        writeln!(io::stderr(), "nothing was written")?;
        return Ok(Outcome::Findings);
    }
    expect_names(&good)?;
    let yaml = match options.output {
        Written::Manifest => good.iter().map(Draft::yaml).collect::<Vec<_>>().join("---\n"),
        Written::Values => {
            expect_one_domain(&good)?;
            Draft::values(&good).context(
                "the chart gmsa-accounts cannot make this credential spec: its accounts are not each under the DNS and the NetBIOS name of the domain. Leave `-o values` out",
            )?
        }
    };
    match &options.out {
        None => print(yaml)?,
        Some(path) => write(path, &yaml, options.force)?,
    };
    Ok(if is_clean { Outcome::Clean } else { Outcome::Findings })
}

/// Reports what is wrong with one of several, or the only one, and gives the worst of it.
fn reported(draft: &Draft, is_one_of_several: bool) -> anyhow::Result<Option<Severity>> {
    let mut findings = lint::object(&draft.object());
    // The account and the domain are in several fields, but were typed once: each problem is reported once.
    let mut reported = BTreeSet::new();
    findings.retain(|found| reported.insert((found.message.clone(), found.fix.clone())));
    for found in &findings {
        let account = if is_one_of_several { format!("{}: ", one_line(&draft.account)) } else { String::new() };
        let fix = found.fix.as_ref().map_or(String::new(), |fix| format!(" (right: {})", one_line(fix)));
        writeln!(io::stderr(), "{}: {account}{found}{fix}", found.severity.as_str())?;
    }
    Ok(findings.iter().map(|found| found.severity).max())
}

/// # Errors
/// Where two of them would have the same name.
fn expect_names(drafts: &[Draft]) -> anyhow::Result<()> {
    let mut names = BTreeMap::new();
    for draft in drafts {
        if let Some(other) = names.insert(&draft.name, draft) {
            bail!(
                "the credential specs of {} in {} and {} in {} would both be named {}: make one of them alone, with a NAME",
                one_line(&other.account),
                other.domain.dns,
                one_line(&draft.account),
                draft.domain.dns,
                draft.name
            );
        }
    }
    Ok(())
}

/// # Errors
/// Where they are of several domains: a release of the chart has one.
fn expect_one_domain(drafts: &[Draft]) -> anyhow::Result<()> {
    let domains: BTreeSet<&str> = drafts.iter().map(|draft| draft.domain.dns.as_str()).collect();
    if domains.len() > 1 {
        let domains: Vec<&str> = domains.into_iter().collect();
        bail!(
            "the accounts are of several domains, {}, and a release of the chart gmsa-accounts has one: run this for each, with --all --domain DOMAIN",
            domains.join(", ")
        );
    }
    Ok(())
}

fn domain(path: &Path) -> anyhow::Result<Domain> {
    Domain::from_directory(&input::text(path)?)
        .with_context(|| format!("cannot read the domain from {}", path.display()))
}

/// The accounts and their domains, from the directory.
fn from_directory(options: &NewOptions, source: Source) -> anyhow::Result<Vec<Draft>> {
    let mut missing = Vec::new();
    if options.account.is_empty() && !options.all {
        missing.push("--account, or --all");
    }
    let plugin = options.plugin.plugin(&mut missing)?;
    complete(&missing)?;
    if options.all || options.account.len() > 1 {
        expect_none_of_one(options)?;
    }
    block_on(async {
        let mut directory = source.open().await?;
        let found = if options.all {
            let mut all = directory.accounts(options.domain.as_deref()).await?;
            all.retain(Account::is_group_managed);
            if all.is_empty() {
                bail!(
                    "there is no group Managed Service Account in {}",
                    options.domain.as_deref().unwrap_or("the directory")
                );
            }
            all.sort_by_key(|account| account.sam.to_lowercase());
            all
        } else {
            let mut typed = Vec::new();
            for name in &options.account {
                typed.push(directory.typed(name).await?);
            }
            typed
        };
        let mut drafts = Vec::new();
        for account in found {
            drafts.push(of_account(&mut directory, &account, options, plugin.clone()).await?);
        }
        Ok(drafts)
    })
}

/// # Errors
/// Where flags are given that go with one account alone.
fn expect_none_of_one(options: &NewOptions) -> anyhow::Result<()> {
    let flag = if options.name.is_some() {
        "NAME"
    } else if !options.additional.is_empty() {
        "--additional-account"
    } else {
        return Ok(());
    };
    bail!("{flag} goes with one account: make that credential spec alone")
}

async fn of_account(
    directory: &mut Directory,
    found: &Account,
    options: &NewOptions,
    plugin: Option<Plugin>,
) -> anyhow::Result<Draft> {
    if !found.is_group_managed() {
        bail!("{} is no group Managed Service Account", found.name);
    }
    let forest = directory.forest.as_ref().ok_or(Error::NoDomains)?;
    let of_account = forest.of_object(&found.name).map(|of| of.domain.clone());
    let domain = of_account.with_context(|| format!("{} is in no domain of the forest", found.name))?;
    for additional in &options.additional {
        let name = AccountName::Sam(additional.clone(), Some(domain.dns.clone()));
        let found = directory.account(&name).await?;
        let found = found.with_context(|| format!("there is no account {additional} in {}", domain.dns))?;
        if !found.is_group_managed() {
            bail!("{} is no group Managed Service Account", found.name);
        }
    }
    let name = options.name.clone().unwrap_or_else(|| lint::suggest_name(&found.sam));
    Ok(Draft::new(name, found.sam.clone(), domain, &options.additional, plugin))
}

fn from_options(options: &NewOptions) -> anyhow::Result<Vec<Draft>> {
    if let Some(source) = options.directory.source()? {
        return from_directory(options, source);
    }
    let mut missing = Vec::new();
    if options.account.is_empty() {
        missing.push(ACCOUNT);
    }
    let domain = if let Some(path) = &options.from_ad {
        domain(path)?
    } else {
        let dns = given(options.domain.as_ref(), "--domain", &mut missing);
        let netbios = given(options.netbios.as_ref(), "--netbios", &mut missing);
        let sid = given(options.domain_sid.as_ref(), "--domain-sid", &mut missing);
        let guid = given(options.domain_guid.as_ref(), "--domain-guid", &mut missing);
        // The name of a child domain has three labels or more; most others are the root of their forest.
        let forest = if options.forest.is_some() || dns.split('.').count() > 2 {
            given(options.forest.as_ref(), "--forest", &mut missing)
        } else {
            dns.clone()
        };
        Domain { dns, forest, netbios, sid, guid }
    };
    let plugin = options.plugin.plugin(&mut missing)?;
    complete(&missing)?;
    if options.account.len() > 1 {
        expect_none_of_one(options)?;
    }
    let draft = |account: &String| {
        let name = options.name.clone().unwrap_or_else(|| lint::suggest_name(account));
        Draft::new(name, account.clone(), domain.clone(), &options.additional, plugin.clone())
    };
    Ok(options.account.iter().map(draft).collect())
}

/// # Errors
/// Where flags are missing: all of them, and what stands for those of the domain.
fn complete(missing: &[&str]) -> anyhow::Result<()> {
    const DOMAIN: [&str; 5] = ["--domain", "--netbios", "--domain-sid", "--domain-guid", "--forest"];
    let names = missing.join(", ");
    if missing.iter().any(|flag| DOMAIN.contains(flag)) {
        bail!(
            "missing: {names}; or take the domain from the directory: --directory DOMAIN, or from a file: --from-ad FILE, made by: \
             Get-ADDomain | ConvertTo-Json"
        );
    } else if !missing.is_empty() {
        bail!("missing: {names}");
    }
    Ok(())
}

/// The value of a flag; where there is none, the flag is one of those that are missing.
fn given(value: Option<&String>, flag: &'static str, missing: &mut Vec<&'static str>) -> String {
    value.cloned().unwrap_or_else(|| {
        missing.push(flag);
        String::new()
    })
}

fn write(path: &Path, yaml: &str, force: bool) -> anyhow::Result<Outcome> {
    let opened = if force { File::create(path) } else { OpenOptions::new().write(true).create_new(true).open(path) };
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{} exists: --force overwrites it", path.display())
        }
        opened => opened.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(yaml.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    print(format!("{} written\n", one_line(&path.display().to_string())))
}

fn lint(options: &LintOptions, connection: &Connection) -> anyhow::Result<Outcome> {
    let sources = options.directory.sources()?;
    let mut read = input::manifests(&options.files);
    if !options.names.is_empty() {
        read.extend(block_on(of_cluster(&options.names, connection))?);
    }
    let Manifests { documents, mut problems, .. } = read;
    let specs: Vec<&Document> = documents.iter().filter(|document| is_credential_spec(document)).collect();
    input::expect(specs.len(), "credential spec", &mut problems, &options.files);
    let domain = options.from_ad.as_deref().map(domain).transpose()?;
    let mut report = Report { documents: specs.len(), findings: problems, ..Report::default() };
    for document in &specs {
        report.findings.extend(findings(document));
        let against = domain.iter().flat_map(|domain| lint::against(&document.value, domain));
        report.findings.extend(against.map(|found| located(document, found)));
    }
    if !sources.is_empty() {
        report.findings.extend(block_on(async {
            let (mut directories, mut list) = (opened(sources).await?, Vec::new());
            for document in specs {
                let found = credential_spec(&mut directories, &document.value, UtcDateTime::now()).await?;
                list.extend(found.found.into_iter().map(|found| located(document, found)));
            }
            anyhow::Ok(list)
        })?);
    }
    report.print(options.output, &options.filter)
}

/// Credential specs of the cluster, as if they were in files with their names.
async fn of_cluster(names: &[SpecName], connection: &Connection) -> anyhow::Result<Manifests> {
    let cluster = connection.cluster().await?;
    let mut all = Manifests::default();
    for name in names {
        let spec: Option<Value> = cluster.find(&format!("{}/{name}", collection())).await?;
        let spec = spec.with_context(|| format!("there is no credential spec {name} in the cluster"))?;
        let mut document = Document::of_api(name.as_str(), &format!("{GROUP}/{VERSION}"), KIND, spec);
        // There is no file, so there is no line.
        document.location.position = None;
        all.documents.push(document);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_survives_the_manifest(text in any::<String>(), other in "[ -~]{0,12}") {
            let domain = Domain {
                dns: other.clone(), forest: text.clone(), netbios: text.clone(), sid: other.clone(), guid: text.clone(),
            };
            let plugin = Plugin { guid: other.clone(), input: text.clone() };
            let draft = Draft::new(text, other.clone(), domain, &[other], Some(plugin));
            let read: Value = serde_saphyr::from_str(&draft.yaml()).unwrap();
            prop_assert_eq!(read, draft.object());
        }
    }
}

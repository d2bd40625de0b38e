//! `credspec new`: makes credential specs from flags, from the directory, or from what PowerShell printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use super::domain;
use crate::shared::{
    Outcome,
    connection::block_on,
    directory::{DirectoryOptions, Source, typed_account},
    input, print,
};
use gmsa_accounts::spec;
use gmsa_core::{
    credspec::{
        ccg_plugin::{KnownPlugin, aws_input, azure_input, rancher_input},
        generate::{Domain, Draft, Plugin},
        lint,
    },
    diagnostic::{Diagnostic, Severity},
    quote::one_line,
};

const EXAMPLES: &str = "Examples:
  # From the output of Get-ADDomain | ConvertTo-Json
  kubectl gmsa credspec new webapp1 --account WebApp1 --from-ad domain.json

  # From the directory
  kubectl gmsa credspec new --account WebApp1 --directory contoso.com --directory-user reader@contoso.com

  # From a file made for Docker
  kubectl gmsa credspec new webapp1 --from-docker docker.json";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// Its name [default: made from the account's]
    name: Option<String>,
    /// The account's SAM name, without $ or domain
    ///
    /// Repeatable. With --directory also NAME@DOMAIN, DOMAIN\NAME or a distinguished name
    #[arg(long, value_name = "NAME")]
    account: Vec<String>,
    /// Every gMSA of the domain of --directory
    ///
    /// Or of the one in its forest that --domain names
    #[arg(long, requires = "directory", conflicts_with_all = ["account", "name"])]
    all: bool,
    /// DNS name: (Get-ADDomain).DNSRoot
    #[arg(long, value_name = "DNS")]
    domain: Option<String>,
    /// NetBIOS name: (Get-ADDomain).NetBIOSName
    #[arg(long, value_name = "NAME")]
    netbios: Option<String>,
    /// SID: (Get-ADDomain).DomainSID.Value
    #[arg(long, value_name = "SID")]
    domain_sid: Option<String>,
    /// GUID: (Get-ADDomain).ObjectGUID
    #[arg(long, value_name = "GUID")]
    domain_guid: Option<String>,
    /// Root of the forest: (Get-ADDomain).Forest
    ///
    /// [default: the domain, where its name has at most two labels]
    #[arg(long, value_name = "DNS")]
    forest: Option<String>,
    /// Another account for the host; repeatable
    #[arg(long = "additional-account", value_name = "NAME")]
    additional: Vec<String>,
    /// A file with Get-ADDomain | ConvertTo-Json
    ///
    /// - is standard input. It replaces the options of the domain
    #[arg(long, value_name = "FILE", conflicts_with_all = ["domain", "netbios", "domain_sid", "domain_guid", "forest"])]
    from_ad: Option<PathBuf>,
    /// Convert a file made for Docker or Amazon ECS
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_ad", "directory", "account", "all", "domain", "netbios", "domain_sid",
        "domain_guid", "forest", "additional", "plugin", "azure_object_id", "aws_credential_arn", "rancher_secret"])]
    from_docker: Option<PathBuf>,
    /// Print manifest or values
    ///
    /// values are for the chart gmsa-accounts, with an entry for it
    #[arg(long, short, value_enum, default_value = "manifest", hide_possible_values = true)]
    output: NewForm,
    /// Write to a file instead of standard output
    #[arg(long, short = 'w', value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    plugin: PluginOptions,
    #[command(flatten)]
    directory: DirectoryOptions,
}

/// The output of `credspec new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NewForm {
    /// The manifest of the credential spec
    Manifest,
    /// Values of the chart gmsa-accounts
    Values,
}

/// The plugin and its input.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plugin, for hosts that are not joined to the domain")]
struct PluginOptions {
    /// azure, aws, rancher, or a GUID in braces
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
    /// The input of the plugin; not a password
    ///
    /// Its maker documents it
    #[arg(long, value_name = "TEXT", requires = "plugin", conflicts_with_all = ["azure_object_id", "azure_secret_uri",
        "aws_credential_arn", "rancher_namespace", "rancher_secret"])]
    plugin_input: Option<String>,
    /// azure: object ID of the managed identity that may read the secret
    #[arg(long, value_name = "GUID", requires = "azure_secret_uri", hide_short_help = true)]
    azure_object_id: Option<String>,
    /// azure: address of the secret in the key vault, with https and /secrets/NAME
    #[arg(long, value_name = "URI", requires = "azure_object_id", hide_short_help = true)]
    azure_secret_uri: Option<String>,
    /// aws: ARN of the secret or the parameter
    #[arg(long, value_name = "ARN", hide_short_help = true)]
    aws_credential_arn: Option<String>,
    /// rancher: namespace of the account provider
    #[arg(long, value_name = "NAME", requires = "rancher_secret", hide_short_help = true)]
    rancher_namespace: Option<String>,
    /// rancher: the Secret in that namespace
    #[arg(long, value_name = "NAME", requires = "rancher_namespace", hide_short_help = true)]
    rancher_secret: Option<String>,
}

impl PluginOptions {
    /// The plugin, if one is named. Adds its required flags that are not set to `missing`.
    fn plugin(&self, missing: &mut Vec<String>) -> anyhow::Result<Option<Plugin>> {
        let azure = self.azure_object_id.as_ref().zip(self.azure_secret_uri.as_ref());
        let rancher = self.rancher_namespace.as_ref().zip(self.rancher_secret.as_ref());
        let made = [
            azure.map(|(object_id, secret_uri)| (KnownPlugin::Azure, azure_input(object_id, secret_uri))),
            self.aws_credential_arn.as_ref().map(|arn| (KnownPlugin::Aws, aws_input(arn))),
            rancher.map(|(namespace, secret)| (KnownPlugin::Rancher, rancher_input(namespace, secret))),
        ];
        let mut made = made.into_iter().flatten();
        let Some(typed) = &self.plugin else {
            missing.extend(made.next().map(|(known, _)| format!("--plugin {}", known.as_str())));
            return Ok(None);
        };
        let known = KnownPlugin::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(typed) || known.guid().eq_ignore_ascii_case(typed));
        if let Some((other, _)) = made.clone().find(|(of, _)| Some(*of) != known) {
            bail!("--plugin {typed} takes no --{}-… options", other.as_str());
        }
        let Some(input) = self.plugin_input.clone().or_else(|| made.next().map(|(_, input)| input)) else {
            let others = match known {
                Some(KnownPlugin::Azure) => "--azure-object-id and --azure-secret-uri, or ",
                Some(KnownPlugin::Aws) => "--aws-credential-arn, or ",
                Some(KnownPlugin::Rancher) => "--rancher-namespace and --rancher-secret, or ",
                None => "",
            };
            missing.push(format!("{others}--plugin-input"));
            return Ok(None);
        };
        Ok(Some(Plugin { guid: known.map_or(typed.clone(), |known| known.guid().to_owned()), input }))
    }
}

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let drafts = match &options.from_docker {
        Some(path) => {
            let json = input::text(path)?;
            let draft = Draft::from_docker(options.name.clone(), &json)
                .with_context(|| format!("cannot convert {}", path.display()))?;
            for change in draft.changes(&json) {
                writeln!(io::stderr(), "note: {}", one_line(&change))?;
            }
            vec![(draft, Vec::new())]
        }
        None => drafts(options)?,
    };
    let (mut good, mut is_clean, count) = (Vec::new(), true, drafts.len());
    for (draft, of_account) in drafts {
        let worst = reported(&draft, count > 1)?;
        for Diagnostic { object, field, message, rule, fix, .. } in &of_account {
            let fix = one_line(fix.as_deref().unwrap_or_default());
            writeln!(io::stderr(), "warning[{}]: {}: {field} {message} ({fix})", rule.id, one_line(object))?;
        }
        is_clean &= worst.is_none() && of_account.is_empty();
        if worst != Some(Severity::Error) {
            good.push(draft);
        } else if options.all {
            writeln!(io::stderr(), "note: {} was left out", one_line(&draft.account))?;
        } else {
            good.clear();
            break;
        }
    }
    if good.is_empty() {
        writeln!(io::stderr(), "nothing was written")?;
        return Ok(Outcome::Findings);
    }
    expect_names(&good)?;
    let yaml = match options.output {
        NewForm::Manifest => good.iter().map(Draft::yaml).collect::<Vec<_>>().join("---\n"),
        NewForm::Values => Draft::values(&good)?,
    };
    match &options.out {
        None => print(yaml)?,
        Some(path) => write(path, &yaml, options.force)?,
    }
    Ok(if is_clean { Outcome::Clean } else { Outcome::Findings })
}

/// Prints the findings on a draft, and returns the worst severity.
fn reported(draft: &Draft, is_one_of_several: bool) -> anyhow::Result<Option<Severity>> {
    let mut findings = lint::object(&draft.object());
    // Account and domain appear in several fields but were typed once, so each problem is reported once.
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
/// If two of them would have the same name.
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

/// A credential spec, and what the directory says against its account.
type DraftWithFindings = (Draft, Vec<Diagnostic>);

/// The drafts: from flags, from a file about the domain, or from the directory.
fn drafts(options: &Options) -> anyhow::Result<Vec<DraftWithFindings>> {
    const DOMAIN: [&str; 5] = ["--domain", "--netbios", "--domain-sid", "--domain-guid", "--forest"];
    let source = options.directory.source()?;
    let mut missing = Vec::new();
    if options.account.is_empty() && !options.all {
        missing.push(if source.is_some() { "--account, or --all" } else { "--account" }.to_owned());
    }
    let domain = match &options.from_ad {
        _ if source.is_some() => None,
        Some(path) => Some(domain(path)?),
        None => Some(typed_domain(options, &mut missing)),
    };
    let plugin = options.plugin.plugin(&mut missing)?;
    if !missing.is_empty() {
        let is_of_domain = missing.iter().any(|flag| DOMAIN.contains(&flag.as_str()));
        let instead = "; or take the domain from the directory: --directory DOMAIN, or from a file: --from-ad FILE, made by: \
             Get-ADDomain | ConvertTo-Json";
        bail!("missing: {}{}", missing.join(", "), if is_of_domain { instead } else { "" });
    }
    if options.all || options.account.len() > 1 {
        let of_one = [(options.name.is_some(), "NAME"), (!options.additional.is_empty(), "--additional-account")];
        if let Some((_, flag)) = of_one.into_iter().find(|(is_given, _)| *is_given) {
            bail!("{flag} goes with one account: make that credential spec alone");
        }
    }
    if let Some(source) = source {
        return block_on(from_directory(options, source, plugin));
    }
    let draft = |account: &String, domain: &Domain| {
        let name = options.name.clone().unwrap_or_else(|| lint::suggest_name(account));
        (Draft::new(name, account.clone(), domain.clone(), &options.additional, plugin.clone()), Vec::new())
    };
    let of_domain = |domain| options.account.iter().map(move |account| draft(account, domain));
    Ok(domain.iter().flat_map(of_domain).collect())
}

/// The domain from its flags; adds the flags that are not set to `missing`.
fn typed_domain(options: &Options, missing: &mut Vec<String>) -> Domain {
    let mut given = |value: &Option<String>, flag: &str| {
        if value.is_none() {
            missing.push(flag.to_owned());
        }
        value.clone().unwrap_or_default()
    };
    let dns = given(&options.domain, "--domain");
    let netbios = given(&options.netbios, "--netbios");
    let sid = given(&options.domain_sid, "--domain-sid");
    let guid = given(&options.domain_guid, "--domain-guid");
    // A child domain has three labels or more; a domain with two is usually the root of its forest.
    let is_root = options.forest.is_none() && dns.split('.').count() <= 2;
    let forest = if is_root { dns.clone() } else { given(&options.forest, "--forest") };
    Domain { dns, forest, netbios, sid, guid }
}

/// The accounts and their domains, from the directory.
async fn from_directory(
    options: &Options,
    source: Source,
    plugin: Option<Plugin>,
) -> anyhow::Result<Vec<DraftWithFindings>> {
    let mut directory = source.open().await?;
    let mut found = Vec::new();
    if options.all {
        found = spec::accounts(&mut directory, options.domain.as_deref()).await?;
    }
    for name in &options.account {
        found.push(typed_account(&mut directory, name).await?);
    }
    let mut drafts = Vec::new();
    for account in found {
        let name = options.name.clone();
        drafts.push(spec::draft(&mut directory, &account, name, &options.additional, plugin.clone()).await?);
    }
    Ok(drafts)
}

fn write(path: &Path, yaml: &str, force: bool) -> anyhow::Result<()> {
    let opened = OpenOptions::new().write(true).create(true).truncate(true).create_new(!force).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{} exists: --force overwrites it", path.display())
        }
        opened => opened.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(yaml.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    print(format!("{} written\n", one_line(&path.display().to_string())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::Value;

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

//! `account new`: prints the command or the change that makes an account, or makes it in the directory.
//!
//! Invariants: nothing is written without `--apply` and an answer to the question, or `--yes`; an account that could not work is not made.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use gmsa_core::{
    account::lint::MAX_NAME,
    causes,
    credspec::is_dns_subdomain,
    diagnostic::Severity,
    quote::{Quoted, one_line, shell},
};
use gmsa_directory::{
    Directory, Entry, Filter, Scope, Search, Sid,
    account::{AccountName, CLASS, MEMBERSHIP},
    allowing,
    entry::escaped,
    ldif, lint,
    principal::{Principal, Principals},
};
use time::UtcDateTime;

use crate::shared::{
    Outcome,
    confirm::confirmed,
    connection::block_on,
    directory::{DirectoryOptions, Source, service},
    output::plural,
    print,
};

/// AES128 and AES256, of `msDS-SupportedEncryptionTypes` ([MS-KILE] 2.2.7).
const AES: &str = "24";
/// `WORKSTATION_TRUST_ACCOUNT` of `userAccountControl` ([MS-ADTS] 2.2.16).
const WORKSTATION_TRUST: &str = "4096";

#[derive(Debug, Args)]
pub struct Options {
    /// The SAM name, without $: at most 15 characters
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The DNS name of the account, such as webapp1.contoso.com
    #[arg(long, value_name = "DNS", value_parser = dns_name)]
    dns_host_name: String,
    /// The SAM name of who may retrieve the password: a group of the nodes, or the user that a plugin logs on as; repeatable
    #[arg(long, value_name = "NAME", required = true)]
    hosts_group: Vec<String>,
    /// A service principal name that clients ask for, such as http/web.contoso.com; repeatable
    #[arg(long = "service", value_name = "CLASS/HOST", value_parser = service)]
    services: Vec<String>,
    /// How often the password changes, in days; it cannot be changed later
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    interval: u16,
    /// The distinguished name of the container or organizational unit [default: CN=Managed Service Accounts of the domain]
    #[arg(long, value_name = "DN", requires = "directory")]
    path: Option<String>,
    #[command(flatten)]
    directory: DirectoryOptions,
    /// What to print
    #[arg(long, short, value_enum, default_value = "powershell")]
    output: Form,
    /// Make the account in the directory, after a question
    #[arg(long, requires = "directory", conflicts_with = "output")]
    apply: bool,
    /// Do not ask before the account is made
    #[arg(long, requires = "apply")]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The command for PowerShell
    Powershell,
    /// The change for ldapadd or ldifde; it needs --directory, which knows the group
    Ldif,
}

/// A SAM name that Active Directory takes ([MS-ADTS] 3.1.1.6), and that a host can use.
fn name(text: &str) -> Result<String, String> {
    let sam = text.trim_end_matches('$');
    let length = sam.chars().count();
    let is_allowed = |c: char| !c.is_control() && !c.is_whitespace() && !"\"/\\[]:;|=,+*?<>@".contains(c);
    if length > MAX_NAME {
        Err(format!("has {length} characters, more than {MAX_NAME}: the host refers to the account as to a computer"))
    } else if sam.is_empty() || !sam.chars().all(is_allowed) || sam.ends_with('.') {
        Err("expected a SAM name".to_owned())
    } else {
        Ok(sam.to_owned())
    }
}

fn dns_name(text: &str) -> Result<String, String> {
    if is_dns_subdomain(&text.to_ascii_lowercase()) {
        Ok(text.to_owned())
    } else {
        Err("expected a DNS name".to_owned())
    }
}

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let Some(source) = options.directory.source()? else {
        if options.output == Form::Ldif {
            bail!("missing: --directory, which knows the SIDs of the groups");
        }
        return print(powershell(options)?);
    };
    block_on(async {
        let is_live = source.is_live();
        if options.apply && !is_live {
            bail!("nothing is made in a file: --directory ldaps://HOST or DOMAIN");
        }
        let mut directory = Source::open(source).await?;
        let planned = Planned::of(&mut directory, options).await?;
        for note in &planned.notes {
            writeln!(io::stderr(), "{}", one_line(note))?;
        }
        if !options.apply {
            return print(match options.output {
                Form::Powershell => powershell(options)?,
                Form::Ldif => ldif::add(&planned.entry),
            });
        }
        // What will be done is shown also where nobody is asked.
        writeln!(io::stderr(), "{}", planned.shown(options, directory.address()))?;
        if !options.yes && !confirmed("Make this account?")? {
            bail!("nothing was made");
        }
        directory
            .add(&planned.entry)
            .await
            .context("cannot make the account (docs/directory.md#rights says who may)")?;
        print(format!("account {} made in {}\n", options.name, directory.address()))
    })
}

/// The account, as it will be made.
struct Planned {
    entry: Entry,
    /// Who may retrieve the password, with members.
    hosts: Vec<String>,
    notes: Vec<String>,
}

impl Planned {
    /// # Errors
    /// Where the account exists, or a group does not, or a service principal name has an owner.
    async fn of(directory: &mut Directory, options: &Options) -> anyhow::Result<Self> {
        let name = &options.name;
        let forest = directory.forest.clone().context("the directory does not show its domains")?;
        let of_path = options.path.as_ref().and_then(|path| forest.of_object(path));
        let domain =
            of_path.or_else(|| forest.own()).context("the file has several domains: --path DN names the container")?;
        if let Some(found) = directory.account(&AccountName::Sam(name.clone(), Some(domain.domain.dns.clone()))).await?
        {
            bail!("account {name} exists: {}", found.name);
        }
        let mut sids = Vec::new();
        for group in &options.hosts_group {
            sids.push(principal(directory, &domain.name, group).await?);
        }
        let found = lint::owners(directory, options.services.iter().map(String::as_str)).await?;
        let unread = found.unread.iter().map(|(domain, error)| {
            format!(
                "warning: who has the service principal names in {domain} could not be checked: {}",
                causes::chain(error)
            )
        });
        let wanted = |service: &str| options.services.iter().any(|wanted| wanted.eq_ignore_ascii_case(service));
        if let Some((service, owners)) = found.owners.iter().find(|(service, _)| wanted(service)) {
            bail!(
                "service principal name {service} is one of {} already: clients would get no ticket for it",
                owners.join(", ")
            );
        }
        let mut principals = Principals::default();
        principals.look_up(directory, &sids).await?;
        let hosts = sids.iter().map(|sid| match principals.get(sid) {
            Some(Principal::Group { name, members: Some(members) }) => {
                format!("group {name} ({})", plural(members.len(), "member"))
            }
            _ => principals.name(sid),
        });
        let findings = lint::forest(directory, &[], UtcDateTime::now()).await?;
        let notes = findings.iter().filter(|found| found.severity > Severity::Note);
        let notes = notes.map(|found| format!("{}: {}: {}", found.severity.as_str(), found.object, found.message));
        let notes = notes.chain(unread).collect();
        let container = options.path.clone().unwrap_or_else(|| format!("CN=Managed Service Accounts,{}", domain.name));
        Ok(Self { hosts: hosts.collect(), notes, entry: entry(options, &container, &sids) })
    }

    fn shown(&self, options: &Options, address: &str) -> String {
        let names = std::iter::once(("DNS host name", &options.dns_host_name));
        let services = options.services.iter().map(|name| ("service", name));
        let hosts = self.hosts.iter().map(|name| ("password for", name));
        let mut text = format!("In {address}:\n  {}\n", one_line(&self.entry.name));
        for (label, value) in names.chain(services).chain(hosts) {
            let _ = writeln!(text, "  {label}: {}", one_line(value));
        }
        text.push_str("  encryption: AES128, AES256");
        text
    }
}

/// The SID of a group, a user or a computer.
async fn principal(directory: &mut Directory, base: &str, typed: &str) -> anyhow::Result<Sid> {
    let names = [typed.to_owned(), format!("{typed}$")].map(|name| Filter::equals("sAMAccountName", name));
    let filter = Filter::Any(names.to_vec());
    let search = Search { base, scope: Scope::Subtree, filter, attributes: &["objectSid"] };
    let found = directory.search(&search).await?;
    match found.as_slice() {
        [one] => one.sid("objectSid").with_context(|| format!("{typed} has no SID")),
        [] => bail!("there is no group, user or computer {typed} in the domain"),
        _ => bail!("several objects of the domain have the name {typed}"),
    }
}

fn entry(options: &Options, container: &str, sids: &[Sid]) -> Entry {
    let mut entry = Entry { name: format!("CN={},{container}", escaped(&options.name)), ..Entry::default() };
    let mut set = |attribute: &str, values: Vec<Vec<u8>>| {
        if !values.is_empty() {
            entry.attributes.insert(attribute.to_owned(), values);
        }
    };
    let text = |text: &str| vec![text.as_bytes().to_vec()];
    set("objectClass", text(CLASS));
    set("sAMAccountName", text(&format!("{}$", options.name)));
    set("dNSHostName", text(&options.dns_host_name));
    set("servicePrincipalName", options.services.iter().map(|name| name.as_bytes().to_vec()).collect());
    set("userAccountControl", text(WORKSTATION_TRUST));
    set("msDS-SupportedEncryptionTypes", text(AES));
    set("msDS-ManagedPasswordInterval", text(&options.interval.to_string()));
    set(MEMBERSHIP, vec![allowing(sids)]);
    entry
}

/// The command for PowerShell.
fn powershell(options: &Options) -> anyhow::Result<String> {
    let quoted = |text: &String| {
        shell::powershell(text).with_context(|| format!("no command can hold the name {}", Quoted::new(text)))
    };
    let list = |texts: &[String]| -> anyhow::Result<String> {
        Ok(texts.iter().map(quoted).collect::<anyhow::Result<Vec<_>>>()?.join(", "))
    };
    let mut lines = vec![format!(
        "New-ADServiceAccount -Name {} -DNSHostName {}",
        quoted(&options.name)?,
        quoted(&options.dns_host_name)?
    )];
    if !options.services.is_empty() {
        lines.push(format!("  -ServicePrincipalNames {}", list(&options.services)?));
    }
    if let Some(path) = &options.path {
        lines.push(format!("  -Path {}", quoted(path)?));
    }
    lines.push(format!("  -KerberosEncryptionType AES128, AES256 -ManagedPasswordIntervalInDays {}", options.interval));
    lines.push(format!("  -PrincipalsAllowedToRetrieveManagedPassword {}", list(&options.hosts_group)?));
    Ok(lines.join(" `\n") + "\n")
}

//! The flags by which commands ask Active Directory, and what they compare with it.
//!
//! Invariants: a password comes from a file, the environment or a terminal, never from an argument; it is wiped after use, and the
//! process leaves no core dump from before it is read.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::Args;
use gmsa_core::{
    account,
    credspec::lint,
    diagnostic::{Diagnostic, Rule, rules},
    quote::Quoted,
};
use gmsa_directory::{
    Access, Address, Confirm, Controller, Credentials, Directory, Entry, Resolver,
    account::{AccountName, Found},
    ldif,
    principal::Principals,
};
use serde_json::Value;
use zeroize::Zeroizing;

use super::{
    confirm::{confirmed, has_terminal},
    input,
};

/// The environment variable that holds the password.
const VARIABLE: &str = "GMSA_DIRECTORY_PASSWORD";
/// The longest password that Active Directory takes, in characters, is 256.
const MAX_PASSWORD: usize = 1024;

/// Which directory, and as which user.
#[derive(Debug, Args)]
#[command(next_help_heading = "Directory")]
pub struct DirectoryOptions {
    #[arg(
        long,
        value_name = "URL|DOMAIN|FILE",
        help = "Active Directory: ldaps://HOST[:PORT], ldap://HOST[:PORT] (with StartTLS), the DNS name of a domain, or a file of LDIF, - for \
                standard input"
    )]
    directory: Option<String>,
    #[arg(
        long,
        value_name = "USER",
        requires = "directory",
        help = "The user to log on to it as: USER@DOMAIN, DOMAIN\\USER or a distinguished name. The password is asked for, or taken from \
                $GMSA_DIRECTORY_PASSWORD"
    )]
    directory_user: Option<String>,
    /// A file with the password, or - for standard input
    #[arg(long, value_name = "FILE", requires = "directory_user")]
    directory_password_file: Option<PathBuf>,
    /// A PEM file with the authority that made the certificates of the domain controllers [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "directory")]
    directory_ca: Option<PathBuf>,
    /// A DNS server that knows the domain, with its port where that is not 53 [default: those of the system]
    #[arg(long, value_name = "IP", requires = "directory", value_parser = Resolver::at)]
    directory_dns: Option<Resolver>,
}

/// What is needed to open a directory.
pub enum Source {
    Live(Box<Access>),
    Printed(Vec<Entry>),
}

impl DirectoryOptions {
    /// The user, for messages.
    pub fn user(&self) -> &str {
        self.directory_user.as_deref().unwrap_or_default()
    }

    /// Reads the password, or the file; `None` where no directory is named.
    ///
    /// # Errors
    /// Where something is missing or cannot be read.
    pub fn source(&self) -> anyhow::Result<Option<Source>> {
        let Some(named) = &self.directory else { return Ok(None) };
        if named == input::STDIN || is_file(named) {
            let text = input::text(Path::new(named))?;
            let entries = ldif::read(&text).with_context(|| format!("cannot read {named}"))?;
            if entries.is_empty() {
                bail!("no entry in {named}");
            }
            return Ok(Some(Source::Printed(entries)));
        }
        let address = Address::parse(named).map_err(|expected| anyhow::anyhow!("--directory {named}: {expected}"))?;
        let user = self
            .directory_user
            .clone()
            .context("missing: --directory-user USER@DOMAIN; no directory is read without a user")?;
        leave_no_core_dump();
        let password = self.password(&user)?;
        Ok(Some(Source::Live(Box::new(Access {
            address,
            resolver: self.directory_dns.clone(),
            authority: self.directory_ca.clone(),
            confirm: self.confirm(&user),
            credentials: Credentials { user, password },
        }))))
    }

    /// The question before the password goes to a host that only the DNS says to be a controller. Where the password comes from a file, or without
    /// a terminal, nobody answers it.
    fn confirm(&self, user: &str) -> Option<Confirm> {
        let user = user.to_owned();
        let is_asked = self.directory_password_file.is_none() && has_terminal();
        is_asked.then(|| {
            let asked = move |controller: &Controller, domain: &str| {
                let question = format!(
                    "The DNS names {controller} as a domain controller of {domain}. Its certificate does not have the name {domain}, and any host of \
                     the domain can have such a one. Send the password of {user} to {controller}?"
                );
                confirmed(&question).unwrap_or(false)
            };
            Box::new(asked) as Confirm
        })
    }

    fn password(&self, user: &str) -> anyhow::Result<Zeroizing<String>> {
        if let Some(file) = &self.directory_password_file {
            let name = file.display();
            return if file == Path::new(input::STDIN) {
                password_of(io::stdin().lock())
            } else {
                File::open(file).map_err(Into::into).and_then(password_of)
            }
            .with_context(|| format!("cannot read the password in {name}"));
        }
        if let Some(password) = env::var_os(VARIABLE) {
            let password = password.into_string().ok().with_context(|| format!("${VARIABLE} is not text"))?;
            return Ok(Zeroizing::new(password));
        }
        if !has_terminal() {
            bail!("there is no terminal to ask for the password: use --directory-password-file FILE, or ${VARIABLE}");
        }
        write!(io::stderr(), "Password of {user}: ")?;
        io::stderr().flush()?;
        Ok(Zeroizing::new(rpassword::read_password().context("cannot read the password")?))
    }
}

/// Whether a file is meant, which may not exist.
fn is_file(named: &str) -> bool {
    let path = Path::new(named);
    let is_ldif = path.extension().is_some_and(|of| of.eq_ignore_ascii_case("ldif") || of.eq_ignore_ascii_case("ldf"));
    path.is_file() || is_ldif || (!named.contains("://") && named.contains(['/', '\\']))
}

/// One line of a file, or all of it without the line break at its end.
fn password_of(input: impl io::Read) -> anyhow::Result<Zeroizing<String>> {
    // Never moved while it is read, so that nothing of it stays behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_PASSWORD + 1));
    input.take(MAX_PASSWORD as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_PASSWORD {
        bail!("it is longer than {MAX_PASSWORD} bytes");
    }
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    Ok(text)
}

/// A core dump would hold the password.
fn leave_no_core_dump() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // Where the limit cannot be lowered, the system has its own reasons; the password is wiped all the same.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

impl Source {
    /// Whether it can be asked, and written to.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    /// Opens it.
    ///
    /// # Errors
    /// Where the directory cannot be reached, or does not let the user in.
    pub async fn open(self) -> anyhow::Result<Directory> {
        Ok(match self {
            Self::Live(access) => Directory::connect(*access).await?,
            Self::Printed(entries) => Directory::printed(entries),
        })
    }
}

/// The account with this name.
///
/// # Errors
/// Where there is none, with where it was looked for.
pub async fn account(directory: &mut Directory, typed: &str) -> anyhow::Result<Found> {
    let found = directory.account(&AccountName::parse(typed)).await?;
    found.with_context(|| format!("there is no account {typed} in {}", places(directory)))
}

/// The domains that are looked at, for messages.
fn places(directory: &Directory) -> String {
    match &directory.forest {
        Some(forest) if directory.is_live() => {
            let names: Vec<&str> = forest.domains.iter().map(|of| of.domain.dns.as_str()).collect();
            names.join(", ")
        }
        _ => directory.address().to_owned(),
    }
}

/// What a file lacks that was printed without them.
pub const NO_DOMAINS: &str = "the file does not show its domains: add the entries below CN=Partitions,CN=Configuration, and those of the domains \
    themselves (objectClass=domainDNS)";

/// What is wrong with an account, and said of the credential spec that names it.
pub const SAID_OF_SPECS: [&Rule; 2] = [&rules::ACCOUNT_CLASS, &rules::ACCOUNT_DISABLED];

/// Compares a credential spec with the directory: its domain, and its accounts.
///
/// # Errors
/// Where the directory cannot be asked.
pub async fn against(directory: &mut Directory, spec: &Value) -> anyhow::Result<(Vec<Diagnostic>, Option<Found>)> {
    const MACHINE: &str = "credspec.DomainJoinConfig.MachineAccountName";
    let forest = directory.forest.clone().context(NO_DOMAINS)?;
    let join = |key: &str| spec.pointer(&format!("/credspec/DomainJoinConfig/{key}")).and_then(Value::as_str);
    let named = join("DnsName").and_then(|dns| forest.named(dns).ok());
    let Some(sam) = join("MachineAccountName") else {
        // What is missing is another finding.
        let domain = named.or_else(|| forest.own());
        return Ok((domain.map(|of| lint::against(spec, &of.domain)).unwrap_or_default(), None));
    };
    let typed = AccountName::Sam(sam.to_owned(), named.map(|of| of.domain.dns.clone()));
    let found = directory.account(&typed).await?;
    // Where the DNS name is wrong, the account says which domain is meant.
    let of_account = found.as_ref().and_then(|found| forest.of_object(&found.name));
    let domain = named.or(of_account).or_else(|| forest.own());
    let mut list = domain.map(|of| lint::against(spec, &of.domain)).unwrap_or_default();
    match &found {
        None => {
            let place = domain.map_or_else(|| places(directory), |of| of.domain.dns.clone());
            let problem = format!("there is no account {} in {place}", Quoted::new(sam));
            list.push(Diagnostic {
                field: MACHINE.to_owned(),
                ..Diagnostic::new(&rules::ACCOUNT_UNKNOWN, problem).with_fix(rules::ACCOUNT_UNKNOWN.remedy)
            });
        }
        Some(found) => {
            let account = found.account(&Principals::default());
            // The domain is compared above, field by field.
            let others = account::lint::against(std::slice::from_ref(&account), spec).into_iter();
            list.extend(others.filter(|found| found.field == "SamAccountName"));
            let of_account = account::lint::account(&account, &[]).into_iter();
            let of_account = of_account.filter(|found| SAID_OF_SPECS.contains(&found.rule));
            list.extend(of_account.map(|found| Diagnostic {
                field: MACHINE.to_owned(),
                message: format!("{}: {} {}", found.object, found.field, found.message),
                ..found
            }));
        }
    }
    Ok((list, found))
}

/// A service principal name as it is typed.
pub fn service(text: &str) -> Result<String, String> {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| !c.is_whitespace() && !c.is_control());
    match text.split_once('/') {
        Some((class, host)) if is_part(class) && is_part(host) => Ok(text.to_owned()),
        _ => Err("expected CLASS/HOST, such as http/web.contoso.com".to_owned()),
    }
}

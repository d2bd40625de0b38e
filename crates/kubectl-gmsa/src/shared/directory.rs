//! The flags by which commands ask Active Directory, and how it is opened with them.
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
use gmsa_directory::{Access, Address, Confirm, Controller, Credentials, Directory, NameServers, ldif};
use zeroize::Zeroizing;

use super::{
    confirm::{confirmed, has_terminal},
    input,
};

/// The environment variable that holds the password.
const VARIABLE: &str = "GMSA_DIRECTORY_PASSWORD";
/// The longest password that Active Directory takes, in characters, is 256.
const MAX_PASSWORD: usize = 1024;

/// What the help calls these options.
pub const HEADING: &str = "Directory";

/// Which directory, and as which user.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct DirectoryOptions {
    #[arg(
        long,
        value_name = "URL|DOMAIN|FILE",
        help = "A server, a domain, or a file of LDIF",
        long_help = "A server, a domain, or a file of LDIF\n\nldaps://HOST[:PORT], ldap://HOST[:PORT] (with StartTLS), the DNS name of a domain, a \
                     file, or - for standard input"
    )]
    directory: Option<String>,
    #[arg(
        long,
        value_name = "USER",
        requires = "directory",
        help = "The user to log on to it as",
        long_help = "The user to log on to it as\n\nUSER@DOMAIN, DOMAIN\\USER or a distinguished name. The password is asked for, or taken from \
                     $GMSA_DIRECTORY_PASSWORD"
    )]
    directory_user: Option<String>,
    /// A file with the password, or -
    #[arg(long, value_name = "FILE", requires = "directory_user")]
    directory_password_file: Option<PathBuf>,
    /// PEM file of its certificate authority
    ///
    /// [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "directory")]
    directory_ca: Option<PathBuf>,
    /// A DNS server that knows the domain
    ///
    /// With its port where that is not 53 [default: those of the system]
    #[arg(long, value_name = "IP", requires = "directory", value_parser = NameServers::at)]
    directory_dns: Option<NameServers>,
}

/// What is needed to open a directory.
pub enum Source {
    Live(Box<Access>),
    Printed(Box<Directory>),
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
            return Ok(Some(Source::Printed(Box::new(Directory::printed(&text)?))));
        }
        let address = Address::parse(named).map_err(|expected| anyhow::anyhow!("--directory {named}: {expected}"))?;
        let user = self
            .directory_user
            .clone()
            .context("missing: --directory-user USER@DOMAIN; no directory is read without a user")?;
        if !user.contains(['@', '\\', '=']) {
            bail!(
                "--directory-user {user}: expected USER@DOMAIN, DOMAIN\\USER or a distinguished name; no password was sent"
            );
        }
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

/// What is in a file, without the line break at its end: UTF-8 or UTF-16, as PowerShell writes one, with its mark.
fn password_of(input: impl io::Read) -> anyhow::Result<Zeroizing<String>> {
    // Never moved while it is read, so that nothing of it stays behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSWORD + 1));
    input.take(MAX_PASSWORD as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_PASSWORD {
        bail!("it is longer than {MAX_PASSWORD} bytes");
    }
    let mut text = Zeroizing::new(String::with_capacity(2 * MAX_PASSWORD));
    let mut units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units =
            bytes.chunks(2).map(|pair| unit([pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)]));
        char::decode_utf16(units).try_for_each(|c| c.map(|c| text.push(c)))
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes)?,
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => text.push_str(std::str::from_utf8(rest)?),
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
    /// Whether it can be asked.
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
            Self::Printed(directory) => *directory,
        })
    }
}

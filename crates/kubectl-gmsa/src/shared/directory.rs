//! The flags for Active Directory, and the connection that they describe.
//!
//! Invariants: a password comes from a file, the environment or a terminal, never from an argument. It is wiped after use, except in the
//! environment; on Unix, core dumps are switched off before it is read, where the system allows it.

use std::{
    collections::BTreeMap,
    env,
    fs::File,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::Args;
use gmsa_accounts::ldif;
use gmsa_core::quote::one_line;
use gmsa_directory::{
    Access, Address, Budget, Confirm, Controller, Credentials, Directory, NameServers,
    account::{Account, AccountName},
    credentials::{is_user, password_in},
};
use zeroize::Zeroizing;

use super::{input, spelling::nearest};

/// The environment variable that holds the password.
const VARIABLE: &str = "GMSA_DIRECTORY_PASSWORD";
/// The heading of these options in the help.
pub const HEADING: &str = "Directory";

/// The directories and their users. A value given once is for all live directories; otherwise each directory has its own, in the same order.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct DirectoryOptions {
    #[arg(
        long,
        value_name = "URL|DOMAIN|FILE",
        help = "A server, a domain, or a file of LDIF",
        long_help = "A server, a domain, or a file of LDIF\n\nldaps://HOST[:PORT], ldap://HOST[:PORT] (with StartTLS), the DNS name of a domain, a \
                     file, or - for standard input; repeatable, for several forests, with the options below once, or once for each that is not a file"
    )]
    directory: Vec<String>,
    #[arg(
        long,
        value_name = "USER",
        requires = "directory",
        help = "The user to log on to it as",
        long_help = "The user to log on to it as\n\nUSER@DOMAIN, DOMAIN\\USER or a distinguished name. The password is asked for, or taken from \
                     $GMSA_DIRECTORY_PASSWORD"
    )]
    directory_user: Vec<String>,
    /// A file with the password, or -
    #[arg(long, value_name = "FILE", requires = "directory_user")]
    directory_password_file: Vec<PathBuf>,
    /// File of its certificate authority, PEM or DER
    ///
    /// [default: the CAs of the system]
    #[arg(long, value_name = "FILE", requires = "directory")]
    directory_ca: Vec<PathBuf>,
    /// A DNS server that knows the domain
    ///
    /// With its port where that is not 53 [default: those of the system]
    #[arg(long, value_name = "IP", requires = "directory", value_parser = NameServers::at)]
    directory_dns: Vec<NameServers>,
}

/// The input for opening a directory.
pub enum Source {
    Live(Box<Access>),
    Printed(Box<Directory>),
}

impl DirectoryOptions {
    /// The only directory on the command line, read or with its password; `None` without one.
    ///
    /// # Errors
    /// Where something is missing or cannot be read, or several are named.
    pub fn source(&self) -> anyhow::Result<Option<Source>> {
        self.expect_one()?;
        Ok(self.sources()?.pop())
    }

    /// # Errors
    /// Where several directories are named.
    pub fn expect_one(&self) -> anyhow::Result<()> {
        if let [_, other, ..] = self.directory.as_slice() {
            bail!("accounts that are named are looked for in one directory: leave --directory {other} out");
        }
        Ok(())
    }

    /// The directories on the command line, read or with their passwords.
    ///
    /// # Errors
    /// Where something is missing or cannot be read.
    pub fn sources(&self) -> anyhow::Result<Vec<Source>> {
        let is_printed = |named: &str| named == input::STDIN || is_file(named);
        let count = self.directory.iter().filter(|named| !is_printed(named)).count();
        let (mut sources, mut place, mut asked) = (Vec::new(), 0, None);
        for named in &self.directory {
            if is_printed(named) {
                sources.push(printed(named)?);
            } else {
                sources.push(self.live(named, (place, count), &mut asked)?);
                place += 1;
            }
        }
        Ok(sources)
    }

    /// A live directory, by its index among them and their count. `asked` is the password of the one user for all of them.
    fn live(
        &self,
        named: &str,
        place: (usize, usize),
        asked: &mut Option<Zeroizing<String>>,
    ) -> anyhow::Result<Source> {
        let address = Address::parse(named).map_err(|expected| anyhow::anyhow!("--directory {named}: {expected}"))?;
        let user = value("--directory-user", &self.directory_user, place)?;
        let user = user.context("missing: --directory-user USER@DOMAIN; no directory is read without a user")?.clone();
        if !is_user(&user) {
            bail!(
                "--directory-user {user}: expected USER@DOMAIN, DOMAIN\\USER or a distinguished name; no password was sent"
            );
        }
        let file = value("--directory-password-file", &self.directory_password_file, place)?.cloned();
        if file.is_none() && self.directory_user.len() > 1 && env::var_os(VARIABLE).is_some() {
            bail!("${VARIABLE} holds the password of one user: with several, use --directory-password-file for each");
        }
        let resolver = value("--directory-dns", &self.directory_dns, place)?.cloned();
        let authority = value("--directory-ca", &self.directory_ca, place)?.cloned();
        leave_no_core_dump();
        let is_one = self.directory_user.len() == 1 && self.directory_password_file.len() < 2;
        let password = match asked.take().filter(|_| is_one) {
            Some(password) => password,
            None => password(&user, file.as_deref())?,
        };
        *asked = Some(password.clone());
        let confirm = confirm(&user, file.is_some());
        let credentials = Credentials { user, password };
        let budget = Budget::default().into();
        Ok(Source::Live(Box::new(Access { address, resolver, authority, credentials, budget, confirm })))
    }
}

/// The value of a flag for a live directory, by its index among them and their count.
fn value<'v, T>(flag: &str, values: &'v [T], (place, count): (usize, usize)) -> anyhow::Result<Option<&'v T>> {
    match values {
        [] => Ok(None),
        [all] => Ok(Some(all)),
        each if each.len() == count => Ok(each.get(place)),
        some => bail!(
            "{flag} is given {} times for {count} directories: give it once for all, or once for each, in the same order",
            some.len()
        ),
    }
}

/// A directory from a file of LDIF, such as `ldapsearch` prints.
fn printed(named: &str) -> anyhow::Result<Source> {
    let read = ldif::directory(&input::text(Path::new(named))?);
    Ok(Source::Printed(Box::new(read.with_context(|| format!("cannot read {named}"))?)))
}

/// Asks before the password goes to a host that only DNS names as a controller. `None` if the password comes from a file, or without
/// a terminal.
fn confirm(user: &str, has_file: bool) -> Option<Confirm> {
    let user = user.to_owned();
    let is_asked = !has_file && has_terminal();
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

fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal; everything but yes is no.
fn confirmed(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{} [y/N] ", one_line(question))?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The account with this name, as it is typed.
///
/// # Errors
/// If it does not exist: names the one that may be meant. If a domain that may have it cannot be asked.
pub async fn typed_account(directory: &mut Directory, name: &str) -> anyhow::Result<Account> {
    let typed = AccountName::parse(name);
    if let Some(found) = directory.account(&typed).await? {
        return Ok(found);
    }
    let absent = format!("there is no account {name} in {}", directory.places());
    let AccountName::Sam(sam, domain) = typed else { bail!(absent) };
    let known = directory.accounts(domain.as_deref()).await.unwrap_or_default();
    // Active Directory compares without case.
    let known: BTreeMap<String, &str> = known.iter().map(|of| (of.sam.to_lowercase(), of.sam.as_str())).collect();
    let nearest = nearest(&sam.to_lowercase(), known.keys().map(String::as_str));
    let meant = nearest.and_then(|near| known.get(near)).map(|sam| format!(": is {sam} meant?"));
    bail!("{absent}{}", meant.unwrap_or_default())
}

fn password(user: &str, file: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    if let Some(file) = file {
        let name = file.display();
        return if file == Path::new(input::STDIN) {
            password_in(io::stdin().lock())
        } else {
            File::open(file).and_then(password_in)
        }
        .with_context(|| format!("cannot read the password in {name}"));
    }
    if let Some(password) = env::var_os(VARIABLE) {
        let password = Zeroizing::new(password.into_encoded_bytes());
        return password_in(password.as_slice()).with_context(|| format!("cannot read the password in ${VARIABLE}"));
    }
    if !has_terminal() {
        bail!("there is no terminal to ask for the password: use --directory-password-file FILE, or ${VARIABLE}");
    }
    write!(io::stderr(), "Password of {user}: ")?;
    io::stderr().flush()?;
    Ok(Zeroizing::new(rpassword::read_password().context("cannot read the password")?))
}

/// Whether the text is the path of a file, which may not exist.
fn is_file(named: &str) -> bool {
    let path = Path::new(named);
    let is_ldif = path.extension().is_some_and(|of| of.eq_ignore_ascii_case("ldif") || of.eq_ignore_ascii_case("ldf"));
    path.is_file() || is_ldif || (!named.contains("://") && named.contains(['/', '\\']))
}

/// Switches core dumps off, because they would contain the password.
fn leave_no_core_dump() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // A failure is ignored: the password is wiped in any case.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
}

impl Source {
    /// Opens the directory.
    ///
    /// # Errors
    /// If the directory cannot be reached, or refuses the user.
    pub async fn open(self) -> anyhow::Result<Directory> {
        Ok(match self {
            Self::Live(access) => Directory::connect(*access).await?,
            Self::Printed(directory) => *directory,
        })
    }
}

/// Opens all directories.
///
/// # Errors
/// The error of the first that fails, as in [`Source::open`].
pub async fn opened(sources: Vec<Source>) -> anyhow::Result<Vec<Directory>> {
    let mut directories = Vec::new();
    for source in sources {
        directories.push(source.open().await?);
    }
    Ok(directories)
}

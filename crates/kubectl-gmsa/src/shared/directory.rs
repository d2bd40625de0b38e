//! The flags for Active Directory, and the connection that they describe.
//!
//! Invariants: a password comes from a file, the environment or a terminal, never from an argument. It is wiped after use, except in the
//! environment; on Unix, core dumps are switched off before it is read, where the system allows it.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use gmsa_directory::{
    Access, Address, Budget, Confirm, Controller, Credentials, Directory, Error, NameServers,
    account::{Account, AccountName},
    entry, ldif,
};
use zeroize::Zeroizing;

use super::{
    confirm::{confirmed, has_terminal},
    input, names,
};

/// The environment variable that holds the password.
const VARIABLE: &str = "GMSA_DIRECTORY_PASSWORD";
/// The longest password that Active Directory takes, in characters, is 256.
const MAX_PASSWORD: usize = 1024;
/// The prefix of `ConvertFrom-SecureString` output on Windows: the GUID of its encryption provider (DPAPI).
const SECURE_STRING: &str = "01000000d08c9ddf0115d1118c7a00c04fc297eb";

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
                let place_of_this = DirectoryIndex { place, count };
                place += 1;
                sources.push(self.live(named, place_of_this, &mut asked)?);
            }
        }
        Ok(sources)
    }

    /// A live directory. `asked` is the password of the one user for all of them.
    fn live(
        &self,
        named: &str,
        place: DirectoryIndex,
        asked: &mut Option<Zeroizing<String>>,
    ) -> anyhow::Result<Source> {
        let address = Address::parse(named).map_err(|expected| anyhow::anyhow!("--directory {named}: {expected}"))?;
        let user = place.of("--directory-user", &self.directory_user)?;
        let user = user.context("missing: --directory-user USER@DOMAIN; no directory is read without a user")?.clone();
        if !is_user(&user) {
            bail!(
                "--directory-user {user}: expected USER@DOMAIN, DOMAIN\\USER or a distinguished name; no password was sent"
            );
        }
        let file = place.of("--directory-password-file", &self.directory_password_file)?.cloned();
        if file.is_none() && self.directory_user.len() > 1 && env::var_os(VARIABLE).is_some() {
            bail!("${VARIABLE} holds the password of one user: with several, use --directory-password-file for each");
        }
        let resolver = place.of("--directory-dns", &self.directory_dns)?.cloned();
        let authority = place.of("--directory-ca", &self.directory_ca)?.cloned();
        leave_no_core_dump();
        let is_one = self.directory_user.len() == 1 && self.directory_password_file.len() < 2;
        let password = match asked.take().filter(|_| is_one) {
            Some(password) => password,
            None => password(&user, file.as_deref())?,
        };
        *asked = Some(password.clone());
        let confirm = confirm(&user, file.is_some());
        let credentials = Credentials { user, password };
        Ok(Source::Live(Box::new(Access {
            address,
            resolver,
            authority,
            credentials,
            budget: Budget::default(),
            confirm,
        })))
    }
}

/// The index among the live directories.
#[derive(Clone, Copy)]
struct DirectoryIndex {
    place: usize,
    count: usize,
}

impl DirectoryIndex {
    /// The value of a flag for this directory.
    fn of<'v, T>(self, flag: &str, values: &'v [T]) -> anyhow::Result<Option<&'v T>> {
        match values {
            [] => Ok(None),
            [all] => Ok(Some(all)),
            each if each.len() == self.count => Ok(each.get(self.place)),
            some => bail!(
                "{flag} is given {} times for {} directories: give it once for all, or once for each, in the same order",
                some.len(),
                self.count
            ),
        }
    }
}

/// A directory from a file of LDIF, such as `ldapsearch` prints.
fn printed(named: &str) -> anyhow::Result<Source> {
    let text = input::text(Path::new(named))?;
    let entries = ldif::read(&text).with_context(|| format!("cannot read {named}"))?;
    ensure!(!entries.is_empty(), "no entry in {named}");
    Ok(Source::Printed(Box::new(Directory::printed(&text)?)))
}

/// Whether the text is a user name that a domain controller accepts. Any other would only fail to log on.
fn is_user(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', '/', '\\', '@']) && name.trim() == name;
    let is_domain = |domain: &str| is_name(domain) && !domain.contains(|c: char| c.is_whitespace() || c == '=');
    if let Some((domain, name)) = text.split_once('\\').filter(|(domain, _)| !domain.contains('=')) {
        return is_domain(domain) && is_name(name);
    }
    if let Some((name, domain)) = text.rsplit_once('@').filter(|(_, domain)| !domain.contains('=')) {
        return is_name(name) && !name.contains(char::is_whitespace) && is_domain(domain);
    }
    let is_part = |part: &str| part.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty());
    entry::domain_of(text).is_some() && entry::parts(text).all(is_part)
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

/// The account with this name, as it is typed.
///
/// # Errors
/// If it does not exist: names the one that may be meant. If a domain that may have it cannot be asked.
pub async fn typed_account(directory: &mut Directory, name: &str) -> anyhow::Result<Account> {
    let error = match directory.typed(name).await {
        Err(error @ Error::NoAccount(..)) => error,
        found => return Ok(found?),
    };
    let AccountName::Sam(sam, domain) = AccountName::parse(name) else { return Err(error.into()) };
    let known = directory.accounts(domain.as_deref()).await.unwrap_or_default();
    // Active Directory compares without case.
    let known: Vec<(String, &str)> = known.iter().map(|of| (of.sam.to_lowercase(), of.sam.as_str())).collect();
    let nearest = names::nearest(&sam.to_lowercase(), known.iter().map(|(lower, _)| lower.as_str()));
    let meant = nearest.and_then(|near| known.iter().find(|(lower, _)| lower == near));
    match meant {
        Some((_, sam)) => bail!("{error}: is {sam} meant?"),
        None => Err(error.into()),
    }
}

fn password(user: &str, file: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    if let Some(file) = file {
        let name = file.display();
        return if file == Path::new(input::STDIN) {
            password_of(io::stdin().lock())
        } else {
            File::open(file).map_err(Into::into).and_then(password_of)
        }
        .with_context(|| format!("cannot read the password in {name}"));
    }
    if let Some(password) = env::var_os(VARIABLE) {
        let password = Zeroizing::new(password.into_encoded_bytes());
        return password_of(password.as_slice()).with_context(|| format!("cannot read the password in ${VARIABLE}"));
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

/// The password in a file, without the line break at its end: UTF-8 or UTF-16 with a byte order mark, as PowerShell writes it.
/// A text that cannot be a password is refused, because each wrong password counts towards a lockout.
fn password_of(input: impl io::Read) -> anyhow::Result<Zeroizing<String>> {
    // Large enough from the start: a buffer that grows would leave a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSWORD + 1));
    input.take(MAX_PASSWORD as u64 + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() <= MAX_PASSWORD, "it is longer than {MAX_PASSWORD} bytes");
    let mut text = Zeroizing::new(String::with_capacity(2 * MAX_PASSWORD));
    let mut units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units =
            bytes.chunks(2).map(|pair| unit([pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)]));
        char::decode_utf16(units).try_for_each(|c| c.map(|c| text.push(c)))
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes)?,
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => {
            text.push_str(std::str::from_utf8(rest).context("it is neither UTF-8 nor UTF-16 with its mark")?);
        }
    }
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    if text.contains('\n') {
        bail!("it has several lines: expected the password alone");
    } else if text.contains(char::is_control) {
        bail!(
            "it has control characters, as UTF-16 without its mark has: expected the password alone, in UTF-8, or in UTF-16 with the mark"
        );
    } else if text.starts_with(SECURE_STRING) || text.starts_with("<Objs ") {
        bail!("it is encrypted by PowerShell (SecureString): expected the password itself");
    }
    Ok(text)
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

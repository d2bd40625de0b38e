//! The domain, and the program as its users run it.

use std::{
    env,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::LazyLock,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Where the domain controller is installed.
static ROOT: LazyLock<PathBuf> =
    LazyLock::new(|| env::var_os("DOMAIN_ROOT").expect("tests/directory.sh sets DOMAIN_ROOT").into());

pub const ADMIN: (&str, &str) = ("administrator@contoso.com", "Passw0rd!Admin");

/// Runs a command with this on its standard input.
fn fed(command: &mut Command, stdin: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// What a command prints where the controller is installed; it must succeed.
pub fn prints(command: &[&str], stdin: &str) -> String {
    let output = fed(Command::new("chroot").arg(&*ROOT).args(command).env("LDAPTLS_CACERT", "/tls/ca.pem"), stdin);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Administers the domain, as `samba-tool` does it.
pub fn administer(command: &str) {
    let database = ["--configfile=/dc/etc/smb.conf", "-H", "/dc/private/sam.ldb"];
    prints(&["samba-tool"].into_iter().chain(command.split(' ')).chain(database).collect::<Vec<_>>(), "");
}

/// Changes objects of the domain, as LDIF says it, in the database itself: a controller refuses some faults that domains have.
pub fn change(ldif: &str) {
    prints(&["ldbmodify", "-H", "/dc/private/sam.ldb.d/DC=CONTOSO,DC=COM.ldb"], ldif);
}

/// Adds objects over the network, as administrators do.
pub fn add(ldif: &str) {
    prints(&["ldapadd", "-H", "ldaps://dc1.contoso.com", "-x", "-D", ADMIN.0, "-w", ADMIN.1], ldif);
}

/// An account whose password the members of a group may retrieve, with these service principal names, as administrators add it over the
/// network.
pub fn account(name: &str, group: &str, services: &[&str]) {
    let shown =
        prints(&["ldbsearch", "-H", "/dc/private/sam.ldb", &format!("sAMAccountName={group}"), "objectSid"], "");
    let sid = gmsa_directory::Sid::parse(&field(&shown, "objectSid")).unwrap().to_bytes();
    let length = |length: usize| u16::try_from(length).unwrap().to_le_bytes();
    // As `New-ADServiceAccount` makes it: O:BAD:(A;;0xf01ff;;;SID).
    let owner = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0];
    let header = [1, 0, 0x04, 0x80, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 36, 0, 0, 0];
    let entry = [&[0, 0][..], &length(8 + sid.len()), &[0xFF, 0x01, 0x0F, 0], &sid].concat();
    let list = [&[4, 0][..], &length(8 + entry.len()), &[1, 0, 0, 0], &entry].concat();
    let descriptor = BASE64_STANDARD.encode([&header[..], &owner, &list].concat());
    let services: Vec<String> = services.iter().map(|service| format!("servicePrincipalName: {service}\n")).collect();
    add(&format!(
        "dn: CN={name},CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: add\nobjectClass: msDS-GroupManagedServiceAccount\n\
         sAMAccountName: {name}$\ndNSHostName: {name}.contoso.com\nmsDS-ManagedPasswordInterval: 30\nuserAccountControl: 4096\n\
         msDS-SupportedEncryptionTypes: 24\nmsDS-GroupMSAMembership:: {descriptor}\n{}",
        services.concat()
    ));
}

/// A user, and a group that it is in where one is named.
pub fn user(name: &str, password: &str, group: Option<&str>) {
    administer(&format!("user create {name} {password}"));
    if let Some(group) = group {
        administer(&format!("group addmembers {group} {name}"));
    }
}

/// The folder that the controller is installed in.
pub fn root() -> &'static Path {
    &ROOT
}

/// The folder with the certificates.
pub fn tls() -> PathBuf {
    ROOT.parent().unwrap().join("tls")
}

/// The options for the domain, whose controller this DNS names, as one of its users.
pub fn directory(dns: &str, user: &str) -> String {
    let authority = tls().join("ca.pem");
    format!(
        "--directory contoso.com --directory-dns {dns} --directory-user {user} --directory-ca {}",
        authority.display()
    )
}

/// What a command of the plugin ended with.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

/// Runs the plugin with the words of this line in a folder, without a terminal.
pub fn gmsa_in(folder: &Path, line: &str, password: Option<&str>, stdin: &str) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-gmsa"));
    command.args(line.split(' ')).current_dir(folder).env_clear().env("HOME", "/nonexistent");
    let output = fed(command.envs(password.map(|password| ("GMSA_DIRECTORY_PASSWORD", password))), stdin);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// Runs the plugin against the domain, whose controller the DNS names, as one of its users.
pub fn gmsa(command: &str, user: (&str, &str)) -> Ended {
    gmsa_there(tempfile::tempdir().unwrap().path(), command, user)
}

/// As [`gmsa`], in a folder.
pub fn gmsa_there(folder: &Path, command: &str, (user, password): (&str, &str)) -> Ended {
    gmsa_in(folder, &format!("{command} {}", directory("10.0.0.1", user)), Some(password), "")
}

/// Runs the plugin at a terminal, which `script` makes, up to this question; then `answer` goes on. Everything that is shown, and the exit code.
pub fn at_terminal(
    line: &str,
    password: Option<&str>,
    echo: &str,
    question: &str,
    answer: impl FnOnce(&mut Child),
) -> (String, Option<i32>) {
    let line = format!("{} {line}", env!("CARGO_BIN_EXE_kubectl-gmsa"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--echo", echo, "--command", &line, "/dev/null"]);
    command.envs(password.map(|password| ("GMSA_DIRECTORY_PASSWORD", password)));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut shown, mut terminal, mut byte) = (String::new(), child.stdout.take().unwrap(), [0]);
    while !shown.ends_with(question) {
        terminal.read_exact(&mut byte).unwrap();
        shown.push(char::from(byte[0]));
    }
    answer(&mut child);
    terminal.read_to_string(&mut shown).unwrap();
    (shown.replace('\r', ""), child.wait().unwrap().code())
}

/// What a command prints that ends with this code and complains of nothing.
pub fn said(ended: Ended, code: i32) -> String {
    assert_eq!((ended.stderr.as_str(), ended.code), ("", Some(code)), "{}", ended.stdout);
    ended.stdout
}

/// An attribute of the domain of the domain, as its controller says it.
pub fn of_domain(attribute: &str) -> String {
    let read = ["ldbsearch", "-H", "/dc/private/sam.ldb", "-s", "base", "-b", "DC=contoso,DC=com", attribute];
    field(&prints(&read, ""), attribute)
}

fn field(shown: &str, name: &str) -> String {
    let line = shown.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {shown}")).to_owned()
}

//! A real Active Directory domain, which `tests/directory.sh` makes: its administration, its users and accounts.
//!
//! It needs root: commands run where the controller is installed, in the folder that `DOMAIN_ROOT` names.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Where the domain controller is installed.
static ROOT: LazyLock<PathBuf> =
    LazyLock::new(|| env::var_os("DOMAIN_ROOT").expect("tests/directory.sh sets DOMAIN_ROOT").into());

pub const ADMIN: (&str, &str) = ("administrator@contoso.com", "Passw0rd!Admin");

/// Runs a command with this on its standard input.
pub fn fed(command: &mut Command, stdin: &str) -> Output {
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

/// An attribute of the domain of the domain, as its controller says it.
pub fn of_domain(attribute: &str) -> String {
    let read = ["ldbsearch", "-H", "/dc/private/sam.ldb", "-s", "base", "-b", "DC=contoso,DC=com", attribute];
    field(&prints(&read, ""), attribute)
}

fn field(shown: &str, name: &str) -> String {
    let line = shown.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {shown}")).to_owned()
}

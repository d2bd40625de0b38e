//! How the directory is reached, and what is said where it cannot be.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::termios::{LocalModes, tcgetattr};

use crate::domain::{ADMIN, Ended, account, administer, change, gmsa, gmsa_in, said, tls, user};

const ASKED: &str = "account lint --directory";

/// Runs `account lint` with these words, where the answer is an error.
fn refused(words: &str, password: Option<&str>) -> String {
    let authority = tls();
    let words: Vec<String> = words.split(' ').map(|word| word.replace("TLS", authority.to_str().unwrap())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let Ended { stdout, stderr, code } = gmsa_in(folder.path(), &words, password, "");
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    stderr.strip_prefix("error: ").unwrap().trim_end().to_owned()
}

#[test]
fn each_address_of_a_controller_is_taken_with_tls() {
    administer("group add WayHosts");
    user("wayuser", "Passw0rd!Way", Some("WayHosts"));
    account("WayApp", "WayHosts", &["http/way"]);
    let folder = tempfile::tempdir().unwrap();
    // As Windows exports it.
    let authority = folder.path().join("ca.der");
    let mut convert = Command::new("openssl");
    convert.args(["x509", "-outform", "der", "-in"]).arg(tls().join("ca.pem")).arg("-out").arg(&authority);
    assert!(convert.status().unwrap().success());
    for address in [
        "contoso.com",
        "ldaps://dc1.contoso.com",
        "ldaps://dc1.contoso.com:636",
        "ldap://dc1.contoso.com",
        "ldap://contoso.com:389",
    ] {
        let words = [
            "account",
            "lint",
            "CONTOSO\\WayApp",
            "--directory",
            address,
            "--directory-dns",
            "10.0.0.1",
            "--directory-user",
            "CONTOSO\\administrator",
            "--directory-ca",
            authority.to_str().unwrap(),
            "--directory-password-file",
            "-",
        ];
        let shown = said(gmsa_in(folder.path(), &words, None, "Passw0rd!Admin\r\n"), 0);
        assert_eq!(shown.lines().next(), Some("Account:       WayApp"), "{address}");
    }
}

#[test]
fn what_is_wrong_with_the_connection_is_said_in_words() {
    let lines: Vec<&str> = include_str!("refused").lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 22);
    for case in lines.chunks(2) {
        let wanted = case[1].trim_start().replace("TLS/", &format!("{}/", tls().display()));
        assert_eq!(refused(&format!("{ASKED} {}", case[0]), Some(ADMIN.1)), wanted, "{}", case[0]);
    }
}

#[test]
fn why_a_user_may_not_log_on_is_said_in_words() {
    for name in ["offuser", "lateuser", "lockuser"] {
        user(name, "Passw0rd!Logon", None);
    }
    administer("user disable offuser");
    change("dn: CN=lateuser,CN=Users,DC=contoso,DC=com\nchangetype: modify\nreplace: pwdLastSet\npwdLastSet: 0\n");
    let as_user = |name: &str, password: &str| {
        let words = format!(
            "{ASKED} contoso.com --directory-dns 10.0.0.1 --directory-ca TLS/ca.pem --directory-user {name}@contoso.com"
        );
        refused(&words, Some(password))
    };
    for (name, password, why) in [
        ("lockuser", "wrong", "the password is wrong, or the domain does not know the user"),
        ("nobody", "Passw0rd!Logon", "the password is wrong, or the domain does not know the user"),
        ("offuser", "Passw0rd!Logon", "the account is disabled"),
        ("lateuser", "Passw0rd!Logon", "the password must be changed first"),
        // Without a password the controller would let anybody in, as nobody.
        ("lockuser", "", "the user or the password is empty"),
    ] {
        let said = format!("ldaps://dc1.contoso.com does not let {name}@contoso.com in: {why}");
        assert_eq!(as_user(name, password), said);
    }
}

/// The process of the plugin that looks for nobody.
fn program() -> String {
    let is_it = |process: &PathBuf| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        program == Path::new(env!("CARGO_BIN_EXE_kubectl-gmsa")) && words.windows(6).any(|word| word == b"Nobody")
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let found = processes.into_iter().find(is_it).unwrap();
    found.file_name().unwrap().to_str().unwrap().to_owned()
}

/// At a terminal, which `script` makes.
#[test]
fn the_password_is_asked_for_and_not_shown() {
    let authority = tls().join("ca.pem");
    let line = format!(
        "{} account lint Nobody --directory contoso.com --directory-dns 10.0.0.1 --directory-ca {} --directory-user {}",
        env!("CARGO_BIN_EXE_kubectl-gmsa"),
        authority.display(),
        ADMIN.0
    );
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut shown, mut terminal) = (String::new(), child.stdout.take().unwrap());
    let mut byte = [0];
    while !shown.ends_with("Password of administrator@contoso.com: ") {
        terminal.read_exact(&mut byte).unwrap();
        shown.push(char::from(byte[0]));
    }
    let mut keys = child.stdin.take().unwrap();
    // The terminal shows what is typed until the program has told it not to, right after the question.
    let terminal_of_program = File::open(format!("/proc/{}/fd/0", program())).unwrap();
    while tcgetattr(&terminal_of_program).unwrap().local_modes.contains(LocalModes::ECHO) {
        std::thread::yield_now();
    }
    writeln!(keys, "{}", ADMIN.1).unwrap();
    terminal.read_to_string(&mut shown).unwrap();
    assert_eq!(
        shown.replace('\r', ""),
        "Password of administrator@contoso.com: \nerror: there is no account Nobody in contoso.com\n"
    );
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

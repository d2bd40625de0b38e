//! How the directory is reached, and what is said where it cannot be.

use std::{
    fs::{self, File},
    io::Write as _,
    process::Command,
    thread,
};

use rustix::termios::{LocalModes, tcgetattr};

use crate::domain::{ADMIN, Ended, account, administer, at_terminal, change, directory, gmsa_in, said, tls, user};

/// Runs `account lint` with these words, where the answer is an error.
fn refused(words: &str, password: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let Ended { stdout, stderr, code } = gmsa_in(folder.path(), words, password, "");
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    stderr.strip_prefix("error: ").unwrap().trim_end().to_owned()
}

#[test]
fn each_address_of_a_controller_is_taken_with_tls() {
    administer("group add WayHosts");
    user("wayuser", "Passw0rd!Way", Some("WayHosts"));
    account("WayApp", "WayHosts", &["http/way.contoso.com"]);
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
        let line = format!(
            "account lint CONTOSO\\WayApp --directory {address} --directory-dns 10.0.0.1 --directory-ca {} \
             --directory-user CONTOSO\\administrator --directory-password-file -",
            authority.display()
        );
        let shown = said(gmsa_in(folder.path(), &line, None, "Passw0rd!Admin\r\n"), 0);
        assert_eq!(shown.lines().next(), Some("Account:       WayApp"), "{address}");
    }
}

#[test]
fn what_is_wrong_with_the_connection_is_said_in_words() {
    let lines: Vec<&str> = include_str!("refused").lines().filter(|line| !line.starts_with('#')).collect();
    for case in lines.chunks(2) {
        let [options, wanted] =
            [case[0], case[1].trim_start()].map(|line| line.replace("TLS/", &format!("{}/", tls().display())));
        assert_eq!(refused(&format!("account lint --directory {options}"), Some(ADMIN.1)), wanted, "{options}");
    }
}

#[test]
fn why_a_user_may_not_log_on_is_said_in_words() {
    for name in ["offuser", "lateuser", "lockuser"] {
        user(name, "Passw0rd!Logon", None);
    }
    administer("user disable offuser");
    change("dn: CN=lateuser,CN=Users,DC=contoso,DC=com\nchangetype: modify\nreplace: pwdLastSet\npwdLastSet: 0\n");
    for (name, password, why) in [
        ("lockuser", "wrong", "the password is wrong, or the domain does not know the user"),
        ("nobody", "Passw0rd!Logon", "the password is wrong, or the domain does not know the user"),
        ("offuser", "Passw0rd!Logon", "the account is disabled"),
        ("lateuser", "Passw0rd!Logon", "the password must be changed first"),
        // Without a password the controller would let anybody in, as nobody.
        ("lockuser", "", "the user or the password is empty"),
    ] {
        let said = format!("ldaps://dc1.contoso.com does not let {name}@contoso.com in: {why}");
        let options = directory("10.0.0.1", &format!("{name}@contoso.com"));
        assert_eq!(refused(&format!("account lint {options}"), Some(password)), said);
    }
}

/// The terminal shows what is typed until the program has told it not to, right after the question.
#[test]
fn the_password_is_asked_for_and_not_shown() {
    let line = format!("account lint Nobody {}", directory("10.0.0.1", ADMIN.0));
    let question = "Password of administrator@contoso.com: ";
    let (shown, code) = at_terminal(&line, None, "always", question, |script| {
        let started = fs::read_to_string(format!("/proc/{0}/task/{0}/children", script.id())).unwrap();
        let terminal = File::open(format!("/proc/{}/fd/0", started.trim())).unwrap();
        while tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO) {
            thread::yield_now();
        }
        writeln!(script.stdin.take().unwrap(), "{}", ADMIN.1).unwrap();
    });
    assert_eq!(shown, format!("{question}\nerror: there is no account Nobody in contoso.com\n"));
    assert_eq!(code, Some(2));
}

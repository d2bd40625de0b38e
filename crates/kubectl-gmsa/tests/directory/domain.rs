//! The plugin as its users run it, against the domain of [`gmsa_test_support::domain`].

use std::{
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use gmsa_test_support::domain::fed;
pub use gmsa_test_support::domain::{ADMIN, account, add, administer, change, of_domain, prints, root, tls, user};

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

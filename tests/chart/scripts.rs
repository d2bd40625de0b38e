//! The scripts under `deploy/` and `certs/` with hostile input: what is refused before anything is done, and what reaches a terminal. No cluster is needed.

use std::{fs, process::Command};

use gmsa_test_support::run;

use crate::{
    files::{executable, text},
    snapshot::assert_file,
};

const OWN_CA: &str = "certs/own-ca/issue-certificate.sh";

/// Each of them gave a certificate or a request that asked for more. `refused-by-scripts` has a command on a line, and below it, indented, its exit code
/// and what it says.
#[test]
fn names_that_would_become_lines_of_a_configuration_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder_argument = ["--folder", folder.path().to_str().unwrap(), "--no-apply"];
    let file = "tests/chart/refused-by-scripts";
    let mut found = String::new();
    for line in text(file).lines().filter(|line| !line.starts_with(' ')) {
        let (code, printed, said) = run(Command::new("bash").args(["-c", line]).env("FOLDER", folder.path()));
        assert_eq!(printed, "", "{line}");
        found.extend([line, "\n    ", &code.to_string(), " ", &said]);
    }
    assert_file(file, &found);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let (code, ..) = run(Command::new(OWN_CA).args(folder_argument).args(["--service", "web", "--namespace", "apps"]));
    assert_eq!(code, 0);
    let inspect = ["x509", "-noout", "-ext", "basicConstraints,subjectAltName", "-in"];
    let (_, certificate, _) = run(Command::new("openssl").args(inspect).arg(folder.path().join("tls.crt")));
    assert!(certificate.contains("CA:FALSE") && certificate.contains("DNS:web.apps.svc, "), "{certificate}");
}

#[test]
fn what_a_server_says_reaches_no_terminal_as_an_escape() {
    let folder = tempfile::tempdir().unwrap();
    let kubectl = folder.path().join("kubectl");
    let script = "#!/bin/sh\nprintf 'error: no \\033]0;title\\007\\033[2Jrights\\302\\2332J\\r\\n' >&2\nexit 1\n";
    executable(&kubectl, script);
    let mut deploy = Command::new("deploy/deploy-gmsa-webhook.sh");
    let ran = run(deploy.arg("--file").arg(folder.path().join("m.yml")).env("KUBECTL", &kubectl));
    let said = "deploy-gmsa-webhook.sh: no cluster: no ]0;title[2Jrights2J\n";
    assert_eq!(ran, (2, String::new(), said.to_owned()));
}

#[test]
fn the_short_form_of_help_is_known() {
    let [long, short] = ["--help", "-h"].map(|option| run(Command::new("deploy/deploy-gmsa-webhook.sh").arg(option)));
    assert_eq!(short, long);
    assert_eq!(short.0, 0);
}

/// Signs of a sentence that stops its reader, in a page, a comment and a message, and not in code or in what a page quotes.
#[test]
fn words_that_stop_a_reader_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = fs::canonicalize(".ci/sentences.py").unwrap();
    let check = |file: &str, text: &str| {
        fs::write(folder.path().join(file), text).unwrap();
        run(Command::new("python3").arg(&script).arg(file).current_dir(folder.path()))
    };
    let refused = |file: &str, line: u32, sign: &str| {
        (1, format!("{file}:{line}: `{sign}`: start with the noun, in plain words\n"), String::new())
    };
    assert_eq!(check("page.md", "# Title\n\nFirst mend it.\n"), refused("page.md", 3, "mend"));
    assert_eq!(check("page.md", "It is so. Of two replicas, one waits.\n"), refused("page.md", 1, "Of two"));
    assert_eq!(check("code.rs", "fn mend() {}\n/// Whoever calls is told.\n"), refused("code.rs", 2, "is told"));
    assert_eq!(check("code.rs", "    // Of those, none.\n"), refused("code.rs", 1, "Of those"));
    assert_eq!(check("code.rs", "fn mend() { say(\"mend\") }\n"), refused("code.rs", 1, "mend"));
    let clean = (0, "no long sentences or cells, no words that stop a reader\n".to_owned(), String::new());
    for (file, text) in [
        ("page.md", "The file `mend` amends it. One of two replicas waits.\n\n```sh\nmend anew\n```\n"),
        ("code.rs", "fn mend() {} // mend\n"),
    ] {
        assert_eq!(check(file, text), clean);
    }
}

/// What `just sentences` refuses: and not in code, in what a command writes, or in a page that one writes.
#[test]
fn long_sentences_and_cells_of_pages_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let words = |count: usize| vec!["word"; count].join(" ");
    let check = |text: &str| {
        fs::write(folder.path().join("page.md"), text).unwrap();
        let script = fs::canonicalize(".ci/sentences.py").unwrap();
        let (code, stdout, stderr) = run(Command::new("python3").arg(script).arg("page.md").current_dir(folder.path()));
        assert_eq!(stderr, "");
        (code, stdout)
    };
    let clean = (0, "no long sentences or cells, no words that stop a reader\n".to_owned());
    let begin = words(8);
    let refused = |line: u32, what: &str, limit: u32| {
        (1, format!("page.md:{line}: a {what} of {} words, more than {limit}: {begin} …\n", limit + 1))
    };
    assert_eq!(
        check(&format!("# Title\n\n{}.\n{}; {}\n\n| {} | b |\n", words(34), words(34), words(35), words(40))),
        clean
    );
    assert_eq!(check(&format!("# Title\n\n{}\n{}.\n", words(20), words(16))), refused(3, "sentence", 35));
    assert_eq!(check(&format!("A point.\n\n- short\n- {}\n", words(34))), clean);
    assert_eq!(check(&format!("| a | b |\n|---|---|\n| x | {} |\n", words(41))), refused(3, "table cell", 40));
    let code = format!("```sh\n{}\n```\n", words(50));
    assert_eq!(check(&code), clean);
    assert_eq!(check(&format!("{code}\n{}", words(36))), refused(5, "sentence", 35));
    let written = format!("<!-- times: written by `just bench` -->\n| {} |\n<!-- times: end -->\n", words(50));
    assert_eq!(check(&written), clean);
    assert_eq!(check(&format!("Made by a command: do not edit.\n\n{}\n", words(50))), clean);
}

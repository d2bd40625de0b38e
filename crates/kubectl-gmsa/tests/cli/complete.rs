//! `kubectl gmsa <TAB>`: what kubectl reads from `kubectl_complete-gmsa`.

use std::path::Path;

use super::{run, text};

fn completed(words: &[&str]) -> Vec<String> {
    let output = run(Path::new("."), &[&["__complete"], words].concat(), b"");
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// Without descriptions.
fn names(words: &[&str]) -> Vec<String> {
    completed(words).iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn commands_options_and_values_are_completed() {
    let cases: [(&[&str], &[&str]); 11] = [
        (&["who"], &["who-can", ":4"]),
        (&["credspec", ""], &["new", "lint", "help", ":4"]),
        (&["--context", "a", "-n", "shop", "acc"], &["account", ":4"]),
        (&["outdated", "--re"], &["--restart", "--request-timeout", ":4"]),
        (&["outdated", "--output", ""], &["table", "json", "sarif", "github", ":4"]),
        (&["outdated", "-o", "s"], &["sarif", ":4"]),
        (&["outdated", "--output=j"], &["--output=json", ":4"]),
        (&["outdated", "--dry-run", "--al"], &["--all-namespaces", ":4"]),
        (&["check", "-f", "ma"], &[":0"]),
        (&["completion", "po"], &["powershell", ":4"]),
        (&["none", ""], &[":4"]),
    ];
    for (words, expected) in cases {
        assert_eq!(names(words), expected, "{words:?}");
    }
    assert_eq!(completed(&["can"]), ["can\tList what credential specs a service account may use, and why", ":4"]);
    let all = names(&[]);
    assert_eq!((all.first().unwrap().as_str(), all.last().unwrap().as_str()), ("check", ":4"));
    assert!(!all.iter().any(|name| name == "reference"), "{all:?}");
}

/// What kubectl runs finds the program on the `PATH`, and gives it the words as they are, an empty one included.
#[cfg(unix)]
#[test]
fn the_script_gives_the_words_to_the_program() {
    let program = Path::new(env!("CARGO_BIN_EXE_kubectl-gmsa"));
    let script = super::repository().join("deploy/kubectl_complete-gmsa");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let output =
        std::process::Command::new(script).args(["credspec", ""]).env_clear().env("PATH", path).output().unwrap();
    assert!(text(&output.stdout).starts_with("new\t"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with("\n:4\n"));
}

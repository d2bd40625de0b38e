//! `kubectl gmsa <TAB>`: what kubectl reads from `kubectl_complete-gmsa`. What is completed is in `tests/cli/cases/complete.txt`.

use std::{path::Path, process::Command};

use super::{repository, text};

/// What kubectl runs finds the program on the `PATH`, and gives it the words as they are, an empty one included.
#[test]
fn the_script_gives_the_words_to_the_program() {
    let program = Path::new(env!("CARGO_BIN_EXE_kubectl-gmsa"));
    let script = repository().join("deploy/kubectl_complete-gmsa");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let output = Command::new(script).args(["credspec", ""]).env_clear().env("PATH", path).output().unwrap();
    assert!(text(&output.stdout).starts_with("new\t"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with("\n:4\n"));
}

//! `verify`, against a container that answers from transcripts (`tests/verify/CASE/transcript`), over the same web socket as that
//! of a real API server.
//!
//! A transcript is what `kubectl exec` shows: `> COMMAND`, what it prints, and `exit CODE` where that is not 0; `hangs` is a command
//! that never ends. A command that is not there is one that the image does not have. What is in a folder with `german` in its
//! name is sent in code page 850, as a German console writes it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    cluster::run,
    compare,
    simulated::{cluster, folder},
    support::exec::{answer_each, code_page_850, parse},
    text,
};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_found_in_its_transcript() {
    let api = cluster(&folder("verify")).await;
    let mut wrong = Vec::new();
    assert!(cases().len() > 15, "the cases are gone");
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let encode = if name.contains("german") { code_page_850 } else { |text: &str| text.as_bytes().to_vec() };
        let transcript = parse(&fs::read_to_string(case.join("transcript")).unwrap(), encode);
        answer_each(&api, move |_, command| transcript.get(command).cloned());
        // A command that never ends is not waited for long.
        let mut arguments = vec!["verify", "pod/web", "-n", "shop"];
        if name.contains("hangs") {
            arguments.extend(["--timeout", "1"]);
        }
        let output = run(&api, &arguments).await;
        let code = format!("{}\n", output.status.code().unwrap());
        wrong.extend(compare(&case.join("stdout"), text(&output.stdout)));
        wrong.extend(compare(&case.join("stderr"), text(&output.stderr)));
        wrong.extend(compare(&case.join("code"), &code));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

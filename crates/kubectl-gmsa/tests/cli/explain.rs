//! `explain`, of what the page on troubleshooting lists: the table of node errors has its test beside the rules, this is the one of refusals.

use std::{fs, process::Stdio};

use super::{program, repository, text};

#[test]
fn every_message_of_the_page_is_explained() {
    let page = fs::read_to_string(repository().join("docs/troubleshooting.md")).unwrap();
    let (_, table) = page.split_once("| Message | Cause | Command |\n|---|---|---|\n").unwrap();
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 10);
    let folder = tempfile::tempdir().unwrap();
    for row in rows {
        let messages = row.split('|').nth(1).unwrap().trim();
        for message in messages.split("`, `").map(|message| message.trim_matches('`')) {
            let output = program(folder.path()).args(["explain", message]).stdin(Stdio::null()).output().unwrap();
            let said = text(&output.stdout).to_owned() + text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{message}: {said}");
        }
    }
}

//! The picture of the README: what `kubectl gmsa why` prints at a terminal of one of the [`cases`], with its colours.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Read as _,
    process::Stdio,
};

use super::{
    super::{
        cases::{Case, tests},
        repository,
    },
    terminal,
};

const PICTURE: &str = "docs/assets/why.svg";
/// A Deployment of which no pod may use the account.
const CASE: &str = "cli/recorded/no-use-2.txt";

/// All that comes out of a terminal until its program has ended.
fn read(mut terminal: File) -> String {
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    // Its end is an error on Linux.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        said.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(said).unwrap()
}

/// A line with the colours that were written to the terminal.
fn line(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut parts = escaped.split("\u{1b}[");
    let mut line = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap();
        let style = match code {
            "0" => "fill=\"#e6edf3\"",
            "1" => "font-weight=\"bold\"",
            "31" => "fill=\"#ff7b72\"",
            "32" => "fill=\"#56d364\"",
            "33" => "fill=\"#e3b341\"",
            "36" => "fill=\"#76e3ea\"",
            code => panic!("no colour for {code}"),
        };
        write!(line, "<tspan {style}>{rest}</tspan>").unwrap();
    }
    line
}

fn picture(session: &str) -> String {
    let lines: Vec<&str> = session.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap();
    let (width, height) = (columns * 8 + 32, lines.len() * 20 + 24);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <style>text {{ white-space: pre }}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#e6edf3\">\n"
    );
    for (at, text) in lines.iter().enumerate() {
        writeln!(svg, "<text x=\"16\" y=\"{}\">{}</text>", at * 20 + 28, line(text)).unwrap();
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn the_picture_of_the_readme_shows_what_is_printed() {
    let case = Case::read(&tests().join(CASE));
    let command = &case.commands[0];
    let (ours, theirs) = terminal();
    let mut child = case.typed(command).env("TERM", "xterm").stdout(Stdio::from(theirs)).spawn().unwrap();
    child.wait().unwrap();
    // The bundle stands for the cluster, so the picture shows the command without it.
    let session = format!("$ {command}\n{}", read(ours));
    let found = picture(&session);
    let path = repository().join(PICTURE);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), found);
}

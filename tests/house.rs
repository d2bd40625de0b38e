//! Guards the house: who may import whom, what the pure modules may not touch, and that every file says what it is for.
//!
//! The rules are the tables at the top; the reader below them understands just as much Rust as paths need.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read the source must fail")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A top-level module and what it may reach. A module may always reach itself.
struct Room {
    name: &'static str,
    /// The other modules of this crate that it may import; `*` for all but `cli`.
    imports: &'static [&'static str],
    outside: Outside,
}

/// The crates that a module may reach.
enum Outside {
    /// These alone, and of `std` nothing that does I/O or knows the time.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}
use Outside::{AllBut, Only};

/// Who may import whom, from the bottom of the house to its top.
#[rustfmt::skip]
const HOUSE: &[Room] = &[
    // The pure part.
    Room { name: "credspec",   imports: &[],                                    outside: Only(&["serde", "serde_json", "thiserror"]) },
    Room { name: "admission",  imports: &["credspec"],                          outside: Only(&["base64", "serde", "serde_json", "thiserror"]) },
    // What others build on: none of these sees a route or a decision being made.
    Room { name: "metrics",    imports: &[],                                    outside: AllBut(&["axum", "kube"]) },
    Room { name: "shutdown",   imports: &[],                                    outside: AllBut(&["axum", "kube"]) },
    Room { name: "telemetry",  imports: &[],                                    outside: AllBut(&["axum", "kube"]) },
    Room { name: "config",     imports: &["credspec", "telemetry", "tls"],      outside: AllBut(&["axum", "kube"]) },
    Room { name: "manifests",  imports: &[],                                    outside: AllBut(&["axum", "kube"]) },
    Room { name: "apiserver",  imports: &["admission"],                         outside: AllBut(&["axum"]) },
    Room { name: "coalesce",   imports: &[],                                    outside: AllBut(&["axum", "kube"]) },
    // Where facts come from.
    Room { name: "resolver",   imports: &["admission", "apiserver", "coalesce", "credspec", "manifests", "metrics"], outside: AllBut(&["axum"]) },
    Room { name: "authorizer", imports: &["admission", "apiserver", "coalesce", "credspec", "manifests"], outside: AllBut(&["axum"]) },
    Room { name: "standalone", imports: &["admission", "authorizer", "credspec", "manifests", "resolver"], outside: AllBut(&["axum", "kube"]) },
    Room { name: "tls",        imports: &["apiserver", "credspec", "telemetry"],            outside: AllBut(&["axum"]) },
    // What answers.
    Room { name: "admin",      imports: &["metrics", "shutdown"],               outside: AllBut(&["kube"]) },
    Room { name: "server",     imports: &["admission", "authorizer", "config", "credspec", "metrics", "resolver", "telemetry"], outside: AllBut(&["kube"]) },
    // What people start. Nothing imports these.
    Room { name: "cli",        imports: &["*"],                                 outside: AllBut(&[]) },
    Room { name: "bin",        imports: &["*", "cli"],                          outside: AllBut(&[]) },
];

/// The parts of `std` that do I/O, start threads, know the time or draw random numbers.
const IMPURE_STD: &[&str] = &["env", "fs", "io", "net", "os", "process", "random", "thread", "time"];

/// The words that name a list of slots, in Rust and in JSON. Only the walk over the slots may know them.
const SLOT_LISTS: &[&str] = &["initContainers", "ephemeralContainers", "init_containers", "ephemeral_containers"];
const SLOT_WALK: &str = "src/admission/pod.rs";

#[test]
fn no_arrow_runs_backwards() {
    let crates = dependencies(&fs::read_to_string(root().join("Cargo.toml")).unwrap());
    assert!(crates.iter().any(|name| name == "tokio") && crates.iter().any(|name| name == "serde_json"), "{crates:?}");
    assert_clean(|file, source| imports(file, source, &crates));
}

#[test]
fn every_file_says_what_it_is_for() {
    assert_clean(|file, source| opening(file, source).into_iter().collect());
}

#[test]
fn only_the_walk_knows_the_lists_of_slots() {
    assert!(fs::read_to_string(root().join(SLOT_WALK)).unwrap().contains("initContainers"));
    assert_clean(slot_lists);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a rule over every file in src/ and fails with all that it found.
fn assert_clean(rule: impl Fn(&str, &str) -> Vec<String>) {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    assert!(files.len() > 10, "the source is not where it was");
    let faults: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
            rule(file, &fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
}

/// The names of the `[dependencies]`, as paths write them.
fn dependencies(manifest: &str) -> Vec<String> {
    let table = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = table.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    names.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.replace('-', "_")).collect()
}

fn opening(file: &str, source: &str) -> Option<String> {
    (!source.starts_with("//! ")).then(|| format!("{file}:1: does not open with `//! ` and what it is for"))
}

fn slot_lists(file: &str, source: &str) -> Vec<String> {
    if file == SLOT_WALK || !file.starts_with("src/admission") || file.contains("/tests") {
        return Vec::new();
    }
    let lines = source.lines().enumerate();
    let named = lines.filter_map(|(at, line)| Some((at, SLOT_LISTS.iter().find(|list| line.contains(**list))?)));
    named.map(|(at, list)| format!("{file}:{}: names `{list}`: only {SLOT_WALK} may", at + 1)).collect()
}

/// What a file reaches that it may not.
fn imports(file: &str, source: &str, crates: &[String]) -> Vec<String> {
    let Some(module) = module_of(file) else { return Vec::new() };
    let Some(room) = HOUSE.iter().find(|room| Some(room.name) == module.first().map(String::as_str)) else {
        return vec![format!("{file}:1: its module has no row in the table of tests/house.rs")];
    };
    let mut faults = Vec::new();
    for (line, path) in paths(source, &module) {
        let (Some(first), second) = (path.first(), path.get(1).map_or("", String::as_str)) else { continue };
        let fault = match first.as_str() {
            "crate" if !may_import(room, second) => format!("imports `{second}`"),
            "std" | "core" if matches!(room.outside, Only(_)) && IMPURE_STD.contains(&second) => {
                format!("reaches `{first}::{second}`")
            }
            name if crates.iter().any(|known| known == name) && !may_reach(room, name) => format!("reaches `{name}`"),
            _ => continue,
        };
        faults.push(format!("{file}:{line}: `{}` {fault}, which it may not", room.name));
    }
    faults.dedup();
    faults
}

fn may_import(room: &Room, module: &str) -> bool {
    let all = room.imports.contains(&"*") && module != "cli" && module != "bin";
    all || module == room.name || room.imports.contains(&module)
}

fn may_reach(room: &Room, name: &str) -> bool {
    match &room.outside {
        Only(allowed) => allowed.contains(&name),
        AllBut(forbidden) => !forbidden.contains(&name),
    }
}

/// The module that a file holds: `src/resolver/cache.rs` is `resolver`, `cache`. None for the map of the house.
fn module_of(file: &str) -> Option<Vec<String>> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    (path != "lib").then(|| path.split('/').map(str::to_owned).collect())
}

/// Every path in a file, with its line: `use` trees taken apart, `super` and `self` made absolute. A single name is no
/// path, unless it is imported.
fn paths(source: &str, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    // The inline modules around the place, each with the depth of braces at which it ends.
    let mut around: Vec<(usize, String)> = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while let Some((_, token)) = tokens.get(at) {
        let after_use = at > 0 && tokens.get(at - 1).is_some_and(|(_, token)| token == "use");
        let next = |step: usize| tokens.get(at + step).map_or("", |(_, token)| token.as_str());
        match token.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                around.retain(|(ends, _)| *ends <= depth);
            }
            "mod" if next(2) == "{" => around.push((depth + 1, next(1).to_owned())),
            _ if is_word(token) && (next(1) == "::" || after_use) => {
                let here: Vec<String> =
                    module.iter().cloned().chain(around.iter().map(|(_, name)| name.clone())).collect();
                at = tree(&tokens, at, &mut Vec::new(), &here, &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads one path or `use` tree from `at`, adds its branches, and gives back where it ends.
fn tree(
    tokens: &[(usize, String)],
    mut at: usize,
    parts: &mut Vec<String>,
    here: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let (line, mark) = (tokens.get(at).map_or(0, |(line, _)| *line), parts.len());
    while is_word(text(at)) || text(at) == "*" {
        parts.push(text(at).to_owned());
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    if text(at) == "{" && text(at.saturating_sub(1)) == "::" {
        at += 1;
        while !matches!(text(at), "}" | "") {
            at = match text(at) {
                "as" => at + 2,
                word if is_word(word) || word == "*" => tree(tokens, at, parts, here, found),
                _ => at + 1,
            };
        }
        at += 1;
    } else {
        found.push((line, absolute(parts, here)));
    }
    parts.truncate(mark);
    at
}

/// A path from the root of the crate, where it is one of this crate.
fn absolute(parts: &[String], here: &[String]) -> Vec<String> {
    let mut base = here.to_vec();
    let mut rest = parts;
    match parts.first().map(String::as_str) {
        Some("crate" | "gmsa_webhook") => base.clear(),
        Some("self" | "super") => {
            while let Some((first, after)) =
                rest.split_first().filter(|(first, _)| matches!(first.as_str(), "self" | "super"))
            {
                if first == "super" {
                    base.pop();
                }
                rest = after;
            }
            return ["crate".to_owned()].into_iter().chain(base).chain(rest.iter().cloned()).collect();
        }
        _ => return parts.to_vec(),
    }
    ["crate".to_owned()].into_iter().chain(rest.iter().skip(1).cloned()).collect()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single signs, with their lines; comments, strings and characters are left out, and so is a `::` that
/// begins a path.
fn tokens(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let line = 1 + source[..source.len() - rest.len()].matches('\n').count();
        let length = if let Some(skipped) = not_code(rest) {
            skipped
        } else if c.is_whitespace() {
            let space = rest.len() - rest.trim_start().len();
            space + if rest[space..].starts_with("::") { 2 } else { 0 }
        } else {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = if word > 0 {
                word
            } else if rest.starts_with("::") {
                2
            } else {
                c.len_utf8()
            };
            found.push((line, rest[..length].to_owned()));
            length
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the comment, string or character literal that stands here, if one does.
fn not_code(rest: &str) -> Option<usize> {
    let until = |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    if rest.starts_with("//") {
        return Some(until(2, "\n"));
    }
    if rest.starts_with("/*") {
        return Some(until(2, "*/"));
    }
    let prefix = ["br", "b", "r", ""]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.trim_start_matches('#').starts_with('"')));
    if let Some(prefix) = prefix {
        let after = &rest[prefix.len()..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        if prefix.ends_with('r') {
            return Some(until(prefix.len() + hashes + 1, &format!("\"{}", "#".repeat(hashes))));
        }
        return (hashes == 0).then(|| quoted(rest, prefix.len(), '"'));
    }
    // A character, not a lifetime: it is escaped, or closed after one character.
    let start = usize::from(rest.starts_with("b'"));
    let mut chars = rest[start..].strip_prefix('\'')?.chars();
    let (first, second) = (chars.next()?, chars.next());
    (first == '\\' || second == Some('\'')).then(|| quoted(rest, start, '\''))
}

/// The end of a literal that may hold escapes; `open` is where its first quote stands.
fn quoted(rest: &str, open: usize, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip_while(|(at, _)| *at <= open) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    rest.len()
}

mod the_rules {
    use super::*;

    fn faults(file: &str, source: &str) -> Vec<String> {
        imports(file, source, &["tokio".to_owned(), "axum".to_owned(), "kube".to_owned(), "serde".to_owned()])
    }

    #[test]
    fn find_what_a_file_may_not_reach() {
        for (file, source, fault) in [
            ("src/credspec.rs", "use crate::admission::Review;", "1: `credspec` imports `admission`"),
            (
                "src/credspec/text.rs",
                "//! x\nuse crate::{\n    credspec::A,\n    tls::B,\n};",
                "4: `credspec` imports `tls`",
            ),
            ("src/credspec/text.rs", "use super::super::server;", "1: `credspec` imports `server`"),
            ("src/credspec.rs", "use super::{admission as a, credspec};", "1: `credspec` imports `admission`"),
            ("src/credspec.rs", "mod m { mod n { use super::super::super::tls; } }", "1: `credspec` imports `tls`"),
            ("src/credspec.rs", "mod m { }\nuse super::tls;", "2: `credspec` imports `tls`"),
            ("src/admission/review.rs", "fn f() -> crate::server::X {}", "1: `admission` imports `server`"),
            ("src/admission.rs", "use tokio::time::{Instant as I};", "1: `admission` reaches `tokio`"),
            ("src/admission.rs", "fn f() { let x = \"//\"; kube::f(); }", "1: `admission` reaches `kube`"),
            ("src/admission.rs", "use std::{fmt,\n fs::File};", "2: `admission` reaches `std::fs`"),
            ("src/admission.rs", "let now = std::time::Instant::now();", "1: `admission` reaches `std::time`"),
            ("src/admission.rs", "let c = '\"'; use std::env::var;", "1: `admission` reaches `std::env`"),
            ("src/resolver/live.rs", "use axum::Router;", "1: `resolver` reaches `axum`"),
            ("src/server/routes.rs", "use kube::{Client};", "1: `server` reaches `kube`"),
            ("src/server/routes.rs", "use kube::*;", "1: `server` reaches `kube`"),
            ("src/server/routes.rs", "use kube as k;", "1: `server` reaches `kube`"),
            ("src/server/routes.rs", "use ::kube::Api as A;", "1: `server` reaches `kube`"),
            ("src/server/routes.rs", "let x: Vec<kube::Api> = Vec::<u8>::new();", "1: `server` reaches `kube`"),
            ("src/admission.rs", "#[tokio::test]\nasync fn f() {}", "1: `admission` reaches `tokio`"),
            ("src/admission.rs", "use crate::*;", "1: `admission` imports `*`"),
            ("src/server.rs", "use crate::cli::check;", "1: `server` imports `cli`"),
            ("src/metrics.rs", "use crate::server::Config;", "1: `metrics` imports `server`"),
            ("src/cli/check.rs", "use crate::bin::x;", "1: `cli` imports `bin`"),
        ] {
            assert_eq!(faults(file, source), [format!("{file}:{fault}, which it may not")], "{source}");
        }
    }

    #[test]
    fn let_pass_what_a_file_may_reach() {
        for (file, source) in [
            ("src/lib.rs", "use crate::anything::X; use tokio::x;"),
            ("src/credspec.rs", "use serde::Deserialize; use std::{fmt, sync::Arc}; use text::object;"),
            ("src/credspec/text.rs", "use super::Contents; use self::x::y; use super::super::credspec::Z;"),
            ("src/credspec.rs", "mod tests { use super::*; use super::super::credspec; }"),
            (
                "src/credspec.rs",
                "// use tokio::x\n/* axum::y */ let s = \"crate::tls::z\"; let r = r#\"kube::\"a\" tokio::x\"#;",
            ),
            ("src/credspec.rs", "fn f<'a>(c: char) -> &'a str { let q = '\\''; let p = b'\"'; \"tokio::x\" }"),
            ("src/admission.rs", "use crate::credspec::{SpecName, compare::{self, compare}};"),
            ("src/server.rs", "use crate::{admission, metrics::X}; use axum::Router;"),
            ("src/bin/gmsa-webhook.rs", "use gmsa_webhook::{cli::check, server::X}; use kube::Client;"),
        ] {
            assert_eq!(faults(file, source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn know_every_module() {
        assert_eq!(
            faults("src/utils.rs", "use serde::x;"),
            ["src/utils.rs:1: its module has no row in the table of tests/house.rs"]
        );
    }

    #[test]
    fn find_a_file_without_an_opening() {
        assert_eq!(opening("src/a.rs", "//! What for.\n"), None);
        for source in ["", "// What for.\n", "use x;\n//! What for.\n", "//!\n"] {
            assert_eq!(
                opening("src/a.rs", source).unwrap(),
                "src/a.rs:1: does not open with `//! ` and what it is for"
            );
        }
    }

    #[test]
    fn find_a_second_list_of_slots() {
        let source = "\nfor list in [\"containers\", \"initContainers\"] {}";
        assert_eq!(
            slot_lists("src/admission/mutate.rs", source),
            ["src/admission/mutate.rs:2: names `initContainers`: only src/admission/pod.rs may"]
        );
        assert!(slot_lists("src/admission/pod.rs", source).is_empty());
        assert!(slot_lists("src/admission/review/tests.rs", source).is_empty());
        assert!(slot_lists("src/admission/mutate.rs", "review.sub_resource == \"ephemeralcontainers\"").is_empty());
    }

    #[test]
    fn read_the_dependencies_of_the_manifest() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\n# c = d\nserde-saphyr = \"2\"\nkube = { version = \"5\" }\n\n[dev-dependencies]\nproptest = \"1\"\n";
        assert_eq!(dependencies(manifest), ["serde_saphyr", "kube"]);
    }
}

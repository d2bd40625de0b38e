//! What the layout promises and no crate boundary keeps: one walk over the slots of a pod, a server whose parts do not know each
//! other's libraries, and one version in all the files that state it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The words that name a list of slots, in Rust and in JSON.
const SLOT_LISTS: &[&str] = &["initContainers", "ephemeralContainers", "init_containers", "ephemeral_containers"];
/// The only file of the core that may know them, because it walks over slots; and the one that reads fields that Windows does
/// not have, and no slot.
const SLOT_WALK: &str = "crates/core/src/admission/pod.rs";
const OTHER_FIELDS: &str = "crates/core/src/admission/pod/fields/wire.rs";

/// Parts of the server, and the libraries that they must not know.
const WITHOUT: &[(&str, &[&str])] = &[
    ("src/server", &["kube::", "k8s_openapi::"]),
    ("src/admin", &["kube::", "k8s_openapi::"]),
    ("src/metrics", &["kube::", "axum::"]),
    ("src/cache", &["axum::", "hyper::"]),
    ("src/authorization_cache", &["axum::", "hyper::"]),
    ("src/tls", &["axum::", "hyper::"]),
];

#[test]
fn only_the_walk_knows_the_lists_of_slots() {
    assert!(fs::read_to_string(root().join(SLOT_WALK)).unwrap().contains("initContainers"));
    let found = faults("crates/core/src", |file, line| {
        let list = SLOT_LISTS.iter().find(|list| line.contains(**list))?;
        (file != SLOT_WALK && file != OTHER_FIELDS && !file.contains("tests"))
            .then(|| format!("names `{list}`: only {SLOT_WALK} may"))
    });
    assert_eq!(found, [""; 0]);
    let slots =
        faults("crates/core/src/admission/pod/fields", |_, line| line.contains("gmsaCredential").then(String::new));
    assert_eq!(slots, [""; 0]);
}

#[test]
fn the_parts_of_the_server_do_not_know_each_others_libraries() {
    for (part, libraries) in WITHOUT {
        let found = faults(part, |_, line| {
            let library = libraries.iter().find(|library| line.contains(**library))?;
            Some(format!("reaches `{library}`"))
        });
        assert_eq!(found, [""; 0]);
    }
}

#[test]
fn the_commands_of_the_plugin_import_what_they_share_and_never_each_other() {
    for part in ["commands", "shared"] {
        let found = faults(&format!("crates/kubectl-gmsa/src/{part}"), |_, line| {
            line.contains("commands::").then(|| "reaches a command".to_owned())
        });
        assert_eq!(found, [""; 0]);
    }
    // What is above a command's own module is the list of all commands.
    let folder = root().join("crates/kubectl-gmsa/src/commands");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        assert!(!code.contains("super::"), "{} reaches the other commands", file.display());
    }
}

#[test]
fn every_file_states_the_version_of_the_package() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("charts/gmsa-webhook/Chart.yaml", format!("version: {version}")),
        ("charts/gmsa-webhook/Chart.yaml", format!("appVersion: \"{version}\"")),
        ("deploy/deploy-gmsa-webhook.sh", format!("IMAGE=gmsa-webhook:{version}")),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.lines().any(|found| found == line), "{file} has no line {line:?}");
    }
    // The pages name images and archives of this version.
    for file in ["README.md", "docs/install.md", "docs/migrate.md", "docs/quickstart.md"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        for name in ["gmsa-webhook:", "kubectl-gmsa-", "--version "] {
            let stated = text.split(name).skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            for rest in stated {
                assert!(rest.starts_with(version), "{file}: {name}{}", rest.lines().next().unwrap_or_default());
            }
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a rule says of each line of code in the module at `path`: its folder, and the file of the same name beside it.
fn faults(path: &str, rule: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut files = Vec::new();
    rust_files(&root().join(path), &mut files);
    files.extend(Some(root().join(format!("{path}.rs"))).filter(|file| file.is_file()));
    assert!(!files.is_empty(), "there is no source at {path}");
    let mut found = Vec::new();
    for path in files {
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        let source = fs::read_to_string(&path).unwrap();
        let code = source.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        found.extend(code.filter_map(|(at, line)| Some(format!("{file}:{}: {}", at + 1, rule(&file, line)?))));
    }
    found
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
}

//! What the layout promises and no crate boundary keeps: one walk over the slots of a pod, a server whose parts do not know each
//! other's libraries, paths in comments that exist, and one version in all the files that state it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The only file of the core that may know the lists of slots, because it walks over slots.
const SLOT_WALK: &str = "crates/core/src/admission/pod.rs";

/// The words that name a list of slots, in Rust and in JSON.
const SLOT_LISTS: &[&str] = &["initContainers", "ephemeralContainers", "init_containers", "ephemeral_containers"];

/// Modules, and the words that must not be in their code.
const WITHOUT: &[(&str, &[&str])] = &[
    ("crates/core/src", SLOT_LISTS),
    ("crates/core/src/admission/pod/fields", &["gmsaCredential"]),
    // The parts of the server do not know each other's libraries.
    ("src/server", &["kube::", "k8s_openapi::"]),
    ("src/metrics", &["kube::", "axum::"]),
    ("src/cache", &["axum::", "hyper::"]),
    ("crates/edge/src/server", &["kube::", "k8s_openapi::", "gmsa_cluster::"]),
    ("crates/edge/src/admin", &["kube::", "k8s_openapi::", "gmsa_cluster::"]),
    ("crates/edge/src/metrics", &["kube::", "axum::", "gmsa_cluster::"]),
    ("crates/edge/src/authorization_cache", &["axum::", "hyper::"]),
    ("crates/edge/src/tls", &["axum::", "hyper::"]),
    // What a program decides: of the core, the edge knows names, words, texts, and the service account of an access review.
    ("crates/edge/src/server", &["admission::"]),
    ("crates/edge/src/tls", &["admission::", "credspec::"]),
    // The commands of the plugin import what they share and never each other.
    ("crates/kubectl-gmsa/src/commands", &["commands::"]),
    ("crates/kubectl-gmsa/src/shared", &["commands::"]),
];

#[test]
fn no_module_reaches_what_it_must_not_know() {
    assert!(fs::read_to_string(root().join(SLOT_WALK)).unwrap().contains("initContainers"));
    let mut found = Vec::new();
    for (module, words) in WITHOUT {
        let mut files = Vec::new();
        rust_files(&root().join(module), &mut files);
        files.extend(Some(root().join(format!("{module}.rs"))).filter(|file| file.is_file()));
        assert!(!files.is_empty(), "there is no source at {module}");
        for path in files {
            let file = name(&path);
            let may_know = *words == SLOT_LISTS && (file == SLOT_WALK || file.contains("tests"));
            let source = fs::read_to_string(&path).unwrap();
            let code = source.lines().enumerate().filter(|(_, line)| !may_know && !line.trim_start().starts_with("//"));
            let reaches = code.filter_map(|(at, line)| {
                let word = words.iter().find(|word| names(line, word))?;
                Some(format!("{file}:{}: reaches `{word}`, which {module} must not know", at + 1))
            });
            found.extend(reaches);
        }
    }
    assert_eq!(found, [""; 0]);
}

/// Whether a line has a word; a module (`kube::`) also where it gets another name.
fn names(line: &str, word: &str) -> bool {
    let module = word.strip_suffix("::");
    line.contains(word) || module.is_some_and(|module| line.contains(&format!("{module} as ")))
}

#[test]
fn a_module_is_found_under_another_name() {
    for line in ["use kube::Client;", "use kube as k;", "use {axum, kube as k};", "    kube::Client::new(),"] {
        assert!(names(line, "kube::"), "{line}");
    }
    assert!(!names("use crate::kubeconfig;", "kube::"));
}

/// What is above a command's own module is the list of all commands.
#[test]
fn no_command_of_the_plugin_reaches_the_others() {
    let folder = root().join("crates/kubectl-gmsa/src/commands");
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    assert!(files.len() > 30, "{files:?}");
    for file in files {
        let depth = file.strip_prefix(&folder).unwrap().components().count();
        let source = fs::read_to_string(&file).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        let list = "super::".repeat(depth);
        assert!(!names(code, &list), "{} reaches the other commands", file.display());
    }
}

/// Files of other projects that comments name.
const OF_OTHERS: [&str; 2] = ["manifests/coredns.yaml", "charts/coredns/templates/configmap.yaml"];

/// A path in a comment is that of a file, or its end.
#[test]
fn comments_name_files_that_exist() {
    const ENDINGS: [&str; 7] = [".rs", ".md", ".yaml", ".yml", ".tpl", ".py", ".toml"];
    let mut files = Vec::new();
    all_files(root(), &mut files);
    let mut ends: BTreeSet<String> = OF_OTHERS.map(str::to_owned).into();
    for file in &files {
        let mut rest = name(file);
        while let Some((_, end)) = rest.split_once('/') {
            let end = end.to_owned();
            ends.insert(std::mem::replace(&mut rest, end));
        }
        ends.insert(rest);
    }
    let mut missing = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let source = fs::read_to_string(file).unwrap();
        for (at, line) in source.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let words =
                line.trim_start_matches([' ', '/']).split(|c: char| !c.is_alphanumeric() && !"_./-*<>{}$".contains(c));
            let paths = words.map(|word| word.trim_end_matches('.')).filter(|word| {
                ENDINGS.iter().any(|ending| word.ends_with(ending))
                    && word.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                    && !word.contains(['*', '<', '{', '$'])
            });
            let unknown = paths.filter(|path| !ends.contains(*path));
            missing.extend(unknown.map(|path| format!("{}:{}: there is no {path}", name(file), at + 1)));
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_head_of_each_library_is_a_map_of_its_modules() {
    let mut missing = Vec::new();
    for folder in ["accounts", "cluster", "core", "directory", "edge", "kerberos", "rules", "tickets"] {
        let source = root().join("crates").join(folder).join("src");
        let library = fs::read_to_string(source.join("lib.rs")).unwrap();
        let map: String = library.lines().take_while(|line| line.starts_with("//!")).collect();
        for entry in fs::read_dir(&source).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let module = file.strip_suffix(".rs").filter(|name| !["lib", "main", "tests"].contains(name));
            if let Some(module) = module.filter(|module| !map.contains(&format!("`{module}`"))) {
                missing.push(format!("{folder}: {module}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
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

/// The path of a file from the root.
fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/")
}

/// The files below a folder, apart from what git and builds leave.
fn all_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let base = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !path.is_symlink() && base != "target" && base != ".git" {
            all_files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

/// The files of Rust below a folder, in the order of their names.
pub fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
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

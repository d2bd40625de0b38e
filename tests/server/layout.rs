//! What the layout promises and no crate boundary keeps: one walk over the slots of a pod, a server whose parts do not know each
//! other's libraries, no circles between files, and one version in all the files that state it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The only file of the core that may know the lists of slots, because it walks over slots; and the one that reads fields that
/// Windows does not have, and no slot.
const SLOT_WALK: &str = "crates/core/src/admission/pod.rs";
const OTHER_FIELDS: &str = "crates/core/src/admission/pod/fields/wire.rs";

/// The words that name a list of slots, in Rust and in JSON.
const SLOT_LISTS: &[&str] = &["initContainers", "ephemeralContainers", "init_containers", "ephemeral_containers"];

/// Modules, and the words that must not be in their code.
const WITHOUT: &[(&str, &[&str])] = &[
    ("crates/core/src", SLOT_LISTS),
    ("crates/core/src/admission/pod/fields", &["gmsaCredential"]),
    // The parts of the server do not know each other's libraries.
    ("src/server", &["kube::", "k8s_openapi::"]),
    ("src/admin", &["kube::", "k8s_openapi::"]),
    ("src/metrics", &["kube::", "axum::"]),
    ("src/cache", &["axum::", "hyper::"]),
    ("src/authorization_cache", &["axum::", "hyper::"]),
    ("src/tls", &["axum::", "hyper::"]),
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
            let may_know =
                *words == SLOT_LISTS && (file == SLOT_WALK || file == OTHER_FIELDS || file.contains("tests"));
            let source = fs::read_to_string(&path).unwrap();
            let code = source.lines().enumerate().filter(|(_, line)| !may_know && !line.trim_start().starts_with("//"));
            let reaches = code.filter_map(|(at, line)| {
                let word = words.iter().find(|word| line.contains(**word))?;
                Some(format!("{file}:{}: reaches `{word}`, which {module} must not know", at + 1))
            });
            found.extend(reaches);
        }
    }
    assert_eq!(found, [""; 0]);
}

/// What is above a command's own module is the list of all commands.
#[test]
fn no_command_of_the_plugin_reaches_the_others() {
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

/// A file takes from its parent and its children what it likes; of any two other files, at most one takes from the other, also
/// by way of others.
#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut roots: Vec<_> = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    roots.sort();
    let mut found = Vec::new();
    for sources in
        roots.iter().map(|krate| krate.join("src")).chain(["src", "src/bin/gmsa-webhook"].map(|path| root().join(path)))
    {
        found.extend(circles(&imports(&sources)));
    }
    assert_eq!(found, Vec::<Vec<String>>::new());
}

#[test]
fn a_tree_of_imports_is_read_whole() {
    let mut found = Vec::new();
    paths("super::{self, a, b::{C as D, e::*},\n}; more", &[], &mut found);
    let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["super::self", "super::a", "super::b::C", "super::b::e::", "super::"]);
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

/// Which modules of a crate take something from which others, each by its file. What only tests take does not count.
fn imports(sources: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    rust_files(sources, &mut files);
    let mut modules = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(sources).unwrap().with_extension("");
        let mut module: Vec<_> = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
        let is_other_program = sources.join("lib.rs").is_file() && module.first().is_some_and(|first| first == "bin");
        if !is_other_program && !module.iter().any(|part| part.contains("tests")) {
            modules.insert(module, file);
        }
    }
    let mut imports = BTreeMap::new();
    for (module, file) in &modules {
        let source = fs::read_to_string(file).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let mut found = Vec::new();
        for first in ["crate::", "super::"] {
            for (at, _) in code.match_indices(first).filter(|(at, _)| !code[..*at].ends_with("super::")) {
                paths(&code[at..], &[], &mut found);
            }
        }
        let taken = found.iter().filter_map(|path| {
            let above = path.iter().take_while(|part| **part == "super").count();
            let base = if path[0] == "crate" { &[] } else { &module[..module.len().checked_sub(above)?] };
            let named = path[above.max(1)..].iter().map(|part| (*part).to_owned());
            let path: Vec<_> = base.iter().cloned().chain(named).collect();
            let target =
                (0..=path.len()).rev().map(|length| &path[..length]).find(|path| modules.contains_key(*path))?;
            let is_relative = target.starts_with(module) || module.starts_with(target);
            (!is_relative).then(|| name(&modules[target]))
        });
        imports.insert(name(file), taken.collect());
    }
    imports
}

/// The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`. Returns what follows the tree.
fn paths<'t>(text: &'t str, above: &[&'t str], found: &mut Vec<Vec<&'t str>>) -> &'t str {
    let (mut path, mut rest) = (above.to_vec(), text.trim_start());
    while !rest.starts_with('{') {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        path.push(&rest[..end]);
        let Some(more) = rest[end..].strip_prefix("::") else {
            found.push(path);
            return &rest[end..];
        };
        rest = more;
    }
    while !rest.starts_with('}') {
        rest = paths(&rest[1..], &path, found);
        // `a as b`
        rest = rest.find([',', '}']).map_or("}", |end| &rest[end..]);
    }
    &rest[1..]
}

/// The files that take something from each other, directly or by way of others.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(imports[file].iter().filter(|taken| reached.insert((*taken).clone())));
        }
        reached
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|file| (file, reached(file))).collect();
    let both = |one: &String, other: &String| reached[one].contains(other) && reached[other].contains(one);
    let circle = |file| imports.keys().filter(|other| both(file, other)).cloned().collect::<Vec<_>>();
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

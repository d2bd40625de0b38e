//! What tests read and make: pages, YAML and JSON, programs in place of others, files of values.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::Value;
use tempfile::NamedTempFile;

pub fn text(file: impl AsRef<Path>) -> String {
    let file = file.as_ref();
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A document of YAML, or of JSON.
pub fn yaml(file: impl AsRef<Path>) -> Value {
    serde_saphyr::from_str(&text(file)).unwrap()
}

/// The objects of a manifest.
pub fn objects(manifest: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(manifest).unwrap()
}

pub fn executable(file: impl AsRef<Path>, text: &str) {
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A file with these values, and its name.
pub fn values(values: &Value) -> (NamedTempFile, String) {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), values.to_string()).unwrap();
    let name = file.path().to_str().unwrap().to_owned();
    (file, name)
}

/// What programs were asked for, without what differs from run to run: the version, digests and temporary files.
pub fn asked(log: &str) -> String {
    let word = |word: &str| match word.split_once("@sha256:") {
        Some((name, _)) => format!("{name}@DIGEST"),
        None if word.starts_with('/') => "FILE".to_owned(),
        None => word.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    log.lines().map(line).collect()
}

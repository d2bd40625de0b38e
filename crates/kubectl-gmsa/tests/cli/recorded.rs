//! The bundles of cases: what a folder's `bundle.yaml` changes in the healthy cluster, as a JSON Merge Patch (RFC 7386) of its bundle.
//!
//! A case with such a file is run with `--from` a bundle: what the cluster holds, what is typed, what is printed.

use std::{fs, path::Path};

use gmsa_core::admission::workload::Kind as Workload;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::cluster;

/// The bundle of a case that has one.
pub fn bundle(case: &Path) -> Option<NamedTempFile> {
    let change = fs::read_to_string(case.join("bundle.yaml")).ok()?;
    let mut bundle = healthy();
    json_patch::merge(&mut bundle, &serde_saphyr::from_str(&change).unwrap());
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), bundle.to_string()).unwrap();
    Some(file)
}

/// The bundle of the healthy cluster.
pub fn healthy() -> Value {
    let mut bundle: Value = serde_saphyr::from_str(include_str!("../fixtures/bundle.yaml")).unwrap();
    for kind in Workload::ALL {
        bundle["lists"][kind.collection(None)] = json!({});
    }
    for mut object in cluster::objects() {
        let kind =
            cluster::KINDS.iter().find(|kind| object["apiVersion"] == kind.api_version && object["kind"] == kind.kind);
        let kind = kind.unwrap();
        let text = |field: &str| object["metadata"][field].as_str();
        let name = text("name").unwrap();
        let key = text("namespace").map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        object["metadata"]["uid"] = json!(format!("{}/{key}", kind.plural));
        bundle["lists"][kind.list()][key] = object;
    }
    bundle
}

//! Bundles of cases: what the `bundle.yaml` of a case changes in the healthy cluster, as a JSON Merge Patch (RFC 7386) of its bundle.

use std::fs;

use gmsa_core::admission::workload::Kind as Workload;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::cluster;

/// The bundle with this change.
pub fn bundle(change: &str) -> NamedTempFile {
    let mut bundle = healthy();
    json_patch::merge(&mut bundle, &serde_saphyr::from_str(change).unwrap());
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), bundle.to_string()).unwrap();
    file
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

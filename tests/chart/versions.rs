//! One version in all the places that state it.

use std::fs;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn every_file_states_the_version_of_the_package() {
    for (file, line) in [
        ("charts/gmsa-webhook/Chart.yaml", format!("version: {VERSION}")),
        ("charts/gmsa-webhook/Chart.yaml", format!("appVersion: \"{VERSION}\"")),
        ("deploy/deploy-gmsa-webhook.sh", format!("IMAGE=gmsa-webhook:{VERSION}")),
    ] {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.lines().any(|found| found == line), "{file} has no line {line:?}");
    }
}

//! The static manifest of a release, by plain kubectl, in the words of docs/install.md and docs/uninstall.md: what it installs, and that its removal leaves
//! every credential spec.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;

use crate::cluster::{Cluster, printed};

/// The block of a page that holds this line, without the lines that need a node.
fn block(page: &str, line: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.into_iter().find(|block| block.contains(line)).unwrap_or_else(|| panic!("{page}: no {line}"));
    block.lines().filter(|line| !line.contains("rollout status")).map(str::to_owned).collect()
}

/// Each object, in one order.
fn objects(yaml: &str) -> BTreeMap<String, Value> {
    let named = |object: Value| (format!("{}/{}", object["kind"], object["metadata"]["name"]), object);
    serde_saphyr::from_multiple::<Value>(yaml).unwrap().into_iter().map(named).collect()
}

/// What kustomize makes of the folder of a release.
fn kustomized(cluster: &Cluster, folder: &Path) -> BTreeMap<String, Value> {
    objects(&cluster.kubectl_prints(["kustomize", folder.to_str().unwrap()]))
}

#[test]
fn the_manifest_comes_and_goes_and_every_credential_spec_stays() {
    let cluster = Cluster::start();
    let folder = tempfile::tempdir().unwrap();
    let mut stamp = Command::new("python3");
    let address = ["deploy/stamp.py", "registry.example.com/gmsa-webhook", "https://git.example.com/gmsa"];
    printed(stamp.args(address).arg(folder.path()).output().unwrap());
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("gmsa-webhook-{version}.yaml");
    fs::rename(folder.path().join("gmsa-webhook.yaml"), folder.path().join(&name)).unwrap();
    fs::copy("deploy/gmsa-crd.yaml", folder.path().join("gmsa-crd.yaml")).unwrap();
    let kustomized = kustomized(&cluster, folder.path());
    assert_eq!(kustomized, objects(&fs::read_to_string(folder.path().join(&name)).unwrap()));
    let run = |lines: Vec<String>| {
        assert!(!lines.is_empty());
        for line in lines {
            let line = line.replace("VERSION", version);
            printed(cluster.command("bash").args(["-ec", &line]).current_dir(folder.path()).output().unwrap());
        }
    };

    run(block("docs/install.md", "-f gmsa-webhook-VERSION.yaml"));
    let image = ["get", "deployment/gmsa-webhook", "--namespace", "gmsa-webhook", "-o", "jsonpath={..image}"];
    assert_eq!(cluster.kubectl_prints(image), format!("registry.example.com/gmsa-webhook:{version}"));
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(include_str!("credential-spec.yaml"));
    let uid = || cluster.kubectl_prints(["get", "gmsacredentialspec", "webapp1", "-o", "jsonpath={.metadata.uid}"]);
    let before = uid();

    run(block("docs/uninstall.md", "-f gmsa-webhook-VERSION.yaml"));
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        assert_eq!(cluster.kubectl_prints(["get", kind, "-o", "name"]), "");
    }
    assert_eq!(uid(), before);
}

//! What a release adds to the chart, and the manifests that it is made of: addresses, Artifact Hub's metadata, the manifests of
//! krew, scoop and winget, checksums. `deploy/stamp.py` and `deploy/finish.sh` make them.

use std::{env, fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    files::{executable, objects, text, yaml},
    helm::Helm,
    snapshot::assert_file,
};

const IMAGE: &str = "registry.example.com/gmsa/gmsa-webhook";
const SOURCE: &str = "https://example.com/gmsa";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn stamped() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeeds(Command::new("python3").args(["deploy/stamp.py", IMAGE, SOURCE]).arg(folder.path()));
    folder
}

#[test]
fn the_released_chart_names_the_released_image() {
    let folder = stamped();
    let chart = folder.path().join("gmsa-webhook");
    assert_eq!(yaml(chart.join("values.yaml"))["image"]["repository"], IMAGE);
    let schema = yaml(chart.join("values.schema.json"));
    assert_eq!(schema["properties"]["image"]["properties"]["repository"]["default"], IMAGE);
    let manifest = text(folder.path().join("gmsa-webhook.yaml"));
    let images: Vec<&str> = manifest.lines().filter_map(|line| line.trim().strip_prefix("image: \"")).collect();
    assert_eq!(images, [format!("{IMAGE}:{VERSION}\"")]);
    let kinds: Vec<String> =
        objects(&manifest).iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    for kind in ["Namespace", "Deployment", "ValidatingWebhookConfiguration"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} is missing: {kinds:?}");
    }
    // `kubectl delete` of the file would delete every credential spec with it.
    assert!(!kinds.iter().any(|kind| kind == "CustomResourceDefinition"), "{kinds:?}");
}

#[test]
fn the_released_static_policies_are_for_the_released_manifest() {
    let folder = stamped();
    let read = |name: &str| text(folder.path().join(name));
    let (policies, manifest) = (read("gmsa-static-policies.yaml"), read("gmsa-webhook.yaml"));
    assert!(policies.contains("in [\"kubeadm:cluster-admins\"]") && !policies.contains("placeholder"), "{policies}");
    let names: Vec<String> = objects(&policies)
        .iter()
        .map(|object| format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap()))
        .collect();
    let policies = ["guard", "configurations", "secret"].map(|name| format!("gmsa-webhook-{name}.static.k8s.io"));
    let of = |kind: &str| policies.each_ref().map(|name| format!("{kind}/{name}"));
    assert_eq!(names, [of("ValidatingAdmissionPolicy"), of("ValidatingAdmissionPolicyBinding")].concat());
    assert!(!manifest.contains(".static.k8s.io"), "{manifest}");
}

#[test]
fn the_runbooks_of_the_released_chart_are_addresses() {
    let folder = stamped();
    let chart = folder.path().join("gmsa-webhook");
    let page = format!("{SOURCE}/blob/v{VERSION}/docs/metrics.md");
    let rendered = Helm::new().prints([
        "template",
        "gmsa",
        chart.to_str().unwrap(),
        "--set",
        "prometheusRule.enabled=true",
        "--show-only",
        "templates/prometheusrule.yaml",
    ]);
    let rules: Value = serde_saphyr::from_str(&rendered).unwrap();
    for rule in rules["spec"]["groups"][0]["rules"].as_array().unwrap() {
        let anchor = rule["alert"].as_str().unwrap().to_lowercase();
        assert_eq!(rule["annotations"]["runbook_url"], format!("{page}#{anchor}"));
    }
}

#[test]
fn the_released_chart_says_what_artifact_hub_shows() {
    let folder = stamped();
    let described = yaml(folder.path().join("gmsa-webhook/Chart.yaml"));
    assert_eq!(described["home"], SOURCE);
    assert_eq!(described["sources"], json!([SOURCE]));
    assert_eq!(described["maintainers"], json!([{"name": "The gmsa-webhook maintainers", "url": SOURCE}]));
    let icon = described["icon"].as_str().unwrap().strip_prefix(&format!("{SOURCE}/raw/v{VERSION}/")).unwrap();
    assert!(Path::new(icon).is_file(), "{icon}");
    let list = |name: &str| -> Vec<Value> {
        serde_saphyr::from_str(described["annotations"][format!("artifacthub.io/{name}")].as_str().unwrap()).unwrap()
    };
    let platforms = ["linux/amd64", "linux/arm64"];
    assert_eq!(
        list("images"),
        [json!({"name": "gmsa-webhook", "image": format!("{IMAGE}:{VERSION}"), "platforms": platforms})]
    );
    let crd = &list("crds")[0];
    assert_eq!((&crd["kind"], &crd["version"]), (&json!("GMSACredentialSpec"), &json!("v1")));
}

/// What Artifact Hub shows as the changes of a chart, of a version.
fn changes(folder: &Path, chart: &str) -> Vec<Value> {
    let described = yaml(folder.join(chart).join("Chart.yaml"));
    serde_saphyr::from_str(described["annotations"]["artifacthub.io/changes"].as_str().unwrap()).unwrap()
}

/// Only the changes of this version; each is one sentence, without links, and belongs to one chart.
#[test]
fn the_changes_of_a_chart_are_of_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("sources");
    fs::create_dir(&sources).unwrap();
    for name in ["charts", "deploy"] {
        succeeds(Command::new("cp").args(["-r", name]).arg(&sources));
    }
    let section = |version: &str, what: &str| format!("## [{version}] - 2026-01-01\n\n### {what}\n\n");
    let log = format!(
        "# Changelog\n\n## [Unreleased]\n\n{}The chart:\n\n- The [chart](docs/install.md) renders `a`: b. More\n  of it.\n- `gmsa-accounts` names entries; and more, by Helm.\n- `check` of a chart.\n\n{}- Helm, before.\n",
        section(VERSION, "Fixed"),
        section("0.0.1", "Added"),
    );
    fs::write(sources.join("CHANGELOG.md"), log).unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    succeeds(Command::new("python3").args(["deploy/stamp.py", IMAGE, SOURCE]).arg(&out).current_dir(&sources));
    let fixed = |description: &str| vec![json!({"kind": "fixed", "description": description})];
    assert_eq!(changes(&out, "gmsa-webhook"), fixed("The chart renders `a`: b."));
    assert_eq!(changes(&out, "gmsa-accounts"), fixed("`gmsa-accounts` names entries"));
}

#[test]
fn the_released_chart_s_readme_installs_the_release() {
    let folder = stamped();
    let readme = text(folder.path().join("gmsa-webhook/README.md"));
    let install: Vec<&str> = readme.lines().filter(|line| line.contains("helm install")).collect();
    let chart = "oci://registry.example.com/gmsa/charts/gmsa-webhook";
    assert_eq!(
        install,
        [format!("helm install gmsa-webhook {chart} --version {VERSION} --namespace gmsa-webhook --create-namespace")]
    );
    assert!(!readme.contains("--set image.repository"), "{readme}");
    let readme = text(folder.path().join("gmsa-accounts/README.md"));
    let install: Vec<&str> = readme.lines().filter(|line| line.starts_with("helm install")).collect();
    let chart = "oci://registry.example.com/gmsa/charts/gmsa-accounts";
    assert_eq!(
        install,
        [format!("helm install accounts {chart} --version {VERSION} --namespace gmsa-webhook -f accounts.yaml")]
    );
    let described = yaml(folder.path().join("gmsa-accounts/Chart.yaml"));
    assert_eq!((&described["home"], &described["version"]), (&json!(SOURCE), &json!(VERSION)));
}

#[test]
fn no_link_leads_out_of_the_released_chart() {
    let folder = stamped();
    let readme = text(folder.path().join("gmsa-webhook/README.md"));
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let file = link.split('#').next().unwrap();
        let stays =
            file.starts_with(SOURCE) || file.is_empty() || folder.path().join("gmsa-webhook").join(file).is_file();
        assert!(stays && !file.contains(".."), "{link}");
        if let Some(page) = file.strip_prefix(&format!("{SOURCE}/blob/v{VERSION}/")) {
            assert!(Path::new(page).is_file(), "{link}");
        }
    }
}

/// The plugin's archives, without the version.
const ARCHIVES: [&str; 5] =
    ["darwin-amd64.tar.gz", "darwin-arm64.tar.gz", "linux-amd64.tar.gz", "linux-arm64.tar.gz", "windows-amd64.zip"];
/// Of "abc", which stands for each.
const CHECKSUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// The folder of a release, finished.
fn finished() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for archive in ARCHIVES {
        fs::write(folder.path().join(format!("kubectl-gmsa-{VERSION}-{archive}")), "abc").unwrap();
    }
    succeeds(Command::new("deploy/finish.sh").arg(folder.path()).arg(format!("{SOURCE}/")));
    folder
}

/// Krew, scoop and winget: `release/` has each file, with `VERSION` for the version.
#[test]
fn each_package_manager_gets_the_archives_with_their_checksums() {
    let folder = finished();
    for file in [
        "gmsa.krew.yaml",
        "kubectl-gmsa.json",
        "GMSA-Webhook.kubectl-gmsa.yaml",
        "GMSA-Webhook.kubectl-gmsa.installer.yaml",
        "GMSA-Webhook.kubectl-gmsa.locale.en-US.yaml",
    ] {
        let made = text(folder.path().join(file)).replace(VERSION, "VERSION");
        assert_file(format!("tests/chart/release/{file}"), &made);
    }
    // Krew's index refuses a longer one.
    let krew = yaml(folder.path().join("gmsa.krew.yaml"));
    assert!(krew["spec"]["shortDescription"].as_str().unwrap().len() <= 50);
}

#[test]
fn everything_is_in_the_checksums() {
    let folder = finished();
    let sums = text(folder.path().join("SHA256SUMS"));
    let mut named: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    named.push("SHA256SUMS");
    named.sort_unstable();
    let mut files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(named, files);
    assert_eq!(sums.lines().filter(|line| line.starts_with(CHECKSUM)).count(), ARCHIVES.len());
    succeeds(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder.path()));
}

/// With stand-ins for buildah and helm, which write down what they are asked for and give a digest for each push.
#[test]
fn both_images_and_both_charts_are_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    for name in ["buildah", "helm"] {
        executable(folder.path().join(name), include_str!("release/pushing"));
    }
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let charts = "registry.example.com/gmsa/charts";
    let mut publish = Command::new("deploy/publish.sh");
    let output = publish.args(["release", IMAGE, charts]).env("PATH", path).env("ASKED", &log).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plugin = "registry.example.com/gmsa/kubectl-gmsa";
    let expected = format!(
        "image=sha256:docker://{IMAGE}:{VERSION}\nplugin=sha256:docker://{plugin}:{VERSION}\n\
         chart=sha256:release/gmsa-webhook-{VERSION}.tgz\naccounts=sha256:release/gmsa-accounts-{VERSION}.tgz\n"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let asked = text(log);
    let added: Vec<&str> = asked.lines().filter_map(|line| line.strip_prefix("buildah manifest add --arch ")).collect();
    let of = |image: &str, program: &str, arch: &str| {
        format!("{arch} --os linux {image}:{VERSION} oci-archive:release/{program}-{VERSION}-{arch}.oci.tar")
    };
    let webhook = ["amd64", "arm64"].map(|arch| of(IMAGE, "gmsa-webhook", arch));
    let tool = ["amd64", "arm64"].map(|arch| of(plugin, "kubectl-gmsa", arch));
    assert_eq!(added, [webhook, tool].concat());
}

//! What a release adds to the chart, and the manifests that it is made of: addresses, Artifact Hub's metadata, the manifests of
//! krew, scoop and winget, checksums. `deploy/stamp.py` and `deploy/finish.sh` make them.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::{Value, json};

use crate::helm::Helm;

const IMAGE: &str = "registry.example.com/gmsa/gmsa-webhook";
const SOURCE: &str = "https://example.com/gmsa";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn yaml(file: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()
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
    assert_eq!(yaml(&chart.join("values.yaml"))["image"]["repository"], IMAGE);
    let schema = yaml(&chart.join("values.schema.json"));
    assert_eq!(schema["properties"]["image"]["properties"]["repository"]["default"], IMAGE);
    let manifest = fs::read_to_string(folder.path().join("gmsa-webhook.yaml")).unwrap();
    let images: Vec<&str> = manifest.lines().filter_map(|line| line.trim().strip_prefix("image: \"")).collect();
    assert_eq!(images, [format!("{IMAGE}:{VERSION}\"")]);
    let kinds: Vec<String> = serde_saphyr::from_multiple::<Value>(&manifest)
        .unwrap()
        .iter()
        .map(|object| object["kind"].as_str().unwrap().to_owned())
        .collect();
    for kind in ["Namespace", "Deployment", "ValidatingWebhookConfiguration"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} is missing: {kinds:?}");
    }
    // `kubectl delete` of the file would delete every credential spec with it.
    assert!(!kinds.iter().any(|kind| kind == "CustomResourceDefinition"), "{kinds:?}");
}

#[test]
fn the_released_static_policies_are_for_the_released_manifest() {
    let folder = stamped();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (policies, manifest) = (read("gmsa-static-policies.yaml"), read("gmsa-webhook.yaml"));
    assert!(policies.contains("in [\"kubeadm:cluster-admins\"]") && !policies.contains("placeholder"), "{policies}");
    let names: Vec<String> = serde_saphyr::from_multiple::<Value>(&policies)
        .unwrap()
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
    let described = yaml(&folder.path().join("gmsa-webhook/Chart.yaml"));
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
    let described = yaml(&folder.join(chart).join("Chart.yaml"));
    serde_saphyr::from_str(described["annotations"]["artifacthub.io/changes"].as_str().unwrap()).unwrap()
}

/// Of several releases, that of the version alone; each change is one sentence, without links, and belongs to one chart.
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
    let readme = fs::read_to_string(folder.path().join("gmsa-webhook/README.md")).unwrap();
    let install: Vec<&str> = readme.lines().filter(|line| line.contains("helm install")).collect();
    let chart = "oci://registry.example.com/gmsa/charts/gmsa-webhook";
    assert_eq!(
        install,
        [format!("helm install gmsa-webhook {chart} --version {VERSION} --namespace gmsa-webhook --create-namespace")]
    );
    assert!(!readme.contains("--set image.repository"), "{readme}");
    let readme = fs::read_to_string(folder.path().join("gmsa-accounts/README.md")).unwrap();
    let install: Vec<&str> = readme.lines().filter(|line| line.starts_with("helm install")).collect();
    let chart = "oci://registry.example.com/gmsa/charts/gmsa-accounts";
    assert_eq!(
        install,
        [format!("helm install accounts {chart} --version {VERSION} --namespace gmsa-webhook -f accounts.yaml")]
    );
    let described = yaml(&folder.path().join("gmsa-accounts/Chart.yaml"));
    assert_eq!((&described["home"], &described["version"]), (&json!(SOURCE), &json!(VERSION)));
}

#[test]
fn no_link_leads_out_of_the_released_chart() {
    let folder = stamped();
    let readme = fs::read_to_string(folder.path().join("gmsa-webhook/README.md")).unwrap();
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

/// The plugin's archives: system, architecture, ending, program.
const ARCHIVES: [(&str, &str, &str, &str); 5] = [
    ("darwin", "amd64", "tar.gz", "kubectl-gmsa"),
    ("darwin", "arm64", "tar.gz", "kubectl-gmsa"),
    ("linux", "amd64", "tar.gz", "kubectl-gmsa"),
    ("linux", "arm64", "tar.gz", "kubectl-gmsa"),
    ("windows", "amd64", "zip", "kubectl-gmsa.exe"),
];
/// Of "abc", which stands for each.
const CHECKSUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn archive(system: &str, arch: &str, end: &str) -> String {
    format!("kubectl-gmsa-{VERSION}-{system}-{arch}.{end}")
}

/// The folder of a release, finished.
fn finished() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (system, arch, end, _) in ARCHIVES {
        fs::write(folder.path().join(archive(system, arch, end)), "abc").unwrap();
    }
    succeeds(Command::new("deploy/finish.sh").arg(folder.path()).arg(format!("{SOURCE}/")));
    folder
}

#[test]
fn krew_gets_each_archive_with_its_checksum() {
    let folder = finished();
    let plugin = yaml(&folder.path().join("gmsa.krew.yaml"));
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&plugin["kind"], &plugin["metadata"]["name"]), (&json!("Plugin"), &json!("gmsa")));
    assert_eq!(plugin["spec"]["version"], format!("v{VERSION}"));
    // Krew links the program alone.
    let caveats = plugin["spec"]["caveats"].as_str().unwrap();
    let krew = "${KREW_ROOT:-$HOME/.krew}";
    let copy = format!("cp \"{krew}/store/gmsa/v{VERSION}/kubectl_complete-gmsa\" \"{krew}/bin/\"\n");
    assert!(caveats.ends_with(&copy), "{caveats}");
    // Krew's index refuses a longer one.
    assert!(plugin["spec"]["shortDescription"].as_str().unwrap().len() <= 50);
    let expected = ARCHIVES.map(|(system, arch, end, program)| {
        json!({
            "selector": {"matchLabels": {"os": system, "arch": arch}},
            "uri": format!("{SOURCE}/releases/download/v{VERSION}/{}", archive(system, arch, end)),
            "sha256": CHECKSUM,
            "bin": program,
        })
    });
    assert_eq!(plugin["spec"]["platforms"], json!(expected));
}

#[test]
fn everything_is_in_the_checksums() {
    let folder = finished();
    let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
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

#[test]
fn scoop_and_winget_get_the_program_for_windows() {
    let folder = finished();
    let url = format!("{SOURCE}/releases/download/v{VERSION}/{}", archive("windows", "amd64", "zip"));
    let scoop: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("kubectl-gmsa.json")).unwrap()).unwrap();
    let expected = json!({
        "version": VERSION,
        "description": "Check, grant and make GMSA credential specs: the kubectl plugin \"kubectl gmsa\"",
        "homepage": SOURCE,
        "license": "Apache-2.0",
        "architecture": {"64bit": {"url": url, "hash": CHECKSUM}},
        "bin": ["kubectl-gmsa.exe", "kubectl_complete-gmsa.cmd"],
    });
    assert_eq!(scoop, expected);

    let winget = |name: &str| yaml(&folder.path().join(format!("GMSA-Webhook.kubectl-gmsa{name}.yaml")));
    let of = |kind: &str, rest: Value| {
        let mut whole = json!({
            "PackageIdentifier": "GMSA-Webhook.kubectl-gmsa", "PackageVersion": VERSION, "ManifestType": kind, "ManifestVersion": "1.10.0",
        });
        whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        whole
    };
    assert_eq!(winget(""), of("version", json!({"DefaultLocale": "en-US"})));
    let installer = json!({
        "InstallerType": "zip",
        "NestedInstallerType": "portable",
        "NestedInstallerFiles": [{"RelativeFilePath": "kubectl-gmsa.exe", "PortableCommandAlias": "kubectl-gmsa"}],
        "Commands": ["kubectl-gmsa"],
        "Installers": [{"Architecture": "x64", "InstallerUrl": url, "InstallerSha256": CHECKSUM.to_uppercase()}],
    });
    assert_eq!(winget(".installer"), of("installer", installer));
    let locale = json!({
        "PackageLocale": "en-US",
        "Publisher": "The gmsa-webhook maintainers",
        "PackageName": "kubectl-gmsa",
        "PackageUrl": SOURCE,
        "License": "Apache-2.0",
        "ShortDescription": "Check, grant and make GMSA credential specs",
    });
    assert_eq!(winget(".locale.en-US"), of("defaultLocale", locale));
}

/// With stand-ins for buildah and helm, which write down what they are asked for and give a digest for each push.
#[test]
fn both_images_and_both_charts_are_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let stand_in = format!(
        r#"#!/usr/bin/env bash
echo "$(basename "$0") $*" >>{}
for argument in "$@"; do
  if [[ $before == --digestfile ]]; then printf 'sha256:%s' "${{@: -1}}" >"$argument"; fi
  before=$argument
done
[[ $1 != push ]] || echo "Digest: sha256:$2" >&2
"#,
        log.display()
    );
    for name in ["buildah", "helm"] {
        let file = folder.path().join(name);
        fs::write(&file, &stand_in).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let charts = "registry.example.com/gmsa/charts";
    let output = Command::new("deploy/publish.sh").args(["release", IMAGE, charts]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plugin = "registry.example.com/gmsa/kubectl-gmsa";
    let expected = format!(
        "image=sha256:docker://{IMAGE}:{VERSION}\nplugin=sha256:docker://{plugin}:{VERSION}\n\
         chart=sha256:release/gmsa-webhook-{VERSION}.tgz\naccounts=sha256:release/gmsa-accounts-{VERSION}.tgz\n"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let asked = fs::read_to_string(log).unwrap();
    let added: Vec<&str> = asked.lines().filter_map(|line| line.strip_prefix("buildah manifest add --arch ")).collect();
    let of = |image: &str, program: &str, arch: &str| {
        format!("{arch} --os linux {image}:{VERSION} oci-archive:release/{program}-{VERSION}-{arch}.oci.tar")
    };
    let webhook = ["amd64", "arm64"].map(|arch| of(IMAGE, "gmsa-webhook", arch));
    let tool = ["amd64", "arm64"].map(|arch| of(plugin, "kubectl-gmsa", arch));
    assert_eq!(added, [webhook, tool].concat());
}

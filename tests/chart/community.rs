//! What an adopter and the forge read of the project: policies, forms, and facts for programs. They name files, versions and addresses that there are.

use std::{collections::BTreeSet, ffi::OsString, fs, path::Path, process::Command};

use serde_json::Value;

use crate::files::{executable, text, yaml};

/// A placeholder until the repository has an address: a release has it unless it gets another.
const SOURCE: &str = "https://localhost/gmsa-webhook";

/// Calls `found` with each text of a document and the keys that lead to it.
fn each_text(value: &Value, path: &str, found: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => found(path, text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, path, found)),
        Value::Object(fields) => {
            for (key, field) in fields {
                each_text(field, &format!("{path}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// The fields that the schema of Security Insights 2 requires, and that each file they lead to is here.
#[test]
fn the_security_insights_are_complete_and_lead_to_files() {
    let insights = yaml("SECURITY-INSIGHTS.yml");
    assert_eq!(insights["header"]["schema-version"], "2.0.0");
    for field in include_str!("insights").lines() {
        assert!(insights.pointer(field).is_some_and(|value| !value.is_null()), "{field} is missing");
    }
    for field in ["last-updated", "last-reviewed"] {
        let date = insights["header"][field].as_str().unwrap();
        let parts: Vec<usize> = date.split('-').map(str::len).collect();
        assert!(parts == [4, 2, 2] && date.chars().all(|c| c == '-' || c.is_ascii_digit()), "{date}");
    }
    for tool in insights["repository"]["security"]["tools"].as_array().unwrap() {
        let kind = tool["type"].as_str().unwrap();
        assert!(["fuzzing", "container", "secret", "SCA", "SAST", "other"].contains(&kind), "{tool}");
        assert!(tool["name"].is_string() && tool["rulesets"].is_array() && tool["results"].is_object(), "{tool}");
        for when in ["adhoc", "ci", "release"] {
            assert!(tool["integration"][when].is_boolean(), "{tool}");
        }
    }
    assert!(text("deploy/dist.sh").contains(&format!("[default: {SOURCE}]")));
    let mut files = 0;
    each_text(&insights, "", &mut |path, text| {
        let Some(below) = text.strip_prefix(SOURCE) else {
            return assert!(!text.contains("://") && !text.contains('@'), "{path}: {text}");
        };
        if let Some(file) =
            ["/blob/main/", "/raw/main/", "/tree/main/"].iter().find_map(|part| below.strip_prefix(part))
        {
            files += 1;
            assert!(Path::new(file).exists(), "{path}: there is no {file}");
        }
    });
    assert!(files > 8, "{files}");
}

#[test]
fn artifact_hub_leaves_out_what_is_tried_before_a_release() {
    let repository = yaml("artifacthub-repo.yml");
    let known = ["repositoryID", "owners", "ignore"];
    assert!(repository.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{repository}");
    let ignored = repository["ignore"].as_array().unwrap();
    let names: BTreeSet<&str> = ignored.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let charts: Vec<String> =
        fs::read_dir("charts").unwrap().map(|chart| chart.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, charts.iter().map(String::as_str).collect());
    assert!(ignored.iter().all(|package| package["version"] == "-(alpha|beta|rc)"), "{ignored:?}");
}

/// A form without what a maintainer asks for first brings a second question.
#[test]
fn the_forms_ask_for_what_is_needed_and_send_security_problems_elsewhere() {
    assert_eq!(yaml(".github/ISSUE_TEMPLATE/config.yml")["blank_issues_enabled"], false);
    for form in ["bug", "idea"] {
        let form = yaml(format!(".github/ISSUE_TEMPLATE/{form}.yml"));
        let fields = form["body"].as_array().unwrap();
        let ids: Vec<&str> = fields.iter().filter_map(|field| field["id"].as_str()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
        assert!(form["name"].is_string() && form["description"].is_string());
        assert!(fields.iter().any(|field| field["validations"]["required"] == true), "{form}");
    }
    let bug = text(".github/ISSUE_TEMPLATE/bug.yml");
    for asked in ["kubectl gmsa version", "kubectl gmsa doctor --bundle", "SECURITY.md"] {
        assert!(bug.contains(asked), "{asked}");
    }
    assert!(text(".github/PULL_REQUEST_TEMPLATE.md").contains("SECURITY.md"));
}

#[test]
fn the_policies_name_the_versions_that_are_tested_and_no_address_of_a_person() {
    let support = text("SUPPORT.md");
    let chart = yaml("charts/gmsa-webhook/Chart.yaml");
    let oldest = chart["kubeVersion"].as_str().unwrap().trim_start_matches(">=").trim_end_matches(".0-0").to_owned();
    let ci = yaml(".github/workflows/ci.yml");
    let tested = ci["jobs"]["e2e"]["strategy"]["matrix"]["kubernetes"].as_array().unwrap();
    let minor = |version: &str| version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let tested: Vec<String> = tested.iter().map(|version| minor(version.as_str().unwrap())).collect();
    assert_eq!(tested.first(), Some(&oldest));
    // Those that brought match conditions, native sidecars and the guard.
    assert!(["1.28", "1.29", "1.30"].iter().all(|version| tested.iter().any(|tested| tested == version)), "{tested:?}");
    assert!(support.contains(&format!("| before {oldest} | not supported: the chart refuses it |")));
    assert!(support.contains(&format!("CI tests each change on {}, by their kube-apiserver;", tested.join(", "))));
    let security = text("SECURITY.md");
    for part in ["**Report a vulnerability**", "working days", "## Supported versions"] {
        assert!(security.contains(part), "{part}");
    }
    for (file, text) in
        [("SUPPORT.md", support), ("SECURITY.md", security), ("artifacthub-repo.yml", text("artifacthub-repo.yml"))]
    {
        assert!(!text.contains('@') && !text.contains("http"), "{file}");
    }
}

/// The step that reports, with a `gh` that has these issues and writes down what is created.
fn reported(advisories: &str, fuzz: &str, open: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "#!/bin/bash\nif [ \"$2\" = list ]; then printf '%s' \"$OPEN\"; else printf '%s|' \"$@\" >>created; fi\n";
    let gh = folder.path().join("gh");
    executable(&gh, script);
    let nightly = yaml(".github/workflows/nightly.yml");
    let step = nightly["jobs"]["report"]["steps"][0]["run"].as_str().unwrap().to_owned();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let mut command = Command::new("bash");
    command.args(["-e", "-o", "pipefail", "-c", &step]).current_dir(folder.path()).env("PATH", path).env("OPEN", open);
    let output = command.env("ADVISORIES", advisories).env("FUZZ", fuzz).env("RUN", "RUN").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.path().join("created")).unwrap_or_default()
}

#[test]
fn a_night_that_fails_opens_an_issue_once() {
    let advisory = "issue|create|--title|Nightly: an advisory about a dependency|--body|cargo deny check advisories failed; its log says about which crate: RUN|";
    let fuzzing = "issue|create|--title|Nightly: fuzzing found an input|--body|fuzz/run.sh failed; the log names the target, and the artifact of the run \
                   holds the input: RUN|";
    assert_eq!(reported("failure", "success", ""), advisory);
    assert_eq!(reported("success", "failure", "Something else\n"), fuzzing);
    assert_eq!(reported("failure", "failure", ""), format!("{advisory}{fuzzing}"));
    assert_eq!(reported("failure", "failure", "Nightly: an advisory about a dependency\nOther\n"), fuzzing);
    assert_eq!(reported("cancelled", "success", ""), "");
    let jobs = yaml(".github/workflows/nightly.yml")["jobs"].clone();
    assert_eq!(
        (&jobs["report"]["if"], jobs["report"]["permissions"].as_object().unwrap().len()),
        (&Value::from("failure()"), 1)
    );
}

#[test]
fn the_night_fuzzes_every_target_by_the_tools_of_ci() {
    let nightly = yaml(".github/workflows/nightly.yml");
    let targets: Vec<&str> = nightly["jobs"]["fuzz"]["strategy"]["matrix"]["target"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(text("fuzz/run.sh").contains(&format!("\ntargets=({})\n", targets.join(" "))));
    let files = |folder: &str| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let seeded: BTreeSet<_> = files("fuzz/seeds").collect();
    assert_eq!(seeded, targets.iter().map(OsString::from).collect());
    for target in &targets {
        let seeds = files(&format!("fuzz/seeds/{target}")).count();
        assert!((1..=20).contains(&seeds), "{target} has {seeds} seeds");
    }
    // What a night found, the next one starts from.
    let steps = nightly["jobs"]["fuzz"]["steps"].as_array().unwrap();
    let cached =
        steps.iter().filter(|step| step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/cache@")));
    let cached: Vec<_> = cached.map(|step| &step["with"]["path"]).collect();
    assert_eq!(cached, ["fuzz/corpus/${{ matrix.target }}"]);
    assert!(
        text("fuzz/run.sh").contains("\n    corpus=corpus/$target\n") && text("fuzz/.gitignore").contains("\ncorpus\n")
    );
    let ci = text(".ci/run");
    let deny = ci.lines().find_map(|line| line.strip_prefix("deny_version=")).unwrap();
    assert!(text(".github/workflows/nightly.yml").contains(&format!("cargo install --locked cargo-deny@{deny}\n")));
}

/// What Renovate looks for in files that it has no manager for is there: each pattern matches in each of its files.
#[test]
fn renovate_finds_the_versions_of_tools() {
    const PROGRAM: &str = r#"
import json, pathlib, re
files = [str(path) for folder in (".ci", ".github/workflows") for path in pathlib.Path(folder).iterdir()]
for manager in json.load(open("renovate.json"))["customManagers"]:
    for pattern in (file.strip("/") for file in manager["managerFilePatterns"]):
        names = [name for name in files if re.search(pattern, name)] or print(pattern)
        for name in names or []:
            for wanted in manager["matchStrings"]:
                if not re.search(wanted.replace("(?<", "(?P<"), open(name).read()):
                    print(wanted, name)
"#;
    let output = Command::new("python3").args(["-c", PROGRAM]).output().unwrap();
    assert_eq!(
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        ("".into(), "".into())
    );
    // Each version that a workflow or .ci/run pins is one that some pattern finds.
    let renovate = text("renovate.json");
    for pinned in ["rustup toolchain install ", "rustup default ", "setup-envtest@", "kubectl_layer='"] {
        assert!(renovate.contains(pinned), "{pinned}");
    }
}

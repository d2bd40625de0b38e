//! The chart as a part of another chart: names, values below the parent's key, two of it in one parent; and releases side by side.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::{
    files::{objects, text},
    helm::{CHART, Helm},
    notes::copy,
    rendered::assert_difference,
};

/// A parent chart with this chart in it twice: by its name, and as `second`.
fn parent() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let chart = format!(
        "apiVersion: v2
name: platform
version: 1.0.0
dependencies:
  - {{name: gmsa-webhook, version: {version}, condition: gmsa-webhook.enabled}}
  - {{name: gmsa-webhook, alias: second, version: {version}, condition: second.enabled}}
"
    );
    fs::write(folder.path().join("Chart.yaml"), chart).unwrap();
    fs::write(folder.path().join("values.yaml"), "second: {enabled: false}\n").unwrap();
    copy(Path::new(CHART), &folder.path().join("charts/gmsa-webhook"));
    folder
}

/// Kind, namespace and name: what may be there once.
fn identities(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    let found: BTreeSet<_> = objects.iter().map(of).collect();
    assert_eq!(found.len(), objects.len(), "{found:?}");
    found
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

const ALL: &str = "guard.enabled=true,viewerRole=true,dashboard.enabled=true,prometheusRule.enabled=true,\
                   serviceMonitor.enabled=true,certificates.mode=cert-manager,crds.upgrade=true,\
                   networkPolicy.enabled=true,autoscaling.enabled=true";

fn template(chart: &str, release: &str, namespace: &str, sets: &[&str]) -> Vec<Value> {
    let args = ["template", release, chart, "--namespace", namespace, "--kube-version", "1.36"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    objects(&Helm::new().prints(args.into_iter().chain(sets)))
}

fn below(key: &str, sets: &str) -> String {
    sets.split(',').map(|set| format!("{key}.{set}")).collect::<Vec<_>>().join(",")
}

/// It has the names of a release `shop-gmsa-webhook`, and the values below its key.
#[test]
fn a_dependency_is_named_and_selected_apart_from_its_siblings() {
    let parent = parent();
    let chart = parent.path().to_str().unwrap();
    let render = |release, chart, more: &[&str]| {
        let args = ["template", release, chart, "--namespace", "windows", "--kube-version", "1.36"];
        let rendered = Helm::new().prints(args.iter().chain(more).copied());
        let lines = rendered.lines().filter(|line| !line.starts_with("# Source: "));
        lines.fold(String::new(), |text, line| text + line + "\n")
    };
    let alone = render("shop-gmsa-webhook", CHART, &[]);
    let set = below("gmsa-webhook", "replicaCount=5,image.tag=two");
    assert_difference("dependency", "alone", &alone, &render("shop", chart, &["--set", &set]));
    let output = Helm::new().run(["template", "shop", chart, "--set", "gmsa-webhook.enabled=false"]);
    assert!(output.status.success() && output.stdout.trim_ascii().is_empty(), "{output:?}");
}

#[test]
fn a_dependency_refuses_unknown_keys_by_name_and_takes_blank_ones() {
    let parent = parent();
    let chart = parent.path().to_str().unwrap();
    let complaint = Helm::new().refuses(["template", "shop", chart, "--set", "gmsa-webhook.replicaCuont=3"]);
    assert!(
        complaint.contains(": values: replicaCuont is not a value of this chart: use replicaCount\n"),
        "{complaint}"
    );
    let blank = text("tests/chart/values/blank.yaml");
    let lines = blank.lines().filter(|line| !line.starts_with("global:"));
    let blank = lines.fold("gmsa-webhook:\n".to_owned(), |text, line| text + "  " + line + "\n");
    // In the parent's own values and in the user's file: Helm treats blanks differently there.
    let defaults = template(chart, "shop", "windows", &[]);
    let file = parent.path().join("blank.yaml");
    fs::write(&file, &blank).unwrap();
    let args = ["template", "shop", chart, "--namespace", "windows", "--kube-version", "1.36"];
    let from_file = Helm::new().prints(args.into_iter().chain(["--values", file.to_str().unwrap()]));
    assert_eq!(objects(&from_file), defaults);
    fs::write(parent.path().join("values.yaml"), blank + "second: {enabled: false}\n").unwrap();
    assert_eq!(template(chart, "shop", "windows", &[]), defaults);
}

#[test]
fn two_in_one_parent_and_two_releases_share_no_object() {
    let parent = parent();
    let sets = [below("gmsa-webhook", ALL), below("second", ALL), "second.enabled=true".to_owned()];
    let sets: Vec<_> = sets.iter().map(String::as_str).collect();
    identities(&template(parent.path().to_str().unwrap(), "shop", "windows", &sets));

    let one = template(CHART, "one", "windows", &[ALL]);
    for (release, namespace, more) in [
        ("two", "windows", "logLevel=info"),
        ("one", "other", "fullnameOverride=another"),
        ("one", "other", "nameOverride=b"),
    ] {
        let two = template(CHART, release, namespace, &[ALL, more]);
        let shared: Vec<_> = identities(&one).intersection(&identities(&two)).cloned().collect();
        assert!(shared.is_empty(), "{release}: {shared:?}");
        let secrets = |objects: &[Value]| {
            let certificates = objects.iter().filter(|object| object["kind"] == "Certificate");
            certificates.map(|one| one["spec"]["secretName"].to_string()).collect::<BTreeSet<_>>()
        };
        assert!(secrets(&one).is_disjoint(&secrets(&two)));
        // Grafana tells dashboards apart by uid and title, its sidecar by the name of the file.
        let [one, two] = [&one, &two].map(|objects| {
            let (file, json) = find(objects, "ConfigMap")["data"].as_object().unwrap().iter().next().unwrap();
            let dashboard: Value = serde_json::from_str(json.as_str().unwrap()).unwrap();
            [file.clone(), dashboard["uid"].to_string(), dashboard["title"].to_string()]
        });
        assert!(one.iter().zip(&two).all(|(one, two)| one != two), "{one:?} {two:?}");
    }
}

#[test]
fn names_are_overridden_and_long_ones_shortened() {
    let name = |release: &str, sets: &[&str]| {
        let objects = template(CHART, release, "windows", sets);
        find(&objects, "Deployment")["metadata"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name("gmsa", &[]), "gmsa");
    assert_eq!(name("gmsa", &["nameOverride=identity"]), "gmsa-identity");
    assert_eq!(name("gmsa", &["nameOverride=identity,fullnameOverride=whole"]), "whole");
    // Helm takes no longer one, and the Go webhook's chart named everything like it.
    let longest = "n".repeat(53);
    assert_eq!(name(&longest, &[]), longest);
    let shortened = name(&longest, &["nameOverride=identity"]);
    assert_eq!(shortened, format!("{}-f27b7107", "n".repeat(44)));
    assert_ne!(name(&longest, &["nameOverride=other"]), shortened);
    for object in template(CHART, &longest, "windows", &[ALL]) {
        let limit = if object["kind"] == "Service" { 63 } else { 253 };
        assert!(object["metadata"]["name"].as_str().unwrap().len() <= limit, "{object}");
        for value in object["metadata"]["labels"].as_object().unwrap().values() {
            assert!(value.as_str().unwrap().len() <= 63, "{object}");
        }
    }
}

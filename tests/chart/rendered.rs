//! What the chart renders from each set of values under `values/`: the defaults as a whole, the others as their difference to the defaults.
//!
//! What an older Kubernetes lacks is asked with `semverCompare` in the chart, by the names in `_helpers.tpl` where several templates ask; the set of values
//! that is rendered for another version has it in [`cases`].

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::{Value, json};

use crate::{
    accounts,
    files::{self, objects, text, yaml},
    helm::{CHART, Helm},
    snapshot::assert_file,
    tickets,
};

/// Each set of values by its name, with the other arguments of `helm template`: namespace and Kubernetes version.
fn cases() -> Vec<(String, &'static str, &'static str)> {
    let files = fs::read_dir("tests/chart/values").unwrap().map(|entry| entry.unwrap().path());
    let names = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned());
    let case = |name: String| match name.as_str() {
        "old-kubernetes" => (name, "windows", "1.27"),
        "oldest-kubernetes" => (name, "kube-system", "1.25"),
        _ => (name, "windows", "1.36"),
    };
    let cases: Vec<_> = names.map(case).collect();
    assert!(cases.len() > 20, "{cases:?}");
    cases
}

/// What the chart renders with each set of values.
pub fn every_rendering() -> Vec<String> {
    cases().into_iter().map(|(name, namespace, kubernetes)| render(&name, namespace, kubernetes)).collect()
}

fn values(name: &str) -> String {
    format!("tests/chart/values/{name}.yaml")
}

fn render(name: &str, namespace: &str, kubernetes: &str) -> String {
    Helm::new().template(["--namespace", namespace, "--kube-version", kubernetes, "--values", &values(name)])
}

#[test]
fn lint_is_clean_for_every_set_of_values() {
    let helm = Helm::new();
    for (name, _, kubernetes) in cases() {
        let report = helm.prints(["lint", "--strict", CHART, "--kube-version", kubernetes, "--values", &values(&name)]);
        assert!(report.contains("1 chart(s) linted, 0 chart(s) failed"), "{name}: {report}");
    }
}

#[test]
fn every_set_of_values_renders_as_recorded() {
    let defaults = render("defaults", "windows", "1.36");
    for (name, namespace, kubernetes) in cases() {
        let rendered = render(&name, namespace, kubernetes);
        if name == "defaults" {
            assert_file("tests/chart/rendered/defaults.yaml", &rendered);
        } else {
            assert_difference(&name, "defaults", &defaults, &rendered);
        }
    }
}

/// The conditions are one form for every version that has them: no optional fields (`.?`), which came with 1.29.
/// A keytab is its account's password: an installation gives nobody one, and no role that holds every verb.
#[test]
fn no_role_of_a_chart_holds_export() {
    let all = every_rendering().into_iter().chain(tickets::every_rendering()).chain(accounts::every_rendering());
    let mut verbs = BTreeSet::new();
    for object in all.flat_map(|manifest| objects(&manifest)) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            verbs.extend(rule["verbs"].as_array().into_iter().flatten().map(Value::to_string));
        }
    }
    let expected = ["create", "get", "list", "patch", "update", "use", "watch"];
    assert_eq!(verbs, BTreeSet::from(expected.map(|verb| format!("{verb:?}"))));
}

#[test]
fn match_conditions_are_rendered_from_their_first_version_on() {
    let [before, first, latest] = ["1.27", "1.28", "1.36"].map(|version| render("defaults", "windows", version));
    assert_eq!(first, latest);
    assert!(first.contains("matchConditions:") && !first.contains(".?"), "{first}");
    assert!(!before.contains("matchConditions:"), "{before}");
}

/// Fails where a rendering does not differ from another one as recorded.
pub fn assert_difference(name: &str, from_name: &str, from: &str, rendered: &str) {
    let folder = tempfile::tempdir().unwrap();
    let files = [("from", from), ("to", rendered)].map(|(file, text)| {
        let path = folder.path().join(file);
        fs::write(&path, text).unwrap();
        path
    });
    let labels = ["--label", from_name, "--label", name];
    let mut diff = Command::new("diff");
    diff.args(["--unified=1", "--show-function-line=^kind: "]).args(labels).args(files);
    let difference = diff.output().unwrap();
    assert!(difference.stderr.is_empty(), "{}", String::from_utf8_lossy(&difference.stderr));
    assert_file(format!("tests/chart/rendered/{name}.diff"), &String::from_utf8(difference.stdout).unwrap());
}

/// A blank value means the default, for every key: one file that has every key blank, and each key by itself below `--set`.
#[test]
fn blank_values_mean_the_defaults() {
    let defaults = render("defaults", "windows", "1.36");
    assert_eq!(render("blank", "windows", "1.36"), defaults);
    let paths = blanks(&yaml(format!("{CHART}/values.yaml")));
    assert!(paths.len() > 140, "{}", paths.len());
    // All leaves at once: one key may not hide another.
    let mut all = json!({});
    for path in &paths {
        put(&mut all, path, &Value::Null);
    }
    assert_eq!(rendered_with(&all), defaults);
}

/// `value` at a path of `values`.
pub fn put(values: &mut Value, path: &[impl AsRef<str>], value: &Value) {
    let at = path.iter().fold(values, |at, key| {
        if at.is_null() {
            *at = json!({});
        }
        &mut at[key.as_ref()]
    });
    *at = value.clone();
}

/// What the chart renders with these values.
pub fn rendered_with(values: &Value) -> String {
    let (_file, name) = files::values(values);
    Helm::new().template(["--namespace", "windows", "--kube-version", "1.36", "--values", &name])
}

/// The path of every key that has no keys below it.
fn blanks(value: &Value) -> Vec<Vec<String>> {
    match value.as_object().filter(|map| !map.is_empty()) {
        None => vec![Vec::new()],
        Some(map) => map
            .iter()
            .flat_map(|(key, value)| blanks(value).into_iter().map(|path| [vec![key.clone()], path].concat()))
            .collect(),
    }
}

/// `--reuse-values` hides this chart's defaults: the templates must bring them back, to the letter.
#[test]
fn reused_values_of_the_go_chart_render_like_its_values_file() {
    assert_eq!(render("go-chart-reused", "windows", "1.36"), render("go-chart", "windows", "1.36"));
}

/// Argo CD renders without a cluster and without a release: nothing that is rendered may depend on either. What an upgrade must keep, or refuse, is asked in one
/// place, which answers nothing there.
#[test]
fn an_upgrade_renders_what_an_install_renders() {
    let helm = Helm::new();
    let template = ["template", "gmsa", CHART, "--namespace", "windows"];
    let install = helm.prints(template);
    let upgrade = helm.prints(template.into_iter().chain(["--is-upgrade"]));
    assert_eq!(install, upgrade);
    let mut asking = Vec::new();
    for entry in fs::read_dir(format!("{CHART}/templates")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && text(&path).contains("lookup \"") {
            asking.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(asking, ["_installed.tpl"]);
}

/// Names that YAML reads as a boolean, a number or nothing, unless they are quoted.
#[test]
fn names_that_look_like_something_else_stay_text() {
    let texts = "serviceAccount.name=NAME,certificates.secretName=NAME,clientCa.configMapName=NAME,clientCa.key=NAME,clientCa.names={NAME},\
                 priorityClassName=NAME,serviceMonitor.jobLabel=NAME,podMonitor.jobLabel=NAME,serviceMonitor.namespace=NAME,\
                 imagePullSecrets[0].name=NAME";
    let flags = "certificates.mode=cert-manager,guard.enabled=true,autoscaling.enabled=true,networkPolicy.enabled=true,crds.upgrade=true";
    let rendered = |release: &str, namespace: &str, name: &str| {
        let texts = texts.replace("NAME", name);
        ["serviceMonitor", "podMonitor"].map(|monitor| {
            let flags = format!("{flags},{monitor}.enabled=true");
            let args = ["template", release, CHART, "--namespace", namespace, "--set-string", &texts, "--set", &flags];
            let mut objects = objects(&Helm::new().prints(args));
            // The name of the Job ends in a part of the checksum of its pod.
            for job in objects.iter_mut().filter(|object| object["kind"] == "Job") {
                job["metadata"]["name"].take();
            }
            serde_json::to_string(&objects).unwrap()
        })
    };
    let plain = rendered("rrr", "777", "nnn");
    for (release, namespace, name) in
        [("true", "123", "null"), ("null", "1e3", "true"), ("yes", "0x1f", "123"), ("on", "08", "1e3")]
    {
        let expected =
            plain.each_ref().map(|plain| plain.replace("rrr", release).replace("777", namespace).replace("nnn", name));
        assert!(rendered(release, namespace, name) == expected, "{release} {namespace} {name}");
    }
}

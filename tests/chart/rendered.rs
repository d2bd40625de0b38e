//! What the chart renders from each set of values under `values/`, as it stands under `rendered/`.

use std::fs;

use crate::{
    helm::{CHART, Helm},
    snapshot::assert_file,
};

/// A set of values and what `helm template` is told besides: namespace and Kubernetes version.
const CASES: [(&str, &str, &str); 13] = [
    ("defaults", "windows", "1.36"),
    ("go-chart", "windows", "1.36"),
    ("go-chart-own-certificate", "windows", "1.36"),
    ("go-chart-reused", "windows", "1.36"),
    ("cert-manager", "windows", "1.36"),
    ("secret", "windows", "1.36"),
    ("everything", "windows", "1.36"),
    ("monitoring", "windows", "1.36"),
    ("nothing", "windows", "1.36"),
    ("host-network", "windows", "1.36"),
    ("low-port", "windows", "1.36"),
    ("old-kubernetes", "windows", "1.27"),
    ("oldest-kubernetes", "kube-system", "1.25"),
];

fn values(name: &str) -> String {
    format!("tests/chart/values/{name}.yaml")
}

fn render(name: &str, namespace: &str, kubernetes: &str) -> String {
    Helm::new().prints([
        "template",
        "gmsa",
        CHART,
        "--namespace",
        namespace,
        "--kube-version",
        kubernetes,
        "--values",
        &values(name),
    ])
}

#[test]
fn lint_is_clean_for_every_set_of_values() {
    let helm = Helm::new();
    for (name, _, kubernetes) in CASES {
        let report = helm.prints(["lint", "--strict", CHART, "--kube-version", kubernetes, "--values", &values(name)]);
        assert!(report.contains("1 chart(s) linted, 0 chart(s) failed"), "{name}: {report}");
    }
}

#[test]
fn every_set_of_values_renders_as_recorded() {
    for (name, namespace, kubernetes) in CASES {
        assert_file(format!("tests/chart/rendered/{name}.yaml"), &render(name, namespace, kubernetes));
    }
}

#[test]
fn every_file_of_values_is_a_case() {
    let mut files: Vec<_> = fs::read_dir("tests/chart/values")
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut cases: Vec<_> = CASES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    cases.sort();
    assert_eq!(files, cases);
}

/// `--reuse-values` hides this chart's defaults: the templates must bring them back, to the letter.
#[test]
fn reused_values_of_the_go_chart_render_like_its_values_file() {
    assert_eq!(render("go-chart-reused", "windows", "1.36"), render("go-chart", "windows", "1.36"));
}

/// A key would be put back by every apply, over what the webhook has written there.
#[test]
fn no_ca_bundle_is_rendered_where_another_writes_it() {
    for name in ["defaults", "cert-manager", "secret", "everything", "old-kubernetes"] {
        assert!(!render(name, "windows", "1.36").contains("caBundle"), "{name}");
    }
}

/// Argo CD and Flux render without a cluster and without a release: nothing may depend on either.
#[test]
fn an_upgrade_renders_what_an_install_renders() {
    let helm = Helm::new();
    let template = ["template", "gmsa", CHART, "--namespace", "windows"];
    let install = helm.prints(template);
    let upgrade = helm.prints(template.into_iter().chain(["--is-upgrade"]));
    assert_eq!(install, upgrade);
    for entry in fs::read_dir(format!("{CHART}/templates")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert!(!fs::read_to_string(&path).unwrap().contains("lookup"), "{}", path.display());
        }
    }
}

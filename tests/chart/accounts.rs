//! The chart of many accounts: what it renders, that the linter has nothing to say of it, and what it says after an install; `refused/accounts` has what it refuses.

use gmsa_core::credspec::lint;
use serde_json::{Value, json};

use crate::{files::objects, helm::Helm, snapshot::assert_file};

/// The chart, from the root of the package, where tests run.
pub const ACCOUNTS: &str = "charts/gmsa-accounts";
pub const VALUES: &str = "tests/chart/values-of-accounts.yaml";

fn render(more: &[&str]) -> String {
    let template = ["template", "accounts", ACCOUNTS, "--namespace", "gmsa", "--values", VALUES];
    Helm::new().prints(template.iter().chain(more).copied())
}

#[test]
fn the_list_renders_as_recorded() {
    assert_file("tests/chart/rendered/accounts.yaml", &render(&[]));
    let report = Helm::new().prints(["lint", "--strict", ACCOUNTS, "--values", VALUES]);
    assert!(report.contains("1 chart(s) linted, 0 chart(s) failed"), "{report}");
    // Without an entry there is nothing to be wrong.
    assert_eq!(Helm::new().prints(["template", "accounts", ACCOUNTS]).trim(), "");
}

#[test]
fn the_linter_has_nothing_to_say_of_what_is_rendered() {
    let objects = objects(&render(&[]));
    let specs: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "GMSACredentialSpec").collect();
    assert_eq!(specs.len(), 4);
    for spec in specs {
        assert_eq!(lint::object(spec), [], "{spec}");
        assert_eq!(spec["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    }
}

/// What is removed from the list is revoked, unless it is asked for otherwise.
#[test]
fn grants_go_with_their_entry_and_credential_specs_stay() {
    for (more, expected) in [(&[][..], Value::Null), (&["--set", "keepGrants=true"], json!("keep"))] {
        for object in objects(&render(more)) {
            let policy = &object["metadata"]["annotations"]["helm.sh/resource-policy"];
            let expected = if object["kind"] == "RoleBinding" { &expected } else { &json!("keep") };
            assert_eq!(policy, expected, "{object}");
            let options = &object["metadata"]["annotations"]["argocd.argoproj.io/sync-options"];
            assert_eq!(options.is_null(), expected.is_null(), "{object}");
        }
    }
}

#[test]
fn labels_and_annotations_are_on_every_object_and_none_replaces_the_charts_own() {
    let more = ["--set", "commonLabels.team=identity,commonLabels.app\\.kubernetes\\.io/name=x,commonAnnotations.a=b"];
    for object in objects(&render(&more)) {
        assert_eq!(object["metadata"]["labels"]["team"], "identity");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "gmsa-accounts");
        assert_eq!(object["metadata"]["annotations"]["a"], "b");
    }
}

#[test]
fn the_notes_say_what_there_is_and_what_stays() {
    let notes = |more: &[&str]| {
        let install = ["install", "accounts", ACCOUNTS, "--namespace", "gmsa", "--dry-run=client"];
        let said = Helm::new().prints(install.iter().chain(more).copied());
        said.split_once("NOTES:\n").unwrap().1.to_owned()
    };
    assert_file("tests/chart/notes/accounts.txt", &notes(&["--values", VALUES]));
    assert_eq!(
        notes(&[]),
        "The release accounts has no accounts. Add an entry to the list accounts; kubectl gmsa credspec new -o values prints one.\n"
    );
    let kept = notes(&["--values", VALUES, "--set", "keepGrants=true"]);
    assert!(
        kept.ends_with("no pod names it any more. So do grants: revoke them by kubectl gmsa grant --revoke.\n"),
        "{kept}"
    );
}

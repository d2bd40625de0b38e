//! The chart of many accounts: what it renders, that the linter has nothing to say of it, and what it refuses in which words.

use std::fs;

use gmsa_core::credspec::lint;
use serde_json::{Value, json};

use crate::{helm::Helm, refused::unframed, snapshot::assert_file};

/// The chart, from the root of the package, where tests run.
pub const ACCOUNTS: &str = "charts/gmsa-accounts";
const VALUES: &str = "tests/chart/values-of-accounts.yaml";

fn render(more: &[&str]) -> String {
    let template = ["template", "accounts", ACCOUNTS, "--namespace", "gmsa", "--values", VALUES];
    Helm::new().prints(template.iter().chain(more).copied())
}

/// What Helm complains of, for these values as JSON in place of those of the file.
fn complaint(values: &Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.json");
    fs::write(&file, values.to_string()).unwrap();
    let said =
        Helm::new().refuses(["template", "accounts", ACCOUNTS, "--values", VALUES, "--values", file.to_str().unwrap()]);
    unframed(&said)
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
    let objects: Vec<Value> = serde_saphyr::from_multiple(&render(&[])).unwrap();
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
        let objects: Vec<Value> = serde_saphyr::from_multiple(&render(more)).unwrap();
        for object in objects {
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
    let objects: Vec<Value> = serde_saphyr::from_multiple(&render(&more)).unwrap();
    for object in objects {
        assert_eq!(object["metadata"]["labels"]["team"], "identity");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "gmsa-accounts");
        assert_eq!(object["metadata"]["annotations"]["a"], "b");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_entry_and_the_way_out() {
    let entry = |entry: Value| json!({"accounts": [{"account": "First"}, entry]});
    for (values, expected) in [
        (
            json!({"domain": {"sid": "S-1-5-21-1-2-3-1104"}}),
            "domain.sid \"S-1-5-21-1-2-3-1104\" is not a domain's SID: S-1-5-21 and three numbers (an account's has four)",
        ),
        (
            json!({"domain": {"guid": "{244818ae-87ac-4fcd-92ec-e79e5252348a}"}}),
            "domain.guid \"{244818ae-87ac-4fcd-92ec-e79e5252348a}\" is not a GUID without braces",
        ),
        (
            json!({"commonLabels": {"Example.com/team": "a"}}),
            "the key in commonLabels \"Example.com/team\" is not one that Kubernetes takes, such as example.com/team: what is before the slash is in lower case",
        ),
        (
            json!({"commonLabels": {"team": "a b"}}),
            "commonLabels.team \"a b\" is not a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends",
        ),
        (
            json!({"commonAnnotations": {"a b": "c"}}),
            "the key in commonAnnotations \"a b\" is not one that Kubernetes takes, such as example.com/team: what is before the slash is in lower case",
        ),
        (
            entry(json!({"account": "web", "name": "a".repeat(245)})),
            "accounts[1]: name is longer than 244 characters, and that of its ClusterRole would be longer than 253",
        ),
        (
            json!({"domain": {"dnsName": null}}),
            "domain.dnsName \"\" is not a domain's DNS name, such as corp.example.com",
        ),
        (
            json!({"domain": {"netBiosName": "corp/x"}}),
            "domain.netBiosName \"corp/x\" is not a domain's NetBIOS name, such as CORP",
        ),
        (
            json!({"domain": {"dnsTreeName": "-"}}),
            "domain.dnsTreeName \"-\" is not a domain's DNS name, such as example.com",
        ),
        (
            entry(json!({"account": "Web$"})),
            "accounts[1]: account \"Web$\" is not a SAM name: at most 15 letters, digits and . _ -, without the trailing $ and without a domain",
        ),
        (
            entry(json!({"account": "Web", "additionalAccounts": ["CORP\\Db"]})),
            "accounts[1]: account \"CORP\\\\Db\" is not a SAM name: at most 15 letters, digits and . _ -, without the trailing $ and without a domain",
        ),
        (entry(json!({"account": "Web", "name": "Web"})), "accounts[1]: name \"Web\" is not a lower-case DNS name"),
        (
            entry(json!({"account": "first"})),
            "accounts[0] and accounts[1] have the same name \"first\": give one of them a name",
        ),
        (
            entry(json!({"account": "Web", "plugin": "vault", "pluginInput": "x"})),
            "accounts[1]: plugin \"vault\" is none: azure, aws, rancher, or a GUID in braces",
        ),
        (
            entry(json!({"account": "Web", "plugin": "azure"})),
            "accounts[1]: plugin and pluginInput go together, and only one of them is set",
        ),
        (
            entry(json!({"account": "Web", "grants": ["till"]})),
            "accounts[1]: grant \"till\" is not NAMESPACE:SERVICE-ACCOUNT",
        ),
        (
            entry(json!({"account": "Web", "grants": ["shop:till", "shop:till"]})),
            "accounts[1] and accounts[1] make the same RoleBinding shop/gmsa-use-web-till: remove one grant, or give one entry another name",
        ),
        (
            json!({"accounts": [{"account": "a-b", "grants": ["shop:c"]}, {"account": "a", "grants": ["shop:b-c"]}]}),
            "accounts[0] and accounts[1] make the same RoleBinding shop/gmsa-use-a-b-c: remove one grant, or give one entry another name",
        ),
        (
            entry(json!({"acct": "Web"})),
            "- at '/accounts/1': missing property 'account'\n- at '/accounts/1': additional properties 'acct' not allowed",
        ),
        (entry(json!({"account": 7})), "- at '/accounts/1/account': got number, want string"),
        (json!({"realm": {}}), "- at '': additional properties 'realm' not allowed"),
    ] {
        assert_eq!(complaint(&values), expected);
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

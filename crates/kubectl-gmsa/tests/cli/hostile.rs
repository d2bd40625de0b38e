//! Manifests that try to deceive the reader of a report, or to exhaust the machine.

use std::{fmt::Write as _, fs};

use super::{run, text};

/// Steers a terminal, ends a line, writes a command of a workflow, and turns the direction of what follows.
const HOSTILE: &str = "x\u{1b}[2J\r\n::error::forged\n##[error]forged\u{202e}\u{2066}\u{9b}31m\u{2028}y";

/// Whether a report may contain a character.
fn is_plain(c: char) -> bool {
    c == '\n' || !(c.is_control() || "\u{202e}\u{2066}\u{2028}".contains(c))
}

/// A report with hostile names forges no line and holds nothing that steers.
fn assert_plain(report: &str, lines: usize, about: &str) {
    assert!(report.chars().all(is_plain), "{about}: {report:?}");
    assert_eq!(report.lines().count(), lines, "{about}: {report}");
    // The old form is a command anywhere in a line.
    let forged = |line: &str| line.trim_start().starts_with("::error::forged") || line.contains("##[");
    assert!(!report.lines().any(forged), "{about}: {report}");
}

#[test]
#[cfg_attr(windows, ignore = "Windows has no such file names")]
fn nothing_from_a_file_steers_a_terminal_or_forges_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let manifest = format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": {quoted}, "namespace": {quoted}}}, "spec": {{
            "serviceAccountName": {quoted}, "containers": [{{"name": {quoted}, "securityContext":
            {{"windowsOptions": {{"gmsaCredentialSpecName": {quoted}}}}}}}]}}}}
---
{{"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "metadata": {{"name": {quoted}}},
  "::error::forged": 1, "credspec": {{{quoted}: 1}}}}
---
{{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {{"name": {quoted}}}, {quoted}: 1}}
---
{{"apiVersion": {quoted}}}
---
{{{quoted}: 1, {quoted}: 2}}
"#
    );
    // A file name can hold all of it but a slash.
    let file = format!("{HOSTILE}.yaml");
    fs::write(folder.path().join(&file), manifest).unwrap();
    fs::write(folder.path().join(format!("{HOSTILE}2.yaml")), [0xff, 0xff, 0xff]).unwrap();
    let check = |format: &str| {
        let output = run(folder.path(), &["check", "-f", ".", "-o", format], b"");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), ""), "{format}");
        text(&output.stdout).to_owned()
    };
    let json: serde_json::Value = serde_json::from_str(&check("json")).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.len() > 8, "{findings:#?}");
    let github = check("github");
    assert_plain(&github, findings.len() + 1, "github");
    let commands = github.lines().filter(|line| line.starts_with("::"));
    assert!(commands.clone().all(|line| line.contains(" file=")), "{github}");
    assert_eq!(commands.count(), findings.len());
    for format in ["table", "json", "sarif"] {
        let report = check(format);
        assert_plain(&report, report.lines().count(), format);
    }
    let heads =
        check("table").lines().filter(|line| line.starts_with("error[") || line.starts_with("warning[")).count();
    let notes = findings.iter().filter(|finding| finding["level"] == "note").count();
    assert_eq!(heads + notes, findings.len());

    let output = run(folder.path(), &["who-can", "web", "--state", "."], b"");
    assert_eq!(output.status.code(), Some(2));
    let report = text(&output.stdout);
    assert_plain(report, 7, "who-can");
    let heads = report.lines().filter(|line| line.starts_with("unreadable: ") || line.starts_with("refused-object: "));
    assert_eq!(heads.count(), 4, "{report}");
    let output = run(folder.path(), &["credspec", "lint", "-f", &file], b"");
    assert_plain(text(&output.stdout), text(&output.stdout).lines().count(), "lint");
    let output = run(folder.path(), &["credspec", "new", "--from-docker", &file], b"");
    assert_plain(text(&output.stderr), 1, "new");
}

/// Code in every shell, a command of a log at the start and in the middle, YAML, and a link.
const CODE: &str = "::error::forged ##[add-path]/tmp/x ##vso[task.x]y'\u{2019};calc;\u{2018}\"&calc&%PATH%!$(calc)`calc` [a](http://b) #: {}";

#[test]
fn nothing_from_a_directory_is_code_or_forges_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let encode = |text: &str| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
    for (number, name) in [HOSTILE, CODE].into_iter().enumerate() {
        let (file, bare) = (format!("{number}.ldif"), encode(name));
        let account = |of: &str, class: &str, more: &str| {
            format!(
                "dn:: {}\nobjectClass: {class}\nsAMAccountName:: {bare}\nservicePrincipalName:: {}\nwhenCreated: 1\nuserAccountControl: 2\n{more}\n",
                encode(&format!("CN={of}{name},DC=contoso,DC=com")),
                encode(&format!("http/{name}"))
            )
        };
        let hosts = "objectSid:: AQUAAAAAAAUVAAAAAQAAAAIAAAADAAAATwQAAA==\n";
        let ldif = [
            format!(
                "dn: CN=A,CN=Partitions,CN=Configuration,DC=contoso,DC=com\nobjectClass: crossRef\ndnsRoot:: {bare}\nnETBIOSName:: {bare}\n\
                 nCName: <GUID=8259123b-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-1-2-3>;DC=contoso,DC=com\n\n"
            ),
            account("a", "msDS-GroupManagedServiceAccount", ""),
            account("b", "user", ""),
            account("c", "group", hosts),
        ];
        fs::write(folder.path().join(&file), ldif.concat()).unwrap();
        let spec = serde_json::json!({
            "apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "metadata": {"name": "web"},
            "credspec": {"CmsPlugins": ["ActiveDirectory"],
                "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [{"Name": "other", "Scope": name}]},
                "DomainJoinConfig": {"DnsName": "contoso.com", "DnsTreeName": name, "Guid": name, "MachineAccountName": name,
                    "NetBiosName": name, "Sid": name}},
        });
        fs::write(folder.path().join("spec.yaml"), spec.to_string()).unwrap();
        for arguments in [
            &["account", "lint", "-f", &file, "--service", "http/web", "--credspec", "spec.yaml"][..],
            &["account", "lint", "--directory", &file],
            &["credspec", "lint", "-f", "spec.yaml", "--directory", &file],
        ] {
            let of_files: &[&str] = if arguments[0] == "credspec" { &["sarif", "github"] } else { &[] };
            for format in ["table", "json"].iter().chain(of_files).copied() {
                let output = run(folder.path(), &[arguments, &["-o", format]].concat(), b"");
                let (report, about) = (text(&output.stdout), format!("{arguments:?} {format}"));
                assert!(!report.is_empty(), "{about}: {}", text(&output.stderr));
                assert_plain(report, report.lines().count(), &about);
                assert_plain(text(&output.stderr), text(&output.stderr).lines().count(), &about);
                if format == "sarif" {
                    let log: serde_json::Value = serde_json::from_str(report).unwrap();
                    let mut results = log["runs"][0]["results"].as_array().unwrap().iter();
                    assert!(results.all(|one| !one["message"]["text"].as_str().unwrap().contains("](")), "{report}");
                }
                // The name is in a command for PowerShell with its quotes doubled, and in none for cmd.
                assert!(!report.contains("setspn -D http") && !report.contains("setspn -D \""), "{about}: {report}");
                let mut commands = report.split("Set-ADServiceAccount '").skip(1);
                assert!(
                    commands.all(|of| of.contains("y''\u{2019}\u{2019};calc;\u{2018}\u{2018}")),
                    "{about}: {report}"
                );
            }
        }
    }
}

#[test]
fn problems_of_one_kind_in_one_file_are_summarised_after_a_hundred() {
    let folder = tempfile::tempdir().unwrap();
    let mut many = String::new();
    for number in 0..5000 {
        writeln!(many, "---\napiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {{name: A{number}}}\ncredspec: {{}}").unwrap();
    }
    many.push_str(&"---\n[\n".repeat(300));
    fs::write(folder.path().join("many.yaml"), many).unwrap();
    let output = run(folder.path(), &["check", "-f", "many.yaml", "-o", "json"], b"");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |rule: &str| {
        let found = report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == rule);
        let more: u64 = found.clone().filter_map(|finding| finding["more"].as_u64()).sum();
        (found.count(), more)
    };
    assert_eq!((of("name"), of("unreadable")), ((100, 4900), (100, 200)));
    let output = run(folder.path(), &["check", "-f", "many.yaml"], b"");
    let report = text(&output.stdout);
    assert!(report.contains("\n  4900 more of rule name in this file are left out\n"), "{report}");
    assert!(
        report.ends_with("300 could not be checked, 20000 errors in 5000 objects\n"),
        "{}",
        report.lines().last().unwrap()
    );
}

/// A table pads its cells, and the standard library pads to no more than 65,535 characters.
#[test]
fn a_cell_of_any_length_is_cut_before_it_is_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(70_000);
    let shown = format!("{}…", "a".repeat(1_023 - "User system:serviceaccount:shop:".len()));
    let rbac = format!(
        r#"{{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {{"name": "admin"}},
  "rules": [{{"apiGroups": ["windows.k8s.io"], "resources": ["*"], "verbs": ["use"]}}]}}
---
{{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {{"name": "b", "namespace": "shop"}},
  "roleRef": {{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}},
  "subjects": [{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:serviceaccount:shop:{long}"}}]}}"#
    );
    let output = run(folder.path(), &["who-can", "web", "--state", "-"], rbac.as_bytes());
    let expected = format!(
        "NAMESPACE  WHO{}BY\nshop       User system:serviceaccount:shop:{shown}  RoleBinding b of ClusterRole admin\n",
        " ".repeat(1_024 - 3 + 2)
    );
    assert_eq!((text(&output.stdout), output.status.code()), (&*expected, Some(0)), "{}", text(&output.stderr));

    let pod = format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{long}"}},
  "spec": {{"securityContext": {{"windowsOptions": {{"gmsaCredentialSpecName": "web"}}}}}}}}"#
    );
    let output = run(folder.path(), &["check", "-f", "-"], pod.as_bytes());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let row = text(&output.stdout).lines().nth(1).unwrap();
    assert!(row.starts_with(&format!("Pod default/{}…  pod ", "a".repeat(1_023 - "Pod default/".len()))), "{row}");
    assert!(row.ends_with("  web              refused, 404: spec-missing"), "{row}");
}

#[test]
fn a_number_of_any_length_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!("apiVersion: v1\nkind: Pod\nspec: {}\n", "9".repeat(3_000_000));
    let output = run(folder.path(), &["check", "-f", "-"], manifest.as_bytes());
    let expected = format!(
        "error[unreadable] <stdin>:3\n  expected a finite number, found {}…\n\n1 could not be checked in 0 objects\n",
        "9".repeat(59)
    );
    assert_eq!((text(&output.stdout), output.status.code()), (&*expected, Some(2)));
}

/// What `kubectl get pods -A -o yaml` prints in a large cluster is one document.
#[test]
fn a_thousand_pods_in_one_list_are_checked() {
    let value = |number: usize| format!("    - {{name: V{number}, value: a}}\n");
    let values: String = (0..60).map(value).collect();
    let pod = |number: usize| {
        format!(
            "- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p{number}, namespace: shop}}\n  spec:\n    containers:\n    - name: iis\n      env:\n{}",
            values.replace("    - ", "      - ")
        )
    };
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", (0..1000).map(pod).collect::<String>());
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["check", "-f", "-"], list.as_bytes());
    assert_eq!((text(&output.stdout), output.status.code()), ("no problems found in 1000 objects\n", Some(0)));
}

/// Every pod template of an object has a long way to it, and there are more than are checked.
#[test]
fn pod_templates_without_end_are_bounded_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let step = "a".repeat(1_000);
    let template = r#"{"spec": {"containers": [{"name": "iis", "gmsaCredSpecName": "web"}]}}"#;
    let object = format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {{"name": "many"}}, "{step}": [{}]}}"#,
        vec![template; 20_000].join(",")
    );
    let output = run(folder.path(), &["check", "-f", "-", "-o", "json"], object.as_bytes());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of = |rule: &str| findings.iter().filter(|finding| finding["rule"] == rule).collect::<Vec<_>>();
    assert_eq!(of("ignored-field").len(), 100);
    let left_out = of("not-checked");
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0]["message"], "19900 more pod templates of this object are not checked");
    assert_eq!(output.status.code(), Some(2));
    // Without a fault beside it, it is no pass either.
    let object = object.replace("gmsaCredSpecName", "image");
    let output = run(folder.path(), &["check", "-f", "-"], object.as_bytes());
    let expected = "warning[not-checked] <stdin>:1: Farm default/many\n  \
                    19900 more pod templates of this object are not checked\n  \
                    fix: write them as objects of their own\n\n1 could not be checked in 1 object\n";
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(2)));
}

//! Files that are made from the chart: its hidden copy of the values, its README, and what `deploy/` applies without Helm.

use crate::{
    accounts::ACCOUNTS,
    files::text,
    helm::{CHART, Helm},
    readme,
    snapshot::assert_file,
    tickets::TICKETS,
};

#[test]
fn templates_can_read_the_values_that_helm_hides_from_them() {
    for chart in [CHART, ACCOUNTS, TICKETS] {
        assert_file(format!("{chart}/files/values.yaml"), &text(format!("{chart}/values.yaml")));
    }
}

/// Templates of two charts may not have the same names: a parent chart has both.
#[test]
fn charts_have_the_same_shared_templates() {
    for (chart, file) in [(TICKETS, "_shared.tpl"), (TICKETS, "_names.tpl"), (ACCOUNTS, "_names.tpl")] {
        let shared = text(format!("{CHART}/templates/{file}"));
        let name = chart.strip_prefix("charts/").unwrap();
        assert_file(format!("{chart}/templates/{file}"), &shared.replace("\"gmsa-webhook.", &format!("\"{name}.")));
    }
}

#[test]
fn the_readme_lists_every_value() {
    for chart in [CHART, ACCOUNTS, TICKETS] {
        assert_file(format!("{chart}/README.md"), &readme::of(chart));
    }
}

#[test]
fn the_crd_is_the_same_everywhere() {
    assert_file("deploy/gmsa-crd.yaml", &text(format!("{CHART}/crds/gmsacredentialspecs.yaml")));
}

#[test]
fn the_manifest_template_is_what_the_chart_renders() {
    assert_file("deploy/gmsa-webhook.yml.tpl", &manifest_template());
}

#[test]
fn the_template_of_static_policies_is_what_the_chart_renders() {
    let rendered = |mode| {
        let shown = ["--show-only", "templates/static-policies.yaml"];
        let values = [
            "--set",
            "staticPolicies.enabled=true,staticPolicies.admins.users={users-placeholder},staticPolicies.admins.groups={groups-placeholder}",
        ];
        documents(mode, &[shown, values].concat())
            .into_iter()
            .map(|document| {
                assert!(!document.contains("tolerations"), "{document}");
                document
                    .replace("\"users-placeholder\"", "${ADMIN_USERS}")
                    .replace("\"groups-placeholder\"", "${ADMIN_GROUPS}")
            })
            .collect::<Vec<_>>()
    };
    let template = template(STATIC_HEAD, &rendered("self-managed"), &rendered("secret"));
    for list in ["request.userInfo.username in [${ADMIN_USERS}]", "group in [${ADMIN_GROUPS}]"] {
        assert!(template.contains(list), "a placeholder was lost: {list}");
    }
    assert_file("deploy/gmsa-static-policies.yml.tpl", &template);
}

fn manifest_template() -> String {
    let template = template(HEAD, &documents("self-managed", &[]), &documents("secret", &[]));
    assert!(template.contains("${TOLERATIONS}") && template.contains("${IMAGE}"), "a placeholder was lost");
    template
}

/// The objects of both certificate modes that the script knows, marked where they are of one mode only.
fn template(head: &str, self_managed: &[String], secret: &[String]) -> String {
    let mut template = String::from(head);
    for document in self_managed {
        let when = if secret.contains(document) { "" } else { "# when: self-managed\n" };
        template.extend(["---\n", when, document]);
        let of_secret = secret.iter().find(|other| identity(other) == identity(document) && *other != document);
        if let Some(other) = of_secret {
            template.extend(["---\n# when: secret\n", other]);
        }
    }
    for document in secret {
        assert!(
            self_managed.iter().any(|other| identity(other) == identity(document)),
            "only mode secret has this, and the template has no place for it: {document}"
        );
    }
    template
}

/// How the two templates begin.
const HEAD: &str = include_str!("generated/gmsa-webhook.yml");
const STATIC_HEAD: &str = include_str!("generated/gmsa-static-policies.yml");

/// Kind and name.
fn identity(document: &str) -> (&str, &str) {
    let value = |key: &str| document.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    (value("kind: "), value("  name: "))
}

/// What the chart renders, without Helm's own marks and with placeholders for what the script fills in.
fn documents(mode: &str, settings: &[&str]) -> Vec<String> {
    let mode = format!("certificates.mode={mode}");
    let args = [
        "template",
        "name-placeholder",
        CHART,
        "--namespace",
        "namespace-placeholder",
        "--kube-version",
        "1.28",
        "--no-hooks",
        "--set",
        &mode,
        "--set",
        "certificates.secretName=name-placeholder-cert",
        "--set",
        "image.repository=image-placeholder,image.tag=placeholder",
        "--set",
        "tolerations[0].key=tolerations-placeholder",
    ];
    let rendered = Helm::new().prints(args.iter().chain(settings).copied());
    let rendered = rendered
        .replace("tolerations:\n        - key: tolerations-placeholder", "${TOLERATIONS}")
        .replace("image-placeholder:placeholder", "${IMAGE}")
        .replace("namespace-placeholder", "${NAMESPACE}")
        .replace("name-placeholder", "${NAME}")
        .replace("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh");
    rendered
        .split("---\n")
        .skip(1)
        .map(|document| {
            document
                .lines()
                .filter(|line| !line.starts_with("# Source: ") && !line.contains("helm.sh/"))
                .fold(String::new(), |text, line| text + line + "\n")
        })
        .collect()
}

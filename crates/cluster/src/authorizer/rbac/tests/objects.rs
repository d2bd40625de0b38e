//! What the API server would refuse, each with its whole message.

use super::*;
use crate::manifests::Document;

/// The problem of a single object, without its place.
fn problem(kind: &str, metadata: &str, more: &str) -> String {
    let error = rbac(&role(kind, metadata, more)).unwrap_err();
    error.strip_prefix("cannot load the manifests\n  a.yaml, document 1, line 2: ").unwrap().to_owned()
}

#[test]
fn roles() {
    let rule = |rule: &str| format!("rules: [{{{rule}}}]");
    let cases = [
        ("ClusterRole", "rules: {}", "rules: expected a list, found a mapping"),
        ("ClusterRole", "rules: [x]", "rules[0]: expected a mapping, found a string"),
        (
            "ClusterRole",
            "rule: []",
            "rule: unknown field, expected one of: aggregationRule, apiVersion, kind, metadata, rules",
        ),
        (
            "Role",
            "aggregationRule: {}",
            "aggregationRule: unknown field, expected one of: apiVersion, kind, metadata, rules",
        ),
        ("ClusterRole", &rule("apiGroups: [a], resources: [b]"), "rules[0].verbs: expected at least one entry"),
        ("ClusterRole", &rule("verbs: [a], resources: [b]"), "rules[0].apiGroups: expected at least one entry"),
        ("ClusterRole", &rule("verbs: [a], apiGroups: [b]"), "rules[0].resources: expected at least one entry"),
        ("ClusterRole", &rule("verbs: a"), "rules[0].verbs: expected a list, found a string"),
        ("ClusterRole", &rule("verbs: [yes]"), "rules[0].verbs[0]: expected a string, found a boolean"),
        // The typing error that would open every credential spec.
        (
            "ClusterRole",
            &rule("verbs: [use], apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], resourceName: [web]"),
            "rules[0].resourceName: unknown field, expected one of: apiGroups, nonResourceURLs, resourceNames, resources, verbs",
        ),
        (
            "Role",
            &rule("verbs: [get], nonResourceURLs: [/metrics]"),
            "rules[0].nonResourceURLs: expected none in a Role: it is about objects in a namespace",
        ),
        (
            "ClusterRole",
            &rule("verbs: [get], nonResourceURLs: [/metrics], resources: [pods]"),
            "rules[0].nonResourceURLs: expected either these or apiGroups and resources in one rule, found both",
        ),
    ];
    for (kind, more, expected) in cases {
        assert_eq!(problem(kind, "{name: r}", more), expected, "{more}");
    }
}

#[test]
fn aggregation_rules() {
    let at = "aggregationRule.clusterRoleSelectors";
    let expression = |text: &str| format!("{{clusterRoleSelectors: [{{matchExpressions: [{{{text}}}]}}]}}");
    let cases = [
        ("{}".to_owned(), format!("{at}: expected at least one selector")),
        (
            "{selectors: []}".to_owned(),
            "aggregationRule.selectors: unknown field, expected one of: clusterRoleSelectors".to_owned(),
        ),
        (
            "{clusterRoleSelectors: [{matchLabel: {}}]}".to_owned(),
            format!("{at}[0].matchLabel: unknown field, expected one of: matchExpressions, matchLabels"),
        ),
        (
            "{clusterRoleSelectors: [{matchLabels: {a: 1}}]}".to_owned(),
            format!("{at}[0].matchLabels.a: expected a string, found a number"),
        ),
        (
            expression("key: a, operator: in"),
            format!("{at}[0].matchExpressions[0].operator: expected In, NotIn, Exists or DoesNotExist, found \"in\""),
        ),
        (
            expression("key: a, operator: NotIn"),
            format!("{at}[0].matchExpressions[0].values: expected at least one value with this operator"),
        ),
        (
            expression("key: a, operator: Exists, values: [x]"),
            format!("{at}[0].matchExpressions[0].values: expected no values with this operator"),
        ),
        (
            expression("operator: Exists"),
            format!("{at}[0].matchExpressions[0].key: expected a string that is not empty, found nothing"),
        ),
    ];
    for (rule, expected) in cases {
        assert_eq!(problem("ClusterRole", "{name: r}", &format!("aggregationRule: {rule}")), expected, "{rule}");
    }
}

#[test]
fn bindings() {
    let reference = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}";
    let subjects = |subject: &str| format!("{reference}, subjects: [{{{subject}}}]");
    let cases = [
        ("RoleBinding", "subjects: []".to_owned(), "roleRef.kind: expected a string that is not empty, found nothing"),
        (
            "RoleBinding",
            "roleRef: {kind: role, name: r}".to_owned(),
            "roleRef.kind: expected Role or ClusterRole, found \"role\"",
        ),
        (
            "ClusterRoleBinding",
            "roleRef: {kind: Role, name: r}".to_owned(),
            "roleRef.kind: expected ClusterRole, found \"Role\"",
        ),
        (
            "RoleBinding",
            "roleRef: {kind: Role, name: a/b}".to_owned(),
            "roleRef.name: expected a name without `/` and `%`, found \"a/b\"",
        ),
        (
            "RoleBinding",
            "roleRef: {kind: Role, name: r, apiGroup: v1}".to_owned(),
            "roleRef.apiGroup: expected \"\" or \"rbac.authorization.k8s.io\", found \"v1\"",
        ),
        (
            "RoleBinding",
            "roleRef: {kind: Role, name: r, namespace: x}".to_owned(),
            "roleRef.namespace: unknown field, expected one of: apiGroup, kind, name",
        ),
        (
            "RoleBinding",
            format!("{reference}, subject: []"),
            "subject: unknown field, expected one of: apiVersion, kind, metadata, roleRef, subjects",
        ),
        ("RoleBinding", subjects("kind: User"), "subjects[0].name: expected a string that is not empty, found nothing"),
        (
            "RoleBinding",
            subjects("kind: Robot, name: a"),
            "subjects[0].kind: expected ServiceAccount, User or Group, found \"Robot\"",
        ),
        (
            "RoleBinding",
            subjects("kind: User, name: a, apiGroup: x"),
            "subjects[0].apiGroup: expected \"\" or \"rbac.authorization.k8s.io\", found \"x\"",
        ),
        (
            "RoleBinding",
            subjects("kind: ServiceAccount, name: a, namespace: b, apiGroup: rbac.authorization.k8s.io"),
            "subjects[0].apiGroup: expected \"\", found \"rbac.authorization.k8s.io\"",
        ),
        (
            "RoleBinding",
            subjects("kind: ServiceAccount, name: A, namespace: b"),
            "subjects[0].name: expected a lower-case DNS subdomain, found \"A\"",
        ),
        (
            "ClusterRoleBinding",
            subjects("kind: ServiceAccount, name: a"),
            "subjects[0].namespace: expected a string that is not empty, found nothing",
        ),
    ];
    for (kind, more, expected) in cases {
        assert_eq!(problem(kind, "{name: b}", &more), expected, "{more}");
    }
}

#[test]
fn metadata() {
    let cases = [
        ("{}", "metadata.name: expected a string that is not empty, found nothing"),
        ("{name: ..}", "metadata.name: expected a name without `/` and `%`, found \"..\""),
        ("{name: a, namespace: [x]}", "metadata.namespace: expected a string, found a list"),
        ("{name: a, labels: [x]}", "metadata.labels: expected a mapping, found a list"),
        ("{name: a, labels: {a: yes}}", "metadata.labels.a: expected a string, found a boolean"),
    ];
    for (metadata, expected) in cases {
        assert_eq!(problem("ClusterRole", metadata, "rules: []"), expected, "{metadata}");
    }
    let old = "{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: a}}";
    assert_eq!(
        rbac(old).unwrap_err(),
        "cannot load the manifests\n  a.yaml, document 1, line 1: apiVersion: expected rbac.authorization.k8s.io/v1"
    );
}

#[test]
fn objects_are_unique_and_all_problems_are_reported() {
    let text = role("Role", "{name: a}", "rules: []")
        + &role("Role", "{name: a, namespace: x}", "rules: []")
        + &role("ClusterRole", "{name: a}", "rules: []")
        + &role("Role", "{name: a, namespace: default}", "rules: []")
        + &role("ClusterRole", "{name: a}", "rules: []")
        + &role("ClusterRole", "{name: b}", "rules: 1");
    assert_eq!(
        rbac(&text).unwrap_err(),
        "cannot load the manifests\
         \n  a.yaml, document 4, line 8: metadata.name: Role \"a\" in namespace \"default\" is defined twice, first in a.yaml, document 1, line 2\
         \n  a.yaml, document 5, line 10: metadata.name: ClusterRole \"a\" is defined twice, first in a.yaml, document 3, line 6\
         \n  a.yaml, document 6, line 12: rules: expected a list, found a number"
    );
}

#[test]
fn an_object_of_a_cluster_is_refused_like_one_of_a_file() {
    let text =
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":[{"verbs":1}]}"#;
    let of_api = Document::of_api("roles", "rbac.authorization.k8s.io/v1", "Role", serde_json::from_str(text).unwrap());
    for documents in [vec![of_api], parse("roles", text).documents] {
        let (_, refused) = Rbac::from_documents(&documents);
        let expected = "roles, document 1, line 1: rules[0].verbs: expected a list, found a number";
        assert_eq!(refused.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn the_number_of_aggregated_roles_is_bounded() {
    let aggregated = |number: usize| -> String {
        let one = |number| {
            role(
                "ClusterRole",
                &format!("{{name: r{number}}}"),
                "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: x}}]}",
            )
        };
        (0..number).map(one).collect()
    };
    assert_eq!(rbac(&aggregated(128)).unwrap().role_count(), 128);
    assert_eq!(
        rbac(&aggregated(129)).unwrap_err(),
        "cannot load the manifests\n  a.yaml, document 129, line 258: aggregationRule: expected at most 128 aggregated roles"
    );
}

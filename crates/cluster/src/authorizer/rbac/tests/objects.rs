//! What the API server would refuse, each with its whole message.

use super::*;
use crate::manifests::Document;

/// The problem of a single object, without its place.
fn problem(kind: &str, metadata: &str, more: &str) -> String {
    let error = rbac(&role(kind, metadata, more)).unwrap_err();
    error.strip_prefix("cannot load the manifests: a.yaml, document 1, line 2: ").unwrap().to_owned()
}

/// The kind, its metadata, what else it holds, and the problem.
const CASES: &str = r#"
ClusterRole | {name: r} | rules: {} | rules: expected a list, found a mapping
ClusterRole | {name: r} | rules: [x] | rules[0]: expected PolicyRule, found a string
ClusterRole | {name: r} | rule: [] | rule: unknown field, `kubectl explain clusterrole` lists those that exist
Role | {name: r} | aggregationRule: {} | aggregationRule: unknown field, `kubectl explain role` lists those that exist
ClusterRole | {name: r} | rules: [{apiGroups: [a], resources: [b]}] | rules[0].verbs: expected at least one entry
ClusterRole | {name: r} | rules: [{verbs: [a], resources: [b]}] | rules[0].apiGroups: expected at least one entry
ClusterRole | {name: r} | rules: [{verbs: [a], apiGroups: [b]}] | rules[0].resources: expected at least one entry
ClusterRole | {name: r} | rules: [{verbs: a}] | rules[0].verbs: expected a list, found a string
ClusterRole | {name: r} | rules: [{verbs: [yes]}] | rules[0].verbs[0]: expected a string, found a boolean
# The typing error that would open every credential spec.
ClusterRole | {name: r} | rules: [{verbs: [use], apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], resourceName: [web]}] | rules[0].resourceName: unknown field, `kubectl explain clusterrole.rules` lists those that exist
Role | {name: r} | rules: [{verbs: [get], nonResourceURLs: [/metrics]}] | rules[0].nonResourceURLs: expected none in a Role: it is about objects in a namespace
ClusterRole | {name: r} | rules: [{verbs: [get], nonResourceURLs: [/metrics], resources: [pods]}] | rules[0].nonResourceURLs: expected either these or apiGroups and resources in one rule, found both
ClusterRole | {name: r} | aggregationRule: {} | aggregationRule.clusterRoleSelectors: expected at least one selector
ClusterRole | {name: r} | aggregationRule: {selectors: []} | aggregationRule.selectors: unknown field, `kubectl explain clusterrole.aggregationRule` lists those that exist
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchLabel: {}}]} | aggregationRule.clusterRoleSelectors[0].matchLabel: unknown field, `kubectl explain clusterrole.aggregationRule.clusterRoleSelectors` lists those that exist
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: 1}}]} | aggregationRule.clusterRoleSelectors[0].matchLabels.a: expected a string, found a number
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: in}]}]} | aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: expected In, NotIn, Exists or DoesNotExist, found "in"
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: NotIn}]}]} | aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: expected at least one value with this operator
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: Exists, values: [x]}]}]} | aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: expected no values with this operator
ClusterRole | {name: r} | aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{operator: Exists}]}]} | aggregationRule.clusterRoleSelectors[0].matchExpressions[0].key: expected a string that is not empty
RoleBinding | {name: r} | subjects: [] | roleRef.kind: expected Role or ClusterRole, found ""
RoleBinding | {name: r} | roleRef: {kind: role, name: r} | roleRef.kind: expected Role or ClusterRole, found "role"
ClusterRoleBinding | {name: r} | roleRef: {kind: Role, name: r} | roleRef.kind: expected ClusterRole, found "Role"
RoleBinding | {name: r} | roleRef: {kind: Role, name: a/b} | roleRef.name: expected a name without `/` and `%`, found "a/b"
RoleBinding | {name: r} | roleRef: {kind: Role, name: r, apiGroup: v1} | roleRef.apiGroup: expected "" or "rbac.authorization.k8s.io", found "v1"
RoleBinding | {name: r} | roleRef: {kind: Role, name: r, namespace: x} | roleRef.namespace: unknown field, `kubectl explain rolebinding.roleRef` lists those that exist
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subject: [] | subject: unknown field, `kubectl explain rolebinding` lists those that exist
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User}] | subjects[0].name: expected a string that is not empty
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: Robot, name: a}] | subjects[0].kind: expected ServiceAccount, User or Group, found "Robot"
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User, name: a, apiGroup: x}] | subjects[0].apiGroup: expected "" or "rbac.authorization.k8s.io", found "x"
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: a, namespace: b, apiGroup: rbac.authorization.k8s.io}] | subjects[0].apiGroup: expected "", found "rbac.authorization.k8s.io"
RoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: A, namespace: b}] | subjects[0].name: expected a lower-case DNS subdomain, found "A"
ClusterRoleBinding | {name: r} | roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: a}] | subjects[0].namespace: expected a string that is not empty
ClusterRole | {} | rules: [] | metadata.name: expected a string that is not empty
ClusterRole | {name: ..} | rules: [] | metadata.name: expected a name without `/` and `%`, found ".."
ClusterRole | {name: a, namespace: [x]} | rules: [] | metadata.namespace: expected a string, found a list
ClusterRole | {name: a, labels: [x]} | rules: [] | metadata.labels: expected a mapping, found a list
ClusterRole | {name: a, labels: {a: yes}} | rules: [] | metadata.labels.a: expected a string, found a boolean
"#;

#[test]
fn each_problem_of_an_object_is_said() {
    for case in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [kind, metadata, more, expected] = case.splitn(4, " | ").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(problem(kind, metadata, more), expected, "{case}");
    }
    let old = "{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: a}}";
    assert_eq!(
        rbac(old).unwrap_err(),
        "cannot load the manifests: a.yaml, document 1, line 1: apiVersion: expected rbac.authorization.k8s.io/v1"
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
        "cannot load the manifests: \
         a.yaml, document 4, line 8: metadata.name: Role \"a\" in namespace \"default\" is defined twice, first in a.yaml, document 1, line 2; \
         a.yaml, document 5, line 10: metadata.name: ClusterRole \"a\" is defined twice, first in a.yaml, document 3, line 6; \
         a.yaml, document 6, line 12: rules: expected a list, found a number"
    );
}

#[test]
fn an_object_of_a_cluster_is_refused_like_one_of_a_file() {
    let text =
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":[{"verbs":1}]}"#;
    let of_api =
        Document::of_api("roles", "rbac.authorization.k8s.io/v1", "Role", &serde_json::from_str(text).unwrap());
    for documents in [vec![of_api], parse("roles", text, &Bounds::SERVER).documents] {
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
        "cannot load the manifests: a.yaml, document 129, line 258: aggregationRule: expected at most 128 aggregated roles"
    );
}

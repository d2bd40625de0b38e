//! Who may `use` the credential spec `web` in the namespace `prod`, as tables of manifests and reasons.

use super::*;

const RULE: &str = "{apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], verbs: [use]}";
const REF: &str = "kind: ClusterRole, name: r";
const APP: &str = "{kind: ServiceAccount, name: app, namespace: prod}";

/// The reason of the approval of `prod/app`, or of the denial, if it has one.
fn decide(text: &str) -> Result<String, Option<String>> {
    let rbac = rbac(text).unwrap();
    let (account, spec) = (service_account("prod", "app"), SpecName::parse("web").unwrap());
    rbac.grant(&account, Verb::Use, &spec).map(reason).ok_or_else(|| rbac.missing_roles(&account))
}

fn allowed(text: &str) -> bool {
    match decide(text) {
        Ok(_) => true,
        Err(None) => false,
        Err(Some(reason)) => panic!("{reason}"),
    }
}

#[test]
fn rules() {
    let cases = [
        (RULE, true),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", true),
        ("{apiGroups: ['', windows.k8s.io], resources: [pods, gmsacredentialspecs], verbs: [get, use]}", true),
        ("{apiGroups: [''], resources: [gmsacredentialspecs], verbs: [use]}", false),
        ("{apiGroups: [windows.k8s.io], resources: [gmsacredentialspec], verbs: [use]}", false),
        ("{apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs/status], verbs: [use]}", false),
        ("{apiGroups: [windows.k8s.io], resources: ['*/gmsacredentialspecs'], verbs: [use]}", false),
        ("{apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], verbs: [get, list, Use]}", false),
        ("{apiGroups: [windows.k8s.io], resources: [gmsa*], verbs: [use]}", false),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: [web]}", true),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: [other, web]}", true),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: []}", true),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: [other]}", false),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*'], resourceNames: ['*']}", false),
        ("{nonResourceURLs: ['*'], verbs: ['*']}", false),
        // Each rule counts for itself.
        (
            "{apiGroups: ['*'], resources: ['*'], verbs: [get]}, {apiGroups: [''], resources: ['*'], verbs: [use]}",
            false,
        ),
        (
            "{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: ['*'], resources: ['*'], verbs: [use]}",
            true,
        ),
        ("", false),
    ];
    for (rules, expected) in cases {
        let text = role("ClusterRole", "{name: r}", &format!("rules: [{rules}]"))
            + &binding("RoleBinding", "{name: b, namespace: prod}", REF, APP);
        assert_eq!(allowed(&text), expected, "{rules}");
    }
}

#[test]
fn subjects_and_reasons() {
    let by = |subject: &str| Some(format!("RBAC: allowed by RoleBinding \"b/prod\" of ClusterRole \"r\" to {subject}"));
    let cases = [
        (APP, by("ServiceAccount \"app/prod\"")),
        ("{kind: ServiceAccount, apiGroup: '', name: app, namespace: prod}", by("ServiceAccount \"app/prod\"")),
        // The binding's own namespace.
        ("{kind: ServiceAccount, name: app}", by("ServiceAccount \"app/prod\"")),
        ("{kind: ServiceAccount, name: app, namespace: test}", None),
        ("{kind: ServiceAccount, name: other, namespace: prod}", None),
        ("{kind: User, name: 'system:serviceaccount:prod:app'}", by("User \"system:serviceaccount:prod:app\"")),
        (
            "{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:prod:app'}",
            by("User \"system:serviceaccount:prod:app\""),
        ),
        ("{kind: User, name: app}", None),
        ("{kind: User, name: 'system:serviceaccounts'}", None),
        ("{kind: User, name: '*'}", None),
        ("{kind: Group, name: 'system:serviceaccounts'}", by("Group \"system:serviceaccounts\"")),
        ("{kind: Group, name: 'system:serviceaccounts:prod'}", by("Group \"system:serviceaccounts:prod\"")),
        ("{kind: Group, name: 'system:serviceaccounts:test'}", None),
        ("{kind: Group, name: 'system:authenticated'}", None),
        ("{kind: Group, name: '*'}", None),
        (
            "{kind: User, name: eve}, {kind: Group, name: 'system:serviceaccounts'}",
            by("Group \"system:serviceaccounts\""),
        ),
        ("", None),
    ];
    for (subjects, expected) in cases {
        let text =
            uses("ClusterRole", "{name: r}") + &binding("RoleBinding", "{name: b, namespace: prod}", REF, subjects);
        assert_eq!(decide(&text), expected.ok_or(None), "{subjects}");
    }
}

#[test]
fn bindings_and_namespaces() {
    let everybody = "{kind: Group, name: 'system:serviceaccounts'}";
    let reason = |text: &str| Ok(format!("RBAC: allowed by {text} to Group \"system:serviceaccounts\""));
    let not_found = |text: &str| Err(Some(format!("RBAC: {text}")));
    let cases = [
        // The role, the binding, and what comes of it.
        (
            uses("Role", "{name: r, namespace: prod}"),
            ("RoleBinding", "{name: b, namespace: prod}", "kind: Role, name: r"),
            reason("RoleBinding \"b/prod\" of Role \"r\""),
        ),
        (
            uses("ClusterRole", "{name: r}"),
            ("RoleBinding", "{name: b, namespace: prod}", REF),
            reason("RoleBinding \"b/prod\" of ClusterRole \"r\""),
        ),
        (
            uses("ClusterRole", "{name: r}"),
            ("ClusterRoleBinding", "{name: b}", REF),
            reason("ClusterRoleBinding \"b\" of ClusterRole \"r\""),
        ),
        // A binding counts only in its own namespace, not in its subjects'.
        (uses("ClusterRole", "{name: r}"), ("RoleBinding", "{name: b, namespace: test}", REF), Err(None)),
        (uses("ClusterRole", "{name: r}"), ("RoleBinding", "{name: b}", REF), Err(None)),
        // A Role counts in its own namespace only, and is no ClusterRole.
        (
            uses("Role", "{name: r, namespace: test}"),
            ("RoleBinding", "{name: b, namespace: prod}", "kind: Role, name: r"),
            not_found("role.rbac.authorization.k8s.io \"r\" not found"),
        ),
        (
            uses("ClusterRole", "{name: r}"),
            ("RoleBinding", "{name: b, namespace: prod}", "kind: Role, name: r"),
            not_found("role.rbac.authorization.k8s.io \"r\" not found"),
        ),
        (
            uses("Role", "{name: r, namespace: prod}"),
            ("RoleBinding", "{name: b, namespace: prod}", REF),
            not_found("clusterrole.rbac.authorization.k8s.io \"r\" not found"),
        ),
    ];
    for (role, (kind, name, reference), expected) in cases {
        let text = role + &binding(kind, name, reference, everybody);
        assert_eq!(decide(&text), expected, "{text}");
    }
}

#[test]
fn cluster_admin_is_known_until_it_is_defined() {
    let bind = binding("RoleBinding", "{name: b, namespace: prod}", "kind: ClusterRole, name: cluster-admin", APP);
    let expected =
        "RBAC: allowed by RoleBinding \"b/prod\" of ClusterRole \"cluster-admin\" to ServiceAccount \"app/prod\"";
    assert_eq!(decide(&bind), Ok(expected.to_owned()));
    let own = role("ClusterRole", "{name: cluster-admin}", "rules: []");
    assert_eq!(decide(&(own + &bind)), Err(None));
    // Like any other role, selectors find it.
    let selectors = "{matchExpressions: [{key: a, operator: DoesNotExist}]}";
    assert!(allowed(&aggregated(selectors, "")));
}

#[test]
fn the_reason_of_a_denial_names_each_missing_role_once() {
    let bind = |name: &str, role: &str, subject: &str| {
        binding(
            "RoleBinding",
            &format!("{{name: {name}, namespace: prod}}"),
            &format!("kind: ClusterRole, name: {role}"),
            subject,
        )
    };
    let text = bind("a", "x", APP)
        + &bind("b", "v", APP)
        + &bind("c", "x", APP)
        + &bind("d", "z", "{kind: User, name: eve}")
        + &binding("ClusterRoleBinding", "{name: e}", "kind: ClusterRole, name: w", APP);
    let missing = |role: &str| format!("clusterrole.rbac.authorization.k8s.io {role:?} not found");
    let expected = format!("RBAC: [{}, {}, {}]", missing("w"), missing("x"), missing("v"));
    assert_eq!(decide(&text), Err(Some(expected)));
    // A grant elsewhere counts all the same.
    let text = text + &uses("ClusterRole", "{name: r}") + &bind("z", "r", APP);
    assert_eq!(
        decide(&text),
        Ok("RBAC: allowed by RoleBinding \"z/prod\" of ClusterRole \"r\" to ServiceAccount \"app/prod\"".to_owned())
    );
}

/// An aggregated role `r` with `selectors` and useless rules of its own, bound to `prod/app`, beside `others`.
fn aggregated(selectors: &str, others: &str) -> String {
    aggregate("r", "self: 'yes'", selectors, "{apiGroups: [''], resources: [pods], verbs: [get]}")
        + others
        + &binding("RoleBinding", "{name: b, namespace: prod}", REF, APP)
}

fn aggregate(name: &str, labels: &str, selectors: &str, rules: &str) -> String {
    let more = format!("aggregationRule: {{clusterRoleSelectors: [{selectors}]}}, rules: [{rules}]");
    role("ClusterRole", &format!("{{name: {name}, labels: {{{labels}}}}}"), &more)
}

#[test]
fn selectors_of_aggregated_roles() {
    let part = uses("ClusterRole", "{name: part, labels: {a: x, b: z}}");
    let cases = [
        ("{matchLabels: {a: x}}", true),
        ("{matchLabels: {a: x, b: z}}", true),
        ("{matchLabels: {a: x, b: w}}", false),
        ("{matchLabels: {c: x}}", false),
        ("{matchLabels: {a: q}}, {matchLabels: {b: z}}", true),
        ("{matchExpressions: [{key: a, operator: In, values: [w, x]}]}", true),
        ("{matchExpressions: [{key: a, operator: In, values: [w]}]}", false),
        ("{matchExpressions: [{key: c, operator: In, values: [w]}]}", false),
        ("{matchLabels: {b: z}, matchExpressions: [{key: a, operator: NotIn, values: [w]}]}", true),
        ("{matchLabels: {b: z}, matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", false),
        ("{matchLabels: {b: z}, matchExpressions: [{key: c, operator: NotIn, values: [x]}]}", true),
        ("{matchExpressions: [{key: a, operator: Exists}]}", true),
        ("{matchExpressions: [{key: c, operator: Exists}]}", false),
        ("{matchLabels: {b: z}, matchExpressions: [{key: c, operator: DoesNotExist}]}", true),
        ("{matchLabels: {b: z}, matchExpressions: [{key: a, operator: DoesNotExist}]}", false),
        (
            "{matchLabels: {a: x}, matchExpressions: [{key: b, operator: Exists}, {key: c, operator: DoesNotExist}]}",
            true,
        ),
        ("{matchLabels: {a: x}, matchExpressions: [{key: b, operator: Exists}, {key: c, operator: Exists}]}", false),
        ("{}", true),
    ];
    for (selectors, expected) in cases {
        assert_eq!(allowed(&aggregated(selectors, &part)), expected, "{selectors}");
    }
}

#[test]
fn own_rules_of_aggregated_roles_stay_where_the_selectors_bring_none() {
    let bind = binding("RoleBinding", "{name: b, namespace: prod}", REF, APP);
    let selectors = "{matchLabels: {a: x}}, {matchLabels: {self: 'yes'}}";
    let own = |others: &str| aggregate("r", "self: 'yes'", selectors, RULE) + others + &bind;
    let part = |rules: &str| role("ClusterRole", "{name: part, labels: {a: x}}", &format!("rules: [{rules}]"));
    // It does not select itself, and a Role is no part of it.
    assert!(allowed(&own("")));
    assert!(allowed(&own(&uses("Role", "{name: part, namespace: prod, labels: {a: x}}"))));
    assert!(allowed(&own(&part(""))));
    // A part that has no rules may be aggregated itself, alone or in a circle.
    let empty = |name: &str, labels: &str, selects: &str| {
        aggregate(name, labels, &format!("{{matchLabels: {{{selects}}}}}"), "")
    };
    assert!(allowed(&own(&empty("part", "a: x", "c: none"))));
    assert!(allowed(&own(&(empty("part", "a: x", "b: z") + &empty("other", "b: z", "a: x")))));
    assert!(!allowed(&own(&part("{apiGroups: [''], resources: [pods], verbs: [get]}"))));
    assert!(!allowed(&own(&part("{nonResourceURLs: [/metrics], verbs: [get]}"))));
}

#[test]
fn aggregated_roles_may_select_each_other() {
    let select_a = "{matchLabels: {a: x}}";
    let part = uses("ClusterRole", "{name: part, labels: {b: z}}");
    let middle = |selectors: &str, rules: &str| aggregate("middle", "a: x", selectors, rules);
    // In a line.
    assert!(allowed(&aggregated(select_a, &(middle("{matchLabels: {b: z}}", "") + &part))));
    assert!(!allowed(&aggregated(select_a, &middle("{matchLabels: {b: z}}", ""))));
    assert!(allowed(&aggregated(select_a, &middle("{matchLabels: {b: z}}", RULE))));
    // In a circle: what it selects outside of itself, through any of its members; no rules of their own.
    let circle = "{matchLabels: {self: 'yes'}}";
    assert!(allowed(&aggregated(select_a, &(middle(&format!("{circle}, {{matchLabels: {{b: z}}}}"), "") + &part))));
    assert!(allowed(&aggregated(&format!("{select_a}, {{matchLabels: {{b: z}}}}"), &(middle(circle, "") + &part))));
    assert!(!allowed(&aggregated(select_a, &middle(circle, RULE))));
    // Leading to a circle of others.
    let other = aggregate("other", "self: 'no'", select_a, RULE);
    let middle = middle("{matchLabels: {self: 'no'}}, {matchLabels: {b: z}}", RULE);
    assert!(!allowed(&aggregated(select_a, &(other.clone() + &middle))));
    assert!(allowed(&aggregated(select_a, &(other + &middle + &part))));
}

//! RBAC over manifests: who holds `use`, by which role and binding, and with which reason.

use std::time::Duration;

use super::*;
use crate::manifests::{Bounds, Error, parse};
use gmsa_core::diagnostic::Diagnostics;

mod objects;
mod semantics;

fn rbac(text: &str) -> Result<Rbac, String> {
    {
        let (found, refused) = Rbac::from_documents(&parse("a.yaml", text, &Bounds::SERVER).complete().unwrap());
        let mut problems = Diagnostics::default();
        problems.extend(refused);
        Error::unless_none(problems).map(|()| found).map_err(|error| error.to_string())
    }
}

fn service_account(namespace: &str, name: &str) -> ServiceAccount {
    ServiceAccount { namespace: Arc::from(namespace), name: Arc::from(name) }
}

/// The reason that the API server gives for an approval.
fn reason(BindingGrant { binding, holder }: BindingGrant<'_>) -> String {
    let Binding { namespace, name, role_kind, role, .. } = binding;
    let binding = match namespace {
        Some(namespace) => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
        None => format!("ClusterRoleBinding {name:?}"),
    };
    let holder = match holder {
        Holder::User(name) => format!("User {name:?}"),
        Holder::Group(name) => format!("Group {name:?}"),
        // The name comes first.
        Holder::ServiceAccount { namespace, name } => format!("ServiceAccount {:?}", format!("{name}/{namespace}")),
    };
    format!("RBAC: allowed by {binding} of {} {role:?} to {holder}", role_kind.as_str())
}

fn role(kind: &str, name: &str, more: &str) -> String {
    format!("---\n{{apiVersion: rbac.authorization.k8s.io/v1, kind: {kind}, metadata: {name}, {more}}}\n")
}

/// A role of all rights on credential specs.
fn uses(kind: &str, name: &str) -> String {
    let rule = "{apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], verbs: [use]}";
    role(kind, name, &format!("rules: [{rule}]"))
}

fn binding(kind: &str, name: &str, role: &str, subjects: &str) -> String {
    let more = format!("roleRef: {{apiGroup: rbac.authorization.k8s.io, {role}}}, subjects: [{subjects}]");
    self::role(kind, name, &more)
}

#[tokio::test]
async fn an_answer_is_allowed_or_denied_and_comes_from_files() {
    let spec = SpecName::parse("web").unwrap();
    let past = Instant::now() - Duration::from_secs(1);
    let account = "{kind: ServiceAccount, name: app, namespace: prod}";
    let rbac = rbac(
        &(uses("ClusterRole", "{name: r}")
            + &binding("RoleBinding", "{name: b, namespace: prod}", "kind: ClusterRole, name: r", account)
            + &binding(
                "RoleBinding",
                "{name: c, namespace: prod}",
                "kind: Role, name: gone",
                "{kind: Group, name: 'system:serviceaccounts:prod'}",
            )),
    )
    .unwrap();
    let denied = |reason: Option<&str>| UseFact::Denied { reason: reason.map(str::to_owned) };
    let cases = [
        (service_account("prod", "app"), UseFact::Allowed),
        (service_account("prod", "other"), denied(Some("RBAC: role.rbac.authorization.k8s.io \"gone\" not found"))),
        (service_account("test", "app"), denied(None)),
    ];
    for (account, fact) in cases {
        let answer = rbac.may(&account, Verb::Use, &spec, past).await;
        assert_eq!(answer, Authorization { fact, source: Source::Files }, "{account:?}");
    }
}

#[test]
fn objects_are_counted() {
    let text = uses("ClusterRole", "{name: a}")
        + &uses("Role", "{name: a, namespace: x}")
        + &uses("Role", "{name: a}")
        + &binding("RoleBinding", "{name: a, namespace: x}", "kind: Role, name: a", "")
        + &binding("RoleBinding", "{name: a}", "kind: Role, name: a", "")
        + &binding("ClusterRoleBinding", "{name: a}", "kind: ClusterRole, name: a", "")
        + "---\n{apiVersion: iam.example.com/v1, kind: Role}\n"
        + "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: Other}\n";
    let rbac = rbac(&text).unwrap();
    assert_eq!((rbac.role_count(), rbac.binding_count()), (3, 3));
    assert_eq!(rbac.namespaces().collect::<Vec<_>>(), ["default", "x"]);
    let none = Rbac::from_documents(&[]).0;
    assert_eq!((none.role_count(), none.binding_count()), (0, 0));
}

#[test]
fn all_grants_of_a_credential_spec_are_listed() {
    let spec = SpecName::parse("web").unwrap();
    let text = uses("ClusterRole", "{name: r}")
        + &role("ClusterRole", "{name: useless}", "rules: []")
        + &binding(
            "RoleBinding",
            "{name: b, namespace: prod}",
            "kind: ClusterRole, name: r",
            "{kind: User, name: eve}, {kind: ServiceAccount, name: app}",
        )
        + &binding(
            "RoleBinding",
            "{name: c, namespace: prod}",
            "kind: ClusterRole, name: useless",
            "{kind: User, name: eve}",
        )
        + &binding(
            "RoleBinding",
            "{name: b, namespace: test}",
            "kind: ClusterRole, name: r",
            "{kind: User, name: eve}",
        )
        + &binding("ClusterRoleBinding", "{name: all}", "kind: ClusterRole, name: r", "{kind: Group, name: admins}");
    let rbac = rbac(&text).unwrap();
    let reasons = |namespace| rbac.grants((Verb::Use, &spec), namespace).map(reason).collect::<Vec<_>>();
    let cluster = "RBAC: allowed by ClusterRoleBinding \"all\" of ClusterRole \"r\" to Group \"admins\"";
    assert_eq!(reasons("other"), [cluster]);
    assert_eq!(
        reasons("prod"),
        [
            cluster,
            "RBAC: allowed by RoleBinding \"b/prod\" of ClusterRole \"r\" to User \"eve\"",
            "RBAC: allowed by RoleBinding \"b/prod\" of ClusterRole \"r\" to ServiceAccount \"app/prod\"",
        ]
    );
}

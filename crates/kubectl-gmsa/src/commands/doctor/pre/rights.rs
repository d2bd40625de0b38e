//! The rights that an installation needs, asked of the API server for the user who asks.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};

use super::super::found;
use crate::shared::{not_checked::Read, rules, snapshot::Snapshot};
use gmsa_core::{
    credspec::{GROUP, PLURAL},
    diagnostic::Check,
};

const RIGHTS: &str = "your rights";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// A right: the verb, the group and the resource.
type Right = (&'static str, &'static str, &'static str);

/// In the cluster: the objects of the chart that are in no namespace.
const IN_CLUSTER: [Right; 4] = [
    ("create", RBAC, "clusterroles"),
    ("create", RBAC, "clusterrolebindings"),
    ("create", ADMISSION, "mutatingwebhookconfigurations"),
    ("create", ADMISSION, "validatingwebhookconfigurations"),
];

/// In the namespace: the other objects, and the Secrets in which Helm keeps its releases.
const IN_NAMESPACE: [Right; 9] = [
    ("create", "", "serviceaccounts"),
    ("create", "", "services"),
    ("create", "", "secrets"),
    ("list", "", "secrets"),
    ("update", "", "secrets"),
    ("create", "apps", "deployments"),
    ("create", "policy", "poddisruptionbudgets"),
    ("create", RBAC, "roles"),
    ("create", RBAC, "rolebindings"),
];

/// What the webhook's role holds: nobody may give a right that they lack, unless they may `escalate`.
/// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>
const GIVEN: [Right; 8] = [
    ("get", GROUP, PLURAL),
    ("list", GROUP, PLURAL),
    ("watch", GROUP, PLURAL),
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ("get", ADMISSION, "mutatingwebhookconfigurations"),
    ("patch", ADMISSION, "mutatingwebhookconfigurations"),
    ("get", ADMISSION, "validatingwebhookconfigurations"),
    ("patch", ADMISSION, "validatingwebhookconfigurations"),
];

const ESCALATE: Right = ("escalate", RBAC, "clusterroles");

/// Checks the rights; the namespace and the custom resource must be created only where they are missing.
pub(super) async fn check(snapshot: &Snapshot, namespace: &str, no_namespace: bool, no_crd: bool) -> Check {
    let mut needed: Vec<(Right, Option<&str>)> = IN_CLUSTER.map(|right| (right, None)).into();
    if no_namespace {
        needed.push((("create", "", "namespaces"), None));
    }
    if no_crd {
        needed.push((("create", "apiextensions.k8s.io", "customresourcedefinitions"), None));
    }
    needed.extend(IN_NAMESPACE.map(|right| (right, Some(namespace))));
    let missing = match missing(snapshot, &needed).await {
        Ok(missing) => missing,
        Err(unread) => return unread.check(RIGHTS),
    };
    let given = match missing_to_give(snapshot).await {
        Ok(given) => given,
        Err(unread) => return unread.check(RIGHTS),
    };
    let parts = [("you may not", missing), ("you may not give the webhook what you lack yourself:", given)];
    let parts = parts.iter().filter(|(_, rights)| !rights.is_empty());
    let text: Vec<String> = parts.map(|(what, rights)| format!("{what} {}", rights.join(", "))).collect();
    if text.is_empty() {
        let text = format!("you may create what the installation consists of, in {namespace} and in the cluster");
        return Check::pass(RIGHTS, text);
    }
    found(RIGHTS, &rules::INSTALL_PERMISSIONS, text.join("; "))
}

/// The rights of the webhook that the user lacks and may not give all the same.
async fn missing_to_give(snapshot: &Snapshot) -> Read<Vec<String>> {
    let missing_rights = missing(snapshot, &GIVEN.map(|right| (right, None))).await?;
    if missing_rights.is_empty() || missing(snapshot, &[(ESCALATE, None)]).await?.is_empty() {
        return Ok(Vec::new());
    }
    Ok(missing_rights)
}

/// Those that the user lacks, as `create deployments in NAMESPACE`.
async fn missing(snapshot: &Snapshot, rights: &[(Right, Option<&str>)]) -> Read<Vec<String>> {
    let answers = join_all(rights.iter().map(|(right, namespace)| may(snapshot, right, *namespace))).await;
    let mut missing = Vec::new();
    for (((verb, _, resource), namespace), answer) in rights.iter().zip(answers) {
        if !answer? {
            let place = namespace.map_or(String::new(), |name| format!(" in {name}"));
            missing.push(format!("{verb} {resource}{place}"));
        }
    }
    Ok(missing)
}

async fn may(snapshot: &Snapshot, (verb, group, resource): &Right, namespace: Option<&str>) -> Read<bool> {
    let attributes = ResourceAttributes {
        verb: Some((*verb).to_owned()),
        group: Some((*group).to_owned()),
        resource: Some((*resource).to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let answer: SelfSubjectAccessReview =
        snapshot.ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

//! The rights of the current user that an installation needs, checked with the API server.

use std::collections::BTreeMap;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::ResourceAttributes;

use super::super::{may, permission};
use crate::shared::{rules, unread::Read, world::World};
use gmsa_core::{
    credspec::{GROUP, PLURAL},
    diagnostic::Check,
};

pub(super) const RIGHTS: &str = "your rights";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Verbs on resources of a group.
type Rights = (&'static [&'static str], &'static str, &'static [&'static str]);

/// Helm's verbs on objects of a release: it reads, creates or applies, and finally deletes them.
const RELEASED: [&str; 4] = ["get", "create", "patch", "delete"];

/// For the cluster-scoped objects of the chart.
const IN_CLUSTER: [Rights; 3] = [
    (&RELEASED, RBAC, &["clusterroles", "clusterrolebindings"]),
    (&RELEASED, ADMISSION, &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
    // During uninstallation it waits until the first of them is deleted.
    (&["list", "watch"], ADMISSION, &["validatingwebhookconfigurations"]),
];

/// Helm applies the custom resource, also an existing one, and does not delete it.
const CRDS: Rights = (&["create", "patch"], "apiextensions.k8s.io", &["customresourcedefinitions"]);

const NAMESPACES: Rights = (&["create"], "", &["namespaces"]);

/// For the other objects, and the Secrets in which Helm keeps its releases.
const IN_NAMESPACE: [Rights; 5] = [
    (&RELEASED, "", &["serviceaccounts", "services"]),
    (&RELEASED, "apps", &["deployments"]),
    (&RELEASED, "policy", &["poddisruptionbudgets"]),
    (&RELEASED, RBAC, &["roles", "rolebindings"]),
    (&["get", "list", "watch", "create", "update", "patch", "delete"], "", &["secrets"]),
];

/// The other rights of the webhook's role: users may grant only their own rights, unless they may `escalate`.
/// <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>
const GIVEN: [Rights; 3] = [
    (&["get", "list", "watch"], GROUP, &[PLURAL]),
    (&["create"], "authorization.k8s.io", &["localsubjectaccessreviews"]),
    (&["get", "patch", "watch"], ADMISSION, &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]),
];

const ESCALATE: Rights = (&["escalate"], RBAC, &["clusterroles"]);

/// Checks the rights, including creation of the namespace if it is missing.
pub(super) async fn check(world: &World, namespace: &str, no_namespace: bool) -> Read<Vec<Check>> {
    let mut needed: Vec<(Rights, Option<&str>)> = IN_CLUSTER.map(|rights| (rights, None)).into();
    if no_namespace {
        needed.push((NAMESPACES, None));
    }
    needed.push((CRDS, None));
    needed.extend(IN_NAMESPACE.map(|rights| (rights, Some(namespace))));
    let (missing, given) = (missing(world, &needed).await?, missing_to_give(world).await?);
    let parts = [("you may not", missing), ("you may not grant the webhook rights that you do not have:", given)];
    let parts = parts.iter().filter(|(_, rights)| !rights.is_empty());
    let text: Vec<String> = parts.map(|(what, rights)| format!("{what} {}", rights.join("; "))).collect();
    Ok(vec![if text.is_empty() {
        let text = format!("you may create what the installation consists of, in {namespace} and in the cluster");
        Check::pass(RIGHTS, text)
    } else {
        Check::breach(RIGHTS, &rules::INSTALL_PERMISSIONS, text.join("; "))
    }])
}

/// The rights of the webhook that the user cannot grant.
async fn missing_to_give(world: &World) -> Read<Vec<String>> {
    let missing_rights = missing(world, &GIVEN.map(|rights| (rights, None))).await?;
    if missing_rights.is_empty() || missing(world, &[(ESCALATE, None)]).await?.is_empty() {
        return Ok(Vec::new());
    }
    Ok(missing_rights)
}

/// The missing rights, as `get, create deployments in NAMESPACE`: verbs on the same resource share one text.
async fn missing(world: &World, needed: &[(Rights, Option<&str>)]) -> Read<Vec<String>> {
    let each = needed.iter().flat_map(|((verbs, group, resources), namespace)| {
        resources.iter().flat_map(move |resource| verbs.iter().map(move |verb| (*verb, *group, *resource, *namespace)))
    });
    let asked: Vec<_> = each.collect();
    let answers = join_all(asked.iter().map(async |(verb, group, resource, namespace)| {
        let right = ResourceAttributes { namespace: namespace.map(str::to_owned), ..permission(verb, group, resource) };
        may(world, None, &right).await
    }));
    let mut lacking: BTreeMap<(Option<&str>, &str), Vec<&str>> = BTreeMap::new();
    for ((verb, _, resource, namespace), answer) in asked.iter().zip(answers.await) {
        if !answer? {
            lacking.entry((*namespace, resource)).or_default().push(verb);
        }
    }
    let mut by_verbs: BTreeMap<(Option<&str>, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((namespace, resource), verbs) in lacking {
        by_verbs.entry((namespace, verbs)).or_default().push(resource);
    }
    let line = |((namespace, verbs), resources): ((Option<&str>, Vec<&str>), Vec<&str>)| {
        let place = namespace.map_or(String::new(), |name| format!(" in {name}"));
        let unless = if resources == CRDS.2 { " (not with `--skip-crds`)" } else { "" };
        format!("{} {}{place}{unless}", verbs.join(", "), resources.join(", "))
    };
    Ok(by_verbs.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CRDS, GIVEN, IN_CLUSTER, IN_NAMESPACE, Rights};

    /// Verb and resource of each right.
    fn each(rights: &[Rights]) -> BTreeSet<(&'static str, &'static str)> {
        let of = |(verbs, _, resources): &Rights| {
            let (verbs, resources) = (*verbs, *resources);
            resources.iter().flat_map(move |resource| verbs.iter().map(move |verb| (*verb, *resource)))
        };
        rights.iter().flat_map(of).collect()
    }

    #[test]
    fn each_right_of_the_table_is_asked_for_and_no_other() {
        let page = include_str!("../../../../../../docs/rights.md");
        let rows = page.lines().map(str::trim).skip_while(|line| *line != "| You may | on | |").skip(2);
        let (mut in_cluster, mut in_namespace) = (BTreeSet::new(), BTreeSet::new());
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let words = |cell: usize| cells[cell].split('`').skip(1).step_by(2);
            let place = if cells[3].starts_with("in the cluster") { &mut in_cluster } else { &mut in_namespace };
            place.extend(words(2).flat_map(|resource| words(1).map(move |verb| (verb, resource))));
        }
        assert_eq!(each(&[&IN_CLUSTER[..], &[CRDS], &GIVEN].concat()), in_cluster);
        assert_eq!(each(&IN_NAMESPACE), in_namespace);
    }
}

//! `doctor --pre`: whether the cluster is ready for an installation, and what is there already.
//!
//! Invariants: nothing is created but access reviews, and no webhook is called.

use anyhow::bail;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::version::Info,
};

use super::found;
use crate::shared::{not_checked::Read, rules, snapshot::Snapshot, webhook::configured};
use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Check, Diagnostic, Severity},
};

mod existing;
mod rights;

/// The namespace that the documentation installs into.
pub(super) const NAMESPACE: &str = "gmsa-webhook";

const VERSION: &str = "API server";
const NAMESPACE_CHECK: &str = "namespace";

/// The oldest minor version of Kubernetes 1 that the chart installs on: its `kubeVersion`.
const OLDEST: u32 = 25;

/// The first whose match conditions are stable.
const MATCH_CONDITIONS: u32 = 30;

/// The label of a namespace that names its Pod Security level. <https://kubernetes.io/docs/concepts/security/pod-security-admission/>
const LEVEL: &str = "pod-security.kubernetes.io/enforce";

/// The checks; `namespace` is the one to install into.
pub(super) async fn checks(snapshot: &Snapshot, namespace: &str) -> anyhow::Result<Vec<Check>> {
    if namespace.contains('.') || !is_dns_subdomain(namespace) {
        bail!("{namespace:?} is not the name of a namespace");
    }
    let path = format!("/api/v1/namespaces/{namespace}");
    let (info, crd, webhooks, read) = tokio::join!(
        snapshot.get::<Info>("/version"),
        snapshot.find::<CustomResourceDefinition>(gmsa_cluster::crd::PATH),
        configured(snapshot),
        snapshot.find::<Namespace>(&path),
    );
    let mut checks = vec![version(&info?.git_version)];
    checks.push(rights::check(snapshot, namespace, matches!(read, Ok(None))).await);
    checks.push(self::namespace(namespace, read));
    checks.extend(existing::custom_resource(crd));
    checks.extend(existing::webhooks(webhooks));
    Ok(checks)
}

/// Checks the version of the API server, such as `v1.29.3-eks-1234`.
fn version(text: &str) -> Check {
    let mut numbers = text.trim_start_matches('v').split('.').map(|number| {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number.get(..digits).and_then(|digits| digits.parse::<u32>().ok())
    });
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let (Some(major), Some(minor)) = (major, minor) else {
        let text = format!("could not be checked: {text:?} is not a version of Kubernetes");
        return found(VERSION, &rules::NOT_CHECKED, text);
    };
    if (major, minor) >= (1, MATCH_CONDITIONS) {
        return Check::pass(VERSION, format!("answers, {text}"));
    }
    if (major, minor) >= (1, OLDEST) {
        let text = format!("{text} has no match conditions: the webhook is asked about every pod");
        let fix = format!(
            "Upgrade the cluster to 1.{MATCH_CONDITIONS} or later, or read \"Older clusters\" in docs/install.md first."
        );
        let older = Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_severity(Severity::Warning).with_fix(fix);
        return Check::found(VERSION, older);
    }
    found(
        VERSION,
        &rules::KUBERNETES_VERSION,
        format!("{text} is older than 1.{OLDEST}, the oldest that the chart installs on"),
    )
}

/// Checks the namespace: the webhook runs under every Pod Security level, so it must only be there to stay.
fn namespace(name: &str, read: Read<Option<Namespace>>) -> Check {
    let namespace = match read {
        Ok(Some(namespace)) => namespace,
        Ok(None) => {
            return Check::pass(NAMESPACE_CHECK, format!("{name} does not exist yet: --create-namespace creates it"));
        }
        Err(unread) => return unread.check(NAMESPACE_CHECK),
    };
    if namespace.metadata.deletion_timestamp.is_some() {
        return found(NAMESPACE_CHECK, &rules::NAMESPACE_UNUSABLE, format!("{name} is being deleted"));
    }
    let level = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(LEVEL));
    let text = match level {
        Some(level) => format!(
            "{name} enforces the Pod Security level {level}: the webhook runs under every level, restricted included"
        ),
        None => {
            format!("{name} enforces no Pod Security level: the webhook runs under every level, restricted included")
        }
    };
    Check::pass(NAMESPACE_CHECK, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_distributions_are_read() {
        for (text, complaint) in [
            ("v1.36.2", None),
            ("v1.30.0-gke.1", None),
            ("v1.31.4+rke2r1", None),
            ("v2.0.0", None),
            ("v1.29.3-eks-1234", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.25.9", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.24.17", Some((Severity::Error, "kubernetes-version"))),
            ("", Some((Severity::Warning, "not-checked"))),
            ("latest", Some((Severity::Warning, "not-checked"))),
        ] {
            let found = version(text).result.err().map(|found| (found.severity, found.rule.id));
            assert_eq!(found, complaint, "{text}");
        }
    }

    #[test]
    fn the_oldest_version_is_that_of_the_chart() {
        let chart = include_str!("../../../../../charts/gmsa-webhook/Chart.yaml");
        assert!(chart.contains(&format!("\nkubeVersion: \">=1.{OLDEST}.0-0\"\n")), "{chart}");
    }
}

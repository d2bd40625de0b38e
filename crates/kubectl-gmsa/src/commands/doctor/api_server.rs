//! The API server: whether it answers, and its version.

use crate::shared::{rules, unread::Read, webhook::installer, world::World};
use gmsa_cluster::kubernetes_version::numbers;
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};
use k8s_openapi::apimachinery::pkg::version::Info;

pub(super) const API_SERVER: &str = "API server";

/// The oldest minor version of Kubernetes 1 that the chart installs on: its `kubeVersion`.
const OLDEST: u32 = 25;

/// The first minor version in which the chart uses match conditions, because they are on by default.
pub(super) const MATCH_CONDITIONS: u32 = 28;

/// The version; before an installation also whether the chart installs on it.
pub(super) async fn check(world: &World, is_installed: bool) -> Read<Vec<Check>> {
    let version = world.get::<Info>("/version").await?.git_version;
    let upgrade = "Upgrade the cluster to 1.28 or later";
    let fix = if !is_installed {
        format!("{upgrade}, or read \"Older clusters\" in docs/install.md first.")
    } else if let Some(installer) = installer(world).await {
        format!("{upgrade}, then run {}.", installer.restore())
    } else {
        format!("{upgrade}.")
    };
    Ok(vec![judged(&version, is_installed, fix)])
}

fn judged(version: &str, is_installed: bool, fix: String) -> Check {
    let known = numbers(version);
    if known.is_none() && !is_installed {
        let text = format!("could not be checked: {version:?} is not a version of Kubernetes");
        return Check::breach(API_SERVER, &rules::NOT_CHECKED, text);
    }
    if known.is_none_or(|known| known >= (1, MATCH_CONDITIONS)) {
        let version = if version.is_empty() { "of unknown version" } else { version };
        return Check::pass(API_SERVER, format!("answers, {version}"));
    }
    if known < Some((1, OLDEST)) && !is_installed {
        let text = format!("{version} is older than 1.{OLDEST}, the oldest that the chart installs on");
        return Check::breach(API_SERVER, &rules::KUBERNETES_VERSION, text);
    }
    let text = format!(
        "{version} has no match conditions: pods of all namespaces but kube-system and the webhook's own wait for the webhook"
    );
    let severity = if is_installed { Severity::Note } else { Severity::Warning };
    let older = Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_severity(severity);
    Check::found(API_SERVER, older.with_fix(fix))
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
            ("v1.28.0-eks-1234", None),
            ("v1.27.16-eks-1234", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.25.9", Some((Severity::Warning, "kubernetes-version"))),
            ("v1.24.17", Some((Severity::Error, "kubernetes-version"))),
            ("", Some((Severity::Warning, "not-checked"))),
            ("latest", Some((Severity::Warning, "not-checked"))),
        ] {
            let found = judged(text, false, String::new()).result.err().map(|found| (found.severity, found.rule.id));
            assert_eq!(found, complaint, "{text}");
        }
    }

    #[test]
    fn the_oldest_version_is_that_of_the_chart() {
        let chart = include_str!("../../../../../charts/gmsa-webhook/Chart.yaml");
        assert!(chart.contains(&format!("\nkubeVersion: \">=1.{OLDEST}.0-0\"\n")), "{chart}");
        let remedy = rules::KUBERNETES_VERSION.remedy;
        assert!(remedy.contains(&format!("the chart needs Kubernetes 1.{OLDEST} or later")), "{remedy}");
    }
}

//! The API server: whether it answers, and its version.

use super::parts::{Judged, Parts};
use crate::shared::rules;
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

pub(super) const API_SERVER: &str = "API server";

/// The oldest minor version of Kubernetes 1 that the chart installs on: its `kubeVersion`.
const OLDEST: u32 = 25;

/// The first whose match conditions are stable.
const MATCH_CONDITIONS: u32 = 30;

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let version = parts.version.as_ref()?.git_version.as_str();
    let version = if version.is_empty() { "of unknown version" } else { version };
    Ok(vec![Check::pass(API_SERVER, format!("answers, {version}"))])
}

/// Whether the chart installs on this version, such as `v1.29.3-eks-1234`.
pub(super) fn installable(text: &str) -> Check {
    let mut numbers = text.trim_start_matches('v').split('.').map(|number| {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number.get(..digits).and_then(|digits| digits.parse::<u32>().ok())
    });
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let (Some(major), Some(minor)) = (major, minor) else {
        let text = format!("could not be checked: {text:?} is not a version of Kubernetes");
        return Check::breach(API_SERVER, &rules::NOT_CHECKED, text);
    };
    if (major, minor) >= (1, MATCH_CONDITIONS) {
        return Check::pass(API_SERVER, format!("answers, {text}"));
    }
    if (major, minor) >= (1, OLDEST) {
        let text = format!("{text} has no match conditions: the webhook is asked about every pod");
        let fix = format!(
            "Upgrade the cluster to 1.{MATCH_CONDITIONS} or later, or read \"Older clusters\" in docs/install.md first."
        );
        let older = Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_severity(Severity::Warning).with_fix(fix);
        return Check::found(API_SERVER, older);
    }
    Check::breach(
        API_SERVER,
        &rules::KUBERNETES_VERSION,
        format!("{text} is older than 1.{OLDEST}, the oldest that the chart installs on"),
    )
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
            let found = installable(text).result.err().map(|found| (found.severity, found.rule.id));
            assert_eq!(found, complaint, "{text}");
        }
    }

    #[test]
    fn the_oldest_version_is_that_of_the_chart() {
        let chart = include_str!("../../../../../charts/gmsa-webhook/Chart.yaml");
        assert!(chart.contains(&format!("\nkubeVersion: \">=1.{OLDEST}.0-0\"\n")), "{chart}");
    }
}

//! The kinds of workloads of Kubernetes: their names, where the API has them, where their pod template is, and how they make pods.
//!
//! Code elsewhere asks a kind for its facts and compares it with no other kind.

use serde_json::value::RawValue;

use crate::json;

word_enum! {
    /// A kind of Kubernetes that carries a pod template.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        Deployment = "Deployment",
        StatefulSet = "StatefulSet",
        DaemonSet = "DaemonSet",
        ReplicaSet = "ReplicaSet",
        ReplicationController = "ReplicationController",
        Job = "Job",
        CronJob = "CronJob",
    }
}

/// The field that says how many pods an object of a kind wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodCount {
    /// `spec.replicas`.
    Replicas,
    /// `status.desiredNumberScheduled`: one pod on each node that fits.
    Nodes,
    /// `spec.parallelism`, until `spec.completions` pods have succeeded.
    Completions,
    /// Its newest run, which is an object of the kind below.
    Runs,
}

/// How a controller names the pods of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNames {
    /// The name of the object, then random characters.
    Prefixed,
    /// The name of the object, a hash of its template, then random characters.
    Hashed,
    /// The name of the object, then the pod's number. The controller sets the host name too.
    Numbered,
}

/// The facts in which kinds differ. All have version `v1`, and a plural that ends in `s`.
pub struct KindFacts {
    /// The group of its API; empty for the core group.
    pub group: &'static str,
    /// Its short name in `kubectl api-resources`; empty if there is none.
    pub short: &'static str,
    /// The place of its pod template, as a JSON Pointer (RFC 6901).
    pub template: &'static str,
    /// The kind that makes its pods, where it does not do so itself.
    pub below: Option<Kind>,
    /// Whether pods follow a change of its template: it replaces them, or its next Job has new ones. Otherwise the template is immutable, or
    /// existing pods stay as they are.
    pub follows_template: bool,
    pub pod_count: PodCount,
    pub pod_names: PodNames,
}

impl Kind {
    pub fn facts(self) -> KindFacts {
        let usual = KindFacts {
            group: "apps",
            short: "",
            template: "/spec/template",
            below: None,
            follows_template: true,
            pod_count: PodCount::Replicas,
            pod_names: PodNames::Prefixed,
        };
        match self {
            Self::Deployment => {
                KindFacts { short: "deploy", below: Some(Self::ReplicaSet), pod_names: PodNames::Hashed, ..usual }
            }
            Self::StatefulSet => KindFacts { short: "sts", pod_names: PodNames::Numbered, ..usual },
            Self::DaemonSet => KindFacts { short: "ds", pod_count: PodCount::Nodes, ..usual },
            Self::ReplicaSet => KindFacts { short: "rs", follows_template: false, ..usual },
            Self::ReplicationController => KindFacts { group: "", short: "rc", follows_template: false, ..usual },
            Self::Job => {
                KindFacts { group: "batch", follows_template: false, pod_count: PodCount::Completions, ..usual }
            }
            Self::CronJob => KindFacts {
                group: "batch",
                short: "cj",
                template: "/spec/jobTemplate/spec/template",
                below: Some(Self::Job),
                pod_count: PodCount::Runs,
                ..usual
            },
        }
    }

    /// The kind of this name in this group, which is empty for the core group.
    pub fn of(name: &str, group: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name && kind.facts().group == group)
    }

    /// The kind as a review names it: `CronJob.batch`.
    pub(crate) fn of_review(kind: &str) -> Option<Self> {
        let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
        Self::of(name, group)
    }

    /// Such as `apps/v1`.
    pub fn api_version(self) -> String {
        match self.facts().group {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        }
    }

    /// The name of the resource: `deployments`.
    pub fn plural(self) -> String {
        format!("{}s", self.as_str().to_ascii_lowercase())
    }

    /// URL path of the objects of this kind, in one namespace or in all.
    pub fn collection(self, namespace: Option<&str>) -> String {
        let root = if self.facts().group.is_empty() { "api" } else { "apis" };
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        format!("/{root}/{}/{namespace}{}", self.api_version(), self.plural())
    }

    /// The words of `kubectl` for it, without group and version.
    pub fn words(self) -> impl Iterator<Item = String> {
        let short = Some(self.facts().short).filter(|short| !short.is_empty());
        short.map(str::to_owned).into_iter().chain([self.as_str().to_ascii_lowercase(), self.plural()])
    }

    /// The kind of a word of `kubectl`: its name, its plural or its short name, with its group and version where they are given.
    pub fn of_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let (word, group) = word.split_once('.').map_or((&*word, None), |(word, group)| (word, Some(group)));
        Self::ALL.into_iter().find(|kind| kind.words().any(|known| known == word)).filter(|kind| {
            match (group, kind.facts().group) {
                (None, _) => true,
                (Some(group), "") => ["v1", "v1."].contains(&group),
                (Some(group), own) => group.strip_prefix("v1.").unwrap_or(group) == own,
            }
        })
    }

    /// Whether its pods end, and have done their work then.
    pub fn runs_to_completion(self) -> bool {
        matches!(self.facts().pod_count, PodCount::Completions | PodCount::Runs)
    }

    /// Whether it starts an object of the kind below for each run. Otherwise, an object of the kind below has the pods of one version of its
    /// template.
    pub fn starts_runs(self) -> bool {
        self.facts().pod_count == PodCount::Runs
    }

    /// Whether it is replaced through the kind below: the newest object there has the current template.
    pub fn has_revisions(self) -> bool {
        self.facts().below.is_some() && !self.starts_runs()
    }

    /// Whether it replaces its running pods, as `kubectl rollout restart` asks.
    pub fn rolls_out(self) -> bool {
        self.facts().follows_template && !self.runs_to_completion()
    }

    /// Whether another kind makes objects of this kind, a Deployment its `ReplicaSets`.
    pub fn is_below(self) -> bool {
        Self::ALL.into_iter().any(|kind| kind.facts().below == Some(self))
    }

    /// The pod template of an object of this kind.
    ///
    /// # Errors
    /// Where the string is not JSON, or what is above the template is not an object.
    pub fn template_in(self, json: &str) -> Result<Option<&RawValue>, serde_json::Error> {
        json::at(json, self.facts().template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_words_of_kubectl() {
        for (word, kind) in [
            ("deploy", Some(Kind::Deployment)),
            ("Deployment", Some(Kind::Deployment)),
            ("statefulsets", Some(Kind::StatefulSet)),
            ("sts", Some(Kind::StatefulSet)),
            ("ds", Some(Kind::DaemonSet)),
            ("rs", Some(Kind::ReplicaSet)),
            ("job", Some(Kind::Job)),
            ("cj", Some(Kind::CronJob)),
            ("cronjob", Some(Kind::CronJob)),
            ("deployment.apps", Some(Kind::Deployment)),
            ("Deployments.v1.apps", Some(Kind::Deployment)),
            ("deploy.apps", Some(Kind::Deployment)),
            ("job.batch", Some(Kind::Job)),
            ("deployment.batch", None),
            ("deployment.v2.apps", None),
            ("deployment.example.com", None),
            ("deployment.", None),
            ("rc", Some(Kind::ReplicationController)),
            ("replicationcontrollers.v1.", Some(Kind::ReplicationController)),
            ("replicationcontroller.apps", None),
            ("pod", None),
            ("", None),
        ] {
            assert_eq!(Kind::of_word(word), kind, "{word}");
        }
        assert_eq!(Kind::CronJob.collection(Some("shop")), "/apis/batch/v1/namespaces/shop/cronjobs");
        assert_eq!(Kind::DaemonSet.collection(None), "/apis/apps/v1/daemonsets");
        assert_eq!(Kind::ReplicationController.collection(None), "/api/v1/replicationcontrollers");
    }
}

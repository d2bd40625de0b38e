//! The kinds of workloads whose pods can be looked for, and the words that `kubectl` has for them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
    CronJob,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::ReplicaSet, Self::Job, Self::CronJob];

    /// The kind of a word: its name, its plural or its short name, with its group and version where they are given.
    pub fn of_word(word: &str) -> Option<Self> {
        /// Those of `kubectl api-resources`; a Job has none.
        const SHORT: [(&str, Kind); 5] = [
            ("deploy", Kind::Deployment),
            ("sts", Kind::StatefulSet),
            ("ds", Kind::DaemonSet),
            ("rs", Kind::ReplicaSet),
            ("cj", Kind::CronJob),
        ];
        let word = word.to_ascii_lowercase();
        let (word, group) = word.split_once('.').map_or((&*word, None), |(word, group)| (word, Some(group)));
        let short = SHORT.iter().find(|(short, _)| *short == word).map(|(_, kind)| *kind);
        let is_named = |kind: &Self| word == kind.plural() || word == kind.as_str().to_ascii_lowercase();
        let named = short.or_else(|| Self::ALL.into_iter().find(is_named));
        named.filter(|kind| group.is_none_or(|group| group.strip_prefix("v1.").unwrap_or(group) == kind.group()))
    }

    fn group(self) -> &'static str {
        if self.runs_to_completion() { "batch" } else { "apps" }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    /// Whether its pods end, and have done their work then.
    pub fn runs_to_completion(self) -> bool {
        matches!(self, Self::Job | Self::CronJob)
    }

    /// The kind that makes its pods, where it does not do so itself.
    pub fn below(self) -> Option<Self> {
        match self {
            Self::Deployment => Some(Self::ReplicaSet),
            Self::CronJob => Some(Self::Job),
            _ => None,
        }
    }

    /// The name of the resource: `deployments`.
    pub fn plural(self) -> String {
        format!("{}s", self.as_str().to_ascii_lowercase())
    }

    /// The path of those of a namespace, or of all.
    pub fn collection(self, namespace: Option<&str>) -> String {
        let group = self.group();
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        format!("/apis/{group}/v1/{namespace}{}", self.plural())
    }
}

/// Whether a word is for pods.
pub fn is_pod(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let (word, version) = word.split_once('.').unwrap_or((&*word, ""));
    ["pod", "pods", "po"].contains(&word) && ["", "v1", "v1."].contains(&version)
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
            ("pod", None),
            ("", None),
        ] {
            assert_eq!(Kind::of_word(word), kind, "{word}");
        }
        for (word, is_of_pods) in [
            ("po", true),
            ("Pods", true),
            ("pods.v1.", true),
            ("pod.apps", false),
            ("pods.v1.apps", false),
            ("podlog", false),
        ] {
            assert_eq!(is_pod(word), is_of_pods, "{word}");
        }
        assert_eq!(Kind::CronJob.collection(Some("shop")), "/apis/batch/v1/namespaces/shop/cronjobs");
        assert_eq!(Kind::DaemonSet.collection(None), "/apis/apps/v1/daemonsets");
    }
}

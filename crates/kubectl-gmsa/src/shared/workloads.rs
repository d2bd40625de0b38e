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

    /// The kind of a word: its name, its plural or its short name.
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
        let short = SHORT.iter().find(|(short, _)| *short == word).map(|(_, kind)| *kind);
        let is_named = |kind: &Self| word == kind.plural() || word == kind.as_str().to_ascii_lowercase();
        short.or_else(|| Self::ALL.into_iter().find(is_named))
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
        let group = if self.runs_to_completion() { "batch" } else { "apps" };
        let namespace = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        format!("/apis/{group}/v1/{namespace}{}", self.plural())
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
            ("pod", None),
            ("", None),
        ] {
            assert_eq!(Kind::of_word(word), kind, "{word}");
        }
        assert_eq!(Kind::CronJob.collection(Some("shop")), "/apis/batch/v1/namespaces/shop/cronjobs");
        assert_eq!(Kind::DaemonSet.collection(None), "/apis/apps/v1/daemonsets");
    }
}

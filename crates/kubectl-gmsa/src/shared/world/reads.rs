//! The reads of lints, and the fields that a bundle keeps of each.
//!
//! Invariants: a lint reads nothing that it does not declare here; of what is read, only fields named here are kept, and only objects
//! about GMSA.

use gmsa_cluster::authorizer::rbac::Action;
use gmsa_core::credspec::Verb;
use serde_json::Value;

use super::{CREATE, DRY_RUN, GET, LIST};
use crate::shared::{kinds::Kind, unread::Right};

/// Resources that a lint reads: the rights that it needs. Without them it is skipped or less detailed.
pub struct LintReads {
    /// Such as `in the namespace of the webhook`; empty for the cluster.
    place: &'static str,
    verb: &'static str,
    resources: &'static [&'static str],
}

const fn all(verb: &'static str, resources: &'static [&'static str]) -> LintReads {
    LintReads { place: "", verb, resources }
}

/// In the namespace of the webhook, and for tickets in that of the broker.
const fn own(verb: &'static str, resources: &'static [&'static str]) -> LintReads {
    LintReads { place: "in the namespaces of the webhook and of the broker: ", verb, resources }
}

pub const VERSION: &LintReads = &all(GET, &["/version"]);
pub const CRD: &LintReads = &all(GET, &["customresourcedefinitions"]);
pub const WEBHOOKS: &LintReads = &all(LIST, &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]);
pub const DEPLOYMENTS: &LintReads = &all(LIST, &["deployments"]);
pub const NAMESPACES: &LintReads = &all(LIST, &["namespaces"]);
pub const SPECS: &LintReads = &all(LIST, &["gmsacredentialspecs"]);
pub const PODS: &LintReads = &all(LIST, &["pods"]);
pub const WORKLOADS: &LintReads = &all(
    LIST,
    &["deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers", "jobs", "cronjobs"],
);
pub const EVENTS: &LintReads = &all(LIST, &["events"]);
pub const NODES: &LintReads = &all(LIST, &["nodes"]);
pub const NODE: &LintReads = &all(GET, &["nodes"]);
pub const REVIEWS: &LintReads = &all(CREATE, &["subjectaccessreviews"]);
pub const POD_PROBE: &LintReads =
    &LintReads { place: "in the namespace of the dry run: ", verb: CREATE, resources: &["pods"] };
pub const ENDPOINTS: &LintReads = &own(LIST, &["endpointslices"]);
pub const REPLICA: &LintReads = &own(GET, &["pods", "pods/proxy"]);
pub const SECRETS: &LintReads = &own(GET, &["secrets"]);
pub const AUTHORITIES: &LintReads = &own(GET, &["configmaps"]);
pub const OWN: &LintReads = &own(GET, &["namespaces", "deployments"]);
pub const OWN_PODS: &LintReads = &own(LIST, &["replicasets", "pods", "events"]);

impl LintReads {
    /// Whether a request is declared by this.
    pub(super) fn allow(&self, verb: &str, request: &str) -> bool {
        let (verb, request) = if verb == DRY_RUN { (CREATE, "/api/v1/pods") } else { (verb, request) };
        let path = request.split(' ').next().unwrap_or_default();
        self.verb == verb && self.resources.contains(&&*Right::of_request(verb, path).resource())
    }
}

/// The reads of lints, as the rights that they need.
pub fn rights(reads: &[&LintReads]) -> String {
    let by_place = reads.chunk_by(|one, next| one.place == next.place).map(|same| {
        let rights = same.iter().map(|LintReads { verb, resources, .. }| match resources {
            [others @ .., last] if !others.is_empty() => format!("{verb} {} and {last}", others.join(", ")),
            _ => format!("{verb} {}", resources.concat()),
        });
        let place = same.first().map_or("", |first| first.place);
        format!("{place}{}", rights.collect::<Vec<_>>().join(", "))
    });
    by_place.collect::<Vec<_>>().join("; ")
}

/// The ways to act as a running pod, or to get its tickets: a word of `kubectl` for it, the verb and the resource.
pub const ACTS: [(&str, &str, &str); 9] = [
    ("exec", "create", "pods/exec"),
    ("exec", "get", "pods/exec"),
    ("attach", "create", "pods/attach"),
    ("attach", "get", "pods/attach"),
    ("patch", "patch", "pods"),
    ("patch", "update", "pods"),
    ("debug", "patch", "pods/ephemeralcontainers"),
    ("debug", "update", "pods/ephemeralcontainers"),
    ("token", "create", "serviceaccounts/token"),
];

/// Each as RBAC knows it, with its word.
pub fn acts() -> impl Iterator<Item = (&'static str, Action<'static>)> {
    ACTS.into_iter().map(|(word, verb, resource)| (word, Action { verb, group: "", resource, name: None }))
}

/// The placeholder for contents of a credential spec.
pub const OMITTED_CONTENTS: &str = "leftOut";

/// The charts' name for the webhook's volume with the CAs that sidecars trust.
pub const CA_VOLUME: &str = "tickets-ca";

/// The volumes of ConfigMaps that checks read: also the broker's, with its domains.
pub const CONFIG_VOLUMES: [&str; 2] = [CA_VOLUME, "config"];

const METADATA: &str = "metadata/name metadata/namespace metadata/uid metadata/labels metadata/ownerReferences metadata/creationTimestamp \
    metadata/deletionTimestamp metadata/annotations/deployment.kubernetes.io~1revision \
    metadata/annotations/kubectl.kubernetes.io~1restartedAt metadata/generateName";

/// Fields of a pod and of a pod template.
const POD: &str = "\
    metadata/annotations/gmsa-webhook~1keytab metadata/annotations/gmsa-webhook~1tickets \
    metadata/annotations/kubectl.kubernetes.io~1restartedAt metadata/labels \
    spec/affinity/nodeAffinity spec/hostNetwork spec/hostname spec/nodeName spec/nodeSelector spec/os spec/restartPolicy \
    spec/runtimeClassName spec/serviceAccountName spec/tolerations \
    spec/securityContext/fsGroup spec/securityContext/windowsOptions \
    spec/volumes/configMap/name spec/volumes/emptyDir spec/volumes/name spec/volumes/projected/sources/serviceAccountToken \
    spec/volumes/secret \
    spec/containers/args spec/containers/env spec/containers/image spec/containers/name spec/containers/ports \
    spec/containers/resources spec/containers/securityContext/windowsOptions spec/containers/volumeMounts \
    spec/initContainers/args spec/initContainers/env spec/initContainers/image spec/initContainers/name \
    spec/initContainers/restartPolicy spec/initContainers/securityContext/windowsOptions \
    spec/initContainers/startupProbe/failureThreshold spec/initContainers/volumeMounts \
    spec/ephemeralContainers/name spec/ephemeralContainers/securityContext/windowsOptions \
    status/conditions status/containerStatuses status/initContainerStatuses status/message status/phase status/reason";

const WORKLOAD: &str = "metadata/annotations/meta.helm.sh~1release-name metadata/annotations/meta.helm.sh~1release-namespace \
    metadata/annotations/deprecated.daemonset.template.generation spec/replicas spec/parallelism spec/completions spec/suspend spec/selector spec/updateStrategy spec/paused \
    status/desiredNumberScheduled status/observedGeneration status/updateRevision status/succeeded";

const CONFIGURATION: &str = "metadata/annotations/meta.helm.sh~1release-name metadata/annotations/meta.helm.sh~1release-namespace \
    metadata/managedFields/manager metadata/managedFields/fieldsV1 webhooks/name webhooks/failurePolicy \
    webhooks/matchPolicy webhooks/sideEffects webhooks/timeoutSeconds webhooks/admissionReviewVersions webhooks/rules \
    webhooks/namespaceSelector webhooks/objectSelector webhooks/matchConditions webhooks/clientConfig/service \
    webhooks/clientConfig/caBundle";

/// The fields of the other kinds, by resource.
const OTHERS: [(&str, &str); 15] = [
    ("version", "gitVersion"),
    ("namespaces", ""),
    ("serviceaccounts", ""),
    ("secrets", ""),
    (
        "nodes",
        "spec/taints spec/unschedulable status/conditions status/nodeInfo/operatingSystem status/nodeInfo/kubeletVersion",
    ),
    (
        "customresourcedefinitions",
        "metadata/annotations/gmsa-webhook~1crd-revision spec/versions/name spec/versions/served spec/versions/storage status/conditions status/storedVersions",
    ),
    ("configmaps", "data/ca.crt data/config.yaml"),
    ("endpointslices", "endpoints/conditions endpoints/targetRef/name"),
    ("clusterroles", "rules aggregationRule"),
    ("roles", "rules"),
    ("clusterrolebindings", "roleRef subjects"),
    ("rolebindings", "roleRef subjects"),
    ("runtimeclasses", "handler scheduling"),
    (
        "events",
        "involvedObject/kind involvedObject/name involvedObject/namespace involvedObject/uid involvedObject/fieldPath reason message type count lastTimestamp eventTime series",
    ),
    ("subjectaccessreviews", "status/allowed"),
];

/// Arguments that checks read: two words, each a whole argument, and options of the webhook and of the agent. They hold names, and
/// certificates, which are public. Other programs use the same options for secrets, so only containers with one of the words keep them.
pub const WORDS: [&str; 2] = ["serve", "agent"];
const OPTIONS: [&str; 15] = [
    "--self-managed-secret",
    "--webhook-configuration",
    "--warn-namespaces",
    "--random-hostname",
    "--tickets-broker",
    "--tickets-image",
    "--config",
    "--credential-spec",
    "--broker",
    "--broker-ca",
    "--folder",
    "--token-file",
    "--keytab",
    "--keytab-token-file",
    "--mode",
];

/// Environment variables that checks read and that contain only names.
pub const VARIABLES: [&str; 4] = ["RANDOM_HOSTNAME", "KRB5CCNAME", "KRB5_CONFIG", "KRB5_KTNAME"];

/// Whether an argument is one of these, in the charts' form: `--NAME` or `--NAME=VALUE`.
pub fn holds_names(argument: &str) -> bool {
    let is_option =
        |known| argument.strip_prefix(known).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('='));
    WORDS.contains(&argument) || OPTIONS.into_iter().any(is_option)
}

/// Whether only objects about GMSA are kept of this resource.
pub fn is_partial(resource: &str) -> bool {
    resource == "pods" || resource.ends_with("webhookconfigurations") || workload(resource).is_some()
}

fn workload(resource: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.plural() == resource)
}

/// Whether a list keeps an object: pods, workloads and webhooks are kept only if they name GMSA, pods also if they ask for tickets or a keytab.
pub fn is_kept(resource: &str, object: &Value) -> bool {
    let searched = if resource.ends_with("webhookconfigurations") { Some(object) } else { object.get("spec") };
    let annotations = object.pointer("/metadata/annotations");
    let asks =
        || annotations.is_some_and(|all| Verb::ALL.iter().any(|verb| all.get(verb.product().annotation).is_some()));
    !is_partial(resource)
        || searched.is_some_and(|part| part.to_string().to_ascii_lowercase().contains("gmsa"))
        || asks()
}

/// The paths of the fields of a resource that are kept.
pub fn fields(resource: &str) -> Vec<String> {
    let listed = |paths: &str| paths.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (mut paths, workload) = (listed(METADATA), workload(resource));
    if resource == "pods" || workload.is_some() {
        paths.extend([WORKLOAD, POD].into_iter().flat_map(listed));
        let template = workload.and_then(|kind| kind.facts().template.strip_prefix('/'));
        paths.extend(
            template.into_iter().flat_map(|at| listed(POD).into_iter().map(move |path| format!("{at}/{path}"))),
        );
    } else if resource.ends_with("webhookconfigurations") {
        paths.extend(listed(CONFIGURATION));
    }
    paths.extend(OTHERS.iter().filter(|(known, _)| *known == resource).flat_map(|(_, paths)| listed(paths)));
    paths
}

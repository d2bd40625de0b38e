//! Pods with and without GMSA in each of the four kinds of slots.

use serde_json::{Value, json};

use crate::cluster::{Cluster, complaint};

/// The namespace that the pods are in.
pub const NAMESPACE: &str = "apps";

/// A credential spec that is in order, `webapp1`.
pub const SPEC: &str = include_str!("objects/credential-spec.yaml");

/// The kinds of slots that a new pod can have.
pub const KINDS: [&str; 3] = ["pod", "container", "init container"];

/// What a slot's windowsOptions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// No windowsOptions at all.
    Absent,
    /// windowsOptions, but nothing of GMSA.
    Other,
    /// A name without contents.
    Name,
    /// Contents without a name.
    Contents,
    /// A name with contents.
    Both,
}

impl Options {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Absent, Self::Other, Self::Name, Self::Contents, Self::Both];

    /// The security context of a slot that names `spec`.
    pub fn context(self, spec: &str) -> Value {
        let options = match self {
            Self::Absent => return json!({}),
            Self::Other => json!({"runAsUserName": "ContainerUser"}),
            Self::Name => json!({"gmsaCredentialSpecName": spec}),
            Self::Contents => json!({"gmsaCredentialSpec": "{}"}),
            Self::Both => json!({"gmsaCredentialSpecName": spec, "gmsaCredentialSpec": "{}"}),
        };
        json!({"windowsOptions": options})
    }
}

/// A pod whose slot of this kind has these options.
pub fn pod(name: &str, kind: &str, options: Options, spec: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "main", "image": "i"}],
            "initContainers": [{"name": "init", "image": "i"}],
        }
    });
    let slot = match kind {
        "pod" => &mut pod["spec"],
        "container" => &mut pod["spec"]["containers"][0],
        "init container" => &mut pod["spec"]["initContainers"][0],
        _ => panic!("no kind of slot in a new pod: {kind}"),
    };
    slot["securityContext"] = options.context(spec);
    pod
}

/// A pod with a container for each of these names, with contents, and `plain` containers without GMSA, each with a long environment.
pub fn crowd(name: &str, specs: &[String], plain: usize) -> Value {
    let mut pod = pod(name, "pod", Options::Absent, "");
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    for (index, spec) in specs.iter().enumerate() {
        let context = Options::Both.context(spec);
        containers.push(json!({"name": format!("gmsa-{index}"), "image": "i", "securityContext": context}));
    }
    let env: Vec<_> = (0..30).map(|index| json!({"name": format!("E{index}"), "value": "v".repeat(50)})).collect();
    for index in 0..plain {
        containers.push(json!({"name": format!("plain-{index}"), "image": "i", "env": env}));
    }
    pod
}

/// A pod with a projected token for each of these audiences, two in a volume, beside other volumes and sources.
pub fn with_tokens(name: &str, audiences: &[String]) -> Value {
    let mut pod = pod(name, "pod", Options::Absent, "");
    let mut volumes = vec![json!({"name": "folder", "emptyDir": {}})];
    for (index, audiences) in audiences.chunks(2).enumerate() {
        let mut sources = vec![json!({"configMap": {"name": "ca"}}), json!({"serviceAccountToken": {"path": "api"}})];
        for (index, audience) in audiences.iter().enumerate() {
            sources.push(json!({"serviceAccountToken": {"audience": audience, "path": format!("token-{index}")}}));
        }
        volumes.push(json!({"name": format!("tokens-{index}"), "projected": {"sources": sources}}));
    }
    pod["spec"]["volumes"] = volumes.into();
    pod
}

/// Lets a service account use these credential specs, in [`NAMESPACE`] only.
pub fn grant(cluster: &Cluster, service_account: &str, specs: &[String]) {
    grant_verb(cluster, service_account, "use", specs);
}

/// The same for this verb.
pub fn grant_verb(cluster: &Cluster, service_account: &str, verb: &str, specs: &[String]) {
    let grant = include_str!("objects/grant.yaml").replace("ACCOUNT", service_account).replace("VERB", verb);
    cluster.apply(&grant.replace("SPECS", &json!(specs).to_string()));
}

/// Has a namespace `enforce` the strictest Pod Security level, or `warn` of it.
pub fn restrict(cluster: &Cluster, namespace: &str, mode: &str) {
    cluster.prints(&format!("label namespace {namespace} pod-security.kubernetes.io/{mode}=restricted"));
}

/// What the API server says to the creation of an object, as a dry run: `None` where it would be created.
pub fn creation(cluster: &Cluster, object: &Value) -> Option<String> {
    complaint(cluster.kubectl_with("create --dry-run=server -f -", &object.to_string()))
}

/// The same for a pod in another namespace.
pub fn creation_in(cluster: &Cluster, namespace: &str, pod: &Value) -> Option<String> {
    let mut pod = pod.clone();
    pod["metadata"]["namespace"] = namespace.into();
    creation(cluster, &pod)
}

/// What the API server says to an ephemeral container with these options in this pod, as a dry run.
pub fn debugging(cluster: &Cluster, pod: &str, options: Options, spec: &str) -> Option<String> {
    let container = json!({"name": "debug", "image": "i", "securityContext": options.context(spec)});
    let patch = json!({"spec": {"ephemeralContainers": [container]}});
    let line = format!("pod {pod} -n {NAMESPACE} --subresource=ephemeralcontainers --dry-run=server");
    cluster.patch(&line, &patch)
}

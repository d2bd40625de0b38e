//! Workloads whose pod template uses GMSA: how many pods they want, and which they have.
//!
//! Invariants: an object that another known workload controls is no workload of its own; of a `CronJob` only its newest Job counts. A pod
//! belongs to what it names as its controller, by the `uid`, in the same namespace.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::shared::{
    not_checked::{Read, Unread},
    pods::ClusterPod,
    rules::Subject,
    snapshot::Snapshot,
    workloads::Kind,
};
use gmsa_core::admission::pod::Pod;

mod object;

use object::Metadata;
pub use object::{Idle, Object};

/// What creates pods: the workload itself, a ReplicaSet of a Deployment, or a Job of a `CronJob`.
pub struct Maker {
    pub uid: String,
    wanted: usize,
    /// The message of its condition `ReplicaFailure`.
    pub failure: Option<String>,
    pub pods: Vec<ClusterPod>,
}

impl Maker {
    fn of(kind: Kind, object: &Object) -> Self {
        let failure = object.condition("ReplicaFailure").map(|found| found.message.clone().unwrap_or_default());
        Self { uid: object.metadata.uid.clone(), wanted: object.wanted(kind).0, failure, pods: Vec::new() }
    }

    /// Whether it still has to create a pod, or cannot.
    pub fn lacks(&self) -> bool {
        self.wanted > 0
            && (self.failure.is_some() || self.pods.iter().filter(|pod| is_active(pod)).count() < self.wanted)
    }

    pub fn says(&self) -> Option<&str> {
        self.failure.as_deref().filter(|message| !message.is_empty())
    }
}

/// Whether a controller counts the pod.
pub fn is_active(pod: &ClusterPod) -> bool {
    !pod.has_ended() && pod.object.metadata.deletion_timestamp.is_none()
}

/// A workload, with its pods.
pub struct Workload {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    uid: String,
    /// A pod of its template, as its controller would create it.
    pub template: Value,
    pub wanted: usize,
    /// Why it wants no pod.
    pub idle: Idle,
    /// Whether its controller rolls out no change.
    pub is_paused: bool,
    /// Why its rollout does not go on.
    pub stuck: Option<String>,
    /// Why it has given up: the message of a Job that has failed.
    pub given_up: Option<String>,
    /// The newest is the last.
    pub makers: Vec<Maker>,
}

impl Workload {
    /// `Deployment shop/web`
    pub fn object(&self) -> String {
        format!("{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }

    pub fn subject(&self) -> Subject<'_> {
        let Self { kind, namespace, name, .. } = self;
        Subject::Workload { kind: *kind, namespace, name }
    }

    pub fn pods(&self) -> impl Iterator<Item = &ClusterPod> {
        self.makers.iter().flat_map(|maker| &maker.pods)
    }

    /// How many pods it has that a controller counts.
    pub fn has(&self) -> usize {
        self.pods().filter(|pod| is_active(pod)).count()
    }

    /// Reads one; `None` where there is none of this name.
    pub async fn find(snapshot: &Snapshot, namespace: &str, kind: Kind, name: &str) -> Read<Option<Self>> {
        let top: Option<Object> = snapshot.find(&format!("{}/{name}", kind.collection(Some(namespace)))).await?;
        let Some(top) = top else { return Ok(None) };
        let mut objects = vec![(kind, top)];
        if let Some(below) = kind.below() {
            let read: Vec<Object> = snapshot.list(&below.collection(Some(namespace))).await?;
            objects.extend(read.into_iter().map(|object| (below, object)));
        }
        let pods: Vec<Box<RawValue>> = snapshot.list(&pods_of(Some(namespace))).await?;
        let workloads = assemble(objects, &pods, |_, _| true);
        Ok(workloads.into_iter().find(|workload| workload.kind == kind && workload.name == name))
    }

    /// Whether its pod template uses GMSA.
    pub fn uses_gmsa(&self) -> bool {
        Pod::from_json(&self.template.to_string()).is_ok_and(|pod| pod.uses_gmsa())
    }

    /// The credential specs that its pod template names.
    pub fn credential_specs(&self) -> BTreeSet<String> {
        let pod = Pod::from_json(&self.template.to_string()).ok();
        let names = pod.iter().flat_map(Pod::slots).filter_map(|slot| slot.name.map(str::to_owned));
        names.collect()
    }

    pub fn lacks(&self) -> bool {
        self.wanted > 0 && (self.has() < self.wanted || self.makers.iter().any(Maker::lacks))
    }

    fn new(kind: Kind, object: &Object, template: Value) -> Self {
        let Metadata { namespace, name, uid, .. } = &object.metadata;
        let (wanted, idle) = object.wanted(kind);
        let failed = (kind == Kind::Job).then(|| object.condition("Failed")).flatten();
        Self {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            template,
            wanted,
            idle,
            is_paused: object.is_paused(),
            stuck: object.stuck(),
            given_up: failed.map(|failed| failed.message.clone().unwrap_or_default()),
            makers: Vec::new(),
        }
    }
}

/// The path of the pods of a namespace, or of all.
pub fn pods_of(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| "/api/v1/pods".to_owned(), |namespace| format!("/api/v1/namespaces/{namespace}/pods"))
}

/// The workloads of a cluster that use GMSA, and of which kinds they could not be read.
pub struct Workloads {
    pub known: Vec<Workload>,
    pub unread: Vec<(Kind, Unread)>,
}

impl Workloads {
    /// Reads those of a namespace, or of all. Without the pods, nothing is known of their number.
    pub async fn read(snapshot: &Snapshot, namespace: Option<&str>) -> Self {
        let kinds = Kind::ALL.map(async |kind| (kind, snapshot.list::<Object>(&kind.collection(namespace)).await));
        let pods = pods_of(namespace);
        let (kinds, pods) = tokio::join!(join_all(kinds), snapshot.list(&pods));
        let (mut objects, mut unread) = (Vec::new(), Vec::new());
        for (kind, read) in kinds {
            match read {
                Ok(read) => objects.extend(read.into_iter().map(|object| (kind, object))),
                Err(error) => unread.push((kind, error)),
            }
        }
        let known = assemble(objects, &pods.unwrap_or_default(), |kind, object| object.uses_gmsa(kind));
        Self { known, unread }
    }
}

/// The workloads among these objects that are meant, with their pods.
fn assemble(
    objects: Vec<(Kind, Object)>,
    pods: &[Box<RawValue>],
    is_meant: impl Fn(Kind, &Object) -> bool,
) -> Vec<Workload> {
    let uids: HashMap<String, String> =
        objects.iter().map(|(_, object)| (object.metadata.uid.clone(), object.metadata.namespace.clone())).collect();
    let is_below = |object: &Object| object.controller().is_some_and(|owner| uids.contains_key(owner));
    let (below, top): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(_, object)| is_below(object));
    let mut workloads: Vec<Workload> = top
        .iter()
        .filter(|(kind, object)| is_meant(*kind, object))
        .filter_map(|(kind, object)| {
            let mut workload = Workload::new(*kind, object, object.pod(*kind)?);
            if !matches!(kind, Kind::Deployment | Kind::CronJob) {
                workload.makers.push(Maker::of(*kind, object));
            }
            Some(workload)
        })
        .collect();
    let by_uid: HashMap<String, usize> =
        workloads.iter().enumerate().map(|(index, workload)| (workload.uid.clone(), index)).collect();
    add_makers(&mut workloads, &by_uid, below, &top);
    add_pods(&mut workloads, pods);
    workloads
        .sort_by(|one, other| (&one.namespace, one.kind, &one.name).cmp(&(&other.namespace, other.kind, &other.name)));
    workloads
}

/// Adds each ReplicaSet of a Deployment, and the newest Job of a `CronJob`.
fn add_makers(
    workloads: &mut [Workload],
    by_uid: &HashMap<String, usize>,
    mut below: Vec<(Kind, Object)>,
    top: &[(Kind, Object)],
) {
    below.sort_by(|(_, one), (_, other)| one.age().cmp(&other.age()));
    for (kind, object) in below {
        let owner = object.controller().and_then(|owner| by_uid.get(owner)).copied();
        let Some(workload) = owner.and_then(|index| workloads.get_mut(index)) else { continue };
        if workload.namespace != object.metadata.namespace {
            continue;
        }
        if workload.kind == Kind::CronJob {
            // The one before it is over, or is replaced.
            workload.makers.clear();
            (workload.wanted, workload.idle) = object.wanted(kind);
            let failed = object.condition("Failed");
            workload.given_up = failed.map(|failed| failed.message.clone().unwrap_or_default());
        }
        workload.makers.push(Maker::of(kind, &object));
    }
    // A Deployment that cannot create a ReplicaSet has the condition itself.
    for (kind, object) in top.iter().filter(|(kind, _)| *kind == Kind::Deployment) {
        let Some(workload) = by_uid.get(&object.metadata.uid).and_then(|index| workloads.get_mut(*index)) else {
            continue;
        };
        if workload.makers.is_empty() {
            workload.makers.push(Maker::of(*kind, object));
        }
    }
}

#[derive(Deserialize)]
struct Owned {
    metadata: OwnedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnedMetadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

/// Adds each pod to its maker. One that cannot be parsed is reported by another check.
fn add_pods(workloads: &mut [Workload], pods: &[Box<RawValue>]) {
    let mut makers: HashMap<String, (String, &mut Vec<ClusterPod>)> = HashMap::new();
    for workload in workloads {
        let namespace = &workload.namespace;
        makers
            .extend(workload.makers.iter_mut().map(|maker| (maker.uid.clone(), (namespace.clone(), &mut maker.pods))));
    }
    for json in pods {
        let Ok(Owned { metadata }) = serde_json::from_str(json.get()) else { continue };
        let owner = metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
        let Some((namespace, pods)) = owner.and_then(|owner| makers.get_mut(&owner.uid)) else { continue };
        if *namespace == metadata.namespace {
            pods.extend(ClusterPod::read(json));
        }
    }
}

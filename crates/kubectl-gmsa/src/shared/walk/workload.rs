//! Workloads, with the pods that they want and have: one of a kind and a name, or all whose pod template uses GMSA.
//!
//! Invariants: an object under another known workload is not listed itself; only the newest Job of a `CronJob` counts. A pod belongs to
//! the controller that it names, if `uid` and namespace match.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    rc::Rc,
};

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::value::RawValue;

use crate::shared::{
    admission::{NewPod, Part},
    kinds::{Kind, controller_of},
    names,
    pods::ClusterPod,
    rules::FixTarget,
    unread::{Read, Unread},
    world::{Owned, World},
};
use gmsa_core::admission::pod::Pod;

mod object;

pub use object::{ClusterWorkload, Idle};

/// The object that creates pods: the workload itself, a ReplicaSet of a Deployment, or a Job of a `CronJob`.
pub struct Maker {
    object: Rc<ClusterWorkload>,
    pub pods: Vec<ClusterPod>,
}

impl Maker {
    pub fn uid(&self) -> &str {
        self.object.uid()
    }

    /// The message of its condition `ReplicaFailure`.
    pub fn failure(&self) -> Option<&str> {
        self.object.says("ReplicaFailure", "True")
    }

    /// Whether pods are missing: not created yet, or refused.
    pub fn has_too_few_pods(&self) -> bool {
        let (wanted, _) = self.object.wanted();
        wanted > 0 && (self.failure().is_some() || self.pods.iter().filter(|pod| is_active(pod)).count() < wanted)
    }
}

/// Whether a controller counts the pod.
pub fn is_active(pod: &ClusterPod) -> bool {
    !pod.has_ended() && pod.object.metadata.deletion_timestamp.is_none()
}

/// A workload, with its pods.
pub struct WorkloadTree {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    /// A pod of its template, in the form that its controller creates.
    pub template: NewPod,
    pub object: Rc<ClusterWorkload>,
    /// The newest comes last: the others, ReplicaSets of a Deployment, are being replaced.
    pub makers: Vec<Maker>,
}

impl WorkloadTree {
    /// `Deployment shop/web`
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }

    pub fn target(&self) -> FixTarget<'_> {
        let Self { kind, namespace, name, .. } = self;
        FixTarget::Workload { kind: *kind, namespace, name }
    }

    pub fn pods(&self) -> impl Iterator<Item = &ClusterPod> {
        self.makers.iter().flat_map(|maker| &maker.pods)
    }

    /// Its pods whose labels both select, it and their maker: any user who may create pods can name any controller.
    pub fn into_verified_pods(self) -> impl Iterator<Item = ClusterPod> {
        let Self { object: top, makers, .. } = self;
        makers.into_iter().flat_map(move |Maker { object, pods }| {
            let top = Rc::clone(&top);
            let is_selected = move |pod: &ClusterPod| {
                let pod = &pod.object.metadata;
                top.selects(pod) && object.selects(pod)
            };
            pods.into_iter().filter(is_selected)
        })
    }

    /// The number of its active pods.
    pub fn has(&self) -> usize {
        self.pods().filter(|pod| is_active(pod)).count()
    }

    /// Reads a workload; `None` if it does not exist.
    pub async fn find(world: &World, namespace: &str, kind: Kind, name: &str) -> Read<Option<Self>> {
        let Some(top) = ClusterWorkload::find(world, kind, namespace, name).await? else { return Ok(None) };
        let mut objects = vec![top];
        if let Some(below) = kind.facts().below {
            objects.extend(ClusterWorkload::list(world, below, Some(namespace)).await?);
        }
        let pods = world.pods(Some(namespace)).await?;
        let workloads = assemble(objects, &pods, false);
        Ok(workloads.into_iter().find(|workload| workload.kind == kind && workload.name == name))
    }

    /// Reads a workload in the namespace of the command; the error says which other one may be meant.
    pub async fn expect(world: &World, kind: Kind, name: &str) -> anyhow::Result<Self> {
        let namespace = world.valid_namespace()?;
        let read = Self::find(world, namespace, kind, name).await;
        names::found(world, read, kind.as_str(), &kind.collection(Some(namespace)), name).await
    }

    /// The text for an unparsable template, whose credential specs are unknown.
    pub fn unparsed(&self) -> Option<String> {
        self.template.pod().is_none().then(|| format!("the pod template of {} cannot be parsed", self.title()))
    }

    /// The credential specs that its pod template names.
    pub fn credential_specs(&self) -> BTreeSet<String> {
        let names = |pod| Pod::slots(pod).filter_map(|slot| slot.name).chain(pod.asks_tickets_of());
        self.template.pod().into_iter().flat_map(names).map(str::to_owned).collect()
    }

    /// How many pods it wants, and the reason if that is 0.
    pub fn wanted(&self) -> (usize, Idle) {
        self.running().wanted()
    }

    /// Its controller's report: that a Job has failed, or that a rollout does not go on.
    pub fn complaint(&self) -> Option<&str> {
        let conditions = [("Failed", "True"), ("FailureTarget", "True"), ("Progressing", "False")];
        conditions.into_iter().find_map(|(condition, status)| self.running().says(condition, status))
    }

    /// Whether the pod is of an older template, and is replaced only after it is deleted: a StatefulSet waits for a pod that does not run.
    pub fn keeps_old(&self, pod: &ClusterPod) -> bool {
        if self.kind != Kind::StatefulSet && !self.object.replaces_on_delete() {
            return false;
        }
        if let Some(is_old) = self.object.is_older(&pod.object.metadata) {
            return is_old;
        }
        let old = || pod.object.spec.iter().flat_map(|spec| &spec.containers);
        let is_other = |new: Part<'_>| {
            let mut same = old().filter(|old| old.name == new.text("name") && new.has("image"));
            same.any(|old| old.image.as_deref().is_some_and(|image| image != new.text("image")))
        };
        self.template.root().list("spec/containers").any(is_other)
    }

    /// The object that says how many pods it wants: itself, or the newest Job of a `CronJob`.
    fn running(&self) -> &ClusterWorkload {
        let run = self.makers.last().filter(|_| self.kind.starts_runs());
        run.map_or(&*self.object, |run| &*run.object)
    }

    /// Whether pods are missing now.
    pub fn has_too_few_pods(&self) -> bool {
        let (wanted, _) = self.wanted();
        // Where there are revisions, the newest decides: a rollout may have fewer pods for a while.
        let is_short = !self.kind.has_revisions() && self.has() < wanted;
        wanted > 0 && (is_short || self.makers.last().is_some_and(Maker::has_too_few_pods))
    }
}

/// The workloads of a cluster that use GMSA, and the kinds that could not be read.
pub struct Workloads {
    pub known: Vec<WorkloadTree>,
    pub unread: Vec<(Kind, Unread)>,
}

impl Workloads {
    /// Reads the workloads of a namespace, or of all. Without the right to list pods, their number is not known.
    pub async fn read(world: &World, namespace: Option<&str>) -> Self {
        let kinds = Kind::ALL.map(async |kind| (kind, ClusterWorkload::list(world, kind, namespace).await));
        let (kinds, pods) = tokio::join!(join_all(kinds), world.pods(namespace));
        let (mut objects, mut unread) = (Vec::new(), Vec::new());
        for (kind, read) in kinds {
            match read {
                Ok(read) => objects.extend(read),
                Err(error) => unread.push((kind, error)),
            }
        }
        let known = assemble(objects, &pods.unwrap_or_default(), true);
        Self { known, unread }
    }
}

/// The workloads among these objects, all or those that use GMSA, with their pods. Another check reports unparsable pods.
fn assemble(objects: Vec<ClusterWorkload>, pods: &[Box<RawValue>], only_gmsa: bool) -> Vec<WorkloadTree> {
    let uids: BTreeSet<String> = objects.iter().map(|object| object.uid().to_owned()).collect();
    // The namespace, and the uid of the controller.
    let owner = |metadata: &ObjectMeta| Some((metadata.namespace.clone(), controller_of(metadata)?.uid.clone()));
    let is_below = |object: &Rc<ClusterWorkload>| owner(&object.metadata).is_some_and(|(_, uid)| uids.contains(&uid));
    let (mut below, top): (Vec<_>, Vec<_>) = objects.into_iter().map(Rc::new).partition(is_below);
    below.sort_by(|one, other| one.age().cmp(&other.age()));
    let below = grouped(below.into_iter().map(|object| (owner(&object.metadata), object)));
    let parsed = pods.iter().filter_map(|json| Some((serde_json::from_str::<Owned>(json.get()).ok()?, json)));
    let pods = grouped(parsed.map(|(Owned { metadata }, json)| (owner(&metadata), json)));
    let maker = |object: &Rc<ClusterWorkload>| {
        let own = pods.get(&Some((object.metadata.namespace.clone(), object.uid().to_owned()))).into_iter().flatten();
        Maker { object: Rc::clone(object), pods: own.filter_map(|json| ClusterPod::read(json).ok()).collect() }
    };
    let workload = |object: Rc<ClusterWorkload>| {
        let (kind, ObjectMeta { namespace, name, .. }) = (object.kind, object.metadata.clone());
        let own = below.get(&Some((namespace.clone(), object.uid().to_owned()))).map_or(&[][..], Vec::as_slice);
        let makers = match own {
            // Earlier Jobs have ended or are being replaced.
            [.., newest] if kind.starts_runs() => vec![maker(newest)],
            [_, ..] if kind.facts().below.is_some() => own.iter().map(maker).collect(),
            // A Deployment without a ReplicaSet has the failure condition itself.
            _ if kind.facts().below.is_none() || kind.has_revisions() => vec![maker(&object)],
            _ => Vec::new(),
        };
        let (namespace, name) = (namespace?, name?);
        let template = object.pod(&namespace);
        Some(WorkloadTree { kind, namespace, name, template, object, makers })
    };
    let mut workloads: Vec<_> =
        top.into_iter().filter(|object| !only_gmsa || object.uses_gmsa()).filter_map(workload).collect();
    workloads
        .sort_by(|one, other| (&one.namespace, one.kind, &one.name).cmp(&(&other.namespace, other.kind, &other.name)));
    workloads
}

/// The values of each key, in their order.
fn grouped<K: Eq + Hash, V>(pairs: impl Iterator<Item = (K, V)>) -> HashMap<K, Vec<V>> {
    let mut all: HashMap<K, Vec<V>> = HashMap::new();
    pairs.for_each(|(key, value)| all.entry(key).or_default().push(value));
    all
}

//! The pod that is meant: named itself, or one of a workload.
//!
//! Invariant: a pod of a workload is owned by it, by the rules of [`owners`](crate::shared::owners): labels alone make none.

use anyhow::{Context as _, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::core::{Request, Selector, params::ListParams};
use serde_json::{Value, value::RawValue};

use crate::shared::{
    owners::{NotOwned, Owner},
    pods::ClusterPod,
    snapshot::Snapshot,
    workloads::Kind,
};
use gmsa_core::credspec::is_dns_subdomain;

/// Finds the pod: `NAMESPACE/POD`, `POD`, `pod/NAME`, or `KIND/NAME` of a workload, of which a running pod is taken.
pub(super) async fn find(snapshot: &Snapshot, named: &str) -> anyhow::Result<ClusterPod> {
    let word = named.split_once('/').map(|(first, name)| (first.to_ascii_lowercase(), name));
    if let Some((kind, name)) = &word
        && let Some(kind) = Kind::of_word(kind).filter(|kind| *kind != Kind::CronJob)
    {
        return of_workload(snapshot, named, kind, name).await;
    }
    let of_pods = word.filter(|(kind, _)| ["pod", "pods", "po"].contains(&kind.as_str()));
    ClusterPod::find(snapshot, of_pods.map_or(named, |(_, name)| name)).await
}

async fn of_workload(snapshot: &Snapshot, named: &str, kind: Kind, name: &str) -> anyhow::Result<ClusterPod> {
    if !is_dns_subdomain(name) {
        bail!("{named:?} is not KIND/NAME");
    }
    let namespace = &snapshot.namespace;
    let workload: Option<Value> = snapshot.find(&format!("{}/{name}", kind.collection(Some(namespace)))).await?;
    let workload = workload.with_context(|| format!("there is no {named} in namespace {namespace}"))?;
    let selector = workload.pointer("/spec/selector").cloned().context("the workload has no selector")?;
    let selector = Selector::try_from(serde_json::from_value::<LabelSelector>(selector)?)?;
    let pods = Request::new(format!("/api/v1/namespaces/{namespace}/pods"))
        .list(&ListParams::default().labels_from(&selector))?;
    let pods: Vec<Box<RawValue>> = snapshot.list(&pods.uri().to_string()).await?;
    let mut pods = pods
        .iter()
        .map(|json| ClusterPod::read(json))
        .collect::<Result<Vec<_>, _>>()
        .context("a pod cannot be parsed")?;
    // The one that can answer.
    pods.sort_by_key(|pod| (pod.object.metadata.deletion_timestamp.is_some(), pod.phase() != "Running"));
    let field = |pointer| workload.pointer(pointer).and_then(Value::as_str);
    let itself = (field("/apiVersion"), field("/kind"), field("/metadata/uid"));
    let is_it = |owner: &Owner| {
        let OwnerReference { api_version, kind, uid, .. } = &owner.reference;
        itself == (Some(api_version), Some(kind), Some(uid))
    };
    let mut stranger = None;
    for pod in pods {
        // The API server has compared the labels. Any pod may have them.
        let why = match Owner::all_of(snapshot, &pod).await {
            Ok(owners) if owners.iter().any(is_it) => return Ok(pod),
            Ok(_) => "is not controlled by it".to_owned(),
            Err(NotOwned { why, fix }) => format!("{why}{}", fix.map(|fix| format!(": {fix}")).unwrap_or_default()),
        };
        stranger.get_or_insert_with(|| format!("; pod {} has its labels, and {why}", pod.place().1));
    }
    bail!("{named} in namespace {namespace} has no pod{}", stranger.unwrap_or_default())
}

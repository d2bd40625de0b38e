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

pub(super) struct Target {
    pub namespace: String,
    pub name: String,
    pub pod: ClusterPod,
}

/// Finds the pod: `NAMESPACE/POD`, `POD`, `pod/NAME`, or `KIND/NAME` of a workload, of which a running pod is taken.
pub(super) async fn find(snapshot: &Snapshot, named: &str) -> anyhow::Result<Target> {
    let word = named.split_once('/').map(|(first, name)| (first.to_ascii_lowercase(), name));
    let named = match &word {
        Some((kind, name)) if ["pod", "pods", "po"].contains(&kind.as_str()) => name,
        Some((kind, name)) => match Kind::of_word(kind).filter(|kind| *kind != Kind::CronJob) {
            Some(kind) => {
                let path = format!("{}/{name}", kind.collection(Some(&snapshot.namespace)));
                return of_workload(snapshot, named, &path, name).await;
            }
            None => named,
        },
        None => named,
    };
    let (namespace, name, pod) = ClusterPod::find(snapshot, named).await?;
    Ok(Target { namespace, name, pod })
}

async fn of_workload(snapshot: &Snapshot, named: &str, path: &str, name: &str) -> anyhow::Result<Target> {
    if !is_dns_subdomain(name) {
        bail!("{named:?} is not KIND/NAME");
    }
    let namespace = &snapshot.namespace;
    let workload: Option<Value> = snapshot.find(path).await?;
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
        let name = pod.place().1.to_owned();
        // The API server has compared the labels. Any pod may have them.
        let why = match Owner::all_of(snapshot, &pod).await {
            Ok(owners) if owners.iter().any(is_it) => {
                return Ok(Target { namespace: namespace.clone(), name, pod });
            }
            Ok(_) => "is not controlled by it".to_owned(),
            Err(NotOwned { why, fix }) => format!("{why}{}", fix.map(|fix| format!(": {fix}")).unwrap_or_default()),
        };
        stranger.get_or_insert_with(|| format!("; pod {name} has its labels, and {why}"));
    }
    bail!("{named} in namespace {namespace} has no pod{}", stranger.unwrap_or_default())
}

//! The pod on a node: its manifest, its creation, the wait until its container runs, and the commands in it.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Duration,
};

use gmsa_cluster::apiserver::CallError;
use json_patch::merge;
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;

use super::{CONTAINER, POD, Probe, first_cause, node::ProbeNode};
use crate::shared::{
    pods::ClusterPod,
    progress,
    rounds::repeat,
    rules::{self, FixTarget, Names},
    unread::is_cause,
    verification::{Executor, of_container},
    walk::{
        containers::{Seen, is_running},
        events::Events,
        nodes::Nodes,
    },
    world::{World, pods_of},
};
use gmsa_core::{
    admission::pod::SlotKind,
    diagnostic::{Check, Diagnostic, Rule},
};

const IDENTITY: &str = "identity";

/// The time limit for each command in it.
const COMMAND: Duration = Duration::from_secs(15);
/// The life of an undeleted pod beyond `--timeout`: enough for all commands.
const MARGIN: Duration = Duration::from_secs(300);

/// The number of consecutive looks before a cause counts, because kubelet, scheduler and registry retry.
const SEEN: u32 = 3;
/// Causes that a kubelet retries, and that often pass on a new node.
const RETRIED: [&Rule; 3] = [&rules::POD_NETWORK, &rules::COMPUTE_SERVICE, &rules::TIMED_OUT];

/// Whether an answer means that no pod was created. A webhook can refuse with any code.
fn is_refusal(code: u16, message: &str) -> bool {
    matches!(code, 400 | 403 | 404 | 422) || rules::is_refusal(message)
}

impl Probe<'_> {
    /// Whether a pod on this node gets its identity.
    pub(super) async fn identity(&self, place: &ProbeNode) -> anyhow::Result<Check> {
        let name = format!("gmsa-probe-{:016x}", RandomState::new().build_hasher().finish());
        let pod = match self.create(&name, &self.manifest(&name, place)).await? {
            Ok(pod) => pod,
            Err(refused) => return Ok(Check::found("admission", refused)),
        };
        let check = match Box::pin(until_running(self, &name, pod)).await {
            Ok(Ok(pod)) => Ok(self.verified(&pod).await),
            Ok(Err(found)) => Ok(found),
            Err(error) => Err(error),
        };
        // A failed deletion is repeated, and reported, at the end.
        let _ = self.delete(&name).await;
        check
    }

    /// Creates a pod, which may be refused.
    async fn create(&self, name: &str, manifest: &Value) -> anyhow::Result<Result<ClusterPod, Diagnostic>> {
        // It may exist even without an answer.
        self.pods.borrow_mut().insert(name.to_owned(), false);
        let created = self.cluster.create::<Box<RawValue>>(&pods_of(Some(&self.namespace)), name, manifest).await;
        if let Err(Some(CallError::Refused { code, status: Some(status), .. })) =
            created.as_ref().map_err(anyhow::Error::downcast_ref)
            && is_refusal(code.as_u16(), &status.message)
        {
            self.pods.borrow_mut().remove(name);
            if !rules::lacks_right(&status.message) {
                return Ok(Err(self.refused(&status.message)));
            }
        }
        let created = created?;
        self.pods.borrow_mut().insert(name.to_owned(), true);
        Ok(Ok(ClusterPod::read(&created)?))
    }

    /// The finding for a refusal.
    fn refused(&self, message: &str) -> Diagnostic {
        let (rule, said) = (rules::refusal(message), rules::said(message));
        let names = Names {
            spec: Some(self.options.credspec.as_str()),
            namespace: Some(&self.namespace),
            service_account: Some(&self.options.serviceaccount.name),
            ..Names::of_refusal(said)
        };
        rules::found(rule, said, &names)
    }

    /// Runs the steps of `verify` in the container.
    async fn verified(&self, pod: &ClusterPod) -> Check {
        let mut containers = pod.admission.slots().filter(|slot| slot.kind == SlotKind::Container);
        let Some(container) = containers.find(|slot| slot.owner == CONTAINER) else {
            return Check::breach(POD, &rules::NOT_STARTED, "the pod has no container of the probe");
        };
        let executor = Executor::new(self.client.clone(), pod, CONTAINER, COMMAND);
        let checks = of_container(pod, &container, &executor, None).await;
        let account = &self.options.credspec;
        first_cause(&checks, || Check::pass(IDENTITY, format!("a container gets the identity of {account}")))
    }

    fn manifest(&self, name: &str, place: &ProbeNode) -> Value {
        let tolerations: Vec<Value> = place
            .taints
            .iter()
            // Taints by Kubernetes itself mean that no pod can run there.
            .filter(|taint| !taint.key.starts_with("node.kubernetes.io/"))
            .map(|taint| json!({"key": taint.key, "effect": taint.effect, "operator": "Exists"}))
            .collect();
        let life = self.options.timeout.saturating_add(MARGIN).as_secs();
        // The label kubernetes.io/hostname need not be the name of the node.
        let affinity = place.node.as_ref().map(|node| {
            let on = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on]}}})
        });
        let manifest = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "gmsa-probe", "app.kubernetes.io/managed-by": "kubectl-gmsa"}},
            "spec": {
                "os": {"name": "windows"},
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "affinity": affinity,
                "runtimeClassName": self.options.runtime_class,
                "tolerations": tolerations,
                "restartPolicy": "Never",
                "activeDeadlineSeconds": life,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "serviceAccountName": &*self.options.serviceaccount.name,
                // For Windows pods, the Pod Security level `restricted` requires `runAsNonRoot`; NETWORK SERVICE acts as the account.
                "securityContext": {"runAsNonRoot": true, "windowsOptions": {
                    "gmsaCredentialSpecName": self.options.credspec.as_str(),
                    "runAsUserName": "NT AUTHORITY\\NETWORK SERVICE",
                }},
                "containers": [{
                    "name": CONTAINER,
                    "image": place.image,
                    // `ping` waits without a console, which `timeout` would need.
                    "command": ["cmd", "/c", "ping -t 127.0.0.1 >nul"],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
                }],
            }
        });
        // A merge leaves out what is null.
        let mut pod = json!({});
        merge(&mut pod, &manifest);
        pod
    }
}

/// The pod once its container runs, or the first cause. `created` is the pod as created.
async fn until_running(
    probe: &Probe<'_>,
    name: &str,
    created: ClusterPod,
) -> anyhow::Result<Result<ClusterPod, Check>> {
    let (namespace, limit) = (&probe.namespace, probe.options.timeout);
    let end = Instant::now() + limit;
    let (mut last, mut seen): (Option<&'static Rule>, u32) = (None, 0);
    repeat(async || {
        let Some(json) = probe.cluster.find::<Box<RawValue>>(&probe.path(name)).await? else {
            anyhow::bail!("pod {namespace}/{name} was deleted by another client");
        };
        let pod = ClusterPod::read(&json)?;
        let is_same = pod.object.metadata.uid == created.object.metadata.uid;
        anyhow::ensure!(is_same, "pod {namespace}/{name} was replaced by another client");
        if runs(&pod) {
            return Ok(Some(Ok(pod)));
        }
        let (cause, passes) = Box::pin(cause(probe, &pod)).await.unzip();
        let rule = cause.as_ref().and_then(|check| Some(check.result.as_ref().err()?.rule));
        seen = if rule.is_some() && rule == last { seen + 1 } else { 1 };
        last = rule;
        let is_over = Instant::now() >= end;
        if let Some(cause) = cause.filter(|_| pod.has_ended() || is_over || (seen >= SEEN && passes == Some(false))) {
            return Ok(Some(Err(cause)));
        }
        progress::doing(&format!("waiting until pod {namespace}/{name} runs: {}", pod.phase()));
        if is_over {
            let text = format!("its container does not run after {} s", limit.as_secs());
            let target = Some(FixTarget::Probe { namespace });
            let names = Names { namespace: Some(namespace), pod_name: Some(name), target, ..Names::default() };
            return Ok(Some(Err(Check::found(POD, rules::found(&rules::NOT_STARTED, text, &names)))));
        }
        Ok(None)
    })
    .await
}

fn runs(pod: &ClusterPod) -> bool {
    let statuses = pod.object.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.into_iter().any(|status| status.name == CONTAINER && is_running(status))
}

/// The current cause, and whether it may pass by itself.
async fn cause(probe: &Probe<'_>, pod: &ClusterPod) -> Option<(Check, bool)> {
    // Without the right to read these, only the status of the pod is used.
    let now = World::of(probe.cluster.clone());
    let pods = [pod];
    let (events, nodes) = tokio::join!(Events::read(&now, Some(&probe.namespace)), Nodes::read(&now, &pods, false));
    let seen = Seen { pod, target: FixTarget::Probe { namespace: &probe.namespace }, nodes: &nodes, events: &events };
    let check = seen.steps().into_iter().find(is_cause)?;
    let passes = check.result.as_ref().is_err_and(|found| match found.rule {
        // For a runtime class, the scheduler may wait for a new node.
        rule if *rule == rules::NOT_SCHEDULED => probe.options.runtime_class.is_some() || seen.is_untried(),
        rule if RETRIED.contains(&rule) => true,
        _ => pod.node_name().is_some() && seen.waits(),
    });
    Some((check, passes))
}

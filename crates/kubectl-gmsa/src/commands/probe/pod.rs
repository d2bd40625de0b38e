//! The pod on a node: its manifest, its creation, and the commands in it.

use std::time::Duration;

use gmsa_cluster::apiserver::CallError;
use json_patch::merge;
use serde_json::{Value, json, value::RawValue};

use super::{CONTAINER, POD, PodName, Probe, first_cause, node::ProbeNode, start};
use crate::shared::{
    pods::ClusterPod,
    rules::{self, Names},
    verification::{Executor, of_container},
};
use gmsa_core::{
    admission::pod::SlotKind,
    diagnostic::{Check, Diagnostic},
};

const IDENTITY: &str = "identity";

/// The time limit for each command in it.
const COMMAND: Duration = Duration::from_secs(15);
/// The life of an undeleted pod beyond `--timeout`: enough for all commands.
const MARGIN: Duration = Duration::from_secs(300);

/// Whether an answer means that no pod was created. A webhook can refuse with any code.
fn is_refusal(code: u16, message: &str) -> bool {
    matches!(code, 400 | 403 | 404 | 422) || rules::is_refusal(message)
}

impl Probe<'_> {
    /// Whether a pod on this node gets its identity.
    pub(super) async fn identity(&self, place: &ProbeNode) -> anyhow::Result<Check> {
        let name = PodName::new(&self.namespace, "gmsa-probe");
        let pod = match self.create(&name, &self.manifest(&name, place)).await? {
            Ok(pod) => pod,
            Err(refused) => return Ok(Check::found("admission", refused)),
        };
        let check = match Box::pin(start::until_running(self, &name, pod)).await {
            Ok(Ok(pod)) => Ok(self.verified(&name, &pod).await),
            Ok(Err(found)) => Ok(Self::without_pod(found, &name)),
            Err(error) => Err(error),
        };
        // A failed deletion is repeated, and reported, at the end.
        let _ = self.delete(&name).await;
        check
    }

    /// Creates a pod, which may be refused.
    async fn create(&self, name: &PodName, manifest: &Value) -> anyhow::Result<Result<ClusterPod, Diagnostic>> {
        // It may exist even without an answer.
        self.pods.borrow_mut().insert(name.clone(), false);
        let created = match self.cluster.create::<Box<RawValue>>(&name.collection(), &name.name, manifest).await {
            Ok(json) => json,
            Err(error) => match error.downcast_ref::<CallError>() {
                Some(CallError::Refused { code, status: Some(status), .. })
                    if is_refusal(code.as_u16(), &status.message) =>
                {
                    self.pods.borrow_mut().remove(name);
                    if rules::lacks_right(&status.message) {
                        return Err(error);
                    }
                    return Ok(Err(self.refused(&status.message)));
                }
                _ => return Err(error),
            },
        };
        self.pods.borrow_mut().insert(name.clone(), true);
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

    /// Replaces a remedy that names the deleted pod by one that shows its events.
    fn without_pod(mut check: Check, PodName { namespace, name }: &PodName) -> Check {
        if let Err(Diagnostic { fix: Some(fix), .. }) = &mut check.result {
            let describe = format!("`kubectl describe pod {name} --namespace {namespace}`");
            let events =
                format!("`kubectl get events --namespace {namespace} --field-selector involvedObject.name={name}`");
            let other = fix.replace(&describe, "");
            *fix = if other.contains(name.as_str()) {
                format!("{events} shows what happened to the pod, which is deleted.")
            } else {
                fix.replace(&describe, &events)
            };
        }
        check
    }

    /// Runs the steps of `verify` in the container.
    async fn verified(&self, name: &PodName, pod: &ClusterPod) -> Check {
        let mut containers = pod.admission.slots().filter(|slot| slot.kind == SlotKind::Container);
        let Some(container) = containers.find(|slot| slot.owner == CONTAINER) else {
            return Check::breach(POD, &rules::NOT_STARTED, "the pod has no container of the probe");
        };
        let executor = Executor {
            client: self.client.clone(),
            namespace: name.namespace.clone(),
            pod: name.name.clone(),
            container: CONTAINER.to_owned(),
            limit: COMMAND,
        };
        let checks = of_container(pod, &container, &executor, None).await;
        let account = &self.options.credspec;
        first_cause(checks, || Check::pass(IDENTITY, format!("a container gets the identity of {account}")))
    }

    fn manifest(&self, name: &PodName, place: &ProbeNode) -> Value {
        let tolerations: Vec<Value> = place
            .taints
            .iter()
            // Taints by Kubernetes itself mean that no pod can run there.
            .filter(|taint| !taint.key.starts_with("node.kubernetes.io/"))
            .map(|taint| json!({"key": taint.key, "effect": taint.effect, "operator": "Exists"}))
            .collect();
        let life = self.options.timeout.saturating_add(MARGIN).as_secs();
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name.name, "labels": {"app.kubernetes.io/name": "gmsa-probe", "app.kubernetes.io/managed-by": "kubectl-gmsa"}},
            "spec": {
                "os": {"name": "windows"},
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "tolerations": tolerations,
                "restartPolicy": "Never",
                "activeDeadlineSeconds": life,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": CONTAINER,
                    "image": place.image,
                    // `ping` waits without a console, which `timeout` would need.
                    "command": ["cmd", "/c", "ping -t 127.0.0.1 >nul"],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
                }],
            }
        });
        if let Some(node) = &place.node {
            // The label kubernetes.io/hostname need not be the name of the node.
            let on = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
            let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on]}});
            merge(&mut pod, &json!({"spec": {"affinity": {"nodeAffinity": affinity}}}));
        }
        if let Some(class) = &self.options.runtime_class {
            merge(&mut pod, &json!({"spec": {"runtimeClassName": class}}));
        }
        // For Windows pods, the Pod Security level `restricted` requires `runAsNonRoot`; NETWORK SERVICE acts as the account.
        let options = json!({
            "gmsaCredentialSpecName": self.options.credspec.as_str(),
            "runAsUserName": "NT AUTHORITY\\NETWORK SERVICE",
        });
        merge(
            &mut pod,
            &json!({"spec": {
                "serviceAccountName": &*self.options.serviceaccount.name,
                "securityContext": {"runAsNonRoot": true, "windowsOptions": options},
            }}),
        );
        pod
    }
}

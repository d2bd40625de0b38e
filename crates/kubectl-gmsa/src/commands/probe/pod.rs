//! The pod on a node: its manifest, its creation, and what runs in it.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Duration,
};

use gmsa_cluster::apiserver::CallError;
use json_patch::merge;
use serde_json::{Value, json, value::RawValue};

use super::{Probe, first_cause, node::Place, start};
use crate::shared::{
    pods::ClusterPod,
    start::{refusal, remedy},
    verification::{Executor, MAX_OUTPUT, of_container},
};
use gmsa_core::{
    admission::pod::SlotKind,
    diagnostic::{
        Check, Diagnostic,
        rules::{self, Rule},
    },
};

pub(super) const POD: &str = "pod";
const IDENTITY: &str = "identity";

/// The container in the pod.
pub(super) const CONTAINER: &str = "probe";
/// How long each command in it may take.
const COMMAND: Duration = Duration::from_secs(15);
/// How much longer than it may take to start, and than all commands take, a pod that nobody deletes lives.
const MARGIN: Duration = Duration::from_secs(300);

/// A name that no other pod has.
pub(super) fn name(of: &str) -> String {
    format!("{of}-{:016x}", RandomState::new().build_hasher().finish())
}

impl Probe<'_> {
    /// Whether a pod on this node gets its identity.
    pub(super) async fn identity(&self, place: &Place) -> anyhow::Result<Check> {
        let name = name("gmsa-probe");
        let pod = match self.create(&name, &self.manifest(&name, place)).await? {
            Ok(pod) => pod,
            Err(refused) => return Ok(Check::found("admission", refused)),
        };
        let check = match start::until_running(self, &name, pod).await {
            Ok(Ok(pod)) => Ok(self.verified(&name, &pod).await),
            Ok(Err(found)) => Ok(found),
            Err(error) => Err(error),
        };
        // What cannot be deleted now is tried again at the end, which says so.
        let _ = self.delete(&name).await;
        check
    }

    /// Creates a pod, which may be refused.
    pub(super) async fn create(&self, name: &str, manifest: &Value) -> anyhow::Result<Result<ClusterPod, Diagnostic>> {
        // It may be created although no answer comes.
        self.pods.borrow_mut().insert(name.to_owned());
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        match self.cluster.post::<Box<RawValue>>(&path, manifest).await {
            Ok(json) => Ok(Ok(ClusterPod::read(&json)?)),
            Err(error) => {
                let status = error.downcast_ref::<CallError>().and_then(CallError::status);
                let Some(message) = status.map(|status| status.message.clone()) else { return Err(error) };
                self.pods.borrow_mut().remove(name);
                Ok(Err(self.refused(&message)))
            }
        }
    }

    /// What the message of a refusal means.
    fn refused(&self, message: &str) -> Diagnostic {
        if message.contains("cannot create resource") {
            let fix = format!("Use a user who may create pods in {}.", self.namespace);
            return Diagnostic::new(&rules::NOT_CHECKED, message).with_fix(fix);
        }
        let rule: &Rule = refusal::rule(message);
        let (spec, namespace, account) =
            (self.options.credspec.as_str(), &self.namespace, &*self.options.serviceaccount.service_account);
        let fix = match rule {
            _ if *rule == rules::NOT_AUTHORIZED => remedy::grant(spec, namespace, account),
            _ if *rule == rules::SPEC_MISSING => Some(remedy::create_spec(spec)),
            _ if *rule == rules::SERVICE_ACCOUNT_MISSING => remedy::create_account(namespace, account),
            _ => None,
        };
        Diagnostic { fix, ..Diagnostic::new(rule, refusal::said(message)) }
    }

    /// Runs the steps of `verify` in the container.
    async fn verified(&self, name: &str, pod: &ClusterPod) -> Check {
        let mut containers = pod.admission.slots().filter(|slot| slot.kind == SlotKind::Container);
        let Some(container) = containers.find(|slot| slot.owner == CONTAINER) else {
            return Check::found(POD, Diagnostic::new(&rules::NOT_STARTED, "the pod has no container of the probe"));
        };
        let executor = self.executor(name, COMMAND, MAX_OUTPUT);
        let checks = of_container(pod, &container, &executor, None).await;
        let account = &self.options.credspec;
        first_cause(checks, || Check::pass(IDENTITY, format!("a container gets the identity of {account}")))
    }

    pub(super) fn executor(&self, pod: &str, limit: Duration, max_output: u64) -> Executor {
        let (client, namespace) = (self.client.clone(), self.namespace.clone());
        Executor { client, namespace, pod: pod.to_owned(), container: CONTAINER.to_owned(), limit, max_output }
    }

    /// What holds for every pod on a node: that it is there, and that it ends.
    pub(super) fn on(&self, name: &str, place: &Place) -> Value {
        let tolerations: Vec<Value> = place
            .taints
            .iter()
            // Those that the control plane sets say that nothing can run there.
            .filter(|taint| !taint.key.starts_with("node.kubernetes.io/"))
            .map(|taint| json!({"key": taint.key, "effect": taint.effect, "operator": "Exists"}))
            .collect();
        let life = self.options.timeout.saturating_add(MARGIN).as_secs();
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "gmsa-probe", "app.kubernetes.io/managed-by": "kubectl-gmsa"}},
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
                    // It waits without a console, which `timeout` needs.
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
        pod
    }

    fn manifest(&self, name: &str, place: &Place) -> Value {
        let mut pod = self.on(name, place);
        // Of a Windows pod, the Pod Security level `restricted` asks for `runAsNonRoot`; NETWORK SERVICE acts as the account.
        let options = json!({
            "gmsaCredentialSpecName": self.options.credspec.as_str(),
            "runAsUserName": "NT AUTHORITY\\NETWORK SERVICE",
        });
        merge(
            &mut pod,
            &json!({"spec": {
                "serviceAccountName": &*self.options.serviceaccount.service_account,
                "securityContext": {"runAsNonRoot": true, "windowsOptions": options},
            }}),
        );
        pod
    }
}

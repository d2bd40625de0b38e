//! Pods.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Fix, Names, Rule, RuleEntry, Subject,
    Words::{Message, Refusal, Start},
    family,
};

family! { "Pods" {
    HYPER_V: "hyper-v", Warning, "The runtime class of a Pod isolates its containers by Hyper-V, which Kubernetes does not support for Windows.",
        "Use a runtime class with process isolation, and nodes of the build of the image.",
        words: [Start("hypervisor isolated containers*do not support gmsa")];
    SERVICE_ACCOUNT_MISSING: "service-account-missing", Error, "The service account of a Pod does not exist.",
        "Create it: `kubectl create serviceaccount SERVICEACCOUNT --namespace NAMESPACE`. Or correct the name in the Pod.",
        words: [Refusal("error looking up service account")];
    RUNTIME_CLASS_MISSING: "runtime-class-missing", Error, "The runtime class of a Pod does not exist, so the API server refuses the Pod.",
        "Create it, or correct `runtimeClassName`.",
        words: [Refusal("pod rejected: runtimeclass")];
    EPHEMERAL_CONTAINERS: "ephemeral-containers", Error, "A new Pod, or a Pod template, has ephemeral containers, so the API server refuses it.",
        "Remove them: `kubectl debug` adds them to a Pod that runs.";
    IGNORED_FIELD: "ignored-field", Error, "A field or an annotation for GMSA is misspelt or in the wrong place, so Kubernetes ignores it.",
        "Set `gmsaCredentialSpecName` in `securityContext.windowsOptions` of the Pod, or of a container.";
    WINDOWS_BUILD: "windows-build", Note, "A container may be started on a node whose build of Windows does not run its image.",
        "Select the builds that run the image (`node.kubernetes.io/windows-build`), or use a runtime class that does. A node runs images of its own release and, \
             since Windows Server 2022, of the long-term release before it; never a newer one.";
    NO_CREDENTIAL_SPEC: "no-credential-spec", Warning, "A Pod does not use GMSA.",
        "Set `gmsaCredentialSpecName` in its `windowsOptions`.";
    CONTENTS_OUTDATED: "contents-outdated", Warning, "A Pod carries contents that are not the current ones of a credential spec.",
        "Delete the Pod: its controller creates a new one.";
    POD_REFUSED: "pod-refused", Error, "The API server refuses the Pods of a workload, for another reason than GMSA.",
        "Do what the message says: it is that of a quota, of the Pod Security level of the namespace, of a policy, or of another webhook.",
        words: [Refusal("violates podsecurity"), Refusal("exceeded quota")];
    PODS_MISSING: "pods-missing", Error, "A workload has fewer Pods than it wants.",
        "`kubectl describe` of the workload, and of its ReplicaSet, shows events and conditions.",
        fix: describe;
    NODE_TAINT: "node-taint", Error, "The Windows nodes that a Pod selects have a taint that it does not tolerate.",
        "Add the toleration to the Pod template, or remove the taint: `kubectl taint nodes NODE KEY-`.",
        words: [Message("untolerated taint {os: windows}"), Message("had taint {os: windows}")];
    NOT_SCHEDULED: "not-scheduled", Error, "A Pod is not on a node.",
        "See docs/windows-placement.md.",
        words: [Message("nodes are available")];
    POD_FAILED: "pod-failed", Error, "A Pod has failed: it was evicted, or a container of it ended with an error.",
        "`kubectl describe pod` and `kubectl logs` say why. Its controller creates a new Pod; a Pod without a controller must be created again.",
        words: [Message("the node was low on resource")];
    NODE_NOT_READY: "node-not-ready", Error, "The node of a Pod is not ready.",
        "`kubectl describe node NODE` says why: start its kubelet and its container runtime. Pods with a controller are created on other nodes after five minutes.",
        words: [Message("kubelet stopped posting node status"), Message("container runtime network not ready")];
    NOT_STARTED: "not-started", Error, "A container of a Pod does not start.",
        "See docs/troubleshooting.md.",
        words: [
            Message("failed to pull image"),
            Message("errimagepull"),
            Message("imagepullbackoff"),
            Message("crashloopbackoff"),
            Message("back-off restarting failed container"),
        ];
} }

/// What shows why a workload lacks pods.
fn describe(names: &Names<'_>) -> Option<Fix> {
    let Subject::Workload { kind, name, .. } = names.subject? else { return None };
    let verb = format!("describe {}", kind.as_str().to_ascii_lowercase());
    let describe = names.subject?.command(&verb, name, "")?;
    Some(Fix::run(format!("{describe} shows its events and conditions.")))
}

//! Pods.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Fix, FixTarget, Names, Rule, RuleEntry,
    Words::{Codes, Exit, General, Message, Refusal, Start, StartCodes},
    family,
    text::DENIED,
};

family! { "Pods" {
    HYPER_V: "hyper-v", Warning, "The runtime class of a Pod isolates its containers by Hyper-V, which Kubernetes does not support for Windows.",
        "Use a runtime class with process isolation, and nodes of the build of the image.",
        words: [
            Start("hypervisor isolated containers*do not support gmsa"),
            Start("hyper-v isolated containers do not support gmsa"),
            Start("no hypervisor is present on this system"),
            Start("hyper-v components are not installed"),
            StartCodes(&["HCS_E_HYPERV_NOT_INSTALLED"]),
            Start("no runtime for \"*hypervisor\" is configured"),
        ];
    SERVICE_ACCOUNT_MISSING: "service-account-missing", Error, "The service account of a Pod does not exist.",
        "Create it: `kubectl create serviceaccount SERVICEACCOUNT --namespace NAMESPACE`. Or correct the name in the Pod.",
        words: [Refusal("error looking up service account"), General("serviceaccounts \"*\" not found")];
    RUNTIME_CLASS_MISSING: "runtime-class-missing", Error, "The runtime class of a Pod does not exist, so the API server refuses the Pod.",
        "Create it: `echo '{\"apiVersion\":\"node.k8s.io/v1\",\"kind\":\"RuntimeClass\",\"metadata\":{\"name\":\"OBJECT\"},\"handler\":\"runhcs-wcow-process\"}' | kubectl apply -f -`. Or correct runtimeClassName in the Pod.",
        words: [
            Refusal("pod rejected: runtimeclass"),
            Message("runtimeclass.node.k8s.io \"*\" not found"),
            Start("no runtime for \"*\" is configured"),
        ],
        remedies: {
            "no runtime for" => "Configure the handler of the runtime class in containerd of the node, or correct runtimeClassName in the Pod.",
        };
    EPHEMERAL_CONTAINERS: "ephemeral-containers", Error, "A new Pod, or a Pod template, has ephemeral containers, so the API server refuses it.",
        "Remove them: `kubectl debug` adds them to a Pod that runs.";
    IGNORED_FIELD: "ignored-field", Error, "A field or an annotation for GMSA is misspelt or in the wrong place, so Kubernetes ignores it.",
        "Set `gmsaCredentialSpecName` in `securityContext.windowsOptions` of the Pod, or of a container.",
        words: [Message("alpha.windows.kubernetes.io/gmsa"), Message("windows-gmsa-credspec.alpha.kubernetes.io")];
    OPERATOR_PODS: "operator-pods", Note, "An object of another kind names a credential spec for Pods that its operator makes.",
        "Nothing: the webhook checks these Pods when they are created. Their service account needs the verb `use`.";
    NOT_RENDERED: "not-rendered", Warning, "The manifests of a folder are changed by another tool before they are applied, so they are not checked as they stand.",
        "Check what the tool prints: `kubectl kustomize FOLDER | kubectl gmsa check -f -`, or `helm template FOLDER | kubectl gmsa check -f -`.";
    NOTHING_FOUND: "nothing-found", Warning, "The files have no object that the command checks.",
        "Name other files, or look at what the program before the pipe printed.";
    WINDOWS_BUILD: "windows-build", Note, "A container may be started on a node whose build of Windows does not run its image.",
        "Select the builds that run the image (`node.kubernetes.io/windows-build`), or use a runtime class that does. A node runs images of its own release and, \
             since Windows Server 2022, of the long-term release before it; never a newer one.";
    RUNTIME_ANNOTATION: "runtime-annotation", Warning, "An annotation has containerd run the containers of a Pod without the account, or with another one.",
        "Remove the annotation.";
    NO_CREDENTIAL_SPEC: "no-credential-spec", Warning, "A Pod does not use GMSA.",
        "Set `gmsaCredentialSpecName` in its `windowsOptions`; for tickets in a Linux Pod, the annotation `gmsa-webhook/tickets` of the Pod or its template.",
        words: [Start("credential spec is empty")];
    TICKETS_NOT_INJECTED: "tickets-not-injected", Error, "A Pod asks for tickets by its annotation, and has no sidecar that gets them.",
        "Delete the Pod: its controller creates a new one, which gets the sidecar. A Pod without a controller must be created again.";
    CONTENTS_OUTDATED: "contents-outdated", Warning, "A Pod carries contents that are not the current ones of a credential spec.",
        "Restart its workload: `kubectl rollout restart -n NAMESPACE $(kubectl gmsa outdated -n NAMESPACE -o name)`. Or delete the Pod: its controller creates a new one.";
    POD_REFUSED: "pod-refused", Error, "The API server refuses the Pods of a workload, for another reason than GMSA.",
        "Not known to be about GMSA: the message names the quota, the limit, the policy or the webhook that refuses the Pod, whose owner can help.",
        words: [
            Refusal("violates podsecurity"),
            Refusal("exceeded quota"),
            Refusal("failed quota"),
            Refusal("no priorityclass with name"),
            Refusal("maximum cpu usage per"),
            Refusal("maximum memory usage per"),
            Refusal("minimum cpu usage per"),
            Refusal("minimum memory usage per"),
            Refusal("unable to validate against any security context constraint"),
            Refusal("podsecuritypolicy: unable to admit pod"),
            General(DENIED),
            General("denied request"),
            General("error creating: pods"),
        ],
        remedies: {
            "violates podsecurity" => "Change the fields that the message names. For the level `restricted`, write `os: {name: windows}` into the Pod: it then asks a Windows Pod for `runAsNonRoot: true` alone. `hostProcess` needs `privileged`.",
            "takes pods out of the gmsa webhook" => "Have a user do it who may update the webhook configurations: the label exempts Pods from all checks.",
            "static policies of the" => "Let a user or group do it that `staticPolicies.admins` names: docs/static-policies.md.",
            "autogke" | "autopilot" => "GKE Autopilot runs no Windows Pods, and has no Windows nodes: use a Standard cluster with a Windows node pool.",
        };
    PODS_MISSING: "pods-missing", Error, "A workload has fewer Pods than it wants.",
        "`kubectl describe` of the workload, and of its ReplicaSet, shows events and conditions.",
        fix: describe;
    POD_STARTING: "pod-starting", Note, "A Pod was created a moment ago, or its image is pulled, and nothing has failed.",
        "Wait: `kubectl gmsa why pod/POD --namespace NAMESPACE --watch` waits until it runs.";
    POD_ENDING: "pod-ending", Error, "A Pod is being deleted, and is still there.",
        "`kubectl describe pod POD --namespace NAMESPACE` shows its finalizers and its node.";
    NOT_VERIFIED: "not-verified", Note, "No container was asked yet whether it has its identity in the domain.",
        "Run `kubectl gmsa verify pod/POD -n NAMESPACE`.";
    NODE_TAINT: "node-taint", Error, "The Windows nodes that a Pod selects have a taint that it does not tolerate.",
        "If the taint is meant to stay, add a toleration to the Pod template: docs/windows-pods.md. A controller that sets a taint for a time removes it itself.";
    POD_VOLUME: "pod-volume", Error, "A volume of a Pod cannot be mounted, or what it refers to is not there.",
        "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows each volume.",
        words: [
            Message("mountvolume.setup failed"),
            Message("mountvolume.mountdevice failed"),
            Message("unable to attach or mount volumes"),
            Message("attachvolume.attach failed"),
            Message("volume node affinity conflict"),
            Message("didn't match persistentvolume's node affinity"),
            Message("mountvolume*failed to fetch token*is forbidden: user * cannot"),
            Message("unbound immediate persistentvolumeclaims"),
            Message("persistentvolumeclaim \"*\" not found"),
            Message("multi-attach error for volume"),
            Message("createcontainerconfigerror"),
            Message("references non-existent config key"),
            Message("error: cannot find volume"),
            Message("newsmbglobalmapping*user name or password is incorrect"),
            Message("newsmbglobalmapping*access is denied"),
            Message("newsmbglobalmapping*failed with"),
            Message("newsmbglobalmapping failed"),
            Message("windows system error 87,new-smbglobalmapping"),
            Message("windows system error 1312,new-smbglobalmapping"),
            Message("new-smbglobalmapping : the parameter is incorrect"),
            Message("new-smbglobalmapping : a specified logon session does not exist"),
            Message("new-smbglobalmapping : multiple connections"),
            Message("smb mapping failed with error"),
            Message("invalid parameter(username"),
            Message("failed to mount smb server"),
            Message("empty mountoptions(len"),
            Message("error getting username and password from secret"),
            Message("could not username and password from secret"),
            Message("source field is missing, current context"),
            Message("getrootmappingpath(*) failed"),
            Message("remote path (*) is invalid"),
            Message("invalid source path \"\\\\*"),
            Message("prepare stage path failed for"),
            Message("csi-proxy-smb*cannot find the file specified"),
            Message("csi-proxy-filesystem*cannot find the file specified"),
            Message("driver name smb.csi.k8s.io not found in the list of registered csi drivers"),
            Message("mount error(13): permission denied"),
            Message("mount error(2): no such file or directory"),
            Message("mount error(112): host is down"),
            Message("mount error(126): required key not available"),
            Message("mountvolume*new-smbglobalmapping*access is denied"),
            Message("mountvolume*new-smbglobalmapping*user name or password is incorrect"),
            Message("mountvolume*new-smbglobalmapping*password is not correct"),
            Start("createcomputesystem*volume label syntax is incorrect"),
            Message("couldn't find key ? in"),
            General("configmap \"*\" not found"),
            General("configmaps \"*\" not found"),
            General("secret \"*\" not found"),
            General("secrets \"*\" not found"),
            General("failedmount"),
            General("exceed max volume count"),
            General("didn't find available persistent volumes to bind"),
            General("bound to non-existent pv"),
        ],
        remedies: {
            "smbglobalmapping" | "new-smbglobalmapping" | "smb" | "mount error(" | "nfs" | "username and password from secret" | "invalid parameter(username" | "empty mountoptions" | "source field is missing" | "getrootmappingpath" | "remote path (*) is invalid" | "invalid source path" | "prepare stage path failed" => "The node mounts the volume, with the user of its Secret (`nodeStageSecretRef`): the account of the Pod has no part in it. Compare `source`, this user and its rights on the share. A process uses the gMSA where it opens `\\\\SERVER\\SHARE` itself.",
        };
    NODE_SELECTOR: "node-selector", Error, "No Windows node has the labels that a Pod selects, or matches its affinity.",
        "Compare its node selector, to which its runtime class may add, with `kubectl get nodes -L kubernetes.io/os,node.kubernetes.io/windows-build`. Windows nodes have `kubernetes.io/os: windows`, in lower case.",
        words: [
            General("didn't match pod's node affinity/selector"),
            General("didn't match node selector"),
            General("predicate matchnodeselector failed"),
            General("predicate nodeaffinity failed"),
        ];
    NOT_SCHEDULED: "not-scheduled", Error, "A Pod is not on a node.",
        "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows what the scheduler says of each node.",
        words: [General("nodes are available"), General("no nodes available to schedule pods"), General("failedscheduling")];
    POD_FAILED: "pod-failed", Error, "A Pod has failed: it was evicted, or a container of it ended with an error.",
        "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows more.",
        words: [
            Message("the node was low on resource"),
            Message("the node had condition: [diskpressure]"),
            Message("the node had condition: [memorypressure]"),
            Message("the node had condition: [pidpressure]"),
            General("preempted by "),
            General("preemptionbyscheduler"),
            General("preempting to accommodate a higher priority pod"),
            General("was active longer than specified deadline"),
            General("job has reached the specified backoff limit"),
            General("backofflimitexceeded"),
            General("pod was active on the node longer than the specified deadline"),
        ];
    NODE_NOT_READY: "node-not-ready", Error, "The node of a Pod is not ready.",
        "`kubectl describe node NODE` shows why. It is not about GMSA.",
        words: [
            Message("kubelet stopped posting node status"),
            Message("container runtime network not ready"),
            Message("untolerated taint {node.kubernetes.io/not-ready"),
            Message("untolerated taint {node.kubernetes.io/unreachable"),
            Message("untolerated taint {node.kubernetes.io/unschedulable"),
            Message("untolerated taint {node.kubernetes.io/disk-pressure"),
            Message("untolerated taint {node.kubernetes.io/memory-pressure"),
            Message("untolerated taint {node.kubernetes.io/pid-pressure"),
            Message("untolerated taint {node.kubernetes.io/out-of-service"),
            Message("untolerated taint {node.kubernetes.io/network-unavailable"),
            Message("node is not ready"),
            Message("container runtime is down"),
            Message("pleg is not healthy"),
            Message("were unschedulable"),
        ];
    POD_NETWORK: "pod-network", Error, "The node cannot give the Pod a network.",
        "Look at the CNI plugin of the node: its Pods in `kube-system`, its log, and free addresses of the subnet. On Windows, restart the service `hns`, or the node.",
        words: [
            Message("failed to setup network for sandbox"),
            Message("failed to set up sandbox container * network"),
            Message("networkplugin cni failed"),
            Message("plugin type=\"*\" failed (add)"),
            Message("failed to assign an ip address to container"),
            Message("no ip addresses available in range set"),
            Message("hcncreateendpoint failed"),
            Message("hns failed with error"),
            Message("failed to retrieve network namespace"),
            Message("hnscall failed*object already exists"),
            Message("hns failed with error*object already exists"),
            Message("hnscall failed"),
            Message("hcnopennetwork failed"),
            Message("hcnopennamespace failed"),
            Message("hcnopenendpoint failed"),
            Message("hcncreatenamespace failed"),
            Message("hcncreatenetwork failed"),
            Message("cni plugin not initialized"),
            Message("failed to initialize key-value store of network plugin"),
            Message("failed to create endpoint"),
            Codes(&[
                "HCN_E_NETWORK_NOT_FOUND", "HCN_E_ENDPOINT_NOT_FOUND", "HCN_E_NETWORK_ALREADY_EXISTS", "HCN_E_ENDPOINT_ALREADY_ATTACHED",
                "HCN_E_NAMESPACE_ATTACH_FAILED",
            ]),
        ],
        remedies: {
            "label vpc.amazonaws.com/privateipv4address" => "Enable Windows on EKS: `enable-windows-ipam: \"true\"` in the ConfigMap `amazon-vpc-cni` of `kube-system`, and `kubernetes.io/os: windows` in the node selector of the Pod.",
        };
    POD_NOT_READY: "pod-not-ready", Error, "A Pod runs and is not ready, so its Services send it nothing.",
        "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows its conditions, and the events of its probes.";
    PROBE_UNAUTHORIZED: "probe-unauthorized", Error, "The application answers the probe of the kubelet, which has no identity, with 401.",
        "Let one path answer without authentication (IIS: anonymous authentication for it), or probe with `tcpSocket`. If it worked before, the application has lost its identity: `kubectl gmsa verify pod/POD -n NAMESPACE`.",
        words: [Message("probe failed: http probe failed with statuscode: 401")];
    NOT_STARTED: "not-started", Error, "A container of a Pod does not start, or has ended.",
        "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows its events; `kubectl gmsa explain` explains the text of one.",
        words: [
            General("failed to pull image"),
            General("errimagepull"),
            General("imagepullbackoff"),
            General("back-off pulling image"),
            General("errimageneverpull"),
            General("invalidimagename"),
            General("manifest unknown"),
            General("toomanyrequests"),
            General("crashloopbackoff"),
            General("back-off restarting failed container"),
            General("failed to create containerd task"),
            General("failed to create pod sandbox"),
            General("failed to create shim task"),
            General("failedcreatepodsandbox"),
            General("runcontainererror"),
            General("createcontainererror"),
            General("oomkilled"),
            General("is waiting to start"),
            General("failed to apply default image tag"),
            General("imageinspecterror"),
            General("createcomputesystem*access is denied"),
            General("createcomputesystem*element not found"),
            StartCodes(&["ERROR_NOT_FOUND", "STATUS_NOT_FOUND", "E_FAIL", "E_UNEXPECTED", "STATUS_UNSUCCESSFUL"]),
            General("createcomputesystem*requested resource is in use"),
            General("createcomputesystem*the handle is invalid"),
            General("createcomputesystem*catastrophic failure"),
            General("createcomputesystem*internal error occurred"),
            Start("createcomputesystem*the object already exists"),
            General("failed to get sandbox image"),
            General("failed to reserve sandbox name"),
            General("unable to retrieve some image pull secrets"),
            Message("runasnonroot and image will run as root"),
            Message("non-root policy"),
        ],
        remedies: {
            "e_fail" | "e_unexpected" | "status_unsuccessful" => "The code says no cause (unspecified): what returned it does. For a CCG plugin that is the log of the plugin, else the logs Microsoft-Windows-Containers-CCG/Admin and Microsoft-Windows-Hyper-V-Compute-Admin of the node: docs/troubleshooting.md says how to read them.",
            "createcomputesystem" => "Windows on the node failed: the log Microsoft-Windows-Hyper-V-Compute-Admin there says more. A restart of the service `vmcompute`, or of the node after a drain, clears what an earlier container left.",
            "runasnonroot" | "non-root policy" => "Set `runAsUserName: ContainerUser` or `NT AUTHORITY\\NETWORK SERVICE`: with `runAsNonRoot`, the kubelet refuses ContainerAdministrator.",
        };
    START_HOOK: "start-hook", Error, "The command of `lifecycle.postStart` failed, so the kubelet ends the container and starts it again.",
        "Run the command by hand in a Pod without the hook, as `kubectl logs` does not show what it prints. Where it is the netlogon hook of docs/troubleshooting.md, the container got no secure channel: `nltest /sc_verify:DOMAIN` says why.",
        words: [Message("failedpoststarthook"), Message("poststarthook failed"), Message("poststarthookerror"), Message("exec lifecycle hook")];
    EXIT_LIBRARY: "exit-library", Error, "A program in the container ended before it began: a library that it needs is missing, or is for other processors.",
        "Use an image that has what it needs: Server Core in place of Nano Server, the Visual C++ runtime, the .NET runtime, and the same architecture as the program.",
        words: [
            Codes(&[
                "STATUS_DLL_NOT_FOUND", "STATUS_ORDINAL_NOT_FOUND", "STATUS_ENTRYPOINT_NOT_FOUND", "STATUS_INVALID_IMAGE_FORMAT",
                "ERROR_MOD_NOT_FOUND", "ERROR_BAD_EXE_FORMAT",
            ]),
        ];
    EXIT_INITIALIZATION: "exit-initialization", Error, "A program in the container could not be initialized.",
        "Compare the builds of the image and the node first: docs/windows-pods.md. Then look at the memory of the node and the number of its containers, whose desktop heaps have a limit; a restart of the node frees them.",
        words: [Codes(&["STATUS_DLL_INIT_FAILED", "ERROR_DLL_INIT_FAILED"])];
    EXIT_CRASHED: "exit-crashed", Error, "A program in the container crashed. That is a fault of the program, not of its identity.",
        "`kubectl logs POD --namespace NAMESPACE --previous`, and the event log Application in the container, say where. 0xe0434352 is an exception of .NET that nothing caught.",
        words: [Codes(&[
            "STATUS_ACCESS_VIOLATION", "STATUS_STACK_OVERFLOW", "STATUS_HEAP_CORRUPTION", "STATUS_STACK_BUFFER_OVERRUN",
            "ERROR_PROCESS_ABORTED", "CLR_EXCEPTION", "EXCEPTION_COMPLUS", "EXCEPTION_MSC", "COR_E_FAILFAST", "STATUS_BREAKPOINT",
            "STATUS_ILLEGAL_INSTRUCTION", "STATUS_INTEGER_DIVIDE_BY_ZERO", "STATUS_INVALID_CRUNTIME_PARAMETER", "STATUS_ASSERTION_FAILURE",
            "STATUS_FAIL_FAST_EXCEPTION",
        ]),
            Exit(&[132, 134, 135, 136, 139, 1067])];
    EXIT_STOPPED: "exit-stopped", Note, "The container was stopped from outside: by a user or the kubelet.",
        "Look for the reason before it in `kubectl describe pod POD --namespace NAMESPACE`: a liveness probe, a rollout, an eviction.",
        words: [Codes(&["STATUS_CONTROL_C_EXIT", "DBG_TERMINATE_PROCESS"]), Exit(&[130, 137, 143])],
        remedies: {
            "exit code 137" => "`kubectl describe pod POD --namespace NAMESPACE` says which: `OOMKilled` is a memory limit that is too low. Otherwise the container did not end within its grace period after a liveness probe, a rollout or an eviction.",
        };
    NODE_MEMORY: "node-memory", Error, "The node has too little memory, or too small a page file.",
        "Give the Windows node a page file and more memory, or run fewer Pods on it. Set memory requests: Windows does not end processes for want of memory, it refuses more.",
        words: [
            Codes(&[
                "ERROR_NO_SYSTEM_RESOURCES", "ERROR_COMMITMENT_LIMIT", "STATUS_NO_MEMORY", "STATUS_INSUFFICIENT_RESOURCES",
                "STATUS_COMMITMENT_LIMIT",
            ]),
        ];
} }

/// The command that shows why pods of a workload are missing.
fn describe(names: &Names<'_>) -> Option<Fix> {
    let FixTarget::Workload { kind, name, .. } = names.target? else { return None };
    let verb = format!("describe {}", kind.as_str().to_ascii_lowercase());
    let describe = names.target?.command(&verb, name, "")?;
    Some(Fix::run(format!("{describe} shows its events and conditions.")))
}

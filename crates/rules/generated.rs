// Made of `crates/rules/data` by `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules --test generated`: do not edit.

#[doc = "Words of hcsshim, the kubelet and CCG: a text with one is about the start of a container."]
pub static START_WORDS: &[&str] = &["createcomputesystem", "encountered an error during", "createprocess", "winapi error", "hcs::", "pod sandbox", "containerd task", "external credentials", "credential guard"];
#[doc = "Words of commands and clients in a container."]
pub static RUNNING_WORDS: &[&str] = &["lsacallauthenticationpackage", "setspn", "dsbind", "netlogon", "trusted dc", "trust verification", "klist", "nltest", "dsgetdcname", "parent domain", "getting dc name", "nlsetstatus", "secure session", "exception", "system error", "sspi", "group policy", "securitycontext", "nt_status_", "status = ", "account failed to log on", "samlogon: ", "session setup failed", "failed to join"];
#[doc = "Words of a failed logon."]
pub static LOGON_WORDS: &[&str] = &["netlogon", "trusted dc", "trust verification", "klist", "nltest", "logon", "join", "getticket", "lsacallauthenticationpackage"];
#[doc = "Statuses that are too general: they count only if a logon or the start of a container failed."]
pub static VAGUE: &[&str] = &["ERROR_ACCESS_DENIED", "STATUS_ACCESS_DENIED", "ERROR_INVALID_PARAMETER", "STATUS_INVALID_PARAMETER", "ERROR_BAD_NETPATH", "ERROR_NOT_SUPPORTED", "STATUS_NOT_SUPPORTED", "ERROR_FILE_NOT_FOUND", "ERROR_PATH_NOT_FOUND", "ERROR_DIRECTORY", "ERROR_DISK_FULL", "ERROR_SERVICE_DISABLED", "ERROR_SERVICE_DOES_NOT_EXIST", "E_FAIL", "E_UNEXPECTED", "STATUS_UNSUCCESSFUL", "E_NOINTERFACE", "ERROR_NOT_FOUND", "STATUS_NOT_FOUND", "ERROR_INTERNAL_ERROR", "STATUS_INTERNAL_ERROR"];
#[doc = "Words before a code of Kerberos; the first are of the Windows events 4768, 4769 and 4771."]
pub static KERBEROS_CODES: &[&str] = &["failure code: 0x", "failure code 0x", "result code: 0x", "result code 0x", "kerberos error code", "kdc_err_", "krb_ap_err_"];
#[doc = "Words before a result of LDAP."]
pub static LDAP_CODES: &[&str] = &["ldap: error code", "ldap error code", "ldap result code"];
#[doc = "The node cannot parse the contents of the credential spec."]
pub static CONTENTS_REJECTED: Rule = Rule {
    id: "contents-rejected",
    severity: Severity::Error,
    title: "The node cannot parse the contents of the credential spec.",
    remedy: "Run `kubectl gmsa credspec lint` on the credential spec, correct it, and create the Pod again.",
};
#[doc = "Docker does not find the credential spec, or its option is written wrongly."]
pub static CREDENTIAL_SPEC_FILE: Rule = Rule {
    id: "credential-spec-file",
    severity: Severity::Error,
    title: "Docker does not find the credential spec, or its option is written wrongly.",
    remedy: "Write `--security-opt \"credentialspec=file://NAME.json\"`: NAME.json is in the folder `CredentialSpecs` of Docker (`C:\\ProgramData\\docker\\CredentialSpecs`), and never an absolute path.",
};
#[doc = "Windows refuses a parameter of the container. In a Pod with GMSA it is mostly a field of the credential spec."]
pub static START_PARAMETER: Rule = Rule {
    id: "start-parameter",
    severity: Severity::Error,
    title: "Windows refuses a parameter of the container. In a Pod with GMSA it is mostly a field of the credential spec.",
    remedy: "Run `kubectl gmsa credspec lint` on the credential spec: `PluginGUID` with braces, `Guid` without, `Sid` of the domain. Without GMSA, look at its mounts and devices.",
};
#[doc = "Windows on the node lacks updates that the container runtime needs, or a folder of the container is missing on it."]
pub static NODE_OUTDATED: Rule = Rule {
    id: "node-outdated",
    severity: Severity::Error,
    title: "Windows on the node lacks updates that the container runtime needs, or a folder of the container is missing on it.",
    remedy: "Install the updates of Windows on the node: containerd needs 17763.1817 or later on Windows Server 2019. If it has them, look at the mounts of the Pod.",
};
#[doc = "The node cannot start the plugin that the credential spec names."]
pub static PLUGIN_NOT_STARTED: Rule = Rule {
    id: "plugin-not-started",
    severity: Severity::Error,
    title: "The node cannot start the plugin that the credential spec names.",
    remedy: "Register the plugin on the node: its GUID must be a key of `HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses`, and its COM server must start as the user that it is registered with.",
};
#[doc = "The plugin gave the node no user to retrieve the password of the account with."]
pub static PLUGIN_FAILED: Rule = Rule {
    id: "plugin-failed",
    severity: Severity::Error,
    title: "The plugin gave the node no user to retrieve the password of the account with.",
    remedy: "Correct `PluginInput` of the credential spec, and let the node read the secret that it names: its managed identity or role needs that right.",
};
#[doc = "The domain refuses the user that the plugin gave, so the node cannot retrieve the password of the account with it."]
pub static PLUGIN_USER: Rule = Rule {
    id: "plugin-user",
    severity: Severity::Error,
    title: "The domain refuses the user that the plugin gave, so the node cannot retrieve the password of the account with it.",
    remedy: "Correct the secret of the plugin, for Azure Key Vault `DOMAIN\\USER:PASSWORD` with the DNS name of the domain, and the password in it. `Get-ADUser USER -Properties Enabled,LockedOut,PasswordExpired` says whether the user may log on.",
};
#[doc = "The node gets no whole answer from DNS, so it finds no directory service: TCP 53 is closed."]
pub static NODE_DNS_TCP: Rule = Rule {
    id: "node-dns-tcp",
    severity: Severity::Error,
    title: "The node gets no whole answer from DNS, so it finds no directory service: TCP 53 is closed.",
    remedy: "Let TCP 53 through, besides UDP, from the nodes to the DNS servers of the domain (security group, firewall): Windows repeats long answers over TCP. On the node, `Resolve-DnsName -Type SRV _ldap._tcp.dc._msdcs.DOMAIN -TcpOnly` tests it.",
};
#[doc = "The node could not retrieve the password of the account from the domain."]
pub static PASSWORD_NOT_RETRIEVED: Rule = Rule {
    id: "password-not-retrieved",
    severity: Severity::Error,
    title: "The node could not retrieve the password of the account from the domain.",
    remedy: "Add the user of the plugin, or the node where there is no plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and let the node reach a domain controller.",
};
#[doc = "The node could not set up the credentials of the container."]
pub static NODE_CREDENTIALS: Rule = Rule {
    id: "node-credentials",
    severity: Severity::Error,
    title: "The node could not set up the credentials of the container.",
    remedy: "The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.",
};
#[doc = "The node finds no domain controller, or reaches none."]
pub static NODE_NO_DOMAIN_CONTROLLER: Rule = Rule {
    id: "node-no-domain-controller",
    severity: Severity::Error,
    title: "The node finds no domain controller, or reaches none.",
    remedy: "Run `nltest /dsgetdc:DOMAIN` on the node: it must name a domain controller. Let the node resolve the domain by its DNS servers, and reach TCP and UDP 53, 88, 389 and 464, TCP 135, 445 and the dynamic ports.",
};
#[doc = "Windows could not log on the user of a container."]
pub static START_LOGON: Rule = Rule {
    id: "start-logon",
    severity: Severity::Error,
    title: "Windows could not log on the user of a container.",
    remedy: "Compare `runAsUserName` with the users of the image. If it is right, run `Test-ADServiceAccount NAME` on the node: it must say True.",
};
#[doc = "The build of Windows on the node does not run the image."]
pub static IMAGE_MISMATCH: Rule = Rule {
    id: "image-mismatch",
    severity: Severity::Error,
    title: "The build of Windows on the node does not run the image.",
    remedy: "Use the tag of the image for the build of the node, or a node for the image. See docs/windows-pods.md.",
};
#[doc = "The container, or the virtual machine around it, exited while Windows started it."]
pub static START_EXITED: Rule = Rule {
    id: "start-exited",
    severity: Severity::Error,
    title: "The container, or the virtual machine around it, exited while Windows started it.",
    remedy: "Read the log Microsoft-Windows-Hyper-V-Compute-Admin of the node. Too little memory on the node ends so too.",
};
#[doc = "The command of a container is not in its image."]
pub static START_COMMAND: Rule = Rule {
    id: "start-command",
    severity: Severity::Error,
    title: "The command of a container is not in its image.",
    remedy: "Correct `command`, or its path in the image.",
};
#[doc = "The node cannot unpack or mount the layers of an image."]
pub static IMAGE_LAYER: Rule = Rule {
    id: "image-layer",
    severity: Severity::Error,
    title: "The node cannot unpack or mount the layers of an image.",
    remedy: "Look at the free space of its disk, and exclude the folders of containerd from virus scans. If one image alone fails, remove it from the node (`crictl rmi`), so that it is pulled again.",
};
#[doc = "The service of Windows that runs containers does not answer, or is not there."]
pub static COMPUTE_SERVICE: Rule = Rule {
    id: "compute-service",
    severity: Severity::Error,
    title: "The service of Windows that runs containers does not answer, or is not there.",
    remedy: "Restart the service `vmcompute` on the node, or the node: drain it before.",
};
#[doc = "The runtime class of a Pod isolates its containers by Hyper-V, which Kubernetes does not support for Windows."]
pub static HYPER_V: Rule = Rule {
    id: "hyper-v",
    severity: Severity::Warning,
    title: "The runtime class of a Pod isolates its containers by Hyper-V, which Kubernetes does not support for Windows.",
    remedy: "Use a runtime class with process isolation, and nodes of the build of the image.",
};
#[doc = "The service account of a Pod does not exist."]
pub static SERVICE_ACCOUNT_MISSING: Rule = Rule {
    id: "service-account-missing",
    severity: Severity::Error,
    title: "The service account of a Pod does not exist.",
    remedy: "Create it: `kubectl create serviceaccount SERVICEACCOUNT --namespace NAMESPACE`. Or correct the name in the Pod.",
};
#[doc = "The runtime class of a Pod does not exist, so the API server refuses the Pod."]
pub static RUNTIME_CLASS_MISSING: Rule = Rule {
    id: "runtime-class-missing",
    severity: Severity::Error,
    title: "The runtime class of a Pod does not exist, so the API server refuses the Pod.",
    remedy: "Create it: `echo '{\"apiVersion\":\"node.k8s.io/v1\",\"kind\":\"RuntimeClass\",\"metadata\":{\"name\":\"RUNTIMECLASS\"},\"handler\":\"runhcs-wcow-process\"}' | kubectl apply -f -`. Or correct runtimeClassName in the Pod.",
};
#[doc = "A new Pod, or a Pod template, has ephemeral containers, so the API server refuses it."]
pub static EPHEMERAL_CONTAINERS: Rule = Rule {
    id: "ephemeral-containers",
    severity: Severity::Error,
    title: "A new Pod, or a Pod template, has ephemeral containers, so the API server refuses it.",
    remedy: "Remove them: `kubectl debug` adds them to a Pod that runs.",
};
#[doc = "A field or an annotation for GMSA is misspelt or in the wrong place, so Kubernetes ignores it."]
pub static IGNORED_FIELD: Rule = Rule {
    id: "ignored-field",
    severity: Severity::Error,
    title: "A field or an annotation for GMSA is misspelt or in the wrong place, so Kubernetes ignores it.",
    remedy: "Set `gmsaCredentialSpecName` in `securityContext.windowsOptions` of the Pod, or of a container.",
};
#[doc = "An object of another kind names a credential spec for Pods that its operator makes."]
pub static OPERATOR_PODS: Rule = Rule {
    id: "operator-pods",
    severity: Severity::Note,
    title: "An object of another kind names a credential spec for Pods that its operator makes.",
    remedy: "Nothing: the webhook checks these Pods when they are created. Their service account needs the verb `use`.",
};
#[doc = "The manifests of a folder are changed by another tool before they are applied, so they are not checked as they stand."]
pub static NOT_RENDERED: Rule = Rule {
    id: "not-rendered",
    severity: Severity::Warning,
    title: "The manifests of a folder are changed by another tool before they are applied, so they are not checked as they stand.",
    remedy: "Check what the tool prints: `kubectl kustomize FOLDER | kubectl gmsa check -f -`, or `helm template FOLDER | kubectl gmsa check -f -`.",
};
#[doc = "The files have no object that the command checks."]
pub static NOTHING_FOUND: Rule = Rule {
    id: "nothing-found",
    severity: Severity::Warning,
    title: "The files have no object that the command checks.",
    remedy: "Name other files, or look at what the program before the pipe printed.",
};
#[doc = "A container may be started on a node whose build of Windows does not run its image."]
pub static WINDOWS_BUILD: Rule = Rule {
    id: "windows-build",
    severity: Severity::Note,
    title: "A container may be started on a node whose build of Windows does not run its image.",
    remedy: "Select the builds that run the image (`node.kubernetes.io/windows-build`), or use a runtime class that does. A node runs images of its own release and, since Windows Server 2022, of the long-term release before it; never a newer one.",
};
#[doc = "An annotation has containerd run the containers of a Pod without the account, or with another one."]
pub static RUNTIME_ANNOTATION: Rule = Rule {
    id: "runtime-annotation",
    severity: Severity::Warning,
    title: "An annotation has containerd run the containers of a Pod without the account, or with another one.",
    remedy: "Remove the annotation.",
};
#[doc = "A Pod does not use GMSA."]
pub static NO_CREDENTIAL_SPEC: Rule = Rule {
    id: "no-credential-spec",
    severity: Severity::Warning,
    title: "A Pod does not use GMSA.",
    remedy: "Set `gmsaCredentialSpecName` in its `windowsOptions`; for tickets in a Linux Pod, the annotation `gmsa-webhook/tickets` of the Pod or its template.",
};
#[doc = "A Pod asks for tickets by its annotation, and has no sidecar that gets them."]
pub static TICKETS_NOT_INJECTED: Rule = Rule {
    id: "tickets-not-injected",
    severity: Severity::Error,
    title: "A Pod asks for tickets by its annotation, and has no sidecar that gets them.",
    remedy: "Delete the Pod: its controller creates a new one, which gets the sidecar. A Pod without a controller must be created again.",
};
#[doc = "A Pod carries contents that are not the current ones of a credential spec."]
pub static CONTENTS_OUTDATED: Rule = Rule {
    id: "contents-outdated",
    severity: Severity::Warning,
    title: "A Pod carries contents that are not the current ones of a credential spec.",
    remedy: "Restart its workload: `kubectl gmsa outdated -n NAMESPACE -o name | xargs -r kubectl rollout restart -n NAMESPACE`. Or delete the Pod: its controller creates a new one.",
};
#[doc = "The API server refuses the Pods of a workload, for another reason than GMSA."]
pub static POD_REFUSED: Rule = Rule {
    id: "pod-refused",
    severity: Severity::Error,
    title: "The API server refuses the Pods of a workload, for another reason than GMSA.",
    remedy: "Not known to be about GMSA: the message names the quota, the limit, the policy or the webhook that refuses the Pod, whose owner can help.",
};
#[doc = "A workload has fewer Pods than it wants."]
pub static PODS_MISSING: Rule = Rule {
    id: "pods-missing",
    severity: Severity::Error,
    title: "A workload has fewer Pods than it wants.",
    remedy: "`kubectl describe` of the workload, and of its ReplicaSet, shows events and conditions.",
};
#[doc = "A Pod was created a moment ago, or its image is pulled, and nothing has failed."]
pub static POD_STARTING: Rule = Rule {
    id: "pod-starting",
    severity: Severity::Note,
    title: "A Pod was created a moment ago, or its image is pulled, and nothing has failed.",
    remedy: "Wait: `kubectl gmsa why pod/POD --namespace NAMESPACE --watch` waits until it runs.",
};
#[doc = "A Pod is being deleted, and is still there."]
pub static POD_ENDING: Rule = Rule {
    id: "pod-ending",
    severity: Severity::Error,
    title: "A Pod is being deleted, and is still there.",
    remedy: "`kubectl describe pod POD --namespace NAMESPACE` shows its finalizers and its node.",
};
#[doc = "No container was asked yet whether it has its identity in the domain."]
pub static NOT_VERIFIED: Rule = Rule {
    id: "not-verified",
    severity: Severity::Note,
    title: "No container was asked yet whether it has its identity in the domain.",
    remedy: "Run `kubectl gmsa verify pod/POD -n NAMESPACE`.",
};
#[doc = "The Windows nodes that a Pod selects have a taint that it does not tolerate."]
pub static NODE_TAINT: Rule = Rule {
    id: "node-taint",
    severity: Severity::Error,
    title: "The Windows nodes that a Pod selects have a taint that it does not tolerate.",
    remedy: "If the taint is meant to stay, add a toleration to the Pod template: docs/windows-pods.md. A controller that sets a taint for a time removes it itself.",
};
#[doc = "A volume of a Pod cannot be mounted, or what it refers to is not there."]
pub static POD_VOLUME: Rule = Rule {
    id: "pod-volume",
    severity: Severity::Error,
    title: "A volume of a Pod cannot be mounted, or what it refers to is not there.",
    remedy: "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows each volume.",
};
#[doc = "No Windows node has the labels that a Pod selects, or matches its affinity."]
pub static NODE_SELECTOR: Rule = Rule {
    id: "node-selector",
    severity: Severity::Error,
    title: "No Windows node has the labels that a Pod selects, or matches its affinity.",
    remedy: "Compare its node selector, to which its runtime class may add, with `kubectl get nodes -L kubernetes.io/os,node.kubernetes.io/windows-build`. Windows nodes have `kubernetes.io/os: windows`, in lower case.",
};
#[doc = "A Pod is not on a node."]
pub static NOT_SCHEDULED: Rule = Rule {
    id: "not-scheduled",
    severity: Severity::Error,
    title: "A Pod is not on a node.",
    remedy: "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows what the scheduler says of each node.",
};
#[doc = "A Pod has failed: it was evicted, or a container of it ended with an error."]
pub static POD_FAILED: Rule = Rule {
    id: "pod-failed",
    severity: Severity::Error,
    title: "A Pod has failed: it was evicted, or a container of it ended with an error.",
    remedy: "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows more.",
};
#[doc = "The node of a Pod is not ready."]
pub static NODE_NOT_READY: Rule = Rule {
    id: "node-not-ready",
    severity: Severity::Error,
    title: "The node of a Pod is not ready.",
    remedy: "`kubectl describe node NODE` shows why. It is not about GMSA.",
};
#[doc = "The node cannot give the Pod a network."]
pub static POD_NETWORK: Rule = Rule {
    id: "pod-network",
    severity: Severity::Error,
    title: "The node cannot give the Pod a network.",
    remedy: "Look at the CNI plugin of the node: its Pods in `kube-system`, its log, and free addresses of the subnet. On Windows, restart the service `hns`, or the node.",
};
#[doc = "A Pod runs and is not ready, so its Services send it nothing."]
pub static POD_NOT_READY: Rule = Rule {
    id: "pod-not-ready",
    severity: Severity::Error,
    title: "A Pod runs and is not ready, so its Services send it nothing.",
    remedy: "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows its conditions, and the events of its probes.",
};
#[doc = "The application answers the probe of the kubelet, which has no identity, with 401."]
pub static PROBE_UNAUTHORIZED: Rule = Rule {
    id: "probe-unauthorized",
    severity: Severity::Error,
    title: "The application answers the probe of the kubelet, which has no identity, with 401.",
    remedy: "Let one path answer without authentication (IIS: anonymous authentication for it), or probe with `tcpSocket`. If it worked before, the application has lost its identity: `kubectl gmsa verify pod/POD -n NAMESPACE`.",
};
#[doc = "A container of a Pod does not start, or has ended."]
pub static NOT_STARTED: Rule = Rule {
    id: "not-started",
    severity: Severity::Error,
    title: "A container of a Pod does not start, or has ended.",
    remedy: "Not known to be about GMSA: `kubectl describe pod POD --namespace NAMESPACE` shows its events; `kubectl gmsa explain` explains the text of one.",
};
#[doc = "The command of `lifecycle.postStart` failed, so the kubelet ends the container and starts it again."]
pub static START_HOOK: Rule = Rule {
    id: "start-hook",
    severity: Severity::Error,
    title: "The command of `lifecycle.postStart` failed, so the kubelet ends the container and starts it again.",
    remedy: "Run the command by hand in a Pod without the hook, as `kubectl logs` does not show what it prints. Where it is the netlogon hook of docs/troubleshooting.md, the container got no secure channel: `nltest /sc_verify:DOMAIN` says why.",
};
#[doc = "A program in the container ended before it began: a library that it needs is missing, or is for other processors."]
pub static EXIT_LIBRARY: Rule = Rule {
    id: "exit-library",
    severity: Severity::Error,
    title: "A program in the container ended before it began: a library that it needs is missing, or is for other processors.",
    remedy: "Use an image that has what it needs: Server Core in place of Nano Server, the Visual C++ runtime, the .NET runtime, and the same architecture as the program.",
};
#[doc = "A program in the container could not be initialized."]
pub static EXIT_INITIALIZATION: Rule = Rule {
    id: "exit-initialization",
    severity: Severity::Error,
    title: "A program in the container could not be initialized.",
    remedy: "Compare the builds of the image and the node first: docs/windows-pods.md. Then look at the memory of the node and the number of its containers, whose desktop heaps have a limit; a restart of the node frees them.",
};
#[doc = "A program in the container crashed. That is a fault of the program, not of its identity."]
pub static EXIT_CRASHED: Rule = Rule {
    id: "exit-crashed",
    severity: Severity::Error,
    title: "A program in the container crashed. That is a fault of the program, not of its identity.",
    remedy: "`kubectl logs POD --namespace NAMESPACE --previous`, and the event log Application in the container, say where. 0xe0434352 is an exception of .NET that nothing caught.",
};
#[doc = "The container was stopped from outside: by a user or the kubelet."]
pub static EXIT_STOPPED: Rule = Rule {
    id: "exit-stopped",
    severity: Severity::Note,
    title: "The container was stopped from outside: by a user or the kubelet.",
    remedy: "Look for the reason before it in `kubectl describe pod POD --namespace NAMESPACE`: a liveness probe, a rollout, an eviction.",
};
#[doc = "The node has too little memory, or too small a page file."]
pub static NODE_MEMORY: Rule = Rule {
    id: "node-memory",
    severity: Severity::Error,
    title: "The node has too little memory, or too small a page file.",
    remedy: "Give the Windows node a page file and more memory, or run fewer Pods on it. Set memory requests: Windows does not end processes for want of memory, it refuses more.",
};
#[doc = "The API server is older than the chart supports, or has no match conditions."]
pub static KUBERNETES_VERSION: Rule = Rule {
    id: "kubernetes-version",
    severity: Severity::Error,
    title: "The API server is older than the chart supports, or has no match conditions.",
    remedy: "Upgrade the cluster: the chart needs Kubernetes 1.25 or later, the chart of tickets 1.29. From 1.28 on there are match conditions, from 1.30 on the guard.",
};
#[doc = "A namespace is being deleted, so nothing is created in it."]
pub static NAMESPACE_UNUSABLE: Rule = Rule {
    id: "namespace-unusable",
    severity: Severity::Error,
    title: "A namespace is being deleted, so nothing is created in it.",
    remedy: "Use another namespace (`--namespace`), or wait until it is gone and create it again. `kubectl get namespace NAMESPACE -o yaml` says what it waits for.",
};
#[doc = "The custom resource for credential specs exists, and is not this project's."]
pub static CRD_FOREIGN: Rule = Rule {
    id: "crd-foreign",
    severity: Severity::Warning,
    title: "The custom resource for credential specs exists, and is not this project's.",
    remedy: "Keep it, and install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place.",
};
#[doc = "Credential specs may be stored in a version that is deprecated."]
pub static STORED_VERSION: Rule = Rule {
    id: "stored-version",
    severity: Severity::Note,
    title: "Credential specs may be stored in a version that is deprecated.",
    remedy: "Set `crds.upgrade=true` in the chart, whose Job has each written again and removes the version from `status.storedVersions` of the custom resource; `kubectl gmsa doctor --pre` prints the commands for doing that by hand.",
};
#[doc = "Another webhook for GMSA is installed."]
pub static WEBHOOK_PRESENT: Rule = Rule {
    id: "webhook-present",
    severity: Severity::Warning,
    title: "Another webhook for GMSA is installed.",
    remedy: "Upgrade it in place: docs/migrate.md. With two webhooks, both must admit a Pod.",
};
#[doc = "The custom resource for credential specs is not installed."]
pub static CRD_MISSING: Rule = Rule {
    id: "crd-missing",
    severity: Severity::Error,
    title: "The custom resource for credential specs is not installed.",
    remedy: "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`. It brings the CRD GMSACredentialSpec.",
};
#[doc = "The custom resource for credential specs is not established, or does not serve `v1`."]
pub static CRD_NOT_SERVED: Rule = Rule {
    id: "crd-not-served",
    severity: Severity::Error,
    title: "The custom resource for credential specs is not established, or does not serve `v1`.",
    remedy: "Apply the CRD of the chart. `kubectl describe crd` shows its conditions.",
};
#[doc = "The custom resource for credential specs is older than this release."]
pub static CRD_OUTDATED: Rule = Rule {
    id: "crd-outdated",
    severity: Severity::Warning,
    title: "The custom resource for credential specs is older than this release.",
    remedy: "Set `crds.upgrade=true` in the chart, or run `helm show crds CHART | kubectl apply --server-side --force-conflicts -f -`.",
};
#[doc = "Webhook configurations of several installations are for GMSA."]
pub static WEBHOOK_DUPLICATE: Rule = Rule {
    id: "webhook-duplicate",
    severity: Severity::Warning,
    title: "Webhook configurations of several installations are for GMSA.",
    remedy: "All of them must admit a Pod. Keep one, and uninstall the others: `helm uninstall`. The webhook of AKS (`--enable-windows-gmsa`) does not count: keep it.",
};
#[doc = "A webhook configuration does not send all requests that the webhook must review."]
pub static WEBHOOK_RULES: Rule = Rule {
    id: "webhook-rules",
    severity: Severity::Error,
    title: "A webhook configuration does not send all requests that the webhook must review.",
    remedy: "Upgrade the chart: its rules contain them.",
};
#[doc = "A webhook configuration lets Pods pass while the webhook is down."]
pub static FAILURE_POLICY: Rule = Rule {
    id: "failure-policy",
    severity: Severity::Error,
    title: "A webhook configuration lets Pods pass while the webhook is down.",
    remedy: "Set `failurePolicy: Fail`.",
};
#[doc = "A webhook configuration sends Pods that do not use GMSA."]
pub static MATCH_CONDITIONS: Rule = Rule {
    id: "match-conditions",
    severity: Severity::Warning,
    title: "A webhook configuration sends Pods that do not use GMSA.",
    remedy: "Upgrade the chart: its `matchConditions` leave them out.",
};
#[doc = "The selectors of a webhook configuration were changed after the installation."]
pub static SELECTORS_CHANGED: Rule = Rule {
    id: "selectors-changed",
    severity: Severity::Warning,
    title: "The selectors of a webhook configuration were changed after the installation.",
    remedy: "Remove the selectors with the `kubectl patch` that `kubectl gmsa doctor` prints, then run `helm upgrade` (Helm 4: with `--force-conflicts`), which restores those of the chart's values. On AKS, the chart's annotation `admissions.enforcer/disabled` keeps the selectors as they are.",
};
#[doc = "The webhook does not review the Pods of a namespace."]
pub static NAMESPACES_EXCLUDED: Rule = Rule {
    id: "namespaces-excluded",
    severity: Severity::Warning,
    title: "The webhook does not review the Pods of a namespace.",
    remedy: "Compare the labels of the namespace with the `namespaceSelector` of the webhooks.",
};
#[doc = "The API server cannot call the webhook."]
pub static WEBHOOK_UNREACHABLE: Rule = Rule {
    id: "webhook-unreachable",
    severity: Severity::Error,
    title: "The API server cannot call the webhook.",
    remedy: "Check its Pods, its Service, the network between, and the `caBundle` against the certificate.",
};
#[doc = "Another writer removes the CA from a webhook configuration, and Pods are refused until it is written again."]
pub static CA_BUNDLE_CONTESTED: Rule = Rule {
    id: "ca-bundle-contested",
    severity: Severity::Warning,
    title: "Another writer removes the CA from a webhook configuration, and Pods are refused until it is written again.",
    remedy: "The log of the webhook names the field manager. Have it leave `caBundle` alone: remove the annotation `cert-manager.io/inject-ca-from` where the webhook manages its own certificate, or have the GitOps tool ignore the field.",
};
#[doc = "Replicas replace each other's certificate in the Secret that they share."]
pub static REPLICAS_DISAGREE: Rule = Rule {
    id: "replicas-disagree",
    severity: Severity::Warning,
    title: "Replicas replace each other's certificate in the Secret that they share.",
    remedy: "Give all replicas the same version, `--self-managed-service` and time. The log of the webhook says what the other replica has. Two releases must not share a Secret.",
};
#[doc = "The webhook, the sidecar that it injects and the broker of tickets are of different releases."]
pub static BROKER_VERSION: Rule = Rule {
    id: "broker-version",
    severity: Severity::Warning,
    title: "The webhook, the sidecar that it injects and the broker of tickets are of different releases.",
    remedy: "Upgrade both charts to one release: `helm upgrade`. `tickets.image` in the chart of the webhook names the image of the sidecar.",
};
#[doc = "The namespace of the webhook was deleted, and its configurations remain, so Pods with GMSA are refused. Before Kubernetes 1.28, all Pods outside of `kube-system` and that namespace are."]
pub static WEBHOOK_GONE: Rule = Rule {
    id: "webhook-gone",
    severity: Severity::Error,
    title: "The namespace of the webhook was deleted, and its configurations remain, so Pods with GMSA are refused. Before Kubernetes 1.28, all Pods outside of `kube-system` and that namespace are.",
    remedy: "Install it again, with the values of before: `helm install gmsa-webhook CHART -n NAMESPACE --create-namespace` (Helm 4: with `--force-conflicts`). Or end the checks: `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found NAME zz-NAME` and `kubectl delete validatingadmissionpolicybinding --ignore-not-found NAME-guard NAME-guard-trial` (Kubernetes 1.30 and later).",
};
#[doc = "The webhook answers, but it cannot check Pods, because the API server refuses what it asks."]
pub static WEBHOOK_FAILING: Rule = Rule {
    id: "webhook-failing",
    severity: Severity::Error,
    title: "The webhook answers, but it cannot check Pods, because the API server refuses what it asks.",
    remedy: "Look at the log of its Pods, which names the call that fails.",
};
#[doc = "A replica of the webhook is slow, or gets more requests than it takes at once."]
pub static WEBHOOK_OVERLOADED: Rule = Rule {
    id: "webhook-overloaded",
    severity: Severity::Warning,
    title: "A replica of the webhook is slow, or gets more requests than it takes at once.",
    remedy: "Raise `replicaCount`, or `resources.limits.memory`, from which its limits follow. Slow answers of the API server slow it too: the dashboard shows both.",
};
#[doc = "The webhook cannot follow changes of credential specs, so it reads each one when it is asked for. Answers stay right."]
pub static WEBHOOK_WATCH: Rule = Rule {
    id: "webhook-watch",
    severity: Severity::Warning,
    title: "The webhook cannot follow changes of credential specs, so it reads each one when it is asked for. Answers stay right.",
    remedy: "Look at its log: the API server is away, a proxy between withholds answers, or the ClusterRole lacks `list` and `watch`.",
};
#[doc = "The webhook cannot listen at its port."]
pub static PORT_TAKEN: Rule = Rule {
    id: "port-taken",
    severity: Severity::Error,
    title: "The webhook cannot listen at its port.",
    remedy: "Another process has the port, which happens with `hostNetwork`: set `containerPort` or `adminPort`, from 1024 on.",
};
#[doc = "The API server creates a Pod that uses GMSA without a call of the webhook."]
pub static WEBHOOK_NOT_CALLED: Rule = Rule {
    id: "webhook-not-called",
    severity: Severity::Error,
    title: "The API server creates a Pod that uses GMSA without a call of the webhook.",
    remedy: "Check whether the namespace is excluded, and whether a webhook configuration sends Pods.",
};
#[doc = "Denials are not enforced."]
pub static NOT_ENFORCED: Rule = Rule {
    id: "not-enforced",
    severity: Severity::Warning,
    title: "Denials are not enforced.",
    remedy: "End the trial: set `webhooks.enforcement=Enforce` in the chart, or remove the namespace from `webhooks.warnNamespaces`.",
};
#[doc = "The webhook, or the broker of tickets, denies many more requests than usual."]
pub static DENIALS_RISE: Rule = Rule {
    id: "denials-rise",
    severity: Severity::Warning,
    title: "The webhook, or the broker of tickets, denies many more requests than usual.",
    remedy: "Its log names the Pods and their service accounts. A changed credential spec, a removed RoleBinding or a new workload is the usual cause: `kubectl gmsa explain REASON` says what the reason of the alert means.",
};
#[doc = "Pods of a namespace got a keytab, and none of that namespace did before."]
pub static KEYTAB_NAMESPACE: Rule = Rule {
    id: "keytab-namespace",
    severity: Severity::Warning,
    title: "Pods of a namespace got a keytab, and none of that namespace did before.",
    remedy: "The lines \"keytabs given\" in the log of the broker name the Pods and the credential spec: `kubectl logs -n gmsa-tickets deployment/gmsa-tickets`. If nobody meant it, delete the RoleBinding that gives `export`, and change the password of the account.",
};
#[doc = "The webhook is called by a URL instead of a Service, so its Pods are not checked."]
pub static WEBHOOK_URL: Rule = Rule {
    id: "webhook-url",
    severity: Severity::Warning,
    title: "The webhook is called by a URL instead of a Service, so its Pods are not checked.",
    remedy: "Use a Service, or check the process at the URL.",
};
#[doc = "The Service of the webhook, or of the broker of tickets, has no ready endpoint, or only one."]
pub static ENDPOINTS: Rule = Rule {
    id: "endpoints",
    severity: Severity::Error,
    title: "The Service of the webhook, or of the broker of tickets, has no ready endpoint, or only one.",
    remedy: "Run at least two replicas: Pods are then admitted while one of them is replaced. Without any, see why the Pods of the webhook are not ready: `kubectl gmsa doctor`.",
};
#[doc = "The service account of the webhook lacks a permission."]
pub static WEBHOOK_PERMISSIONS: Rule = Rule {
    id: "webhook-permissions",
    severity: Severity::Error,
    title: "The service account of the webhook lacks a permission.",
    remedy: "Run `helm upgrade`, which creates the roles and bindings of the chart again. Without Helm, apply the manifest again.",
};
#[doc = "A Secret that the Pods of the webhook need does not exist."]
pub static SECRET_MISSING: Rule = Rule {
    id: "secret-missing",
    severity: Severity::Error,
    title: "A Secret that the Pods of the webhook need does not exist.",
    remedy: "Create it again. `helm upgrade` creates it for a self-managed certificate, and the webhook fills it in. cert-manager creates its own. For your own, see docs/certificates.md.",
};
#[doc = "AKS does not enable GMSA for the cluster as it is asked to."]
pub static AKS_REFUSES: Rule = Rule {
    id: "aks-refuses",
    severity: Severity::Error,
    title: "AKS does not enable GMSA for the cluster as it is asked to.",
    remedy: "Run `az aks update --enable-windows-gmsa --gmsa-dns-server IP --gmsa-root-domain-name DOMAIN` on a cluster with a managed identity. It reimages the Windows node pools, so their Pods restart.",
};
#[doc = "The cluster has no Windows node."]
pub static WINDOWS_NODES: Rule = Rule {
    id: "windows-nodes",
    severity: Severity::Warning,
    title: "The cluster has no Windows node.",
    remedy: "Add one: until then, Pods that use GMSA stay Pending.",
};
#[doc = "The API server does not run a command in the container."]
pub static EXEC_REFUSED: Rule = Rule {
    id: "exec-refused",
    severity: Severity::Error,
    title: "The API server does not run a command in the container.",
    remedy: "Have `create` on `pods/exec` granted in the namespace: `kubectl create role gmsa-verify --namespace NAMESPACE --verb=create,get --resource=pods/exec`, then bind it. The API server must also reach the kubelet of the node.",
};
#[doc = "A command in the container did not end in time: a firewall drops its packets, or a server does not answer."]
pub static NO_ANSWER: Rule = Rule {
    id: "no-answer",
    severity: Severity::Error,
    title: "A command in the container did not end in time: a firewall drops its packets, or a server does not answer.",
    remedy: "Let the Pod network reach the domain controllers: TCP and UDP 53, 88 and 389, TCP 135, 445 and the dynamic ports. `--timeout` waits longer.",
};
#[doc = "Windows gave the container no credential spec, or no logon session of the account."]
pub static NO_CREDENTIALS: Rule = Rule {
    id: "no-credentials",
    severity: Severity::Error,
    title: "Windows gave the container no credential spec, or no logon session of the account.",
    remedy: "Create the Pod again. If that does not help, the log Microsoft-Windows-Containers-CCG/Admin of the node says why. See docs/troubleshooting.md.",
};
#[doc = "The container finds no domain controller in DNS."]
pub static DOMAIN_DNS: Rule = Rule {
    id: "domain-dns",
    severity: Severity::Error,
    title: "The container finds no domain controller in DNS.",
    remedy: "Forward the domain to its DNS servers in the DNS of the cluster: docs/windows-pods.md, DNS, has the text for each platform. Let UDP 53 through.",
};
#[doc = "A machine could not write its own records into DNS."]
pub static DNS_REGISTRATION: Rule = Rule {
    id: "dns-registration",
    severity: Severity::Warning,
    title: "A machine could not write its own records into DNS.",
    remedy: "If it is a domain controller, correct its DNS servers and the rights on the zone, then restart Netlogon there: clients find it by these records. If it is a container, ignore it: its address needs no record.",
};
#[doc = "The container finds the domain controllers over UDP, but not over TCP."]
pub static DOMAIN_DNS_TCP: Rule = Rule {
    id: "domain-dns-tcp",
    severity: Severity::Error,
    title: "The container finds the domain controllers over UDP, but not over TCP.",
    remedy: "Let TCP 53 through: Windows repeats long answers over TCP.",
};
#[doc = "No domain controller answers the container."]
pub static NO_DOMAIN_CONTROLLER: Rule = Rule {
    id: "no-domain-controller",
    severity: Severity::Error,
    title: "No domain controller answers the container.",
    remedy: "Let the Pod network reach the domain controllers (TCP and UDP 88 and 389, TCP 135, 445 and the dynamic ports), without NAT.",
};
#[doc = "The container has not logged on to the domain."]
pub static NO_SECURE_CHANNEL: Rule = Rule {
    id: "no-secure-channel",
    severity: Severity::Error,
    title: "The container has not logged on to the domain.",
    remedy: "Run `nltest /sc_reset:DOMAIN` in it. If that helps, its network came up after its logon; otherwise compare the credential spec with the domain: `kubectl gmsa credspec lint`, `kubectl gmsa account lint`.",
};
#[doc = "The service Netlogon does not run in the container."]
pub static NETLOGON_STOPPED: Rule = Rule {
    id: "netlogon-stopped",
    severity: Severity::Error,
    title: "The service Netlogon does not run in the container.",
    remedy: "Start it: `net start netlogon`. It runs in images of Server Core and Server, not of Nano Server, and only where the container has a credential spec: `nltest /parentdomain`.",
};
#[doc = "The domain denies the logon of the account."]
pub static LOGON_DENIED: Rule = Rule {
    id: "logon-denied",
    severity: Severity::Error,
    title: "The domain denies the logon of the account.",
    remedy: "Run `Test-ADServiceAccount NAME` on the node. If it says False, add the node, or the user of the plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and restart the node. Status 5 of `nltest /sc_verify` says so to administrators alone; to NETWORK SERVICE it says nothing of the account.",
};
#[doc = "The account is disabled, locked out or has expired: Kerberos does not say which."]
pub static ACCOUNT_REVOKED: Rule = Rule {
    id: "account-revoked",
    severity: Severity::Error,
    title: "The account is disabled, locked out or has expired: Kerberos does not say which.",
    remedy: "`Get-ADServiceAccount NAME -Properties Enabled,LockedOut,AccountExpirationDate` says it. Then `Enable-ADAccount`, `Unlock-ADAccount` or `Clear-ADAccountExpiration`.",
};
#[doc = "The account is locked out."]
pub static ACCOUNT_LOCKED: Rule = Rule {
    id: "account-locked",
    severity: Severity::Error,
    title: "The account is locked out.",
    remedy: "Unlock it: `Unlock-ADAccount -Identity 'NAME$'`. Domain controllers generate its password: an attacker tries to guess it, or a node uses an old one.",
};
#[doc = "A client uses Netlogon without secure RPC, which domain controllers refuse, or tolerate for now."]
pub static NETLOGON_INSECURE: Rule = Rule {
    id: "netlogon-insecure",
    severity: Severity::Warning,
    title: "A client uses Netlogon without secure RPC, which domain controllers refuse, or tolerate for now.",
    remedy: "Update the machine that the event names, or replace it: every Windows that runs containers uses secure RPC. `Allow vulnerable Netlogon secure channel connections` in the group policy is for the time until then.",
};
#[doc = "The domain controller does not trust the container."]
pub static TRUST_FAILED: Rule = Rule {
    id: "trust-failed",
    severity: Severity::Error,
    title: "The domain controller does not trust the container.",
    remedy: "Compare `Sid`, `Guid` and `MachineAccountName` of the credential spec with the domain: `kubectl gmsa account lint --credspec`. Where several Pods with one account fail by turns, set `randomHostname` in the chart.",
};
#[doc = "A domain controller does not validate the ticket of a client for a Windows server (PAC, Network Ticket Logon)."]
pub static PAC_VALIDATION: Rule = Rule {
    id: "pac-validation",
    severity: Severity::Error,
    title: "A domain controller does not validate the ticket of a client for a Windows server (PAC, Network Ticket Logon).",
    remedy: "Install the updates of 2024 (KB5037754 and later) on all domain controllers and servers, in each domain of the trust: both sides of this check need them. The reason in the event says more, such as `SID filtering` of a trust. The account of the client is not at fault.",
};
#[doc = "The clocks of the node and of the domain controller differ too much for Kerberos."]
pub static CLOCK_SKEW: Rule = Rule {
    id: "clock-skew",
    severity: Severity::Error,
    title: "The clocks of the node and of the domain controller differ too much for Kerberos.",
    remedy: "Correct the clock of the node: `w32tm /query /status`, `w32tm /resync`, on Linux `chronyc tracking`. Kerberos allows 5 minutes.",
};
#[doc = "The domain does not know the service that a ticket is asked for, knows it twice, or under another account."]
pub static PRINCIPAL_UNKNOWN: Rule = Rule {
    id: "principal-unknown",
    severity: Severity::Error,
    title: "The domain does not know the service that a ticket is asked for, knows it twice, or under another account.",
    remedy: "Register the service principal name (SPN) of the service, once only: `setspn -Q SPN` finds it, `setspn -X` lists duplicates.",
};
#[doc = "The account and the domain controller have no encryption type in common."]
pub static TICKET_ENCRYPTION: Rule = Rule {
    id: "ticket-encryption",
    severity: Severity::Error,
    title: "The account and the domain controller have no encryption type in common.",
    remedy: "`Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`, and compare with the policy of the domain controllers.",
};
#[doc = "The client's own settings forbid an encryption type of Kerberos, or its library lacks it."]
pub static CLIENT_ENCRYPTION: Rule = Rule {
    id: "client-encryption",
    severity: Severity::Error,
    title: "The client's own settings forbid an encryption type of Kerberos, or its library lacks it.",
    remedy: "Change the client: nothing in Active Directory is wrong. Leave `permitted_enctypes`, `default_tkt_enctypes` and `default_tgs_enctypes` out of krb5.conf, or name `aes256-cts-hmac-sha1-96` there. The crypto policy of the image (`update-crypto-policies --show`) and FIPS forbid RC4.",
};
#[doc = "The container is in another domain than its credential spec says."]
pub static OTHER_DOMAIN: Rule = Rule {
    id: "other-domain",
    severity: Severity::Error,
    title: "The container is in another domain than its credential spec says.",
    remedy: "Create the Pod again. If it is a hostProcess Pod, it has the domain of its node: remove `hostProcess`.",
};
#[doc = "The tickets in the container are not those of the account."]
pub static OTHER_ACCOUNT: Rule = Rule {
    id: "other-account",
    severity: Severity::Error,
    title: "The tickets in the container are not those of the account.",
    remedy: "Create the Pod again. If it is a hostProcess Pod, it has the tickets of its node: remove `hostProcess`.",
};
#[doc = "A command in the container failed with a status whose cause is not known here."]
pub static UNKNOWN_STATUS: Rule = Rule {
    id: "unknown-status",
    severity: Severity::Error,
    title: "A command in the container failed with a status whose cause is not known here.",
    remedy: "Run the command by hand: `kubectl exec`. `net helpmsg CODE` explains a decimal code.",
};
#[doc = "The cmdlets find no domain controller that runs Active Directory Web Services."]
pub static DIRECTORY_SERVICES: Rule = Rule {
    id: "directory-services",
    severity: Severity::Error,
    title: "The cmdlets find no domain controller that runs Active Directory Web Services.",
    remedy: "Run them on a machine of the domain, or name a domain controller: `-Server DC`. TCP 9389 must be open to it, and the service ADWS must run there.",
};
#[doc = "The PowerShell module of a cmdlet is not installed."]
pub static CMDLET_MISSING: Rule = Rule {
    id: "cmdlet-missing",
    severity: Severity::Error,
    title: "The PowerShell module of a cmdlet is not installed.",
    remedy: "`Install-WindowsFeature RSAT-AD-PowerShell` brings the cmdlets for accounts, `Install-Module CredentialSpec` those for credential specs of Docker, `Install-Module AksGMSA` those of AKS.",
};
#[doc = "A cmdlet has no such parameter, or a value without one."]
pub static POWERSHELL_PARAMETER: Rule = Rule {
    id: "powershell-parameter",
    severity: Severity::Error,
    title: "A cmdlet has no such parameter, or a value without one.",
    remedy: "Compare the spelling with `Get-Help CMDLET -Parameter *`: a `-` with a blank behind it, or a long dash from a web page, does not begin a parameter. Attributes of an account follow `-Properties` or `-Replace`. An older module has fewer parameters.",
};
#[doc = "A group or computer that a cmdlet names for an account does not exist."]
pub static PRINCIPAL_UNRESOLVED: Rule = Rule {
    id: "principal-unresolved",
    severity: Severity::Error,
    title: "A group or computer that a cmdlet names for an account does not exist.",
    remedy: "Write the name of a group, or of a computer followed by `$`: `-PrincipalsAllowedToRetrieveManagedPassword 'NODE$'`. `Get-ADGroup` and `Get-ADComputer` show names.",
};
#[doc = "An account of this name exists already in the domain."]
pub static ACCOUNT_EXISTS: Rule = Rule {
    id: "account-exists",
    severity: Severity::Error,
    title: "An account of this name exists already in the domain.",
    remedy: "Use it, or choose another name: computers, users and service accounts share one list of names. `Get-ADObject -Filter 'sAMAccountName -like \"NAME*\"'` finds it.",
};
#[doc = "The user lacks a right in the directory."]
pub static DIRECTORY_DENIED: Rule = Rule {
    id: "directory-denied",
    severity: Severity::Error,
    title: "The user lacks a right in the directory.",
    remedy: "Run it as a domain administrator, or as one to whom the container Managed Service Accounts is delegated. In a managed domain nobody is a domain administrator: in Entra Domain Services create the account in an organizational unit of your own (`New-ADServiceAccount ... -Path 'OU=Apps,DC=contoso,DC=com'`); at AWS and Google be in the group `AWS Delegated Managed Service Account Administrators` or `Cloud Service Managed Service Account Administrators`.",
};
#[doc = "A domain controller does not take a change as it is asked for."]
pub static DIRECTORY_UNWILLING: Rule = Rule {
    id: "directory-unwilling",
    severity: Severity::Error,
    title: "A domain controller does not take a change as it is asked for.",
    remedy: "Compare the values: `-ManagedPasswordIntervalInDays` can be set by `New-ADServiceAccount` alone, and a name has at most 15 characters. A domain controller before Windows Server 2012 makes no gMSA: name a newer one, `-Server DC`.",
};
#[doc = "A domain controller does not accept the credentials of an LDAP client."]
pub static LDAP_CREDENTIALS: Rule = Rule {
    id: "ldap-credentials",
    severity: Severity::Error,
    title: "A domain controller does not accept the credentials of an LDAP client.",
    remedy: "Correct the user and the password. The code after `data` says why: 525 no such user, 52e wrong password, 530 hours, 531 workstation, 532 or 773 password expired, 533 disabled, 701 account expired, 775 locked out.",
};
#[doc = "The domain controller takes binds only with signing or TLS."]
pub static LDAP_SIGNING: Rule = Rule {
    id: "ldap-signing",
    severity: Severity::Error,
    title: "The domain controller takes binds only with signing or TLS.",
    remedy: "Use `ldaps://` (TCP 636) or StartTLS. Policies on LDAP signing and channel binding of the domain controllers demand it.",
};
#[doc = "The server demands channel binding, and the client sent none, or that of another TLS connection. The password is right."]
pub static CHANNEL_BINDING: Rule = Rule {
    id: "channel-binding",
    severity: Severity::Error,
    title: "The server demands channel binding, and the client sent none, or that of another TLS connection. The password is right.",
    remedy: "Use a client that sends it: OpenLDAP with `SASL_CBINDING tls-endpoint` in ldap.conf, Java with `com.sun.jndi.ldap.tls.cbtype=tls-server-end-point`, a current SQL driver. No proxy between may end TLS. LDAP with signing and sealing on TCP 389 needs none.",
};
#[doc = "An LDAP client reaches no domain controller."]
pub static LDAP_UNREACHABLE: Rule = Rule {
    id: "ldap-unreachable",
    severity: Severity::Error,
    title: "An LDAP client reaches no domain controller.",
    remedy: "Check the name, and TCP 389 or 636: `nltest /dsgetdc:DOMAIN`, `openssl s_client -connect DC:636`. A certificate that is not trusted looks the same to some clients.",
};
#[doc = "The password of a user has expired, or must be changed before the first logon."]
pub static PASSWORD_EXPIRED: Rule = Rule {
    id: "password-expired",
    severity: Severity::Error,
    title: "The password of a user has expired, or must be changed before the first logon.",
    remedy: "Set a new one, and write it where it is read: the secret of the CCG plugin, or the configuration of the client. The password of a gMSA never expires for its hosts.",
};
#[doc = "A policy of the domain restricts where or when the account may log on."]
pub static LOGON_RESTRICTED: Rule = Rule {
    id: "logon-restricted",
    severity: Severity::Error,
    title: "A policy of the domain restricts where or when the account may log on.",
    remedy: "Look at its logon workstations and hours, and at authentication policies and silos: `Get-ADServiceAccount NAME -Properties *`. NTLM can be the cause: members of Protected Users can use only Kerberos.",
};
#[doc = "The account may not log on in this way on this machine."]
pub static LOGON_TYPE: Rule = Rule {
    id: "logon-type",
    severity: Severity::Error,
    title: "The account may not log on in this way on this machine.",
    remedy: "Give it the right `Log on as a service` (or `as a batch job`) in the local security policy of the machine, and look for a policy that denies it.",
};
#[doc = "A Windows service cannot log on as its account."]
pub static SERVICE_LOGON: Rule = Rule {
    id: "service-logon",
    severity: Severity::Error,
    title: "A Windows service cannot log on as its account.",
    remedy: "Write the account with `$` and without a password (`CONTOSO\\NAME$`), and run `Test-ADServiceAccount NAME` on the machine: it must say True. In a container, run the service as NETWORK SERVICE.",
};
#[doc = "The agent of a Linux Pod does not reach the broker, or something else answers in its place."]
pub static BROKER_UNREACHABLE: Rule = Rule {
    id: "broker-unreachable",
    severity: Severity::Error,
    title: "The agent of a Linux Pod does not reach the broker, or something else answers in its place.",
    remedy: "Look whether its Pods run (`kubectl get pods --namespace gmsa-tickets`), and let TCP 443 through to them: a NetworkPolicy of either namespace may forbid it. Pods that run keep their tickets meanwhile.",
};
#[doc = "The agent of a Linux Pod does not trust the certificate of the broker."]
pub static BROKER_UNTRUSTED: Rule = Rule {
    id: "broker-untrusted",
    severity: Severity::Error,
    title: "The agent of a Linux Pod does not trust the certificate of the broker.",
    remedy: "Put the CA of the broker, `ca.crt` in the Secret `gmsa-tickets-tls`, into `tickets.broker.ca` of the webhook's chart or into `--broker-ca`, then create the Pods again: a Pod keeps the CAs that it was created with.",
};
#[doc = "The image of a client has no library of Kerberos, or none for its program."]
pub static KERBEROS_LIBRARY: Rule = Rule {
    id: "kerberos-library",
    severity: Severity::Error,
    title: "The image of a client has no library of Kerberos, or none for its program.",
    remedy: "Install it into the image: `libgssapi-krb5-2` on Debian and Ubuntu, `krb5-libs` on Alpine and Red Hat. LDAP and other clients of SASL need `libsasl2-modules-gssapi-mit` or `cyrus-sasl-gssapi` too.",
};
#[doc = "A client of a database (Postgres) names no user, or the server has none for the name in its ticket."]
pub static POSTGRES_LOGIN: Rule = Rule {
    id: "postgres-login",
    severity: Severity::Error,
    title: "A client of a database (Postgres) names no user, or the server has none for the name in its ticket.",
    remedy: "Map the name: `gmsa /^NAME\\$@CONTOSO\\.COM$ webapp1` in pg_ident.conf, and `gss include_realm=1 map=gmsa` in the line of pg_hba.conf. The log of the server names what it saw.",
};
#[doc = "A Kerberos client finds no domain controller of the realm, or reaches none."]
pub static KDC_UNREACHABLE: Rule = Rule {
    id: "kdc-unreachable",
    severity: Severity::Error,
    title: "A Kerberos client finds no domain controller of the realm, or reaches none.",
    remedy: "Ask DNS for `_kerberos._tcp.DOMAIN` (SRV), and let TCP and UDP 88 through. Without these records, `[realms]` of krb5.conf names the domain controllers.",
};
#[doc = "The configuration of a Kerberos client does not lead to the domain."]
pub static KERBEROS_CONFIGURATION: Rule = Rule {
    id: "kerberos-configuration",
    severity: Severity::Error,
    title: "The configuration of a Kerberos client does not lead to the domain.",
    remedy: "Write the realm in upper case in krb5.conf: `default_realm = CONTOSO.COM`, and `.contoso.com = CONTOSO.COM` in `[domain_realm]`.",
};
#[doc = "A client looks for the host in another realm, and asks its domain for a ticket to that realm."]
pub static OTHER_REALM: Rule = Rule {
    id: "other-realm",
    severity: Severity::Error,
    title: "A client looks for the host in another realm, and asks its domain for a ticket to that realm.",
    remedy: "Connect by the full DNS name that is in the service principal name. Reverse DNS or an alias leads to another name: set `rdns = false` and `dns_canonicalize_hostname = false` in `[libdefaults]` of krb5.conf, and `.contoso.com = CONTOSO.COM` in `[domain_realm]`.",
};
#[doc = "A client has no Kerberos ticket of a user."]
pub static NO_TICKET: Rule = Rule {
    id: "no-ticket",
    severity: Severity::Error,
    title: "A client has no Kerberos ticket of a user.",
    remedy: "In a container on Windows run the process as NETWORK SERVICE, and see `klist`. In a Linux Pod with tickets, KRB5CCNAME must be `FILE:/var/run/gmsa/krb5cc` for the process that asks. Elsewhere run `kinit`, and let the process read that cache.",
};
#[doc = "A Kerberos ticket has expired."]
pub static TICKET_EXPIRED: Rule = Rule {
    id: "ticket-expired",
    severity: Severity::Error,
    title: "A Kerberos ticket has expired.",
    remedy: "Get a new one: `klist purge` on Windows, `kinit` elsewhere. A process that runs long renews it itself, or `kinit -R` does. Compare the clocks too.",
};
#[doc = "The ticket cannot be renewed: it is not renewable, or the time for it is over."]
pub static NOT_RENEWABLE: Rule = Rule {
    id: "not-renewable",
    severity: Severity::Error,
    title: "The ticket cannot be renewed: it is not renewable, or the time for it is over.",
    remedy: "Log on again: `kinit -r 7d`, or `renew_lifetime = 7d` in krb5.conf. `klist -f` shows the flag R and `renew until`; the policy of the domain limits it. In a Linux Pod with tickets the agent renews them: run no `kinit -R` there.",
};
#[doc = "The keytab of a service lacks the key with which the ticket is encrypted."]
pub static KEYTAB: Rule = Rule {
    id: "keytab",
    severity: Severity::Error,
    title: "The keytab of a service lacks the key with which the ticket is encrypted.",
    remedy: "Compare `klist -kte` with `msDS-KeyVersionNumber` and the service principal names of the account, and make the keytab again. The keys of a gMSA change with its password, every 30 days: in a Linux Pod, the annotation `gmsa-webhook/keytab` keeps them current.",
};
#[doc = "The account may not act for its users at another service."]
pub static DELEGATION: Rule = Rule {
    id: "delegation",
    severity: Severity::Error,
    title: "The account may not act for its users at another service.",
    remedy: "Allow constrained delegation: `Set-ADServiceAccount NAME -PrincipalsAllowedToDelegateToAccount` on the account of the service behind, or `msDS-AllowedToDelegateTo` on this one. Unconstrained delegation (`-TrustedForDelegation $true`) gives every pod the tickets of all users, domain administrators included. Users who are sensitive or in Protected Users cannot be delegated.",
};
#[doc = "The client sent NTLM where the server takes Kerberos alone: it had no ticket for the name."]
pub static NTLM_TOKEN: Rule = Rule {
    id: "ntlm-token",
    severity: Severity::Error,
    title: "The client sent NTLM where the server takes Kerberos alone: it had no ticket for the name.",
    remedy: "Use the full DNS name for which a service principal name is registered (`setspn -Q HTTP/NAME`), no address and no alias without one. A browser sends Kerberos only to sites in its list (`AuthServerAllowlist`, intranet zone); a client in a container needs its identity: `klist`.",
};
#[doc = "The server saw an anonymous client: its process has no identity on the network, or the identity was lost on a second hop."]
pub static ANONYMOUS_LOGON: Rule = Rule {
    id: "anonymous-logon",
    severity: Severity::Error,
    title: "The server saw an anonymous client: its process has no identity on the network, or the identity was lost on a second hop.",
    remedy: "In a container run the process as `NT AUTHORITY\\NETWORK SERVICE` (`runAsUserName`), and check `kubectl gmsa verify`. If it acts for its users, give the account delegation, and register its service principal names.",
};
#[doc = "SQL Server, or another server, refuses the client: its identity is not from a domain that the server trusts."]
pub static UNTRUSTED_LOGIN: Rule = Rule {
    id: "untrusted-login",
    severity: Severity::Error,
    title: "SQL Server, or another server, refuses the client: its identity is not from a domain that the server trusts.",
    remedy: "In a container run the process as NETWORK SERVICE (`runAsUserName`) and check `kubectl gmsa verify`. Then look at the service principal name (`setspn -L`), and at the trust between the domains.",
};
#[doc = "SQL Server knows the client, but has no login or no right for it."]
pub static SQL_LOGIN: Rule = Rule {
    id: "sql-login",
    severity: Severity::Error,
    title: "SQL Server knows the client, but has no login or no right for it.",
    remedy: "Create it: `CREATE LOGIN [CONTOSO\\NAME$] FROM WINDOWS`, then a user in the database. If the message names the computer account of the node, the process does not run as the gMSA: `kubectl gmsa verify`.",
};
#[doc = "The driver cannot use Windows authentication as it is set up."]
pub static SQL_DRIVER: Rule = Rule {
    id: "sql-driver",
    severity: Severity::Error,
    title: "The driver cannot use Windows authentication as it is set up.",
    remedy: "On Windows put the DLL of the driver on the PATH (`mssql-jdbc_auth-VERSION.x64.dll` for JDBC). On Linux set `authenticationScheme=JavaKerberos`, and log on with `kinit`.",
};
#[doc = "The client does not reach SQL Server: this is before any logon."]
pub static SQL_UNREACHABLE: Rule = Rule {
    id: "sql-unreachable",
    severity: Severity::Error,
    title: "The client does not reach SQL Server: this is before any logon.",
    remedy: "Check the name, the port (TCP 1433; UDP 1434 for a named instance) and the network policy of the Pod: `curl -v --max-time 5 telnet://SERVER:1433`.",
};
#[doc = "An Oracle client does not reach its database, or one of them does not take the logon."]
pub static ORACLE_LOGON: Rule = Rule {
    id: "oracle-logon",
    severity: Severity::Error,
    title: "An Oracle client does not reach its database, or one of them does not take the logon.",
    remedy: "Look at the user, the password and `SQLNET.AUTHENTICATION_SERVICES` in sqlnet.ora. With Windows authentication (NTS), the process needs an identity: `kubectl gmsa verify`.",
};
#[doc = "Message Queuing (MSMQ) refuses a client, or does not work as it is set up in the container."]
pub static MESSAGE_QUEUING: Rule = Rule {
    id: "message-queuing",
    severity: Severity::Error,
    title: "Message Queuing (MSMQ) refuses a client, or does not work as it is set up in the container.",
    remedy: "Look at the queue: it must exist, and give `CONTOSO\\NAME$` its rights. Name it directly: `FormatName:DIRECT=OS:SERVER\\private$\\QUEUE`. In the container, the process must run as NETWORK SERVICE.",
};
#[doc = "The transaction coordinator of Windows (MSDTC) does not reach the other one, or is not allowed to."]
pub static DISTRIBUTED_TRANSACTIONS: Rule = Rule {
    id: "distributed-transactions",
    severity: Severity::Error,
    title: "The transaction coordinator of Windows (MSDTC) does not reach the other one, or is not allowed to.",
    remedy: "Allow it on both sides: `Set-DtcNetworkSetting -InboundTransactionsEnabled $true -OutboundTransactionsEnabled $true -AuthenticationLevel Mutual`; without a trust between their domains, `NoAuth`. Each side must resolve the name of the other, and reach TCP 135 and the dynamic ports.",
};
#[doc = "A client does not trust the certificate of a server that it calls."]
pub static SERVER_CERTIFICATE: Rule = Rule {
    id: "server-certificate",
    severity: Severity::Error,
    title: "A client does not trust the certificate of a server that it calls.",
    remedy: "Put the authority that made it into the image of the client, and compare the name and the date of the certificate.",
};
#[doc = "A web server answers 401: it got no identity that it accepts."]
pub static HTTP_UNAUTHORIZED: Rule = Rule {
    id: "http-unauthorized",
    severity: Severity::Error,
    title: "A web server answers 401: it got no identity that it accepts.",
    remedy: "Check `kubectl gmsa verify` for the client, and the service principal name (SPN) `HTTP/NAME` of the server (`setspn -Q`): it must be registered once, for the account that the application runs as.",
};
#[doc = "The Kerberos ticket makes the headers of the request too long for the server."]
pub static HTTP_TOKEN_SIZE: Rule = Rule {
    id: "http-token-size",
    severity: Severity::Error,
    title: "The Kerberos ticket makes the headers of the request too long for the server.",
    remedy: "Raise `MaxFieldLength` and `MaxRequestBytes` of HTTP.sys (registry, in the image) or the limit of the proxy, or take the user out of groups.",
};
#[doc = "A Kerberos library failed; the words do not say why."]
pub static GSS_FAILURE: Rule = Rule {
    id: "gss-failure",
    severity: Severity::Error,
    title: "A Kerberos library failed; the words do not say why.",
    remedy: "Give the whole message: the reason follows `Minor code`. If it is missing, look at `klist`, the service principal name (`setspn -Q`) and the clocks. `KRB5_TRACE=/dev/stderr` has MIT Kerberos say more.",
};
#[doc = "IIS cannot start an application pool with its identity."]
pub static APPLICATION_POOL: Rule = Rule {
    id: "application-pool",
    severity: Severity::Error,
    title: "IIS cannot start an application pool with its identity.",
    remedy: "Let the pool run as ApplicationPoolIdentity or NetworkService in the container: both act as the gMSA on the network. The gMSA itself cannot be the identity of a pool there.",
};
#[doc = "IIS refuses the `web.config` of an application: a section is locked, or the image does not have its feature."]
pub static IIS_CONFIGURATION: Rule = Rule {
    id: "iis-configuration",
    severity: Severity::Error,
    title: "IIS refuses the `web.config` of an application: a section is locked, or the image does not have its feature.",
    remedy: "The page names the file, the line and a code. Correct the line, or install what its section belongs to into the image: a feature of IIS (`Install-WindowsFeature`), or the Hosting Bundle of ASP.NET Core.",
};
#[doc = "A share is not found under its name."]
pub static SHARE_NAME: Rule = Rule {
    id: "share-name",
    severity: Severity::Error,
    title: "A share is not found under its name.",
    remedy: "Try it by address too. If that alone works on containerd, set `EnableCompartmentNamespace` on the node: docs/troubleshooting.md, Network shares.",
};
#[doc = "The identity reaches a share but may not open it."]
pub static SHARE_DENIED: Rule = Rule {
    id: "share-denied",
    severity: Severity::Error,
    title: "The identity reaches a share but may not open it.",
    remedy: "Give `CONTOSO\\NAME$` the right in both places: the permissions of the share, and those of the file system behind it. Open it by its DNS name: an address leads to NTLM.",
};
#[doc = "Windows is connected to this server already, as another user."]
pub static SHARE_SESSIONS: Rule = Rule {
    id: "share-sessions",
    severity: Severity::Error,
    title: "Windows is connected to this server already, as another user.",
    remedy: "End the other connection (`net use * /delete`), or use another name of the server for the second one.",
};
#[doc = "The API server cannot be reached."]
pub static API_UNREACHABLE: Rule = Rule {
    id: "api-unreachable",
    severity: Severity::Error,
    title: "The API server cannot be reached.",
    remedy: "Check the network, the VPN and the proxy to the address in the kubeconfig: `kubectl cluster-info`. `kubectl config current-context` shows the cluster in use.",
};
#[doc = "The certificate of the API server is not trusted by this kubeconfig."]
pub static API_CERTIFICATE: Rule = Rule {
    id: "api-certificate",
    severity: Severity::Error,
    title: "The certificate of the API server is not trusted by this kubeconfig.",
    remedy: "Fetch the kubeconfig again from the provider of the cluster: its `certificate-authority-data` is for another cluster, or a proxy terminates TLS.",
};
#[doc = "The API server does not accept the credentials of the kubeconfig, or there are none."]
pub static API_CREDENTIALS: Rule = Rule {
    id: "api-credentials",
    severity: Severity::Error,
    title: "The API server does not accept the credentials of the kubeconfig, or there are none.",
    remedy: "Log on again: the token or the certificate has expired, or the kubeconfig has no user. `kubectl auth whoami` shows your identity.",
};
#[doc = "The user lacks a right, so the API server refuses the request."]
pub static RIGHT_MISSING: Rule = Rule {
    id: "right-missing",
    severity: Severity::Error,
    title: "The user lacks a right, so the API server refuses the request.",
    remedy: "Have the right granted: `kubectl auth can-i VERB RESOURCE` shows when it is there. What the commands of this program need is in docs/rights.md.",
};
#[doc = "A namespace does not exist."]
pub static NAMESPACE_MISSING: Rule = Rule {
    id: "namespace-missing",
    severity: Severity::Error,
    title: "A namespace does not exist.",
    remedy: "Create it: `kubectl create namespace NAMESPACE`, or `helm install --create-namespace`. Or correct the name.",
};
#[doc = "Another manager owns a field of the change, so server-side apply stops."]
pub static FIELD_CONFLICT: Rule = Rule {
    id: "field-conflict",
    severity: Severity::Error,
    title: "Another manager owns a field of the change, so server-side apply stops.",
    remedy: "Repeat it with `--force-conflicts` to use your value, or leave the field to the owner that the message names.",
};
#[doc = "An object that the chart makes exists already, and does not belong to this release."]
pub static FOREIGN_OBJECT: Rule = Rule {
    id: "foreign-object",
    severity: Severity::Error,
    title: "An object that the chart makes exists already, and does not belong to this release.",
    remedy: "Add `--take-ownership` to `helm upgrade --install`, with `--force-conflicts` where kubectl made the object. Or delete the object, but never the custom resource: that deletes all credential specs.",
};
#[doc = "What was installed or rolled out did not become ready in time."]
pub static RELEASE_TIMEOUT: Rule = Rule {
    id: "release-timeout",
    severity: Severity::Error,
    title: "What was installed or rolled out did not become ready in time.",
    remedy: "`kubectl gmsa doctor` says why. By hand: `kubectl get pods,events -n gmsa-webhook`. Images, quotas and Secrets are the usual causes.",
};
#[doc = "The chart refuses its values, before anything is changed."]
pub static CHART_VALUES: Rule = Rule {
    id: "chart-values",
    severity: Severity::Error,
    title: "The chart refuses its values, before anything is changed.",
    remedy: "Correct the value that the message names. The README of the chart lists all of them; `helm template` with the same values shows the message without a cluster.",
};
#[doc = "kubectl does not find this plugin."]
pub static PLUGIN_NOT_FOUND: Rule = Rule {
    id: "plugin-not-found",
    severity: Severity::Error,
    title: "kubectl does not find this plugin.",
    remedy: "Put the program on the PATH under the name `kubectl-gmsa`, executable: `kubectl plugin list` shows what kubectl finds.",
};
#[doc = "The API server, or kubectl, does not take a manifest as it is written."]
pub static MANIFEST_INVALID: Rule = Rule {
    id: "manifest-invalid",
    severity: Severity::Error,
    title: "The API server, or kubectl, does not take a manifest as it is written.",
    remedy: "Correct the field or the line that the message names. `kubectl gmsa check -f FILE` finds misspelt fields of GMSA with their lines.",
};
#[doc = "The change is to an immutable field."]
pub static IMMUTABLE_FIELD: Rule = Rule {
    id: "immutable-field",
    severity: Severity::Error,
    title: "The change is to an immutable field.",
    remedy: "Delete the object and create it again. GMSA settings of Pods and Jobs are immutable, and so is the selector of a Deployment.",
};
#[doc = "An object is larger than the API server, or an annotation of kubectl, can hold."]
pub static OBJECT_TOO_LARGE: Rule = Rule {
    id: "object-too-large",
    severity: Severity::Error,
    title: "An object is larger than the API server, or an annotation of kubectl, can hold.",
    remedy: "Apply custom resource definitions with `kubectl apply --server-side`, which writes no annotation.",
};
#[doc = "A `CertificateSigningRequest` is not signed, so there is no serving certificate."]
pub static CERTIFICATE_REQUEST: Rule = Rule {
    id: "certificate-request",
    severity: Severity::Error,
    title: "A `CertificateSigningRequest` is not signed, so there is no serving certificate.",
    remedy: "Use the chart with `certificates.mode=self-managed` or `cert-manager`: EKS and others sign no serving certificates for webhooks. See docs/certificates.md.",
};
#[doc = "cert-manager is not installed, not ready, or has not issued the certificate."]
pub static CERT_MANAGER: Rule = Rule {
    id: "cert-manager",
    severity: Severity::Error,
    title: "cert-manager is not installed, not ready, or has not issued the certificate.",
    remedy: "`kubectl describe certificate,certificaterequest,issuer -n gmsa-webhook` says what is missing. Without cert-manager, set `certificates.mode=self-managed`.",
};
#[doc = "Something did not answer in time; the words do not say what."]
pub static TIMED_OUT: Rule = Rule {
    id: "timed-out",
    severity: Severity::Error,
    title: "Something did not answer in time; the words do not say what.",
    remedy: "Give the whole message. The words before `context deadline exceeded` name it: a webhook (`failed calling webhook`), an image (`failed to pull image`), the API server, or the container runtime.",
};
#[doc = "A name is not known in DNS."]
pub static NAME_UNKNOWN: Rule = Rule {
    id: "name-unknown",
    severity: Severity::Error,
    title: "A name is not known in DNS.",
    remedy: "Query it where it failed: `nslookup NAME` in the Pod or on the node. For names of the domain, the DNS of the cluster must forward the domain: docs/windows-pods.md.",
};
#[doc = "A connection was refused or ended; the words do not say by whom."]
pub static CONNECTION_FAILED: Rule = Rule {
    id: "connection-failed",
    severity: Severity::Error,
    title: "A connection was refused or ended; the words do not say by whom.",
    remedy: "Give the whole message. `connection refused` means that nothing listens at the port. `connection reset` and `EOF` mean that the peer or a device in between closed it.",
};

/// The table: its order decides between general words in one text, and between rules with words at the same place.
pub static ENTRIES: &[RuleEntry] = &[
RuleEntry { rule: &core::UNEXPECTED_KIND, words: &[
    Refusal("expected a *object, got a"),
], remedies: &[
] },
RuleEntry { rule: &core::CREDENTIAL_SPEC_WRONG, words: &[
    Refusal("the gmsa cred spec cannot work"),
], remedies: &[
] },
RuleEntry { rule: &core::UNEXPECTED_OPERATION, words: &[
    Refusal("expected a create or update operation, got"),
], remedies: &[
] },
RuleEntry { rule: &core::NO_OBJECT, words: &[
    Refusal("the admissionreview of a pod * has no request."),
], remedies: &[
] },
RuleEntry { rule: &core::INVALID_NAMESPACE, words: &[
    Refusal("the admissionreview has no valid request.namespace"),
], remedies: &[
] },
RuleEntry { rule: &core::INVALID_SPEC_NAME, words: &[
    Refusal("gmsa cred spec name *is not a lower-case dns subdomain"),
], remedies: &[
] },
RuleEntry { rule: &core::INVALID_SERVICE_ACCOUNT, words: &[
    Refusal("service account name *is not a lower-case dns subdomain"),
], remedies: &[
] },
RuleEntry { rule: &core::TOO_MANY_SLOTS, words: &[
    Refusal("containers, init containers and ephemeral containers together"),
], remedies: &[
] },
RuleEntry { rule: &core::TOO_MANY_SPECS, words: &[
    Refusal("distinct gmsa cred specs"),
    Refusal("different gmsa cred specs in one pod"),
], remedies: &[
] },
RuleEntry { rule: &core::PATCH_TOO_LARGE, words: &[
    Refusal("the gmsa cred spec contents of this pod would take"),
], remedies: &[
] },
RuleEntry { rule: &core::SPEC_MISSING, words: &[
    Refusal("cred spec ? does not exist"),
    Message("gmsacredentialspecs.windows.k8s.io \"*\" not found"),
], remedies: &[
] },
RuleEntry { rule: &core::SPEC_UNUSABLE, words: &[
    Refusal("does not have a credspec key"),
], remedies: &[
] },
RuleEntry { rule: &core::SPEC_UNREADABLE, words: &[
    Refusal("unable to retrieve the contents of cred spec"),
], remedies: &[
] },
RuleEntry { rule: &core::CONTENTS_WITHOUT_NAME, words: &[
    Refusal("but does not define the name of the corresponding resource"),
    Refusal("contents are set without the name of their cred spec"),
], remedies: &[
] },
RuleEntry { rule: &core::NOT_AUTHORIZED, words: &[
    Refusal("is not authorized to `use`"),
    Refusal("is not authorized to `export`"),
    Refusal("is not authorized `use`"),
    Message("cannot use resource \"gmsacredentialspecs\""),
], remedies: &[
    (&["to `export`"], "Grant it: `kubectl gmsa grant --credspec SPEC --serviceaccount NAMESPACE:SERVICEACCOUNT --keytab --apply`. With `use` alone there are tickets, and no keytab."),
] },
RuleEntry { rule: &core::AUTHORIZATION_FAILED, words: &[
    Refusal("unable to check whether service account"),
], remedies: &[
] },
RuleEntry { rule: &core::CONTENTS_DIFFER, words: &[
    Refusal("does not match the contents of gmsa resource"),
], remedies: &[
] },
RuleEntry { rule: &core::NAME_WITHOUT_CONTENTS, words: &[
    Refusal("but does not carry its contents"),
    Refusal("a gmsa cred spec name has no contents"),
], remedies: &[
] },
RuleEntry { rule: &core::MODIFIED, words: &[
    Refusal("cannot update an existing pod's gmsa settings"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKETS_IMPOSSIBLE, words: &[
    Refusal("this pod cannot have tickets"),
    Refusal("this pod cannot have keytabs"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKETS_UNAVAILABLE, words: &[
    Refusal("unable to give this pod tickets"),
    Refusal("unable to give this pod keytabs"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKETS_NOT_ENABLED, words: &[
    Refusal("tickets are not enabled here, or are being rolled out"),
    Refusal("keytabs are not enabled here, or are being rolled out"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_REQUEST, words: &[
    Message("the body must be {\"credentialspec\": \"name\"} and nothing else"),
    Message("there is no path * tickets are at /v1/tickets"),
    Message("/v1/tickets does not take"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_TOKEN, words: &[
    Message("the request has no token: send authorization: bearer token"),
    Message("does not accept the token for the audience gmsa-"),
    Message("the token is not for the audience gmsa-"),
    Message("the token is not bound to a pod"),
    Message("the token is not one of a service account"),
    Message("no tickets: cannot read the token"),
    Message("no tickets in *: cannot read the token"),
    Message("no tickets: the file * does not hold a token"),
    Message("no tickets in *: the file * does not hold a token"),
    Message("cannot read the token /var/run/secrets/gmsa-keytab/"),
    Message("the file /var/run/secrets/gmsa-keytab/* does not hold a token"),
], remedies: &[
    (&["/gmsa-keytab/"], "Mount a projected token with the audience `gmsa-keytab/SPEC` and the path `token` into the sidecar, at `/var/run/secrets/gmsa-keytab`."),
    (&["cannot read the token", "does not hold a token"], "Mount a projected token with the audience `gmsa-tickets/SPEC` and the path `token` into the sidecar, at `/var/run/secrets/gmsa-tickets`."),
] },
RuleEntry { rule: &core::TICKET_POD, words: &[
    Message("the pod * does not exist any more"),
    Message("has another uid than the token: it was replaced"),
    Message("has another service account than the token"),
    Message("has no projected token with the audience gmsa-"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_SERVICES, words: &[
    Message("cred spec * gives no tickets: its"),
], remedies: &[
] },
RuleEntry { rule: &core::KEYTAB_NAMES, words: &[
    Message("cred spec * gives no keytabs: its"),
], remedies: &[
] },
RuleEntry { rule: &core::KEYTAB_DOMAIN, words: &[
    Message("the broker gives no keytabs of"),
], remedies: &[
] },
RuleEntry { rule: &core::KEYTAB_KEYS, words: &[
    Message("the keytab of * does not open the ticket for"),
    Message("has had several passwords, and the domain gives the keys of all the number"),
], remedies: &[
    (&["a keytab has aes keys alone"], "The domain encrypts tickets for the account with RC4: `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`. The sidecar asks again by itself."),
    (&["fkvnoemuw2k"], "Active Directory numbers every key 1 while the character of `fKVNOEmuW2K` in `dSHeuristics` is set, so old and new keys cannot be told apart: without it there are keytabs again. Until then use tickets, which do not need it."),
    (&["another account has this name", "its key has the number"], "Give the name to this account alone: `setspn -Q SPN` names its owners, `setspn -X -F` lists duplicates. If it is, somebody reset the password of the account by hand, or a domain controller lags: there is a keytab again after the next replication, or the next change of the password."),
] },
RuleEntry { rule: &core::TICKET_ACCOUNT, words: &[
    Message("the broker gives no keytabs of \""),
    Message("the broker gives no tickets of"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_DOMAIN, words: &[
    Message("cred spec * is of the domain * which the broker does not have"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_REFERRAL, words: &[
    Message("the kdc of * refers * to * which `referrals` of * does not list"),
    Message("the kdc of * refers * to * which was asked already"),
    Message("other realms: the broker asks no more"),
    Message("the kdc of * gives no ticket for"),
], remedies: &[
    (&["which was asked already", "leads back to"], "Two domains hold the other one responsible for this name: look at the name suffix routing of their trust, and where the service principal name is registered (`setspn -Q SPN` in each)."),
    (&["the broker asks no more"], "Make a shortcut trust between the two domains: the way from one to the other leads through too many."),
    (&["no trust lets accounts of"], "The domain of the service must trust the domain of the account: `Get-ADTrust -Filter *` shows the direction. In a forest trust, the name suffix of the host must be routed to the other forest."),
    (&["selective authentication"], "Give the account the right `Allowed to authenticate` on the computer of the service, or choose forest-wide authentication for the trust, and look at its direction: `Get-ADTrust -Filter *`."),
    (&["different secrets"], "Reset the secret of the trust on both sides: `netdom trust`, with `/reset` and `/passwordT`."),
    (&["the account of"], "Give the account of the service AES keys, and set its password again: `Set-ADUser NAME -KerberosEncryptionType AES128,AES256`."),
    (&["has no aes keys", "keys of different types"], "Allow AES on both sides of the trust, on a domain controller of each: `ksetup /setenctypeattr OTHER.DOMAIN AES256-CTS-HMAC-SHA1-96 AES128-CTS-HMAC-SHA1-96`."),
] },
RuleEntry { rule: &core::TICKET_RATE, words: &[
    Message("too many requests of this pod: it has"),
    Message("too many pods ask for tickets at the moment"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_BUSY, words: &[
    Message("too many requests wait for the domain controllers of"),
    Message("the broker keeps the keys of * has no room for another one"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_CHECK, words: &[
    Message("GmsaTicketsRequestsFail"),
    Message("the token cannot be checked: "),
    Message("the pod * cannot be read: "),
], remedies: &[
    (&["GmsaTicketsRequestsFail"], "The log of the broker names the call of the API server that fails. For the outcome `ticket-busy` raise `resources.limits.memory` or `replicaCount` of the chart."),
] },
RuleEntry { rule: &core::TICKET_ANSWER, words: &[
    Message("the answer of the kdc cannot be read"),
    Message("the answer of the kdc has another"),
    Message("the answer of the kdc does not decrypt"),
    Message("the kdc asks for * iterations"),
    Message("the kdc * answers with * bytes: the limit"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_SIZE, words: &[
    Message("the tickets take more than 128 kib"),
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_SIDECAR, words: &[
    Message("no tickets: cannot write into"),
    Message("no tickets in *: cannot write into"),
    Message("cannot write the status into"),
    Message("--broker * is not a dns name that a certificate can be for"),
], remedies: &[
    (&["cannot write"], "Mount an emptyDir in memory into the sidecar at `/var/run/gmsa`, not read-only, with room for the tickets (1 MiB); only the other containers mount it read-only."),
] },
RuleEntry { rule: &core::DIRECTORY_CLOCK, words: &[
    Message("its clock is * that of the broker"),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_CLASS, words: &[
    Message("is not a group managed service account of"),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_DIFFERS, words: &[
    Message("is in the domain * the cred spec says"),
], remedies: &[
] },
RuleEntry { rule: &core::LINUX_NODE, words: &[
    Message("windows options cannot be set for a linux pod"),
    Message("os field doesn't match node os"),
    Message("`kubernetes.io/os` label doesn't match node label"),
    General("podosnotsupported"),
    General("podosselectornodelabeldoesnotmatch"),
], remedies: &[
] },
RuleEntry { rule: &core::PLUGIN_INPUT, words: &[
    Message("failed to parse the plugininput parameter"),
    Message("failed to parse the secreturi field value"),
    Event("aksgmsaplugin", &[1013, 1014, 1015, 1016, 1018]),
    Message("invalid plugin input format"),
], remedies: &[
    (&["invalid plugin input format"], "For Rancher's plugin write `PluginInput` as `NAMESPACE:SECRET`, the namespace of its account provider and the Secret there."),
    (&["keyvault resource", "event 1018 of"], "The host of `SecretUri` must be a Key Vault by its public name, `https://VAULT.vault.azure.net/secrets/NAME`: the plugin takes what follows the first dot as the resource. A private endpoint answers to this name too."),
    (&["plugininput parameter", "event 1013 of", "event 1014 of", "event 1015 of", "event 1016 of"], "Write `PluginInput: ObjectId=GUID;SecretUri=https://VAULT.vault.azure.net/secrets/NAME`: the object ID of the managed identity of the nodes, and the address of the secret."),
] },
RuleEntry { rule: &core::PLUGIN_GUID, words: &[
    Start("failed to parse the plugin guid"),
    Event("containers-ccg", &[9]),
    StartCodes(&["CO_E_CLASSSTRING"]),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_DISABLED, words: &[
    Message("failure reason: account currently disabled"),
    Message("cannot log on: it is disabled ("),
    Codes(&["ERROR_ACCOUNT_DISABLED", "STATUS_ACCOUNT_DISABLED"]),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_EXPIRED, words: &[
    Message("kdc_err_name_exp"),
    Message("kdc_err_service_exp"),
    Message("entry in database has expired"),
    Message("specified user account has expired"),
    Message("cannot log on: it has expired"),
    Codes(&["STATUS_ACCOUNT_EXPIRED", "ERROR_ACCOUNT_EXPIRED"]),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_UNKNOWN, words: &[
    Message("kdc_err_c_principal_unknown"),
    Message("client not found in kerberos database"),
    Message("client '*' not found in kerberos database"),
    Message("krb5_get_init_creds: client (*) unknown"),
    Message("cannot log on: the kdc does not know it"),
    Message("there is no account \"*\" in"),
    Message("cannot find an object with identity"),
    Message("finddomainforaccount*unable to locate account"),
    Message("group managed service account \"*\" could not be found in the"),
    Message("a referral was returned from the server"),
    Start("failed to fetch gmsa credentials*no such object"),
    Codes(&["ERROR_DS_NO_SUCH_OBJECT", "ERROR_DS_OBJ_NOT_FOUND", "ERROR_DS_REFERRAL"]),
    Codes(&["ERROR_NO_SUCH_USER", "STATUS_NO_SUCH_USER"]),
    RunningCodes(&["ERROR_NONE_MAPPED", "STATUS_NONE_MAPPED"]),
    Message("error from kdc: client_not_found"),
], remedies: &[
    (&["samlogon: *logon of"], "The line is about the user that it names, who logs on to this machine, mostly by NTLM: correct the name, the password or the domain that the client sends. The account of the container has no part in it."),
] },
RuleEntry { rule: &core::KDS_ROOT_KEY, words: &[
    Message("no kds root key"),
    Message("add-kdsrootkey : "),
    Message("group key distribution service cannot"),
    Message("group key distribution service failed"),
    Message("encountered an invalid master root key"),
    Event("kdssvc", &[4001, 4005, 4006, 4007, 4008]),
    Codes(&["NTE_NO_KEY"]),
], remedies: &[
    (&["nte_no_key"], "`Get-KdsRootKey` shows the keys of the forest. If it lists one, wait until ten hours after its `EffectiveTime`: a second key helps nothing. If it lists none, run `Add-KdsRootKey -EffectiveImmediately`, once per forest, then wait 10 hours."),
    (&["request is not supported"], "Run `Add-KdsRootKey` on a domain controller, as a member of Domain Admins or Enterprise Admins; elsewhere it answers that the request is not supported."),
    (&["add-kdsrootkey : access is denied"], "Run `Add-KdsRootKey` on a domain controller as a member of Domain Admins or Enterprise Admins, in a PowerShell that runs as administrator. In a managed domain (Entra Domain Services, AWS Managed Microsoft AD, Google Managed Microsoft AD) nobody is one, and the key is there already: go on with `New-ADServiceAccount`."),
] },
RuleEntry { rule: &core::ACCOUNT_PASSWORD, words: &[
    Message("cannot install service account"),
    Message("provided context did not match the target"),
    Message("may not retrieve the password of * or the domain makes none"),
    Message("test failed for managed service account"),
    Message("permission to use the group msa"),
    Message("not authorized to use the group managed service account"),
    Message("kennwort eines gruppenverwalteten dienstkontos*fehlgeschlagen"),
    Message("kennworts eines gruppenverwalteten dienstkontos"),
    Message("fetch the password of a group managed service account failed"),
    Message("could not retrieve passwords for the group managed service account"),
    Message("test-adserviceaccount*false"),
    Event("directoryservice", &[2947]),
    Event("activedirectory_domainservice", &[2947]),
    Message("das dienstkonto kann nicht installiert werden"),
    Message("impossible d'installer le compte de service"),
    Message("error: password not found*kerberos lease"),
    Message("credentials-fetcher*password not found"),
], remedies: &[
    (&["did not match the target"], "Install the account on a machine of its own domain, whose supported encryption types (`msDS-SupportedEncryptionTypes`) are those of the account."),
    (&["service account", "password not found"], "Make the machine a member of a group in `PrincipalsAllowedToRetrieveManagedPassword`, then restart it, or run `klist -li 0x3e7 purge`: it learns of its groups by a new ticket. Compare the encryption types too."),
] },
RuleEntry { rule: &core::ACCOUNT_NAME, words: &[
    Message("not a properly formed account name"),
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_SPN_DUPLICATE, words: &[
    Message("duplicate spn found"),
    Message("spn value provided for addition/modification is not unique"),
    Message("groups of duplicate spns"),
    Message("is registered on multiple accounts which"),
    Message("encountered duplicate names while processing a kerberos"),
    Codes(&["ERROR_DS_SPN_VALUE_NOT_UNIQUE_IN_FOREST"]),
], remedies: &[
] },
RuleEntry { rule: &core::API_VERSION, words: &[
    Message("windows.k8s.io/v1alpha1 gmsacredentialspec is deprecated"),
], remedies: &[
] },
RuleEntry { rule: &core::LINUX_ONLY, words: &[
    Message("cannot be set for a windows pod"),
], remedies: &[
] },
RuleEntry { rule: &core::HOST_PROCESS, words: &[
    Message("contains any hostprocess containers"),
], remedies: &[
] },
RuleEntry { rule: &core::SIZE, words: &[
    Message("gmsacredentialspec*size must be under"),
], remedies: &[
] },
RuleEntry { rule: &core::NOT_A_POD, words: &[
    General("pod \"*\" is invalid: "),
    General("the deployment \"*\" is invalid: "),
], remedies: &[
] },
RuleEntry { rule: &core::RUN_AS_USER, words: &[
    Message("current security context is not associated with an active directory domain"),
    Message("user manager\\container"),
    Message("nt authority\\iusr"),
    Message("nt authority\\local service"),
    General("containeruser"),
    General("containeradministrator"),
], remedies: &[
] },
RuleEntry { rule: &core::CA_BUNDLE, words: &[
    Message("unable to load root certificates"),
    Message("invalid value*cabundle"),
], remedies: &[
] },
RuleEntry { rule: &core::CERTIFICATE_NOT_TRUSTED, words: &[
    Message("GmsaWebhookHandshakesFail"),
    Message("remote error: tls: bad certificate"),
    Message("received fatal alert: badcertificate"),
    Message("received fatal alert: unknownca"),
    Message("tls: unknown certificate authority"),
], remedies: &[
] },
RuleEntry { rule: &core::CERTIFICATE_EXPIRY, words: &[
    Message("GmsaWebhookCertificateExpires"),
    Message("GmsaTicketsCertificateExpires"),
    Message("the certificate expired at"),
], remedies: &[
] },
RuleEntry { rule: &core::CERTIFICATE_UNUSABLE, words: &[
    Message("GmsaWebhookCertificateRefused"),
    Message("the certificate is not valid before"),
    Message("no dns name and no ip address among its subject alternative names"),
    Message("the certificate is not valid pem"),
    Message("is not an x.509 certificate"),
    Message("there is no pem section certificate"),
    Message("the certificate is empty"),
    General("cannot serve the new certificate"),
    Message("GmsaTicketsCertificateRefused"),
], remedies: &[
    (&["certificaterefused"], "Do not restart the Pods: a new Pod has no earlier certificate to serve, and is not ready. Their log says what is wrong with the new one. The alert ends when a good pair is in the Secret."),
] },
RuleEntry { rule: &core::PRIVATE_KEY, words: &[
    Message("the private key is "),
    Message("no pem section with a private key"),
    Message("tls: private key does not match public key"),
    Message("tls: failed to find any pem data in key input"),
], remedies: &[
] },
RuleEntry { rule: &core::REFUSED_OBJECT, words: &[
    Message("the gmsacredentialspec \"*\" is invalid"),
], remedies: &[
    (&["a lowercase rfc 1123"], "Use a lower-case DNS name: letters, digits, `-` and `.`. Pods write the same name in `gmsaCredentialSpecName`."),
] },
RuleEntry { rule: &core::UNREADABLE, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::DUPLICATE_KEY, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::NOT_KUBERNETES, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::OBJECT, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::NAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::CREDSPEC, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::UNKNOWN_KEY, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::CMS_PLUGINS, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::SECTION, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::SID, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::GUID, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::DNS_NAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::DNS_TREE_NAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::NETBIOS_NAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNTS, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::PLUGIN, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::PLUGIN_VERSION, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::PLUGIN_PASSWORD, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::PLACEHOLDER, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_INCOMPLETE, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_DELETED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_LOGON, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_SUPERSEDED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_PROTECTED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_WEAKENED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_USER_NAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_SPN, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_ENCRYPTION, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_TRUST, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_EMPTY, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_DISTRIBUTION, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_DENIED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_ORPHANED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_UNKNOWN, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::ACCOUNT_HOSTS_WIDE, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::DIRECTORY_LEVEL, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::DIRECTORY_QUOTA, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::OS_SELECTOR, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::NANO_SERVER, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::SHARED_HOSTNAME, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::TICKETS_OTHER_CACHE, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::WEBHOOK_MISSING, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::NOT_CHECKED, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_SERVICE, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_CONTROLLER, words: &[
], remedies: &[
] },
RuleEntry { rule: &core::TICKET_ANY, words: &[
], remedies: &[
] },
RuleEntry { rule: &CONTENTS_REJECTED, words: &[
    Start("failed to parse the credential spec"),
    Start("failed to parse credential spec"),
    Event("containers-ccg", &[3]),
    Start("error parsing credential spec"),
    Message("credentialspec file is not formatted"),
    Message("credspec is not properly"),
    Message("credential spec provided is not properly"),
    Message("invalid credentialspec"),
], remedies: &[
] },
RuleEntry { rule: &CREDENTIAL_SPEC_FILE, words: &[
    Start("credential spec '*' for container"),
    Start("credential spec '*' could not be read"),
    Start("failed setting credential spec"),
    Start("unsupported config option*credential_spec"),
    Start("additional property credential_spec"),
    Start("invalid --security-opt*credentialspec"),
    Start("invalid credential spec security option"),
    Start("credential spec security option must be prefixed"),
    Start("credentialspec must be prefixed"),
    Start("path must be under"),
    Start("path cannot be absolute"),
    Start("registry entry * was not found"),
    Start("credential spec * was not found in registry"),
    Message("credential spec directory does not exist"),
    Message("a credential spec already exists with the name"),
    Message("invalid additional account specified"),
    Message("invalid credential spec: "),
    Start("open *credentialspecs\\*cannot find the file specified"),
    Start("open *credentialspecs\\*cannot find the path specified"),
    Message("'credential_spec' key, which will be ignored"),
], remedies: &[
    (&["which will be ignored"], "This version of Compose does not pass `credential_spec` on: write `security_opt: [\"credentialspec=file://NAME.json\"]` into the service."),
    (&["credential spec directory does not exist"], "Docker is not on this machine: give `New-CredentialSpec` a file, `-Path webapp1.json`. For Kubernetes make the credential spec without Docker: `kubectl gmsa credspec new`."),
    (&["already exists with the name"], "Leave `-NoClobber` out to replace the file, or choose another name: `-FileName NAME`."),
    (&["invalid additional account"], "Give each further account as a name, or with its domain: `-AdditionalAccounts LogAccount, @{AccountName='App2'; Domain='emea.contoso.com'}`."),
] },
RuleEntry { rule: &START_PARAMETER, words: &[
    StartCodes(&["ERROR_INVALID_PARAMETER", "STATUS_INVALID_PARAMETER", "HCS_E_INVALID_JSON"]),
    Start("createcomputesystem*the parameter is incorrect"),
], remedies: &[
] },
RuleEntry { rule: &NODE_OUTDATED, words: &[
    Start("createcomputesystem*the directory name is invalid"),
    Start("createcomputesystem*the request is not supported"),
    StartCodes(&["ERROR_NOT_SUPPORTED", "STATUS_NOT_SUPPORTED", "ERROR_DIRECTORY"]),
], remedies: &[
] },
RuleEntry { rule: &PLUGIN_NOT_STARTED, words: &[
    Start("failed to instantiate the plugin"),
    Event("containers-ccg", &[4]),
    General("credential guard failed to inst"),
    StartCodes(&["CO_E_RUNAS_LOGON_FAILURE", "REGDB_E_CLASSNOTREG", "CO_E_SERVER_EXEC_FAILURE", "CLASS_E_CLASSNOTAVAILABLE", "E_NOINTERFACE"]),
    Message("permission settings do not grant local activation permission for the com server"),
    Message("permission settings do not grant local launch permission for the com server"),
    Message("permission settings do not grant remote activation permission for the com server"),
    Message("did not register with dcom within the required timeout"),
    Message("unable to start a dcom server"),
    Event("distributedcom", &[10000, 10005, 10010, 10016]),
    Message("the dll is not fully installed or uninstalled"),
    Message("plugin guid is not added to"),
    Message("dll directory does not exist"),
    Message("dll file does not exist"),
    Message("dll is out-of-date"),
    Message("unable to determine current status of plugin"),
    Message("unable to determine final status of plugin"),
    Message("failed to execute installation script"),
    Message("failed to execute uninstallation script"),
    Message("unable to delete temporary file *gmsacredentialprovider"),
    Message("dcom got error*unable to logon"),
    Message("failed to open registry key * while determining clsid existence"),
    Message("windows_cse_error_gmsa_"),
    Message("windows_cse_error_download_gmsa_package"),
    Message("gmsa plugin registry permissions"),
    Message("gmsa plugin registry values"),
    Message("failed to import the ccgevents.man"),
    Message("failed to import the ccgakvpluginevents.man"),
    Message("failed to extract * gmsa"),
], remedies: &[
    (&["dcom got error"], "The COM server of the plugin cannot log on as the user that it is registered with: correct user and password (dcomcnfg, Identity), or register it with another identity."),
    (&["e_nointerface"], "The GUID does not name a plugin, or its interface `ICcgDomainAuthCredentials` is not registered on the node: register the proxy and stub of CCG, then the plugin again."),
    (&["temporary file"], "A process on the node holds the DLL of Rancher's plugin: drain the node, restart it, and delete the Pod of `rancher-gmsa-plugin-installer` there."),
    (&["with dcom within", "dcom server", "for the com server", "of distributedcom"], "If the CLSID is the `PluginGUID` of the credential spec, register the plugin again, with an identity that may log on, and let `NT AUTHORITY\\SYSTEM` launch and activate it (dcomcnfg). Of any other CLSID this says nothing about GMSA: Windows logs it for many of its own components."),
    (&["the dll is", "plugin guid is not added", "dll directory", "dll file", "dll is out", "status of plugin", "installation script", "clsid existence"], "Rancher's plugin is not whole on the node: look at the log of the Pods of `rancher-gmsa-plugin-installer` there, delete the Pod, and it installs the plugin again."),
    (&["download_gmsa_package"], "The node of AKS could not download the plugin: let it reach `packages.aks.azure.com` (and `acs-mirror.azureedge.net`), then reimage it: `az aks nodepool upgrade --node-image-only`."),
    (&["windows_cse_error", "gmsa plugin registry", "ccgevents.man", "ccgakvpluginevents.man", "failed to extract"], "AKS could not set up its plugin while it made the node: `C:\\AzureData\\CustomDataSetupScript.log` there says why. Reimage the node (`az aks nodepool upgrade --node-image-only`); if it fails again, ask the support of Azure."),
] },
RuleEntry { rule: &PLUGIN_FAILED, words: &[
    Start("failed to fetch credentials from the plugin"),
    Event("containers-ccg", &[6]),
    General("credential guard failed to fetch cred"),
    Start("does not have secrets get permission"),
    Start("not authorized to perform: secretsmanager:getsecretvalue"),
    Start("not authorized to perform: ssm:getparameter"),
    Start("managedidentitycredential authentication"),
    Start("no managed identity endpoint found"),
    Start("was not found in this key vault"),
    Start("microsoft.keyvault/vaults/secrets/getsecret"),
    Start("not authorized to perform: kms:decrypt"),
    Start("secrets manager can't find the specified secret"),
    Message("failed to retrieve the credentials for url"),
    Message("failed to retrieve the access token of the user managed identity"),
    Message("http request to get the access token of the user managed identity"),
    Message("access_token tag was not found in the response"),
    Message("managed identity with the given object id wasn't found"),
    Message("requesting the access token failed with the following error"),
    Message("parse the response of the http request to read the credentials from the azure keyvault"),
    Message("credential value was read as an empty string"),
    Message("credentials stored in the azure keyvault are not in the format"),
    Message("plugin failed to access the credentials from azure keyvault"),
    Message("plugin failed to read the credentials from the azure keyvault"),
    Event("aksgmsaplugin", &[1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010]),
    Message("not allowed to retrieve secret"),
    Message("not allowed to retrieve secret*cannot get resource"),
    Message("error retrieving secret"),
    Message("secret ? is not found: "),
    Message("error parsing response from secret"),
    Message("does not contain key 'username'"),
    Message("does not contain key 'password'"),
    Message("does not contain key 'domainname'"),
    Message("received empty response body from account-provider"),
    Message("http client hit an exception"),
    Message("failed to open port file located at"),
    Message("consider running with --disable-mtls"),
    Message("failed to import certificate * into"),
    Message("failed to import certificate: "),
    Message("failed to unimport certificate "),
    Message("encountered error determining thumbprint of"),
    Message("unable to find certificate * in cert store"),
    Message("listed in cert store under"),
    Message("gmsa-account-provider must be run within"),
    Message("could not find certificate*gmsa"),
    Message("gmsa*could not find certificate"),
    Message("\"value\": \"system.security.securestring"),
    Message("domainless ad user credentials is not valid"),
    Message("retrieving user info from secrets manager"),
    Message("failed to retrieve credentials for domainless gmsa user"),
    Message("unable to fetch valid credentialspec"),
    Start("forbiddenbyfirewall"),
    Start("client address is not authorized and caller is not a trusted service"),
    Start("forbiddenbyrbac"),
    Start("forbiddenbypolicy"),
    Start("unable to get iam security credentials from ec2 instance metadata"),
    Message("secrets \"*\" is forbidden: user \"system:serviceaccount:*gmsa-account-provider\" cannot"),
    Message("identity not found*169.254.169.254"),
    Message("multiple user assigned identities exist"),
    Message("not allowed on a disabled secret"),
    Message("akv10000"),
    Message("akv10032"),
    Message("parameternotfound: gmsa"),
], remedies: &[
    (&["akv10032"], "The managed identity is of another tenant than the Key Vault, which takes no token of it: use a vault and an identity of one tenant."),
    (&["on a disabled secret"], "Enable the version of the secret that `SecretUri` names: `az keyvault secret set-attributes --enabled true`."),
    (&["parameternotfound"], "Create the parameter that `credentialArn` names, in the region of the ARN: `aws ssm get-parameter` finds it."),
    (&["object id wasn't found", "event 1003 of", "multiple user assigned"], "Write the object ID of a managed identity that is assigned to the virtual machine scale set of the nodes as `ObjectId` into `PluginInput`: `az vmss identity show`. It is neither the client ID nor the ID of the resource."),
    (&["access token", "access_token", "akv10000", "event 1000 of", "event 1001 of", "event 1002 of", "event 1009 of"], "The node gets no token for the managed identity: assign the identity with this `ObjectId` to the virtual machine scale set of the nodes (`az vmss identity assign`), and let the node reach 169.254.169.254."),
    (&["plugin failed to access the credentials", "event 1007 of"], "Give the managed identity that `PluginInput` names the right to read the secret: the role `Key Vault Secrets User`, or `get` on secrets in the access policy of the Key Vault."),
    (&["are not in the format", "event 1006 of"], "Write the secret as `DOMAIN\\USER:PASSWORD`, with the DNS name of the domain: `az keyvault secret set`."),
    (&["read as an empty string", "event 1005 of"], "Write the secret again as `DOMAIN\\USER:PASSWORD`, and see that this version of it is enabled: `az keyvault secret show`."),
    (&["parse the response of the http request to read", "event 1004 of"], "Correct `SecretUri` in `PluginInput`: the address of a secret, `https://VAULT.vault.azure.net/secrets/NAME`."),
    (&["credentials from the azure keyvault", "credentials for url", "event 1008 of", "event 1010 of"], "The node does not reach the Key Vault, or it has no such secret: the status or error in the message says which. Compare `SecretUri`, let the node reach the vault over TCP 443 (firewall and private endpoint of the vault), and see that the secret is enabled."),
    (&["system.security.securestring"], "The module AksGMSA wrote the name of a type in place of the secret: write it by hand, `az keyvault secret set --value 'DOMAIN\\USER:PASSWORD'`, with the DNS name of the domain."),
    (&["forbiddenbyfirewall", "client address is not authorized"], "The firewall of the Key Vault keeps the nodes out: allow their subnet or outbound address (`az keyvault network-rule add`), or give the vault a private endpoint that they resolve."),
    (&["iam security credentials"], "The node gets no credentials of its role: attach an instance profile to it, and let the node reach 169.254.169.254."),
    (&["not allowed to retrieve secret", "gmsa-account-provider\" cannot"], "Let Rancher's account provider read the Secret: a Role with `get` on it, bound to its service account, in the namespace that `PluginInput` names."),
    (&["error parsing response from secret", "does not contain key"], "The Secret for Rancher's plugin needs the keys `username`, `password` and `domainName`."),
    (&["secret ? is not found"], "Create the Secret that `PluginInput` names, with the keys `username`, `password` and `domainName`, in the namespace of Rancher's account provider."),
    (&["account-provider", "http client hit an exception", "port file", "--disable-mtls", "certificate", "thumbprint", "cert store", "must be run within", "error retrieving secret"], "Rancher's plugin gets no answer from the account provider on its node: look at the log of the Pods of `rancher-gmsa-account-provider`, at the Secret that `PluginInput` names, and at the certificates between both (`C:\\var\\lib\\rancher\\gmsa`)."),
    (&["vaults/secrets/getsecret"], "Give the identity of the nodes the role `Key Vault Secrets User` on the Key Vault that `PluginInput` names."),
    (&["kms:decrypt"], "Give the role of the nodes `kms:Decrypt` for the key of the secret, besides `secretsmanager:GetSecretValue`."),
    (&["does not have secrets get permission"], "Give the identity of the nodes the right `get` on secrets of the Key Vault that `PluginInput` names."),
    (&["managed"], "Assign the managed identity that `PluginInput` names to the virtual machine scale set of the nodes, and give it `get` on secrets of the Key Vault."),
    (&["failed to fetch credentials from the plugin*access is denied"], "Let the node read the secret that `PluginInput` names: its managed identity or role needs that right, such as `get` on secrets of the Key Vault."),
] },
RuleEntry { rule: &PLUGIN_USER, words: &[
    Start("failed to fetch gmsa credentials*attempted logon is invalid"),
    Start("failed to fetch gmsa credentials*user name or password is incorrect"),
    Start("failed to fetch gmsa credentials*invalid credentials"),
    Start("failed to fetch gmsa credentials*supplied credential is invalid"),
    Start("failed to fetch gmsa credentials*currently locked out"),
    Start("failed to fetch gmsa credentials*account is currently disabled"),
    Start("failed to fetch gmsa credentials*password must be changed"),
    Start("failed to fetch gmsa credentials*account has expired"),
    Start("failed to fetch gmsa credentials*account restrictions"),
    Start("failed to fetch gmsa credentials*network password is not correct"),
    Start("failed to fetch gmsa credentials*credentials supplied to the package were not recognized"),
], remedies: &[
] },
RuleEntry { rule: &NODE_DNS_TCP, words: &[
    Start("directory service is not available"),
], remedies: &[
] },
RuleEntry { rule: &PASSWORD_NOT_RETRIEVED, words: &[
    General("failed to fetch gmsa credentials"),
    General("credential guard failed to fetch gmsa"),
    General("cannot get gmsa krb ticket"),
    General("cannot get machine krb ticket"),
    Start("failed to fetch gmsa credentials*insufficient access rights to perform the operation"),
    Start("netlogon failed to retrieve the password for account"),
    Start("cannot be used as managed service account on the local"),
    Event("containers-ccg", &[8]),
    Event("netlogon", &[9000]),
], remedies: &[
    (&["failed to fetch gmsa credentials*local error"], "The LDAP client of the node failed before the domain controller answered. Write the user in the secret of the plugin with the DNS name of the domain (`contoso.com\\USER`), compare the clocks, and let the node reach a domain controller: `nltest /dsgetdc:DOMAIN`, TCP and UDP 88 and 389."),
] },
RuleEntry { rule: &NODE_CREDENTIALS, words: &[
    General("failed to setup the external credentials"),
    Event("hyper-v-compute", &[11507]),
    General("container credential guard instance"),
    General("credential guard failed to"),
    Start("wrong number of service properties present"),
    Start("failed to find credential guard instance with container id"),
    Start("gmsa credentials are disabled"),
    Start("gmsa specifications are not supported for template containers"),
    StartCodes(&["RPC_S_CALL_FAILED_DNE", "STATUS_INTERNAL_ERROR", "RPC_S_SERVER_UNAVAILABLE", "RPC_S_CALL_FAILED", "RPC_NT_SERVER_UNAVAILABLE", "RPC_NT_CALL_FAILED", "ERROR_NETLOGON_NOT_STARTED", "STATUS_NETLOGON_NOT_STARTED", "ERROR_NO_SUCH_LOGON_SESSION", "SEC_E_NO_CREDENTIALS", "STATUS_NO_SUCH_LOGON_SESSION", "STATUS_BAD_VALIDATION_CLASS", "SEC_E_INTERNAL_ERROR"]),
], remedies: &[
    (&["gmsa credentials are disabled", "template containers"], "An annotation switches GMSA off: remove `io.microsoft.container.wcow.gmsa.disable` from the Pod, from its runtime class, and from the annotations that containerd on the node sets."),
    (&["using plugin*remote procedure call failed"], "The plugin ended while the node asked it for the user. Its own log says why, such as Microsoft-AKSGMSAPlugin/Admin. Compare the secret with `DOMAIN\\USER:PASSWORD`, and let the nodes read it."),
    (&["credential guard failed to"], "The message is cut off: `Get-WinEvent -LogName Microsoft-Windows-Containers-CCG/Admin -MaxEvents 10 | Format-List` on the node shows all of it."),
    (&["service properties", "credential guard instance"], "The compute service of the node holds no Container Credential Guard for the container: restart the service `vmcompute`, or the node after a drain, and install its updates. The log Microsoft-Windows-Containers-CCG/Admin says whether the credential spec was read."),
] },
RuleEntry { rule: &NODE_NO_DOMAIN_CONTROLLER, words: &[
    StartCodes(&["ERROR_BAD_NETPATH", "ERROR_NO_LOGON_SERVERS", "ERROR_NO_SUCH_DOMAIN", "EPT_S_NOT_REGISTERED", "ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "NERR_DCNotFound", "SEC_E_NO_AUTHENTICATING_AUTHORITY", "STATUS_NO_LOGON_SERVERS", "STATUS_NO_SUCH_DOMAIN", "STATUS_DOMAIN_CONTROLLER_NOT_FOUND", "STATUS_BAD_NETWORK_PATH", "ERROR_DS_SERVER_DOWN", "ERROR_DS_UNAVAILABLE", "SEC_E_DOWNGRADE_DETECTED", "STATUS_DOWNGRADE_DETECTED"]),
    Start("failed to fetch gmsa credentials*the rpc server is unavailable"),
    Start("failed to fetch gmsa credentials*ldap server is unavailable"),
    Start("failed to fetch gmsa credentials*server down"),
    Start("failed to fetch gmsa credentials*no such host"),
    Start("failed to fetch gmsa credentials*local security authority cannot be contacted"),
    Start("failed to fetch gmsa credentials*timeout"),
    Start("failed to fetch gmsa credentials*network location cannot be reached"),
    Start("failed to fetch gmsa credentials*could not be contacted"),
], remedies: &[
] },
RuleEntry { rule: &START_LOGON, words: &[
    Start("createprocess*user name or password is incorrect"),
    Start("createcomputesystem*unknown user name or bad password"),
    StartCodes(&["ERROR_LOGON_FAILURE", "SEC_E_LOGON_DENIED", "STATUS_WRONG_PASSWORD", "STATUS_LOGON_FAILURE", "ERROR_NONE_MAPPED", "STATUS_NONE_MAPPED"]),
    Start("failed to map user name to sid"),
    Start("container_user*not found"),
], remedies: &[
] },
RuleEntry { rule: &IMAGE_MISMATCH, words: &[
    Start("operating system does not match the host"),
    Start("is incompatible with a * host"),
    Start("no matching manifest for windows"),
    Start("no match for platform in manifest"),
    StartCodes(&["HCS_E_IMAGE_MISMATCH"]),
], remedies: &[
    (&["failed to get sandbox image"], "The pause image has no build for the Windows of this node: set `sandbox_image` in the config.toml of containerd to a version that has, and restart containerd."),
] },
RuleEntry { rule: &START_EXITED, words: &[
    Start("virtual machine or container exited unexpectedly"),
    StartCodes(&["HCS_E_TERMINATED_DURING_START", "HCS_E_UNEXPECTED_EXIT"]),
    Codes(&["HCS_E_INVALID_STATE", "HCS_E_SYSTEM_NOT_FOUND", "HCS_E_SYSTEM_ALREADY_STOPPED"]),
], remedies: &[
    (&["hcs_e_invalid_state", "hcs_e_system_"], "The container has ended, or has not started yet, so nothing can run in it: `kubectl describe pod POD --namespace NAMESPACE` and `kubectl logs POD --namespace NAMESPACE --previous` say why it ended."),
] },
RuleEntry { rule: &START_COMMAND, words: &[
    Start("createprocess*cannot find the file specified"),
    Start("createprocess*cannot find the path specified"),
    Start("createprocess*directory name is invalid"),
    Start("exec: \"*\": executable file not found"),
    Start(": executable file not found in"),
    Message(".exe: exec format error"),
    Message("'nltest' is not recognized"),
    Message("'klist' is not recognized"),
    Message("'setspn' is not recognized"),
    Message("'nslookup' is not recognized"),
    Message("'powershell' is not recognized"),
    Message("'w32tm' is not recognized"),
    Message("'net' is not recognized"),
    Message("'whoami' is not recognized"),
    Message("'cmd' is not recognized"),
    Message("nltest.exe' is not recognized"),
    Message("klist.exe' is not recognized"),
    Message("the term 'test-netconnection' is not recognized"),
    Message("the term 'resolve-dnsname' is not recognized"),
    Message("nltest: command not found"),
    Message("nltest: not found"),
    StartCodes(&["ERROR_FILE_NOT_FOUND", "ERROR_PATH_NOT_FOUND"]),
    Exit(&[126, 127]),
], remedies: &[
    (&["file not found in $path", "exec format error"], "The container is for Linux, and what it shall run is for Windows: use an image for Windows, and the node selector `kubernetes.io/os: windows`."),
    (&["is not recognized", "nltest: "], "The image does not have the command: Nano Server has neither `nltest` nor `powershell`, and no Netlogon. Run the command in a container of `mcr.microsoft.com/windows/servercore` with the same credential spec: `kubectl gmsa probe` does."),
    (&["exit code 126"], "The shell found the command and cannot execute it: correct its permissions, or its format, in the image."),
    (&["exit code 127"], "The shell did not find the command: correct its name, or install it in the image. On Windows, Nano Server has few commands."),
] },
RuleEntry { rule: &IMAGE_LAYER, words: &[
    Start("hcsshim::activatelayer"),
    Start("hcsshim::preparelayer"),
    Start("hcsshim::importlayer"),
    Start("hcsshim::createlayer"),
    Start("hcsshim::createsandboxlayer"),
    Start("hcsshim::processbaselayer"),
    Start("failed to register layer"),
    Start("failed to extract layer"),
    Start("failed to copy: *no space left on device"),
    Start("there is not enough space on the disk"),
    StartCodes(&["ERROR_DISK_FULL"]),
], remedies: &[
] },
RuleEntry { rule: &COMPUTE_SERVICE, words: &[
    Start("timeout waiting for notification"),
    Start("hcs::*context deadline exceeded"),
    Start("hcsshim::*context deadline exceeded"),
    Start("failed to connect to the host compute service"),
    Start("createcomputesystem*the service cannot be started"),
    StartCodes(&["ERROR_SERVICE_DISABLED", "ERROR_SERVICE_DOES_NOT_EXIST", "HCS_E_CONNECT_FAILED", "HCS_E_CONNECTION_TIMEOUT", "HCS_E_CONNECTION_CLOSED", "HCS_E_OPERATION_PENDING"]),
], remedies: &[
] },
RuleEntry { rule: &HYPER_V, words: &[
    Start("hypervisor isolated containers*do not support gmsa"),
    Start("hyper-v isolated containers do not support gmsa"),
    Start("no hypervisor is present on this system"),
    Start("hyper-v components are not installed"),
    StartCodes(&["HCS_E_HYPERV_NOT_INSTALLED"]),
    Start("no runtime for \"*hypervisor\" is configured"),
], remedies: &[
] },
RuleEntry { rule: &SERVICE_ACCOUNT_MISSING, words: &[
    Refusal("error looking up service account"),
    General("serviceaccounts \"*\" not found"),
], remedies: &[
] },
RuleEntry { rule: &RUNTIME_CLASS_MISSING, words: &[
    Refusal("pod rejected: runtimeclass"),
    Message("runtimeclass.node.k8s.io \"*\" not found"),
    Start("no runtime for \"*\" is configured"),
], remedies: &[
    (&["no runtime for"], "Configure the handler of the runtime class in containerd of the node, or correct runtimeClassName in the Pod."),
] },
RuleEntry { rule: &EPHEMERAL_CONTAINERS, words: &[
], remedies: &[
] },
RuleEntry { rule: &IGNORED_FIELD, words: &[
    Message("alpha.windows.kubernetes.io/gmsa"),
    Message("windows-gmsa-credspec.alpha.kubernetes.io"),
], remedies: &[
] },
RuleEntry { rule: &OPERATOR_PODS, words: &[
], remedies: &[
] },
RuleEntry { rule: &NOT_RENDERED, words: &[
], remedies: &[
] },
RuleEntry { rule: &NOTHING_FOUND, words: &[
], remedies: &[
] },
RuleEntry { rule: &WINDOWS_BUILD, words: &[
], remedies: &[
] },
RuleEntry { rule: &RUNTIME_ANNOTATION, words: &[
], remedies: &[
] },
RuleEntry { rule: &NO_CREDENTIAL_SPEC, words: &[
    Start("credential spec is empty"),
], remedies: &[
] },
RuleEntry { rule: &TICKETS_NOT_INJECTED, words: &[
], remedies: &[
] },
RuleEntry { rule: &CONTENTS_OUTDATED, words: &[
], remedies: &[
] },
RuleEntry { rule: &POD_REFUSED, words: &[
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
    General("denied the request"),
    General("denied request"),
    General("error creating: pods"),
], remedies: &[
    (&["violates podsecurity"], "Change the fields that the message names. For the level `restricted`, write `os: {name: windows}` into a Windows Pod: it then needs `runAsNonRoot: true` alone. `hostProcess` needs `privileged`. The sidecar for tickets meets the level `restricted`."),
    (&["takes pods out of the gmsa webhook"], "Have a user do it who may update the webhook configurations: the label exempts Pods from all checks."),
    (&["static policies of the"], "Let a user or group do it that `staticPolicies.admins` names: docs/static-policies.md."),
    (&["autogke", "autopilot"], "GKE Autopilot runs no Windows Pods, and has no Windows nodes: use a Standard cluster with a Windows node pool."),
] },
RuleEntry { rule: &PODS_MISSING, words: &[
], remedies: &[
] },
RuleEntry { rule: &POD_STARTING, words: &[
], remedies: &[
] },
RuleEntry { rule: &POD_ENDING, words: &[
], remedies: &[
] },
RuleEntry { rule: &NOT_VERIFIED, words: &[
], remedies: &[
] },
RuleEntry { rule: &NODE_TAINT, words: &[
], remedies: &[
] },
RuleEntry { rule: &POD_VOLUME, words: &[
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
    Message("cifs_mount failed w/return code"),
    Message("failed to create a new smb session with kerberos"),
    Message("error in sesssetup = -"),
    Message("gssd_refresh_krb5_machine_credential"),
    General("/?: required key not available"),
    General("[errno 126] required key not available"),
    Message("mount error ? = "),
    Message("rpc.gssd*error: "),
    Message("mount error(?): "),
    Message("mount.nfs*: access denied by server while mounting"),
    Message("mount.nfs*: operation not permitted"),
    Message("mount.nfs*: an incorrect mount option was specified"),
    Message("cifs.upcall: "),
], remedies: &[
    (&["mount error(?): ", "cifs_mount", "cifs: vfs: ", "sesssetup", "session with kerberos", "cifs.upcall", "required key not available", "mount error ? = "], "The kernel of the node mounts the share, with a ticket of the node (`cifs.upcall`) or with the user of the volume's Secret: the account of the Pod has no part in it, and neither do its tickets. The number is an error of the kernel. Let the process open the share itself (`smbclient --use-krb5-ccache`), or give the volume credentials of its own."),
    (&["mount.nfs", "rpc.gssd", "gssd_refresh"], "The node mounts the share. With `sec=krb5` it uses tickets of the node (`rpc.gssd`, keytab and caches there): the tickets of the Pod have no part in it. Look at the export on the server, and at `rpc.gssd` on the node; a Pod needs a file system that it opens itself, or `sec=sys`."),
    (&["smbglobalmapping", "new-smbglobalmapping", "smb", "nfs", "username and password from secret", "invalid parameter(username", "empty mountoptions", "source field is missing", "getrootmappingpath", "remote path (*) is invalid", "invalid source path", "prepare stage path failed"], "The node mounts the volume, with the user of its Secret (`nodeStageSecretRef`): the account of the Pod has no part in it. Compare `source`, this user and its rights on the share. A process uses the gMSA where it opens `\\\\SERVER\\SHARE` itself."),
] },
RuleEntry { rule: &NODE_SELECTOR, words: &[
    General("didn't match pod's node affinity/selector"),
    General("didn't match node selector"),
    General("predicate matchnodeselector failed"),
    General("predicate nodeaffinity failed"),
], remedies: &[
] },
RuleEntry { rule: &NOT_SCHEDULED, words: &[
    General("nodes are available"),
    General("no nodes available to schedule pods"),
    General("failedscheduling"),
], remedies: &[
] },
RuleEntry { rule: &POD_FAILED, words: &[
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
], remedies: &[
] },
RuleEntry { rule: &NODE_NOT_READY, words: &[
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
], remedies: &[
] },
RuleEntry { rule: &POD_NETWORK, words: &[
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
    Codes(&["HCN_E_NETWORK_NOT_FOUND", "HCN_E_ENDPOINT_NOT_FOUND", "HCN_E_NETWORK_ALREADY_EXISTS", "HCN_E_ENDPOINT_ALREADY_ATTACHED", "HCN_E_NAMESPACE_ATTACH_FAILED"]),
], remedies: &[
    (&["label vpc.amazonaws.com/privateipv4address"], "Enable Windows on EKS: `enable-windows-ipam: \"true\"` in the ConfigMap `amazon-vpc-cni` of `kube-system`, and `kubernetes.io/os: windows` in the node selector of the Pod."),
] },
RuleEntry { rule: &POD_NOT_READY, words: &[
], remedies: &[
] },
RuleEntry { rule: &PROBE_UNAUTHORIZED, words: &[
    Message("probe failed: http probe failed with statuscode: 401"),
], remedies: &[
] },
RuleEntry { rule: &NOT_STARTED, words: &[
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
], remedies: &[
    (&["e_fail", "e_unexpected", "status_unsuccessful"], "The code says no cause (unspecified): what returned it does. For a CCG plugin that is the log of the plugin, else the logs Microsoft-Windows-Containers-CCG/Admin and Microsoft-Windows-Hyper-V-Compute-Admin of the node: docs/troubleshooting.md says how to read them."),
    (&["createcomputesystem"], "Windows on the node failed: the log Microsoft-Windows-Hyper-V-Compute-Admin there says more. A restart of the service `vmcompute`, or of the node after a drain, clears what an earlier container left."),
    (&["runasnonroot", "non-root policy"], "Set `runAsUserName: ContainerUser` or `NT AUTHORITY\\NETWORK SERVICE`: with `runAsNonRoot`, the kubelet refuses ContainerAdministrator."),
] },
RuleEntry { rule: &START_HOOK, words: &[
    Message("failedpoststarthook"),
    Message("poststarthook failed"),
    Message("poststarthookerror"),
    Message("exec lifecycle hook"),
], remedies: &[
] },
RuleEntry { rule: &EXIT_LIBRARY, words: &[
    Codes(&["STATUS_DLL_NOT_FOUND", "STATUS_ORDINAL_NOT_FOUND", "STATUS_ENTRYPOINT_NOT_FOUND", "STATUS_INVALID_IMAGE_FORMAT", "ERROR_MOD_NOT_FOUND", "ERROR_BAD_EXE_FORMAT"]),
], remedies: &[
] },
RuleEntry { rule: &EXIT_INITIALIZATION, words: &[
    Codes(&["STATUS_DLL_INIT_FAILED", "ERROR_DLL_INIT_FAILED"]),
], remedies: &[
] },
RuleEntry { rule: &EXIT_CRASHED, words: &[
    Codes(&["STATUS_ACCESS_VIOLATION", "STATUS_STACK_OVERFLOW", "STATUS_HEAP_CORRUPTION", "STATUS_STACK_BUFFER_OVERRUN", "ERROR_PROCESS_ABORTED", "CLR_EXCEPTION", "EXCEPTION_COMPLUS", "EXCEPTION_MSC", "COR_E_FAILFAST", "STATUS_BREAKPOINT", "STATUS_ILLEGAL_INSTRUCTION", "STATUS_INTEGER_DIVIDE_BY_ZERO", "STATUS_INVALID_CRUNTIME_PARAMETER", "STATUS_ASSERTION_FAILURE", "STATUS_FAIL_FAST_EXCEPTION"]),
    Exit(&[132, 134, 135, 136, 139, 1067]),
], remedies: &[
] },
RuleEntry { rule: &EXIT_STOPPED, words: &[
    Codes(&["STATUS_CONTROL_C_EXIT", "DBG_TERMINATE_PROCESS"]),
    Exit(&[130, 137, 143]),
], remedies: &[
    (&["exit code 137"], "`kubectl describe pod POD --namespace NAMESPACE` says which: `OOMKilled` is a memory limit that is too low. Otherwise the container did not end within its grace period after a liveness probe, a rollout or an eviction."),
] },
RuleEntry { rule: &NODE_MEMORY, words: &[
    Codes(&["ERROR_NO_SYSTEM_RESOURCES", "ERROR_COMMITMENT_LIMIT", "STATUS_NO_MEMORY", "STATUS_INSUFFICIENT_RESOURCES", "STATUS_COMMITMENT_LIMIT"]),
], remedies: &[
] },
RuleEntry { rule: &KUBERNETES_VERSION, words: &[
    Message("chart requires kubeversion"),
], remedies: &[
] },
RuleEntry { rule: &NAMESPACE_UNUSABLE, words: &[
    Refusal("because it is being terminated"),
    Refusal("namespace * is being terminated"),
    Message("object is being deleted: namespaces \""),
], remedies: &[
] },
RuleEntry { rule: &CRD_FOREIGN, words: &[
], remedies: &[
] },
RuleEntry { rule: &STORED_VERSION, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_PRESENT, words: &[
], remedies: &[
] },
RuleEntry { rule: &CRD_MISSING, words: &[
    Message("no matches for kind \"gmsacredentialspec\""),
    Message("doesn't have a resource type \"gmsacredentialspec"),
    Message("customresourcedefinition of gmsacredentialspec is not installed"),
    Message("the customresourcedefinition is not installed"),
    Message("customresourcedefinitions.apiextensions.k8s.io \"gmsacredentialspecs.windows.k8s.io\" not found"),
    Message("unable to recognize*gmsacredentialspec"),
    Message("could not find windows.k8s.io/gmsacredentialspec for requested resource"),
    Message("could not find the requested resource*gmsacredentialspecs"),
    Message("gmsacredentialspec: the server could not find the requested resource"),
], remedies: &[
    (&["windows.k8s.io/v1alpha1"], "Install the chart, which brings the CRD: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`. Then write `apiVersion: windows.k8s.io/v1`: newer clusters do not have v1alpha1."),
] },
RuleEntry { rule: &CRD_NOT_SERVED, words: &[
], remedies: &[
] },
RuleEntry { rule: &CRD_OUTDATED, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_DUPLICATE, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_RULES, words: &[
], remedies: &[
] },
RuleEntry { rule: &FAILURE_POLICY, words: &[
    Message("GmsaWebhookFailOpen"),
], remedies: &[
    (&["GmsaWebhookFailOpen"], "Bring the webhook back: look at its Pods and its Service. Then compare the contents of the Pods that `kube-system` and its own namespace got meanwhile: `kubectl gmsa check -A`. From Kubernetes 1.28 on no Pod is admitted unchecked."),
] },
RuleEntry { rule: &MATCH_CONDITIONS, words: &[
], remedies: &[
] },
RuleEntry { rule: &SELECTORS_CHANGED, words: &[
], remedies: &[
] },
RuleEntry { rule: &NAMESPACES_EXCLUDED, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_UNREACHABLE, words: &[
    Refusal("failed calling webhook"),
    Refusal("failed to call webhook"),
    Message("unknown authority*gmsa-webhook-ca"),
    Message("\"mutatingadmissionwebhook\" failed to complete mutation in"),
    Message("webhook\" failed to complete validation in"),
    Message("GmsaWebhookCallsFail"),
], remedies: &[
    (&["webhook\" failed to complete"], "An admission webhook took the time of the whole request, and the message does not name it: `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations` lists them. `kubectl gmsa doctor` calls the GMSA webhook."),
    (&["proxyconnect"], "The API server calls through a proxy: add `.svc` and the address range of Services to its `NO_PROXY`."),
    (&["webhook.cert-manager.io"], "cert-manager itself is not ready: wait for its webhook (`kubectl get pods -n cert-manager`), then try again."),
    (&["no endpoints available"], "The Service of the webhook has no ready endpoint, because no Pod of it is ready: `kubectl get pods -n WEBHOOKNAMESPACE` and `kubectl gmsa doctor` say why."),
    (&["x509*certificate has expired"], "The certificate of the webhook has expired: `kubectl gmsa doctor` shows it, and docs/certificates.md how each mode renews it. A wrong clock of the API server looks the same."),
    (&["x509*unknown authority"], "The `caBundle` of the webhook configuration is not of the CA that signed the certificate: `kubectl gmsa doctor` compares them. The webhook itself, cert-manager or `helm upgrade` writes it, by `certificates.mode`."),
    (&["x509*use sans instead", "x509*legacy common name"], "The certificate of the webhook has no subject alternative name: issue it with `NAME.NAMESPACE.svc` among them. See docs/certificates.md."),
    (&["expected webhook response"], "What answers is not this webhook, or a proxy before it: look at the Service that the configuration names, and at its Pods."),
    (&["x509*is valid for"], "The certificate of the webhook is for another name: issue it for `NAME.NAMESPACE.svc`, the name of its Service."),
    (&["x509"], "The API server does not take the certificate of the webhook: `kubectl gmsa doctor` compares it with the `caBundle`."),
    (&["certificate verify failed"], "The `caBundle` of the webhook configuration is not of the CA that signed the certificate: `kubectl gmsa doctor` compares them."),
    (&["connection refused"], "Nothing listens at that address: look at the Pods of the webhook (`kubectl get pods -n WEBHOOKNAMESPACE`), and at the port of its Service. `kubectl gmsa doctor` checks both."),
    (&["no route to host"], "The API server does not reach the Pods of the webhook: let the firewall between control plane and nodes, and NetworkPolicies, through to its port. `kubectl gmsa doctor` calls it."),
    (&["deadline exceeded"], "The webhook did not answer in time: a firewall between control plane and nodes (private GKE, EKS with another CNI) or a NetworkPolicy drops the packets, or its Pods are overloaded. `kubectl gmsa doctor` tells."),
    (&["i/o timeout"], "No packet came back: a firewall between control plane and nodes (private GKE, EKS with another CNI), or a NetworkPolicy, drops them. Where the Pod network is not reachable, set `hostNetwork` in the chart."),
    (&["tls handshake timeout"], "No packet came back: a firewall between control plane and nodes, or a NetworkPolicy, drops them. `kubectl gmsa doctor` calls it."),
    (&["no agent available"], "The tunnel between control plane and nodes (konnectivity) has no agent: look at its Pods in `kube-system`."),
    (&["client.timeout"], "The webhook did not answer in time: a firewall between control plane and nodes or a NetworkPolicy drops the packets, or its Pods are overloaded. `kubectl gmsa doctor` tells."),
    (&["address is not allowed"], "The control plane does not reach Pods (EKS with another CNI): set `hostNetwork` in the chart."),
    (&["service \"*\" not found"], "The Service of the webhook is gone, and its configuration remains: install the chart again, or end its checks with `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found NAME zz-NAME` and `kubectl delete validatingadmissionpolicybinding --ignore-not-found NAME-guard NAME-guard-trial` (Kubernetes 1.30 and later)."),
    (&["no such host"], "The API server cannot resolve the name of the webhook, or its Service is gone: `kubectl gmsa doctor`."),
    (&[": eof", "connection reset"], "The connection ended without an answer: a proxy or service mesh on the way ends it, or the Pod was stopped. Exclude the namespace of the webhook from the mesh, and look at the log of its Pods."),
    (&["http response to https client"], "What answers at the port speaks no TLS: a service mesh or a wrong `targetPort`. Exclude the namespace of the webhook from the mesh."),
    (&["could not find the requested resource"], "What answers has no such path: the `path` in the configuration, or the Service behind it, is another webhook's."),
] },
RuleEntry { rule: &CA_BUNDLE_CONTESTED, words: &[
    Message("another writer removes the certificate authorities from the webhook configuration"),
    Message("GmsaWebhookCaBundleContested"),
], remedies: &[
] },
RuleEntry { rule: &REPLICAS_DISAGREE, words: &[
    Message("another replica replaces what this one writes into the secret"),
    Message("GmsaWebhookReplicasDisagree"),
], remedies: &[
] },
RuleEntry { rule: &BROKER_VERSION, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_GONE, words: &[
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_FAILING, words: &[
    Message("GmsaWebhookReviewsFail"),
    Message("GmsaWebhookSpecsUnreadable"),
    General("the api server answered 403"),
    General("the watch of credential specs failed"),
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_OVERLOADED, words: &[
    Message("GmsaWebhookRequestsRefused"),
    Message("GmsaWebhookSlow"),
    Message("too many others were served or waited"),
    Message("other calls to the api server * were under way"),
    Message("too many other calls to the api server"),
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_WATCH, words: &[
    Message("GmsaWebhookWatchStale"),
    Message("a watch did not end when it was asked to"),
], remedies: &[
] },
RuleEntry { rule: &PORT_TAKEN, words: &[
    Message("cannot listen on *address already in use"),
    Message("gmsa-webhook*address already in use"),
    Message("gmsa-webhook*wsaeaddrinuse"),
    Message("gmsa-webhook*permission denied"),
    Message("cannot listen on *permission denied"),
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_NOT_CALLED, words: &[
], remedies: &[
] },
RuleEntry { rule: &NOT_ENFORCED, words: &[
    Message("GmsaWebhookNotEnforced"),
], remedies: &[
] },
RuleEntry { rule: &DENIALS_RISE, words: &[
    Message("GmsaWebhookDenialsRise"),
    Message("GmsaTicketsPodsDenied"),
], remedies: &[
] },
RuleEntry { rule: &KEYTAB_NAMESPACE, words: &[
    Message("GmsaTicketsKeytabOfNewNamespace"),
], remedies: &[
] },
RuleEntry { rule: &WEBHOOK_URL, words: &[
], remedies: &[
] },
RuleEntry { rule: &ENDPOINTS, words: &[
    Message("GmsaWebhookAbsent"),
    Message("GmsaWebhookReplicaMissing"),
    Message("GmsaTicketsAbsent"),
    Message("GmsaTicketsReplicaMissing"),
    General("no endpoints available for service"),
], remedies: &[
    (&["GmsaTickets"], "Look at the Pods of the broker and their events: `kubectl get pods -n gmsa-tickets`. Where they run, look at the ServiceMonitor, and at the targets in Prometheus."),
] },
RuleEntry { rule: &WEBHOOK_PERMISSIONS, words: &[
    Message("listing and watching credential specs is not permitted"),
    Message("GmsaWebhookWatchLive"),
    Message("user \"system:serviceaccount:*webhook*\" cannot "),
], remedies: &[
] },
RuleEntry { rule: &SECRET_MISSING, words: &[
    Message("the secret * does not exist: install it again, empty"),
    Message("GmsaWebhookCertificatesNotManaged"),
], remedies: &[
] },
RuleEntry { rule: &AKS_REFUSES, words: &[
    Message("windows gmsa requires managed identity"),
    Message("gmsa*not supported*service principal"),
    Message("must set or not set --gmsa-dns-server"),
    Message("only can set --gmsa-dns-server"),
    Message("set the dns server in the vnet used by the cluster"),
    Message("should not set --disable-windows-gmsa"),
    Message("unrecognized arguments: *gmsa"),
    Message("windows_profile.0.gmsa"),
    Message("gmsaprofile"),
    General("coredns-custom*gmsa"),
    General("gmsa*coredns-custom"),
], remedies: &[
    (&["managed identity", "service principal"], "Give the cluster a managed identity, by which its plugin reads the user: `az aks update --enable-managed-identity`, then `az aks nodepool upgrade --node-image-only` for each node pool. Then enable GMSA."),
    (&["set --gmsa-dns-server", "windows_profile"], "Give both of `--gmsa-dns-server` and `--gmsa-root-domain-name`, with `--enable-windows-gmsa`. Give neither where the virtual network has the DNS servers of the domain."),
    (&["dns server in the vnet"], "Agree only where the virtual network of the nodes has the DNS servers of the domain: `az network vnet show --query dhcpOptions`. Otherwise give `--gmsa-dns-server` and `--gmsa-root-domain-name`."),
    (&["unrecognized arguments"], "Update the Azure CLI: `az upgrade`. These options are in 2.35 and later."),
    (&["coredns-custom"], "The ConfigMap `coredns-custom` has the zone of the domain already: remove it there, or enable GMSA without `--gmsa-dns-server` and `--gmsa-root-domain-name`."),
] },
RuleEntry { rule: &WINDOWS_NODES, words: &[
], remedies: &[
] },
RuleEntry { rule: &EXEC_REFUSED, words: &[
    Message("is forbidden: user * cannot ? resource \"pods/exec\""),
    Message("error dialing backend"),
    Message("unable to upgrade connection"),
    Message(":10250/containerlogs/*dial tcp"),
], remedies: &[
    (&[":10250/containerlogs", "dialing backend"], "The API server does not reach the kubelet of the node (TCP 10250): let the firewall between them through, or restart the node's kubelet or its tunnel (konnectivity)."),
    (&["container not found"], "The container does not run: `kubectl get pod` shows its state."),
    (&["pod does not exist"], "The Pod is gone: its controller has made another one."),
] },
RuleEntry { rule: &NO_ANSWER, words: &[
    RunningCodes(&["ERROR_SEM_TIMEOUT", "ERROR_TIMEOUT", "WSAETIMEDOUT"]),
], remedies: &[
] },
RuleEntry { rule: &NO_CREDENTIALS, words: &[
    RunningCodes(&["ERROR_NO_SUCH_LOGON_SESSION", "SEC_E_NO_CREDENTIALS", "STATUS_NO_SUCH_LOGON_SESSION", "SEC_E_UNKNOWN_CREDENTIALS"]),
], remedies: &[
    (&["sec_e_unknown_credentials"], "The process has no credentials that the package takes: run it as NETWORK SERVICE, and check `kubectl gmsa verify`. In TLS the code means that the process cannot read the private key of its certificate."),
] },
RuleEntry { rule: &DOMAIN_DNS, words: &[
    Message("can't find _ldap._tcp"),
    Message("can't find _kerberos._tcp"),
    Message("lookup _ldap._tcp"),
    Message("lookup _kerberos._tcp"),
    Message("cannot find the domain controllers of"),
    General("dns request timed out"),
    General("*** request to * timed-out"),
    General("non-existent domain"),
    General("server can't find *: nxdomain"),
    General("server can't find *: servfail"),
    General("server can't find *: refused"),
    General("status: nxdomain"),
    General("status: servfail"),
    General("no servers could be reached"),
    General("communications error to *timed out"),
    General("returned because the timeout period expired"),
    General("can't find server name for address"),
    General("can't find *: server failed"),
    General("can't find *: query refused"),
    General("can't find *: no response from server"),
    Message("could not resolve the computer name"),
    Message("could not resolve the user name"),
    Codes(&["DNS_ERROR_RCODE_SERVER_FAILURE", "DNS_ERROR_RCODE_NAME_ERROR", "DNS_ERROR_RCODE_REFUSED", "DNS_INFO_NO_RECORDS", "DNS_ERROR_NO_DNS_SERVERS", "ERROR_DS_DNS_LOOKUP_FAILURE"]),
    Message("in _ldap._tcp*nxdomain"),
    Message("in _kerberos._tcp*nxdomain"),
    Message("_msdcs*nxdomain"),
    Message("in _ldap._tcp*servfail"),
    Message("in _kerberos._tcp*servfail"),
    Message("_msdcs*servfail"),
    Message("in _ldap._tcp*refused qr"),
    Message("_msdcs*refused qr"),
    Message("_ldap._tcp* udp *\" - - 0 "),
    Message("_msdcs* udp *\" - - 0 "),
    Message("plugin/errors: 2 _ldap._tcp"),
    Message("plugin/errors: 2 _kerberos._tcp"),
], remedies: &[
    (&["\" - - 0 ", "plugin/errors"], "Let CoreDNS reach the DNS servers of the domain over UDP and TCP 53: a NetworkPolicy, firewall or security group drops its packets, or the zone names other servers."),
    (&["non-existent domain"], "Forward the domain to its DNS servers in the DNS of the cluster: docs/windows-pods.md, DNS, has the text for each platform. Let UDP 53 through."),
    (&["timeout period expired", "timed out", "timed-out"], "No DNS server answers: let UDP and TCP 53 through to the DNS of the cluster, and from it to the DNS servers of the domain. `nslookup NAME SERVER` asks each of them."),
] },
RuleEntry { rule: &DNS_REGISTRATION, words: &[
    Message("dynamic registration of the dns record"),
    Message("dynamic deletion of the dns record"),
    Message("dynamic registration or deregistration of one or more dns records failed"),
    Message("failed to register host (a or aaaa) resource records"),
    Message("failed to register pointer (ptr) resource records"),
    Event("netlogon", &[5774, 5775, 5781]),
], remedies: &[
    (&["resource records"], "In a container ignore it: its address needs no record. On a node, correct its DNS servers and its right to update the zone."),
] },
RuleEntry { rule: &DOMAIN_DNS_TCP, words: &[
    Message("-tcponly*timeout period expired"),
    Message("-vc*timed out"),
    Message("_ldap._tcp* tcp *\" - - 0 "),
    Message("_kerberos._tcp* tcp *\" - - 0 "),
    Message("_msdcs* tcp *\" - - 0 "),
], remedies: &[
    (&["\" - - 0 "], "The DNS server of the domain gives CoreDNS no answer over TCP: let TCP 53 through from the nodes of CoreDNS to it. Windows and CoreDNS repeat long answers over TCP."),
] },
RuleEntry { rule: &NO_DOMAIN_CONTROLLER, words: &[
    RunningCodes(&["ERROR_BAD_NETPATH", "ERROR_NO_LOGON_SERVERS", "ERROR_NO_SUCH_DOMAIN", "EPT_S_NOT_REGISTERED", "ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "NERR_DCNotFound", "SEC_E_NO_AUTHENTICATING_AUTHORITY", "STATUS_NO_LOGON_SERVERS", "STATUS_NO_SUCH_DOMAIN", "STATUS_DOMAIN_CONTROLLER_NOT_FOUND", "STATUS_BAD_NETWORK_PATH", "ERROR_DS_SERVER_DOWN", "ERROR_DS_UNAVAILABLE", "SEC_E_DOWNGRADE_DETECTED", "STATUS_DOWNGRADE_DETECTED"]),
    Message("naming information cannot be located"),
    Message("because your domain isn't available"),
    Message("could not locate a domain controller for domain"),
    Message("information about the domain could not be retrieved"),
    Message("domain controller for the domain * could not be contacted"),
    Message("netlogon is paused on the server"),
    Message("nldiscoverdc: cannot find dc"),
    Message("cannot pick trusted dc"),
    Message("no data returned from dnsquery"),
    Message("dsgetdcname function returns 1355"),
    Message("cannot nlbrowsersenddatagram"),
    Message("nlgetanydcname: * cannot find"),
    Message("nlfinishapiclientsession: timeout call"),
    Message("cannot contact a domain controller to service"),
    Message("domain controller (ad dc) for the domain * could not be contacted"),
    Message("specified domain does not exist or cannot be contacted"),
    Message("set up a secure session with a d*the rpc server is unavailable"),
    Message("5719*the rpc server is unavailable"),
    Message("lack of network connectivity to a domain controller"),
    Message("could not be contacted to service this request"),
    Message("principalserverdownexception"),
    Message("no authentication protocol was available"),
    Message("gpt.ini from a domain controller and was not successful"),
    Message("tcp connect to (* : 389) failed"),
    Message("tcp connect to (* : 88) failed"),
    Message("tcp connect to (* : 135) failed"),
    Message("service): filtered"),
    Message("timed out before it could be sent to domain controller"),
    General("not able to set up a secure session with a domain controller"),
    General("not able to set up a secure session with a dc"),
    General("windows cannot obtain the domain controller name"),
    Event("netlogon", &[5719]),
    Event("netlogon", &[5816, 5817, 5818, 5819]),
    Event("grouppolicy", &[1129]),
], remedies: &[
    (&["timed out before it could be sent", "event 5816 of", "event 5817 of", "event 5818 of", "event 5819 of"], "The domain controller answers too slowly for the logons that wait: look at its load, and at `MaxConcurrentApi` of Netlogon on both sides. Kerberos in place of NTLM avoids it."),
    (&["the rpc server is unavailable"], "The domain controller is known, and its RPC is not reached: let TCP 135, 445 and the dynamic ports (49152-65535) through from the Pod network, without NAT."),
    (&["an internal error occurred"], "If the event stands alone when Netlogon starts on Windows Server 2025, it means nothing: the channel is set up after it. Otherwise let the Pod network reach the domain controllers: TCP and UDP 88 and 389, TCP 135 and 445."),
] },
RuleEntry { rule: &NO_SECURE_CHANNEL, words: &[
    RunningCodes(&["RPC_S_SERVER_UNAVAILABLE", "RPC_S_CALL_FAILED", "RPC_NT_SERVER_UNAVAILABLE", "RPC_NT_CALL_FAILED"]),
    Message("local security authority cannot be contacted"),
    Message("is not responsive. the current rpc call"),
    Message("some or all identity references could not be translated"),
    Message("\"translate\"*trust relationship between"),
    Message("trust relationship between*ntaccount.translate"),
    Message("cannot verify the secure channel"),
    Message("test-computersecurechannel*false"),
    Message("msg 15401"),
    Message("windows nt user or group '*' not found"),
    Message("nt-benutzer oder die windows"),
    Message("lookupaccount*no mapping between account names"),
    Message("windows user or group '*' not found"),
    Message("could not obtain information about windows nt group/user"),
    Message("identitynotmappedexception"),
    RunningCodes(&["RPC_S_CALL_FAILED_DNE", "STATUS_INTERNAL_ERROR", "SEC_E_INTERNAL_ERROR"]),
    Event("netlogon", &[5783]),
], remedies: &[
    (&["user or group", "group/user", "nt-benutzer"], "SQL Server asks the domain for the SID of the name by the secure channel of its machine or container: `nltest /sc_verify:DOMAIN` there must answer 0. If it does, look for the flag WORKSTATION_TRUST_ACCOUNT (`account-trust`, `kubectl gmsa account lint`), and whether the name is right: `CONTOSO\\NAME$` for a gMSA. On Linux it asks by LDAP, as `network.privilegedadaccount` of `mssql-conf`, with its keytab."),
    (&["translate\"*trust relationship", "trust relationship between*translate"], "Windows translates names by the secure channel: `nltest /sc_verify:DOMAIN` in the container must answer 0. If it does, look for the flag WORKSTATION_TRUST_ACCOUNT of the account (`kubectl gmsa account lint`), and for the policy `EnableAuthEpResolution` of RPC in the image: with IIS it breaks the translation."),
    (&["identity references could not be translated", "identitynotmapped"], "Windows translates names by the secure channel: `nltest /sc_verify:DOMAIN` in the container must answer 0. If it does, look for the flag WORKSTATION_TRUST_ACCOUNT of the account: `kubectl gmsa account lint`."),
    (&["local security authority cannot be contacted", "sec_e_internal_error"], "Windows could not ask for a ticket: `nltest /sc_verify:DOMAIN` and `klist get krbtgt` in the container say why. On SQL Server for Linux, look at its keytab and at the realm in krb5.conf."),
    (&["getting parent domain failed"], "The container has no credential spec: `kubectl get pod POD --namespace NAMESPACE -o yaml` must show `gmsaCredentialSpec` with contents. A Pod that is older than the webhook has none: delete it."),
] },
RuleEntry { rule: &NETLOGON_STOPPED, words: &[
    Event("netlogon", &[1717]),
    RunningCodes(&["ERROR_NETLOGON_NOT_STARTED", "STATUS_NETLOGON_NOT_STARTED", "RPC_S_UNKNOWN_IF", "RPC_NT_UNKNOWN_IF", "ERROR_SERVICE_DISABLED", "ERROR_SERVICE_DOES_NOT_EXIST"]),
], remedies: &[
] },
RuleEntry { rule: &LOGON_DENIED, words: &[
    Message("kdc_err_preauth_failed"),
    Message("preauthentication failed"),
    Message("krb5_preauth_failed"),
    Message("pre-authentication information was invalid"),
    Message("kinit: pre-authentication failed"),
    Message("decrypt integrity check failed while getting initial credentials"),
    Message("krb5_child * decrypt integrity check failed"),
    Message("kinit: password incorrect"),
    Message("rejects the passwords that the directory gives"),
    Message("the kdc of * refuses: it gives no other cause"),
    Message("new password is bad. try old one"),
    Message("GmsaTicketsAccountRefused"),
    General("unknown user name or bad password"),
    RunningCodes(&["ERROR_ACCESS_DENIED", "ERROR_INVALID_PASSWORD", "ERROR_LOGON_FAILURE", "SEC_E_LOGON_DENIED", "STATUS_ACCESS_DENIED", "STATUS_WRONG_PASSWORD", "STATUS_LOGON_FAILURE"]),
    Event("kerberos", &[4771]),
    General("client password/keytab incorrect"),
    Message("generic preauthentication failure"),
], remedies: &[
    (&["GmsaTicketsAccountRefused"], "The log of the broker names the account. `kubectl gmsa account test NAME --ticket` says what the domain says."),
    (&["samlogon: *logon of"], "The line is about the user that it names, who logs on to this machine, mostly by NTLM: correct the name, the password or the domain that the client sends. The account of the container has no part in it."),
    (&["getticket substatus", "getting ticket"], "The domain controller, or the container, refuses this process a ticket. Run it as `NT AUTHORITY\\NETWORK SERVICE` or SYSTEM (`runAsUserName`), as ContainerUser has no identity; then `Test-ADServiceAccount NAME` on the node must say True."),
    (&["status_wrong_password", "password is bad", "password/keytab incorrect"], "The password is not the current one. A gMSA's password changes every 30 days, and nodes fetch it again: run `Test-ADServiceAccount NAME` on the node. Renew each copy of the password, such as a keytab."),
    (&["pre", "decrypt integrity check failed"], "The password, or the keytab, is not the current one. A gMSA's password changes every 30 days: hosts fetch it again, but you must renew keytabs. On a node, run `Test-ADServiceAccount NAME`."),
] },
RuleEntry { rule: &ACCOUNT_REVOKED, words: &[
    Message("kdc_err_client_revoked"),
    Message("kdc_err_service_revoked"),
    Message("credentials have been revoked"),
    Message("credentials for server have been revoked"),
    Message("cannot log on: it is disabled, locked out or has expired"),
], remedies: &[
] },
RuleEntry { rule: &ACCOUNT_LOCKED, words: &[
    Message("failure reason: account locked out"),
    Message("cannot log on: it is locked out"),
    Codes(&["ERROR_ACCOUNT_LOCKED_OUT", "STATUS_ACCOUNT_LOCKED_OUT"]),
], remedies: &[
] },
RuleEntry { rule: &NETLOGON_INSECURE, words: &[
    Message("vulnerable netlogon secure channel connection"),
    Event("netlogon", &[5827, 5828, 5829, 5830, 5831, 5838, 5839, 5840, 5841]),
], remedies: &[
] },
RuleEntry { rule: &TRUST_FAILED, words: &[
    Codes(&["ERROR_NO_TRUST_LSA_SECRET", "ERROR_NO_TRUST_SAM_ACCOUNT", "ERROR_TRUSTED_DOMAIN_FAILURE", "ERROR_TRUSTED_RELATIONSHIP_FAILURE", "STATUS_NO_TRUST_LSA_SECRET", "STATUS_NO_TRUST_SAM_ACCOUNT", "STATUS_TRUSTED_DOMAIN_FAILURE", "ERROR_TRUST_FAILURE", "STATUS_TRUST_FAILURE", "STATUS_TRUSTED_RELATIONSHIP_FAILURE", "STATUS_DOMAIN_TRUST_INCONSISTENT"]),
    Message("cannot i_netserverauthenticate"),
    Message("cannot i_netserverreqchallenge"),
    Message("does not have a local security database account"),
    Message("security database does not contain a trust account"),
    Message("session setup from the computer * failed to authenticate"),
    Message("session setup from computer '*' failed"),
    Message("this computer could not authenticate with"),
    Event("netlogon", &[3210, 5720, 5722, 5723, 5805]),
], remedies: &[
    (&["i_netserver"], "The domain controller refuses the machine password of the container. Where several Pods with one account take turns, set `randomHostname` in the chart, or a host name for each Pod. If it is always the same one, run `Test-ADServiceAccount NAME` on the node."),
    (&["session setup from"], "Several containers with one account and one host name displace each other: set `randomHostname` in the chart. If it is always the same one, its password differs from the domain's: `Test-ADServiceAccount NAME` on the node."),
] },
RuleEntry { rule: &PAC_VALIDATION, words: &[
    Message("kerberos network ticket logon"),
    Message("pac verification failure"),
    Event("security-kerberos", &[21, 22, 23]),
], remedies: &[
] },
RuleEntry { rule: &CLOCK_SKEW, words: &[
    Message("krb_ap_err_skew"),
    Message("krb5_kdcrep_skew"),
    Message("krb_ap_err_tkt_nyv"),
    Message("kdc_err_never_valid"),
    Message("clock skew too great"),
    Message("time skew (*) larger than max"),
    Message("ticket not yet valid"),
    Message("did not resync because no time data was available"),
    Message("source: local cmos clock"),
    Codes(&["ERROR_TIME_SKEW", "SEC_E_TIME_SKEW", "STATUS_TIME_DIFFERENCE_AT_DC", "NERR_TimeDiffAtDC"]),
    Message("clock skew with kdc too large"),
    Message("requested effective lifetime is negative or too short"),
    Message("krbexception: requested start time is later than end time"),
], remedies: &[
] },
RuleEntry { rule: &PRINCIPAL_UNKNOWN, words: &[
    Message("kdc_err_s_principal_unknown"),
    Message("kdc_err_principal_not_unique"),
    Message("server * not found in kerberos database"),
    Message("multiple entries in kerberos database"),
    Message("krb_ap_err_modified"),
    Message("message stream modified"),
    Message("krb_ap_err_bad_integrity"),
    Message("decrypt integrity check failed"),
    Message("integrity check on decrypted field failed"),
    Message("krb_ap_err_not_us"),
    Message("krb_ap_err_badmatch"),
    Message("kdc_err_must_use_user2user"),
    Message("failed to decrypt the ticket"),
    Message("it does not know the service * or knows it twice"),
    Message("could not register the service principal name"),
    Message("service principal name (spn) ? is not registered"),
    General("generate sspi context"),
    General("create sspi context"),
    General("create windows sspi auth"),
    General("could not register the spn"),
    Event("kdc", &[11]),
    Codes(&["ERROR_WRONG_TARGET_NAME", "SEC_E_TARGET_UNKNOWN", "SEC_E_WRONG_PRINCIPAL", "ERROR_MUTUAL_AUTH_FAILED", "SEC_E_MUTUAL_AUTH_FAILED"]),
    Message("server (*@*) unknown"),
    Message("valid for user2user only"),
    Message("error from kdc: unknown_server"),
], remedies: &[
    (&["server postgres/"], "libpq asks for `postgres/HOST` (its `krbsrvname`), with the full name of the host in the connection string: `setspn -Q postgres/HOST` must find it once, for the account whose keys are in the keytab of the server."),
    (&["credentials * -> *@ using ccache"], "The client did not know the realm of the host, so it asked the domain by the name that stands before `@` in the trace. If that is not the name in the service principal name, reverse DNS or an alias made it: `rdns = false` and `dns_canonicalize_hostname = false` in krb5.conf. Otherwise `setspn -Q` finds the name, and `[domain_realm]` its realm."),
    (&["mssqlsvc/tcp:"], "The name includes the prefix of a connection string: remove `tcp:`, so that the client asks for `MSSQLSvc/HOST.DOMAIN:1433` (`setspn -Q MSSQLSvc/HOST.DOMAIN:1433`)."),
    (&["could not register the service principal name"], "SQL Server may not write its own SPN: register it by hand, `setspn -S MSSQLSvc/HOST.DOMAIN:1433 ACCOUNT`. Until then clients use NTLM."),
    (&["sspi context"], "Look for the SPN of SQL Server: `setspn -Q MSSQLSvc/HOST.DOMAIN:1433`. It must be registered once, for the account that SQL Server runs as: `setspn -S`. Use the full DNS name in the connection string."),
    (&["target principal name is incorrect"], "The SPN is registered for another account than the service runs as: `setspn -Q SPN` shows it, `setspn -D` and `setspn -S` move it."),
    (&["krb_ap_err_modified", "failed to decrypt the ticket"], "The service cannot decrypt the ticket: the SPN is registered for another account than it runs as (`setspn -Q SPN`, `setspn -X`), or the name leads to another host."),
    (&["message stream modified"], "The SPN is registered for another account than the service runs as: `setspn -Q SPN` shows it."),
    (&["integrity check"], "The service cannot decrypt the ticket: its keytab or password is old, or the SPN is registered for another account (`setspn -Q SPN`)."),
    (&["kdc_err_must_use_user2user", "user2user only"], "The SPN belongs to a user, or to no account that runs a service: `setspn -Q SPN`."),
] },
RuleEntry { rule: &TICKET_ENCRYPTION, words: &[
    Message("kdc_err_etype_no"),
    Message("cannot log on: the kdc * has no aes key of it"),
    Message("no support for encryption type"),
    Message("etype * not supported"),
    Message("encryption type * is not supported"),
    Message("did not have a suitable key for generating a kerberos ticket"),
    Message("key distribution center lacks strong keys for account"),
    Message("not all the supported encryption types"),
    Message("key distribution center * detected ? usage that will be unsupported"),
    Message("blocked cipher usage"),
    Event("kdcsvc", &[201, 202, 203, 204, 205, 206, 207, 208, 209]),
    Event("key-distribution-center", &[201, 202, 203, 204, 205, 206, 207, 208, 209, 14, 16, 26, 27, 42]),
    Message("defaultdomainsupportedenctypes"),
    Message("kdc_err_null_key"),
    Event("kdc", &[14, 16, 26, 27, 42]),
    Codes(&["SEC_E_KDC_UNKNOWN_ETYPE", "STATUS_KDC_UNKNOWN_ETYPE", "SEC_E_NO_KERB_KEY"]),
    Message("client or server has a null key"),
], remedies: &[
    (&["event 205 of", "defaultdomainsupportedenctypes"], "The registry value `DefaultDomainSupportedEncTypes` of a domain controller allows RC4 for every account that names no types: set `-KerberosEncryptionType AES128,AES256` for the accounts, then remove the value."),
    (&["event 202 of", "event 204 of", "event 207 of", "event 209 of"], "The service account has no AES keys: for a user set its password again; a gMSA has them. Then `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`."),
    (&["event 201 of", "event 203 of", "event 206 of", "event 208 of"], "The client offers no AES: update it, or its policy of encryption types. The service account names its types: `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`."),
] },
RuleEntry { rule: &CLIENT_ENCRYPTION, words: &[
    Message("lacks support for encryption type"),
    Message("lacks support for key type"),
    Message("encryption type * not permitted"),
    General("unrecognized enctype name in"),
    Message("bad encryption type"),
    Message("no supported default etypes for"),
    Message("client has no support for crypto type"),
    Message("unknown or unsupported etype"),
    Message("encryption type * is not supported/enabled"),
    Message("no credentials found with supported encryption types"),
    Message("no valid enctype set"),
    Message("mechanism level: illegal key size"),
    Message("found unsupported keytype"),
    Message("encryption type ? is disabled"),
    Message("no supported encryption types (config"),
], remedies: &[
    (&["illegal key size", "aes256 cts mode with hmac sha1-96 is not supported/enabled"], "This Java lacks 256-bit AES: use Java 8u161 or later, where it is on, or set `crypto.policy=unlimited` in java.security."),
    (&["not supported/enabled"], "Java refuses RC4 and DES by itself, from version 17 on: let the ticket be of AES (the service account needs AES keys, `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`, and its keytab them too). `allow_weak_crypto = true` in krb5.conf only helps for a test."),
] },
RuleEntry { rule: &OTHER_DOMAIN, words: &[
], remedies: &[
] },
RuleEntry { rule: &OTHER_ACCOUNT, words: &[
], remedies: &[
] },
RuleEntry { rule: &UNKNOWN_STATUS, words: &[
], remedies: &[
] },
RuleEntry { rule: &DIRECTORY_SERVICES, words: &[
    Message("unable to find a default server with active directory web services running"),
    Message("it does not have the active directory web services running"),
    Message("unable to contact the server. this may be because this server does not exist"),
    Message("this computer is not joined to an active directory domain"),
    Message("active directory powershell module cannot reach a domain controller"),
    Message("specified active directory domain * could not be found"),
    Message("while loading information for the computer account's domain"),
], remedies: &[
    (&["is not joined"], "`New-CredentialSpec` needs a machine of the domain. Make the credential spec without one: `kubectl gmsa credspec new --account NAME --directory DC`, or `--from-ad FILE` with what `Get-ADServiceAccount` and `Get-ADDomain` print elsewhere."),
    (&["active directory domain"], "Correct the name after `-Domain`: the DNS name of the domain. This machine must find its domain controllers (`nltest /dsgetdc:DOMAIN`), and a trust must lead there."),
    (&["cannot reach a domain controller", "computer account's domain"], "The machine reaches no domain controller of its domain: `nltest /dsgetdc:DOMAIN` says why. Without one: `kubectl gmsa credspec new --from-ad FILE`."),
] },
RuleEntry { rule: &CMDLET_MISSING, words: &[
    Message("the term '*adserviceaccount' is not recognized"),
    Message("the term '*credentialspec' is not recognized"),
    Message("the term '*kdsrootkey' is not recognized"),
    Message("the term '*-ad*' is not recognized as the name of a cmdlet"),
    Message("module 'activedirectory' was not loaded"),
    Message("module 'credentialspec' was not loaded"),
    Message("in the module 'activedirectory', but the module could not be loaded"),
    Message("assembly 'microsoft.activedirectory.management"),
    Message("active directory powershell module is required"),
    Message("no match was found for * module name 'credentialspec'"),
    Message("no match was found for * module name 'aksgmsa'"),
    Message("credentialspec.psm1 cannot be loaded"),
    Message("aksgmsa.psm1 cannot be loaded"),
    Message("parameter cannot be found that matches parameter name 'akv"),
], remedies: &[
    (&["parameter name 'akv"], "The module is too old for `-AKV`: `Update-Module CredentialSpec`. Without it: `kubectl gmsa credspec new --plugin azure`."),
    (&["no match was found"], "The machine does not reach the PowerShell Gallery, or asks it without TLS 1.2 (`[Net.ServicePointManager]::SecurityProtocol = 'Tls12'`). Without the module: `kubectl gmsa credspec new --account NAME --directory DC`."),
    (&["cannot be loaded"], "PowerShell runs no scripts here: `Set-ExecutionPolicy -Scope Process RemoteSigned`. Without the module: `kubectl gmsa credspec new --account NAME --directory DC`."),
] },
RuleEntry { rule: &POWERSHELL_PARAMETER, words: &[
    Message("positional parameter cannot be found that accepts argument"),
    Message("positionalparameternotfound"),
    Message("parameter cannot be found that matches parameter name"),
    Message("namedparameternotfound"),
    Message("missing an argument for parameter"),
    Message("parameter set cannot be resolved using the specified named parameters"),
], remedies: &[
] },
RuleEntry { rule: &PRINCIPAL_UNRESOLVED, words: &[
    Message("could not be resolved. reason: 'cannot find an object with identity"),
    Message("identity info provided in the extended attribute"),
], remedies: &[
] },
RuleEntry { rule: &ACCOUNT_EXISTS, words: &[
    Message("specified account already exists"),
    Message("object already exists"),
    Message("entryexists"),
    Message("ldap_already_exists"),
], remedies: &[
] },
RuleEntry { rule: &DIRECTORY_DENIED, words: &[
    Message("insufficient permissions to join the domain"),
    Message("insuff_access_rights"),
    Message("ldap_insufficient_rights"),
    Message("insufficient access (50)"),
    Message("new-adserviceaccount : access is denied"),
    Message("new-adserviceaccount : zugriff verweigert"),
    Message("new-adserviceaccount : accès refusé"),
    Message("new-adorganizationalunit : access is denied"),
    Message("set-adserviceaccount : access is denied"),
    Message("cn=managed service accounts,*access is denied"),
    Message("access is denied*cn=managed service accounts,"),
    Codes(&["ERROR_DS_INSUFF_ACCESS_RIGHTS"]),
], remedies: &[
] },
RuleEntry { rule: &DIRECTORY_UNWILLING, words: &[
    Message("server is unwilling to perform"),
    Message("will_not_perform"),
    Codes(&["ERROR_DS_UNWILLING_TO_PERFORM"]),
], remedies: &[
] },
RuleEntry { rule: &LDAP_CREDENTIALS, words: &[
    Message("acceptsecuritycontext error"),
    Message("supplied credential is invalid"),
    Message("ldap_invalid_credentials"),
    Message("ldap_bind: invalid credentials"),
    Message("invalid credentials (49)"),
    Message("successful bind must be completed"),
    Message("does not let * in: "),
    Message("operation unavailable without authentication"),
], remedies: &[
    (&["data 525"], "Correct the name of the user: the domain does not know it. A domain controller takes `USER@DOMAIN`, `DOMAIN\\USER` and a distinguished name."),
    (&["data 52e"], "Correct the password, or the domain before the user: `DOMAIN\\USER`, `USER@DOMAIN`. Each try counts towards a lockout."),
    (&["data 530"], "The user may not log on at this hour: change its logon hours."),
    (&["data 531"], "The user may not log on from this machine: change its logon workstations."),
    (&["data 532"], "The password of the user has expired: set a new one, and write it where the client reads it."),
    (&["data 533"], "The user is disabled: `Enable-ADAccount`."),
    (&["data 701"], "The user has expired: `Clear-ADAccountExpiration`."),
    (&["data 773"], "The password of the user must be changed before the first logon: set one, without that option."),
    (&["data 775"], "The user is locked out: `Unlock-ADAccount`, and find the client that tries an old password."),
    (&["successful bind must be completed", "unavailable without authentication"], "Bind with a user: Active Directory answers anonymous clients with its root entry alone."),
] },
RuleEntry { rule: &LDAP_SIGNING, words: &[
    Message("strong(er) authentication required"),
    Message("requires binds to turn on integrity checking"),
    Message("ldap bind without requesting signing"),
    Message("ldap_strong_auth_required"),
    Message("ldap_confidentiality_required"),
    Codes(&["ERROR_DS_STRONG_AUTH_REQUIRED"]),
    Message("sign or seal are required"),
    Message("strongerauthrequired"),
], remedies: &[
] },
RuleEntry { rule: &CHANNEL_BINDING, words: &[
    Message("acceptsecuritycontext error, data 80090346"),
    Message("channel binding mismatch"),
    Message("incorrect channel bindings were supplied"),
    Message("channel bindings were incorrect"),
    Message("channel bindings from this client are missing"),
    Codes(&["SEC_E_BAD_BINDINGS"]),
], remedies: &[
] },
RuleEntry { rule: &LDAP_UNREACHABLE, words: &[
    Message("no domain controller of * answers"),
    Message("can't contact ldap server"),
    Message("ldap server is unavailable"),
    Message("ldap_server_down"),
    Message("ldap_unavailable"),
    Message("ldap result code 200 \"network error\""),
    General("cannot connect to ldap"),
], remedies: &[
] },
RuleEntry { rule: &PASSWORD_EXPIRED, words: &[
    Message("cannot log on: its password has expired"),
    Message("kdc_err_key_exp"),
    Message("password has expired while getting initial credentials"),
    Message("account's password has expired"),
    Codes(&["ERROR_PASSWORD_EXPIRED", "ERROR_PASSWORD_MUST_CHANGE", "STATUS_PASSWORD_EXPIRED", "STATUS_PASSWORD_MUST_CHANGE"]),
    Message("password has expired - change password to reset"),
], remedies: &[
] },
RuleEntry { rule: &LOGON_RESTRICTED, words: &[
    Message("cannot log on: a policy of the domain refuses it"),
    Message("kdc_err_policy"),
    Message("kdc policy rejects request"),
    Message("domain controller blocked: ntlm authentication"),
    Codes(&["ERROR_INVALID_LOGON_HOURS", "STATUS_INVALID_LOGON_HOURS", "STATUS_SMARTCARD_LOGON_REQUIRED", "SEC_E_SMARTCARD_LOGON_REQUIRED"]),
    Codes(&["ERROR_ACCOUNT_RESTRICTION", "ERROR_INVALID_WORKSTATION", "STATUS_ACCOUNT_RESTRICTION", "STATUS_INVALID_WORKSTATION", "STATUS_NTLM_BLOCKED"]),
], remedies: &[
    (&["smartcard_logon"], "The user may log on with a smart card alone, which no plugin and no container has: `Set-ADUser USER -SmartcardLogonRequired $false`."),
    (&["logon_hours", "time restrictions"], "The account may not log on at this hour: change its logon hours (`net user USER /domain /times:all`)."),
] },
RuleEntry { rule: &LOGON_TYPE, words: &[
    Message("does not have the required user right"),
    Codes(&["ERROR_LOGON_TYPE_NOT_GRANTED", "STATUS_LOGON_TYPE_NOT_GRANTED"]),
    Codes(&["ERROR_NOLOGON_WORKSTATION_TRUST_ACCOUNT", "STATUS_NOLOGON_WORKSTATION_TRUST_ACCOUNT"]),
], remedies: &[
    (&["nologon_workstation"], "A gMSA is an account of a computer: no user logs on with its name. Name no account (`net use`, `runas`, connection strings); let the process run as the gMSA, in a container as NETWORK SERVICE."),
] },
RuleEntry { rule: &SERVICE_LOGON, words: &[
    Message("service was unable to log on as"),
    Codes(&["ERROR_SERVICE_LOGON_FAILED", "ERROR_INCORRECT_ACCOUNT_TYPE"]),
], remedies: &[
    (&["incorrect_account_type"], "The account is managed by the domain: nobody sets its password by hand, and this machine may not use it. Allow the machine to retrieve the password, then `Install-ADServiceAccount NAME` and `Test-ADServiceAccount NAME` on it."),
] },
RuleEntry { rule: &BROKER_UNREACHABLE, words: &[
    Message("cannot connect to the broker at"),
    Message("the broker at * did not answer"),
    Message("the broker's answer is"),
    Message("the broker's answer has no"),
    Message("no keytabs in *: the broker has not answered yet"),
    Message("the broker's answer ends too early"),
    General("the broker refused: "),
    Message("no tickets in *: the broker has not answered yet"),
], remedies: &[
    (&["failed to lookup address", "name or service not known", "name does not resolve"], "The Pod does not resolve the name of the broker's Service. Correct `--broker`, or give the address: `--broker-address=IP:443`. Pods with `hostNetwork` need it always."),
    (&["connection refused"], "Nothing listens at this address: its Service has no Pods, or the address is an old one. `kubectl get service,endpointslices --namespace gmsa-tickets` shows both; a Pod keeps the address that it was created with."),
    (&["the broker's answer", "the broker refused: "], "Something else answers at this address, such as a proxy or a service mesh: compare `--broker-address` with the broker's Service, and leave the Pod's traffic to it alone."),
    (&["the broker has not answered yet"], "Wait a few seconds. If it stays so, the log of the container says why: `kubectl logs POD --namespace NAMESPACE --container gmsa-tickets`."),
] },
RuleEntry { rule: &BROKER_UNTRUSTED, words: &[
    Message("tls with the broker at * failed"),
    Message("--broker-ca is not a list of ca certificates"),
    Message("--broker-ca holds a certificate that cannot be trusted"),
], remedies: &[
    (&["notvalidforname", "not valid for name"], "The certificate is for another name than `--broker`: write the DNS name of the broker's Service there, `gmsa-tickets.gmsa-tickets.svc`, and the address into `--broker-address`."),
] },
RuleEntry { rule: &KERBEROS_LIBRARY, words: &[
    Message("gssapiproxy requires the python gssapi library"),
    Message("cannot load library libgssapi"),
    Message("unable to load shared library 'libgssapi"),
    Message("libgssapi_krb5.so*cannot open shared object file"),
    Message("error loading shared library libgssapi"),
    Message("type initializer for 'netsecuritynative' threw an exception"),
    Message("no j2gss in java.library.path"),
    Message("option --negotiate: the installed libcurl version"),
    Message("gssapi authentication not supported"),
    Message("authentication method \"gss\": not supported by this build"),
    Message("no gssapi provider registered"),
    Message("no provider for sasl mechanism gssapi"),
    Message("provider sunnativegss does not support mechanism"),
    Message("unsupported mechanism requested: 1.2.840.113554.1.2.2"),
    Message("krb5-config: *not found"),
    Message("could not find main gssapi shared library"),
    Message("no module named 'gssapi'"),
    Message("package gssapi * missing"),
    Message("python kerberos library is not installed"),
    Message("unknown authentication type: 7"),
    Message("unknown authenticationok message type 7"),
    Message("no mechanism available: "),
    Message("ntlm authentication requires the gssapi plugin"),
    Message("provider krb5 not found"),
    Message("no worthy mechs found"),
    Message("the authentication type 7 is not supported"),
    Message("unknown authentication response: 7"),
    Message("authentication method 7 not supported"),
], remedies: &[
    (&["gssapiproxy requires"], "Its module `krb5` or `gssapi` is missing: `pip install pyspnego[kerberos]`, which needs `libkrb5-dev` and a compiler. Debian's package `python3-pyspnego` comes without `krb5`."),
    (&["provider krb5"], "The program has go-mssqldb without Kerberos: import `github.com/microsoft/go-mssqldb/integratedauth/krb5`. It is built on gokrb5, which needs a ticket-granting ticket: in a Linux Pod with tickets, read docs/linux-pods.md, Clients."),
    (&["gssapi plugin"], ".NET tries NTLM: the server offers nothing else, or the client found no Kerberos ticket for its name. Let the server offer Negotiate, use the DNS name with a service principal name, and check `klist`. NTLM itself needs `gss-ntlmssp` in the image and a password."),
    (&["unknown authentication type: 7", "message type 7", "authentication type 7", "authentication response: 7", "method 7 not supported"], "The server asks for GSSAPI (Kerberos), which this driver does not have or has not been given: use one with it (psycopg of the distribution, Npgsql, JDBC, pgx with `RegisterGSSProvider`), or another method in pg_hba.conf."),
    (&["no worthy mechs", "no mechanism available"], "Install the GSSAPI plugin of SASL into the image: `libsasl2-modules-gssapi-mit` on Debian and Ubuntu, `cyrus-sasl-gssapi` on Red Hat, `cyrus-sasl-gssapiv2` on Alpine."),
    (&["gssapi authentication not supported", "not supported by this build"], "Use a build of the driver or server with GSSAPI, such as that of the distribution: binary packages of `psycopg2` and `postgres` on Alpine have none."),
    (&["provider registered"], "Import it, as the message says. It is built on gokrb5, which needs a ticket-granting ticket: in a Linux Pod with tickets, read docs/linux-pods.md, Clients."),
    (&["sasl mechanism"], "Use a librdkafka with SASL: `librdkafka1` of the distribution, or the package of the language that is built with it, and `libsasl2-modules-gssapi-mit`."),
    (&["krb5-config", "main gssapi"], "The package is compiled, and lacks the headers: install `libkrb5-dev` (Debian, Ubuntu), `krb5-dev` (Alpine) or `krb5-devel` (Red Hat) into the stage that builds it."),
    (&["no module named", "package gssapi", "python kerberos"], "Install the module of Python into the image: `pip install gssapi`, or `python3-gssapi` of the distribution; for WinRM `pip install 'pywinrm[kerberos]'`."),
    (&["installed libcurl"], "Use a curl that is built with GSSAPI: `curl --version` lists it among its features."),
] },
RuleEntry { rule: &POSTGRES_LOGIN, words: &[
    Message("gssapi authentication failed for user"),
    Message("authenticated user name (*$@*) do not match"),
    Message("no match in usermap * for user"),
    Message("fatal: role \"*$\" does not exist"),
    Message("no username could be found, please specify one explicitly"),
    Message("no postgresql user name specified"),
    Message("could not look up local user id"),
    Message("local user with id * does not exist"),
], remedies: &[
    (&["no username", "no postgresql user", "local user"], "Name the user of the database in the connection string: `Username=webapp1` for Npgsql, otherwise `user=webapp1` or PGUSER. A user of the container without a line in /etc/passwd has no name to take."),
] },
RuleEntry { rule: &KDC_UNREACHABLE, words: &[
    Message("cannot contact any kdc"),
    Message("cannot locate srv record for"),
    Message("cannot locate a kdc"),
    Message("cannot find kdc"),
    Message("cannot locate kdc"),
    Message("cannot resolve kdc"),
    Message("cannot resolve network address for kdc"),
    Message("cannot resolve servers for kdc"),
    Message("cannot get kdc for realm"),
    Message("unable to locate kdc"),
    Message("no kdc server found"),
    Message("kdc_err_svc_unavailable"),
    Message("error communicating with kdc"),
    Message("kerberos*receive timed out"),
    Message("mechanism level: receive timed out"),
    Message("failed to communicate with kdc"),
    Message("icmp port unreachable"),
    Message("krb5_realm_unknown"),
    Message("krb5_realm_cant_resolve"),
    Message("krb5_kdc_unreach"),
    Message("kinit: resource temporarily unavailable"),
    Message("loginexception: receive timed out"),
    Message("no kdc of * answers"),
    Message("the kdc of * refuses: it is not available"),
    Message("GmsaTicketsDomainFails"),
    Message("unable to reach any kdc in realm"),
    Message("loginexception: connection refused"),
    Message("loginexception: connect timed out"),
    Message("loginexception: connection timed out"),
    Message("loginexception: no route to host"),
    Message("loginexception: network is unreachable"),
    Message("mechanism level: connection refused"),
    Message("mechanism level: connect timed out"),
    Message("mechanism level: connection timed out"),
    Message("mechanism level: no route to host"),
    Message("does not have any defined kdcs"),
    Message("no kdcs defined in configuration for realm"),
    Message("no kdc srv records found for realm"),
    Message("error sending to kdc ("),
    Message("communication error with kdc via tcp"),
    Message("no kdc found for realm"),
    General("tcp error connecting to *:88: "),
    General("srv query for _kerberos._tcp.? [?] ?: no srv records found"),
    Message("mechanism level: connection reset"),
    Message("a service is not available that is required to process the request"),
    General("tcp error receiving from *:88: "),
    General("tcp error sending to *:88: "),
    General("udp error receiving from *:88: "),
    General("udp error sending to *:88: "),
    Message("loginexception: java.net.unknownhostexception"),
], remedies: &[
    (&["defined kdcs", "no kdcs defined"], "gokrb5 takes its KDCs from krb5.conf: write `dns_lookup_kdc = true` into `[libdefaults]`, or `kdc = DC` for the realm into `[realms]`. Ask DNS for `_kerberos._tcp.DOMAIN` (SRV), and let TCP and UDP 88 through."),
    (&["GmsaTicketsDomainFails"], "The log of the broker names the domain, the controller and the step. Check the password of its user, the CA of the controllers, their ports 88 and 636, and the clocks."),
] },
RuleEntry { rule: &KERBEROS_CONFIGURATION, words: &[
    Message("cannot locate default realm"),
    Message("configuration file does not specify default realm"),
    Message("improper format of * configuration file"),
    Message("cannot determine realm for host"),
    Message("kdc reply did not match expectations"),
    Message("realm not local to kdc"),
    Message("krb5_kdcrep_modified"),
    Message("krb5_config_"),
    Message("kdc_err_wrong_realm"),
    Message("can't open/find * configuration file"),
    Message("krbexception: could not load configuration file"),
    Message("can't get kerberos realm"),
    Message("no loginmodules configured for"),
    Message("entry in the jaas configuration"),
    Message("cannot determine realm for numeric host address"),
    Message("the kdc of * refuses: it is of another realm"),
    Message("minor code may provide more information*invalid boolean value"),
    General("while initializing kerberos 5 library"),
    Message("client/server realm mismatch in initial ticket request"),
    Message("message stream modified (41)"),
    Message("error processing libdefaults section"),
    Message("error processing realms section"),
    Message("invalid format of kerberos lifetime or clock skew string"),
    Message("extra closing brace in profile"),
    Message("profile section header not at top level"),
    Message("krb5_init_context failed"),
    Message("loginexception: null (68)"),
    Message("crealm in response does not match"),
    Message("respond appropriately to fast negotiation"),
    Message("included profile * could not be read"),
    General("while initializing krb5"),
    Message("missing open brace in profile"),
    Message("configuration file could not be opened*krb5.conf"),
    Message("syntax error in profile relation"),
    Message("syntax error in profile section header"),
], remedies: &[
    (&["fast negotiation"], "gokrb5 asks for FAST in a way that Active Directory does not answer: create its client with `DisablePAFXFAST(true)`; sarama has a setting of that name, KEDA `kerberosDisableFAST`."),
    (&["stream modified"], "The reply of the domain controller differs from what Java asked for. Remove `renew_lifetime` from krb5.conf: a domain controller gives another lifetime than that, and Java refuses it. The realm must be in upper case."),
    (&["no loginmodules", "entry in the jaas"], "Java finds no login configuration of this name: give `-Djava.security.auth.login.config=FILE` with `com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;`. With `-Dsun.security.jgss.native=true` it needs none."),
    (&["included profile"], "krb5.conf includes a folder that the image does not have, or that this user cannot read: create it (`/etc/krb5.conf.d`), or remove the line `includedir`."),
    (&["numeric host address"], "Connect by the DNS name for which the service principal name is registered: an address has none."),
    (&["krbexception: cannot locate default realm", "can't get kerberos realm", "krbexception: could not load"], "Java does not read KRB5_CONFIG: name krb5.conf by `-Djava.security.krb5.conf=FILE`, in a Linux Pod with tickets `/var/run/gmsa/krb5.conf`. In it, `default_realm` is in upper case."),
    (&["invalid boolean value", "while initializing k", "error processing ", "lifetime or clock skew", "in profile", "profile section", "krb5_init_context"], "The library cannot read a value of krb5.conf: a boolean is `true` or `false`, a time `10h` or `7d`. `KRB5_CONFIG` names another file."),
] },
RuleEntry { rule: &OTHER_REALM, words: &[
    Message("server krbtgt/*@* not found in kerberos database"),
    Message("server (krbtgt/*@*) unknown"),
    Message("requesting for krbtgt/*not found in kerberos database"),
    General("falling back to canonicalized server hostname"),
    Message("cannot find ticket for requested realm"),
    Message("illegal cross-realm ticket"),
    Message("no service creds"),
    Message("for krbtgt/?, server not found in kerberos database"),
    Message("policy rejects transited path"),
    Message("invalid cross-realm ticket"),
], remedies: &[
    (&["illegal cross-realm", "transited path", "invalid cross-realm"], "The trust path between the domains is not the one that the client takes: write the realms on that path into `[capaths]` of krb5.conf, or remove that section."),
] },
RuleEntry { rule: &NO_TICKET, words: &[
    Message("client cannot authenticate via:[*kerberos"),
    Message("no credentials cache found"),
    Message("no credentials cache file found"),
    Message("no kerberos credentials available"),
    Message("failed to find any kerberos "),
    Message("matching credential not found"),
    Message("matching credential (*) not found"),
    Message("unknown credential cache type"),
    Message("krb5_cc_unknown_type"),
    Message("cannot access kerberos ticket*unsupported mechanism was requested"),
    Message("cannot access kerberos ticket"),
    Message("no credentials were supplied"),
    Message("sspi provider: no kerberos credentials"),
    Message("unable to obtain principal name for authentication"),
    Message("cannot authenticate using kerberos. ensure kerberos has been initialized"),
    Message("krb_ap_err_no_tgt"),
    Message("krb5_cc_notfound"),
    Message("krb5_fcc_nofile"),
    Message("cannot find mechanisms to negotiate"),
    Message("ntlm authentication is not possible with default credentials"),
    General("local error (-2)"),
    General("failed (-2)[local error]"),
    Message("credential for asked mech-type mech not found"),
    Message("spnego failed to negotiate a mechanism"),
    Message("null credentials from ticket cache"),
    Message("failed to store credentials: "),
    General("cached tickets: (0)"),
    RunningCodes(&["ERROR_DS_OPERATIONS_ERROR", "ERROR_DS_LOCAL_ERROR"]),
    Message("klist: no ticket file"),
    Message("bad format in credentials cache"),
    Message("unsupported credentials cache format version number"),
    Message("credentials cache permissions incorrect"),
    Message("credentials cache i/o operation failed"),
    Message("can't find client principal * in cache collection"),
    Message("principal in credential cache does not match desired name"),
    Message("tgt not found in ccache"),
    Message("client has neither a keytab nor a password"),
    Message("no kcm server found"),
    Message("credentials cache keyring * not found"),
    Message("credentials cache 'kcm:*' not found"),
    Message("credential cache directory * does not exist"),
    Message("credential cache directory * exists but is not a directory"),
    Message("can't find username for uid"),
    Message("no callbackhandler available to garner authentication information"),
    Message("no credential found for: * usage: initiate"),
    Message("a kerberos ticket was not found"),
    Message("no user credentials available and "),
    Message("credential has neither keytab or password"),
    Message("invalid credential cache data"),
    Message("refuses to open * file"),
    Message("empty credential cache file"),
    Message("gssapi encryption required but no credential cache"),
    Message("gssapi encryption required but was impossible"),
    Message("minor *credential cache is empty"),
    Message("-> krbtgt/? from ? with result: -1765328243/matching credential not found"),
    Message("credential cache has no tgt"),
    Message("invalid uid in persistent keyring name"),
    Message("credential cache name malformed"),
    Message("unknown ccache type"),
    Message("credential cache type * is unknown"),
    Message("credentials cache file permissions incorrect"),
    Message("error writing to credentials cache"),
    Message("no credentials supplied to library routine"),
    Message("no ticket granting ticket"),
    Message("no api credential found"),
    Message("failure to login using ticket cache file"),
    Message("missing or invalid credentials. consider"),
    General("no valid credentials provided"),
    Message("credentials cache file ? not found"),
    General("while getting default ccache"),
    General("while resolving ccache"),
    Message("open /var/run/gmsa/krb5cc: "),
    Message("open ?krb5cc?: no such file or directory"),
    Message("open ?krb5cc?: permission denied"),
    Message("cannot get any of properties: [user"),
    Message("kerberos ticket refresh failed"),
], remedies: &[
    (&["ticket refresh failed"], "librdkafka runs a command for its ticket, and that failed: in a Linux Pod with tickets set `sasl.kerberos.kinit.cmd=true`, as the agent renews them. Elsewhere run the command by hand: it needs `kinit` in the image, the keytab and the principal."),
    (&["refuses to open"], "Heimdal opens a cache only where it is a plain file of the same user that nobody else may read: set `fcache_strict_checking = false` in `[libdefaults]` of krb5.conf, or use a program with MIT Kerberos. In a Linux Pod the tickets belong to the agent."),
    (&["matching credential*run/gmsa"], "The agent has no ticket for this service: list it in `gmsa-webhook/services` of the credential spec, by the name that the client asks for. `klist /var/run/gmsa/krb5cc` shows what is there; `KRB5_TRACE=/dev/stderr` the name."),
    (&["permissions incorrect*run/gmsa", "run/gmsa*permission denied", "krb5cc?: permission denied"], "The user of this process may not read the tickets: leave `--mode=0440` of the agent out, or give the Pod an `fsGroup`."),
    (&["failed to store", "error writing to credentials cache"], "This user cannot write the cache. In a Linux Pod the agent alone writes `/var/run/gmsa`: run no `kinit` there, or give it a cache of its own (`-c FILE:/tmp/krb5cc`)."),
    (&["run/gmsa"], "The agent has got no tickets, or removed them after a refusal. `kubectl exec POD --namespace NAMESPACE -- cat /var/run/gmsa/status` and the log of the container `gmsa-tickets` say why: explain that text. A container without the folder lacks the mount: `kubectl gmsa check`."),
    (&["null credentials", "cannot get any of properties", "no callbackhandler", "new initiate", "usage: initiate", "using ticket cache file", "consider"], "Java finds no ticket-granting ticket in the cache that it names: compare that with KRB5CCNAME. In a Linux Pod with tickets for services, run it with `-Dsun.security.jgss.native=true`."),
    (&["tgt not found in ccache"], "gokrb5 takes a ticket-granting ticket alone, which `gmsa-webhook/services: \"*\"` gives in a Linux Pod: read docs/linux-pods.md first. Elsewhere log on with `kinit`."),
    (&["neither a keytab nor a password", "no user credentials available", "neither keytab or password"], "The program gave gokrb5 neither a keytab, nor a password, nor a cache with a ticket-granting ticket: load the cache that KRB5CCNAME names."),
    (&["bad format", "credentials cache format", "invalid credential cache data"], "The file that KRB5CCNAME names is no credential cache, or one of a version that this library does not read. `klist -c FILE` says which; a keytab is no cache."),
    (&["operations_error", "operations error", "ds_local_error"], "The process asks the directory without an identity: run it as NETWORK SERVICE (`runAsUserName`) and check `kubectl gmsa verify`. Where it acts for its users, it has no right to delegate: rule `delegation`."),
    (&["krb5_cc_unknown_type", "unknown credential cache type", "no kcm server", "cache keyring", "'kcm:", "cache directory", "username for uid", "invalid uid in", "cache name malformed", "unknown ccache type", "cache type", "while getting default ccache", "while resolving ccache"], "Write `default_ccache_name = FILE:/tmp/krb5cc_%{uid}` into krb5.conf, or set `KRB5CCNAME=FILE:/tmp/krb5cc`: the container has no such cache."),
    (&["default cache: keyring"], "Write `default_ccache_name = FILE:/tmp/krb5cc_%{uid}` into krb5.conf, as containers have no keyring, then log on with `kinit`."),
] },
RuleEntry { rule: &TICKET_EXPIRED, words: &[
    Message("krb_ap_err_tkt_expired"),
    Message("ticket expired"),
    Message("the referenced credential has expired"),
    Codes(&["SEC_E_CONTEXT_EXPIRED"]),
    Message("kdc_err_tgt_revoked"),
    Message(">>>expired<<<"),
    Message("kerberos credential has expired"),
    Message("tgt has been revoked"),
    Message("client kerberos credentials (tgt) have expired"),
], remedies: &[
    (&["tgt has been revoked", "kdc_err_tgt_revoked"], "The domain controller no longer accepts this ticket-granting ticket, as after a change of the account or of the password of krbtgt. Log on again: `klist purge` on Windows, `kinit` elsewhere."),
    (&["run/gmsa"], "The agent renews the tickets of a Pod long before their end, and could not: `kubectl exec POD --namespace NAMESPACE -- cat /var/run/gmsa/status` says why. A program that reads them once, such as one with gokrb5, must read the file again."),
] },
RuleEntry { rule: &NOT_RENEWABLE, words: &[
    Message("kdc can't fulfill requested option while renewing"),
    Message("couldn't renew kerberos ticket"),
    Message("this ticket is not renewable"),
    Message("past its last renewal time"),
    Message("exception encountered while running the renewal command"),
    Message("aborting renew thread for"),
    General("error renewing tgt for"),
    Message("renewing credentials: kdc can't fulfill requested option"),
    Message("kinit -r*kdc can't fulfill requested option"),
], remedies: &[
] },
RuleEntry { rule: &KEYTAB, words: &[
    Message("no key table entry found"),
    Message("found in keytab but cannot decrypt ticket"),
    Message("mechanism level: checksum failed"),
    Message("krbexception: checksum failed"),
    Message("key table entry not found"),
    Message("no suitable keys for"),
    Message("keytab contains no suitable keys"),
    Message("cannot find key of appropriate type to decrypt"),
    Message("cannot find key for type/kvno to decrypt"),
    Message("specified version of key is not available"),
    Message("krb_ap_err_badkeyver"),
    Message("krb_ap_err_nokey"),
    Message("key version*is not available"),
    Message("not found in keytab"),
    Message("krb5_kt_notfound"),
    Message("unable to obtain password from user"),
    Message("the client is being asked for a password"),
    Message("keytab file * does not exist"),
    Message("keytab * is nonexistent or empty"),
    Message("wrong principal in request"),
    Message("the ticket isn't for us"),
    Message("gss_accept_sec_context*no credentials were supplied*cannot find mechanisms to negotiate"),
    Message("gss_accept_sec_context*no credentials were supplied"),
    Message("failed to get server creds"),
    Message("no credential found for: * usage: accept"),
    Message("attempt to obtain new accept credentials failed"),
    Message("failed to find any kerberos credentails"),
    Message("cannot find key for * in keytab"),
    Message("found in keytab but not with enctype"),
    Message("key version number for principal in key table is incorrect"),
    Message("service key not available"),
    Message("krbcryptoexception: checksum failed"),
    Message("failed to find * in keytab"),
    Message("sspi handshake failed*operating system error code"),
    Message("in autoccache's constructor"),
    Message("gss_accept_sec_context*minor code may provide more information*permission denied"),
    Message("kerberos keytab file. a kerberos ticket was not found"),
    Message("no principal in keytab matches desired name"),
    Message("no keys in keytab"),
    Message("does not match any keys in keytab"),
    Message("does not match request ticket server"),
    Message("found in keytab but does not match server principal"),
    Message("cannot decrypt ticket for * using keytab key"),
    Message("unsupported key table format version number"),
    Message("bad format in keytab"),
    Message("unknown key table type"),
    Message("invalid keytab data"),
    Message("no entry in keytab: "),
    Message("loginexception: no password provided"),
    Message("gss_acquire_cred() failed: permission denied"),
    Message("error from accept_sec_context*no credentials were supplied*cannot find mechanisms to negotiate"),
    Message("error from accept_sec_context*no credentials were supplied"),
    Message("key table file ? not found"),
    Message("loginexception: checksum failed"),
], remedies: &[
    (&["key table format", "format in keytab", "key table type", "invalid keytab data"], "The file is no keytab, or this library does not read its version: `klist -kte FILE`. Mount the Secret with the file itself (`subPath`, or its key), and decode base64 first."),
    (&["operating system error code", "autoccache's", "error from accept_sec_context"], "SQL Server on Linux reads tickets with its keytab: `klist -kte /var/opt/mssql/secrets/mssql.keytab` must have `MSSQLSvc/HOST.DOMAIN:1433`, in the version (kvno) and the types that the domain has now, and the user mssql must be able to read it. `mssql-conf set network.kerberoskeytabfile FILE` names another."),
    (&["permission denied"], "The user that the server runs as may not read its keytab: `ls -l` shows its mode. In a Pod, give the Secret `defaultMode: 0440` and the Pod an `fsGroup`."),
    (&["unable to obtain password from user", "being asked for a password", "no password provided"], "Java found neither a ticket-granting ticket in the cache nor a key in the keytab: compare `ticketCache`, `keyTab` and `principal` in its login configuration. In a Linux Pod with tickets for services, run it with `-Dsun.security.jgss.native=true`."),
] },
RuleEntry { rule: &DELEGATION, words: &[
    Message("kdc_err_badoption"),
    Message("kdc can't fulfill requested option"),
    Message("kdc cannot accommodate requested option"),
    Message("can't get forwardable tickets"),
    Message("not forwardable"),
], remedies: &[
] },
RuleEntry { rule: &NTLM_TOKEN, words: &[
    Message("defective token detected"),
    Message("gssheader did not find the right tag"),
    Message("unsupported mechanism was requested"),
    Message("received type ? ntlm"),
    Message("tlrmtvntuaa"),
    Message("mechanism needs continuation but neither gssapiconnectionbound"),
], remedies: &[
    (&["needs continuation"], "The client sent NTLM, which takes several steps: use the full DNS name for which a service principal name is registered (`setspn -Q HTTP/NAME`), so that it sends Kerberos. For NTLM set `GssapiConnectionBound On`."),
] },
RuleEntry { rule: &ANONYMOUS_LOGON, words: &[
    Message("nt authority\\anonymous"),
    Message("nt-autorität\\anonymous-anmeldung"),
], remedies: &[
] },
RuleEntry { rule: &UNTRUSTED_LOGIN, words: &[
    Message("login is from an untrusted domain"),
    Message("anmeldung stammt aus einer nicht vertrauenswürdigen domäne"),
    Message("sspi handshake failed"),
    Message("protected by an authentication firewall"),
    Codes(&["ERROR_AUTHENTICATION_FIREWALL_FAILED", "STATUS_AUTHENTICATION_FIREWALL_FAILED"]),
    Message("server has rejected the client credentials"),
    Message("caller was not authenticated by the service"),
    General("authentication failed on the remote side"),
    General("soap security negotiation with"),
    Message("ouverture de session provient d'un domaine non approuvé"),
    Message("inicio de sesión pertenece a un dominio que no es de confianza"),
    General("error: 18452"),
    General("error 18452"),
    General("msg 18452"),
    General("error: 17806"),
], remedies: &[
    (&["mssql: login error: login failed. the login is from an untrusted"], "go-mssqldb on Linux sends NTLM where the connection string names no other way: set `authenticator=krb5`, and import `github.com/microsoft/go-mssqldb/integratedauth/krb5` into the program. docs/linux-clients.md has the settings."),
    (&["authentication firewall", "authentication_firewall"], "The trust between the domains uses selective authentication: give the account `Allowed to Authenticate` on the computer account of the server."),
] },
RuleEntry { rule: &SQL_LOGIN, words: &[
    General("login failed for user "),
    General("fehler bei der anmeldung für den benutzer"),
    General("échec de l'ouverture de session de l'utilisateur"),
    General("error de inicio de sesión del usuario"),
    General("error: 18456"),
    General("error 18456"),
    General("msg 18456"),
    General("logon failed for login '"),
    Message("cannot open database * requested by the login"),
    Message("cannot open user default database"),
], remedies: &[
    (&["mssql: login error: login failed for user ''"], "go-mssqldb logs on by Kerberos where the connection string has `authenticator=krb5`, with `krb5-configfile`, `krb5-credcachefile` and the realm, and where the program imports `github.com/microsoft/go-mssqldb/integratedauth/krb5`. It needs a ticket-granting ticket: docs/linux-clients.md."),
    (&["due to trigger execution"], "A logon trigger of SQL Server refuses the login: its owner has to let `CONTOSO\\NAME$` in. A login of the computer account of the node means that the process does not run as the gMSA: `kubectl gmsa verify`."),
    (&["login failed for user ''"], "The connection string asks for no Windows authentication and has no user: write `Integrated Security=true`."),
    (&["login failed for user *\\guest"], "The server took the client for a guest, because it came without a ticket: check its identity (`kubectl gmsa verify`) and the SPN of the server (`setspn -Q MSSQLSvc/HOST.DOMAIN:1433`)."),
    (&["login failed for user 'sa'"], "The connection string has a user of SQL Server: write `Integrated Security=true` in its place, so that the gMSA logs on."),
] },
RuleEntry { rule: &SQL_DRIVER, words: &[
    Message("driver is not configured for integrated authentication"),
    Message("integrated authentication failed"),
    Message("no mssql-jdbc_auth"),
    Message("unable to load authentication dll"),
    Message("no sqljdbc_auth in java.library.path"),
    Message("keyword 'integrated security' is not supported"),
], remedies: &[
    (&["keyword 'integrated security'"], "Use a current driver: Microsoft.Data.SqlClient knows Windows authentication on Linux too."),
] },
RuleEntry { rule: &SQL_UNREACHABLE, words: &[
    Message("network-related or instance-specific error"),
    Message("error locating server/instance specified"),
    Message("tcp/ip connection to the host * has failed"),
    Message("could not open a connection to sql server"),
    Message("server was not found or was not accessible"),
    Message("network-related*network path was not found"),
    Message("sqlexception*timeout expired"),
    Message("timeout expired*pre-login handshake"),
    Message("tcp provider: error code 0x"),
    Message("tcp provider: timeout error"),
    Message("adaptive server is unavailable or does not exist"),
    Message("microsoft sql server, error: 53)"),
    Message("pre-login handshake*no longer available"),
    Message("pre-login handshake*forcibly closed"),
], remedies: &[
    (&["no longer available", "forcibly closed"], "The server, or a device on the way, ends the connection as TLS begins: both sides need a version of TLS in common (1.2), and no firewall that looks into the connection."),
] },
RuleEntry { rule: &ORACLE_LOGON, words: &[
    Message("ora-12638"),
    Message("ora-12631"),
    Message("ora-12640"),
    Message("ora-12641"),
    Message("ora-01017"),
    Message("ora-28040"),
    Message("ora-12649"),
    Message("ora-12650"),
    Message("ora-28000"),
    Message("ora-01004"),
    Message("ora-12154"),
    Message("ora-12170"),
    Message("ora-12505"),
    Message("ora-12514"),
    Message("ora-12541"),
    Message("ora-12543"),
    Message("ora-12545"),
], remedies: &[
    (&["ora-12154"], "The client does not find the name of the database: correct it in the connection string, or mount tnsnames.ora and set `TNS_ADMIN`. This is before any logon."),
    (&["ora-12170"], "The client does not reach the listener: check the name, the port (TCP 1521) and the network policy of the Pod. This is before any logon."),
    (&["ora-125"], "The client does not reach the listener, or the listener does not know the service: check the name, the port (TCP 1521) and the service name. This is before any logon."),
    (&["ora-126"], "The client tries Windows authentication (NTS) and gets no credentials. Run the process as NETWORK SERVICE and check `kubectl gmsa verify`. Where the database has users with passwords, set `SQLNET.AUTHENTICATION_SERVICES = (NONE)` in sqlnet.ora of the client."),
    (&["ora-28040"], "The client is older than the database allows: use a newer client, or lower `SQLNET.ALLOWED_LOGON_VERSION_SERVER` at the database. It is unrelated to the gMSA."),
    (&["ora-28000"], "The user of the database is locked: `ALTER USER NAME ACCOUNT UNLOCK`. It is unrelated to the gMSA."),
    (&["ora-01017"], "The database does not take this user and password. With Windows authentication, it needs a user `IDENTIFIED EXTERNALLY` for `CONTOSO\\NAME$`."),
] },
RuleEntry { rule: &MESSAGE_QUEUING, words: &[
    Message("access to message queuing system is denied"),
    Message("message queuing service is not available"),
    Message("message queuing service is not running"),
    Message("message queuing has not been installed"),
    Message("message queuing was unable to create the msmq"),
    Message("message queuing is unable to"),
    Message("workgroup installation computer does not support"),
    Message("queue does not exist or you do not have sufficient permissions"),
    Message("queue path name specified is invalid"),
    Message("mq_error_"),
    General("messagequeueexception"),
], remedies: &[
    (&["system is denied"], "Give `CONTOSO\\NAME$` the rights on the queue (receive, peek, send): its owner or an administrator of its server can. In the container, the process must run as NETWORK SERVICE."),
    (&["service is not"], "Install and start the service in the image: `Install-WindowsFeature MSMQ-Server`. Nano Server does not have it. For a queue elsewhere, its server must run the service."),
    (&["not been installed"], "Install the service in the image: `Install-WindowsFeature MSMQ-Server`. Nano Server does not have it."),
    (&["workgroup"], "Message Queuing in a container works without the directory, so it has no public queues. Use private ones: `FormatName:DIRECT=OS:SERVER\\private$\\QUEUE`."),
] },
RuleEntry { rule: &DISTRIBUTED_TRANSACTIONS, words: &[
    Message("network access for distributed transaction manager"),
    Message("disabled its support for remote/network transactions"),
    Message("msdtc transaction manager was unable to"),
    Message("msdtc on server * is unavailable"),
    Message("communication with the underlying transaction manager has failed"),
    Message("import of the transaction failed"),
    Message("transaction manager is not available"),
    Codes(&["XACT_E_TMNOTAVAILABLE", "XACT_E_CONNECTION_DOWN", "XACT_E_NETWORK_TX_DISABLED", "XACT_E_PARTNER_NETWORK_TX_DISABLED", "XACT_E_PUSH_COMM_FAILURE", "XACT_E_PULL_COMM_FAILURE"]),
], remedies: &[
    (&["msdtc on server"], "Start the service on that server: `Start-Service MSDTC`. In a container it must be in the image, and allow network access."),
    (&["unable to p"], "Each side must resolve the host name of the other, and reach TCP 135 and the dynamic ports. The name of a Pod is not in DNS of the domain: give the Pod a name there, or keep the transaction out of it."),
] },
RuleEntry { rule: &SERVER_CERTIFICATE, words: &[
    General("could not establish trust relationship for the ssl/tls secure channel"),
    General("could not create ssl/tls secure channel"),
    General("x509: certificate is valid for"),
    Message("is not trusted; --directory-ca"),
    Codes(&["SEC_E_UNTRUSTED_ROOT", "SEC_E_CERT_EXPIRED", "CERT_E_UNTRUSTEDROOT", "ERROR_WINHTTP_SECURE_FAILURE", "CRYPT_E_NO_REVOCATION_CHECK", "CRYPT_E_REVOCATION_OFFLINE"]),
], remedies: &[
    (&["crypt_e_"], "The client does not reach the list of revoked certificates that the certificate names (its CRL or OCSP address): let it through, or give curl `--ssl-no-revoke` for a test."),
    (&["is valid for*, not "], "The certificate is for another name: issue it for the name behind `not`, by which the client calls the server."),
    (&["has expired", "cert_expired", "not yet valid", "notafter"], "Renew the certificate of the server, or correct the clock of the client: no setting of the client makes an expired certificate right."),
    (&["sqlclient", "sql server", "sqlserver", "ssl provider", "pre-login", "odbc"], "Give the client the authority that made it. Current SQL clients encrypt by default: put that authority into the image, or set `TrustServerCertificate=true` for a test."),
] },
RuleEntry { rule: &HTTP_UNAUTHORIZED, words: &[
    Message("unauthorized with client authentication scheme"),
    Message("http error 401"),
    Message("access is denied due to invalid credentials"),
    Message("access is denied due to server configuration"),
    Message("remote server returned an error: (401)"),
    Message("http status 401"),
    Message("does not indicate success: 401"),
    Message("www-authenticate: negotiate"),
    Message("mutual authentication unavailable on 401"),
    Message("www-authenticate: ntlm"),
    Message("the server committed a protocol violation*negotiate"),
    General("401.1"),
    General("401.2"),
    General("401.3"),
], remedies: &[
    (&["www-authenticate: bearer"], "The server asks for a token (Bearer), and not for Windows authentication: the identity of the Pod has no part in it."),
    (&["www-authenticate: basic"], "The server asks for a user and a password (Basic), and not for Windows authentication: the identity of the Pod has no part in it."),
    (&["401.1"], "The logon failed: register `HTTP/NAME` for the account (`setspn -S HTTP/NAME ACCOUNT$`), let the pool run as ApplicationPoolIdentity, and set `useAppPoolCredentials` where kernel mode is on."),
    (&["401.2"], "The server does not offer what the client sends: enable Windows authentication in IIS for the application (feature Web-Windows-Auth in the image), with the providers Negotiate and NTLM."),
    (&["401.3"], "The identity is known and may not read the file: give it the right in the file system of the application."),
    (&["access is denied due to server configuration"], "Enable Windows authentication in IIS for the application (feature Web-Windows-Auth in the image), with the providers Negotiate and NTLM."),
] },
RuleEntry { rule: &HTTP_TOKEN_SIZE, words: &[
    Message("size of the request headers is too long"),
    Message("generated an output token of size"),
], remedies: &[
] },
RuleEntry { rule: &GSS_FAILURE, words: &[
    General("unspecified gss failure"),
    General("gssapi operation failed"),
    General("gss authentication failed"),
    General("error from accept_sec_context"),
    General("generic error (see e-text)"),
    General("saslgssapi: accepting"),
    General("accepting gss security context"),
    General("accepting gssapi security context"),
    General("accept gssapi security context"),
    General("initiate gssapi security context"),
    General("gss_accept_sec_context() failed"),
    General("miscellaneous failure (see text)"),
    General("identifier doesn't match expected value"),
    General("gss_init_sec_context() failed"),
    General("did not return gss_s_complete"),
    General("failure unspecified at gss-api level"),
    Codes(&["SEC_E_INVALID_TOKEN", "SEC_E_INVALID_PARAMETER", "SEC_E_MESSAGE_ALTERED", "SEC_E_UNSUPPORTED_FUNCTION"]),
    General("gss initiate failed"),
    General("failed to initialize sasl authentication"),
    General("gssapi continuation error"),
    General("gss_acquire_cred() failed"),
    General("gensec client mech"),
    General("gensec_gssapi: "),
], remedies: &[
    (&[".rcache2"], "The server cannot write its replay cache: mount a folder that it can write to at `/var/tmp`, such as an `emptyDir`, or name one in `KRB5RCACHEDIR`."),
    (&["accepting", "accept gssapi", "gss_accept"], "The server cannot read the ticket of a client: the reason follows `Minor code`. If it is missing, compare the keytab of the server (`klist -kte`) with the service principal name that clients ask for (`setspn -Q`), and the clocks."),
    (&["sec_e_unsupported_function"], "The package does not offer what the program asks for: look whether a policy switches NTLM off (`Restrict NTLM`), and use names with a service principal name, so that Kerberos is used."),
    (&["sec_e_invalid_", "sec_e_message_altered"], "One side does not take the token of the other: a proxy or load balancer on the way changes it, one side speaks NTLM and the other Kerberos, or the service principal name is of another account (`setspn -Q SPN`). In LDAP the code after `data` says more."),
] },
RuleEntry { rule: &APPLICATION_POOL, words: &[
    Message("identity of application pool * is invalid"),
    Message("application pool * has been disabled"),
    Message("is being automatically disabled due to a series of failures"),
    General("http error 503. the service is unavailable"),
    Event("was", &[5021, 5057, 5059]),
], remedies: &[
] },
RuleEntry { rule: &IIS_CONFIGURATION, words: &[
    Message("configuration section cannot be used at this path"),
    Message("related configuration data for the page is invalid"),
    General("500.19"),
], remedies: &[
    (&["0x80070021", "cannot be used at this path"], "The section is locked. Unlock it in the image: `%windir%\\system32\\inetsrv\\appcmd.exe unlock config -section:system.webServer/security/authentication/windowsAuthentication`, and so each section that `web.config` sets, such as `anonymousAuthentication`. Or write it into applicationHost.config."),
    (&["0x80070005"], "The identity of the application pool may not read `web.config`: give `IIS_IUSRS` the right to read the folder of the application."),
] },
RuleEntry { rule: &SHARE_NAME, words: &[
    Message("cannot find path '\\\\"),
    Message("could not find a part of the path '\\\\"),
    Message("system error 53 has occurred"),
    General("system error 53"),
    Message("systemfehler 53 aufgetreten"),
    Message("erreur système 53 s'est produite"),
    Message("error de sistema 53."),
    General("netzwerkpfad wurde nicht gefunden"),
    General("chemin réseau n'a pas été trouvé"),
    General("network path was not found"),
    Codes(&["ERROR_BAD_NET_NAME", "STATUS_BAD_NETWORK_NAME"]),
], remedies: &[
    (&["network path was not found", "netzwerkpfad wurde nicht", "chemin réseau"], "The server of the share is not reached by this name: look at DNS and at TCP 445, and try it by address too. If that alone works on containerd, set `EnableCompartmentNamespace` on the node: docs/troubleshooting.md, Network shares."),
] },
RuleEntry { rule: &SHARE_DENIED, words: &[
    Message("access to the path '\\\\*' is denied"),
    Message("\\\\* is not accessible. you might not have permission"),
    Message("system error 5 has occurred"),
    Message("ioexception: the user name or password is incorrect*\\\\"),
    Message("systemfehler 5 aufgetreten"),
    Message("erreur système 5 s'est produite"),
    Message("error de sistema 5."),
    Message("new-smbglobalmapping : access is denied"),
    Message("new-smbmapping : access is denied"),
    Message("dir \\\\*access is denied"),
    Message("smb*mapping : the specified network password is not correct"),
    Message("smb*mapping : the user name or password is incorrect"),
    Codes(&["ERROR_LOGIN_WKSTA_RESTRICTION"]),
], remedies: &[
    (&["login_wksta_restriction"], "The server offers a logon as guest, or without signing, which this Windows refuses: open the share by its DNS name, as the gMSA, so that Kerberos is used. A server that allows guests alone has to be changed."),
    (&["new-smbglobalmapping : the *password"], "The user or the password that was given with the share is wrong: correct them, for a volume in its Secret (`nodeStageSecretRef`). A global mapping never uses the gMSA: to use it, let the process open `\\\\SERVER\\SHARE` itself."),
    (&["ioexception"], "The server of the share got no identity that it takes: run the process as NETWORK SERVICE, open the share by its DNS name, and check `klist get cifs/SERVER` in the container."),
    (&["password is "], "The user or the password that was given with the share is wrong: Windows opens it with them, and not with the gMSA. Give none, so that the process opens it as the gMSA, or correct them."),
] },
RuleEntry { rule: &SHARE_SESSIONS, words: &[
    Codes(&["ERROR_SESSION_CREDENTIAL_CONFLICT"]),
], remedies: &[
] },
RuleEntry { rule: &API_UNREACHABLE, words: &[
    Message("the connection to the server * was refused"),
    Message("kubernetes cluster unreachable"),
    Message("couldn't get current server api group list"),
    Message("the api server cannot be reached"),
    Message("no answer from the api server within"),
    Message("get \"http://localhost:8080"),
    General("unable to connect to the server"),
    General("etcdserver: "),
    General("server is currently unable to handle the request"),
], remedies: &[
    (&["localhost:8080"], "There is no kubeconfig, so kubectl asks this machine: set `KUBECONFIG`, or fetch one from the provider of the cluster."),
    (&["etcdserver"], "The API server waits for etcd: try again, and look at etcd's disk and members. `kubectl cluster-info` and `kubectl get --raw /readyz?verbose` show the state."),
] },
RuleEntry { rule: &API_CERTIFICATE, words: &[
    Message("unable to connect to the server: x509"),
    Message("unable to connect to the server: tls: failed to verify certificate"),
    Message("couldn't get current server api group list*x509"),
    Message("kubernetes cluster unreachable*x509"),
], remedies: &[
] },
RuleEntry { rule: &API_CREDENTIALS, words: &[
    Message("you must be logged in to the server"),
    Message("server has asked for the client to provide credentials"),
    Message("getting credentials: exec"),
    Message("executable ? not found*it looks like you are trying to use a client-go credential plugin"),
    Message("exec plugin: invalid apiversion"),
    Message("no auth provider found for name"),
    Message("no credentials for a cluster"),
    Message("the credentials for the cluster cannot be used"),
    Message("the api server answered 401"),
    Message("no configuration has been provided, try setting kubernetes_master"),
    Message("error loading config file"),
    Message("no context exists with the name"),
    Message("context \"*\" does not exist"),
    Message("context was not found for specified context"),
    Message("unable to load in-cluster configuration"),
], remedies: &[
    (&["executable"], "Install the exec plugin that the kubeconfig names, and put it on the PATH: `kubelogin` on Azure, `aws` on EKS, `gke-gcloud-auth-plugin` on GKE."),
    (&["context"], "Choose a context that the kubeconfig has: `kubectl config get-contexts`, `kubectl config use-context NAME`."),
    (&["in-cluster"], "Outside of a cluster, give it a kubeconfig: `KUBECONFIG`. In a Pod, the token of its service account must be mounted."),
    (&["exec plugin: invalid apiversion"], "Fetch the kubeconfig again: kubectl no longer takes this version of the exec plugin's API. On EKS: `aws eks update-kubeconfig`."),
    (&["no auth provider found"], "Install the exec plugin of the provider, and fetch the kubeconfig again: kubectl no longer has auth providers of its own."),
] },
RuleEntry { rule: &RIGHT_MISSING, words: &[
    Message("cannot create resource \"pods\""),
    Message("is forbidden: user * cannot "),
    Message("attempting to grant rbac permissions not currently held"),
], remedies: &[
    (&["cannot ? resource \"gmsacredentialspecs\""], "Set `viewerRole=true` in the chart: all read credential specs who have the role `view` by a ClusterRoleBinding, not by a RoleBinding. Pods need no right to read them, only `use`, which `kubectl gmsa grant` gives."),
    (&["cannot * resource \"localsubjectaccessreviews\""], "Have `create` on `localsubjectaccessreviews` granted in the namespace: `check --live` asks by it whether a service account may use a credential spec."),
    (&["attempting to grant rbac permissions not currently held"], "Run it as a user who has these rights or the verbs `bind` and `escalate`, such as a cluster administrator: users can grant only rights that they have."),
    (&["cannot * mutatingwebhookconfigurations"], "Install as a cluster administrator: webhook configurations are cluster-scoped. docs/rights.md lists the rights."),
    (&["cannot * customresourcedefinitions"], "Install as a cluster administrator: the custom resource is cluster-scoped. docs/rights.md lists the rights."),
] },
RuleEntry { rule: &NAMESPACE_MISSING, words: &[
    Message("namespaces \"*\" not found"),
    Message("namespace \"*\" not found"),
], remedies: &[
] },
RuleEntry { rule: &FIELD_CONFLICT, words: &[
    Message("apply failed with * conflict"),
    Message("conflict occurred while applying"),
    Message("conflict with \"*\" using"),
    Message("conflict with \"*\": ."),
    Message("please review the fields above--they currently have other managers"),
], remedies: &[
    (&["cabundle"], "Leave `caBundle` to the webhook, or to cert-manager, which writes it: unset `certificates.caBundle`, so that Helm does not apply it. With `--force-conflicts` the API server would trust another CA than the one that signed the certificate."),
] },
RuleEntry { rule: &FOREIGN_OBJECT, words: &[
    Message("invalid ownership metadata"),
    Message("cannot be imported into the current release"),
], remedies: &[
] },
RuleEntry { rule: &RELEASE_TIMEOUT, words: &[
    General("timed out waiting for the condition"),
    General("retries exhausted"),
    General("client rate limiter wait returned an error: context deadline exceeded"),
    General("not ready. status: inprogress"),
    Message("failed pre-install:*timed out waiting"),
    Message("failed post-install:*timed out waiting"),
    Message("exceeded its progress deadline"),
    Message("progressdeadlineexceeded"),
], remedies: &[
] },
RuleEntry { rule: &CHART_VALUES, words: &[
    Message("execution error at (*gmsa"),
    Message("template: gmsa/templates"),
    Message("values don't meet the specifications of the schema"),
    Message("values do not meet the specifications of the schema"),
    Message("template: gmsa-webhook/"),
    Message("template: gmsa-accounts/"),
    Message("failed parsing --set data"),
], remedies: &[
] },
RuleEntry { rule: &PLUGIN_NOT_FOUND, words: &[
    Message("unknown command \"gmsa\""),
], remedies: &[
] },
RuleEntry { rule: &MANIFEST_INVALID, words: &[
    Message("error validating data"),
    Message("strict decoding error"),
    Message("error converting yaml to json"),
    Message("error parsing * error converting"),
    General("a lowercase rfc 1123"),
], remedies: &[
    (&["a lowercase rfc 1123"], "Use a lower-case DNS name: letters, digits, `-` and, for credential specs, `.`."),
    (&["gmsacredentialspec in version", "validationerror(gmsacredentialspec", "in gmsacredentialspec.credspec"], "Correct the field of the credential spec that the message names: `kubectl gmsa credspec lint -f FILE` says which is meant."),
    (&["gmsacredentialspec"], "Write `gmsaCredentialSpecName` into `securityContext.windowsOptions` of the Pod or of a container. `kubectl gmsa check -f FILE` names the line."),
] },
RuleEntry { rule: &IMMUTABLE_FIELD, words: &[
    Message("field is immutable"),
    Message("pod updates may not change fields other than"),
], remedies: &[
] },
RuleEntry { rule: &OBJECT_TOO_LARGE, words: &[
    Message("metadata.annotations: too long"),
    Message("etcdserver: request is too large"),
    Message("request entity too large: limit is"),
], remedies: &[
] },
RuleEntry { rule: &CERTIFICATE_REQUEST, words: &[
    Message("the signed certificate did not appear on the resource"),
    Message("not permitted to approve requests with signername"),
    Message("for signer \"kubernetes.io/kubelet-serving\""),
    Message("unable to approve csr"),
], remedies: &[
] },
RuleEntry { rule: &CERT_MANAGER, words: &[
    Message("no matches for kind \"certificate\" in version \"cert-manager.io"),
    Message("no matches for kind \"issuer\" in version \"cert-manager.io"),
    Message("failed calling webhook \"webhook.cert-manager.io\""),
    Message("issuing certificate as secret does not exist"),
    Message("issuing certificate as secret was previously issued by"),
    Message("referenced \"issuer\" not found"),
    Message("referenced \"clusterissuer\" not found"),
    Message("waiting on certificate issuance from order"),
], remedies: &[
] },
RuleEntry { rule: &TIMED_OUT, words: &[
    Codes(&["ERROR_WINHTTP_TIMEOUT"]),
], remedies: &[
] },
RuleEntry { rule: &NAME_UNKNOWN, words: &[
    Codes(&["WSAHOST_NOT_FOUND", "ERROR_WINHTTP_NAME_NOT_RESOLVED"]),
    Message("hostname cannot be canonicalized"),
    Message("could not resolve kerberos principal name"),
], remedies: &[
] },
RuleEntry { rule: &CONNECTION_FAILED, words: &[
    General("tcp connect to *failed"),
    General("tcptestsucceeded : false"),
    Message("get-wmiobject : the rpc server is unavailable"),
    Message("get-ciminstance : the rpc server is unavailable"),
    Message("wmic*the rpc server is unavailable"),
    Codes(&["ERROR_NETNAME_DELETED", "ERROR_CONNECTION_REFUSED", "ERROR_NETWORK_UNREACHABLE", "ERROR_HOST_UNREACHABLE", "WSAENETUNREACH", "WSAECONNRESET", "WSAECONNREFUSED", "WSAEHOSTUNREACH", "ERROR_WINHTTP_CANNOT_CONNECT"]),
], remedies: &[
    (&["rpc server is unavailable"], "WMI calls the other server at TCP 135 and at a port that it names (49152-65535): let the Pod network reach both, and let the firewall of that server allow WMI. Its DNS name must lead to it."),
] },
];

/// Texts of a successful step, or of every logon, each with what it means.
pub static GOOD: &[(&[Words], &str)] = &[
(&[
    Message("credential guard instantiated the plugin"),
    Event("containers-ccg", &[1]),
], "The plugin is registered on the node and was started."),
(&[
    Message("\"tickets written\""),
    Message("info tickets written"),
    Message("tickets written services="),
], "The agent has written the tickets of the Pod. It proves no logon: `klist` in another container shows them."),
(&[
    Message("the broker answers, and refuses a request without a token"),
], "The agent reaches the broker and trusts its certificate. It proves no permission."),
(&[
    Message("fetched gmsa credentials for"),
    Event("containers-ccg", &[2]),
], "The node has the password of the account."),
(&[
    Message("is refetching the credentials"),
    Event("containers-ccg", &[7]),
], "The password of the account has changed, and the node retrieves the new one."),
(&[
    Message("nt authority\\network service"),
    Message("nt authority\\system"),
    Message("iis apppool\\"),
], "On the network, such a process acts as the gMSA: `klist` and `nltest /sc_verify:DOMAIN` show it. The name alone proves no logon."),
(&[
    Message("tls handshake error from *: eof"),
], "A client connected and sent nothing, as TCP health checks of load balancers do."),
(&[
    Message("trust verification status = 0 0x0 nerr_success"),
], "The secure channel works: the domain trusts the container. It proves no right on a service."),
(&[
    Message("connection status = 0 0x0 nerr_success"),
    Message("connection status status = 0 0x0 nerr_success"),
], "The container has a secure channel to its domain. `nltest /sc_verify:DOMAIN` asks whether the domain still trusts it."),
(&[
    Message(" (1) the command completed successfully"),
], "The container has a credential spec, and Netlogon knows its domain. It proves no logon: `nltest /sc_verify:DOMAIN` does."),
(&[
    Message("dom guid: *dom name: "),
    Message("our site name: "),
    Message("get list of dcs in domain *[pdc]"),
], "DNS finds a domain controller, and it answers. It proves no logon: `nltest /sc_verify:DOMAIN` does."),
(&[
    Message("udp * noerror qr,tc"),
    Message("udp * noerror qr,aa,tc"),
    Message("truncated, retrying in tcp mode"),
], "The answer is too long for UDP and was cut off (`tc`), so the client repeats its query over TCP: TCP 53 must be open on the whole way to the DNS servers of the domain."),
(&[
    Message("in _ldap._tcp*.cluster.local. * nxdomain"),
    Message("in _kerberos._tcp*.cluster.local. * nxdomain"),
], "The search list of the Pod appends the domain of the cluster to the name, and nothing has that name. The query for the name without it counts."),
(&[
    Message("svr hostname = "),
    Message("srv service location: "),
    Message("in srv *389"),
    Message("has srv record"),
    Message("nametarget *priority"),
    Message("in _ldap._tcp*noerror"),
    Message("in _kerberos._tcp*noerror"),
    Message("_msdcs*noerror"),
], "DNS answers with domain controllers. It does not prove that they are reached: `nltest /dsgetdc:DOMAIN` does."),
(&[
    Message("server: *address: *name: *address"),
], "DNS answers with addresses of the name. Whether it knows the domain controllers, `nslookup -type=SRV _ldap._tcp.dc._msdcs.DOMAIN` shows."),
(&[
    Message("tcptestsucceeded : true"),
], "The port is reached over TCP. UDP, and what answers there, are not tested by it."),
(&[
    Message("> client: *server: "),
    Message("principal: *issued *expires *principal"),
    Message("default principal: *valid starting"),
], "The process has a Kerberos ticket, so the domain took its logon. The client is its identity: the account of the credential spec with `$` in a Pod; the name of the node says that the command ran on the node, or in a hostProcess container."),
(&[
    Message("kerbticket encryption type: rsadsi rc4-hmac"),
    Message("ticket : rc4 sessionkey : "),
    Message("sessionkey : rc4"),
    Message("ticket encryption type: 0x17"),
], "A ticket or its session key uses RC4, which updated domain controllers refuse: `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`."),
(&[
    Message("test-adserviceaccount *true"),
], "This machine can retrieve the password of the account. It says nothing about other nodes."),
(&[
    Message("last successful sync time: "),
    Message("sending resync command*completed successfully"),
], "The clock follows the source that `w32tm /query /status` names: it must agree with the domain controllers within 5 minutes."),
(&[
    Message("test-computersecurechannel*true"),
], "The machine has a secure channel to its domain."),
(&[
    Message("received the request to fetch the credentials from azure keyvault"),
    Event("aksgmsaplugin", &[1012]),
], "The plugin was started, and was asked for the user. The events after this one say how it went on."),
(&[
    Message("access token has been retrieved for the provided managed identi"),
    Event("aksgmsaplugin", &[1017]),
], "The plugin has a token of the managed identity, and asks the Key Vault next."),
(&[
    Message("completed processing the request to fetch the credentials from the azure keyvault"),
    Event("aksgmsaplugin", &[1011]),
], "The plugin has ended; status 0 means that it gave the node the user of the secret."),
(&[
    Message("preparing to make request: using secret"),
    Message("got response with content of"),
], "The plugin was started, and asked its account provider for the Secret."),
(&[
    Message("no files matching import glob pattern"),
], "CoreDNS imports no file there, as where nobody wrote zones of their own. On AKS, a key of `coredns-custom` must end with `.server` or `.override`."),
(&[
    Message("[info] reloading complete"),
    Message("plugin/reload: running configuration"),
], "CoreDNS has read its configuration."),
(&[
    Message("no_client_site: "),
    Event("netlogon", &[5807]),
], "The address of a client belongs to no site of the domain. It works, and may take a distant domain controller."),
(&[
    Message("group key distribution service created a master root key"),
    Event("kdssvc", &[4004]),
], "The forest has a root key. Passwords can be made ten hours later."),
(&[
    Message("a ticket to krbtgt has been retrieved successfully"),
], "The container logs on to the domain as the account."),
(&[
    Message("successfully fetched the password of a group managed"),
    Message("kennwort eines gruppenverwalteten dienstkontos abgerufen"),
    Event("directoryservice", &[2946]),
    Event("activedirectory_domainservice", &[2946]),
], "A domain controller sent a client the password of the account."),
(&[
    Message("kdc_err_preauth_required"),
    Message("additional pre-authentication required"),
], "The first answer of every Kerberos logon: the client repeats its request with a proof of its password."),
(&[
    Message("ip addresses don't map to any of the existing sites"),
], "The addresses of some clients belong to no site of the domain. It works, and they may take a distant domain controller."),
(&[
    Message("current logged-on user is not a domain user"),
], "A local user of the container has no such name. SYSTEM and NETWORK SERVICE act as the gMSA on the network all the same: `klist` shows it."),
(&[
    Message("krb5_ccache_conf_data"),
], "The Kerberos library looks for a setting in its cache, which few caches have. It goes on without."),
(&[
    Message("krb_err_response_too_big"),
], "The client repeats its request over TCP: let TCP 88 through."),
(&[
    Message(": kvno = "),
], "The domain gave a ticket for this service. Compare its kvno with the keytab of the service: `klist -kte`."),
(&[
    Message("received creds for desired service"),
], "The client has got a ticket for the service that it asked for."),
(&[
    Message("sasl username: *sasl ssf: "),
], "The directory has taken the ticket: the SASL user is the identity of this process."),
(&[
    Message("keytab name: *kvno"),
], "The keytab has these keys. The service principal names must be those that clients ask for, and the kvno that of the domain (`msDS-KeyVersionNumber`)."),
(&[
    Message("with result: -1765328243/matching credential not found"),
    Message("with result: 2/key table file * not found"),
], "The library looks in its cache, and for a keytab of the client, before it asks the domain: most have none. The lines after these say how it went on."),
(&[
    Message("authenticated to kerberos v5"),
], "The domain took the logon: the cache has a ticket-granting ticket."),
];

/// Parts of a message in which other words and numbers do not count.
pub static NOTHING: &[&str] = &[
    "srv in _ldap._tcp*.cluster.local. * nxdomain",
    "srv in _kerberos._tcp*.cluster.local. * nxdomain",
    "any in _ldap._tcp*.cluster.local. * nxdomain",
    "with result: -1765328243/*not found",
    "with result: 2/key table file * not found",
    "gssapi does not support required the ntlm interfaces: *unsupported mechanism was requested",
    "kdc can't fulfill requested option while getting initial credentials",
    "kdc can't fulfill requested option while validating credentials",
];

/// Parts of messages of Windows in lower case, each with its status.
pub static WINDOWS: &[(&str, &str)] = &[
    ("ERROR_NOLOGON_WORKSTATION_TRUST_ACCOUNT", "the account used is a computer account"),
    ("ERROR_LOGIN_WKSTA_RESTRICTION", "account is not authorized to log in from this station"),
    ("ERROR_MUTUAL_AUTH_FAILED", "mutual authentication failed. the server's password is out of date"),
    ("NERR_TimeDiffAtDC", "clock on this system is not synchronized with the primary domain controller"),
    ("ERROR_DS_DNS_LOOKUP_FAILURE", "directory service is unable to proceed because of a dns lookup failure"),
    ("ERROR_DS_DNS_LOOKUP_FAILURE", "dsa operation is unable to proceed because of a dns lookup failure"),
    ("ERROR_INVALID_LOGON_HOURS", "account has time restrictions"),
    ("ERROR_INCORRECT_ACCOUNT_TYPE", "system is not authoritative for the specified account"),
    ("ERROR_DS_OPERATIONS_ERROR", "an operations error occurred"),
    ("SEC_E_INVALID_TOKEN", "token supplied to the function is invalid"),
    ("RPC_S_CALL_FAILED_DNE", "remote procedure call failed and did not execute"),
    ("ERROR_INVALID_PASSWORD", "specified network password is not correct"),
    ("ERROR_LOGON_FAILURE", "the user name or password is incorrect"),
    ("SEC_E_LOGON_DENIED", "the logon attempt failed"),
    ("STATUS_LOGON_FAILURE", "the attempted logon is invalid"),
    ("ERROR_ACCOUNT_LOCKED_OUT", "referenced account is currently locked out"),
    ("ERROR_ACCOUNT_DISABLED", "account is currently disabled"),
    ("SEC_E_DOWNGRADE_DETECTED", "detected a possible attempt to compromise security"),
    ("ERROR_NETNAME_DELETED", "specified network name is no longer available"),
    ("ERROR_NETWORK_UNREACHABLE", "network location cannot be reached"),
    ("ERROR_BAD_NETPATH", "network path was not found"),
    ("ERROR_NO_LOGON_SERVERS", "no logon servers available"),
    ("ERROR_NO_SUCH_DOMAIN", "domain either does not exist or could not be contacted"),
    ("EPT_S_NOT_REGISTERED", "no more endpoints available from the endpoint mapper"),
    ("ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "could not find the domain controller for this domain"),
    ("SEC_E_NO_AUTHENTICATING_AUTHORITY", "no authority could be contacted for authentication"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc server is unavailable"),
    ("RPC_S_CALL_FAILED", "remote procedure call failed"),
    ("ERROR_NETLOGON_NOT_STARTED", "attempt was made to logon, but the network logon service was not started"),
    ("ERROR_NO_SUCH_USER", "specified account does not exist"),
    ("ERROR_SEM_TIMEOUT", "semaphore timeout period has expired"),
    ("WSAETIMEDOUT", "connected party did not properly respond after a period of time"),
    ("ERROR_PROCESS_ABORTED", "process terminated unexpectedly"),
    ("ERROR_NONE_MAPPED", "no mapping between account names and security ids"),
    ("ERROR_NO_TRUST_LSA_SECRET", "workstation does not have a trust secret"),
    ("ERROR_NO_TRUST_SAM_ACCOUNT", "does not have a computer account for this workstation trust relationship"),
    ("ERROR_TRUSTED_DOMAIN_FAILURE", "trust relationship between the primary domain and the trusted domain failed"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "trust relationship between this workstation and the primary domain failed"),
    ("ERROR_TIME_SKEW", "time and/or date difference between the client and server"),
    ("SEC_E_TIME_SKEW", "clocks on the client and server machines are skewed"),
    ("ERROR_WRONG_TARGET_NAME", "target account name is incorrect"),
    ("SEC_E_TARGET_UNKNOWN", "specified target is unknown or unreachable"),
    ("SEC_E_WRONG_PRINCIPAL", "target principal name is incorrect"),
    ("ERROR_NO_SUCH_LOGON_SESSION", "specified logon session does not exist"),
    ("SEC_E_NO_CREDENTIALS", "no credentials are available in the security package"),
    ("CO_E_RUNAS_LOGON_FAILURE", "server process could not be started because the configured identity is incorrect"),
    ("REGDB_E_CLASSNOTREG", "class not registered"),
    ("CO_E_SERVER_EXEC_FAILURE", "server execution failed"),
    ("ERROR_NO_SYSTEM_RESOURCES", "insufficient system resources exist"),
    ("ERROR_COMMITMENT_LIMIT", "paging file is too small for this operation"),
    ("HCN_E_NETWORK_NOT_FOUND", "the network was not found"),
    ("HCN_E_ENDPOINT_NOT_FOUND", "the endpoint was not found"),
    ("HCN_E_NETWORK_ALREADY_EXISTS", "a network with this name already exists"),
    ("HCN_E_NAMESPACE_ATTACH_FAILED", "requested operation for attach namespace failed"),
    ("ERROR_DLL_INIT_FAILED", "a dynamic link library (dll) initialization routine failed"),
    ("ERROR_MOD_NOT_FOUND", "specified module could not be found"),
    ("ERROR_BAD_EXE_FORMAT", "not a valid win32 application"),
    ("ERROR_PASSWORD_EXPIRED", "password for this account has expired"),
    ("ERROR_PASSWORD_MUST_CHANGE", "password must be changed before"),
    ("ERROR_ACCOUNT_RESTRICTION", "account restrictions are preventing"),
    ("ERROR_LOGON_TYPE_NOT_GRANTED", "has not been granted the requested logon type"),
    ("ERROR_SERVICE_LOGON_FAILED", "service did not start due to a logon failure"),
    ("ERROR_ACCOUNT_EXPIRED", "user's account has expired"),
    ("ERROR_DS_SERVER_DOWN", "the server is not operational"),
    ("ERROR_DS_UNAVAILABLE", "the directory service is unavailable"),
    ("ERROR_DS_NO_SUCH_OBJECT", "there is no such object on the server"),
    ("ERROR_DS_OBJ_NOT_FOUND", "directory object not found"),
    ("ERROR_DS_INSUFF_ACCESS_RIGHTS", "insufficient access rights to perform the operation"),
    ("DNS_ERROR_RCODE_SERVER_FAILURE", "dns server failure"),
    ("DNS_ERROR_RCODE_NAME_ERROR", "dns name does not exist"),
    ("DNS_ERROR_RCODE_REFUSED", "dns operation refused"),
    ("DNS_INFO_NO_RECORDS", "no records found for given dns query"),
    ("DNS_ERROR_NO_DNS_SERVERS", "no dns servers configured for local system"),
    ("ERROR_BAD_NET_NAME", "network name cannot be found"),
    ("ERROR_SESSION_CREDENTIAL_CONFLICT", "multiple connections to a server or shared resource by the same user"),
    ("NTE_NO_KEY", "key does not exist"),
    ("NTE_NO_KEY", "schlüssel ist nicht vorhanden"),
    ("NTE_NO_KEY", "la clé n'existe pas"),
    ("NTE_NO_KEY", "la clave no existe"),
    ("ERROR_DS_UNWILLING_TO_PERFORM", "server is unwilling to process the request"),
    ("SEC_E_UNTRUSTED_ROOT", "certificate chain was issued by an authority that is not trusted"),
    ("SEC_E_CERT_EXPIRED", "received certificate has expired"),
    ("STATUS_NTLM_BLOCKED", "since ntlm was blocked"),
    ("HCS_E_TERMINATED_DURING_START", "exited unexpectedly while it was being started"),
    ("HCS_E_UNEXPECTED_EXIT", "compute system exited unexpectedly"),
    ("HCS_E_INVALID_STATE", "operation is not valid in the current state"),
    ("HCS_E_CONNECTION_TIMEOUT", "response was not received from the virtual machine"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "vertrauensstellung zwischen dieser arbeitsstation und der primären domäne"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc-server ist nicht verfügbar"),
    ("ERROR_LOGON_FAILURE", "benutzername oder das kennwort ist falsch"),
    ("ERROR_LOGON_FAILURE", "unbekannter benutzername oder falsches kennwort"),
    ("ERROR_NO_LOGON_SERVERS", "keine anmeldeserver"),
    ("ERROR_NO_SUCH_DOMAIN", "angegebene domäne ist nicht vorhanden"),
    ("SEC_E_WRONG_PRINCIPAL", "zielprinzipalname ist falsch"),
    ("ERROR_INVALID_PASSWORD", "das angegebene netzwerkkennwort ist falsch"),
    ("ERROR_NO_SUCH_LOGON_SESSION", "angegebene anmeldesitzung ist nicht vorhanden"),
    ("ERROR_NO_TRUST_SAM_ACCOUNT", "kein computerkonto für diese arbeitsstationsvertrauensstellung"),
    ("ERROR_ACCOUNT_LOCKED_OUT", "konto ist momentan gesperrt"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relation d'approbation entre cette station de travail et le domaine principal a échoué"),
    ("RPC_S_SERVER_UNAVAILABLE", "le serveur rpc n'est pas disponible"),
    ("ERROR_LOGON_FAILURE", "nom d'utilisateur ou le mot de passe est incorrect"),
    ("ERROR_NO_SUCH_DOMAIN", "domaine spécifié n'existe pas ou n'a pas pu être contacté"),
    ("ERROR_NO_LOGON_SERVERS", "aucun serveur d'accès n'est actuellement disponible"),
    ("SEC_E_WRONG_PRINCIPAL", "le nom principal de la cible est incorrect"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relación de confianza entre esta estación de trabajo y el dominio principal"),
    ("RPC_S_SERVER_UNAVAILABLE", "servidor rpc no está disponible"),
    ("ERROR_LOGON_FAILURE", "nombre de usuario o la contraseña no son correctos"),
    ("ERROR_NO_SUCH_DOMAIN", "dominio especificado no existe o no se pudo"),
    ("SEC_E_WRONG_PRINCIPAL", "nombre principal de destino es incorrecto"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relazione di trust tra la workstation e il dominio primario"),
    ("RPC_S_SERVER_UNAVAILABLE", "server rpc non disponibile"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relação de confiança entre esta estação de trabalho e o domínio primário"),
    ("RPC_S_SERVER_UNAVAILABLE", "servidor rpc não está disponível"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "vertrouwensrelatie tussen dit werkstation en het primaire domein"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc-server is niet beschikbaar"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "このワークステーションとプライマリ ドメインとの信頼関係に失敗しました"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc サーバーを利用できません"),
    ("ERROR_LOGON_FAILURE", "ユーザー名またはパスワードが正しくありません"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "此工作站和主域间的信任关系失败"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc 服务器不可用"),
    ("RPC_S_SERVER_UNAVAILABLE", "сервер rpc недоступен"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "доверительные отношения между этой рабочей станцией и основным доменом"),
    ("RPC_S_SERVER_UNAVAILABLE", "serwer rpc jest niedostępny"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relacja zaufania między tą stacją roboczą a domeną podstawową"),
    ("ERROR_NO_SUCH_USER", "das angegebene konto ist nicht vorhanden"),
    ("ERROR_LOGON_FAILURE", "用户名或密码不正确"),
];

/// Rules of earlier releases, each with the reason why it is gone.
pub static REMOVED: &[(&str, &str)] = &[
    ("already-exists", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("chart-missing", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("dns-configuration", "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has the zone for each platform."),
    ("dns-resolvers", "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has the zone for each platform."),
    ("dns-servers", "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has the zone for each platform."),
    ("dns-zone", "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has the zone for each platform."),
    ("linux-image", "This rule was removed: `kubectl gmsa check --live` compares the builds of images and nodes, and a node reports an image for Linux."),
    ("node-resources", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("object-changed", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("object-missing", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("probe-failed", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("release-stuck", "This rule was removed: its messages are not about GMSA. It is shown as it stands."),
    ("install-permissions", "This rule was removed: Helm names the right that it lacks, and docs/rights.md lists all of them."),
    ("network-open", "This rule was removed: docs/security.md says how to let only the API server connect to the webhook."),
    ("static-policies", "This rule was removed: docs/static-policies.md says how to try them."),
];

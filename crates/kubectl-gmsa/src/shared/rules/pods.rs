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
    WINDOWS_BUILD: "windows-build", Note, "A container may be started on a node whose build of Windows does not run its image.",
        "Select the builds that run the image (`node.kubernetes.io/windows-build`), or use a runtime class that does. A node runs images of its own release and, \
             since Windows Server 2022, of the long-term release before it; never a newer one.";
    LINUX_IMAGE: "linux-image", Warning, "A container of a Pod for Windows has an image for Linux.",
        "Use a tag of the image for Windows, such as `8.0-nanoserver-ltsc2022` of the images of .NET, or another image.";
    RUNTIME_ANNOTATION: "runtime-annotation", Warning, "An annotation has containerd run the containers of a Pod without the account, or with another one.",
        "Remove the annotation.";
    NO_CREDENTIAL_SPEC: "no-credential-spec", Warning, "A Pod does not use GMSA.",
        "Set `gmsaCredentialSpecName` in its `windowsOptions`.",
        words: [Start("credential spec is empty")];
    CONTENTS_OUTDATED: "contents-outdated", Warning, "A Pod carries contents that are not the current ones of a credential spec.",
        "Restart its workload: `kubectl rollout restart -n NAMESPACE $(kubectl gmsa outdated -n NAMESPACE -o name)`. Or delete the Pod: its controller creates a new one.";
    POD_REFUSED: "pod-refused", Error, "The API server refuses the Pods of a workload, for another reason than GMSA.",
        "Do what the message says: it is from a quota, the Pod Security level of the namespace, a policy, or another webhook.",
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
            "exceeded quota" => "Raise the ResourceQuota that the message names (`kubectl describe resourcequota -n NAMESPACE`), or request less.",
            "no priorityclass with name" => "Create it: `kubectl create priorityclass OBJECT --value=1000`. Or correct the name in the Pod.",
            "failed quota" => "Set requests and limits on every container: the ResourceQuota that the message names demands them. A LimitRange sets defaults.",
            "violates podsecurity" => "Change the fields that the message names, or the label `pod-security.kubernetes.io/enforce` of the namespace. GMSA itself passes the level `restricted`; `hostProcess` needs `privileged`.",
            "usage per" => "Stay within the LimitRange of the namespace: `kubectl describe limitrange -n NAMESPACE`.",
            "takes pods out of the gmsa webhook" => "Have a user do it who may update the webhook configurations: the label exempts Pods from all checks.",
            "static policies of the" => "Let a user or group do it that `staticPolicies.admins` names: docs/static-policies.md.",
            "validatingadmissionpolicy '" => "Do what the message of the ValidatingAdmissionPolicy says, or ask its owner: `kubectl get validatingadmissionpolicy`. It is no check of GMSA.",
            "security context constraint" => "Give the service account a SecurityContextConstraint for Windows Pods: `oc adm policy add-scc-to-user`.",
            "admission webhook \"*\" denied the request" => "Do what the message says: the admission webhook in quotes refuses the Pod, and its owner knows the policy. It is no check of GMSA.",
        };
    PODS_MISSING: "pods-missing", Error, "A workload has fewer Pods than it wants.",
        "`kubectl describe` of the workload, and of its ReplicaSet, shows events and conditions.",
        fix: describe;
    POD_STARTING: "pod-starting", Note, "A Pod was created a moment ago, or its image is pulled, and nothing has failed.",
        "Wait: `kubectl gmsa why pod/POD --namespace NAMESPACE --watch` waits until it runs.";
    POD_ENDING: "pod-ending", Error, "A Pod is being deleted, and is still there.",
        "`kubectl describe pod POD --namespace NAMESPACE` shows its finalizers and its node.";
    NOT_VERIFIED: "not-verified", Note, "No container was asked yet whether it has its identity in the domain.",
        "Run `kubectl gmsa verify NAMESPACE/POD`.";
    NODE_TAINT: "node-taint", Error, "The Windows nodes that a Pod selects have a taint that it does not tolerate.",
        "Add the toleration to the Pod template, or remove the taint: `kubectl taint nodes NODE KEY-`.",
        words: [Message("untolerated taint {os: windows}"), Message("untolerated taint {"), Message("had taint {"), Message("had taints that the pod didn't tolerate")],
        remedies: {
            "taint {node.cloudprovider.kubernetes.io/uninitialized" => "Wait: the cloud controller removes the taint when it has set up the node. If it stays, look at the cloud-controller-manager in `kube-system`.",
            "taint {node.cloudprovider.kubernetes.io/shutdown" => "Start the node: the cloud has stopped its machine, and its controller removes the taint when it runs.",
            "taint {tobedeletedbyclusterautoscaler" | "taint {deletioncandidateofclusterautoscaler" | "taint {karpenter.sh/disrupted" | "taint {karpenter.sh/disruption" => "Wait for another node: the autoscaler removes this one. A toleration would put the Pod on a node that goes.",
            "taint {karpenter.sh/unregistered" | "taint {startup-taint.cluster-autoscaler" | "taint {node.cilium.io/" => "Wait: a controller removes the taint when the node is ready. If it stays, look at that controller's Pods on the node.",
        };
    NODE_RESOURCES: "node-resources", Error, "The nodes that a Pod may run on have not enough of a resource left.",
        "Add a Windows node, or lower the requests of the Pod. `kubectl describe nodes -l kubernetes.io/os=windows` shows what is allocated.",
        words: [
            General("insufficient cpu"),
            General("insufficient memory"),
            General("insufficient ephemeral-storage"),
            General("insufficient pods"),
            General("too many pods"),
            General("didn't have free ports"),
            General("node didn't have enough resource"),
            General("outofcpu"),
            General("reason: outofmemory"),
            General("/1 outofmemory"),
            General("/2 outofmemory"),
            General("/3 outofmemory"),
            General("outofpods"),
            General("nodes are available*insufficient"),
        ],
        remedies: {
            "didn't have free ports" => "Each Windows node has a Pod with this `hostPort`: remove `hostPort` from the Pod and use a Service, add a node, or run at most one of these Pods on a node.",
        };
    POD_VOLUME: "pod-volume", Error, "A volume, ConfigMap or Secret that a Pod needs is not there, or cannot be mounted.",
        "Create what the message names in the namespace of the Pod, or correct its name. `kubectl describe pod POD --namespace NAMESPACE` shows each volume.",
        words: [
            Message("mountvolume.setup failed"),
            Message("mountvolume.mountdevice failed"),
            Message("unable to attach or mount volumes"),
            Message("attachvolume.attach failed"),
            Message("volume node affinity conflict"),
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
        ],
        remedies: {
            "smbglobalmapping*parameter is incorrect" | "smbglobalmapping*system error 87" | "remote path (*) is invalid" | "getrootmappingpath" | "invalid source path" => "Write `source` of the volume as `//SERVER/SHARE`, without a slash at its end: Windows does not map such a name. An SMB volume is mounted by the node, and never uses the account of the Pod.",
            "smbglobalmapping*logon session does not exist" | "smbglobalmapping*system error 1312" => "The node has no user for the share: name a Secret with `username` and `password` in the volume (`nodeStageSecretRef`). The CSI driver mounts on the node with that user; the account of the Pod has no part in it. To use the share as the gMSA, open it from the process: `\\\\SERVER\\SHARE`.",
            "invalid parameter(username" | "empty mountoptions" | "username and password from secret" => "The Secret of the volume (`nodeStageSecretRef`) is missing, or lacks `username` or `password`: `kubectl create secret generic NAME --from-literal username='CONTOSO\\USER' --from-literal password=...`. An SMB volume never uses the account of the Pod.",
            "source field is missing" => "Add `source: //SERVER/SHARE` to `volumeAttributes` of the volume, or to the parameters of its StorageClass.",
            "csi-proxy" | "smb.csi.k8s.io not found" => "The CSI driver for SMB does not run on the node: install it with its Windows DaemonSet (and csi-proxy, unless it is a hostProcess Pod).",
            "mount error(126)" => "The Linux node has no Kerberos ticket for the share: give the volume `sec=krb5` and a ticket cache, or a Secret with a user.",
            "mount error(2)" => "The server has no share, or no folder, of this name: correct `source` of the volume.",
            "mount error(112)" | "system error 53" => "The node does not reach the server of the share: look at its name, at TCP 445 and at network policies.",
            "smbglobalmapping*multiple connections" => "The node is connected to this server as another user already, and Windows allows one user for each name of a server: use the same user in all volumes of the server, or another name of it.",
            "smbglobalmapping*network path was not found" | "smbglobalmapping*network name cannot be found" => "The node finds no such server or share: correct `source` of the volume, and look at DNS and TCP 445 from the node.",
            "smb mapping failed" | "failed to mount smb server" | "newsmbglobalmapping*failed" | "prepare stage path failed" | "mount error(13)" => "Correct `source` of the volume, and the user and the password in its Secret (`nodeStageSecretRef`), or their rights on the share: the node mounts it with them, never with the account of the Pod.",
            "new-smbglobalmapping" => "Correct the user and the password in the Secret of the volume (`nodeStageSecretRef`), or their rights on the share: the node mounts it with them, not with the gMSA.",
            "newsmbglobalmapping" => "Correct the user and the password in the Secret of the volume (`nodeStageSecretRef`): the node mounts the share with them, not with the gMSA.",
            "volume label syntax" => "Correct the paths of the volumes: `hostPath` and `mountPath` are paths of Windows on such a node.",
            "configmap \"*\" not found" => "Create the ConfigMap in the namespace of the Pod (`kubectl create configmap OBJECT --namespace NAMESPACE --from-file=FILE`), or correct its name in the Pod.",
            "secret \"*\" not found" => "Create the Secret in the namespace of the Pod (`kubectl create secret generic OBJECT --namespace NAMESPACE --from-file=FILE`), or correct its name in the Pod.",
            "couldn't find key ? in configmap" => "Add the key: `kubectl patch configmap OBJECT --namespace NAMESPACE --patch '{\"data\":{\"KEY\":\"VALUE\"}}'`. Or correct its name in the Pod.",
            "couldn't find key ? in secret" => "Add the key: `kubectl patch secret OBJECT --namespace NAMESPACE --patch '{\"stringData\":{\"KEY\":\"VALUE\"}}'`. Or correct its name in the Pod.",
            "persistentvolumeclaim \"*\" not found" => "Create the claim: `echo '{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"OBJECT\",\"namespace\":\"NAMESPACE\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}' | kubectl apply -f -`, with the size that it needs. Or correct its name in the Pod.",
            "persistentvolumeclaim" => "Look at the claim: `kubectl describe pvc OBJECT --namespace NAMESPACE`. It waits for a StorageClass that exists, and works on Windows.",
            "failed to fetch token" => "The API server gives the kubelet no token for the service account of the Pod: `kubectl get serviceaccount --namespace NAMESPACE` shows whether it exists. If it was created again, delete the Pod, so that it gets a new token.",
            "attachvolume.attach failed" => "The volume cannot be attached to the node: the message says what the storage answers. Look at its PersistentVolume (`kubectl get pv`), at the disk in its zone, and at the log of the CSI driver's controller.",
            "volume node affinity conflict" => "The volume is bound to a zone or a node in which no Windows node takes the Pod: `kubectl get pv -o wide` and its `nodeAffinity` say where. Add a Windows node there, or create the claim again with a StorageClass that has `volumeBindingMode: WaitForFirstConsumer`.",
            "multi-attach error" => "The volume is still attached to the node of another Pod, and `ReadWriteOnce` allows one: delete that Pod (`kubectl get pods --namespace NAMESPACE -o wide`), or set `strategy.type: Recreate`.",
        };
    NODE_SELECTOR: "node-selector", Error, "No node that takes the Pod has the labels that it selects, or matches its affinity.",
        "Compare its node selector with `kubectl get nodes -L kubernetes.io/os,node.kubernetes.io/windows-build`. Windows nodes have `kubernetes.io/os: windows`, in lower case.",
        words: [
            General("didn't satisfy existing pods anti-affinity"),
            General("didn't match pod affinity rules"),
            General("didn't match pod anti-affinity rules"),
            General("didn't match pod topology spread constraints"),
            General("didn't match pod's node affinity/selector"),
            General("didn't match node selector"),
            General("predicate matchnodeselector failed"),
            General("predicate nodeaffinity failed"),
        ],
        remedies: {
            "missing required label" => "The Windows nodes lack the label that `topologyKey` in `topologySpreadConstraints` names: label them (`kubectl label node NODE topology.kubernetes.io/zone=ZONE`), or name a label that they have.",
            "topology spread constraints" => "Add a Windows node where its Pods are fewest, or set `whenUnsatisfiable: ScheduleAnyway` in `topologySpreadConstraints` of the Pod template.",
            "anti-affinity" => "Add a Windows node: each that is there has a Pod that it stays away from. Or make the rule of `podAntiAffinity` a preferred one.",
            "pod affinity rules" => "Start the Pods that it wants to be with, or make the rule of `podAffinity` a preferred one.",
            "node affinity/selector" => "Compare its node selector with `kubectl get nodes -L kubernetes.io/os,node.kubernetes.io/windows-build`. Windows nodes have `kubernetes.io/os: windows`, in lower case.",
        };
    NOT_SCHEDULED: "not-scheduled", Error, "A Pod is not on a node.",
        "`kubectl describe pod POD --namespace NAMESPACE` shows what the scheduler says, `kubectl get nodes -L kubernetes.io/os,node.kubernetes.io/windows-build` which nodes there are.",
        words: [General("nodes are available"), General("no nodes available to schedule pods"), General("failedscheduling")];
    POD_FAILED: "pod-failed", Error, "A Pod has failed: it was evicted, or a container of it ended with an error.",
        "`kubectl describe pod POD --namespace NAMESPACE` and `kubectl logs` say why. Its controller creates a new Pod; a Pod without a controller must be created again.",
        words: [
            Message("the node was low on resource"),
            Message("the node had condition: [diskpressure]"),
            Message("the node had condition: [memorypressure]"),
            General("job has reached the specified backoff limit"),
            General("backofflimitexceeded"),
            General("pod was active on the node longer than the specified deadline"),
        ];
    NODE_NOT_READY: "node-not-ready", Error, "The node of a Pod is not ready.",
        "`kubectl describe node NODE` says why: start its kubelet and its container runtime. Pods with a controller are created on other nodes after five minutes.",
        words: [
            Message("kubelet stopped posting node status"),
            Message("container runtime network not ready"),
            Message("untolerated taint {node.kubernetes.io/not-ready"),
            Message("untolerated taint {node.kubernetes.io/unreachable"),
            Message("untolerated taint {node.kubernetes.io/unschedulable"),
            Message("untolerated taint {node.kubernetes.io/disk-pressure"),
            Message("untolerated taint {node.kubernetes.io/memory-pressure"),
            Message("untolerated taint {node.kubernetes.io/network-unavailable"),
            Message("node is not ready"),
            Message("container runtime is down"),
            Message("pleg is not healthy"),
            Message("were unschedulable"),
        ],
        remedies: {
            "node.kubernetes.io/unschedulable" | "were unschedulable" => "The node is cordoned: `kubectl uncordon NODE` when its maintenance is over.",
            "disk-pressure" => "Free disk space on the node, such as by `crictl rmi --prune` there: it takes no Pods until its condition DiskPressure ends (`kubectl describe node NODE`).",
            "memory-pressure" => "Stop what fills the memory of the node, or add a node: it takes no Pods until its condition MemoryPressure ends (`kubectl describe node NODE`).",
            "network-unavailable" => "The CNI plugin of the node has not set up its network yet: look at the Pods of the plugin in `kube-system`, and at `kubectl describe node NODE`.",
        };
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
        "`kubectl describe pod POD --namespace NAMESPACE` shows its conditions, and the events of its probes.";
    PROBE_UNAUTHORIZED: "probe-unauthorized", Error, "The application answers the probe of the kubelet, which has no identity, with 401.",
        "Let one path answer without authentication (IIS: anonymous authentication for it), or probe with `tcpSocket`. If it worked before, the application has lost its identity: `kubectl gmsa verify NAMESPACE/POD`.",
        words: [Message("probe failed: http probe failed with statuscode: 401")];
    PROBE_FAILED: "probe-failed", Error, "The probe of the kubelet fails, so the Pod is not ready, or is restarted.",
        "`kubectl logs POD --namespace NAMESPACE` shows whether the application answers at that port and path. Windows applications start slowly: use a `startupProbe`.",
        words: [General("readiness probe failed"), General("liveness probe failed"), General("startup probe failed"), General("failed liveness probe"), General("readiness probe errored"), General("liveness probe errored"), General("startup probe errored")];
    NOT_STARTED: "not-started", Error, "A container of a Pod does not start.",
        "`kubectl describe pod POD --namespace NAMESPACE` shows its events; `kubectl gmsa explain` explains the text of one.",
        words: [
            General("failed to pull image"),
            General("errimagepull"),
            General("imagepullbackoff"),
            General("back-off pulling image"),
            General("errimageneverpull"),
            General("invalidimagename"),
            General("pull access denied"),
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
            StartCodes(&["ERROR_NOT_FOUND", "STATUS_NOT_FOUND"]),
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
            "createcomputesystem" => "Windows on the node failed: the log Microsoft-Windows-Hyper-V-Compute-Admin there says more. A restart of the service `vmcompute`, or of the node after a drain, clears what an earlier container left.",
            "image pull secrets" => "Create the imagePullSecret that the Pod or its service account names: `kubectl create secret docker-registry OBJECT --namespace NAMESPACE --docker-server=REGISTRY --docker-username=USER --docker-password=PASSWORD`.",
            "runasnonroot" | "non-root policy" => "Set `runAsUserName: ContainerUser` or `NT AUTHORITY\\NETWORK SERVICE`: with `runAsNonRoot`, the kubelet refuses ContainerAdministrator.",
            "is waiting to start" => "`kubectl describe pod POD --namespace NAMESPACE` shows what it waits for: its events name the image, the volume or the sandbox that fails.",
            "toomanyrequests" => "The registry limits pulls: log on to it with an imagePullSecret, or use a mirror.",
            "unauthorized" => "Let the node log on to the registry: an imagePullSecret in the namespace and on the service account, or the identity of the node.",
            "pull access denied" => "Correct the name of the image, or let the node log on to the registry: an imagePullSecret in the namespace and on the service account.",
            "403 forbidden" => "Give the node, or the imagePullSecret, the right to read that repository of the registry.",
            "x509" => "Let the node trust the authority of the registry: its certificate belongs into the certificate store of the node, or into `hosts.toml` of containerd.",
            "server gave http response to https client" => "The registry has no TLS: give it a certificate, or name it in `hosts.toml` of containerd as one without.",
            "no such host" => "The node does not resolve the name of the registry: correct the name, or the DNS of the node.",
            "manifest unknown" => "The registry has no such tag of the image: correct the tag.",
            "not found" => "The registry has no such image or tag: correct the name and the tag.",
            "errimageneverpull" => "Load the image onto the node, or change `imagePullPolicy`.",
            "pull" | "errimage" => "Correct the name and the tag of the image, or the access of the node to its registry: an imagePullSecret, its network. `kubectl describe pod POD --namespace NAMESPACE` shows what the registry said.",
            "imageinspecterror" => "Correct the name of the image: the container runtime cannot read it as one. `kubectl describe pod POD --namespace NAMESPACE` shows it.",
            "default image tag" => "Correct the name of the image: it is empty, or no name that a registry can have.",
            "oomkilled" => "Raise the memory limit of the container.",
            "crashloopbackoff" | "back-off restarting" => "`kubectl logs POD --namespace NAMESPACE --previous` says why the container ended; its exit code is in `kubectl describe pod POD --namespace NAMESPACE`.",
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

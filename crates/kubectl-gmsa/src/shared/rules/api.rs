//! The API server, kubectl and Helm.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, General, Message},
    family,
    text::MAY_NOT_CREATE_PODS,
};

family! { "API server and Helm" {
    API_UNREACHABLE: "api-unreachable", Error, "The API server cannot be reached.",
        "Check the network, the VPN and the proxy to the address in the kubeconfig: `kubectl cluster-info`. `kubectl config current-context` shows the cluster in use.",
        words: [
            Message("the connection to the server * was refused"),
            Message("kubernetes cluster unreachable"),
            Message("couldn't get current server api group list"),
            Message("the api server cannot be reached"),
            Message("no answer from the api server within"),
            Message("get \"http://localhost:8080"),
            General("unable to connect to the server"),
            General("etcdserver: "),
            General("server is currently unable to handle the request"),
        ],
        remedies: {
            "localhost:8080" => "There is no kubeconfig, so kubectl asks this machine: set `KUBECONFIG`, or fetch one from the provider of the cluster.",
            "etcdserver" => "The API server waits for etcd: try again, and look at etcd's disk and members. `kubectl cluster-info` and `kubectl get --raw /readyz?verbose` show the state.",
        };
    API_CERTIFICATE: "api-certificate", Error, "The certificate of the API server is not trusted by this kubeconfig.",
        "Fetch the kubeconfig again from the provider of the cluster: its `certificate-authority-data` is for another cluster, or a proxy terminates TLS.",
        words: [
            Message("unable to connect to the server: x509"),
            Message("unable to connect to the server: tls: failed to verify certificate"),
            Message("couldn't get current server api group list*x509"),
            Message("kubernetes cluster unreachable*x509"),
        ];
    API_CREDENTIALS: "api-credentials", Error, "The API server does not accept the credentials of the kubeconfig, or there are none.",
        "Log on again: the token or the certificate has expired, or the kubeconfig has no user. `kubectl auth whoami` shows your identity.",
        words: [
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
        ],
        remedies: {
            "executable" => "Install the exec plugin that the kubeconfig names, and put it on the PATH: `kubelogin` on Azure, `aws` on EKS, `gke-gcloud-auth-plugin` on GKE.",
            "context" => "Choose a context that the kubeconfig has: `kubectl config get-contexts`, `kubectl config use-context NAME`.",
            "in-cluster" => "Outside of a cluster, give it a kubeconfig: `KUBECONFIG`. In a Pod, the token of its service account must be mounted.",
            "exec plugin: invalid apiversion" => "Fetch the kubeconfig again: kubectl no longer takes this version of the exec plugin's API. On EKS: `aws eks update-kubeconfig`.",
            "no auth provider found" => "Install the exec plugin of the provider, and fetch the kubeconfig again: kubectl no longer has auth providers of its own.",
        };
    RIGHT_MISSING: "right-missing", Error, "The user lacks a right, so the API server refuses the request.",
        "Have the right granted: `kubectl auth can-i VERB RESOURCE` shows when it is there. What the commands of this program need is in docs/rights.md.",
        words: [
            Message(MAY_NOT_CREATE_PODS),
            Message("is forbidden: user * cannot "),
            Message("attempting to grant rbac permissions not currently held"),
        ],
        remedies: {
            "cannot ? resource \"gmsacredentialspecs\"" => "Set `viewerRole=true` in the chart: all read credential specs who have the role `view` by a ClusterRoleBinding, not by a RoleBinding. Pods need no right to read them, only `use`, which `kubectl gmsa grant` gives.",
            "cannot * resource \"localsubjectaccessreviews\"" => "Have `create` on `localsubjectaccessreviews` granted in the namespace: `check --live` asks by it whether a service account may use a credential spec.",
            "attempting to grant rbac permissions not currently held" => "Run it as a user who has these rights or the verbs `bind` and `escalate`, such as a cluster administrator: users can grant only rights that they have.",
            "cannot * mutatingwebhookconfigurations" => "Install as a cluster administrator: webhook configurations are cluster-scoped. docs/rights.md lists the rights.",
            "cannot * customresourcedefinitions" => "Install as a cluster administrator: the custom resource is cluster-scoped. docs/rights.md lists the rights.",
        };
    NAMESPACE_MISSING: "namespace-missing", Error, "A namespace does not exist.",
        "Create it: `kubectl create namespace NAMESPACE`, or `helm install --create-namespace`. Or correct the name.",
        words: [Message("namespaces \"*\" not found"), Message("namespace \"*\" not found")];
    FIELD_CONFLICT: "field-conflict", Error, "Another manager owns a field of the change, so server-side apply stops.",
        "Repeat it with `--force-conflicts` to use your value, or leave the field to the owner that the message names.",
        words: [
            Message("apply failed with * conflict"),
            Message("conflict occurred while applying"),
            Message("conflict with \"*\" using"),
            Message("conflict with \"*\": ."),
            Message("please review the fields above--they currently have other managers"),
        ],
        remedies: {
            "cabundle" => "Leave `caBundle` to the webhook, or to cert-manager, which writes it: unset `certificates.caBundle`, so that Helm does not apply it. With `--force-conflicts` the API server would trust another CA than the one that signed the certificate.",
        };
    FOREIGN_OBJECT: "foreign-object", Error, "An object that the chart makes exists already, and does not belong to this release.",
        "Add `--take-ownership` to `helm upgrade --install`, with `--force-conflicts` where kubectl made the object. Or delete the object, but never the custom resource: that deletes all credential specs.",
        words: [Message("invalid ownership metadata"), Message("cannot be imported into the current release")];
    RELEASE_TIMEOUT: "release-timeout", Error, "What was installed or rolled out did not become ready in time.",
        "`kubectl gmsa doctor` says why. By hand: `kubectl get pods,events -n gmsa-webhook`. Images, quotas and Secrets are the usual causes.",
        words: [
            General("timed out waiting for the condition"),
            General("retries exhausted"),
            General("client rate limiter wait returned an error: context deadline exceeded"),
            General("not ready. status: inprogress"),
            Message("failed pre-install:*timed out waiting"),
            Message("failed post-install:*timed out waiting"),
            Message("exceeded its progress deadline"),
            Message("progressdeadlineexceeded"),
        ];
    CHART_VALUES: "chart-values", Error, "The chart refuses its values, before anything is changed.",
        "Correct the value that the message names. The README of the chart lists all of them; `helm template` with the same values shows the message without a cluster.",
        words: [
            Message("execution error at (*gmsa"),
            Message("template: gmsa/templates"),
            Message("values don't meet the specifications of the schema"),
            Message("values do not meet the specifications of the schema"),
            Message("template: gmsa-webhook/"),
            Message("template: gmsa-accounts/"),
            Message("failed parsing --set data"),
        ];
    PLUGIN_NOT_FOUND: "plugin-not-found", Error, "kubectl does not find this plugin.",
        "Put the program on the PATH under the name `kubectl-gmsa`, executable: `kubectl plugin list` shows what kubectl finds.",
        words: [Message("unknown command \"gmsa\"")];
    MANIFEST_INVALID: "manifest-invalid", Error, "The API server, or kubectl, does not take a manifest as it is written.",
        "Correct the field or the line that the message names. `kubectl gmsa check -f FILE` finds misspelt fields of GMSA with their lines.",
        words: [
            Message("error validating data"),
            Message("strict decoding error"),
            Message("error converting yaml to json"),
            Message("error parsing * error converting"),
            General("a lowercase rfc 1123"),
        ],
        remedies: {
            "a lowercase rfc 1123" => "Use a lower-case DNS name: letters, digits, `-` and, for credential specs, `.`.",
            "gmsacredentialspec in version" | "validationerror(gmsacredentialspec" | "in gmsacredentialspec.credspec" => "Correct the field of the credential spec that the message names: `kubectl gmsa credspec lint -f FILE` says which is meant.",
            "gmsacredentialspec" => "Write `gmsaCredentialSpecName` into `securityContext.windowsOptions` of the Pod or of a container. `kubectl gmsa check -f FILE` names the line.",
        };
    IMMUTABLE_FIELD: "immutable-field", Error, "The change is to an immutable field.",
        "Delete the object and create it again. GMSA settings of Pods and Jobs are immutable, and so is the selector of a Deployment.",
        words: [Message("field is immutable"), Message("pod updates may not change fields other than")];
    OBJECT_TOO_LARGE: "object-too-large", Error, "An object is larger than the API server, or an annotation of kubectl, can hold.",
        "Apply custom resource definitions with `kubectl apply --server-side`, which writes no annotation.",
        words: [Message("metadata.annotations: too long"), Message("etcdserver: request is too large"), Message("request entity too large: limit is")];
    CERTIFICATE_REQUEST: "certificate-request", Error, "A `CertificateSigningRequest` is not signed, so there is no serving certificate.",
        "Use the chart with `certificates.mode=self-managed` or `cert-manager`: EKS and others sign no serving certificates for webhooks. See docs/certificates.md.",
        words: [
            Message("the signed certificate did not appear on the resource"),
            Message("not permitted to approve requests with signername"),
            Message("for signer \"kubernetes.io/kubelet-serving\""),
            Message("unable to approve csr"),
        ];
    CERT_MANAGER: "cert-manager", Error, "cert-manager is not installed, not ready, or has not issued the certificate.",
        "`kubectl describe certificate,certificaterequest,issuer -n gmsa-webhook` says what is missing. Without cert-manager, set `certificates.mode=self-managed`.",
        words: [
            Message("no matches for kind \"certificate\" in version \"cert-manager.io"),
            Message("no matches for kind \"issuer\" in version \"cert-manager.io"),
            Message("failed calling webhook \"webhook.cert-manager.io\""),
            Message("issuing certificate as secret does not exist"),
            Message("issuing certificate as secret was previously issued by"),
            Message("referenced \"issuer\" not found"),
            Message("referenced \"clusterissuer\" not found"),
            Message("waiting on certificate issuance from order"),
        ];
    TIMED_OUT: "timed-out", Error, "Something did not answer in time; the words do not say what.",
        "Give the whole message. The words before `context deadline exceeded` name it: a webhook (`failed calling webhook`), an image (`failed to pull image`), the API server, or the container runtime.",
        words: [
            Codes(&["ERROR_WINHTTP_TIMEOUT"]),
        ];
    NAME_UNKNOWN: "name-unknown", Error, "A name is not known in DNS.",
        "Query it where it failed: `nslookup NAME` in the Pod or on the node. For names of the domain, the DNS of the cluster must forward the domain: docs/windows-pods.md.",
        words: [
            Codes(&["WSAHOST_NOT_FOUND", "ERROR_WINHTTP_NAME_NOT_RESOLVED"]),
        ];
    CONNECTION_FAILED: "connection-failed", Error, "A connection was refused or ended; the words do not say by whom.",
        "Give the whole message. `connection refused` means that nothing listens at the port. `connection reset` and `EOF` mean that the peer or a device in between closed it.",
        words: [General("tcp connect to *failed"), General("tcptestsucceeded : false"),
            Message("get-wmiobject : the rpc server is unavailable"), Message("get-ciminstance : the rpc server is unavailable"), Message("wmic*the rpc server is unavailable"),
            Codes(&[
                "ERROR_NETNAME_DELETED", "ERROR_CONNECTION_REFUSED", "ERROR_NETWORK_UNREACHABLE", "ERROR_HOST_UNREACHABLE",
                "WSAENETUNREACH", "WSAECONNRESET", "WSAECONNREFUSED", "WSAEHOSTUNREACH", "ERROR_WINHTTP_CANNOT_CONNECT",
            ])],
        remedies: {
            "rpc server is unavailable" => "WMI calls the other server at TCP 135 and at a port that it names (49152-65535): let the Pod network reach both, and let the firewall of that server allow WMI. Its DNS name must lead to it.",
        };
} }

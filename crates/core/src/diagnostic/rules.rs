//! The table of rules: docs/rules.md is made from it, and every diagnostic belongs to one of them.
//!
//! A new rule is:
//! - an entry in [`RULES`];
//! - the function that finds a breach: in `credspec/lint.rs` and `credspec/lint/`, `account/lint.rs` or `admission/advice.rs`
//!   of this crate, in `manifests/` of `gmsa-cluster`, in `lint.rs` of `gmsa-directory`, in `check/`, `doctor/` or `verify/` of `kubectl gmsa`, or in
//!   `tls/inspect.rs` of the server;
//! - a line in `docs/rules.md`, by `UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`.

use std::fmt::Write as _;

use super::Severity::{self, Error, Note, Warning};

/// Something that must or should hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name in output: lower-case words joined by hyphens. It never changes.
    pub id: &'static str,
    pub severity: Severity,
    /// What is wrong where it is broken: one sentence.
    pub title: &'static str,
    pub remedy: &'static str,
}

/// The page that explains the rules, from the root of the repository.
pub const PAGE: &str = "docs/rules.md";

impl Rule {
    /// The anchor of the rule on [`PAGE`].
    pub fn page(&self) -> String {
        format!("{PAGE}#{}", self.id)
    }
}

macro_rules! rules {
    ($($group:literal { $($name:ident: $id:literal, $severity:ident, $title:literal, $remedy:literal;)* })*) => {
        $($(
            #[doc = $title]
            pub static $name: Rule = Rule { id: $id, severity: $severity, title: $title, remedy: $remedy };
        )*)*

        /// All rules, in groups with a heading, as the page shows them.
        pub static RULES: &[(&str, &[&Rule])] = &[$(($group, &[$(&$name),*])),*];
    };
}

rules! {
    "Files" {
        UNREADABLE: "unreadable", Error, "A file, or a document in it, cannot be read.",
            "Correct the syntax on the line that the message names. A template must be rendered first.";
        NOT_KUBERNETES: "not-kubernetes", Note, "A document has neither `apiVersion` nor `kind`, so it is skipped.",
            "Nothing, if it is not meant for Kubernetes; otherwise add both.";
        REFUSED_OBJECT: "refused-object", Error, "The API server would refuse a credential spec, role or binding, so it has no effect.",
            "Correct the field that the message names.";
        NOT_A_POD: "not-a-pod", Error, "The API server would refuse the Pod, or the Pod template.",
            "Correct the field that the message names.";
    }
    "Credential specs" {
        OBJECT: "object", Error, "The credential spec is not an object.",
            "Make a new one with `kubectl gmsa credspec new`.";
        API_VERSION: "api-version", Warning, "The credential spec uses a deprecated version.",
            "Write `apiVersion: windows.k8s.io/v1`.";
        NAME: "name", Error, "The credential spec has no name, or one that Kubernetes refuses.",
            "Use a lower-case DNS name.";
        CREDSPEC: "credspec", Error, "The credential spec has no `credspec` object.",
            "Make a new one with `kubectl gmsa credspec new`.";
        SIZE: "size", Error, "The contents are longer than a Pod may carry (64 KiB).",
            "List fewer accounts, or use a shorter `PluginInput`.";
        UNKNOWN_KEY: "unknown-key", Warning, "A field is not one of a credential spec; the API server drops it.",
            "Correct its spelling or remove it.";
        CMS_PLUGINS: "cms-plugins", Error, "`CmsPlugins` does not enable Active Directory.",
            "Write `CmsPlugins: [ActiveDirectory]`.";
        SECTION: "section", Error, "`DomainJoinConfig` or `ActiveDirectoryConfig` is missing.",
            "Make a new credential spec with `kubectl gmsa credspec new`.";
        SID: "sid", Error, "`Sid` is not the SID of the domain.",
            "Take it from `(Get-ADDomain).DomainSID.Value`.";
        GUID: "guid", Error, "`Guid` is not the GUID of the domain.",
            "Take it from `(Get-ADDomain).ObjectGUID`, without braces.";
        ACCOUNT: "account", Error, "An account is not written as its SAM name alone.",
            "Write the SAM name without `$` and without the domain.";
        DNS_NAME: "dns-name", Error, "`DnsName` is not the DNS name of the domain.",
            "Take it from `(Get-ADDomain).DNSRoot`.";
        DNS_TREE_NAME: "dns-tree-name", Error, "`DnsTreeName` is not the DNS name of the root of the forest.",
            "Take it from `(Get-ADDomain).Forest`.";
        NETBIOS_NAME: "netbios-name", Error, "`NetBiosName` is not the NetBIOS name of the domain.",
            "Take it from `(Get-ADDomain).NetBIOSName`.";
        ACCOUNTS: "accounts", Error, "`GroupManagedServiceAccounts` does not list the account under both names of the domain.",
            "List it twice: with the DNS name and with the NetBIOS name of the domain as `Scope`.";
        PLUGIN: "plugin", Error, "`HostAccountConfig` is not an object.",
            "Give it `PluginGUID`, `PluginInput` and `PortableCcgVersion`, or remove it.";
        PLUGIN_VERSION: "plugin-version", Error, "`PortableCcgVersion` is not the string `\"1\"`.",
            "Write `PortableCcgVersion: \"1\"`.";
        PLUGIN_GUID: "plugin-guid", Error, "`PluginGUID` is not a GUID in braces.",
            "Take it from the maker of the plugin, and keep the braces.";
        PLUGIN_INPUT: "plugin-input", Error, "`PluginInput` is missing, is not a string, is not what its plugin takes, or seems to hold a password.",
            "Write one string, as the maker of the plugin documents it. Keep passwords in the vault of the plugin.";
    }
    "Accounts in the directory" {
        ACCOUNT_INCOMPLETE: "account-incomplete", Warning, "The account was printed without the properties that are checked.",
            "Print it with `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`.";
        ACCOUNT_NAME: "account-name", Error, "The SAM name of the account is longer than 15 characters.",
            "Make an account with a shorter name.";
        ACCOUNT_CLASS: "account-class", Error, "The account is not a group Managed Service Account.",
            "Make one with `New-ADServiceAccount`.";
        ACCOUNT_DISABLED: "account-disabled", Error, "The account is disabled.",
            "Enable it: `Set-ADServiceAccount NAME -Enabled $true`.";
        ACCOUNT_HOSTS: "account-hosts", Error, "No host may retrieve the password of the account.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin logs on as.";
        ACCOUNT_SPN: "account-spn", Warning, "The account lacks the service principal name of a service that it runs.",
            "Add it: `Set-ADServiceAccount NAME -ServicePrincipalNames @{Add='host/HOST'}`. An account that only calls other services needs none.";
        ACCOUNT_ENCRYPTION: "account-encryption", Warning, "The account supports no AES encryption of Kerberos tickets, or does not say what it supports.",
            "Set `-KerberosEncryptionType AES128,AES256`. Domain controllers are being moved off RC4 (Microsoft KB5073381).";
        ACCOUNT_TRUST: "account-trust", Warning, "`userAccountControl` lacks the flag `WORKSTATION_TRUST_ACCOUNT`.",
            "Set the flag; the output shows the command.";
        ACCOUNT_DIFFERS: "account-differs", Error, "The account and the credential spec name different accounts or domains.",
            "Correct the credential spec, or use the account that it names.";
        ACCOUNT_HOSTS_EMPTY: "account-hosts-empty", Warning, "A group that may retrieve the password of the account has no members.",
            "Add the nodes, or the user that the plugin logs on as: `Add-ADGroupMember`. A node learns of its groups when it restarts.";
        ACCOUNT_HOSTS_ORPHANED: "account-hosts-orphaned", Warning, "A principal that may retrieve the password of the account no longer exists.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` again, to a group that exists.";
        ACCOUNT_HOSTS_UNKNOWN: "account-hosts-unknown", Warning, "An entry of the list of those who may retrieve the password of the account is not understood.",
            "Look at it: `(Get-ADServiceAccount NAME -Properties msDS-GroupMSAMembership).'msDS-GroupMSAMembership'.Access`. `Set-ADServiceAccount NAME -PrincipalsAllowedToRetrieveManagedPassword GROUP` writes the list again, without it.";
        ACCOUNT_HOSTS_WIDE: "account-hosts-wide", Warning, "Every user of the domain may retrieve the password of the account.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin logs on as, and nobody else.";
        ACCOUNT_SPN_DUPLICATE: "account-spn-duplicate", Error, "Several accounts have the same service principal name.",
            "Remove it from those that do not serve it: `setspn -X -F` lists them, `setspn -D NAME ACCOUNT` removes one.";
        ACCOUNT_PASSWORD: "account-password", Error, "The user may not retrieve the password of the account, or the domain makes none.",
            "Make the user a member of a group in `PrincipalsAllowedToRetrieveManagedPassword`.";
        KDS_ROOT_KEY: "kds-root-key", Error, "The forest has no KDS root key that can be used, so no group Managed Service Account has a password.",
            "`Add-KdsRootKey -EffectiveImmediately`, once per forest, then wait 10 hours.";
        DIRECTORY_LEVEL: "directory-level", Error, "The domain controller is older than Windows Server 2012, the first that makes passwords of group Managed Service Accounts.",
            "Ask a newer one, and have one in each domain.";
        DIRECTORY_CLOCK: "directory-clock", Warning, "The clocks of this machine and of the domain controller differ by more than the 5 minutes that Kerberos allows.",
            "Compare both with a time server. Where the one of the domain controller is wrong, `w32tm /resync` on it.";
    }
    "Denials" {
        UNEXPECTED_KIND: "unexpected-kind", Error, "A webhook is registered for a kind that it does not review.",
            "Install the webhook configurations of the chart.";
        CREDENTIAL_SPEC_WRONG: "credential-spec-wrong", Error, "A credential spec cannot work, and the webhook is configured to refuse such.",
            "Correct it: `kubectl gmsa credspec lint` lists what is wrong.";
        UNEXPECTED_OPERATION: "unexpected-operation", Error, "A webhook is registered for an operation that it does not review.",
            "Install the webhook configurations of the chart.";
        NO_OBJECT: "no-object", Error, "An AdmissionReview has no object.",
            "Send reviews from an API server only.";
        INVALID_NAMESPACE: "invalid-namespace", Error, "An AdmissionReview has no valid namespace.",
            "Use the name of a namespace: a DNS label.";
        INVALID_SPEC_NAME: "invalid-spec-name", Error, "`gmsaCredentialSpecName` is not a lower-case DNS name, so no credential spec can have it.",
            "Correct the name.";
        INVALID_SERVICE_ACCOUNT: "invalid-service-account", Error, "`serviceAccountName` is not a lower-case DNS name.",
            "Correct the name.";
        TOO_MANY_SLOTS: "too-many-slots", Error, "A Pod has more containers than are allowed.",
            "Split the Pod.";
        TOO_MANY_SPECS: "too-many-specs", Error, "A Pod names more credential specs than are allowed.",
            "Split the Pod.";
        PATCH_TOO_LARGE: "patch-too-large", Error, "The contents would make the Pod too large.",
            "Use fewer containers, or name the credential spec on the Pod instead of on each container.";
        SPEC_MISSING: "spec-missing", Error, "The credential spec does not exist.",
            "Create it with `kubectl gmsa credspec new`, or use the name of one that exists.";
        SPEC_UNUSABLE: "spec-unusable", Error, "The credential spec has no `credspec` object.",
            "Make a new one with `kubectl gmsa credspec new`.";
        SPEC_UNREADABLE: "spec-unreadable", Error, "The credential spec could not be read.",
            "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.";
        CONTENTS_WITHOUT_NAME: "contents-without-name", Error, "`gmsaCredentialSpec` is set without `gmsaCredentialSpecName`, so it cannot be checked.",
            "Set the name instead of the contents.";
        NOT_AUTHORIZED: "not-authorized", Error, "The service account of the Pod may not use the credential spec.",
            "Grant it with `kubectl gmsa grant`.";
        AUTHORIZATION_FAILED: "authorization-failed", Error, "The permission to use the credential spec could not be checked.",
            "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.";
        CONTENTS_DIFFER: "contents-differ", Error, "`gmsaCredentialSpec` differs from the credential spec.",
            "Remove `gmsaCredentialSpec`: the webhook fills it in.";
        NAME_WITHOUT_CONTENTS: "name-without-contents", Error, "A Pod names a credential spec and does not carry its contents.",
            "Run the mutating webhook after every webhook that adds the name; on a Linux Pod, remove the name.";
        MODIFIED: "modified", Error, "An update changes the GMSA settings of an existing Pod.",
            "Delete the Pod and create it with the new settings.";
    }
    "Pods" {
        LINUX_NODE: "linux-node", Warning, "A Pod that uses GMSA may be scheduled to a Linux node.",
            "Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.";
        HOST_PROCESS: "host-process", Warning, "A hostProcess container acts as the account of the host, not as the gMSA.",
            "Remove `hostProcess`, or the credential spec.";
        RUN_AS_USER: "run-as-user", Warning, "Only SYSTEM and NETWORK SERVICE act as the gMSA on the network.",
            "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or remove it.";
        LINUX_ONLY: "linux-only", Warning, "A Pod that uses GMSA sets a field that Windows does not have.",
            "Remove the field. docs/windows-placement.md lists these fields, and what happens instead.";
        NANO_SERVER: "nano-server", Warning, "A container on Nano Server runs as `ContainerUser`, with which Kerberos does not work.",
            "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or use an image on Server Core.";
        SHARED_HOSTNAME: "shared-hostname", Warning, "Several Pods with one account have the same host name, or the same first 15 characters of it.",
            "Remove `hostname`, and have the webhook give random host names: by `randomHostname` in the chart, or by the annotation `gmsa-webhook/random-hostname: \"true\"` of the \
             Pod template. A StatefulSet sets the host names of its Pods itself: give it a name of at most 12 characters.";
        HYPER_V: "hyper-v", Warning, "The runtime class of a Pod isolates its containers by Hyper-V, which Kubernetes does not support for Windows.",
            "Use a runtime class with process isolation, and nodes of the build of the image.";
        SERVICE_ACCOUNT_MISSING: "service-account-missing", Error, "The service account of a Pod does not exist.",
            "Create it, or correct `serviceAccountName`.";
        RUNTIME_CLASS_MISSING: "runtime-class-missing", Error, "The runtime class of a Pod does not exist, so the API server refuses the Pod.",
            "Create it, or correct `runtimeClassName`.";
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
            "Do what the message says: it is that of a quota, of the Pod Security level of the namespace, of a policy, or of another webhook.";
        PODS_MISSING: "pods-missing", Error, "A workload has fewer Pods than it wants.",
            "`kubectl describe` of the workload, and of its ReplicaSet, shows events and conditions.";
        NODE_TAINT: "node-taint", Error, "The Windows nodes that a Pod selects have a taint that it does not tolerate.",
            "Add the toleration to the Pod template, or remove the taint: `kubectl taint nodes NODE KEY-`.";
        NOT_SCHEDULED: "not-scheduled", Error, "A Pod is not on a node.",
            "See docs/windows-placement.md.";
        POD_FAILED: "pod-failed", Error, "A Pod has failed: it was evicted, or a container of it ended with an error.",
            "`kubectl describe pod` and `kubectl logs` say why. Its controller creates a new Pod; a Pod without a controller must be created again.";
        NODE_NOT_READY: "node-not-ready", Error, "The node of a Pod is not ready.",
            "`kubectl describe node` says why. Pods with a controller are created on other nodes after five minutes.";
        NOT_STARTED: "not-started", Error, "A container of a Pod does not start.",
            "See docs/troubleshooting.md.";
    }
    "Installation" {
        KUBERNETES_VERSION: "kubernetes-version", Error, "The API server is older than the chart supports, or has no match conditions.",
            "Upgrade the cluster to Kubernetes 1.30 or later.";
        INSTALL_PERMISSIONS: "install-permissions", Error, "You lack a right that the installation needs.",
            "Install as a user who has it, such as a cluster administrator (`--as`, `--context`). docs/install.md lists the rights.";
        NAMESPACE_UNUSABLE: "namespace-unusable", Error, "The namespace of the installation is being deleted.",
            "Wait until it is gone, or install into another one: `--namespace`.";
        CRD_FOREIGN: "crd-foreign", Warning, "The custom resource for credential specs exists, and is not this project's.",
            "Keep it, and install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place.";
        STORED_VERSION: "stored-version", Note, "Credential specs may be stored in a version that is deprecated.",
            "Set `crds.upgrade=true` in the chart, whose Job has each written again and removes the version from `status.storedVersions` of the custom resource; `kubectl gmsa doctor --pre` prints the commands for doing that by hand.";
        WEBHOOK_PRESENT: "webhook-present", Warning, "Another webhook for GMSA is installed.",
            "Upgrade it in place: docs/migrate.md. Of two webhooks, both must admit a Pod.";
        CRD_MISSING: "crd-missing", Error, "The custom resource for credential specs is not installed.",
            "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.";
        CRD_NOT_SERVED: "crd-not-served", Error, "The custom resource for credential specs is not established, or does not serve `v1`.",
            "Apply the CRD of the chart. `kubectl describe crd` shows its conditions.";
        CRD_OUTDATED: "crd-outdated", Warning, "The custom resource for credential specs is older than this release.",
            "Set `crds.upgrade=true` in the chart, or apply its `crds/gmsacredentialspecs.yaml` by server-side apply.";
        WEBHOOK_MISSING: "webhook-missing", Error, "No webhook configuration sends Pods to the webhook.",
            "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.";
        WEBHOOK_DUPLICATE: "webhook-duplicate", Warning, "Webhook configurations of several installations are for GMSA.",
            "All of them must admit a Pod. Keep one, and uninstall the others: `helm uninstall`. The webhook of AKS (`--enable-windows-gmsa`) is none of them: keep it.";
        WEBHOOK_RULES: "webhook-rules", Error, "A webhook configuration does not send all requests that the webhook must review.",
            "Upgrade the chart: its rules contain them.";
        FAILURE_POLICY: "failure-policy", Error, "A webhook configuration lets Pods pass while the webhook is down.",
            "Set `failurePolicy: Fail`.";
        MATCH_CONDITIONS: "match-conditions", Warning, "A webhook configuration sends Pods that do not use GMSA.",
            "Upgrade the chart: its `matchConditions` leave them out.";
        SELECTORS_CHANGED: "selectors-changed", Warning, "The selectors of a webhook configuration were changed after the installation.",
            "Remove the selectors with the `kubectl patch` that `kubectl gmsa doctor` prints, then run `helm upgrade --force-conflicts`, which brings back those of the chart's values. On AKS, the chart's annotation `admissions.enforcer/disabled` keeps the selectors as they are.";
        STATIC_POLICIES: "static-policies", Note, "Users who may change webhook configurations can end the checks of Pods.",
            "On a control plane of your own, load the static policies of the chart, which no user of the API can change: docs/static-policies.md.";
        NAMESPACES_EXCLUDED: "namespaces-excluded", Warning, "The webhook does not review the Pods of a namespace.",
            "Compare the labels of the namespace with the `namespaceSelector` of the webhooks.";
        WEBHOOK_UNREACHABLE: "webhook-unreachable", Error, "The API server cannot call the webhook.",
            "Check its Pods, its Service, the network between, and the `caBundle` against the certificate.";
        WEBHOOK_FAILING: "webhook-failing", Error, "The webhook answers, but it cannot check Pods, because the API server refuses what it asks.",
            "Look at the log of its Pods, which names the call that fails.";
        WEBHOOK_NOT_CALLED: "webhook-not-called", Error, "The API server creates a Pod that uses GMSA without a call of the webhook.",
            "Check whether the namespace is excluded, and whether a webhook configuration sends Pods.";
        NOT_ENFORCED: "not-enforced", Warning, "Denials are not enforced.",
            "End the trial: set `webhooks.enforcement=Enforce` in the chart, or remove the namespace from `webhooks.warnNamespaces`.";
        WEBHOOK_URL: "webhook-url", Warning, "The webhook is called by a URL instead of a Service, so its Pods are not checked.",
            "Use a Service, or check the process at the URL.";
        ENDPOINTS: "endpoints", Error, "The Service of the webhook has no ready endpoint, or only one.",
            "Run at least two replicas: Pods are then admitted while one of them is replaced.";
        WEBHOOK_PERMISSIONS: "webhook-permissions", Error, "The service account of the webhook lacks a permission.",
            "Run `helm upgrade`, which creates the roles and bindings of the chart again. Without Helm, apply the manifest again.";
        SECRET_MISSING: "secret-missing", Error, "A Secret that the Pods of the webhook need does not exist.",
            "Create it again: `helm upgrade` creates that of a self-managed certificate, which the webhook fills in; cert-manager creates its own; yours is in docs/certificates.md.";
        WINDOWS_NODES: "windows-nodes", Warning, "The cluster has no Windows node.",
            "Add one: until then, Pods that use GMSA stay Pending.";
        NOT_CHECKED: "not-checked", Warning, "A part of the cluster could not be checked.",
            "Run the command as a user who may read it (`--as`, `--context`).";
    }
    "DNS of the cluster" {
        DNS_ZONE: "dns-zone", Note, "No zone of the DNS of the cluster forwards the domain of a credential spec.",
            "`kubectl gmsa dns` prints the change. It is not needed where the servers that get all other questions know the domain. See docs/dns.md.";
        DNS_SERVERS: "dns-servers", Warning, "Questions about a domain are forwarded to a single server.",
            "Add a second DNS server of the domain to the `forward` of its zone: with one server, no Pod can log on while that server restarts.";
        DNS_RESOLVERS: "dns-resolvers", Error, "Questions about a domain are forwarded to resolvers that do not know it.",
            "Forward the domain only to its own DNS servers: CoreDNS asks a random one of the list, and takes the answer that a name does not exist from any of them.";
        DNS_CONFIGURATION: "dns-configuration", Error, "The configuration of the DNS of the cluster cannot be read as such.",
            "Correct it: CoreDNS keeps its old configuration while it runs, and does not start again.";
    }
    "Identity in a container" {
        EXEC_REFUSED: "exec-refused", Error, "The API server does not run a command in the container.",
            "Use a user who may create `pods/exec` in the namespace (`--as`, `--context`), and a node that the API server reaches.";
        NO_ANSWER: "no-answer", Error, "A command in the container did not end in time: a firewall drops its packets, or a server does not answer.",
            "Let the Pod network reach the domain controllers: TCP and UDP 53, 88 and 389, TCP 135, 445 and the dynamic ports. `--timeout` waits longer.";
        NO_CREDENTIALS: "no-credentials", Error, "Windows gave the container no credential spec, or no logon session of the account.",
            "Create the Pod again. If that does not help, the log Microsoft-Windows-Containers-CCG/Admin of the node says why. See docs/troubleshooting.md.";
        DOMAIN_DNS: "domain-dns", Error, "The container finds no domain controller in DNS.",
            "Forward the domain to its DNS servers in the DNS of the cluster (CoreDNS: a stub domain), and let UDP 53 through.";
        DOMAIN_DNS_TCP: "domain-dns-tcp", Error, "The container finds the domain controllers over UDP, but not over TCP.",
            "Let TCP 53 through: Windows repeats long answers over TCP.";
        NO_DOMAIN_CONTROLLER: "no-domain-controller", Error, "No domain controller answers the container.",
            "Let the Pod network reach the domain controllers (TCP and UDP 88 and 389, TCP 135, 445 and the dynamic ports), without NAT.";
        NO_SECURE_CHANNEL: "no-secure-channel", Error, "The container has not logged on to the domain.",
            "Run `nltest /sc_reset:DOMAIN` in it. If that helps, its network came up after its logon; otherwise compare the credential spec with the domain: `kubectl gmsa credspec lint`, `kubectl gmsa account lint`.";
        LOGON_DENIED: "logon-denied", Error, "The domain denies the logon of the account.",
            "Run `Test-ADServiceAccount NAME` on the node: the node, or the user of the plugin, must be able to retrieve the password. Status 5 of `nltest /sc_verify` says so to administrators alone; to NETWORK SERVICE it says nothing of the account.";
        ACCOUNT_LOCKED: "account-locked", Error, "The account is locked out.",
            "Unlock it: `Unlock-ADAccount -Identity 'NAME$'`. Its password is made by the domain controllers: somebody tries to guess it, or a node uses an old one.";
        ACCOUNT_EXPIRED: "account-expired", Error, "The account has expired.",
            "Remove the date: `Clear-ADAccountExpiration -Identity 'NAME$'`.";
        ACCOUNT_UNKNOWN: "account-unknown", Error, "The domain does not know the account.",
            "Correct `MachineAccountName` in the credential spec, or create the account.";
        TRUST_FAILED: "trust-failed", Error, "The domain controller does not trust the container.",
            "Compare `Sid`, `Guid` and `MachineAccountName` of the credential spec with the domain: `kubectl gmsa account lint --credspec`. Where several Pods with one account fail by turns, set `randomHostname` in the chart.";
        CLOCK_SKEW: "clock-skew", Error, "The clocks of the node and of the domain controller differ too much for Kerberos.",
            "Correct the clock of the node: `w32tm /query /status`, `w32tm /resync`. Kerberos allows 5 minutes.";
        PRINCIPAL_UNKNOWN: "principal-unknown", Error, "The domain does not know the service that a ticket is asked for, or knows it twice.",
            "Register the service principal name of the service, once only: `setspn -Q NAME`, `setspn -X`.";
        TICKET_ENCRYPTION: "ticket-encryption", Error, "The account and the domain controller have no encryption type in common.",
            "Set `-KerberosEncryptionType AES128,AES256` on the account, and compare with the policy of the domain controllers.";
        OTHER_DOMAIN: "other-domain", Error, "The container is in another domain than its credential spec says.",
            "Create the Pod again. If it is a hostProcess Pod, it has the domain of its node: remove `hostProcess`.";
        OTHER_ACCOUNT: "other-account", Error, "The tickets in the container are not those of the account.",
            "Create the Pod again. If it is a hostProcess Pod, it has the tickets of its node: remove `hostProcess`.";
        UNKNOWN_STATUS: "unknown-status", Error, "A command in the container failed with a status that is not known here.",
            "Run the command by hand: `kubectl exec`. `net helpmsg CODE` explains a decimal code.";
    }
    "Containers that do not start" {
        CONTENTS_REJECTED: "contents-rejected", Error, "The node cannot parse the contents of the credential spec.",
            "Run `kubectl gmsa credspec lint` on the credential spec, correct it, and create the Pod again.";
        PLUGIN_NOT_STARTED: "plugin-not-started", Error, "The node cannot start the plugin that the credential spec names.",
            "Register the plugin on the node: its GUID must be a key of `HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses`, and its COM server must start as the user that it is registered with.";
        PLUGIN_FAILED: "plugin-failed", Error, "The plugin gave the node no user to retrieve the password of the account with.",
            "Correct `PluginInput` of the credential spec, and let the node read the secret that it names: its managed identity or role needs that right.";
        PASSWORD_NOT_RETRIEVED: "password-not-retrieved", Error, "The node could not retrieve the password of the account from the domain.",
            "Add the user of the plugin, or the node where there is no plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and let the node reach a domain controller.";
        NODE_CREDENTIALS: "node-credentials", Error, "The node could not set up the credentials of the container.",
            "The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.";
        NODE_NO_DOMAIN_CONTROLLER: "node-no-domain-controller", Error, "The node finds no domain controller, or reaches none.",
            "Run `nltest /dsgetdc:DOMAIN` on the node: it must name a domain controller. Let the node resolve the domain by its DNS servers, and reach TCP and UDP 53, 88, 389 and 464, TCP 135, 445 and the dynamic ports.";
        START_LOGON: "start-logon", Error, "Windows could not log on the user of a container.",
            "Compare `runAsUserName` with the users of the image. If it is right, run `Test-ADServiceAccount NAME` on the node: it must say True.";
        IMAGE_MISMATCH: "image-mismatch", Error, "The build of Windows on the node does not run the image.",
            "Use the tag of the image for the build of the node, or a node for the image. See docs/windows-placement.md.";
        START_EXITED: "start-exited", Error, "The container, or the virtual machine around it, exited while Windows started it.",
            "Read the log Microsoft-Windows-Hyper-V-Compute-Admin of the node. Too little memory on the node ends so too.";
        START_COMMAND: "start-command", Error, "The command of a container is not in its image.",
            "Correct `command`, or its path in the image.";
        COMPUTE_SERVICE: "compute-service", Error, "The service of Windows that runs containers does not answer, or is not there.",
            "Restart the service `vmcompute` on the node, or the node: drain it before.";
    }
    "Certificates" {
        CA_BUNDLE: "ca-bundle", Error, "A webhook configuration has no usable `caBundle`.",
            "The CA injector of cert-manager, or the webhook itself, must write it. See docs/certificates.md.";
        CERTIFICATE_EXPIRY: "certificate-expiry", Error, "A certificate has expired, or expires soon.",
            "Renew it. See docs/certificates.md.";
        CERTIFICATE_UNUSABLE: "certificate-unusable", Error, "The serving certificate cannot be read, is for no host, or is not valid yet.",
            "Issue another one: X.509 in PEM, with the names of the Service as subject alternative names. See docs/certificates.md.";
        PRIVATE_KEY: "private-key", Error, "The private key cannot be used, or is not the key of the serving certificate.",
            "Use the key that was made with the certificate: in PEM, without a password.";
        CERTIFICATE_NOT_TRUSTED: "certificate-not-trusted", Error, "The API server, or a client with the given CA, does not accept the serving certificate.",
            "Put the CA that signed it into every `caBundle`, and issue it for the name by which the API server calls.";
    }
}

/// The page of all rules, as Markdown.
pub fn page() -> String {
    let mut page = "# Rules\n\nMade by `kubectl-gmsa rules`: do not edit.\n\nWhat `kubectl gmsa` (`check`, `credspec lint`, `account lint`, `doctor`, `verify`, \
         `explain`, `outdated`), the webhook's warnings and `gmsa-webhook certs inspect` look for. Their output contains \
         the name of the rule, which never changes; a warning of the webhook ends with it, in brackets.\n"
        .to_owned();
    for (group, rules) in RULES {
        // Writing into a String cannot fail.
        let _ = write!(page, "\n## {group}\n");
        for Rule { id, severity, title, remedy } in *rules {
            let _ = write!(page, "\n### {id}\n\n{} ({})\n\n{remedy}\n", title, severity.as_str());
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_rules_under_denials_are_those_of_the_denials() {
        let (_, rules) = RULES.iter().find(|(group, _)| *group == "Denials").unwrap();
        assert_eq!(**rules, crate::admission::Denial::RULES);
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_two_sentences() {
        let rules: Vec<_> = RULES.iter().flat_map(|(_, rules)| rules.iter()).collect();
        assert_eq!(rules.iter().map(|rule| rule.id).collect::<BTreeSet<_>>().len(), rules.len());
        for rule in rules {
            assert!(rule.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", rule.id);
            assert!(rule.title.ends_with('.') && rule.remedy.ends_with('.'), "{}", rule.id);
        }
    }

    #[test]
    fn the_page_has_one_anchor_for_each_rule() {
        let page = page();
        let headings = page.lines().filter(|line| line.starts_with('#'));
        let mut anchors: Vec<_> =
            headings.map(|line| line.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-")).collect();
        for (_, rules) in RULES {
            for rule in *rules {
                assert_eq!(anchors.iter().filter(|anchor| *anchor == rule.id).count(), 1, "{}", rule.id);
                assert_eq!(rule.page(), format!("docs/rules.md#{}", rule.id));
            }
        }
        anchors.sort();
        let count = anchors.len();
        anchors.dedup();
        assert_eq!(anchors.len(), count, "two headings with the same anchor");
    }
}

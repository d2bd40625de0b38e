//! Installation.

use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::Severity,
};

use super::{
    Family, Fix, Names, Rule, RuleEntry,
    Words::{General, Message, Refusal},
    family,
    of_core::what_is_asked,
    of_words,
};

family! { "Installation" {
    KUBERNETES_VERSION: "kubernetes-version", Error, "The API server is older than the chart supports, or has no match conditions.",
        "Upgrade the cluster: the chart needs Kubernetes 1.25 or later, the chart of tickets 1.29. From 1.28 on there are match conditions, from 1.30 on the guard.",
        words: [Message("chart requires kubeversion")];
    INSTALL_PERMISSIONS: "install-permissions", Error, "You lack a right that the installation needs.",
        "Install as a user who has it, such as a cluster administrator (`--as`, `--context`). docs/rights.md lists the rights.";
    NAMESPACE_UNUSABLE: "namespace-unusable", Error, "A namespace is being deleted, so nothing is created in it.",
        "Use another namespace (`--namespace`), or wait until it is gone and create it again. `kubectl get namespace NAMESPACE -o yaml` says what it waits for.",
        words: [Refusal("because it is being terminated"), Refusal("namespace * is being terminated"), Message("object is being deleted: namespaces \"")];
    CRD_FOREIGN: "crd-foreign", Warning, "The custom resource for credential specs exists, and is not this project's.",
        "Keep it, and install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place.";
    STORED_VERSION: "stored-version", Note, "Credential specs may be stored in a version that is deprecated.",
        "Set `crds.upgrade=true` in the chart, whose Job has each written again and removes the version from `status.storedVersions` of the custom resource; `kubectl gmsa doctor --pre` prints the commands for doing that by hand.";
    WEBHOOK_PRESENT: "webhook-present", Warning, "Another webhook for GMSA is installed.",
        "Upgrade it in place: docs/migrate.md. With two webhooks, both must admit a Pod.";
    CRD_MISSING: "crd-missing", Error, "The custom resource for credential specs is not installed.",
        "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`. It brings the CRD GMSACredentialSpec.",
        words: [
            Message("no matches for kind \"gmsacredentialspec\""),
            Message("doesn't have a resource type \"gmsacredentialspec"),
            Message("customresourcedefinition of gmsacredentialspec is not installed"),
            Message("the customresourcedefinition is not installed"),
            Message("customresourcedefinitions.apiextensions.k8s.io \"gmsacredentialspecs.windows.k8s.io\" not found"),
            Message("unable to recognize*gmsacredentialspec"),
            Message("could not find windows.k8s.io/gmsacredentialspec for requested resource"),
            Message("could not find the requested resource*gmsacredentialspecs"),
            Message("gmsacredentialspec: the server could not find the requested resource"),
        ],
        remedies: {
            "windows.k8s.io/v1alpha1" => "Install the chart, which brings the CRD: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`. Then write `apiVersion: windows.k8s.io/v1`: newer clusters do not have v1alpha1.",
        };
    CRD_NOT_SERVED: "crd-not-served", Error, "The custom resource for credential specs is not established, or does not serve `v1`.",
        "Apply the CRD of the chart. `kubectl describe crd` shows its conditions.";
    CRD_OUTDATED: "crd-outdated", Warning, "The custom resource for credential specs is older than this release.",
        "Set `crds.upgrade=true` in the chart, or run `helm show crds CHART | kubectl apply --server-side --force-conflicts -f -`.";
    WEBHOOK_DUPLICATE: "webhook-duplicate", Warning, "Webhook configurations of several installations are for GMSA.",
        "All of them must admit a Pod. Keep one, and uninstall the others: `helm uninstall`. The webhook of AKS (`--enable-windows-gmsa`) does not count: keep it.";
    WEBHOOK_RULES: "webhook-rules", Error, "A webhook configuration does not send all requests that the webhook must review.",
        "Upgrade the chart: its rules contain them.";
    FAILURE_POLICY: "failure-policy", Error, "A webhook configuration lets Pods pass while the webhook is down.",
        "Set `failurePolicy: Fail`.",
        words: [Message("GmsaWebhookFailOpen")],
        remedies: {
            "GmsaWebhookFailOpen" => "Bring the webhook back: look at its Pods and its Service. Then compare the contents of the Pods that `kube-system` and its own namespace got meanwhile: `kubectl gmsa check -A`. From Kubernetes 1.28 on no Pod is admitted unchecked.",
        };
    MATCH_CONDITIONS: "match-conditions", Warning, "A webhook configuration sends Pods that do not use GMSA.",
        "Upgrade the chart: its `matchConditions` leave them out.";
    SELECTORS_CHANGED: "selectors-changed", Warning, "The selectors of a webhook configuration were changed after the installation.",
        "Remove the selectors with the `kubectl patch` that `kubectl gmsa doctor` prints, then run `helm upgrade` (Helm 4: with `--force-conflicts`), which restores those of the chart's values. On AKS, the chart's annotation `admissions.enforcer/disabled` keeps the selectors as they are.";
    STATIC_POLICIES: "static-policies", Note, "Users who may change webhook configurations can end the checks of Pods.",
        "On a control plane of your own, load the static policies of the chart, which no user of the API can change: docs/static-policies.md.";
    NETWORK_OPEN: "network-open", Note, "Every Pod of the cluster can connect to the webhook.",
        "Set `networkPolicy.enabled=true` in the chart, and the addresses of the API servers as `networkPolicy.apiServerCidrs`.";
    NAMESPACES_EXCLUDED: "namespaces-excluded", Warning, "The webhook does not review the Pods of a namespace.",
        "Compare the labels of the namespace with the `namespaceSelector` of the webhooks.";
    WEBHOOK_UNREACHABLE: "webhook-unreachable", Error, "The API server cannot call the webhook.",
        "Check its Pods, its Service, the network between, and the `caBundle` against the certificate.",
        words: [
            Refusal("failed calling webhook"),
            Refusal("failed to call webhook"),
            Message("unknown authority*gmsa-webhook-ca"),
            Message("\"mutatingadmissionwebhook\" failed to complete mutation in"),
            Message("webhook\" failed to complete validation in"),
            Message("GmsaWebhookCallsFail"),
        ],
        remedies: {
            "webhook\" failed to complete" => "An admission webhook took the time of the whole request, and the message does not name it: `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations` lists them. `kubectl gmsa doctor` calls the GMSA webhook.",
            "proxyconnect" => "The API server calls through a proxy: add `.svc` and the address range of Services to its `NO_PROXY`.",
            "webhook.cert-manager.io" => "cert-manager itself is not ready: wait for its webhook (`kubectl get pods -n cert-manager`), then try again.",
            "no endpoints available" => "The Service of the webhook has no ready endpoint, because no Pod of it is ready: `kubectl get pods -n gmsa-webhook` and `kubectl gmsa doctor` say why.",
            "x509*certificate has expired" => "The certificate of the webhook has expired: `kubectl gmsa doctor` shows it, and docs/certificates.md how each mode renews it. A wrong clock of the API server looks the same.",
            "x509*unknown authority" => "The `caBundle` of the webhook configuration is not of the CA that signed the certificate: `kubectl gmsa doctor` compares them. The webhook itself, cert-manager or `helm upgrade` writes it, by `certificates.mode`.",
            "x509*use sans instead" | "x509*legacy common name" => "The certificate of the webhook has no subject alternative name: issue it with `NAME.NAMESPACE.svc` among them. See docs/certificates.md.",
            "expected webhook response" => "What answers is not this webhook, or a proxy before it: look at the Service that the configuration names, and at its Pods.",
            "x509*is valid for" => "The certificate of the webhook is for another name: issue it for `NAME.NAMESPACE.svc`, the name of its Service.",
            "x509" => "The API server does not take the certificate of the webhook: `kubectl gmsa doctor` compares it with the `caBundle`.",
            "certificate verify failed" => "The `caBundle` of the webhook configuration is not of the CA that signed the certificate: `kubectl gmsa doctor` compares them.",
            "connection refused" => "Nothing listens at that address: look at the Pods of the webhook (`kubectl get pods -n gmsa-webhook`), and at the port of its Service. `kubectl gmsa doctor` checks both.",
            "no route to host" => "The API server does not reach the Pods of the webhook: let the firewall between control plane and nodes, and NetworkPolicies, through to its port. `kubectl gmsa doctor` calls it.",
            "deadline exceeded" => "The webhook did not answer in time: a firewall between control plane and nodes (private GKE, EKS with another CNI) or a NetworkPolicy drops the packets, or its Pods are overloaded. `kubectl gmsa doctor` tells.",
            "i/o timeout" => "No packet came back: a firewall between control plane and nodes (private GKE, EKS with another CNI), or a NetworkPolicy, drops them. Where the Pod network is not reachable, set `hostNetwork` in the chart.",
            "tls handshake timeout" => "No packet came back: a firewall between control plane and nodes, or a NetworkPolicy, drops them. `kubectl gmsa doctor` calls it.",
            "no agent available" => "The tunnel between control plane and nodes (konnectivity) has no agent: look at its Pods in `kube-system`.",
            "client.timeout" => "The webhook did not answer in time: a firewall between control plane and nodes or a NetworkPolicy drops the packets, or its Pods are overloaded. `kubectl gmsa doctor` tells.",
            "address is not allowed" => "The control plane does not reach Pods (EKS with another CNI): set `hostNetwork` in the chart.",
            "service \"*\" not found" => "The Service of the webhook is gone, and its configuration remains: install the chart again, or end its checks with `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found NAME zz-NAME` and `kubectl delete validatingadmissionpolicybinding --ignore-not-found NAME-guard NAME-guard-trial` (Kubernetes 1.30 and later).",
            "no such host" => "The API server cannot resolve the name of the webhook, or its Service is gone: `kubectl gmsa doctor`.",
            ": eof" | "connection reset" => "The connection ended without an answer: a proxy or service mesh on the way ends it, or the Pod was stopped. Exclude the namespace of the webhook from the mesh, and look at the log of its Pods.",
            "http response to https client" => "What answers at the port speaks no TLS: a service mesh or a wrong `targetPort`. Exclude the namespace of the webhook from the mesh.",
            "could not find the requested resource" => "What answers has no such path: the `path` in the configuration, or the Service behind it, is another webhook's.",
        },
        fix: unreachable;
    CA_BUNDLE_CONTESTED: "ca-bundle-contested", Warning, "Another writer removes the CA from a webhook configuration, and Pods are refused until it is written again.",
        "The log of the webhook names the field manager. Have it leave `caBundle` alone: remove the annotation `cert-manager.io/inject-ca-from` where the webhook manages its own certificate, or have the GitOps tool ignore the field.",
        words: [
            Message("another writer removes the certificate authorities from the webhook configuration"),
            Message("GmsaWebhookCaBundleContested"),
        ];
    REPLICAS_DISAGREE: "replicas-disagree", Warning, "Replicas replace each other's certificate in the Secret that they share.",
        "Give all replicas the same version, `--self-managed-service` and time. The log of the webhook says what the other replica has. Two releases must not share a Secret.",
        words: [Message("another replica replaces what this one writes into the secret"), Message("GmsaWebhookReplicasDisagree")];
    BROKER_VERSION: "broker-version", Warning, "The webhook, the sidecar that it injects and the broker of tickets are of different releases.",
        "Upgrade both charts to one release: `helm upgrade`. `tickets.image` in the chart of the webhook names the image of the sidecar.";
    WEBHOOK_GONE: "webhook-gone", Error, "The namespace of the webhook was deleted, and its configurations remain, so Pods with GMSA are refused. Before Kubernetes 1.28, all Pods outside of `kube-system` and that namespace are.",
        "Install it again, with the values of before: `helm install gmsa-webhook CHART -n NAMESPACE --create-namespace` (Helm 4: with `--force-conflicts`). Or end the checks: `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found NAME zz-NAME` and `kubectl delete validatingadmissionpolicybinding --ignore-not-found NAME-guard NAME-guard-trial` (Kubernetes 1.30 and later).",
        fix: installed_again;
    WEBHOOK_FAILING: "webhook-failing", Error, "The webhook answers, but it cannot check Pods, because the API server refuses what it asks.",
        "Look at the log of its Pods, which names the call that fails.",
        words: [Message("GmsaWebhookReviewsFail"), Message("GmsaWebhookSpecsUnreadable"), General("the api server answered 403"), General("the watch of credential specs failed")],
        fix: what_is_asked;
    WEBHOOK_OVERLOADED: "webhook-overloaded", Warning, "A replica of the webhook is slow, or gets more requests than it takes at once.",
        "Raise `replicaCount`, or `resources.limits.memory`, from which its limits follow. Slow answers of the API server slow it too: the dashboard shows both.",
        words: [
            Message("GmsaWebhookRequestsRefused"),
            Message("GmsaWebhookSlow"),
            Message("too many others were served or waited"),
            Message("other calls to the api server * were under way"),
            Message("too many other calls to the api server"),
        ];
    WEBHOOK_WATCH: "webhook-watch", Warning, "The webhook cannot follow changes of credential specs, so it reads each one when it is asked for. Answers stay right.",
        "Look at its log: the API server is away, a proxy between withholds answers, or the ClusterRole lacks `list` and `watch`.",
        words: [Message("GmsaWebhookWatchStale"), Message("a watch did not end when it was asked to")];
    PORT_TAKEN: "port-taken", Error, "The webhook cannot listen at its port.",
        "Another process has the port, which happens with `hostNetwork`: set `containerPort` or `adminPort`, from 1024 on.",
        words: [
            Message("cannot listen on *address already in use"),
            Message("gmsa-webhook*address already in use"),
            Message("gmsa-webhook*wsaeaddrinuse"),
            Message("gmsa-webhook*permission denied"),
            Message("cannot listen on *permission denied"),
        ];
    WEBHOOK_NOT_CALLED: "webhook-not-called", Error, "The API server creates a Pod that uses GMSA without a call of the webhook.",
        "Check whether the namespace is excluded, and whether a webhook configuration sends Pods.";
    NOT_ENFORCED: "not-enforced", Warning, "Denials are not enforced.",
        "End the trial: set `webhooks.enforcement=Enforce` in the chart, or remove the namespace from `webhooks.warnNamespaces`.",
        words: [Message("GmsaWebhookNotEnforced")];
    DENIALS_RISE: "denials-rise", Warning, "The webhook, or the broker of tickets, denies many more requests than usual.",
        "Its log names the Pods and their service accounts. A changed credential spec, a removed RoleBinding or a new workload is the usual cause: `kubectl gmsa explain REASON` says what the reason of the alert means.",
        words: [Message("GmsaWebhookDenialsRise"), Message("GmsaTicketsPodsDenied")];
    WEBHOOK_URL: "webhook-url", Warning, "The webhook is called by a URL instead of a Service, so its Pods are not checked.",
        "Use a Service, or check the process at the URL.";
    ENDPOINTS: "endpoints", Error, "The Service of the webhook, or of the broker of tickets, has no ready endpoint, or only one.",
        "Run at least two replicas: Pods are then admitted while one of them is replaced. Without any, see why the Pods of the webhook are not ready: `kubectl gmsa doctor`.",
        words: [
            Message("GmsaWebhookAbsent"),
            Message("GmsaWebhookReplicaMissing"),
            Message("GmsaTicketsAbsent"),
            Message("GmsaTicketsReplicaMissing"),
            General("no endpoints available for service"),
        ],
        remedies: {
            "GmsaTickets" => "Look at the Pods of the broker and their events: `kubectl get pods -n gmsa-tickets`. Where they run, look at the ServiceMonitor, and at the targets in Prometheus.",
        };
    WEBHOOK_PERMISSIONS: "webhook-permissions", Error, "The service account of the webhook lacks a permission.",
        "Run `helm upgrade`, which creates the roles and bindings of the chart again. Without Helm, apply the manifest again.",
        words: [
            Message("listing and watching credential specs is not permitted"),
            Message("GmsaWebhookWatchLive"),
            Message("user \"system:serviceaccount:*webhook*\" cannot "),
        ],
        fix: with_its_roles;
    SECRET_MISSING: "secret-missing", Error, "A Secret that the Pods of the webhook need does not exist.",
        "Create it again. `helm upgrade` creates it for a self-managed certificate, and the webhook fills it in. cert-manager creates its own. For your own, see docs/certificates.md.",
        words: [Message("the secret * does not exist: install it again, empty"), Message("GmsaWebhookCertificatesNotManaged")];
    AKS_REFUSES: "aks-refuses", Error, "AKS does not enable GMSA for the cluster as it is asked to.",
        "Run `az aks update --enable-windows-gmsa --gmsa-dns-server IP --gmsa-root-domain-name DOMAIN` on a cluster with a managed identity. It reimages the Windows node pools, so their Pods restart.",
        words: [
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
        ],
        remedies: {
            "managed identity" | "service principal" => "Give the cluster a managed identity, by which its plugin reads the user: `az aks update --enable-managed-identity`, then `az aks nodepool upgrade --node-image-only` for each node pool. Then enable GMSA.",
            "set --gmsa-dns-server" | "windows_profile" => "Give both of `--gmsa-dns-server` and `--gmsa-root-domain-name`, with `--enable-windows-gmsa`. Give neither where the virtual network has the DNS servers of the domain.",
            "dns server in the vnet" => "Agree only where the virtual network of the nodes has the DNS servers of the domain: `az network vnet show --query dhcpOptions`. Otherwise give `--gmsa-dns-server` and `--gmsa-root-domain-name`.",
            "unrecognized arguments" => "Update the Azure CLI: `az upgrade`. These options are in 2.35 and later.",
            "coredns-custom" => "The ConfigMap `coredns-custom` has the zone of the domain already: remove it there, or enable GMSA without `--gmsa-dns-server` and `--gmsa-root-domain-name`.",
        };
    WINDOWS_NODES: "windows-nodes", Warning, "The cluster has no Windows node.",
        "Add one: until then, Pods that use GMSA stay Pending.";
} }

/// The remedy for a webhook that cannot be reached: another webhook, or a Service that is deleted or without Pods.
fn unreachable(names: &Names<'_>) -> Option<Fix> {
    let Names { said, installer, webhook, .. } = *names;
    let is_gone = said.contains("service \"") && said.contains("not found");
    let called = said.split_once("calling webhook \"").and_then(|(_, rest)| rest.split('"').next());
    if called.is_some_and(|name| !name.contains("gmsa") && !name.contains("cert-manager")) {
        return Some(Fix::run(
            "The message names another webhook than that for GMSA: ask its owner. \
             `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations` shows whose configuration calls it.",
        ));
    }
    // The namespace of the workload differs from the webhook's.
    let remedy = of_words(&WEBHOOK_UNREACHABLE, names).filter(|remedy| remedy.contains("NAME.NAMESPACE.svc"));
    if let Some(remedy) = remedy {
        let service = webhook
            .or_else(|| service_in(said))
            .filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name));
        let name = service
            .map_or_else(|| "NAME.NAMESPACE.svc".to_owned(), |(namespace, name)| format!("{name}.{namespace}.svc"));
        return Some(Fix::run(remedy.replace("NAME.NAMESPACE.svc", &name)));
    }
    let (namespace, _) = webhook?;
    if said.contains("no endpoints available") {
        // The API server does not validate the Service in a configuration.
        let namespace = if is_dns_label(namespace) { namespace } else { "NAMESPACE" };
        return Some(Fix::run(format!(
            "No Pod of the webhook is ready: `kubectl get pods -n {namespace}`. The lines `webhook` and `service` say why."
        )));
    }
    let restore = installer.filter(|_| is_gone)?.restore();
    Some(Fix::run(format!("{restore} creates the Service again.")))
}

/// The namespace and the name of the Service in the URL that a message names.
fn service_in(said: &str) -> Option<(&str, &str)> {
    let host = said.split_once("https://")?.1.split(['/', ':', '?', '"']).next()?;
    let (name, rest) = host.split_once('.')?;
    let namespace = rest.strip_suffix(".svc")?;
    (is_dns_label(namespace) && is_dns_subdomain(name)).then_some((namespace, name))
}

/// The remedy for a release whose record was deleted with its namespace: install it again, and adopt the remaining objects.
fn installed_again(names: &Names<'_>) -> Option<Fix> {
    let again = names.installer?.install_again()?;
    Some(Fix::run(format!(
        "The record of the release was deleted with it. Install it again, with the values of before: {again}. Or end the checks: \
         `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found NAME zz-NAME` and \
         `kubectl delete validatingadmissionpolicybinding --ignore-not-found NAME-guard NAME-guard-trial` (Kubernetes 1.30 and later)."
    )))
}

/// The remedy that restores the roles of a release.
fn with_its_roles(names: &Names<'_>) -> Option<Fix> {
    let restore = names.installer?.restore();
    Some(Fix::run(format!("{restore} creates its roles and bindings again.")))
}

//! Installation.

use gmsa_core::diagnostic::Severity;

use super::{Family, Rule, RuleEntry, Words::Refusal, family, shared::what_is_asked};

family! { "Installation" {
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
        "Check its Pods, its Service, the network between, and the `caBundle` against the certificate.",
        words: [Refusal("failed calling webhook")];
    WEBHOOK_FAILING: "webhook-failing", Error, "The webhook answers, but it cannot check Pods, because the API server refuses what it asks.",
        "Look at the log of its Pods, which names the call that fails.",
        fix: what_is_asked;
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
} }

//! The install: the custom resource, the webhook configurations and what they send to the webhook.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Line, certificate, items, selector, service, some, text};
use crate::{connect::Cluster, with_causes};
use gmsa_cluster::crd;
use gmsa_core::credspec::{GROUP, PLURAL, VERSION};

const CRD: &str = "custom resource";
const CONFIGURATION: &str = "configuration";
const CALL: &str = "call of the webhook";
const NAMESPACES: &str = "namespaces";

const INSTALL: &str =
    "install the chart: helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace";

/// The kind of configuration that holds a webhook.
struct Configured {
    mutating: bool,
    /// The configuration's and the webhook's name.
    name: String,
    webhook: Value,
    /// Who changed its selectors after the install.
    changed_by: Vec<String>,
}

/// Adds what is to be said; gives the namespaces that the webhook does not look at, where they could be read.
pub(super) async fn look(cluster: &Cluster, lines: &mut Vec<Line>) -> Option<Vec<String>> {
    lines.push(custom_resource(cluster).await);
    let webhooks = match configured(cluster).await {
        Ok(webhooks) => webhooks,
        Err(error) => {
            lines.push(Line::unknown(CONFIGURATION, &error));
            return None;
        }
    };
    for mutating in [true, false] {
        configurations(mutating, &webhooks, lines);
    }
    let of_pods: Vec<&Configured> = webhooks.iter().filter(|found| found.is_of_pods()).collect();
    let first = of_pods.first()?;
    lines.push(call(cluster).await);
    service::look(cluster, &first.webhook, lines).await;
    Some(opted_out(cluster, &of_pods, lines).await)
}

/// What is to be said about the webhooks of one of the two kinds of configuration.
fn configurations(mutating: bool, webhooks: &[Configured], lines: &mut Vec<Line>) {
    let kind = if mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let of_pods: Vec<_> = webhooks.iter().filter(|found| found.mutating == mutating && found.is_of_pods()).collect();
    if of_pods.is_empty() {
        lines.push(Line::fail(CONFIGURATION, format!("no {kind} sends pods to a GMSA webhook"), INSTALL));
    }
    // An install has several, each by a name of its own; two installs have one by the same name.
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for found in &of_pods {
        by_name.entry(text(&found.webhook, "/name")).or_default().push(&found.name);
        found.look(lines);
    }
    for same in by_name.values().filter(|same| same.len() > 1) {
        let text = format!("{} {kind}s of several installs are for GMSA: {}", same.len(), some(same));
        lines.push(Line::warn(CONFIGURATION, text, "remove the ones of a former install"));
    }
}

async fn custom_resource(cluster: &Cluster) -> Line {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}");
    let found = match cluster.find(&path).await {
        Ok(Some(found)) => found,
        Ok(None) => return Line::fail(CRD, format!("{PLURAL}.{GROUP} is not installed"), INSTALL),
        Err(error) => return Line::unknown(CRD, &error),
    };
    let served: Vec<&str> = items(&found, "/spec/versions")
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .map(|version| text(version, "/name"))
        .collect();
    let established = items(&found, "/status/conditions")
        .any(|condition| text(condition, "/type") == "Established" && text(condition, "/status") == "True");
    if !served.contains(&VERSION) {
        Line::fail(CRD, format!("{VERSION} is not served, only: {}", served.join(", ")), "apply the CRD of the chart")
    } else if !established {
        Line::fail(CRD, "it is not established", "kubectl describe crd: its conditions say why")
    } else if crd::revision(&found) < crd::own_revision() {
        let text = format!(
            "serves {}, but is older than this release's (revision {}, not {})",
            served.join(", "),
            crd::revision(&found),
            crd::own_revision()
        );
        Line::warn(
            CRD,
            text,
            "set crds.upgrade=true in the chart, or apply its crds/gmsacredentialspecs.yaml on the server side",
        )
    } else {
        Line::pass(CRD, format!("serves {}", served.join(", ")))
    }
}

/// Every webhook for GMSA: they go by that name in this chart and in the one that it replaces.
async fn configured(cluster: &Cluster) -> anyhow::Result<Vec<Configured>> {
    let mut found = Vec::new();
    for (mutating, kind) in [(true, "mutatingwebhookconfigurations"), (false, "validatingwebhookconfigurations")] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}");
        for configuration in cluster.list(&path).await? {
            let name = text(&configuration, "/metadata/name");
            for webhook in items(&configuration, "/webhooks") {
                let full = format!("{name}/{}", text(webhook, "/name"));
                if full.contains("gmsa") {
                    let changed_by = changed_by(&configuration, text(webhook, "/name"));
                    found.push(Configured { mutating, name: full, webhook: webhook.clone(), changed_by });
                }
            }
        }
    }
    Ok(found)
}

/// The field managers that own a selector of this webhook and did not install it: the manager that installed it owns its rules too.
fn changed_by(configuration: &Value, webhook: &str) -> Vec<String> {
    let key = format!("k:{{\"name\":\"{webhook}\"}}");
    let changed = |entry: &&Value| {
        let fields = entry.pointer("/fieldsV1/f:webhooks").and_then(|webhooks| webhooks.get(&key));
        let owns = |field: &str| fields.and_then(|fields| fields.get(field)).is_some();
        (owns("f:namespaceSelector") || owns("f:objectSelector")) && !owns("f:rules")
    };
    items(configuration, "/metadata/managedFields")
        .filter(changed)
        .map(|entry| text(entry, "/manager").to_owned())
        .collect()
}

impl Configured {
    fn covers(&self, operation: &str, resource: &str) -> bool {
        let has = |rule: &Value, list: &str, wanted: &[&str]| {
            items(rule, list).any(|entry| entry.as_str().is_some_and(|entry| wanted.contains(&entry)))
        };
        let (kind, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let mut resources = vec![resource.to_owned(), "*/*".to_owned()];
        resources.push(if sub.is_empty() { "*".to_owned() } else { format!("{kind}/*") });
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        items(&self.webhook, "/rules").any(|rule| {
            has(rule, "/operations", &[operation, "*"])
                && has(rule, "/resources", &resources)
                && has(rule, "/apiGroups", &["", "*"])
        })
    }

    /// The webhook for system namespaces alone, on older clusters, is there besides: it must not hold up anything.
    fn is_of_pods(&self) -> bool {
        self.covers("CREATE", "pods") && !text(&self.webhook, "/name").starts_with("system-namespaces.")
    }

    fn look(&self, lines: &mut Vec<Line>) {
        let name = &self.name;
        let mut wanted = vec![("CREATE", "pods"), ("UPDATE", "pods/ephemeralcontainers")];
        if !self.mutating {
            wanted.push(("UPDATE", "pods"));
        }
        let missing: Vec<String> = wanted
            .into_iter()
            .filter(|(operation, resource)| !self.covers(operation, resource))
            .map(|(operation, resource)| format!("{operation} {resource}"))
            .collect();
        let before = lines.len();
        if !missing.is_empty() {
            let text = format!("{name} does not look at {}", missing.join(", "));
            let level = if self.mutating { Line::warn } else { Line::fail };
            lines.push(level(CONFIGURATION, text, "upgrade the chart: its rules hold them"));
        }
        if text(&self.webhook, "/failurePolicy") != "Fail" {
            let text = format!("{name} has failurePolicy Ignore: pods pass while the webhook is down");
            lines.push(Line::fail(CONFIGURATION, text, "set failurePolicy: Fail"));
        }
        if items(&self.webhook, "/matchConditions").next().is_none() {
            let text = format!("{name} has no matchConditions: every pod waits for the webhook");
            lines.push(Line::warn(CONFIGURATION, text, "upgrade the chart"));
        }
        if !self.changed_by.is_empty() {
            let text =
                format!("the selectors of {name} were changed after the install, by {}", self.changed_by.join(", "));
            let remedy = "upgrade the chart with --force-conflicts; on AKS its annotation admissions.enforcer/disabled keeps them as they are";
            lines.push(Line::warn(CONFIGURATION, text, remedy));
        }
        if lines.len() == before {
            lines.push(Line::pass(CONFIGURATION, format!("{name} is complete")));
        }
        lines.push(certificate::authority(name, text(&self.webhook, "/clientConfig/caBundle")));
    }
}

/// Asks the API server to create, as a dry run, a pod that the webhook must refuse. A refusal with its message means that the
/// API server reached it, and trusts the certificate that it serves.
async fn call(cluster: &Cluster) -> Line {
    const PROBE: &str = "kubectl-gmsa-doctor-probe";
    let options = json!({"gmsaCredentialSpecName": PROBE});
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": format!("{PROBE}-")},
        "spec": {
            "securityContext": {"windowsOptions": options},
            "containers": [{"name": "probe", "image": "probe"}],
        },
    });
    let namespace = &cluster.namespace;
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    match cluster.post_for_warnings(&path, &pod).await {
        Ok(warnings)
            if warnings.iter().any(|warning| warning.contains(&format!("cred spec {PROBE} does not exist"))) =>
        {
            Line::warn(
                CALL,
                format!("the API server reaches it, but denials are not enforced (dry run in {namespace})"),
                "end the trial: set webhooks.enforcement=Enforce in the chart",
            )
        }
        Ok(_) => Line::fail(
            CALL,
            format!("a pod that names a credential spec that does not exist would be created in {namespace}"),
            "the namespace is excluded, or no webhook looks at pods",
        ),
        Err(error) => {
            let chain = with_causes(&error);
            if chain.contains(&format!("cred spec {PROBE} does not exist")) {
                Line::pass(
                    CALL,
                    format!("the API server reaches it and trusts its certificate (dry run in {namespace})"),
                )
            } else if chain.contains("failed calling webhook") {
                Line::fail(
                    CALL,
                    chain,
                    "its pods, its service, the network between, and caBundle against the certificate",
                )
            } else {
                Line::unknown(CALL, &error)
            }
        }
    }
}

/// The namespaces that one of the webhooks does not look at.
async fn opted_out(cluster: &Cluster, webhooks: &[&Configured], lines: &mut Vec<Line>) -> Vec<String> {
    let namespaces = match cluster.list("/api/v1/namespaces").await {
        Ok(namespaces) => namespaces,
        Err(error) => {
            lines.push(Line::unknown(NAMESPACES, &error));
            return Vec::new();
        }
    };
    let looked_at = |namespace: &Value| {
        let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object);
        webhooks.iter().all(|found| selector::takes(found.webhook.get("namespaceSelector"), labels))
    };
    let out: Vec<String> = namespaces
        .iter()
        .filter(|namespace| !looked_at(namespace))
        .map(|namespace| text(namespace, "/metadata/name").to_owned())
        .collect();
    // The webhook's own namespaces are excluded on purpose.
    let own = |name: &String| {
        name == "kube-system"
            || webhooks.iter().any(|found| text(&found.webhook, "/clientConfig/service/namespace") == name)
    };
    let others: Vec<&String> = out.iter().filter(|name| !own(name)).collect();
    lines.push(if others.is_empty() {
        Line::pass(NAMESPACES, format!("{} of {} are looked at", namespaces.len() - out.len(), namespaces.len()))
    } else {
        let text = format!("pods are not looked at in {}", some(&others));
        Line::warn(NAMESPACES, text, "see their labels and the webhooks' namespaceSelector")
    });
    out
}

//! The service behind the webhook configurations: its endpoints, its pods, and what they may do.

use serde_json::{Value, json};

use super::{Line, certificate, items, text};
use crate::connect::Cluster;
use gmsa_core::credspec::{GROUP, PLURAL};

const SERVICE: &str = "service";
const PERMISSIONS: &str = "permissions";

/// The chart's name for the port of `/metrics`.
const ADMIN: &str = "admin";

/// Adds what is to be said of the service that a webhook is called by.
pub(super) async fn look(cluster: &Cluster, webhook: &Value, lines: &mut Vec<Line>) {
    let (namespace, name) =
        (text(webhook, "/clientConfig/service/namespace"), text(webhook, "/clientConfig/service/name"));
    if name.is_empty() {
        let url = text(webhook, "/clientConfig/url");
        lines.push(Line::warn(SERVICE, format!("the webhook is called at {url:?}"), "its pods cannot be looked at"));
        return;
    }
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    let slices = match cluster.list(&path).await {
        Ok(slices) => slices,
        Err(error) => return lines.push(Line::unknown(SERVICE, &error)),
    };
    let endpoints: Vec<&Value> = slices.iter().flat_map(|slice| items(slice, "/endpoints")).collect();
    let ready = endpoints.iter().filter(|point| point.pointer("/conditions/ready") != Some(&Value::Bool(false)));
    let ready: Vec<&str> = ready.map(|point| text(point, "/targetRef/name")).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let describe = format!("kubectl describe pods -n {namespace}");
    lines.push(match ready.len() {
        0 => Line::fail(SERVICE, count, describe),
        1 => Line::warn(SERVICE, count, "two replicas keep pods coming while one of them moves"),
        _ => Line::pass(SERVICE, count),
    });
    if let Some(name) = ready.iter().find(|pod| !pod.is_empty()) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        match cluster.get(&path).await {
            Ok(pod) => {
                lines.extend(served(cluster, namespace, name, &pod).await);
                let image = items(&pod, "/spec/containers").next().map(|first| text(first, "/image").to_owned());
                lines.push(Line::pass(SERVICE, format!("runs {}", image.unwrap_or_default())));
                let account = text(&pod, "/spec/serviceAccountName");
                lines.push(permissions(cluster, namespace, account).await);
            }
            Err(error) => lines.push(Line::unknown(SERVICE, &error)),
        }
    }
}

/// The certificate that a replica serves, as its admin port says. Nothing where the user may not ask it (`pods/proxy`) or the
/// API server does not reach it: that the certificate is trusted now, the API server's own call shows.
async fn served(cluster: &Cluster, namespace: &str, name: &str, pod: &Value) -> Option<Line> {
    let ports = items(pod, "/spec/containers").flat_map(|container| items(container, "/ports"));
    let port =
        ports.filter(|port| text(port, "/name") == ADMIN).find_map(|port| port.get("containerPort")?.as_u64())?;
    let metrics = cluster.read_from_pod(namespace, name, port, "/metrics").await.ok()?;
    certificate::served(name, &metrics)
}

/// Whether the webhook's own service account may do what it must.
async fn permissions(cluster: &Cluster, namespace: &str, account: &str) -> Line {
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut missing = Vec::new();
    let needed = [
        ("get", GROUP, PLURAL),
        ("list", GROUP, PLURAL),
        ("watch", GROUP, PLURAL),
        ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ];
    for (verb, group, resource) in needed {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user, "groups": groups,
                "resourceAttributes": {"verb": verb, "group": group, "resource": resource},
            },
        });
        match cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await {
            Ok(answer) if answer.pointer("/status/allowed") == Some(&Value::Bool(true)) => {}
            Ok(_) => missing.push((verb, resource)),
            Err(error) => return Line::unknown(PERMISSIONS, &error),
        }
    }
    let names = missing.iter().map(|(verb, resource)| format!("{verb} {resource}")).collect::<Vec<_>>().join(", ");
    if missing.is_empty() {
        Line::pass(PERMISSIONS, format!("{namespace}:{account} may do what it must"))
    } else if missing.iter().all(|(verb, _)| matches!(*verb, "list" | "watch")) {
        Line::warn(
            PERMISSIONS,
            format!("{namespace}:{account} may not {names}: each pod costs a read"),
            "upgrade the chart",
        )
    } else {
        Line::fail(PERMISSIONS, format!("{namespace}:{account} may not {names}"), "bind the chart's ClusterRole to it")
    }
}

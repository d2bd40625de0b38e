//! The Service of the webhook: its endpoints, and who can connect to it, by the `NetworkPolicy` objects of its namespace.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::{
    api::{
        admissionregistration::v1::ServiceReference,
        core::v1::Pod,
        discovery::v1::Endpoint,
        networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::core::ParseExpressionError;

use super::{
    install::{OwnDeployment, broker_of, installer_of, services},
    replica::{self, SERVICE},
};
use crate::shared::{
    configured::matches,
    installer::Installer,
    output::first_five,
    rules,
    unread::{Read, not_checked},
    webhook::{endpoints, is_ready, pod_behind, reviewing},
    world::World,
};
use gmsa_core::{
    credspec::is_dns_label,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const NETWORK: &str = "network";

/// The port of the webhook, as the chart names it.
const PORT: &str = "https";

/// The checks of each Service of a webhook, and of the broker's.
pub(super) async fn checks(world: &World) -> Read<Vec<Check>> {
    let clients = reviewing(world.webhooks().await?).into_iter().map(|found| &found.webhook.client_config);
    let outside = clients.filter(|client| client.service.is_none());
    let urls: BTreeSet<&str> = outside.map(|client| client.url.as_deref().unwrap_or_default()).collect();
    let outside =
        urls.iter().map(|url| Check::breach(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}")));
    let (installer, services) = (installer_of(world).await, services(world).await?);
    let of_webhook = join_all(services.into_iter().map(|service| of_service(world, service, installer.as_ref()))).await;
    let mut checks: Vec<Check> = outside.chain(of_webhook.into_iter().flatten()).collect();
    if let Some(broker) = broker_of(world).await {
        let installer = OwnDeployment::installer(world, &broker).await;
        checks.extend(of_service(world, &broker, installer.as_ref()).await);
    }
    Ok(checks)
}

async fn of_service(world: &World, service: &ServiceReference, installer: Option<&Installer>) -> Vec<Check> {
    let ServiceReference { namespace, name, .. } = service;
    let endpoints = match endpoints(world, service).await {
        Ok(endpoints) => endpoints,
        Err(unread) => return vec![unread.check(SERVICE)],
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let mut checks = vec![match ready.len() {
        0 => {
            // The API server does not validate the namespace in a configuration.
            let fix = is_dns_label(namespace).then(|| format!("`kubectl describe pods -n {namespace}`."));
            Check::found(SERVICE, Diagnostic { fix, ..Diagnostic::new(&rules::ENDPOINTS, count) })
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    }];
    match pod_behind(world, service).await {
        Ok(Some((name, pod))) => checks.extend(replica::checks(world, (namespace, &name), &pod, installer).await),
        Ok(None) => {}
        Err(unread) => checks.push(unread.check(SERVICE)),
    }
    checks
}

pub(super) async fn network(world: &World) -> Read<Vec<Check>> {
    let services = services(world).await?;
    let lines =
        join_all(services.into_iter().map(async |service| {
            network_of(world, service).await.unwrap_or_else(|unread| Some(unread.check(NETWORK)))
        }));
    Ok(lines.await.into_iter().flatten().collect())
}

/// `None` without a pod behind the Service.
async fn network_of(world: &World, service: &ServiceReference) -> Read<Option<Check>> {
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", service.namespace);
    let (pod, policies) = tokio::join!(pod_behind(world, service), world.list(&policies));
    let Some((_, pod)) = pod? else { return Ok(None) };
    let judged = judge(&service.namespace, &pod, &policies?);
    Ok(Some(judged.unwrap_or_else(|error| not_checked(NETWORK, &error.into()))))
}

/// The line about connections to the port of a pod, by the policies of its namespace.
fn judge(namespace: &str, pod: &Pod, policies: &[NetworkPolicy]) -> Result<Check, ParseExpressionError> {
    let open = |why: &str| {
        Ok(Check::breach(NETWORK, &rules::NETWORK_OPEN, format!("every pod can connect to the webhook: {why}")))
    };
    if pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)) {
        return open("its pods use the network of their nodes, where no NetworkPolicy holds");
    }
    let mut names = Vec::new();
    for policy in policies.iter().filter(|policy| is_of_ingress(policy)) {
        let selector = policy.spec.as_ref().and_then(|spec| spec.pod_selector.as_ref());
        if matches(selector, pod.metadata.labels.as_ref())? {
            let name = format!("{namespace}/{}", policy.metadata.name.as_deref().unwrap_or_default());
            let mut rules = policy.spec.iter().flat_map(|spec| spec.ingress.iter().flatten());
            if rules.any(is_open) {
                return open(&format!("NetworkPolicy {name} admits all addresses"));
            }
            names.push(name);
        }
    }
    if names.is_empty() {
        return open(&format!("no NetworkPolicy of {namespace} is about incoming connections of its pods"));
    }
    Ok(Check::pass(NETWORK, format!("NetworkPolicy {} says who can connect to the webhook", first_five(&names))))
}

/// Whether a policy is about incoming connections: one without types is.
fn is_of_ingress(policy: &NetworkPolicy) -> bool {
    let types = policy.spec.as_ref().and_then(|spec| spec.policy_types.as_ref());
    types.is_none_or(|types| types.is_empty() || types.iter().any(|one| one == "Ingress"))
}

/// Whether a rule names no clients, and the port of the webhook as the chart does, or no port.
fn is_open(rule: &NetworkPolicyIngressRule) -> bool {
    let is_https = |port: &NetworkPolicyPort| port.port == Some(IntOrString::String(PORT.to_owned()));
    rule.from.iter().flatten().next().is_none()
        && rule.ports.as_ref().is_none_or(|ports| ports.is_empty() || ports.iter().any(is_https))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The severity and the text of the check of a pod with these policies.
    fn of(host_network: bool, specs: &[Value]) -> (Option<Severity>, String) {
        let pod = json!({
            "metadata": {"labels": {"app": "gmsa"}},
            "spec": {"hostNetwork": host_network, "containers": []},
        });
        let policies =
            specs.iter().enumerate().map(|(n, spec)| json!({"metadata": {"name": format!("p{n}")}, "spec": spec}));
        let policies: Vec<_> = policies.map(|policy| serde_json::from_value(policy).unwrap()).collect();
        let check = judge("gmsa", &serde_json::from_value(pod).unwrap(), &policies).unwrap();
        (check.severity(), check.result.unwrap_or_else(|found| found.message))
    }

    #[test]
    fn a_webhook_that_every_pod_can_connect_to_is_noted() {
        let from = json!([{"ipBlock": {"cidr": "10.0.0.1/32"}}]);
        let rule = |port: Value, from: &Value| json!([{"ports": [{"port": port}], "from": from}]);
        let selected = |ingress: Value| json!({"podSelector": {"matchLabels": {"app": "gmsa"}}, "ingress": ingress});
        let closed = selected(rule(json!("https"), &from));
        let all = |why: &str| (Some(Severity::Note), format!("every pod can connect to the webhook: {why}"));
        let admits = || all("NetworkPolicy gmsa/p0 admits all addresses");
        let none = || all("no NetworkPolicy of gmsa is about incoming connections of its pods");
        let passes = |names: &str| (None, format!("NetworkPolicy {names} says who can connect to the webhook"));
        for (policies, expected) in [
            (vec![], none()),
            (vec![closed.clone()], passes("gmsa/p0")),
            (vec![json!({"podSelector": {}})], passes("gmsa/p0")),
            (vec![json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": []})], none()),
            (vec![json!({"podSelector": {"matchLabels": {"app": "web"}}})], none()),
            (vec![selected(json!([{}]))], admits()),
            (vec![selected(rule(json!("https"), &json!([])))], admits()),
            (vec![selected(rule(json!("admin"), &json!([])))], passes("gmsa/p0")),
            (vec![closed, selected(rule(json!("admin"), &json!([])))], passes("gmsa/p0, gmsa/p1")),
        ] {
            assert_eq!(of(false, &policies), expected, "{policies:?}");
        }
        assert_eq!(of(true, &[]), all("its pods use the network of their nodes, where no NetworkPolicy holds"));
    }
}

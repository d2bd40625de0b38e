//! Tickets for Linux pods: whether the charts of the webhook and of the broker fit together, and what keeps the broker from its domains.
//!
//! Invariant: no Secret is read; whether sidecars trust the broker's certificate shows in their pods (`why`, `verify`).

use futures::future::OptionFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::{
    certificate,
    parts::{Judged, Parts, Service},
};
use crate::shared::{
    output::first_five,
    rules,
    snapshot::Snapshot,
    walk::{created, workload::ClusterWorkload},
    webhook::{argument, broker, image},
    workloads::Kind,
};
use gmsa_core::{
    credspec::is_dns_subdomain,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const TICKETS: &str = "tickets";

/// The first minor version of Kubernetes 1 with native sidecars.
const SIDECARS: u32 = 29;

/// The broker's metric, up to the rule of the refusal.
const REFUSED: &str = "gmsa_tickets_requests_total{outcome=\"";

/// The rules of refusals for which the domain, or the way there, is to blame.
const OF_DOMAIN: [&str; 8] = [
    "ldap-unreachable",
    "ldap-credentials",
    "kdc-unreachable",
    "kerberos-configuration",
    "server-certificate",
    "directory-denied",
    "directory-clock",
    "ticket-answer",
];

/// What is installed for tickets.
pub(super) struct TicketsInstall {
    /// Whether there is a Deployment of the broker's chart.
    is_installed: bool,
    /// The broker that the webhook names; `None` where it injects no sidecar.
    pub broker: Option<Service>,
    /// The CAs that new sidecars trust.
    authorities: Option<ConfigMap>,
}

impl TicketsInstall {
    pub(super) async fn read(snapshot: &Snapshot, webhook: Option<(&str, &Pod)>) -> Self {
        let deployments = ClusterWorkload::list(snapshot, Kind::Deployment, None).await.unwrap_or_default();
        let mut labels = deployments.iter().filter_map(|found| found.metadata.labels.as_ref());
        let is_installed =
            labels.any(|labels| labels.get("app.kubernetes.io/name").is_some_and(|name| name == "gmsa-tickets"));
        let named = webhook.and_then(|(_, pod)| broker(pod, "tickets-broker"));
        let broker = OptionFuture::from(named.as_ref().map(|named| Box::pin(Service::read(snapshot, named)))).await;
        let path = webhook.and_then(|(namespace, pod)| {
            let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
            let mounted = volumes.iter().find(|volume| volume.name == "tickets-ca")?;
            let name = Some(&mounted.config_map.as_ref()?.name).filter(|name| is_dns_subdomain(name))?;
            Some(format!("/api/v1/namespaces/{namespace}/configmaps/{name}"))
        });
        let authorities = OptionFuture::from(path.as_deref().map(|path| snapshot.get(path))).await;
        Self { is_installed, broker, authorities: authorities.and_then(Result::ok) }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the table of checks takes it so")]
pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let TicketsInstall { is_installed, broker, authorities } = &parts.tickets;
    let Some((_, webhook)) = parts.webhook_pod() else { return Ok(Vec::new()) };
    let Some(broker) = broker else {
        let text = "the broker is installed, and the webhook injects no sidecar";
        let unused = is_installed.then(|| Check::breach(TICKETS, &rules::TICKETS_NOT_ENABLED, text));
        return Ok(Vec::from_iter(unused));
    };
    let mut checks = Vec::new();
    if !parts.has_kubernetes(SIDECARS) {
        let text = format!("pods that ask for tickets are refused: they need Kubernetes 1.{SIDECARS} or later");
        let fix = "Upgrade the cluster, or set `tickets.enabled=false` in the chart of the webhook.";
        checks.push(Check::found(TICKETS, Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_fix(fix)));
    }
    if let Some(own) = &broker.own {
        if matches!(own.namespace, Ok(None)) {
            let text = format!("namespace {}, in which the broker was, does not exist", broker.named.namespace);
            checks.push(Check::breach(TICKETS, &rules::BROKER_UNREACHABLE, text));
        } else if let Ok(Some(workload)) = &own.workload
            && let Some(found) = created::cause(workload, &parts.nodes, &own.events)
        {
            checks.push(Check::found(TICKETS, Diagnostic { object: workload.title(), ..found }));
        }
    }
    let replica = broker.replica.as_ref().and_then(|replica| replica.as_ref().ok());
    let images = [image(webhook), argument(webhook, "tickets-image"), replica.and_then(|replica| image(&replica.pod))];
    let tag = |image: &&str| Some(image.rsplit('/').next()?.split_once(':')?.1.to_owned());
    let tags: Vec<String> = images.iter().flatten().filter_map(tag).collect();
    if tags.windows(2).any(|pair| pair.first() != pair.last()) {
        let text =
            format!("webhook, sidecar and broker are of different releases: {}", first_five(images.iter().flatten()));
        checks.push(Check::breach(TICKETS, &rules::BROKER_VERSION, text));
    }
    let pem = authorities.as_ref().and_then(|map| map.data.as_ref()?.get("ca.crt"));
    // A pod keeps the CAs that it was created with.
    let end = pem.and_then(|pem| certificate::end(pem.as_bytes()));
    checks.extend(end.map(|end| certificate::until(end, parts.taken, "the CA that new sidecars trust", 30)));
    if let Some(Ok(metrics)) = replica.and_then(|replica| replica.metrics.as_ref()) {
        let counts = metrics.lines().filter_map(|line| line.strip_prefix(REFUSED)?.split_once("\"} "));
        checks.extend(counts.filter(|(id, count)| OF_DOMAIN.contains(id) && *count != "0").filter_map(
            |(id, count)| {
                let rule = rules::all().find(|rule| rule.id == id)?;
                let text = format!("the broker refused {count} requests since its start, because of the domain");
                Some(Check::found(TICKETS, Diagnostic::new(rule, text).with_severity(Severity::Warning)))
            },
        ));
    }
    if checks.iter().all(|check| check.result.is_ok()) {
        checks.push(Check::pass(TICKETS, "pods get a sidecar of the broker's release"));
    }
    Ok(checks)
}

//! Tickets for Linux pods: whether the charts of the webhook and of the broker fit together, and what keeps the broker from its domains.
//!
//! Invariant: no Secret is read. The broker's metrics say which authorities signed its certificate.

use super::{
    certificate,
    parts::{Judged, Parts, TicketsInstall},
};
use crate::shared::{
    output::first_five,
    pods::ClusterPod,
    rules,
    walk::{created, tickets::lacks_sidecar},
    webhook::{argument, image},
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

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

#[expect(clippy::unnecessary_wraps, reason = "the table of checks takes it so")]
pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let TicketsInstall { is_installed, broker, authorities } = &parts.tickets;
    let Some((_, webhook)) = parts.webhook_pod() else { return Ok(Vec::new()) };
    let asking = asking(parts);
    let Some(broker) = broker else {
        let unused = is_installed.then(|| "the broker is installed, and the webhook injects no sidecar".to_owned());
        let text =
            asking.map(|pods| format!("the webhook is installed without tickets, which these pods ask for: {pods}"));
        let text = text.or(unused);
        return Ok(text.map(|text| Check::breach(TICKETS, &rules::TICKETS_NOT_ENABLED, text)).into_iter().collect());
    };
    let mut checks: Vec<Check> = asking
        .map(|pods| {
            let why = "they are older than their annotation, or the webhook leaves their namespace out";
            let text = format!("these pods ask for tickets and have no sidecar, because {why}: {pods}");
            Check::breach(TICKETS, &rules::TICKETS_NOT_INJECTED, text)
        })
        .into_iter()
        .collect();
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
            && let Some(found) = created::absence(workload, &parts.nodes, &own.events)
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
        if pem.and_then(|pem| certificate::is_trusted(pem.as_bytes(), metrics)) == Some(false) {
            let text = "new sidecars do not trust the broker: its certificate is signed by none of the CAs that the webhook gives them";
            checks.push(Check::breach(TICKETS, &rules::BROKER_UNTRUSTED, text));
        }
        checks.extend(of_domain(metrics));
    }
    if checks.iter().all(|check| check.result.is_ok()) {
        checks.push(Check::pass(TICKETS, "pods get a sidecar of the broker's release"));
    }
    Ok(checks)
}

/// The pods that ask for tickets and have no sidecar.
fn asking(parts: &Parts) -> Option<String> {
    let pods = parts.pods.iter().flatten().filter_map(|json| ClusterPod::read(json).ok());
    let pods = pods.filter(|pod| lacks_sidecar(&pod.admission) && !pod.has_ended()).map(|pod| {
        let (namespace, name) = pod.place();
        format!("{namespace}/{name}")
    });
    Some(first_five(pods)).filter(|names| !names.is_empty())
}

/// The refusals of the broker for which its domain is to blame, by its metrics.
fn of_domain(metrics: &str) -> impl Iterator<Item = Check> {
    let counts = metrics.lines().filter_map(|line| line.strip_prefix(REFUSED)?.split_once("\"} "));
    counts.filter(|(id, count)| OF_DOMAIN.contains(id) && *count != "0").filter_map(|(id, count)| {
        let rule = rules::all().find(|rule| rule.id == id)?;
        let text = format!("the broker refused {count} requests since its start, because of the domain");
        Some(Check::found(TICKETS, Diagnostic::new(rule, text).with_severity(Severity::Warning)))
    })
}

//! Tickets for Linux pods: whether the charts of the webhook and of the broker fit together, and what keeps the broker from its domains.
//!
//! Invariant: no Secret is read. The broker's metrics say which authorities signed its certificate.

use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic, Severity},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::ServiceReference,
        core::v1::{ConfigMap, Pod},
    },
    jiff::Timestamp,
};

use super::{
    certificate,
    parts::{Judged, Parts, Service, TicketsInstall},
};
use crate::shared::{
    output::first_five,
    pods::ClusterPod,
    rules,
    unread::Unread,
    walk::{tickets::lacks_sidecar, worst},
    webhook::{argument, image, is_ready, no_namespace},
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

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let Some((_, webhook)) = parts.webhook_pod()? else { return Ok(Vec::new()) };
    let TicketsInstall { is_installed, broker, .. } = &parts.tickets;
    let (mut checks, unread) = match broker {
        Some(broker) => (of_broker(parts, webhook, broker), unread(parts, broker)),
        None => (not_enabled(parts), vec![is_installed.as_ref().err()]),
    };
    let unread = unread.into_iter().chain([parts.pods.as_ref().err()]).flatten();
    let skipped = parts.other_namespaces(TICKETS).into_iter().chain(unread.map(|unread| unread.check(TICKETS)));
    for line in skipped {
        if !checks.contains(&line) {
            checks.push(line);
        }
    }
    let is_well = checks.iter().all(|check| check.result.is_ok());
    checks.extend(broker.as_ref().filter(|_| is_well).map(|broker| {
        if broker.endpoints.iter().flatten().any(is_ready) {
            return Check::pass(TICKETS, "pods get a sidecar of the broker's release");
        }
        let ServiceReference { namespace, name, .. } = &broker.named;
        let text = format!("the Service {namespace}/{name} of the broker has no ready endpoint");
        Check::breach(TICKETS, &rules::BROKER_UNREACHABLE, text)
    }));
    Ok(checks)
}

/// The failed reads of the parts of a broker.
fn unread<'p>(parts: &'p Parts, broker: &'p Service) -> Vec<Option<&'p Unread>> {
    let replica = broker.replica.as_ref();
    let metrics = replica.and_then(|replica| replica.as_ref().ok()?.metrics.as_ref());
    let of_deployment = broker.own.as_ref().and_then(|own| match (&own.namespace, &own.workload) {
        (_, Err(unread)) | (Err(unread), Ok(None)) => Some(unread),
        _ => None,
    });
    vec![
        parts.version.as_ref().err(),
        broker.endpoints.as_ref().err(),
        replica.and_then(|replica| replica.as_ref().err()),
        metrics.and_then(|metrics| metrics.as_ref().err()),
        of_deployment.or(parts.unread_nodes()),
        parts.tickets.authorities.as_ref().and_then(|authorities| authorities.as_ref().err()),
    ]
}

/// The finding if the webhook injects no sidecar.
fn not_enabled(parts: &Parts) -> Vec<Check> {
    let is_installed = parts.tickets.is_installed.as_ref().is_ok_and(|is_installed| *is_installed);
    let unused = is_installed.then(|| "the broker is installed, and the webhook injects no sidecar".to_owned());
    let asking =
        asking(parts).map(|pods| format!("the webhook is installed without tickets, which these pods ask for: {pods}"));
    let text = asking.or(unused);
    text.map(|text| Check::breach(TICKETS, &rules::TICKETS_NOT_ENABLED, text)).into_iter().collect()
}

/// The findings on the broker, and on the pods that should ask it.
fn of_broker(parts: &Parts, webhook: &Pod, broker: &Service) -> Vec<Check> {
    let mut checks: Vec<Check> = asking(parts)
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
        if let Ok(namespace) = &own.namespace
            && let Some(state) = no_namespace(namespace.as_ref())
        {
            let text = format!("namespace {}, in which the broker was, {state}", broker.named.namespace);
            checks.push(Check::breach(TICKETS, &rules::BROKER_UNREACHABLE, text));
        } else if let Ok(Some(workload)) = &own.workload
            && let Some(found) = worst::absence(workload, &parts.nodes, &own.events)
        {
            checks.extend(own.events.lacking());
            checks.push(Check::found(TICKETS, Diagnostic { object: workload.title(), ..found }));
        }
    }
    let replica = broker.replica.as_ref().and_then(|replica| replica.as_ref().ok());
    let images = [image(webhook), argument(webhook, "tickets-image"), replica.and_then(|replica| image(&replica.pod))];
    // A digest names no release.
    let tag = |image: &&str| Some(image.split('@').next()?.rsplit('/').next()?.split_once(':')?.1.to_owned());
    let tags: Vec<String> = images.iter().flatten().filter_map(tag).collect();
    if tags.windows(2).any(|pair| pair.first() != pair.last()) {
        let text =
            format!("webhook, sidecar and broker are of different releases: {}", first_five(images.iter().flatten()));
        checks.push(Check::breach(TICKETS, &rules::BROKER_VERSION, text));
    }
    let metrics = replica.and_then(|replica| replica.metrics.as_ref()?.as_ref().ok());
    if let Some(Ok(authorities)) = &parts.tickets.authorities {
        checks.extend(trust(authorities.as_ref(), metrics, parts.taken));
    }
    checks.extend(metrics.into_iter().flat_map(|metrics| of_domain(&broker.named, metrics)));
    checks
}

/// Whether new sidecars trust the broker, by the CAs that the webhook gives them: a pod keeps the CAs that it was created with.
fn trust(authorities: Option<&ConfigMap>, metrics: Option<&String>, now: Timestamp) -> Vec<Check> {
    let untrusted = |text| Check::breach(TICKETS, &rules::BROKER_UNTRUSTED, text);
    let pem = authorities.and_then(|map| map.data.as_ref()?.get("ca.crt")).map_or(&[][..], |pem| pem.as_bytes());
    let Some(end) = certificate::end(pem) else {
        return vec![untrusted("new sidecars trust no broker: the webhook has no CA to give them")];
    };
    let mut checks = vec![certificate::until(end, now, "the CA that new sidecars trust", 30)];
    if metrics.and_then(|metrics| certificate::is_trusted(pem, metrics)) == Some(false) {
        let text = "new sidecars do not trust the broker: its certificate is signed by none of the CAs that the webhook gives them";
        checks.push(untrusted(text));
    }
    checks
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
fn of_domain(broker: &ServiceReference, metrics: &str) -> impl Iterator<Item = Check> {
    let counts = metrics.lines().filter_map(|line| line.strip_prefix(REFUSED)?.split_once("\"} "));
    counts.filter(|(id, count)| OF_DOMAIN.contains(id) && *count != "0").filter_map(|(id, count)| {
        let rule = rules::all().find(|rule| rule.id == id)?;
        // The cause may be gone: the metric counts since the start.
        let text = format!("the broker refused {count} requests since its start, because of the domain");
        let ServiceReference { namespace, name, .. } = broker;
        let names = is_dns_label(namespace) && is_dns_subdomain(name);
        let log = names.then(|| format!("`kubectl logs deployment/{name} -n {namespace}`"));
        let fix = format!(
            "It may be over: {} shows when each was, and why.",
            log.as_deref().unwrap_or("the log of the broker")
        );
        Some(Check::found(TICKETS, Diagnostic::new(rule, text).with_severity(Severity::Note).with_fix(fix)))
    })
}

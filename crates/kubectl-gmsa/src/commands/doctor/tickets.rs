//! Tickets for Linux pods: whether the charts of the webhook and of the broker fit together, and what keeps the broker from its domains.
//!
//! Invariant: no Secret is read. The broker's metrics say which authorities signed its certificate.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::OptionFuture;
use gmsa_cluster::kubernetes_version::NATIVE_SIDECARS;
use gmsa_core::{
    credspec::{
        Verb,
        domain_join::DomainJoinConfig,
        is_dns_subdomain,
        services::{Services, is_in, list_of},
    },
    diagnostic::{Check, Diagnostic, Rule, Severity},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::ServiceReference,
        core::v1::{ConfigMap, Pod},
    },
    apimachinery::pkg::version::Info,
    jiff::Timestamp,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    certificate,
    install::{DoctorInput, OwnDeployment, has_kubernetes, narrowed, other_namespaces, services, specs, unread_nodes},
};
use crate::shared::{
    kinds::Kind,
    output::first_five,
    pods::ClusterPod,
    rules,
    unread::{Read, Unread},
    walk::{tickets::missing_product, workload::ClusterWorkload, worst},
    webhook::{argument, broker, broker_unready, image, metrics, pod_behind, release, replica},
    world::{CA_VOLUME, World},
};

pub(super) const TICKETS: &str = "tickets";

/// The broker's metric, up to the rule of the refusal.
const REFUSED: &str = "gmsa_tickets_requests_total{outcome=\"";

/// The rules of refusals for which the domain, or the way there, is to blame.
const OF_DOMAIN: [&Rule; 8] = [
    &rules::LDAP_UNREACHABLE,
    &rules::LDAP_CREDENTIALS,
    &rules::KDC_UNREACHABLE,
    &rules::KERBEROS_CONFIGURATION,
    &rules::SERVER_CERTIFICATE,
    &rules::DIRECTORY_DENIED,
    &rules::DIRECTORY_CLOCK,
    &rules::TICKET_ANSWER,
];

pub(super) async fn check(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    // The webhook of AKS has no tickets.
    if services(world).await?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(webhook) = replica(world).await? else { return Ok(Vec::new()) };
    let narrowed = narrowed(world, asked).await;
    let pods = world.pods(narrowed.as_ref().map(|(namespace, _)| namespace.as_str())).await;
    let without = without_sidecar(pods.as_deref().map_or(&[], Vec::as_slice));
    let broker = broker(&webhook, "tickets-broker");
    let (mut checks, mut unread) = match &broker {
        Some(broker) => Box::pin(of_broker(world, &webhook, broker, without)).await,
        None => not_enabled(world, without).await,
    };
    unread.extend(pods.err());
    let skipped = other_namespaces(TICKETS, narrowed.as_ref()).into_iter();
    for line in skipped.chain(unread.iter().map(|unread| unread.check(TICKETS))) {
        if !checks.contains(&line) {
            checks.push(line);
        }
    }
    if let Some(broker) = broker.filter(|_| checks.iter().all(|check| check.result.is_ok())) {
        checks.push(match broker_unready(world, &broker).await {
            Ok(None) => Check::pass(TICKETS, "pods get a sidecar of the broker's release"),
            Ok(Some(text)) => Check::breach(TICKETS, &rules::BROKER_UNREACHABLE, text),
            Err(unread) => unread.check(TICKETS),
        });
    }
    Ok(checks)
}

/// The finding if the webhook injects no sidecar, and what could not be read.
async fn not_enabled(world: &World, without: Option<String>) -> (Vec<Check>, Vec<Unread>) {
    let deployments = ClusterWorkload::list(world, Kind::Deployment, None).await;
    let is_of_broker = |found: &ClusterWorkload| {
        let labels = found.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("app.kubernetes.io/name")).is_some_and(|name| name == "gmsa-tickets")
    };
    let is_installed = deployments.iter().flatten().any(is_of_broker);
    let unused = is_installed.then(|| "the broker is installed, and the webhook injects no sidecar".to_owned());
    let text = without
        .map(|pods| format!("the webhook is installed without tickets, which these pods ask for: {pods}"))
        .or(unused);
    let found = |text| Diagnostic::new(&rules::TICKETS_NOT_ENABLED, text).with_severity(Severity::Warning);
    let found = text.map(|text| Check::found(TICKETS, found(text)));
    (Vec::from_iter(found), Vec::from_iter(deployments.err()))
}

/// The findings on the broker, and on the pods that should ask it, and what could not be read.
async fn of_broker(
    world: &World,
    webhook: &Pod,
    broker: &ServiceReference,
    without: Option<String>,
) -> (Vec<Check>, Vec<Unread>) {
    let authorities = mounted(webhook, CA_VOLUME);
    let (version, replica, own, authorities) = tokio::join!(
        world.get::<Info>("/version"),
        pod_behind(world, broker),
        OwnDeployment::read(world, broker),
        OptionFuture::from(authorities.as_deref().map(|path| world.find::<ConfigMap>(path))),
    );
    let (mut checks, mut unread) = (Vec::new(), Vec::new());
    checks.extend(without.map(|pods| {
        let why = "they are older than their annotation, or the webhook leaves their namespace out";
        let text = format!("these pods ask for tickets or a keytab and have no sidecar, because {why}: {pods}");
        Check::breach(TICKETS, &rules::TICKETS_NOT_INJECTED, text)
    }));
    if !has_kubernetes(world, NATIVE_SIDECARS).await {
        let text = format!("pods that ask for tickets are refused: they need Kubernetes 1.{NATIVE_SIDECARS} or later");
        let fix = "Upgrade the cluster, or set `tickets.enabled=false` in the chart of the webhook.";
        checks.push(Check::found(TICKETS, Diagnostic::new(&rules::KUBERNETES_VERSION, text).with_fix(fix)));
    }
    if let Some((text, _)) = own.without_namespace("broker", broker) {
        checks.push(Check::breach(TICKETS, &rules::BROKER_UNREACHABLE, text));
    } else if let Ok(Some(workload)) = &own.workload
        && let Some(found) = worst::absence(workload, &own.nodes, &own.events)
    {
        checks.extend(own.events.not_read());
        checks.push(Check::found(TICKETS, Diagnostic { object: workload.title(), ..found }));
    }
    unread.extend([version.err(), replica.as_ref().err().cloned()].into_iter().flatten());
    let replica = replica.ok().flatten();
    let metrics = OptionFuture::from(replica.as_ref().map(|pod| metrics(world, pod))).await.flatten();
    unread.extend(metrics.as_ref().and_then(|metrics| metrics.as_ref().err()).cloned());
    unread.extend(match own {
        OwnDeployment { workload: Err(unread), .. }
        | OwnDeployment { namespace: Err(unread), workload: Ok(None), .. } => Some(unread),
        own => unread_nodes(world, &own.nodes).await,
    });
    let images = [image(webhook), argument(webhook, "tickets-image"), replica.as_ref().and_then(image)];
    let releases: BTreeSet<&str> = images.iter().flatten().filter_map(|image| release(image)).collect();
    if releases.len() > 1 {
        let text =
            format!("webhook, sidecar and broker are of different releases: {}", first_five(images.iter().flatten()));
        checks.push(Check::breach(TICKETS, &rules::BROKER_VERSION, text));
    }
    let metrics = metrics.and_then(Result::ok);
    match authorities {
        Some(Ok(authorities)) => checks.extend(trust(authorities.as_ref(), metrics.as_deref(), world.taken())),
        Some(Err(error)) => unread.push(error),
        None => {}
    }
    checks.extend(metrics.iter().flat_map(|metrics| of_domain(broker, metrics)));
    // A user who may not read these gets no other line: without referrals and keytabs there is nothing to say.
    if let Some(path) = replica.as_ref().and_then(|pod| mounted(pod, "config"))
        && let (Ok(Some(configuration)), Ok(specs)) = tokio::join!(world.find::<ConfigMap>(&path), specs(world))
    {
        checks.extend(configured(&configuration, &specs));
    }
    (checks, unread)
}

/// The path of the ConfigMap in a volume of a pod; `None` where it has none.
fn mounted(pod: &Pod, volume: &str) -> Option<String> {
    let namespace = pod.metadata.namespace.as_ref()?;
    let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
    let mounted = volumes.iter().find(|mounted| mounted.name == volume)?;
    let name = Some(&mounted.config_map.as_ref()?.name).filter(|name| is_dns_subdomain(name))?;
    Some(format!("/api/v1/namespaces/{namespace}/configmaps/{name}"))
}

/// Whether new sidecars trust the broker, by the CAs that the webhook gives them: a pod keeps the CAs that it was created with.
fn trust(authorities: Option<&ConfigMap>, metrics: Option<&str>, now: Timestamp) -> Vec<Check> {
    let untrusted = |text| Check::breach(TICKETS, &rules::BROKER_UNTRUSTED, text);
    let pem = authorities.and_then(|map| map.data.as_ref()?.get("ca.crt")).map_or(&[][..], |pem| pem.as_bytes());
    let Some(end) = certificate::end(pem) else {
        return vec![untrusted("new sidecars trust no broker: the webhook has no CA to give them")];
    };
    let mut checks = vec![certificate::until(end, now, "the CA that new sidecars trust", 30)];
    let lacks =
        |authority| metrics.and_then(|metrics| certificate::has_authority(pem, metrics, authority)) == Some(false);
    if lacks(certificate::AUTHORITY) {
        let text = "new sidecars do not trust the broker: its certificate is signed by none of the CAs that the webhook gives them";
        checks.push(untrusted(text));
    } else if lacks(certificate::NEXT_AUTHORITY) {
        let text = "new sidecars do not trust the CA that the broker will sign with next: the webhook does not give it to them";
        let later = Diagnostic::new(&rules::BROKER_UNTRUSTED, text).with_severity(Severity::Warning);
        checks.push(Check::found(TICKETS, later));
    }
    checks
}

/// The pods that ask for tickets and have no sidecar.
fn without_sidecar(pods: &[Box<RawValue>]) -> Option<String> {
    let pods = pods.iter().filter_map(|json| ClusterPod::read(json).ok());
    let pods = pods.filter(|pod| missing_product(&pod.admission).is_some() && !pod.has_ended()).map(|pod| {
        let (namespace, name) = pod.place();
        format!("{namespace}/{name}")
    });
    Some(first_five(pods)).filter(|names| !names.is_empty())
}

/// A domain in the broker's configuration, those that it may ask for services of others, and whether it gives keytabs.
#[derive(Deserialize)]
struct BrokerDomain {
    name: String,
    #[serde(default)]
    referrals: Vec<BrokerDomain>,
    #[serde(default)]
    keytabs: bool,
}

/// The domains of which the broker gives keytabs, and what credential specs list that it does not give.
fn configured(configuration: &ConfigMap, specs: &[Value]) -> Vec<Check> {
    let text = configuration.data.as_ref().and_then(|data| data.get("config.yaml"));
    let read = text.and_then(|text| serde_saphyr::from_str::<BTreeMap<String, Vec<BrokerDomain>>>(text).ok());
    let domains = read.and_then(|mut read| read.remove("domains")).unwrap_or_default();
    let on = first_five(domains.iter().filter(|domain| domain.keytabs).map(|domain| &domain.name));
    let on = (!on.is_empty()).then(|| Check::pass(TICKETS, format!("the broker gives keytabs of {on}")));
    let found = |spec: &Value| {
        let name = spec.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let dns = DomainJoinConfig::of_spec(spec).dns_name.unwrap_or_default();
        let own = domains.iter().find(|domain| domain.name.eq_ignore_ascii_case(dns));
        [own.and_then(|own| elsewhere(name, spec, own)), without_keytab(name, spec, own)]
    };
    on.into_iter().chain(specs.iter().flat_map(found).flatten()).collect()
}

/// A credential spec that lists names for a keytab, where its domain gives none.
fn without_keytab(name: &str, spec: &Value, own: Option<&BrokerDomain>) -> Option<Check> {
    list_of(spec, Verb::Export).filter(|_| own.is_none_or(|own| !own.keytabs))?;
    let (rule, why) = match own {
        Some(own) => (&rules::KEYTAB_DOMAIN, format!("the broker gives none of {}", own.name)),
        None => (&rules::TICKET_DOMAIN, "the broker does not have its domain".to_owned()),
    };
    let text = format!("{name} lists names for a keytab, and {why}");
    Some(Check::found(TICKETS, Diagnostic::new(rule, text).with_severity(Severity::Warning).with_fix(rule.remedy)))
}

/// Where the broker follows referrals: the listed services whose hosts are in no domain that it asks.
fn elsewhere(name: &str, spec: &Value, own: &BrokerDomain) -> Option<Check> {
    let Ok(Services::Listed(services)) = Services::of(Verb::Use, list_of(spec, Verb::Use)) else { return None };
    let is_asked = |service: &&String| {
        let mut asked = own.referrals.iter().chain([own]);
        asked.any(|domain| is_in(service, &domain.name.to_ascii_lowercase()))
    };
    let outside = first_five(services.iter().filter(|service| !is_asked(service)));
    let text = format!("{name} lists services in no domain that the broker asks for its tickets: {outside}");
    let fix = format!("Add their domain to `referrals` of {}, unless an account of it has these names.", own.name);
    let found = Diagnostic::new(&rules::TICKET_REFERRAL, text).with_severity(Severity::Warning).with_fix(fix);
    (!own.referrals.is_empty() && !outside.is_empty()).then(|| Check::found(TICKETS, found))
}

/// The refusals of the broker for which its domain is to blame, by its metrics.
fn of_domain(broker: &ServiceReference, metrics: &str) -> impl Iterator<Item = Check> {
    let counts = metrics.lines().filter_map(|line| line.strip_prefix(REFUSED)?.split_once("\"} "));
    counts.filter(|(_, count)| *count != "0").filter_map(|(id, count)| {
        let rule = OF_DOMAIN.into_iter().find(|rule| rule.id == id)?;
        // The cause may be gone: the metric counts since the start.
        let text = format!("the broker refused {count} requests since its start, because of the domain");
        let ServiceReference { namespace, name, .. } = broker;
        let fix =
            format!("It may be over: `kubectl logs deployment/{name} -n {namespace}` shows when each was, and why.");
        Some(Check::found(TICKETS, Diagnostic::new(rule, text).with_severity(Severity::Note).with_fix(fix)))
    })
}

//! The webhook, and all workloads that use GMSA: each with missing or failing pods, with the first cause; and the Windows nodes for them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ServiceReference;
use serde_json::Value;

use super::install::{
    DoctorInput, OwnDeployment, broker_of, narrowed, nodes, other_namespaces, services, specs, unread_nodes,
};
use crate::shared::{
    configured::Configured,
    output::first_five,
    rules::{self, Names},
    unread::{NEWER, Read, Remedy, because},
    walk::{
        events::Events,
        workload::{WorkloadTree, Workloads},
        worst,
    },
    webhook::reviewing,
    windows_build::{Build, LABEL},
    world::World,
};
use gmsa_core::{
    admission::pod::Pod,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const WEBHOOK: &str = "webhook";
pub(super) const WORKLOADS: &str = "workloads";
pub(super) const NODES: &str = "Windows nodes";

/// A check for each workload that has a problem, or one for all.
pub(super) async fn check(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    let narrowed = narrowed(world, asked).await;
    let scope = narrowed.as_ref().map(|(namespace, _)| namespace.as_str());
    let (pods, read, specs) = tokio::join!(world.pods(scope), Workloads::read(world, scope), specs(world));
    // Without pods their number is unknown.
    pods?;
    let Workloads { known: workloads, unread } = &read;
    let nodes = nodes(world, workloads.iter()).await;
    // Events are needed only if something fails.
    let is_broken = workloads.iter().any(|workload| worst::cause(workload, &nodes, &Events::default()).is_some());
    let events = if is_broken { Events::read(world, scope).await } else { Events::default() };
    let mut checks = Vec::new();
    if let Some((_, first)) = unread.first() {
        let kinds = first_five(unread.iter().map(|(kind, _)| kind.as_str()));
        let Check { about, result } = first.check(WORKLOADS);
        let result = result.map_err(|found| Diagnostic { object: kinds, ..found });
        checks.push(Check { about, result });
    }
    checks.extend(events.not_read());
    checks.extend(other_namespaces(WORKLOADS, narrowed.as_ref()));
    let have_pods = workloads.iter().any(|workload| workload.pods().next().is_some());
    let unread_nodes = unread_nodes(world, &nodes).await;
    checks.extend(unread_nodes.filter(|_| have_pods).map(|unread| unread.check(WORKLOADS)));
    let unparsed = workloads.iter().filter_map(WorkloadTree::unparsed);
    checks.extend(unparsed.map(|cause| because(WORKLOADS, &cause, Remedy::new(NEWER))));
    // ReplicaSets make the pods of a Deployment, and Jobs those of a CronJob: without these lists the pods are unknown.
    let is_known = |workload: &WorkloadTree| {
        workload.template.pod().is_some()
            && workload.kind.facts().below.is_none_or(|below| unread.iter().all(|(kind, _)| *kind != below))
    };
    for workload in workloads {
        let missing = || without_spec(workload, specs.as_ref().ok()?);
        let cause = is_known(workload).then(|| worst::cause(workload, &nodes, &events)).flatten();
        let found = match cause {
            // The webhook denies the permission before it looks for the credential spec.
            Some(found) if *found.rule == rules::NOT_AUTHORIZED => missing().or(Some(found)),
            // Running pods keep their contents, so they do not show that it is missing.
            found => found.or_else(missing),
        };
        checks.extend(found.map(|found| Check::found(WORKLOADS, Diagnostic { object: workload.title(), ..found })));
    }
    if checks.is_empty() {
        let text = match workloads.len() {
            0 => "no pod template uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, and has its pods".to_owned(),
            count => format!("{count} use GMSA, and have their pods"),
        };
        checks.push(Check::pass(WORKLOADS, text));
    }
    Ok(checks)
}

/// The finding that a credential spec of a workload does not exist.
fn without_spec(workload: &WorkloadTree, specs: &[Value]) -> Option<Diagnostic> {
    let exists =
        |name: &str| specs.iter().any(|spec| spec.pointer("/metadata/name").and_then(Value::as_str) == Some(name));
    let spec = workload.credential_specs().into_iter().find(|name| !exists(name))?;
    let is_of_windows = workload.template.pod().is_some_and(Pod::uses_gmsa);
    let kept = if is_of_windows { "pods that run keep theirs" } else { "pods that run lose their tickets" };
    let text = format!("cred spec {spec} does not exist: {kept}, and new ones are refused");
    let names = Names { spec: Some(&spec), ..Names::default() };
    Some(rules::found(&rules::SPEC_MISSING, text, &names))
}

/// A check of the Deployment behind each Service of a webhook.
pub(super) async fn of_webhook(world: &World) -> Read<Vec<Check>> {
    let webhooks = world.webhooks().await?;
    let mut checks = Vec::new();
    for service in services(world).await? {
        let own = OwnDeployment::read(world, service).await;
        if let Some((text, wait)) = own.without_namespace("webhook", service) {
            checks.push(gone(service, &text, wait, webhooks));
            continue;
        }
        let workload = match &own.workload {
            Ok(Some(workload)) => workload,
            Ok(None) => continue,
            Err(unread) => {
                checks.push(unread.check(WEBHOOK));
                continue;
            }
        };
        if own.is_scaled_to_zero() {
            checks.push(scaled_to_zero(workload, webhooks));
        } else if let Some(found) = worst::cause(workload, &own.nodes, &own.events) {
            checks.extend(own.events.not_read());
            checks.push(Check::found(WEBHOOK, Diagnostic { object: workload.title(), ..found }));
        } else if let Some(unread) = unread_nodes(world, &own.nodes).await {
            checks.push(unread.check(WEBHOOK));
        } else {
            let text =
                format!("{} has {} of {} pods, and they run", workload.title(), workload.has(), workload.wanted().0);
            checks.push(Check::pass(WEBHOOK, text));
        }
    }
    Ok(checks)
}

/// The pods that the API server refuses while the webhook does not answer.
fn refused(namespace: &str, webhooks: &[Configured]) -> String {
    let is_conditional = |found: &Configured| found.webhook.match_conditions.iter().flatten().next().is_some();
    if reviewing(webhooks).into_iter().all(is_conditional) {
        "every pod that uses GMSA is refused".to_owned()
    } else {
        format!("every pod outside of kube-system and {namespace} is refused")
    }
}

fn scaled_to_zero(workload: &WorkloadTree, webhooks: &[Configured]) -> Check {
    let text = format!("scaled to 0: {}", refused(&workload.namespace, webhooks));
    let scale = workload.target().command("scale deployment", &workload.name, " --replicas=2");
    let found = Diagnostic { object: workload.title(), ..Diagnostic::new(&rules::PODS_MISSING, text) };
    Check::found(WEBHOOK, found.fixed(scale.map(|scale| format!("{scale}."))))
}

/// The line for a deleted (or ending) namespace whose configurations remain, because they are cluster-scoped.
fn gone(service: &ServiceReference, text: &str, wait: &str, webhooks: &[Configured]) -> Check {
    let ServiceReference { namespace, name, .. } = service;
    let found = Diagnostic::new(&rules::WEBHOOK_GONE, format!("{text}: {}", refused(namespace, webhooks)));
    let is_of_service = |found: &&Configured| {
        let called = found.webhook.client_config.service.as_ref();
        called.is_some_and(|called| (&called.namespace, &called.name) == (namespace, name))
    };
    let remaining = || webhooks.iter().filter(is_of_service);
    let Some(install) = remaining().next().map(|found| found.installer.install_again()) else {
        return Check::found(WEBHOOK, found);
    };
    let configurations: BTreeSet<&str> = remaining().map(Configured::configuration).collect();
    // The chart puts `zz-` before the name of the release, and `-guard` behind it.
    let releases: BTreeSet<&str> = configurations.iter().map(|name| name.strip_prefix("zz-").unwrap_or(name)).collect();
    let guards: Vec<String> = releases.iter().map(|name| format!("{name}-guard {name}-guard-trial")).collect();
    let fix = format!(
        "{wait}{install} Or end the checks: `kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration --ignore-not-found {}` \
         and `kubectl delete validatingadmissionpolicybinding --ignore-not-found {}` (Kubernetes 1.30 and later).",
        Vec::from_iter(configurations).join(" "),
        guards.join(" ")
    );
    Check::found(WEBHOOK, found.with_fix(fix))
}

/// The Windows nodes, and their builds.
pub(super) async fn check_nodes(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    let nodes = world.windows_nodes().await?;
    let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes {
        let build = node.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL));
        *builds.entry(build.map_or("unknown build", String::as_str)).or_default() += 1;
    }
    let listed: Vec<String> = builds.iter().map(|(build, count)| format!("{count} of {build}")).collect();
    let listed = listed.join(", ");
    let known: Option<Vec<Build>> = builds.keys().map(|build| Build::of_label(build)).collect();
    let image = known.and_then(|builds| Build::image_for_all(builds.into_iter()));
    let needs_none = builds.is_empty() && has_linux_pods_alone(world, asked).await;
    Ok(vec![match (builds.len(), image) {
        (0, _) if needs_none => Check::pass(NODES, "there are none, and no pod template needs one"),
        (0, _) => Check::breach(NODES, &rules::WINDOWS_NODES, "there are none"),
        (1, _) => Check::pass(NODES, listed),
        (_, Some(image)) => Check::pass(NODES, format!("{listed}; all of them run images of {image}")),
        (_, None) => {
            let several = Diagnostic::new(&rules::WINDOWS_BUILD, format!("of several builds: {listed}"));
            Check::found(NODES, several.with_severity(Severity::Warning))
        }
    }])
}

/// Whether the webhook gives tickets to Linux pods, and no pod template uses GMSA on Windows.
async fn has_linux_pods_alone(world: &World, asked: &DoctorInput) -> bool {
    if broker_of(world).await.is_none() {
        return false;
    }
    let narrowed = narrowed(world, asked).await;
    let scope = narrowed.as_ref().map(|(namespace, _)| namespace.as_str());
    let Workloads { known, unread } = Workloads::read(world, scope).await;
    let uses_gmsa = |workload: &WorkloadTree| workload.template.pod().is_none_or(Pod::uses_gmsa);
    unread.is_empty() && !known.iter().any(uses_gmsa)
}

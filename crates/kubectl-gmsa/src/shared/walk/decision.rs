//! The webhooks' current decision about a pod of a template, made by the code of `check --live`, and whether the objects exist that it refers to.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;

use crate::shared::{
    admission::{NewPod, Reviewed},
    names,
    pods::ClusterPod,
    rules::{self, FixTarget, Names},
    unread::{Read, because, is_cause},
    walk::{
        tickets::{SpecFault, spec_fault},
        workload::WorkloadTree,
    },
    world::{World, is_about_use},
};
use gmsa_core::{
    admission::Denial,
    credspec::{SpecName, Verb},
    diagnostic::{Check, Diagnostic, Rule, Severity},
};

pub const TEMPLATE: &str = "template";
pub const PERMISSION: &str = "permission";

/// The steps: the credential specs of the template, and the permission of its service account.
pub async fn checks(world: &World, pod: &NewPod, target: FixTarget<'_>) -> anyhow::Result<Vec<Check>> {
    let namespace = &*pod.review().context("the pod template cannot be parsed")?.namespace;
    let parsed = pod.pod().context("there is no pod template")?;
    let denials = world.admit(pod, &Reviewed::ASSUMED).await?;
    let mut denials: Vec<Denial> = denials.into_iter().map(|found| found.denial).collect();
    let (mut services, mut unread) = (None, None);
    for (verb, spec) in parsed.wants().filter_map(|(verb, name)| Some((verb, SpecName::parse(name)?))) {
        match spec_fault(world, verb, spec).await {
            Ok(Some(SpecFault::Denial(denial))) => denials.push(denial),
            Ok(Some(SpecFault::NotListed(found))) => services = services.or(Some(found)),
            Ok(None) => {}
            Err(error) => unread = unread.or_else(|| Some(error.check(TEMPLATE))),
        }
    }
    let nearest = names::nearest_spec(world, &denials).await;
    let account = parsed.service_account();
    let line = |denial: &Denial, about| {
        if let Some((cause, remedy)) = world.unread_fact(denial, namespace) {
            return because(about, cause, remedy);
        }
        let text = match denial {
            Denial::NotAuthorized { verb, spec, .. } => {
                format!("{namespace}:{account} may not {} {spec}", verb.as_str())
            }
            _ => denial.to_string(),
        };
        let nearest = nearest.as_deref();
        let names = Names { target: Some(target), nearest, ..Names::of_denied(denial, parsed, namespace) };
        Check::found(about, rules::found(denial.rule(), text, &names))
    };
    let of_template = denials.iter().find(|denial| !is_about_use(denial)).map(|denial| line(denial, TEMPLATE));
    let of_permission = denials.iter().find(|denial| is_about_use(denial)).map(|denial| line(denial, PERMISSION));
    let specs: BTreeSet<&str> = parsed.slots().filter_map(|slot| slot.name).chain(parsed.asks_tickets_of()).collect();
    let specs = Vec::from_iter(specs).join(", ");
    let mut checks = Vec::new();
    let class = pod.json.pointer("/spec/runtimeClassName").and_then(Value::as_str);
    let is_missing = world.runtime_class(class).await.map(|found| found == Some(None));
    let class = is_missing.map(|is_missing| class.filter(|_| is_missing).map(missing_class));
    let class = finding_or_skip(class, "runtime class", &mut checks);
    let found = class.or(services).map(|found| Check::found(TEMPLATE, found));
    // A cause precedes what could not be checked.
    let template: Vec<Check> = [of_template, found, unread].into_iter().flatten().collect();
    let template = template.iter().find(|check| is_cause(check)).or(template.first()).cloned();
    checks.push(template.unwrap_or_else(|| Check::pass(TEMPLATE, format!("names {specs}"))));
    if checks.iter().any(is_cause) {
        return Ok(checks);
    }
    let no_account = missing_account(world, namespace, account).await;
    let no_account = finding_or_skip(no_account, "service account", &mut checks);
    let permission = no_account.map(|found| Check::found(PERMISSION, found)).or(of_permission);
    let of_slots = parsed.uses_gmsa().then_some(Verb::Use);
    let verbs: BTreeSet<&str> = parsed.wants().map(|(verb, _)| verb).chain(of_slots).map(Verb::as_str).collect();
    let verbs = Vec::from_iter(verbs).join(" and ");
    let allowed = || Check::pass(PERMISSION, format!("{namespace}:{account} may {verbs} {specs}"));
    checks.push(permission.unwrap_or_else(allowed));
    Ok(checks)
}

/// The finding; for a failed read, adds its `skip` line to `checks`.
pub(super) fn finding_or_skip(
    read: Read<Option<Diagnostic>>,
    about: &'static str,
    checks: &mut Vec<Check>,
) -> Option<Diagnostic> {
    read.unwrap_or_else(|unread| {
        checks.push(unread.check(about));
        None
    })
}

/// The finding that the namespace is being deleted, so no pod can be created in it.
pub async fn ending_namespace(world: &World, namespace: &str) -> Option<Diagnostic> {
    // Users of one namespace often may not read it. The event of a refused pod says the same.
    world.namespace(namespace).await.ok()??.metadata.deletion_timestamp?;
    let text = format!("{namespace} is being deleted: nothing is created in it any more");
    let fix = format!(
        "Use another namespace. `kubectl get namespace {namespace} -o jsonpath='{{.status.conditions}}'` says what it waits for."
    );
    Some(Diagnostic::new(&rules::NAMESPACE_UNUSABLE, text).with_fix(fix))
}

/// The finding that a service account does not exist. Among manifests it is a warning, because another file may create it.
pub async fn missing_account(world: &World, namespace: &str, account: &str) -> Read<Option<Diagnostic>> {
    let (end, severity) = if world.has_cluster() {
        (": the API server refuses the pod", Severity::Error)
    } else {
        (" among the manifests", Severity::Warning)
    };
    let text = format!("there is no service account {account:?} in namespace {namespace:?}{end}");
    let names = Names { namespace: Some(namespace), service_account: Some(account), ..Names::default() };
    let found = || rules::found(&rules::SERVICE_ACCOUNT_MISSING, text, &names).with_severity(severity);
    Ok(world.is_account_missing(namespace, account).await?.then(found))
}

/// The finding that the runtime class of this name does not exist.
pub fn missing_class(name: &str) -> Diagnostic {
    let text = format!("there is no runtime class {name:?}: the API server refuses the pod");
    rules::found(&rules::RUNTIME_CLASS_MISSING, text, &Names { runtime_class: Some(name), ..Names::default() })
}

/// The rules that [`checks`] has ruled out, even if a later step reports them.
const CAUSE_GONE: [&Rule; 6] = [
    &rules::NOT_AUTHORIZED,
    &rules::SPEC_MISSING,
    &rules::SPEC_UNUSABLE,
    &rules::INVALID_SPEC_NAME,
    &rules::INVALID_SERVICE_ACCOUNT,
    &rules::SERVICE_ACCOUNT_MISSING,
];

/// Refusals for which a check of the template does not show whether their cause is gone.
const CAUSE_UNCHECKED: [&Rule; 3] = [&rules::WEBHOOK_UNREACHABLE, &rules::WEBHOOK_FAILING, &rules::POD_REFUSED];

/// Adds to a refusal when the controller tries again: with growing delays, at most 1000 seconds (`DefaultTypedControllerRateLimiter` of
/// client-go). The causes in [`CAUSE_GONE`] no longer exist.
pub fn retried_by_controller(created: Check, workload: &WorkloadTree) -> Check {
    let Check { about, result: Err(found) } = created else { return created };
    let verb = format!("rollout restart {}", workload.kind.as_str().to_ascii_lowercase());
    let restart = workload.target().command(&verb, &workload.name, "").filter(|_| workload.kind.rolls_out());
    let restart = restart.map(|command| format!(", or at once after {command}")).unwrap_or_default();
    let again = format!("tries again by itself within 17 minutes{restart}.");
    let fix = match &found.fix {
        _ if CAUSE_GONE.contains(&found.rule) => format!("A pod would be admitted now. Its controller {again}"),
        Some(fix) if CAUSE_UNCHECKED.contains(&found.rule) => {
            format!("{fix} The controller of the workload then {again}")
        }
        _ => return Check::found(about, found),
    };
    Check::found(about, found.with_fix(fix))
}

/// The pod as its controller would create it: JSON without the contents of named slots.
pub fn as_created(pod: &ClusterPod) -> anyhow::Result<Value> {
    let mut json = serde_json::to_value(&pod.object)?;
    for slot in pod.admission.slots().filter(|slot| slot.name.is_some()) {
        if let Some(options) = json.pointer_mut(&slot.pointer()).and_then(Value::as_object_mut) {
            options.remove("gmsaCredentialSpec");
        }
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new denial is in [`CAUSE_GONE`] if [`checks`] always shows its cause, otherwise here.
    #[test]
    fn each_denial_is_ruled_out_or_listed() {
        let others: Vec<&str> =
            Denial::RULES.iter().filter(|rule| !CAUSE_GONE.contains(rule)).map(|rule| rule.id).collect();
        let known = "unexpected-kind credential-spec-wrong unexpected-operation no-object invalid-namespace too-many-slots \
            too-many-specs patch-too-large spec-unreadable contents-without-name authorization-failed contents-differ \
            name-without-contents modified tickets-impossible tickets-not-enabled tickets-unavailable";
        assert_eq!(others.join(" "), known);
    }
}

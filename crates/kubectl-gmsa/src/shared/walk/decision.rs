//! The webhooks' current decision about a pod of a template, made by the code of `check --live`, and whether its service account exists.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;

use crate::shared::{
    admission::{NewPod, Reviewed},
    credspecs::without_tickets,
    names,
    pods::ClusterPod,
    rules::{self, FixTarget, Names},
    unread::{Read, because, is_cause},
    walk::workload::WorkloadTree,
    world::{Admission, World, is_about_use},
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    admission::{Denial, SpecFact, pod::Pod},
    credspec::{SpecName, Verb},
    diagnostic::{Check, Diagnostic, Rule},
};

pub const TEMPLATE: &str = "template";
pub const PERMISSION: &str = "permission";

/// The steps: the credential specs of the template, and the permission of its service account.
pub async fn checks(world: &World, pod: &NewPod, target: FixTarget<'_>) -> anyhow::Result<Vec<Check>> {
    let namespace = &*pod.review().context("the pod template cannot be parsed")?.namespace;
    let parsed = pod.pod().context("there is no pod template")?;
    let Admission { denials, others, .. } = world.admit(pod, &Reviewed::ASSUMED).await?;
    let mut denials: Vec<Denial> = denials.into_iter().map(|found| found.denial).chain(others).collect();
    denials.extend(of_tickets(world, parsed).await);
    let nearest = match denials.iter().find(|denial| matches!(denial, Denial::SpecMissing(_))) {
        Some(missing) => names::nearest_spec(world, missing).await,
        None => None,
    };
    let line = |denial: &Denial, about| match world.lacking(denial, namespace) {
        Some((cause, remedy)) => because(about, cause, remedy),
        None => denied(denial, parsed, about, namespace, (target, nearest.as_deref())),
    };
    let of_template = denials.iter().find(|denial| !is_about_use(denial)).map(|denial| line(denial, TEMPLATE));
    let of_permission = denials.iter().find(|denial| is_about_use(denial)).map(|denial| line(denial, PERMISSION));
    let specs: BTreeSet<&str> = parsed.slots().filter_map(|slot| slot.name).chain(parsed.asks_tickets_of()).collect();
    let specs = Vec::from_iter(specs).join(", ");
    let mut checks = Vec::new();
    let class = finding_or_skip(missing_class(world, &pod.json).await, "runtime class", &mut checks);
    let services = if of_template.is_none() { without_services(world, parsed).await } else { Ok(None) };
    let services = finding_or_skip(services, "services", &mut checks);
    // A missing class precedes a denial that could not be checked.
    let template = of_template.clone().filter(is_cause);
    let template = template.or_else(|| class.or(services).map(|found| Check::found(TEMPLATE, found))).or(of_template);
    checks.push(template.unwrap_or_else(|| Check::pass(TEMPLATE, format!("names {specs}"))));
    if checks.iter().any(is_cause) {
        return Ok(checks);
    }
    let account = parsed.service_account();
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

/// Why the credential specs of tickets cannot be used: only the broker reads them.
async fn of_tickets(world: &World, pod: &Pod) -> Option<Denial> {
    for spec in pod.asks_tickets_of().filter_map(SpecName::parse) {
        match world.spec(&spec).await.fact {
            SpecFact::Contents(_) => {}
            SpecFact::Missing => return Some(Denial::SpecMissing(spec)),
            SpecFact::Unusable => return Some(Denial::SpecUnusable(spec)),
            SpecFact::Failed(failure) => return Some(Denial::SpecUnreadable { spec, failure }),
        }
    }
    None
}

/// The finding that the owner of a credential spec has not opted in.
async fn without_services(world: &World, pod: &Pod) -> Read<Option<Diagnostic>> {
    for (verb, spec) in pod.wants().filter_map(|(verb, name)| Some((verb, SpecName::parse(name)?))) {
        let object: Option<Value> = world.find(&format!("{}/{spec}", collection())).await?;
        if let Some(found) = without_tickets(&spec, verb, &object.unwrap_or_default()) {
            let command = found.fix.as_deref().unwrap_or_default();
            let fix = format!("List them: `{command}`.");
            return Ok(Some(found.with_fix(fix)));
        }
    }
    Ok(None)
}

async fn missing_class(world: &World, pod: &Value) -> Read<Option<Diagnostic>> {
    let name = pod.pointer("/spec/runtimeClassName").and_then(Value::as_str);
    let text = || format!("there is no runtime class {:?}: the API server refuses the pod", name.unwrap_or_default());
    let is_missing = world.runtime_class(name).await? == Some(None);
    Ok(is_missing.then(|| rules::found(&rules::RUNTIME_CLASS_MISSING, text(), &Names::default())))
}

async fn missing_account(world: &World, namespace: &str, account: &str) -> Read<Option<Diagnostic>> {
    let text =
        || format!("there is no service account {account} in namespace {namespace}: the API server refuses the pod");
    let names = Names { namespace: Some(namespace), service_account: Some(account), ..Names::default() };
    let is_missing = world.lacks_account(namespace, account).await?;
    Ok(is_missing.then(|| rules::found(&rules::SERVICE_ACCOUNT_MISSING, text(), &names)))
}

/// `nearest` is the most similar name of an existing credential spec.
fn denied(
    denial: &Denial,
    pod: &Pod,
    about: &'static str,
    namespace: &str,
    (target, nearest): (FixTarget<'_>, Option<&str>),
) -> Check {
    let names = Names { target: Some(target), nearest, ..Names::of_denied(denial, pod, namespace) };
    let text = match denial {
        Denial::NotAuthorized { verb, spec, .. } => {
            format!("{namespace}:{} may not {} {spec}", pod.service_account(), verb.as_str())
        }
        _ => denial.to_string(),
    };
    Check::found(about, rules::found(denial.rule(), text, &names))
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

/// Says of a refusal when the controller tries again: with growing delays, at most 1000 seconds (`DefaultTypedControllerRateLimiter` of
/// client-go). The causes in [`CAUSE_GONE`] no longer exist.
pub fn not_up_to_date(created: Check, workload: &WorkloadTree) -> Check {
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
pub fn without_contents(pod: &ClusterPod) -> anyhow::Result<Value> {
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

//! One pod, or one pod template, of a manifest.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    admit::{Admission, admit},
    facts::FactFinder,
    fix,
    surroundings::Surroundings,
};
use crate::shared::output::{Place, Report};
use gmsa_cluster::manifests::Document;
use gmsa_core::admission::{
    Denial, Review,
    advice::{Advice, advise, advise_template},
    pod::{Pod, Slot, SlotRef, fields},
    workload::template_pointer,
};
use gmsa_core::diagnostic::{
    Diagnostic, Location, Position,
    rules::{self, Rule},
};

/// A pod to check, and its place in the manifests.
pub(super) struct CheckedPod<'d> {
    document: &'d Document,
    /// The place of the pod in the document, as a JSON Pointer: empty if it is the document.
    at: &'static str,
    pod: Value,
    namespace: String,
    object: String,
}

impl<'d> CheckedPod<'d> {
    /// The pod of a document; `None` where it has none, and where another object controls the workload.
    pub(super) fn of(document: &'d Document, namespace: &str) -> Option<Self> {
        let kind = document.kind.as_str();
        let group = document.group();
        let is_pod = kind == "Pod" && group.is_empty();
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let at = if is_pod { "" } else { template_pointer(&qualified)? };
        let value = &document.value;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let owners = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        if !is_pod && owners.into_iter().flatten().any(|owner| owner.get("controller") == Some(&Value::Bool(true))) {
            return None;
        }
        let name = text("/metadata/name").or_else(|| text("/metadata/generateName")).unwrap_or_default();
        let namespace = text("/metadata/namespace").unwrap_or(namespace).to_owned();
        let mut pod = value.pointer(at)?.clone();
        if !is_pod && let Some(pod) = pod.as_object_mut() {
            // As its controller does.
            pod.insert("metadata".to_owned(), json!({"generateName": format!("{name}-")}));
        }
        default_service_account_name(&mut pod);
        Some(Self { document, at, pod, object: format!("{kind} {namespace}/{name}"), namespace })
    }

    fn replicas(&self) -> Option<u64> {
        self.document.value.pointer("/spec/replicas").and_then(Value::as_u64)
    }

    fn line(&self, pointer: &str) -> u64 {
        self.document.line_of(&format!("{}{pointer}", self.at))
    }

    fn finding(&self, rule: &'static Rule, pointer: &str, message: impl Into<String>) -> Diagnostic {
        let Location { file, position } = self.document.location.clone();
        let position = position.map(|position| Position { line: self.line(pointer), ..position });
        Diagnostic {
            object: self.object.clone(),
            field: dotted(&format!("{}{pointer}", self.at)),
            ..Diagnostic::new(rule, message).at(Location { file, position })
        }
    }
}

/// Copies the deprecated `serviceAccount` to `serviceAccountName` where that is empty, as kube-apiserver does before it calls
/// a webhook.
fn default_service_account_name(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_empty = |value: &Value| value.is_null() || value == "";
    if spec.get("serviceAccountName").is_none_or(is_empty)
        && let Some(name) = spec.get("serviceAccount").filter(|name| !is_empty(name)).cloned()
    {
        spec.insert("serviceAccountName".to_owned(), name);
    }
}

/// A JSON Pointer as people write a field: `/spec/containers/0/name` is `spec.containers[0].name`.
fn dotted(pointer: &str) -> String {
    let mut field = String::with_capacity(pointer.len());
    for step in pointer.split('/').skip(1) {
        if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            field.extend(["[", step, "]"]);
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(step);
        }
    }
    field
}

/// Checks a pod; returns it as it would be stored.
pub(super) async fn check(
    checked: &CheckedPod<'_>,
    finder: &mut FactFinder,
    surroundings: &mut Surroundings,
    report: &mut Report,
) -> Option<Value> {
    match try_check(checked, finder, surroundings, report).await {
        Ok(stored) => stored,
        Err(error) => {
            report.findings.push(checked.finding(&rules::NOT_A_POD, "", format!("{error:#}")));
            None
        }
    }
}

async fn try_check(
    checked: &CheckedPod<'_>,
    finder: &mut FactFinder,
    surroundings: &mut Surroundings,
    report: &mut Report,
) -> anyhow::Result<Option<Value>> {
    let json = checked.pod.to_string();
    let review = Review::of_pod(&checked.namespace, &json)?;
    let Some(pod) = &review.object else { return Ok(None) };
    if !pod.uses_gmsa() && !pod.has_too_many_slots() {
        return Ok(None);
    }
    let Admission { stored, denials } = admit(&review, &checked.pod, finder).await?;
    let of_the_pod = denials.iter().find(|found| found.slot.is_none()).map(|found| &found.denial);
    for slot in pod.slots().filter(Slot::uses_gmsa) {
        let own = denials.iter().find(|found| found.slot == Some((slot.kind, slot.index))).map(|found| &found.denial);
        explain(checked, pod, &slot, own, of_the_pod, report);
    }
    if let Some(denial) = of_the_pod {
        report.findings.push(checked.finding(denial.rule(), "/spec", denial.to_string()));
    }
    // Of fields that cannot be read, the API server refuses the pod.
    let unsupported = fields::read(&json).unwrap_or_default();
    for advice in advise(pod).into_iter().chain(advise_template(pod, &unsupported, checked.replicas())) {
        report.findings.push(advised(checked, advice));
    }
    refers(checked, pod, surroundings, report).await;
    if !pod.is_linux() && !pod.pins_build() {
        let text =
            "no node.kubernetes.io/windows-build selector: where nodes differ in build, the container may not start";
        let note = checked.finding(&rules::WINDOWS_BUILD, "/spec", text);
        report.findings.push(Diagnostic { fix: Some(fix::BUILD.to_owned()), ..note });
    }
    // A pod that is refused is not stored: it stays as it is written.
    Ok((checked.at.is_empty() && denials.is_empty()).then_some(stored))
}

/// Reports the result for one slot, which its own denial decides, or that of the pod.
fn explain(
    checked: &CheckedPod<'_>,
    pod: &Pod,
    slot: &Slot<'_>,
    own: Option<&Denial>,
    of_the_pod: Option<&Denial>,
    report: &mut Report,
) {
    let denial = own.or(of_the_pod);
    let field = if slot.name.is_some() && !matches!(denial, Some(Denial::ContentsDiffer { .. })) {
        "gmsaCredentialSpecName"
    } else {
        "gmsaCredentialSpec"
    };
    let pointer = format!("{}/{field}", slot.pointer());
    let result = match denial {
        Some(denial) => format!("refused, {}: {}", denial.code(), denial.reason()),
        None if slot.contents.is_some() => "carries its contents already".to_owned(),
        None => "gets its contents".to_owned(),
    };
    report.places.push(Place {
        file: Arc::clone(&checked.document.location.file),
        line: checked.line(&pointer),
        object: checked.object.clone(),
        slot: if checked.at.is_empty() || slot.kind.field().is_some() {
            SlotRef::from(slot).to_string()
        } else {
            "pod template".to_owned()
        },
        credential_spec: slot.name.map(str::to_owned),
        admitted: denial.is_none(),
        result,
    });
    if let Some(denial) = own {
        let fix = fix::fix(denial, slot, &checked.namespace, pod.service_account());
        let finding = checked.finding(denial.rule(), &pointer, denial.to_string());
        report.findings.push(Diagnostic { fix, ..finding });
    }
}

fn advised(checked: &CheckedPod<'_>, advice: Advice) -> Diagnostic {
    let finding = checked.finding(advice.rule, &advice.pointer, advice.text);
    Diagnostic { fix: advice.fix.map(str::to_owned), ..finding.with_severity(advice.severity) }
}

/// What is wrong with the objects that the pod refers to.
async fn refers(checked: &CheckedPod<'_>, pod: &Pod, surroundings: &mut Surroundings, report: &mut Report) {
    let (namespace, account) = (&checked.namespace, pod.service_account());
    if let Some((place, severity)) = surroundings.lacks_service_account(namespace, account).await {
        let text = format!("there is no service account {account:?} in namespace {namespace:?} {place}");
        let finding = checked.finding(&rules::SERVICE_ACCOUNT_MISSING, "/spec/serviceAccountName", text);
        let fix = format!("kubectl create serviceaccount {account} --namespace {namespace}");
        report.findings.push(finding.with_severity(severity).with_fix(fix));
    }
    let class = checked.pod.pointer("/spec/runtimeClassName").and_then(Value::as_str).unwrap_or_default();
    let handler = if class.is_empty() { None } else { surroundings.handler(class).await };
    // `runhcs-wcow-hypervisor` is the handler of containerd (containerd: cri, Windows).
    if let Some(handler) = handler.filter(|handler| handler.contains("hypervisor")) {
        let text = format!("runtime class {class:?} isolates containers by Hyper-V (handler {handler:?})");
        report.findings.push(checked.finding(&rules::HYPER_V, "/spec/runtimeClassName", text));
    }
}

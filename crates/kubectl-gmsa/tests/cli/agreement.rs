//! `check` says of a pod what the server says of its review: the golden cases, as manifests. `why` says of a workload what `check` says: those of the
//! recorded clusters.

use std::{fs, path::Path};

use gmsa_core::admission::workload::Kind;
use gmsa_test_support::golden;
use serde_json::{Value, json};

use super::{
    cases::{self, Case},
    finished, run,
};

/// What the webhooks say to a new pod.
#[derive(Debug)]
enum Said<'a> {
    Allowed,
    Denied(&'a str),
}

/// The first denial, if there is one; `None` where it is not known: the answers to a pod that the mutating webhook changes do
/// not say what the validating one makes of it then.
fn said(answers: &[(String, Value)]) -> Option<Said<'_>> {
    let answer =
        |name: &str| answers.iter().find(|(webhook, _)| webhook == name).map(|(_, answer)| &answer["response"]);
    let mutated = answer("mutate")?;
    let decisive = if mutated["allowed"] == false {
        mutated
    } else {
        answer("validate").filter(|_| mutated.get("patch").is_none())?
    };
    Some(decisive["status"]["message"].as_str().map_or(Said::Allowed, Said::Denied))
}

/// What the API server refuses by itself, or the broker when it is asked for tickets: no webhook decides it.
const NOT_OF_WEBHOOKS: [&str; 4] = ["ephemeral-containers", "keytab-names", "ticket-services", "ticket-sidecar"];

#[test]
fn check_and_the_server_agree_on_every_golden_case() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for case in golden::cases() {
        let Ok(review) = serde_json::from_slice::<Value>(&case.review) else { continue };
        let request = &review["request"];
        let namespace = request["namespace"].as_str().unwrap_or_default();
        if request["operation"] != "CREATE" || request["kind"]["kind"] != "Pod" || namespace.is_empty() {
            continue;
        }
        let Some(expected) = said(&case.answers) else { continue };
        let mut pod = request["object"].clone();
        let Some(fields) = pod.as_object_mut() else { continue };
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!("Pod"));
        let cluster = case.cluster.to_str().unwrap();
        let arguments = ["check", "-f", "-", "--state", cluster, "--namespace", namespace, "-o", "json"];
        let output = run(Path::new("."), &arguments, pod.to_string().as_bytes());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let errors: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| {
                finding["level"] == "error" && !NOT_OF_WEBHOOKS.iter().any(|rule| finding["rule"] == *rule)
            })
            .map(|finding| finding["message"].as_str().unwrap())
            .collect();
        let agrees = match &expected {
            Said::Allowed => errors.is_empty(),
            Said::Denied(message) => errors.contains(message),
        };
        if !agrees {
            wrong.push(format!("{}:\nthe server: {expected:?}\ncheck: {errors:?}", case.name));
        }
        compared += 1;
    }
    assert!(compared > 60, "only {compared} cases were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rules of the lines or findings that name a cause.
fn causes(found: &Value, is_meant: impl Fn(&Value) -> bool) -> Vec<&str> {
    let is_cause = |one: &&Value| (one["level"] == "error" || one["status"] == "fail") && is_meant(one);
    found.as_array().unwrap().iter().filter(is_cause).map(|cause| cause["rule"].as_str().unwrap()).collect()
}

/// What `check` says of the webhooks and the namespace of a pod, of which `why` has lines of their own.
const NOT_OF_TEMPLATES: [&str; 3] = ["name-without-contents", "namespace-unusable", "tickets-not-enabled"];

#[test]
fn why_and_check_agree_on_every_recorded_workload() {
    let (mut compared, mut found, mut wrong) = (0, 0, Vec::new());
    for entry in fs::read_dir(cases::tests().join("cli/recorded")).unwrap() {
        let file = entry.unwrap().path();
        let case = Case::read(&file);
        let report = |command: &str| -> Value {
            let output = finished(case.typed(&format!("{command} -o json")), b"");
            serde_json::from_slice(&output.stdout).unwrap()
        };
        for command in &case.commands {
            let target = command.strip_prefix("kubectl gmsa why ").and_then(|rest| rest.strip_suffix(" -n shop"));
            let Some((kind, name)) = target.and_then(|target| target.split_once('/')) else { continue };
            let Some(kind) = Kind::of_word(kind) else { continue };
            let (why, check) = (report(command), report("kubectl gmsa check -n shop"));
            if why.get("error").is_some() {
                continue;
            }
            let of_why = causes(&why["checks"], |line| line["about"] == "template" || line["about"] == "permission");
            let is_meant = |found: &Value| {
                let is_other = NOT_OF_TEMPLATES.iter().any(|rule| found["rule"] == *rule);
                found["object"] == format!("{} shop/{name}", kind.as_str()) && !is_other
            };
            let of_check = causes(&check["findings"], is_meant);
            if of_why.first() != of_check.first() {
                wrong.push(format!("{}: {command}: {of_why:?}, check: {of_check:?}", file.display()));
            }
            compared += 1;
            found += of_why.len();
        }
    }
    assert!(compared > 60 && found > 5, "only {compared} were compared, {found} with a cause");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! `check` says of a pod what the server says of its review: the golden cases, as manifests.

#[path = "../support/golden.rs"]
#[expect(dead_code, reason = "shared with the tests of the contract, which use more of it")]
mod golden;

use std::path::Path;

use serde_json::{Value, json};

use super::run;

/// What the webhooks say to a new pod: the first denial, and whether it is known. The answers to a pod that the mutating
/// webhook changes do not say what the validating one makes of it then.
fn denial(answers: &[(String, Value)]) -> Option<Option<&str>> {
    let answer =
        |name: &str| answers.iter().find(|(webhook, _)| webhook == name).map(|(_, answer)| &answer["response"]);
    let mutated = answer("mutate")?;
    if mutated["allowed"] == false {
        return Some(mutated["status"]["message"].as_str());
    }
    let validated = answer("validate").filter(|_| mutated.get("patch").is_none())?;
    Some(validated["status"]["message"].as_str())
}

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
        let Some(expected) = denial(&case.answers) else { continue };
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
            .filter(|finding| finding["level"] == "error")
            .map(|finding| finding["message"].as_str().unwrap())
            .collect();
        let agrees = expected.map_or(errors.is_empty(), |message| errors.contains(&message));
        if !agrees {
            wrong.push(format!("{}:\nthe server: {expected:?}\ncheck: {errors:?}", case.name));
        }
        compared += 1;
    }
    assert!(compared > 60, "only {compared} cases were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

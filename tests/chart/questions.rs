//! The form of Rancher's Apps: it asks for values that the chart has, and submitted as it is, it changes nothing.

use std::fs;

use serde_json::{Value, json};

use crate::{
    helm::{CHART, Helm},
    refused::unframed,
};

/// The questions and those below them.
fn questions() -> Vec<Value> {
    let form: Value = serde_saphyr::from_str(&fs::read_to_string(format!("{CHART}/questions.yaml")).unwrap()).unwrap();
    let mut found = Vec::new();
    for question in form["questions"].as_array().unwrap() {
        found.push(question.clone());
        found.extend(question["subquestions"].as_array().into_iter().flatten().cloned());
    }
    found
}

/// `value` at the path `a.b.c` of `values`.
fn put(values: &mut Value, path: &str, value: &Value) {
    let at = path.split('.').fold(values, |at, key| {
        if at.is_null() {
            *at = json!({});
        }
        &mut at[key]
    });
    *at = value.clone();
}

fn rendered(values: &Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    fs::write(&file, values.to_string()).unwrap();
    Helm::new().template(["--namespace", "windows", "--kube-version", "1.36", "--values", file.to_str().unwrap()])
}

#[test]
fn a_form_submitted_as_it_is_changes_nothing() {
    let mut submitted = json!({});
    for question in questions() {
        if !question["default"].is_null() && question["show_if"].is_null() {
            put(&mut submitted, question["variable"].as_str().unwrap(), &question["default"]);
        }
    }
    assert_eq!(rendered(&submitted), fs::read_to_string("tests/chart/rendered/defaults.yaml").unwrap());
}

#[test]
fn every_question_is_about_a_value_of_its_type() {
    let schema: Value =
        serde_json::from_str(&fs::read_to_string(format!("{CHART}/values.schema.json")).unwrap()).unwrap();
    for question in questions() {
        let variable = question["variable"].as_str().unwrap();
        let property = variable.split('.').fold(&schema, |at, key| &at["properties"][key]);
        let kind = match question["type"].as_str().unwrap() {
            "int" => "integer",
            "boolean" => "boolean",
            "string" | "multiline" | "enum" => "string",
            other => panic!("{variable}: {other}"),
        };
        let types = property["type"].as_array().unwrap_or_else(|| panic!("{variable} is no value"));
        assert!(types.contains(&json!(kind)), "{variable}: {types:?}");
    }
}

#[test]
fn every_choice_renders() {
    for question in questions() {
        for option in question["options"].as_array().into_iter().flatten() {
            let mut submitted = json!({});
            put(&mut submitted, question["variable"].as_str().unwrap(), option);
            assert!(rendered(&submitted).contains("kind: Deployment"), "{question} {option}");
        }
    }
}

/// What the form calls required is what the chart refuses to go without.
#[test]
fn what_is_required_is_what_the_chart_refuses_to_miss() {
    let full: Value =
        serde_saphyr::from_str(&fs::read_to_string("tests/chart/values/rancher-form.yaml").unwrap()).unwrap();
    let required = questions().into_iter().filter(|question| question["required"] == true);
    let below_credential: Vec<_> = required
        .map(|question| question["variable"].as_str().unwrap().to_owned())
        .filter(|variable| variable.starts_with("credential."))
        .collect();
    assert_eq!(below_credential.len(), 9);
    for variable in below_credential {
        let mut submitted = full.clone();
        put(&mut submitted, &variable, &json!(""));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.yaml");
        fs::write(&file, submitted.to_string()).unwrap();
        let refused = Helm::new().refuses(["template", "gmsa", CHART, "--values", file.to_str().unwrap()]);
        let because =
            if variable.contains(".hostAccountConfig.") { "hostAccountConfig is set" } else { "enabled is true" };
        assert_eq!(unframed(&refused), format!("credential.{because}, but {variable} is empty"));
    }
}

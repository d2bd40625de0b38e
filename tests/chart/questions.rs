//! The form of Rancher's Apps: it asks for values that the chart has, and submitted as it is, it changes nothing.

use serde_json::{Value, json};

use crate::{
    files::{text, values, yaml},
    helm::{CHART, Helm},
    refused::unframed,
    rendered::{put, rendered_with},
};

/// The questions and those below them.
fn questions() -> Vec<Value> {
    let form = yaml(format!("{CHART}/questions.yaml"));
    let mut found = Vec::new();
    for question in form["questions"].as_array().unwrap() {
        found.push(question.clone());
        found.extend(question["subquestions"].as_array().into_iter().flatten().cloned());
    }
    found
}

fn path(question: &Value) -> Vec<&str> {
    question["variable"].as_str().unwrap().split('.').collect()
}

#[test]
fn a_form_submitted_as_it_is_changes_nothing() {
    let mut submitted = json!({});
    for question in questions() {
        if !question["default"].is_null() && question["show_if"].is_null() {
            put(&mut submitted, &path(&question), &question["default"]);
        }
    }
    assert_eq!(rendered_with(&submitted), text("tests/chart/rendered/defaults.yaml"));
}

#[test]
fn every_question_is_about_a_value_of_its_type() {
    let schema = yaml(format!("{CHART}/values.schema.json"));
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
            put(&mut submitted, &path(&question), option);
            assert!(rendered_with(&submitted).contains("kind: Deployment"), "{question} {option}");
        }
    }
}

/// What the form calls required is what the chart refuses to go without.
#[test]
fn what_is_required_is_what_the_chart_refuses_to_miss() {
    let full = yaml("tests/chart/values/rancher-form.yaml");
    let required = questions().into_iter().filter(|question| question["required"] == true);
    let below_credential: Vec<_> = required
        .map(|question| question["variable"].as_str().unwrap().to_owned())
        .filter(|variable| variable.starts_with("credential."))
        .collect();
    assert_eq!(below_credential.len(), 9);
    for variable in below_credential {
        let mut submitted = full.clone();
        put(&mut submitted, &variable.split('.').collect::<Vec<_>>(), &json!(""));
        let (_file, name) = values(&submitted);
        let refused = Helm::new().refuses(["template", "gmsa", CHART, "--values", &name]);
        let because =
            if variable.contains(".hostAccountConfig.") { "hostAccountConfig is set" } else { "enabled is true" };
        assert_eq!(unframed(&refused), format!("values: credential.{because}, but {variable} is empty"));
    }
}

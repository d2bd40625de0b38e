//! The schema knows the values of the chart, no others, and takes a blank for each. Types and limits are written in it by hand; descriptions and defaults are those
//! of `values.yaml`.
//!
//! A new value of the chart `gmsa-webhook` is:
//! - the value in `values.yaml` with its comment, its type (and `null`) in `values.schema.json`, and the template that uses it;
//! - what must not be rendered, in `templates/_check.tpl`, with a case in a file of `tests/chart/refused` (`refused.rs` says how);
//! - the value in `tests/chart/values/everything.yaml`; an entry in `OPEN` here where it is passed on as it is, in `is_map` where it is a map with defaults;
//! - `just generate`, which writes README, `files/values.yaml`, descriptions and what the tests expect.
//!
//! A new value of `gmsa-tickets` or `gmsa-accounts` is the same in that chart, without `OPEN`; the definitions of `gmsa-tickets` are copies. Instead of `everything.yaml` it is in
//! `values-of-tickets.yaml` or `values-of-accounts.yaml`; `gmsa-accounts` refuses in its `_helpers.tpl`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    accounts::ACCOUNTS,
    files::{self, text, yaml},
    helm::{CHART, Helm},
    readme,
    refused::unframed,
    rendered::put,
    snapshot::assert_file,
    tickets::TICKETS,
};

/// Taken, but in some charts no values: what a parent chart turns this one on by, what it has for all charts, and what releases of before carry along.
const SILENT: [(&str, &str); 3] = [
    ("/global", "For parent charts, which have it for all of their charts: this one does not read it."),
    ("/enabled", "For parent charts, whose `condition` turns this chart on: the chart itself does not read it."),
    ("/defaultsOf", "Accepted for values of former releases, without effect."),
];
/// Keys of Kubernetes below values that the chart passes on.
const OPEN: [&str; 7] = [
    "/credential/hostAccountConfig/",
    "/certificates/certManager/issuerRef/",
    "/probes/",
    "/resources/",
    "/tickets/resources/",
    "/podSecurityContext/",
    "/securityContext/",
];

/// Names of other charts, with what is instead of each here.
fn other_names(chart: &str) -> Vec<(String, String)> {
    let rows: BTreeMap<String, String> =
        serde_json::from_value(yaml(format!("{chart}/files/other-names.yaml"))).unwrap();
    let named = |(names, instead): (String, String)| {
        names.split(", ").map(|name| (name.to_owned(), of_group(name, &instead))).collect::<Vec<_>>()
    };
    rows.into_iter().flat_map(named).collect()
}

fn of_group(name: &str, instead: &str) -> String {
    instead.replace("GROUP", name.rsplit_once('.').map_or("", |(group, _)| group))
}

/// Names that the schema takes so that the chart can refuse them in words.
fn is_of_others(property: &Value) -> bool {
    property["deprecated"] == true
}

/// The path of every property, and whether it may be null.
fn properties(schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten().filter(|(_, it)| !is_of_others(it)) {
        let path = format!("{path}/{key}");
        let nullable = property["type"].as_array().is_some_and(|types| types.iter().any(|one| one == "null"));
        found.push((path.clone(), nullable));
        properties(property, &path, found);
    }
}

fn keys(values: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, value) in values.as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        keys(value, &path, found);
        found.insert(path);
    }
}

#[test]
fn the_schema_has_the_keys_of_the_values_and_takes_a_blank_for_each() {
    let (schema, values) = (yaml(format!("{CHART}/values.schema.json")), yaml(format!("{CHART}/values.yaml")));
    let mut in_schema = Vec::new();
    properties(&schema, "", &mut in_schema);
    let not_nullable: Vec<_> = in_schema.iter().filter(|(_, nullable)| !nullable).collect();
    assert!(not_nullable.is_empty(), "{not_nullable:?}");
    let mut in_values = BTreeSet::new();
    keys(&values, "", &mut in_values);
    let is_open = |path: &String| OPEN.iter().any(|open| path.starts_with(open));
    // A map of anything has no properties: its default keys are values of it.
    let is_map = |path: &String| path.starts_with("/webhooks/annotations/") || path.starts_with("/dashboard/labels/");
    let in_schema: BTreeSet<_> = in_schema.into_iter().map(|(path, _)| path).filter(|path| !is_open(path)).collect();
    let in_values: BTreeSet<_> = in_values.into_iter().filter(|path| !is_open(path) && !is_map(path)).collect();
    let silent: BTreeSet<_> = ["/enabled", "/defaultsOf"].map(str::to_owned).into();
    assert_eq!(in_schema.symmetric_difference(&in_values).cloned().collect::<BTreeSet<_>>(), silent);
}

/// "use NAME" names a value that exists, and every name is refused with what is instead of it.
#[test]
fn names_of_other_charts_are_refused_with_ours() {
    for chart in [CHART, ACCOUNTS, TICKETS] {
        let values = yaml(format!("{chart}/values.yaml"));
        let mut expected = BTreeSet::new();
        let mut given = json!({});
        for (name, instead) in other_names(chart) {
            for used in instead.split("use ").skip(1) {
                let used = used.split([' ', ',', ';', '=']).next().unwrap();
                let exists = values.pointer(&format!("/{}", used.replace('.', "/"))).is_some();
                let is_inside = ["resources.", "updateStrategy."].iter().any(|open| used.starts_with(open));
                assert!(exists || is_inside || used.starts_with("--"), "{name}: {used}");
            }
            let is_new = expected.insert(format!("values: {name} is not a value of this chart: {instead}"));
            assert!(is_new, "{name} is there twice");
            put(&mut given, &name.split('.').collect::<Vec<_>>(), &json!("a"));
        }
        let said = said_of(chart, &given);
        assert_eq!(said.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    }
    // Nor does `helm lint` take them, which goes on after most refusals.
    let output = Helm::new().run(["lint", CHART, "--set", "replicaCuont=3"]);
    let said = str::from_utf8(&output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    // A value of any type is one, and a blank one is none.
    for value in [json!(true), json!({}), json!([])] {
        let named = "values: replicas is not a value of this chart: use replicaCount";
        assert_eq!(said_of(CHART, &json!({"replicas": value})), named);
    }
    assert_eq!(said_of(CHART, &json!({"replicas": null})), "");
}

/// The message of a chart about these values.
fn said_of(chart: &str, given: &Value) -> String {
    let (_file, file) = files::values(given);
    let output = Helm::new().run(["template", "gmsa", chart, "--namespace", "windows", "--values", &file]);
    unframed(str::from_utf8(&output.stderr).unwrap())
}

/// What an editor shows of a key.
#[test]
fn the_schema_describes_every_value_as_the_values_do() {
    for chart in [CHART, ACCOUNTS, TICKETS] {
        let file = format!("{chart}/values.schema.json");
        let mut schema: Value = serde_json::from_str(&text(&file)).unwrap();
        let text = text(format!("{chart}/values.yaml"));
        let values: Value = serde_saphyr::from_str(&text).unwrap();
        if chart == TICKETS {
            let forms = yaml(format!("{CHART}/values.schema.json"))["definitions"].take();
            for (name, form) in schema["definitions"].as_object_mut().unwrap() {
                *form = forms[name].clone();
                forget_names_of_others(form);
            }
        }
        let comments =
            readme::entries(&text).into_iter().map(|entry| (format!("/{}", entry.path.join("/")), entry.comment));
        describe(&mut schema, "", &values, &comments.collect());
        assert_file(file, &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    }
}

/// Leaves out the names that only the chart `gmsa-webhook` refuses in words.
fn forget_names_of_others(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.retain(|_, value| !is_of_others(value));
            keys.values_mut().for_each(forget_names_of_others);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_names_of_others),
        _ => {}
    }
}

fn describe(schema: &mut Value, path: &str, values: &Value, comments: &BTreeMap<String, String>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (key, property) in properties.filter(|(_, property)| !is_of_others(property)) {
        let path = format!("{path}/{key}");
        let default = values.get(key);
        let group =
            property.get("properties").and_then(Value::as_object).map(|keys| keys.keys().cloned().collect::<Vec<_>>());
        let is_group = group.is_some() && default.and_then(Value::as_object).is_some_and(|keys| !keys.is_empty());
        if let Some(default) = default.filter(|_| !is_group) {
            property["default"] = default.clone();
        }
        let silent = SILENT.iter().find(|(silent, _)| *silent == path).map(|(_, meaning)| (*meaning).to_owned());
        let of_kubernetes = OPEN.iter().any(|open| path.starts_with(open)).then(|| "As in Kubernetes.".to_owned());
        let keys = group.filter(|_| is_group).map(|keys| format!("Group of values: {}.", keys.join(", ")));
        let meaning = comments.get(&path).cloned().or(silent).or(of_kubernetes).or(keys);
        property["description"] = meaning.unwrap_or_else(|| panic!("{path} has no comment in values.yaml")).into();
        describe(property, &path, default.unwrap_or(&Value::Null), comments);
    }
}

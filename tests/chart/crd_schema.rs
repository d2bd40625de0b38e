//! The CRD as JSON schemas, one for each version, where `kubeconform` and editors look for them: `GROUP/KIND_VERSION.json`. What the API server refuses, they refuse;
//! and they refuse unknown keys, which it drops.

use std::fs;

use serde_json::{Map, Value, json};

use crate::{
    files::{text, yaml},
    helm::{CHART, Helm},
    snapshot::assert_file,
};

const FOLDER: &str = "deploy/schemas";

/// What a rule of the CRD is in JSON schema: its keyword and what stands behind it.
fn keyword(rule: &str) -> (&'static str, Value) {
    let between = |start: &str, end: &str| rule.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    if let Some(pattern) = between("self.matches('", "')") {
        return ("pattern", json!(pattern.replace("\\\\", "\\")));
    }
    if let Some(text) = between("self == '", "'") {
        return ("const", json!(text));
    }
    if let Some(item) = between("self.exists(plugin, plugin == '", "')") {
        return ("contains", json!({"const": item}));
    }
    panic!("no JSON schema is known for the rule {rule}")
}

/// The same in JSON schema: rules as keywords, and only the keys that are named.
fn converted(schema: &Value) -> Value {
    let mut made = Map::new();
    for (key, value) in schema.as_object().unwrap() {
        match key.as_str() {
            "properties" => {
                let properties =
                    value.as_object().unwrap().iter().map(|(name, schema)| (name.clone(), converted(schema)));
                made.insert(key.clone(), Value::Object(properties.collect()));
                made.insert("additionalProperties".to_owned(), json!(false));
            }
            "items" => drop(made.insert(key.clone(), converted(value))),
            "x-kubernetes-validations" => {
                let rules = value.as_array().unwrap();
                made.extend(
                    rules
                        .iter()
                        .map(|rule| keyword(rule["rule"].as_str().unwrap()))
                        .map(|(name, value)| (name.to_owned(), value)),
                );
            }
            _ => drop(made.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(made)
}

#[test]
fn each_version_of_the_crd_has_a_json_schema() {
    let crd = yaml(format!("{CHART}/crds/gmsacredentialspecs.yaml"));
    let (group, kind) = (crd["spec"]["group"].as_str().unwrap(), crd["spec"]["names"]["kind"].as_str().unwrap());
    for version in crd["spec"]["versions"].as_array().unwrap() {
        let name = version["name"].as_str().unwrap();
        let mut schema = converted(&version["schema"]["openAPIV3Schema"]);
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema["properties"]["apiVersion"] = json!({"const": format!("{group}/{name}")});
        schema["properties"]["kind"] = json!({"const": kind});
        schema["properties"]["metadata"] =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        schema["required"] = json!(["apiVersion", "kind", "metadata"]);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        assert_file(format!("{FOLDER}/{group}/{}_{name}.json", kind.to_lowercase()), &text);
    }
}

/// By Helm, which checks values by a JSON schema.
fn complaint(credential_spec: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("Chart.yaml", "{apiVersion: v2, name: a, version: 0.0.0}");
    write("values.schema.json", &text(format!("{FOLDER}/windows.k8s.io/gmsacredentialspec_v1.json")));
    write("credspec.yaml", credential_spec);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = Helm::new().run(["template", &path(""), "--values", &path("credspec.yaml")]);
    (!output.status.success()).then(|| {
        let errors = String::from_utf8(output.stderr).unwrap();
        errors.lines().filter(|line| line.starts_with("- ")).collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn the_json_schema_refuses_what_the_api_server_refuses_or_drops() {
    let example = text("examples/credspec.yaml");
    assert_eq!(complaint(&example), None);
    let account = "MachineAccountName: WebApp1";
    let mut found = String::new();
    for (from, to) in [
        ("windows.k8s.io/v1", "windows.k8s.io/v2"),
        (account, "MachineAccountName: WebApp1$"),
        (account, "MachineAccountName: CONTOSO\\WebApp1"),
        (account, "MachineAccount: WebApp1"),
        ("3094792973", "3094792973-1104"),
        ("Guid: 244818ae-87ac-4fcd-92ec-e79e5252348a", "Guid: '{244818ae-87ac-4fcd-92ec-e79e5252348a}'"),
        ("NetBiosName: CONTOSO", "NetBiosName: contoso.example.com"),
        ("- ActiveDirectory\n", "- activeDirectory\n"),
        ("- Name: WebApp1\n        Scope: CONTOSO", "- Name: 1\n        Scope: CONTOSO"),
        ("  ActiveDirectoryConfig:\n", "  ActiveDirectoryConfig:\n    HostAccountConfig: {PortableCcgVersion: 1}\n"),
        ("  ActiveDirectoryConfig:\n", "  ActiveDirectoryConfig:\n    HostAccountConfig: {PluginGUID: CCC2A336}\n"),
        ("credspec:", "spec:"),
    ] {
        assert!(example.contains(from), "{from}");
        let said = complaint(&example.replace(from, to)).unwrap_or_default();
        found.extend([to.trim(), "\n    ", &said, "\n"]);
    }
    assert_file("tests/chart/refused-by-schema", &found);
}

//! The report for code scanning: SARIF 2.1.0 (OASIS), the parts that every reader of it takes.

use std::collections::BTreeMap;

use gmsa_core::diagnostic::{Diagnostic, Rule};
use serde_json::{Value, json};

use super::{file, left_out, line, sentence};

pub(super) fn render(findings: &[Diagnostic]) -> anyhow::Result<String> {
    let rules: BTreeMap<&str, &Rule> = findings.iter().map(|found| (found.rule.id, found.rule)).collect();
    let rules: Vec<Value> = rules.into_values().map(rule).collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-gmsa", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules,
            }},
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "help": {"text": format!("{} See {}.", rule.remedy, rule.page())},
        "defaultConfiguration": {"level": rule.severity.as_str()},
    })
}

fn result(found: &Diagnostic) -> Value {
    let parts = [
        Some(sentence(found)),
        found.consequence.map(|text| format!("So: {text}")),
        found.fix.as_ref().map(|text| format!("Fix: {text}")),
        left_out(found),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    // What comes from a cluster is in no file.
    if file(found).is_empty() {
        return json!({"ruleId": found.rule.id, "level": found.severity.as_str(), "message": {"text": text}});
    }
    let mut location = json!({"artifactLocation": {"uri": uri(file(found))}});
    if let (Some(line), Some(location)) = (line(found), location.as_object_mut()) {
        location.insert("region".to_owned(), json!({"startLine": line}));
    }
    json!({
        "ruleId": found.rule.id,
        "level": found.severity.as_str(),
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    })
}

/// A path as a relative URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            b'\\' => uri.push('/'),
            _ => uri.push_str(&format_byte(byte)),
        }
    }
    uri
}

fn format_byte(byte: u8) -> String {
    format!("%{byte:02X}")
}

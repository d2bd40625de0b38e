//! The report for code scanning: SARIF 2.1.0 (OASIS), the parts that every reader of it takes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Level, Report};

/// The rule under which files stand that could not be read.
const UNREADABLE: &str = "unreadable";

pub(super) fn render(report: &Report) -> anyhow::Result<String> {
    let mut rules: BTreeSet<&str> = report.findings.iter().map(|finding| finding.rule).collect();
    let findings = report.findings.iter().map(|finding| {
        let parts = [
            Some(format!("{}: {}: {}", finding.object, finding.field, finding.message)),
            finding.consequence.as_ref().map(|text| format!("So: {text}")),
            finding.fix.as_ref().map(|text| format!("Fix: {text}")),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
        result(finding.rule, finding.level, &text, &finding.file, Some(finding.line))
    });
    let unread =
        report.unread.iter().map(|unread| result(UNREADABLE, Level::Error, &unread.message, &unread.file, unread.line));
    let results: Vec<Value> = unread.chain(findings).collect();
    if !report.unread.is_empty() {
        rules.insert(UNREADABLE);
    }
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"id": rule})).collect();
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
    let mut text = serde_json::to_string_pretty(&log)?;
    text.push('\n');
    Ok(text)
}

fn result(rule: &str, level: Level, text: &str, file: &str, line: Option<u64>) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(file)}});
    if let (Some(line), Some(location)) = (line, location.as_object_mut()) {
        location.insert("region".to_owned(), json!({"startLine": line}));
    }
    json!({
        "ruleId": rule,
        "level": level.as_str(),
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

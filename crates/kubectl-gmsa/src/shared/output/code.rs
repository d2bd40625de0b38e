//! Reports that are shown beside the code: for code scanning and for the log of a GitHub workflow.

use std::collections::BTreeMap;

use gmsa_core::{
    diagnostic::{Diagnostic, Rule, Severity},
    quote,
};
use serde_json::{Value, json};

use super::{Folded, also, file, left_out, line, sentence};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The address of the source repository, set by the build of a release. Without it `helpUri`, which must be absolute, is left out.
const SOURCE: Option<&str> = option_env!("GMSA_SOURCE");

/// The report for code scanning: SARIF 2.1.0 (OASIS), the parts that every reader accepts.
pub(super) fn sarif(findings: &[Diagnostic]) -> Value {
    let rules: BTreeMap<&str, &Rule> = findings.iter().map(|found| (found.rule.id, found.rule)).collect();
    let index = |found: &Diagnostic| rules.keys().position(|id| *id == found.rule.id);
    let results: Vec<Value> = findings.iter().map(|found| result(found, index(found))).collect();
    let rules: Vec<Value> = rules.into_values().map(rule).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-gmsa", "semanticVersion": VERSION, "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn rule(rule: &Rule) -> Value {
    let mut described = json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "help": {"text": format!("{} See {}.", rule.remedy, rule.page())},
        "defaultConfiguration": {"level": rule.severity.as_str()},
    });
    if let (Some(source), Value::Object(fields)) = (SOURCE, &mut described) {
        fields.insert("helpUri".to_owned(), format!("{source}/blob/v{VERSION}/{}", rule.page()).into());
    }
    described
}

/// `rule` is the index of its rule in the log, through which code scanning finds `helpUri`.
fn result(found: &Diagnostic, rule: Option<usize>) -> Value {
    let parts = [
        Some(sentence(found)),
        found.consequence.map(|text| format!("So: {text}")),
        found.fix.as_ref().map(|text| format!("Fix: {text}")),
        left_out(found),
    ];
    // `[text](address)` would be a link (SARIF 2.1.0, 3.11.6).
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n").replace("](", "] (");
    // Code scanning refuses results without a location. An object of a cluster has no file, so it is named itself.
    let place = if file(found).is_empty() { "cluster" } else { file(found) };
    let artifact = json!({"uri": uri(place)});
    let region = json!({"startLine": line(found).unwrap_or(1)});
    let objects = if found.object.is_empty() { json!([]) } else { json!([{"fullyQualifiedName": found.object}]) };
    let location = json!({
        "physicalLocation": {"artifactLocation": artifact, "region": region},
        "logicalLocations": objects,
    });
    json!({
        "ruleId": found.rule.id,
        "ruleIndex": rule,
        "level": found.severity.as_str(),
        "message": {"text": text},
        "locations": [location],
    })
}

/// A path as a relative URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let escape = |byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        b'\\' => "/".to_owned(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(escape).collect()
}

/// The report for the log of a GitHub workflow: one command for each finding, shown beside the line in a pull request.
pub(super) fn github(findings: &[Folded<'_>], summary: &str) -> String {
    findings.iter().map(|(found, others)| command(found, others)).chain([format!("{summary}\n")]).collect()
}

fn command(found: &Diagnostic, others: &[&str]) -> String {
    let name = if found.severity == Severity::Note { "notice" } else { found.severity.as_str() };
    let mut text = quote::one_line(&sentence(found)).into_owned();
    text.extend(found.consequence.map(|consequence| format!("\nso: {consequence}")));
    text.extend(found.fix.as_ref().map(|fix| format!("\nfix: {}", quote::lines(fix))));
    text.extend(left_out(found).into_iter().chain(also(others)).map(|more| format!("\n{}", quote::one_line(&more))));
    let place = match (property(&quote::one_line(file(found))), line(found)) {
        // An object of a cluster has no file.
        (file, _) if file.is_empty() => String::new(),
        (file, Some(line)) => format!("file={file},line={line},"),
        (file, None) => format!("file={file},"),
    };
    format!("::{name} {place}title={}::{}\n", property(found.rule.id), data(&text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

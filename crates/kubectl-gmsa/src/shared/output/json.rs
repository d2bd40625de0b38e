//! JSON for programs.

use gmsa_core::{
    diagnostic::{Check, Diagnostic},
    quote,
};
use serde::Serialize;

use super::{Place, file, line, sentence, table::status};

/// A value as JSON, in ASCII where a character would hide something, with a line feed at the end.
pub fn text(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(quote::json(&(serde_json::to_string_pretty(value)? + "\n")))
}

#[derive(Serialize)]
struct Report<'r> {
    documents: usize,
    places: &'r [Place],
    findings: Vec<Finding<'r>>,
}

#[derive(Serialize)]
struct Finding<'f> {
    level: &'static str,
    rule: &'static str,
    file: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    object: &'f str,
    field: &'f str,
    message: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    consequence: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'f str>,
    /// How many others of this rule in this file are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

pub(super) fn report(documents: usize, places: &[Place], findings: &[Diagnostic]) -> anyhow::Result<String> {
    let finding = |found| {
        let Diagnostic { rule, severity, object, field, message, consequence, fix, more, .. }: &Diagnostic = found;
        Finding {
            level: severity.as_str(),
            rule: rule.id,
            file: file(found),
            line: line(found),
            object,
            field,
            message,
            consequence: *consequence,
            fix: fix.as_deref(),
            more: Some(*more).filter(|more| *more > 0),
        }
    };
    text(&Report { documents, places, findings: findings.iter().map(finding).collect() })
}

#[derive(Serialize)]
struct ShownCheck<'c> {
    status: &'static str,
    about: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'c str>,
}

pub fn checks(checks: &[Check]) -> anyhow::Result<String> {
    let shown = |check| {
        let Check { about, result }: &Check = check;
        let found = result.as_ref().err();
        ShownCheck {
            status: status(check),
            about,
            text: result.as_ref().map_or_else(sentence, String::clone),
            rule: found.map(|found| found.rule.id),
            remedy: found.map(Diagnostic::remedy),
        }
    };
    text(&checks.iter().map(shown).collect::<Vec<_>>())
}

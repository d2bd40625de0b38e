//! JSON for programs: one object for every command, which `docs/cli.md` describes. It has all findings.

use std::collections::HashMap;

use gmsa_core::{
    diagnostic::{Check, Diagnostic, Diagnostics},
    quote,
};
use serde::{Serialize, Serializer};

use super::{Outcome, ReportRow, Totals, file, line, sentence, table::status};

/// The version of the object. It changes when a field is removed or changes its meaning, not for a new field.
const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versioned<B> {
    version: u32,
    exit_code: u8,
    #[serde(flatten)]
    body: B,
}

/// The output of a command: `body` with the version and the exit code.
pub fn object(outcome: Outcome, body: impl Serialize) -> anyhow::Result<String> {
    text(&Versioned { version: VERSION, exit_code: outcome as u8, body })
}

/// The output of a failed command.
pub fn error(error: &str) -> anyhow::Result<String> {
    object(Outcome::Incomplete, HashMap::from([("error", error)]))
}

/// A value as JSON, with a line feed at the end. Invisible characters are escaped.
pub(super) fn text(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(quote::json(&(serde_json::to_string_pretty(value)? + "\n")))
}

#[derive(Serialize)]
struct ReportJson<'r> {
    totals: &'r Totals,
    places: &'r [ReportRow],
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
    /// The number of further findings of this rule in this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

impl<'f> From<&'f Diagnostic> for Finding<'f> {
    fn from(found: &'f Diagnostic) -> Self {
        let Diagnostic { rule, severity, object, field, message, consequence, fix, more, .. } = found;
        Self {
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
    }
}

pub(super) fn report(
    outcome: Outcome,
    totals: &Totals,
    places: &[ReportRow],
    findings: &[Diagnostic],
) -> anyhow::Result<String> {
    object(outcome, ReportJson { totals, places, findings: findings.iter().map(Finding::from).collect() })
}

/// The findings as a list, with the fields of a report.
pub(super) fn findings<S: Serializer>(found: &Diagnostics, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(found.as_slice().iter().map(Finding::from))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checks<'c> {
    totals: CheckTotals,
    checks: Vec<ShownCheck<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckTotals {
    passed: usize,
    noted: usize,
    warned: usize,
    failed: usize,
    not_checked: usize,
    ignored: usize,
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

pub(super) fn checks(checks: &[Check], ignored: usize) -> impl Serialize {
    let count = |word| checks.iter().filter(|check| status(check) == word).count();
    let totals = CheckTotals {
        passed: count("pass"),
        noted: count("note"),
        warned: count("warn"),
        failed: count("fail"),
        not_checked: count("skip"),
        ignored,
    };
    let shown = |check| {
        let Check { about, result }: &Check = check;
        let found = result.as_ref().err();
        ShownCheck {
            status: status(check),
            about,
            text: result.as_ref().map_or_else(sentence, String::clone),
            rule: found.map(|found| found.rule.id),
            remedy: found.map(Diagnostic::remedy).filter(|remedy| !remedy.is_empty()),
        }
    };
    Checks { totals, checks: checks.iter().map(shown).collect() }
}

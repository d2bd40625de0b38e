//! What commands print: a report of findings in four formats, checks in two, tables, and how a command ended.
//!
//! Invariants: every format has the same content; everything that comes from outside is escaped for the format, so nothing can
//! steer a terminal or write a log command; there is one table, one JSON and one SARIF.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
};

use clap::ValueEnum;
use gmsa_core::diagnostic::{Check, Diagnostic, Diagnostics, Severity, rules};
use serde::Serialize;

mod github;
pub mod json;
mod sarif;
mod style;
pub mod table;

pub use style::Style;

/// How a command ended: the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Clean,
    Findings,
    /// A part could not be checked.
    Incomplete,
}

impl Outcome {
    /// Of checks: what could not be checked is neither a pass nor a fault.
    pub fn of(checks: &[Check]) -> Self {
        let found = || checks.iter().filter_map(|check| check.result.as_ref().err());
        if found().any(|found| *found.rule != rules::NOT_CHECKED) {
            Self::Findings
        } else if found().next().is_some() {
            Self::Incomplete
        } else {
            Self::Clean
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome as u8)
    }
}

/// Prints on standard output.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<Outcome> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()?;
    Ok(Outcome::Clean)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
    /// For code scanning (SARIF 2.1.0)
    Sarif,
    /// For the log of a GitHub workflow
    Github,
}

/// The result for one place that uses GMSA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub file: Arc<str>,
    /// The line in it, counted from 1.
    pub line: u64,
    /// The object: `Deployment shop/web`.
    pub object: String,
    /// The place: `container "iis"`.
    pub slot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_spec: Option<String>,
    pub admitted: bool,
    /// What happens: `gets the contents (371 bytes)`, `refused: 404`.
    pub result: String,
}

#[derive(Debug, Default)]
pub struct Report {
    /// How many objects were read.
    pub documents: usize,
    pub places: Vec<Place>,
    pub findings: Diagnostics,
}

impl Report {
    /// How it ended: notes are no findings, and what could not be checked is neither a pass nor a fault.
    pub fn outcome(&self) -> Outcome {
        let findings = || self.findings.as_slice().iter().filter(|finding| finding.severity > Severity::Note);
        if findings().any(is_unreadable) {
            Outcome::Incomplete
        } else if findings().any(|found| !is_unchecked(found)) {
            Outcome::Findings
        } else if findings().next().is_some() {
            Outcome::Incomplete
        } else {
            Outcome::Clean
        }
    }

    /// Prints the report on standard output.
    pub fn print(self, format: Format) -> anyhow::Result<Outcome> {
        let outcome = self.outcome();
        print(self.render(format, Style::of_terminal())?)?;
        Ok(outcome)
    }

    /// The report as text; findings are in the order of files and lines.
    pub fn render(self, format: Format, style: Style) -> anyhow::Result<String> {
        let summary = self.summary();
        let mut findings: Vec<Diagnostic> = self.findings.into_iter().collect();
        findings.sort_by_cached_key(|found| {
            let place = found.location.as_ref().map(|location| (Arc::clone(&location.file), location.line()));
            // What could not be read comes first.
            (!is_unreadable(found), place, std::cmp::Reverse(found.severity))
        });
        Ok(match format {
            Format::Table => table::report(&self.places, &findings, &summary, style),
            Format::Json => json::report(self.documents, &self.places, &findings)?,
            Format::Sarif => json::text(&sarif::log(&findings))?,
            Format::Github => github::render(&findings, &summary),
        })
    }

    /// `2 errors, 1 warning in 5 objects`
    fn summary(&self) -> String {
        let count = |of: &dyn Fn(&Diagnostic) -> bool| -> usize {
            self.findings.as_slice().iter().filter(|found| of(found)).map(|found| found.more + 1).sum()
        };
        let of = |severity| {
            count(&|found: &Diagnostic| found.severity == severity && !is_unreadable(found) && !is_unchecked(found))
        };
        let found: Vec<String> = [
            (count(&is_unreadable), "unreadable part"),
            (count(&is_unchecked), "unchecked part"),
            (of(Severity::Error), "error"),
            (of(Severity::Warning), "warning"),
            (of(Severity::Note), "note"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| plural(count, what))
        .collect();
        let found = if found.is_empty() { "no problems found".to_owned() } else { found.join(", ") };
        format!("{found} in {}", plural(self.documents, "object"))
    }
}

fn is_unreadable(finding: &Diagnostic) -> bool {
    finding.rule.id == rules::UNREADABLE.id
}

fn is_unchecked(finding: &Diagnostic) -> bool {
    *finding.rule == rules::NOT_CHECKED
}

fn file(found: &Diagnostic) -> &str {
    found.location.as_ref().map_or("", |location| &location.file)
}

fn line(found: &Diagnostic) -> Option<u64> {
    found.location.as_ref()?.line()
}

/// The object, the field and what is wrong with it.
fn sentence(found: &Diagnostic) -> String {
    let parts = [&found.object, &found.field, &found.message];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    parts.join(": ")
}

/// How many others are left out.
fn left_out(found: &Diagnostic) -> Option<String> {
    (found.more > 0).then(|| format!("{} more of rule {} in this file are left out", found.more, found.rule.id))
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Up to five names, and the number of the others.
pub fn first_five<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

//! The report of a check, in four formats.
//!
//! Invariants: every format has the same content; everything that comes from a file is escaped for the format, so
//! no manifest can steer a terminal or write a log command.

use std::{io::IsTerminal as _, sync::Arc};

use clap::ValueEnum;
use gmsa_core::diagnostic::{Diagnostic, Diagnostics, Severity, printable, rules};
use serde::Serialize;

use super::Outcome;

mod github;
mod sarif;
mod table;

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
    /// How it ended: notes are no findings.
    pub fn outcome(&self) -> Outcome {
        let findings = self.findings.as_slice();
        if findings.iter().any(is_unreadable) {
            Outcome::Incomplete
        } else if findings.iter().any(|finding| finding.severity > Severity::Note) {
            Outcome::Findings
        } else {
            Outcome::Clean
        }
    }

    /// Prints the report on standard output.
    pub fn print(self, format: Format) -> anyhow::Result<Outcome> {
        let outcome = self.outcome();
        super::print(self.render(format, Style::of_terminal())?.as_bytes())?;
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
            Format::Table => table::render(&self.places, &findings, &summary, style),
            Format::Json => {
                let findings: Vec<Shown<'_>> = findings.iter().map(Shown::from).collect();
                let report = Everything { documents: self.documents, places: &self.places, findings };
                printable::json(&(serde_json::to_string_pretty(&report)? + "\n"))
            }
            Format::Sarif => printable::json(&sarif::render(&findings)?),
            Format::Github => github::render(&findings, &summary),
        })
    }

    /// `2 errors, 1 warning in 5 objects`
    fn summary(&self) -> String {
        let count = |of: &dyn Fn(&Diagnostic) -> bool| -> usize {
            self.findings.as_slice().iter().filter(|found| of(found)).map(|found| found.more + 1).sum()
        };
        let of = |severity| count(&|found: &Diagnostic| found.severity == severity && !is_unreadable(found));
        let found: Vec<String> = [
            (count(&is_unreadable), "unreadable part"),
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

#[derive(Serialize)]
struct Everything<'r> {
    documents: usize,
    places: &'r [Place],
    findings: Vec<Shown<'r>>,
}

#[derive(Serialize)]
struct Shown<'f> {
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

impl<'f> From<&'f Diagnostic> for Shown<'f> {
    fn from(found: &'f Diagnostic) -> Self {
        Self {
            level: found.severity.as_str(),
            rule: found.rule.id,
            file: file(found),
            line: line(found),
            object: &found.object,
            field: &found.field,
            message: &found.message,
            consequence: found.consequence,
            fix: found.fix.as_deref(),
            more: Some(found.more).filter(|more| *more > 0),
        }
    }
}

fn file(found: &Diagnostic) -> &str {
    found.location.as_ref().map_or("", |location| &location.file)
}

fn line(found: &Diagnostic) -> Option<u64> {
    found.location.as_ref()?.line()
}

/// The object, the field and what is wrong with it.
pub(super) fn sentence(found: &Diagnostic) -> String {
    let parts = [&found.object, &found.field, &found.message];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    parts.join(": ")
}

/// How many others are left out.
fn left_out(found: &Diagnostic) -> Option<String> {
    (found.more > 0).then(|| format!("{} more of rule {} in this file are left out", found.more, found.rule.id))
}

/// The rows as lines, each column as wide as its widest cell.
pub(super) fn aligned<'r, const COLUMNS: usize>(
    rows: impl Iterator<Item = &'r [String; COLUMNS]> + Clone,
) -> Vec<String> {
    let mut widths = [0; COLUMNS];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ")
    };
    rows.map(line).collect()
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

impl Style {
    pub const PLAIN: Self = Self { colour: false };

    /// Colour where standard output is a terminal, unless `NO_COLOR` says otherwise. A console of Windows has to be switched to
    /// it; one that cannot be gets plain text.
    pub fn of_terminal() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb;
        Self { colour: wanted && anstyle_query::windows::enable_ansi_colors() != Some(false) }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn level(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Note => "36",
            Severity::Warning => "33",
            Severity::Error => "31",
        };
        self.paint(code, text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

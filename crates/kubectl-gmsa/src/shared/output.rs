//! The output of commands: findings in four formats, checks and grants in two, and the exit code.
//!
//! Invariants: every format has all findings with all their parts; the table and the log of a workflow fold equal notes into one.
//! Decisions are in the table and in JSON, the head of a report in the table. Text from outside is escaped for the format, so it cannot
//! steer a terminal or write a log command; there is one table, one JSON and one SARIF.

use std::{
    collections::HashMap,
    fmt,
    io::{self, Write as _},
    sync::Arc,
};

use crate::shared::{args, rules};
use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use gmsa_core::diagnostic::{Check, Diagnostic, Diagnostics, Severity};
use serde::Serialize;

mod code;
pub mod grants;
pub mod json;
pub mod table;

pub use gmsa_core::quote::first_five;
pub use table::Style;

/// The result of a command. Its number is the exit code. Checks and reports have it from [`Outcome::of`]; a command that answers one
/// question (`who-can`, `explain`, `grant`, `credspec new`) chooses it. `probe` has [`Outcome::Incomplete`] too where it leaves pods behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// No findings, or only below `--fail-on`: notes, by default.
    Clean = 0,
    /// Findings of at least `--fail-on` (by default warnings); an unknown code in `explain`; a missing object in `grant`.
    Findings = 1,
    /// Something could not be read or done: a part, or all of it.
    Incomplete = 2,
}

impl Outcome {
    /// The outcome of these findings. `if_both` decides between a failure and an incomplete part:
    /// - among checks a failure, because the incomplete part may follow from it;
    /// - in a report the incomplete part, because the report would otherwise look complete.
    fn of<'f>(
        found: impl Iterator<Item = &'f Diagnostic>,
        is_lacking: impl Fn(&Diagnostic) -> bool,
        filter: &Filter,
        if_both: Self,
    ) -> Self {
        let (lacking, found): (Vec<_>, Vec<_>) = found.partition(|found| is_lacking(found));
        match (found.iter().any(|found| filter.fails(found)), lacking.is_empty()) {
            (true, true) => Self::Findings,
            (true, false) => if_both,
            (false, true) => Self::Clean,
            (false, false) => Self::Incomplete,
        }
    }

    fn of_checks(checks: &[Check], filter: &Filter) -> Self {
        let found = checks.iter().filter_map(|check| check.result.as_ref().err());
        Self::of(found, |found| *found.rule == rules::NOT_CHECKED, filter, Self::Findings)
    }
}

/// The options that select findings, for all commands with findings.
#[derive(Clone, Debug, Args)]
pub struct Filter {
    /// Leave out rules, separated by commas
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = args::rule)]
    ignore: Vec<String>,
    /// Fail on error, warning or note
    ///
    /// The lowest severity that ends in exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning", value_parser = severity(), hide_possible_values = true)]
    fail_on: Severity,
}

fn severity() -> impl TypedValueParser<Value = Severity> {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    PossibleValuesParser::new(all.map(Severity::as_str))
        .try_map(move |word| all.into_iter().find(|severity| severity.as_str() == word).ok_or("no severity"))
}

impl Filter {
    /// The same filter, with exit code 1 for errors only.
    #[must_use]
    pub fn of_errors(&self) -> Self {
        Self { fail_on: Severity::Error, ..self.clone() }
    }

    /// Whether its rule is not ignored.
    pub fn keeps(&self, found: &Diagnostic) -> bool {
        self.ignore.iter().all(|id| id != found.rule.id)
    }

    /// Whether it ends in exit code 1.
    pub fn fails(&self, found: &Diagnostic) -> bool {
        found.severity >= self.fail_on
    }
}

/// Prints on standard output.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    Ok(out.flush()?)
}

/// Prints the answer of a command that has no findings.
pub fn print_clean(text: impl AsRef<[u8]>) -> anyhow::Result<Outcome> {
    print(text)?;
    Ok(Outcome::Clean)
}

/// The format of a report. A new format is a variant, an arm of [`Report::render`], a function beside those of `code.rs`, and the help of `--output`.
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

/// The format of output that is not about lines of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// For people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
}

impl From<Shape> for Format {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Table => Self::Table,
            Shape::Json => Self::Json,
        }
    }
}

/// Prints a value, for people or for programs.
pub fn print_as(
    shape: Shape,
    outcome: Outcome,
    table: impl FnOnce() -> String,
    body: impl Serialize,
) -> anyhow::Result<Outcome> {
    print(match shape {
        Shape::Table => table(),
        Shape::Json => json::object(outcome, body)?,
    })?;
    Ok(outcome)
}

/// Prints checks, without findings of ignored rules.
pub fn print_checks(checks: Vec<Check>, shape: Shape, filter: &Filter) -> anyhow::Result<Outcome> {
    let (checks, ignored): (Vec<_>, Vec<_>) =
        checks.into_iter().partition(|check| check.result.as_ref().err().is_none_or(|found| filter.keeps(found)));
    let outcome = Outcome::of_checks(&checks, filter);
    let body = json::checks(&checks, ignored.len());
    print_as(shape, outcome, || table::checks(&checks, Style::of_terminal()), body)
}

/// Checks as `-o json` prints them.
#[cfg(test)]
pub fn checks_json(checks: &[Check], filter: &Filter) -> anyhow::Result<String> {
    json::object(Outcome::of_checks(checks, filter), json::checks(checks, 0))
}

/// The result for one place that uses GMSA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportRow {
    /// For an object of a cluster its namespace, kind and name: `shop/Deployment/web`.
    pub file: Arc<str>,
    /// The line in it, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The object: `Deployment shop/web`.
    pub object: String,
    /// The place: `container "iis"`.
    pub slot: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_spec: Option<String>,
    pub admitted: bool,
    /// The result: `gets its contents`, `refused, 404: spec-missing`.
    pub result: String,
}

#[derive(Debug, Default)]
pub struct Report {
    /// The text that people see first, with the blank line after it.
    pub head: String,
    /// How many objects were read.
    pub documents: usize,
    pub places: Vec<ReportRow>,
    pub findings: Diagnostics,
}

impl Report {
    /// Prints the report on standard output.
    pub fn print(self, format: impl Into<Format>, filter: &Filter) -> anyhow::Result<Outcome> {
        let (text, outcome) = self.render(format.into(), filter, Style::of_terminal())?;
        print(text)?;
        Ok(outcome)
    }

    /// How it ended, by the findings that are not ignored.
    pub fn outcome(&self, filter: &Filter) -> Outcome {
        let kept = self.findings.as_slice().iter().filter(|found| filter.keeps(found));
        Outcome::of(kept, is_incomplete, filter, Outcome::Incomplete)
    }

    /// The report as text, and how it ended. Findings are in the order of files and lines.
    pub fn render(self, format: Format, filter: &Filter, style: Style) -> anyhow::Result<(String, Outcome)> {
        let outcome = self.outcome(filter);
        let (mut findings, ignored): (Vec<Diagnostic>, Vec<_>) =
            self.findings.into_iter().partition(|found| filter.keeps(found));
        findings.sort_by_cached_key(|found| {
            let place = found.location.as_ref().map(|location| (Arc::clone(&location.file), location.line()));
            // Failed reads come first.
            (!is_incomplete(found), place, std::cmp::Reverse(found.severity))
        });
        let totals = Totals::of(self.documents, &findings, &ignored);
        let text = match format {
            Format::Table => table::report(&self.head, &self.places, &folded(&findings), &totals.to_string(), style),
            Format::Json => json::report(outcome, &totals, &self.places, &findings)?,
            Format::Sarif => json::text(&code::sarif(&findings))?,
            Format::Github => code::github(&folded(&findings), &totals.to_string()),
        };
        Ok((text, outcome))
    }
}

/// How much was read, and how many findings there are, including omitted ones.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    objects: usize,
    /// Parts that could not be read or checked.
    unreadable: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// Findings of rules that are ignored.
    ignored: usize,
}

impl Totals {
    fn of(objects: usize, findings: &[Diagnostic], ignored: &[Diagnostic]) -> Self {
        let count = |findings: &[Diagnostic], counts: &dyn Fn(&Diagnostic) -> bool| -> usize {
            findings.iter().filter(|found| counts(found)).map(|found| found.more + 1).sum()
        };
        let of_severity = |severity| count(findings, &|found| found.severity == severity && !is_incomplete(found));
        Self {
            objects,
            unreadable: count(findings, &is_incomplete),
            errors: of_severity(Severity::Error),
            warnings: of_severity(Severity::Warning),
            notes: of_severity(Severity::Note),
            ignored: count(ignored, &|_| true),
        }
    }
}

/// `2 errors, 1 warning in 5 objects`
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, unreadable, errors, warnings, notes, ignored } = *self;
        let counts = [(errors, "error"), (warnings, "warning"), (notes, "note")].into_iter();
        let counts = counts.filter(|(count, _)| *count > 0).map(|(count, what)| plural(count, what));
        let unread = (unreadable > 0).then(|| format!("{unreadable} could not be checked"));
        let found: Vec<String> = unread.into_iter().chain(counts).collect();
        let found = if found.is_empty() { "no problems found".to_owned() } else { found.join(", ") };
        write!(f, "{found} in {}", plural(objects, "object"))?;
        if ignored > 0 { write!(f, ", and {ignored} ignored") } else { Ok(()) }
    }
}

/// A finding, and the objects with the same note.
type Folded<'f> = (&'f Diagnostic, Vec<&'f str>);

/// Each finding; notes that say the same of other objects are not repeated.
fn folded(findings: &[Diagnostic]) -> Vec<Folded<'_>> {
    let mut folded: Vec<Folded<'_>> = Vec::new();
    let mut notes = HashMap::new();
    for found in findings {
        if found.severity == Severity::Note && found.more == 0 && !found.object.is_empty() {
            let first = *notes.entry((found.rule.id, &found.message, &found.fix)).or_insert(folded.len());
            if let Some((first, others)) = folded.get_mut(first) {
                if first.object != found.object && !others.contains(&found.object.as_str()) {
                    others.push(&found.object);
                }
                continue;
            }
        }
        folded.push((found, Vec::new()));
    }
    folded
}

/// Whether it says, as a warning or an error, that something could not be read or checked.
fn is_incomplete(finding: &Diagnostic) -> bool {
    finding.severity > Severity::Note && [rules::UNREADABLE.id, rules::NOT_CHECKED.id].contains(&finding.rule.id)
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

/// The other objects with the same finding.
fn also(others: &[&str]) -> Option<String> {
    (!others.is_empty()).then(|| format!("also: {}", first_five(others)))
}

pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_each_other_object_once() {
        let note = |object: &str| Diagnostic {
            object: object.to_owned(),
            ..Diagnostic::new(&rules::WINDOWS_BUILD, "no selector")
        };
        let notes = ["Pod a", "Pod a", "Pod b", "Pod b", "Pod c"].map(note);
        let folded: Vec<_> = folded(&notes).into_iter().map(|(found, others)| (&*found.object, others)).collect();
        assert_eq!(folded, [("Pod a", vec!["Pod b", "Pod c"])]);
    }
}

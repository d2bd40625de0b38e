//! Text for people: tables, findings with fixes, checks with remedies.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use crate::shared::rules;
use gmsa_core::{
    diagnostic::{Check, Diagnostic, Severity},
    quote::{self, lines, one_line},
};

use super::{Folded, ReportRow, also, file, left_out, sentence};

/// Colour on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

impl Style {
    #[cfg(test)]
    pub const PLAIN: Self = Self { colour: false };

    /// Colour if standard output is a terminal, unless `NO_COLOR` is set. A Windows console has to be switched to colour; if that fails,
    /// the text is plain.
    pub fn of_terminal() -> Self {
        let wanted = io::stdout().is_terminal() && !anstyle_query::no_color() && anstyle_query::term_supports_color();
        Self { colour: wanted && anstyle_query::windows::enable_ansi_colors() != Some(false) }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The text in the colour of the severity; `None` for a pass.
    fn level(self, severity: Option<Severity>, text: &str) -> String {
        let code = match severity {
            None => "32",
            Some(Severity::Note) => "36",
            Some(Severity::Warning) => "33",
            Some(Severity::Error) => "31",
        };
        self.paint(code, text)
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// A table of these columns.
pub fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &BTreeSet<[String; COLUMNS]>) -> String {
    let mut out = String::new();
    for cells in aligned(head, rows.iter().map(|row| row.each_ref().map(String::as_str))) {
        line(&mut out, cells.trim_end());
    }
    out
}

/// The rows as lines, each column as wide as its widest cell. Cells are cut first: the standard library cannot pad to more than
/// 65,535 characters, and panics.
fn aligned<'r, const COLUMNS: usize>(
    head: [&'r str; COLUMNS],
    rows: impl Iterator<Item = [&'r str; COLUMNS]>,
) -> Vec<String> {
    let cell = |text: &str| one_line(&quote::shorten(text, quote::MESSAGE)).into_owned();
    let rows: Vec<[String; COLUMNS]> = std::iter::once(head).chain(rows).map(|row| row.map(cell)).collect();
    let mut widths = [0; COLUMNS];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ")
    };
    rows.iter().map(line).collect()
}

/// The head, a table of the decisions, then each finding with its fix.
pub(super) fn report(head: &str, rows: &[ReportRow], findings: &[Folded<'_>], summary: &str, style: Style) -> String {
    let mut out = String::new();
    head.lines().for_each(|text| line(&mut out, text));
    if !rows.is_empty() {
        places(&mut out, rows, style);
        out.push('\n');
    }
    let mut fixed = HashMap::new();
    for (found, others) in findings {
        finding(&mut out, found, others, &mut fixed, style);
    }
    line(&mut out, summary);
    out
}

/// Writes a line that is safe for a terminal. A line that looks like a command in a workflow's log is escaped.
fn line(out: &mut String, text: &str) {
    let (indent, bare) = text.split_at(text.len() - text.trim_start().len());
    out.push_str(indent);
    let mut rest = bare.chars();
    if bare.starts_with("::") {
        out.extend(rest.by_ref().take(1).flat_map(char::escape_unicode));
    }
    out.push_str(rest.as_str());
    out.push('\n');
}

fn places(out: &mut String, places: &[ReportRow], style: Style) {
    fn row(place: &ReportRow) -> [&str; 3] {
        [&place.object, &place.slot, place.credential_spec.as_deref().unwrap_or("-")]
    }
    let lines = aligned(["OBJECT", "SLOT", "CREDENTIAL SPEC"], places.iter().map(row));
    let result =
        |place: &ReportRow| style.level((!place.admitted).then_some(Severity::Error), &one_line(&place.result));
    let results = std::iter::once(style.bold("RESULT")).chain(places.iter().map(result));
    for (cells, result) in lines.iter().zip(results) {
        line(out, &format!("{cells}  {result}"));
    }
}

/// The most lines of a fix that is repeated.
const SHORT: usize = 10;

/// Writes a finding. A long fix is written once: `fixed` has the object that it was written for.
fn finding<'f>(
    out: &mut String,
    found: &'f Diagnostic,
    others: &[&str],
    fixed: &mut HashMap<&'f str, &'f str>,
    style: Style,
) {
    let Diagnostic { rule, severity, object, field, message, consequence, fix, .. } = found;
    let head = style.level(Some(*severity), &format!("{}[{}]", severity.as_str(), rule.id));
    let mut place = if is_place_of_object(found) { String::new() } else { one_line(file(found)).into_owned() };
    if let Some(line) = super::line(found) {
        let _ = write!(place, ":{line}");
    }
    if !object.is_empty() {
        // An object of a cluster has no file.
        let colon = if place.is_empty() { "" } else { ": " };
        let _ = write!(place, "{colon}{}", one_line(object));
    }
    line(out, &format!("{head} {}", style.bold(&place)));
    let colon = if field.is_empty() { "" } else { ": " };
    line(out, &format!("  {}", one_line(&format!("{field}{colon}{message}"))));
    if let Some(consequence) = consequence {
        line(out, &format!("  so: {}", one_line(consequence)));
    }
    let long = fix.as_deref().filter(|fix| fix.lines().count() > SHORT);
    let first = long.map(|fix| *fixed.entry(fix).or_insert(object)).filter(|first| first != object);
    match (fix.as_deref().map(lines), first) {
        (_, Some(first)) => line(out, &format!("  fix: the same as for {}", one_line(first))),
        (Some(fix), None) if fix.contains('\n') => {
            line(out, "  fix:");
            fix.lines().for_each(|text| line(out, &format!("    {text}")));
        }
        (Some(fix), None) => line(out, &format!("  fix: {fix}")),
        (None, None) => {}
    }
    for more in left_out(found).into_iter().chain(also(others)) {
        line(out, &format!("  {}", one_line(&more)));
    }
    out.push('\n');
}

/// Whether the file name is the object itself, so that printing both would repeat it: `shop/Deployment/web`.
fn is_place_of_object(found: &Diagnostic) -> bool {
    let name = found.object.split_once(' ').and_then(|(kind, name)| Some((kind, name.split_once('/')?)));
    name.is_some_and(|(kind, (namespace, name))| file(found) == format!("{namespace}/{kind}/{name}"))
}

/// A line for each check, followed by the remedy if it does not pass.
pub fn checks(checks: &[Check], style: Style) -> String {
    let width = checks.iter().map(|check| check.about.len()).max().unwrap_or(0);
    let row = |check: &Check| {
        let (mark, about) = (style.level(check.severity(), status(check)), check.about);
        match &check.result {
            Ok(text) => format!("{mark}  {about:width$}  {}\n", one_line(&shortened(text))),
            Err(found) => {
                let text = format!("{} [{}]", shortened(&sentence(found)), found.rule.id);
                let head = format!("{mark}  {about:width$}  {}\n", one_line(&text));
                match found.remedy() {
                    // A step that is not reached has no remedy.
                    "" => head,
                    remedy => format!("{head}      {:width$}  -> {}\n", "", one_line(remedy)),
                }
            }
        }
    };
    checks.iter().map(row).collect()
}

/// Cuts a message of another program, which can be as long as an object, to the length in the log.
fn shortened(text: &str) -> Cow<'_, str> {
    quote::shorten(text, quote::MESSAGE)
}

/// A line for each check that fails.
pub fn failing(checks: &[Check]) -> Vec<String> {
    let errors = checks.iter().filter_map(|check| Some((check.about, check.result.as_ref().err()?)));
    let failing = errors.filter(|(_, found)| found.severity == Severity::Error);
    failing.map(|(about, found)| format!("{about}: {}\n", one_line(&shortened(&sentence(found))))).collect()
}

pub(super) fn status(check: &Check) -> &'static str {
    match check.severity() {
        None => "pass",
        Some(_) if check.result.as_ref().is_err_and(|found| *found.rule == rules::NOT_CHECKED) => "skip",
        Some(Severity::Note) => "note",
        Some(Severity::Warning) => "warn",
        Some(Severity::Error) => "fail",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_any_length_is_one_line_of_a_terminal() {
        let long = "x".repeat(75_000);
        let about = |result| Check { about: "pod", result };
        let cut = format!("{}…", "x".repeat(1023));
        let found = Diagnostic::new(&rules::NOT_STARTED, long.clone()).with_fix("Do it.");
        let printed = checks(&[about(Ok(long)), about(Err(found.clone()))], Style::PLAIN);
        assert_eq!(printed, format!("pass  pod  {cut}\nfail  pod  {cut} [not-started]\n           -> Do it.\n"));
        assert_eq!(failing(&[about(Err(found))]), [format!("pod: {cut}\n")]);
    }
}

//! The report for people: a table of what will happen, then each finding with its fix.

use std::fmt::Write as _;

use gmsa_core::diagnostic::{
    Diagnostic, Severity,
    printable::{lines, one_line},
};

use super::{Place, Style, aligned, file, left_out};

pub(super) fn render(rows: &[Place], findings: &[Diagnostic], summary: &str, style: Style) -> String {
    let mut out = String::new();
    if !rows.is_empty() {
        places(&mut out, rows, style);
        out.push('\n');
    }
    for found in findings {
        finding(&mut out, found, style);
    }
    line(&mut out, summary);
    out
}

/// Writes a line. One that begins like a command of a workflow's log, which a field or a fix could, is escaped.
fn line(out: &mut String, text: &str) {
    let bare = text.trim_start();
    // Writing into a String cannot fail.
    let _ = match bare.chars().next() {
        Some(first) if bare.starts_with("::") || bare.starts_with("##[") => {
            let indent = text.len() - bare.len();
            let rest = bare.get(1..).unwrap_or_default();
            writeln!(out, "{:indent$}{}{rest}", "", first.escape_unicode())
        }
        _ => writeln!(out, "{text}"),
    };
}

fn places(out: &mut String, places: &[Place], style: Style) {
    let row = |place: &Place| {
        [&place.object, &place.slot, place.credential_spec.as_deref().unwrap_or("-")]
            .map(|cell| one_line(cell).into_owned())
    };
    let head = ["OBJECT", "SLOT", "CREDENTIAL SPEC"].map(str::to_owned);
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(places.iter().map(row)).collect();
    let result = |place: &Place| {
        let text = one_line(&place.result);
        if place.admitted { style.good(&text) } else { style.level(Severity::Error, &text) }
    };
    let results = std::iter::once(style.bold("RESULT")).chain(places.iter().map(result));
    for (cells, result) in aligned(rows.iter()).iter().zip(results) {
        line(out, &format!("{cells}  {result}"));
    }
}

fn finding(out: &mut String, found: &Diagnostic, style: Style) {
    let head = style.level(found.severity, &format!("{}[{}]", found.severity.as_str(), found.rule.id));
    let mut place = one_line(file(found)).into_owned();
    if let Some(line) = super::line(found) {
        let _ = write!(place, ":{line}");
    }
    if !found.object.is_empty() {
        // What comes from a cluster is in no file.
        let colon = if place.is_empty() { "" } else { ": " };
        let _ = write!(place, "{colon}{}", one_line(&found.object));
    }
    line(out, &format!("{head} {}", style.bold(&place)));
    let field = if found.field.is_empty() { String::new() } else { format!("{}: ", found.field) };
    line(out, &format!("  {}", one_line(&format!("{field}{}", found.message))));
    if let Some(consequence) = found.consequence {
        line(out, &format!("  so: {}", one_line(consequence)));
    }
    if let Some(fix) = &found.fix {
        let fix = lines(fix);
        if fix.contains('\n') {
            line(out, "  fix:");
            fix.lines().for_each(|text| line(out, &format!("    {text}")));
        } else {
            line(out, &format!("  fix: {fix}"));
        }
    }
    if let Some(more) = left_out(found) {
        line(out, &format!("  {more}"));
    }
    out.push('\n');
}

//! The report for people: a table of what will happen, then each finding with its fix.

use std::fmt::Write as _;

use super::{Finding, Place, Report, Style, Unread, printable};
use crate::output::Level;

pub(super) fn render(report: &Report, style: Style) -> String {
    let mut out = String::new();
    if !report.places.is_empty() {
        places(&mut out, &report.places, style);
        out.push('\n');
    }
    for unread in &report.unread {
        problem(&mut out, unread, style);
    }
    for found in &report.findings {
        finding(&mut out, found, style);
    }
    line(&mut out, &report.summary());
    out
}

/// Writing into a String cannot fail.
fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}");
}

fn places(out: &mut String, places: &[Place], style: Style) {
    let row =
        |place: &Place| [&place.object, &place.slot, place.credential_spec.as_deref().unwrap_or("-")].map(printable);
    let head = ["OBJECT", "SLOT", "CREDENTIAL SPEC"].map(str::to_owned);
    let rows: Vec<[String; 3]> = places.iter().map(row).collect();
    let width = |column: usize| {
        std::iter::once(&head).chain(&rows).filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..3).map(|column| width(column).unwrap_or_default()).collect();
    let mut write = |cells: &[String; 3], result: &str, paint: &dyn Fn(&str) -> String| {
        let cells: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line(out, &format!("{}  {}", cells.join("  "), paint(result)));
    };
    write(&head, "RESULT", &|text| style.bold(text));
    for (place, row) in places.iter().zip(&rows) {
        let paint = |text: &str| if place.admitted { style.good(text) } else { style.level(Level::Error, text) };
        write(row, &printable(&place.result), &paint);
    }
}

fn problem(out: &mut String, unread: &Unread, style: Style) {
    let at = unread.line.map(|line| format!(":{line}")).unwrap_or_default();
    let head = style.level(Level::Error, "unreadable");
    line(out, &format!("{head} {}{at}: {}\n", printable(&unread.file), printable(&unread.message)));
}

fn finding(out: &mut String, found: &Finding, style: Style) {
    let Finding { level, rule, file, line: at, object, field, message, consequence, fix } = found;
    let head = style.level(*level, &format!("{}[{rule}]", level.as_str()));
    line(out, &format!("{head} {}", style.bold(&format!("{}:{at}: {}", printable(file), printable(object)))));
    let message = printable(message);
    if field.is_empty() {
        line(out, &format!("  {message}"));
    } else {
        line(out, &format!("  {}: {message}", printable(field)));
    }
    if let Some(consequence) = consequence {
        line(out, &format!("  so: {}", printable(consequence)));
    }
    if let Some(fix) = fix {
        let fix = printable(fix);
        if fix.contains('\n') {
            line(out, "  fix:");
            fix.lines().for_each(|text| line(out, &format!("    {text}")));
        } else {
            line(out, &format!("  fix: {fix}"));
        }
    }
    out.push('\n');
}

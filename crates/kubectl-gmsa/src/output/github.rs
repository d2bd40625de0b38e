//! The report for the log of a GitHub workflow: one command for each finding, shown beside the line in a pull request.

use gmsa_core::diagnostic::{Diagnostic, Severity, printable};

use super::{file, left_out, line, sentence};

pub(super) fn render(findings: &[Diagnostic], summary: &str) -> String {
    findings.iter().map(command).chain([format!("{summary}\n")]).collect()
}

fn command(found: &Diagnostic) -> String {
    let name = if found.severity == Severity::Note { "notice" } else { found.severity.as_str() };
    let line = line(found).map(|line| format!(",line={line}")).unwrap_or_default();
    let fix = found.fix.as_ref().map(|fix| format!("\nfix: {}", printable::lines(fix))).unwrap_or_default();
    let more = left_out(found).map(|more| format!("\n{more}")).unwrap_or_default();
    let text = format!("{}{fix}{more}", printable::one_line(&sentence(found)));
    let place = match file(found) {
        // What comes from a cluster is in no file.
        "" => String::new(),
        file => format!("file={}{line},", property(&printable::one_line(file))),
    };
    format!("::{name} {place}title={}::{}\n", property(found.rule.id), data(&text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

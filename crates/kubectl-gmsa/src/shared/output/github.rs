//! The report for the log of a GitHub workflow: one command for each finding, shown beside the line in a pull request.

use gmsa_core::{
    diagnostic::{Diagnostic, Severity},
    quote,
};

use super::{Folded, also, file, left_out, line, sentence};

pub(super) fn render(findings: &[Folded<'_>], summary: &str) -> String {
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

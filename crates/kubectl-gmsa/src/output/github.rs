//! The report for the log of a GitHub workflow: one command a finding, shown beside the line in a pull request.

use super::{Level, Report};

pub(super) fn render(report: &Report) -> String {
    let unread = report
        .unread
        .iter()
        .map(|unread| command(Level::Error, &unread.file, unread.line, "unreadable", &unread.message));
    let findings = report.findings.iter().map(|finding| {
        let fix = finding.fix.as_ref().map(|fix| format!("\nfix: {fix}")).unwrap_or_default();
        let text = format!("{}: {}: {}{fix}", finding.object, finding.field, finding.message);
        command(finding.level, &finding.file, Some(finding.line), finding.rule, &text)
    });
    unread.chain(findings).chain([report.summary() + "\n"]).collect()
}

fn command(level: Level, file: &str, line: Option<u64>, title: &str, text: &str) -> String {
    let name = if level == Level::Note { "notice" } else { level.as_str() };
    let line = line.map(|line| format!(",line={line}")).unwrap_or_default();
    format!("::{name} file={}{line},title={}::{}\n", property(file), property(title), data(text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

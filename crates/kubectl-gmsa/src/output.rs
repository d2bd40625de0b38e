//! What a check found, and the forms in which people and machines read it.
//!
//! What always holds: every form says the same; whatever comes from a file is escaped for the form that it stands in, so
//! no manifest can steer a terminal or write a log command.

use std::{fmt::Write as _, io::IsTerminal as _, sync::Arc};

use clap::ValueEnum;
use serde::Serialize;

use super::Outcome;
use gmsa_cluster::manifests::Problem;
use gmsa_core::credspec::lint::Severity;

mod github;
mod sarif;
mod table;

/// The form of the output.
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

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing; does not count as a finding.
    Note,
    /// May be meant so, but rarely is.
    Warning,
    /// Cannot work.
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Warning => Self::Warning,
            Severity::Error => Self::Error,
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The rule's name, fit for a machine.
    pub rule: &'static str,
    /// The file.
    pub file: Arc<str>,
    /// The line in it, counted from 1.
    pub line: u64,
    /// The object: `Deployment shop/web`.
    pub object: String,
    /// The field in the object.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What happens because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// What to do about it: a command, or the YAML to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What will become of one place that uses GMSA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line in it, counted from 1.
    pub line: u64,
    /// The object: `Deployment shop/web`.
    pub object: String,
    /// The place: `container "iis"`.
    pub slot: String,
    /// The credential spec that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_spec: Option<String>,
    /// Whether the webhook will take it.
    pub admitted: bool,
    /// What happens: `gets the contents (371 bytes)`, `refused: 404`.
    pub result: String,
}

/// A file, or a part of one, that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Unread {
    file: Arc<str>,
    line: Option<u64>,
    message: String,
}

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// How many objects were read.
    documents: usize,
    places: Vec<Place>,
    findings: Vec<Finding>,
    unread: Vec<Unread>,
}

impl Report {
    /// A report on so many objects, and on what could not be read.
    #[must_use]
    pub fn new(documents: usize, problems: &[Problem]) -> Self {
        let mut report = Self { documents, ..Self::default() };
        report.unread(problems);
        report
    }

    /// Adds what could not be read.
    pub fn unread(&mut self, problems: &[Problem]) {
        self.unread.extend(problems.iter().map(|problem| Unread {
            file: Arc::clone(&problem.file),
            line: problem.position.map(|(_, line)| line),
            message: problem.message.clone(),
        }));
    }

    /// Adds what was found.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds what will become of a place.
    pub fn place(&mut self, place: Place) {
        self.places.push(place);
    }

    /// How it ended: notes are no findings.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if !self.unread.is_empty() {
            Outcome::Incomplete
        } else if self.findings.iter().any(|finding| finding.level > Level::Note) {
            Outcome::Findings
        } else {
            Outcome::Clean
        }
    }

    /// Prints the report; findings stand in the order of files and lines.
    ///
    /// # Errors
    /// Where JSON cannot be written, which plain texts and numbers never cause.
    pub fn render(&mut self, format: Format, style: Style) -> anyhow::Result<String> {
        self.findings.sort_by(|a, b| (&a.file, a.line, b.level).cmp(&(&b.file, b.line, a.level)));
        Ok(match format {
            Format::Table => table::render(self, style),
            Format::Json => {
                let mut text = serde_json::to_string_pretty(self)?;
                text.push('\n');
                text
            }
            Format::Sarif => sarif::render(self)?,
            Format::Github => github::render(self),
        })
    }

    /// `2 errors and 1 warning in 5 objects`
    fn summary(&self) -> String {
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let found: Vec<String> = [
            (self.unread.len(), "unreadable part"),
            (count(Level::Error), "error"),
            (count(Level::Warning), "warning"),
            (count(Level::Note), "note"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| plural(count, what))
        .collect();
        let found = if found.is_empty() { "nothing to find fault with".to_owned() } else { found.join(", ") };
        format!("{found} in {}", plural(self.documents, "object"))
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Plain text.
    pub const PLAIN: Self = Self { colour: false };

    /// Colour where standard output is a terminal, unless `NO_COLOR` says otherwise.
    #[must_use]
    pub fn of_terminal() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colour: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn level(self, level: Level, text: &str) -> String {
        let code = match level {
            Level::Note => "36",
            Level::Warning => "33",
            Level::Error => "31",
        };
        self.paint(code, text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// A text that cannot steer a terminal: control characters but line feeds are escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            // Writing into a String cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

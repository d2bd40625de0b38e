//! A diagnostic: one type for the linter, advice on pods, manifests and every check of an installation.
//!
//! Invariants: a diagnostic belongs to a [`Rule`] of [`rules`], or of `crates/rules`, so each is in `docs/rules.md`; a
//! [`Diagnostics`] holds at most [`MAX_OF_A_RULE`] of one rule for one file, and counts the others.

use std::{collections::HashMap, fmt, sync::Arc};

pub mod rules;

use crate::quote::one_line;
pub use rules::Rule;

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// Worth knowing. It fails a command only with `--fail-on note`.
        Note = "note",
        /// It may be intended, but rarely is.
        Warning = "warning",
        /// It cannot work.
        Error = "error",
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as the user would write it.
    pub file: Arc<str>,
    /// Where in the file; `None` for the file as a whole.
    pub position: Option<Position>,
}

impl Location {
    pub fn file(name: &str) -> Self {
        Self { file: Arc::from(name), position: None }
    }

    /// The line, counted from 1.
    pub fn line(&self) -> Option<u64> {
        self.position.map(|position| position.line)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.file))?;
        self.position.map_or(Ok(()), |Position { document, line }| write!(f, ", document {document}, line {line}"))
    }
}

/// A place in the text of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the YAML document, counted from 1, empty ones included.
    pub document: usize,
    /// The line of the file, counted from 1.
    pub line: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub rule: &'static Rule,
    /// Its severity here; usually that of the rule.
    pub severity: Severity,
    /// Where it is, if in a file.
    pub location: Option<Location>,
    /// The object: `Deployment shop/web`. Empty where the caller knows which one is meant.
    pub object: String,
    /// The field of the object, as `kubectl explain` writes it: `credspec.DomainJoinConfig.Sid`.
    pub field: String,
    pub message: String,
    pub consequence: Option<&'static str>,
    /// The fix: a command, a value, or YAML to add.
    pub fix: Option<String>,
    /// How many others of this rule in this file are left out.
    pub more: usize,
}

impl Diagnostic {
    /// A breach of `rule`, with the severity of the rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            location: None,
            object: String::new(),
            field: String::new(),
            message: message.into(),
            consequence: None,
            fix: None,
            more: 0,
        }
    }

    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// With this severity instead of that of the rule.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// With this fix instead of the remedy of the rule.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// With this fix, if there is one.
    #[must_use]
    pub fn fixed(self, fix: Option<String>) -> Self {
        Self { fix: fix.or(self.fix), ..self }
    }

    /// The fix, or else the remedy of the rule.
    pub fn remedy(&self) -> &str {
        self.fix.as_deref().unwrap_or(self.rule.remedy)
    }
}

/// One line: the place, the field and what is wrong.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", one_line(&self.field))?;
        }
        f.write_str(&one_line(&self.message))?;
        if self.more > 0 { write!(f, " (and {} more like this in the file)", self.more) } else { Ok(()) }
    }
}

/// The result of one check of something that runs, such as an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject of the check: `certificate`, `service`.
    pub about: &'static str,
    /// A sentence if the check passed, otherwise the diagnostic.
    pub result: Result<String, Diagnostic>,
}

impl Check {
    pub fn pass(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, result: Ok(text.into()) }
    }

    pub fn found(about: &'static str, diagnostic: Diagnostic) -> Self {
        Self { about, result: Err(diagnostic) }
    }

    /// A check that found a breach of `rule`, with the severity of the rule.
    pub fn breach(about: &'static str, rule: &'static Rule, message: impl Into<String>) -> Self {
        Self::found(about, Diagnostic::new(rule, message))
    }

    /// Its severity; `None`, which is below every severity, if it passed.
    pub fn severity(&self) -> Option<Severity> {
        self.result.as_ref().err().map(|found| found.severity)
    }
}

/// How many diagnostics of one rule are kept for one file.
pub const MAX_OF_A_RULE: usize = 100;

/// Diagnostics in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    kept: HashMap<(&'static str, Option<Arc<str>>), Kept>,
}

/// The findings of one rule in one file.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// How many are in the list.
    count: usize,
    /// The index of the last of them in the list, which counts the omitted ones.
    last: usize,
}

impl Diagnostics {
    /// Adds one, or counts it where there are enough of its rule and file.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let file = diagnostic.location.as_ref().map(|location| Arc::clone(&location.file));
        let kept = self.kept.entry((diagnostic.rule.id, file)).or_default();
        if kept.count < MAX_OF_A_RULE {
            *kept = Kept { count: kept.count + 1, last: self.list.len() };
            self.list.push(diagnostic);
        } else if let Some(last) = self.list.get_mut(kept.last) {
            last.more += diagnostic.more + 1;
        }
    }

    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.list
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, more: I) {
        more.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreadable(file: &str, line: u64) -> Diagnostic {
        let location = Location { file: Arc::from(file), position: Some(Position { document: 1, line }) };
        Diagnostic::new(&rules::UNREADABLE, "no\nYAML").at(location)
    }

    #[test]
    fn a_place_and_a_message_are_one_line() {
        assert_eq!(unreadable("a\u{1b}.yaml", 3).to_string(), "a\\u{1b}.yaml, document 1, line 3: no\\nYAML");
        let file = Diagnostic::new(&rules::UNREADABLE, "is gone").at(Location::file("b"));
        assert_eq!(file.to_string(), "b: is gone");
        let more = Diagnostic { more: 1, ..file };
        assert_eq!(more.to_string(), "b: is gone (and 1 more like this in the file)");
    }

    #[test]
    fn what_to_do_is_the_fix_or_what_the_rule_says() {
        let found = Diagnostic::new(&rules::UNREADABLE, "is gone");
        assert_eq!(found.remedy(), rules::UNREADABLE.remedy);
        assert_eq!(found.with_fix("bring it back").remedy(), "bring it back");
    }

    #[test]
    fn a_check_that_passes_has_no_severity() {
        assert_eq!(Check::pass("service", "runs").severity(), None);
        let found = Diagnostic::new(&rules::UNREADABLE, "is gone").with_severity(Severity::Warning);
        assert_eq!(Check::found("service", found).severity(), Some(Severity::Warning));
    }

    #[test]
    fn more_than_a_hundred_of_a_rule_in_a_file_are_counted() {
        let mut found = Diagnostics::default();
        assert!(found.is_empty());
        found.extend((1..=150).map(|line| unreadable("a", line)));
        found.push(unreadable("b", 1));
        let mut sum = Diagnostics::default();
        sum.push(unreadable("a", 0));
        sum.extend(found);
        assert!(!sum.is_empty());
        let list = sum.as_slice();
        assert_eq!(list.len(), 101);
        let more: Vec<_> = list
            .iter()
            .filter(|found| found.more > 0)
            .map(|found| (found.more, found.location.as_ref().unwrap().line()))
            .collect();
        assert_eq!(more, [(51, Some(99))]);
        assert_eq!(list[100].location.as_ref().unwrap().file.as_ref(), "b");
    }
}

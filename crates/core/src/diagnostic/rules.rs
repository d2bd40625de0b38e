//! The rules of the core, the directory, the server and the broker: `generated.rs`, which is made of `crates/rules/data` and checked in.
//! `CONTRIBUTING.md` says how to add a rule.
//!
//! A remedy is a template: `kubectl gmsa` fills in the names that it knows for `SPEC`, `NAMESPACE`, `NODE` and others in its commands.

use super::Severity;

include!("../../generated.rs");

/// Something that must or should hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name in output: lower-case words joined by hyphens. It never changes.
    pub id: &'static str,
    pub severity: Severity,
    /// The fault, in one sentence.
    pub title: &'static str,
    pub remedy: &'static str,
}

/// The broker's refusals after which the agent removes the tickets, or the keytab, that it has: the pod's right to them has ended. A refusal about the pod's
/// life is not among them, because a pod needs its tickets until it ends.
pub static END_OF_TICKETS: [&Rule; 4] = [&NOT_AUTHORIZED, &TICKET_SERVICES, &KEYTAB_NAMES, &SPEC_MISSING];

/// The page that explains the rules, from the root of the repository.
pub const PAGE: &str = "docs/rules.md";

impl Rule {
    /// The anchor of the rule on [`PAGE`].
    pub fn page(&self) -> String {
        format!("{PAGE}#{}", self.id)
    }
}

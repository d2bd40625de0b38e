//! Every rule as data: what it means, what to do, and the words in which other programs report it; and the code that finds these words in
//! a text.
//!
//! The source is `data/`, a file for each family; the numbers of the files give the order of the table, which decides between words at the
//! same place of a text.
//! `generated.rs`, here and in the core for the rules that it finds itself, is made of it by
//! `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules --test generated` and checked in, so that nothing is parsed when a program
//! starts. `CONTRIBUTING.md` says how to add a message or a rule. The real messages (`seen`) stay in the data: a test explains each of them.
//!
//! A text passes through these modules:
//! - `normal`: one form for what is pasted from terminals, logs, YAML and JSON;
//! - `reading`: the words of the table in it, in one pass;
//! - `number`, `status`, `symbols`: codes, and their names in Windows, Kerberos and LDAP;
//! - `meaning`: what an explanation is, and the phase that a text shows;
//! - `text`: which words win in a text with several;
//! - `agent`: failures of the ticket agent.
//!
//! It depends on the core alone: remedies with names in them, and everything that asks a cluster, are the plugin's (its `shared/rules.rs`).

use gmsa_core::diagnostic::{Rule, Severity, rules as core};

use Words::{Codes, Event, Exit, General, Message, Refusal, RunningCodes, Start, StartCodes};

mod agent;
mod meaning;
mod normal;
mod number;
mod reading;
mod status;
mod symbols;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    agent::AgentFailure,
    meaning::{Explanation, Meaning, Phase},
    reading::Reading,
    status::WindowsStatus,
    text::{explain, is_refusal, lacks_right, recognize, refusal, said},
};

include!("../generated.rs");

/// Messages of other programs that mean the breach of a rule. `*` is for anything, `?` for one word. Upper and lower case are equal; names
/// of alerts are printed as they are in the data.
#[derive(Clone, Copy, Debug)]
pub enum Words {
    /// A refusal by the API server or by a webhook that it calls.
    Refusal(&'static str),
    /// A message from a node that starts a container.
    Start(&'static str),
    /// Any other message, at any time.
    Message(&'static str),
    /// Words that count only in a text without other known words: they surround the cause, or have several causes.
    General(&'static str),
    /// Events of Windows: a part of the name of their source, and their numbers.
    Event(&'static str, &'static [u32]),
    /// Small exit codes of programs.
    Exit(&'static [u32]),
    /// Statuses of Windows, by name, while a node starts a container.
    StartCodes(&'static [&'static str]),
    /// Statuses in a running container.
    RunningCodes(&'static [&'static str]),
    /// Statuses that mean the same in both.
    Codes(&'static [&'static str]),
}

/// Words, and what to do where a text has one of them.
pub type ByWords = (&'static [&'static str], &'static str);

/// A rule with its words.
pub struct RuleEntry {
    pub rule: &'static Rule,
    pub words: &'static [Words],
    /// Remedies by words; the first words that are in the text win.
    pub remedies: &'static [ByWords],
}

/// The entry of a rule.
pub fn entry(rule: &Rule) -> Option<&'static RuleEntry> {
    ENTRIES.iter().find(|entry| entry.rule == rule)
}

/// Each rule with its words, in the order of the table.
pub fn words() -> impl Iterator<Item = (&'static Rule, Words)> {
    ENTRIES.iter().flat_map(|entry| entry.words.iter().map(|words| (entry.rule, *words)))
}

/// Why a rule of an earlier release is gone.
pub fn removed(id: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(known, _)| *known == id).map(|(_, reason)| *reason)
}

/// All rules, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    ENTRIES.iter().map(|entry| entry.rule)
}

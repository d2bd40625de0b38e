//! All rules: the meaning of each, the messages of other programs that show it, and its remedy.
//!
//! A new rule is, in three places; a rule of the core that has words is in [`of_core`] too:
//! - an entry in the file of its family: id, severity, title and remedy. Optional are the messages that mean it (API server,
//!   scheduler, kubelet, CCG, hcsshim, Windows, Kerberos), remedies for single messages, and a remedy built from its names. A rule
//!   that the core, the directory or the server reports too has the first four in `diagnostic/rules.rs` of the core, the rest in [`of_core`];
//! - the function that reports it (for a family that `pub use self` lists by name, also its name there) or, if only messages of other
//!   programs show it, such a message in `tests/messages`, which `commands/explain/tests.rs` reads;
//! - a line in `docs/rules.md`, by `UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`, which writes the messages into `docs/messages.md` too.
//!
//! A new message of a rule is:
//! - in the `words` of its rule, a part of the message that does not change. `rg` a message of the same program in `tests/messages`, which
//!   names the rule: for containerd, hcsshim and CCG mostly the variant `Start`, in the file `start.rs`. A message of a success has an
//!   entry in `no_faults.rs`. New words that show a phase are also in `Phase::of` of `meaning.rs`;
//! - for a message in an event: the reason of the event, in `REASONS` of `shared/walk/events.rs`, or `why` does not see it;
//! - an entry with `text`, `rule`, `word` and `source` in the file of `tests/messages` whose first line names its program, and
//!   `UPDATE_SNAPSHOTS=1` as above. Words without a real message have a row in `rows.yaml`, a new file a place in `FILES` of
//!   `commands/explain/tests.rs`. Words that no text needs fail a test.
//!
//! A new alert of a chart is a `Message` with its name, in the words of its rule. If its remedy is not the rule's, its name is in the
//! `remedies` too. A test counts the alerts.
//!
//! The head of `text.rs` says which words win in a text with several.
//!
//! A remedy is a template: [`Names`] replace `SPEC`, `NODE` and others in its commands. Every command that judges a message calls
//! [`fix`], and [`recognize`] or [`refusal`], so all of them judge alike. Errors of this process are matched by type and code; words of
//! ours are here for other processes (webhook, broker, agent) and for what is pasted into `explain`.

use gmsa_core::diagnostic::Diagnostic;
pub use gmsa_core::diagnostic::rules::*;

mod accounts;
mod api;
mod clients;
mod identity;
mod installation;
mod meaning;
mod names;
mod no_faults;
mod normal;
mod number;
mod of_core;
mod pods;
mod reading;
mod removed;
mod start;
mod status;
mod symbols;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod tickets;

pub use self::{
    accounts::{LOGON_RESTRICTED, PASSWORD_EXPIRED},
    api::TIMED_OUT,
    clients::{KDC_UNREACHABLE, KERBEROS_CONFIGURATION, NO_TICKET, TICKET_EXPIRED},
    identity::*,
    installation::*,
    meaning::{Explanation, Meaning, Phase},
    names::{Fix, Names},
    of_core::instead_of,
    pods::*,
    reading::Reading,
    removed::removed,
    start::*,
    status::WindowsStatus,
    target::FixTarget,
    text::{explain, is_refusal, lacks_right, recognize, refusal, said},
    tickets::{BROKER_UNREACHABLE, BROKER_UNTRUSTED},
};
#[cfg(test)]
pub use self::{
    tests::{numbers, patterns},
    text::explain_without,
};

/// Messages of other programs that mean the breach of a rule. `*` is for anything, `?` for one word. Upper and lower case are equal; names
/// of alerts are printed as they are here.
#[derive(Clone, Copy, Debug)]
enum Words {
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

/// The part of a rule that only the plugin knows.
struct RuleEntry {
    rule: &'static Rule,
    words: &'static [Words],
    /// Remedies by words; the first words that are in the text win.
    remedies: &'static [ByWords],
    /// What to do, where its names say more than can be filled in.
    fix: Option<fn(&Names<'_>) -> Option<Fix>>,
}

impl RuleEntry {
    /// An entry for a rule without words.
    const fn of(rule: &'static Rule) -> Self {
        Self { rule, words: &[], remedies: &[], fix: None }
    }
}

/// Words, and what to do where a text has one of them.
type ByWords = (&'static [&'static str], &'static str);

/// Entries that belong together.
struct Family {
    /// The heading on the page; empty for rules of the core, which has their part of the page.
    heading: &'static str,
    entries: &'static [RuleEntry],
}

/// The rules that are found here, or what is known here of those `of the core`.
macro_rules! family {
    ($heading:literal { $($name:ident: $id:literal, $severity:ident, $title:literal, $remedy:literal
            $(, words: $words:tt)? $(, remedies: $remedies:tt)? $(, fix: $fix:ident)?;)* }) => {
        $(
            #[doc = $title]
            pub static $name: Rule = Rule { id: $id, severity: Severity::$severity, title: $title, remedy: $remedy };
        )*

        family! { @ $heading $(($name $(, words: $words)? $(, remedies: $remedies)? $(, fix: $fix)?))* }
    };
    (of the core { $($name:ident: $words:tt $(, remedies: $remedies:tt)? $(, fix: $fix:ident)?;)* }) => {
        family! { @ "" $((gmsa_core::diagnostic::rules::$name, words: $words $(, remedies: $remedies)? $(, fix: $fix)?))* }
    };
    (@ $heading:literal $(($rule:path $(, words: $words:tt)? $(, remedies: $remedies:tt)? $(, fix: $fix:ident)?))*) => {
        pub(super) static FAMILY: Family = Family {
            heading: $heading,
            entries: &[$(RuleEntry {
                $(words: &$words,)?
                $(remedies: family!(@ $remedies),)?
                $(fix: Some($fix),)?
                ..RuleEntry::of(&$rule)
            }),*],
        };
    };
    (@ { $($($words:literal)|+ => $remedy:literal),+ $(,)? }) => { &[$((&[$($words),+], $remedy)),+] };
}
use family;

/// The table. Its order decides between general words in one text, and between rules with words at the same place.
static FAMILIES: [&Family; 9] = [
    &of_core::FAMILY,
    &start::FAMILY,
    &pods::FAMILY,
    &installation::FAMILY,
    &identity::FAMILY,
    &accounts::FAMILY,
    &tickets::FAMILY,
    &clients::FAMILY,
    &api::FAMILY,
];

/// Each rule with its words.
fn words() -> impl Iterator<Item = (&'static Rule, Words)> {
    let entries = FAMILIES.iter().flat_map(|family| family.entries);
    entries.flat_map(|entry| entry.words.iter().map(|words| (entry.rule, *words)))
}

/// What to do about a breach of `rule`, as far as these names say more than the rule.
pub fn fix(rule: &Rule, names: &Names<'_>) -> Option<Fix> {
    let of_names = entry(rule).and_then(|entry| entry.fix?(names));
    of_names.or_else(|| {
        let of_words = of_words(rule, names);
        let remedy = names.filled(of_words.unwrap_or(rule.remedy));
        remedy.or_else(|| of_words.map(str::to_owned)).map(Fix::run)
    })
}

fn entry(rule: &Rule) -> Option<&'static RuleEntry> {
    FAMILIES.iter().flat_map(|family| family.entries).find(|entry| entry.rule == rule)
}

/// The remedy for `rule` that the words of what was said select.
fn of_words(rule: &Rule, names: &Names<'_>) -> Option<&'static str> {
    let remedies = entry(rule)?.remedies;
    let index = match names.readings {
        [] if remedies.is_empty() || names.said.is_empty() => None,
        [] => Reading::of(names.said).remedy(rule),
        readings => readings.iter().filter_map(|reading| reading.remedy(rule)).min(),
    };
    remedies.get(index?).map(|(_, remedy)| *remedy)
}

/// A finding in a cluster, with its remedy. A message quoted in the text can select the remedy.
pub fn found(rule: &'static Rule, text: impl Into<String>, names: &Names<'_>) -> Diagnostic {
    let text = text.into();
    let said = if names.said.is_empty() { text.as_str() } else { names.said };
    let fix = fix(rule, &Names { said, ..*names }).and_then(Fix::in_cluster);
    Diagnostic { fix, ..Diagnostic::new(rule, text) }
}

/// A failed request for tickets, as the agent reports it.
pub struct AgentFailure {
    /// By the id that the broker gives, otherwise by the agent's words.
    pub rule: &'static Rule,
    /// The HTTP status of the broker's refusal; `None` where the broker did not refuse.
    pub status: Option<u16>,
}

impl AgentFailure {
    /// Reads the agent's message: `the broker refused: 403 Forbidden, not-authorized: …`.
    pub fn of(message: &str) -> Self {
        let refusal = message.strip_prefix("the broker refused: ");
        let status = refusal.and_then(|refusal| refusal.split(' ').next()?.parse().ok());
        let id = refusal.and_then(|refusal| refusal.split_once(", ")?.1.split(':').next());
        let named = all().find(|rule| Some(rule.id) == id);
        let of_words = || recognize(&format!("no tickets: {message}"), Phase::Running);
        Self { rule: named.or_else(of_words).unwrap_or(&BROKER_UNREACHABLE), status }
    }

    /// Whether the agent removes the tickets that it has.
    pub fn removes_tickets(&self) -> bool {
        self.status.is_some() && END_OF_TICKETS.contains(&self.rule)
    }
}

/// All rules, in groups with a heading, as the page shows them.
pub fn groups() -> Vec<(&'static str, Vec<&'static Rule>)> {
    let mut groups: Vec<(&str, Vec<&Rule>)> = RULES.iter().map(|(heading, rules)| (*heading, rules.to_vec())).collect();
    for Family { heading, entries } in FAMILIES.into_iter().filter(|family| !family.heading.is_empty()) {
        let rules = entries.iter().map(|entry| entry.rule);
        match groups.iter_mut().find(|(known, _)| known == heading) {
            Some((_, known)) => known.extend(rules),
            None => groups.push((heading, rules.collect())),
        }
    }
    groups
}

pub fn all() -> impl Iterator<Item = &'static Rule> {
    groups().into_iter().flat_map(|(_, rules)| rules)
}

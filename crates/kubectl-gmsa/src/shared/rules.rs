//! The rules and their remedies, and what the messages of other programs mean.
//!
//! What a rule means, its remedies and the words in which others report it are the data of `crates/rules`; `CONTRIBUTING.md` says how to
//! add a message or a rule. Here is what reads texts by them:
//! - new words that show a phase are also in `Phase::of` of `meaning.rs`;
//! - for a message in an event, the reason of the event is in `REASONS` of `shared/walk/events.rs`, or `why` does not see it;
//! - a remedy that the code makes of names is in `computed.rs`.
//!
//! The head of `text.rs` says which words win in a text with several.
//!
//! A remedy is a template: [`Names`] replace `SPEC`, `NODE` and others in its commands. Every command that judges a message calls
//! [`fix`], and [`recognize`] or [`refusal`], so all of them judge alike. Errors of this process are matched by type and code; words of
//! ours are in the data for other processes (webhook, broker, agent) and for what is pasted into `explain`.

use gmsa_core::diagnostic::Diagnostic;
pub use gmsa_core::diagnostic::rules::*;
pub use gmsa_rules::*;

mod computed;
mod meaning;
mod names;
mod normal;
mod number;
mod reading;
mod status;
mod symbols;
mod target;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    computed::instead_of,
    meaning::{Explanation, Meaning, Phase},
    names::{Fix, Names},
    reading::Reading,
    status::WindowsStatus,
    target::FixTarget,
    text::{explain, is_refusal, lacks_right, recognize, refusal, said},
};
#[cfg(test)]
pub use self::{
    tests::{numbers, patterns},
    text::explain_without,
};

/// What to do about a breach of `rule`, as far as these names say more than the rule.
pub fn fix(rule: &Rule, names: &Names<'_>) -> Option<Fix> {
    let computed = computed::COMPUTED.iter().find(|(of, _)| *of == rule);
    let of_names = computed.and_then(|(_, fix)| fix(names));
    of_names.or_else(|| {
        let of_words = of_words(rule, names);
        let remedy = names.filled(of_words.unwrap_or(rule.remedy));
        remedy.or_else(|| of_words.map(str::to_owned)).map(Fix::run)
    })
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

/// The rules whose remedies the code makes of names.
#[cfg(test)]
pub fn computed() -> impl Iterator<Item = &'static Rule> {
    computed::COMPUTED.iter().map(|(rule, _)| *rule)
}

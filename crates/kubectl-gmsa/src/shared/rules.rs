//! The rules and their remedies, with the names of a cluster in them.
//!
//! A rule's meaning, its remedies, the words in which others report it and the code that finds them in a text are in `crates/rules`;
//! `CONTRIBUTING.md` says how to add a message or a rule. Here is what knows objects of a cluster:
//! - for a message in an event about a missing sandbox, the reason of the event is in `OF_SANDBOX` of `shared/walk/events.rs`;
//! - a remedy that the code makes of names is in `computed.rs`.
//!
//! A remedy is a template: [`Names`] replace `SPEC`, `NODE` and others in its commands. Every command that judges a message calls
//! [`fix`], and [`recognize`] or [`refusal`], so all of them judge alike. Errors of this process are matched by type and code; words of
//! ours are in the data for other processes (webhook, broker, agent) and for what is pasted into `explain`.

use gmsa_core::diagnostic::Diagnostic;
pub use gmsa_core::diagnostic::rules::*;
pub use gmsa_rules::*;

mod computed;
mod names;
#[cfg(test)]
mod tests;

pub use self::{
    computed::instead_of,
    names::{Fix, FixTarget, Names},
};

/// The remedy for a breach of `rule`, as far as these names say more than the rule.
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

//! What the texts of others mean: refusals by the API server and the webhook, events of controllers, the scheduler and kubelets, errors of CCG,
//! hcsshim and Windows, answers of commands in a container, and what this program prints itself.
//!
//! The sentences are those of Container Credential Guard (CCG), Microsoft's page on troubleshooting gMSA for containers; of hcsshim,
//! `internal/credentials`, `internal/hcsoci` and `errors.go`; of Windows for codes, `net helpmsg`; of `Denial` in the core, which the Go
//! webhook shares; of kube-apiserver, `plugin/pkg/admission/serviceaccount/admission.go`, `plugin/pkg/admission/runtimeclass/admission.go`,
//! and `staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go` for webhooks that are not reached. Windows writes
//! its messages in its own language; the others are English.
//!
//! Invariants: a text of any length and content gives at most [`MAX_FOUND`] explanations; nothing is guessed: a number counts only
//! where its form or the word before it says that it is a status. Of a refusal, what stands first counts, and nothing that it quotes.

use super::{
    POD_REFUSED, Rule, Words, all, code,
    code::{CODES, Status},
    meaning::{Explanation, Meaning, Phase},
    number, words,
};

/// How many different errors of one text are explained.
pub const MAX_FOUND: usize = 16;

/// Events of CCG that say that a step succeeded.
static NO_FAULTS: &[(&str, &str)] = &[
    ("credential guard instantiated the plugin", "The plugin is registered on the node and was started."),
    ("fetched gmsa credentials for", "The node has the password of the account."),
    ("is refetching the credentials", "The password of the account has changed, and the node retrieves the new one."),
];

/// Explains the errors that a text holds: statuses alone, or messages with statuses in them. The most specific comes first.
pub fn explain(text: &str) -> Vec<Explanation> {
    different(printed(text).into_iter().chain(of_others(text)))
}

/// The rule that the first error of a text of others breaks, which arose in `phase`.
pub fn recognize(text: &str, phase: Phase) -> Option<&'static Rule> {
    of_others(text).into_iter().find_map(|found| match found.meaning {
        Meaning::Fault(rules) => {
            let of_phase = rules.iter().find(|(of, _)| *of == Some(phase)).or(rules.first());
            of_phase.map(|(_, rule)| *rule)
        }
        Meaning::NoFault(_) | Meaning::Unknown(_) => None,
    })
}

/// The rule that a message is about with which the API server refuses a pod.
pub fn refusal(message: &str) -> &'static Rule {
    refused(&plain(message)).map_or(&POD_REFUSED, |(_, rule)| rule)
}

/// Whether a message says that something refused a pod, with whatever code: a webhook chooses its own.
pub fn is_refusal(message: &str) -> bool {
    let message = plain(message);
    message.contains("denied the request") || refused(&message).is_some()
}

/// Whether a message says that a user lacks a right (RBAC authorizer of kube-apiserver).
pub fn lacks_right(message: &str) -> bool {
    let message = plain(message);
    words().any(|(_, words)| matches!(words, Words::Right(words) if position(&message, words).is_some()))
}

/// The message without the words of the controller: `Error creating: pods "web-" is forbidden: …`.
pub fn said(message: &str) -> &str {
    let rest = message.strip_prefix("Error creating: ").unwrap_or(message);
    rest.split_once(" failed error: ").map_or(rest, |(_, said)| said)
}

/// As words have it. Microsoft's page writes `plug-in`, the events write `plugin`.
fn plain(text: &str) -> String {
    text.to_ascii_lowercase().replace("plug-in", "plugin")
}

/// The rules that a text names which this program, or the webhook, has printed.
fn printed(text: &str) -> Vec<Explanation> {
    let names = |rule: &Rule| {
        let id = rule.id;
        let of_line = |line: &str| {
            let line = line.trim_end();
            ["note", "warning", "error"].iter().any(|severity| line.contains(&format!("{severity}[{id}]")))
                || line.ends_with(&format!(" [{id}]"))
                || ["rule", "ruleId"].iter().any(|key| line.contains(&format!("\"{key}\": \"{id}\"")))
                || line.contains(&format!("title={id}::"))
        };
        text.trim() == id || text.lines().filter(|line| line.contains(id)).any(of_line)
    };
    let found = all().filter(|rule| names(rule)).take(MAX_FOUND);
    found.map(|rule| Explanation { found: rule.id.to_owned(), meaning: Meaning::Fault(vec![(None, rule)]) }).collect()
}

fn of_others(text: &str) -> Vec<Explanation> {
    let lower = plain(text);
    let phase = Phase::of(&lower);
    let mut found = sentences(&lower, phase);
    if let Some(statuses) = text.split_whitespace().take(MAX_FOUND).map(number::alone).collect::<Option<Vec<_>>>() {
        found.extend(statuses.into_iter().map(|status| status.explain(phase).unwrap_or_else(|| status.unknown())));
    } else {
        let statuses = number::find(text).chain(code::named(text));
        found.extend(statuses.filter_map(|status| status.explain(phase)).take(MAX_FOUND));
    }
    different(found.into_iter())
}

/// Each once. The first of those that say the same is the most specific one.
fn different(found: impl Iterator<Item = Explanation>) -> Vec<Explanation> {
    let mut different: Vec<Explanation> = Vec::new();
    for explanation in found {
        if !different.iter().any(|known| known.says_all_of(&explanation)) {
            different.push(explanation);
        }
    }
    different.truncate(MAX_FOUND);
    different
}

/// What the sentences of a text say, which is in lower case.
fn sentences(text: &str, phase: Option<Phase>) -> Vec<Explanation> {
    let refused = refused(text).map(|(words, rule)| fault(words, None, rule));
    let of_rule = words().filter_map(|(rule, words)| {
        let (words, phase) = match words {
            Words::Start(words) => (words, Some(Phase::Start)),
            Words::Message(words) | Words::Right(words) => (words, None),
            Words::Refusal(_) | Words::StartCodes(_) | Words::RunningCodes(_) | Words::Codes(_) => return None,
        };
        position(text, words).map(|_| fault(words, phase, rule))
    });
    let of_windows = CODES.iter().filter(|code| !code.message.is_empty()).filter_map(|code| {
        position(text, code.message)?;
        let explained = Status(code.value).explain(phase)?;
        Some(Explanation { found: format!("{}: {}", quoted(code.message), explained.found), ..explained })
    });
    let no_fault = NO_FAULTS.iter().filter_map(|(words, what)| {
        position(text, words).map(|_| Explanation { found: quoted(words), meaning: Meaning::NoFault(what) })
    });
    refused.into_iter().chain(of_rule).chain(of_windows).chain(no_fault).collect()
}

/// The words of a refusal that stand first, and their rule. What is in quotes is a name, or the words of somebody else.
fn refused(text: &str) -> Option<(&'static str, &'static Rule)> {
    let text = &unquoted(text);
    let found = words().filter_map(|(rule, words)| match words {
        Words::Refusal(words) => Some((position(text, words)?, words, rule)),
        _ => None,
    });
    found.min_by_key(|(at, ..)| *at).map(|(_, words, rule)| (words, rule))
}

/// The text without what is between double quotes, in which a backslash keeps a quote from ending them.
fn unquoted(text: &str) -> String {
    let mut bare = String::new();
    let (mut in_quotes, mut is_escaped) = (false, false);
    for c in text.chars() {
        let is_quote = c == '"' && !is_escaped;
        is_escaped = in_quotes && c == '\\' && !is_escaped;
        in_quotes ^= is_quote;
        if is_quote || !in_quotes {
            bare.push(c);
        }
    }
    bare
}

/// Where the words begin in the text.
fn position(text: &str, words: &str) -> Option<usize> {
    let mut parts = words.split('*');
    let (start, end) = part(text, parts.next()?)?;
    let mut rest = text.get(end..);
    for words in parts {
        rest = rest.and_then(|rest| part(rest, words).and_then(|(_, end)| rest.get(end..)));
    }
    rest.map(|_| start)
}

/// Where a part without `*` begins and ends. Its `?` is one word.
fn part(text: &str, words: &str) -> Option<(usize, usize)> {
    let Some((before, after)) = words.split_once('?') else {
        return text.find(words).map(|start| (start, start + words.len()));
    };
    text.match_indices(before).find_map(|(start, _)| {
        let word = text.get(start + before.len()..)?;
        let length = word.find(char::is_whitespace).filter(|length| *length > 0)?;
        word.get(length..)?.starts_with(after).then_some((start, start + before.len() + length + after.len()))
    })
}

fn fault(words: &str, phase: Option<Phase>, rule: &'static Rule) -> Explanation {
    Explanation { found: quoted(words), meaning: Meaning::Fault(vec![(phase, rule)]) }
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('*', " … ").replace('?', "…"))
}

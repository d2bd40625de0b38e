//! The meaning of messages: refusals by the API server and the webhook, events of controllers, the scheduler and kubelets, errors of CCG,
//! hcsshim and Windows, answers of commands in a container, and the output of this program.
//!
//! Sources: Microsoft's page on troubleshooting gMSA for containers, for Container Credential Guard (CCG); `internal/credentials`,
//! `internal/hcsoci` and `errors.go` of hcsshim; `net helpmsg` for Windows codes; `Denial` in the core, shared with the Go webhook;
//! `plugin/pkg/admission/serviceaccount/admission.go` and `plugin/pkg/admission/runtimeclass/admission.go` of kube-apiserver, and its
//! `staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go` for failed webhook calls. Windows messages are
//! translated; the others are English.
//!
//! A text often has several words of the table. In order, the explanations are:
//! 1. a refusal (`refused`), unless other words are in fewer quotations: the first one in the fewest quotations; at one place the longest;
//! 2. sentences of rules that are in no longer sentence (`outermost`): the last one first; at one place the longest words, then the order of
//!    `ENTRIES`;
//! 3. without 1 and 2, messages of Windows in the same order, then statuses, the last one first;
//! 4. without a fault so far, a small exit code, then general words in the order of `ENTRIES`, then unknown statuses;
//! 5. without any of these, names of protocols.
//!
//! Words of a success count only in a text without a fault.
//!
//! Invariants: a text of any length and content gives at most [`MAX_FOUND`] explanations. A number counts only if its form, or the word
//! before it, marks it as a status. A code of Kerberos or LDAP counts as its name only in a text without a sentence: most repeat theirs. Only the first words of a refusal count, never a quotation in it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
};

use super::{
    GOOD, GSS_FAILURE, LOGON_WORDS, PLUGIN_USER, POD_REFUSED, Rule, START_LOGON,
    Words::{self, Event, General, Message, Refusal, Start},
    all,
    meaning::{Explanation, Meaning, Phase},
    normal::normal,
    number,
    reading::{Reading, Says, Span},
    removed,
    status::{self, WindowsStatus},
    symbols, words,
};

/// The most explanations for one text.
pub const MAX_FOUND: usize = 16;

/// Explains the errors in a text: statuses alone, or messages with statuses in them. The most specific comes first. The reading
/// selects remedies.
pub fn explain(text: &str) -> (Vec<Explanation>, Reading) {
    let (others, reading) = of_others(text);
    let removed = removed(text.trim())
        .map(|instead| Explanation { found: text.trim().to_owned(), meaning: Meaning::NoFault(instead.to_owned()) });
    (different(removed.into_iter().chain(printed(text)).chain(others)), reading)
}

/// The rule of the first error in a message from `phase`.
pub fn recognize(text: &str, phase: Phase) -> Option<&'static Rule> {
    of_others(text).0.into_iter().find_map(|found| match found.meaning {
        Meaning::Fault(rules) => {
            let of_phase = rules.iter().find(|(of, _)| *of == Some(phase)).or(rules.first());
            of_phase.map(|(_, rule)| *rule)
        }
        Meaning::NoFault(_) | Meaning::Unknown(_) => None,
    })
}

/// The rule of a message with which the API server refuses a pod.
pub fn refusal(message: &str) -> &'static Rule {
    refused(&Reading::of(message)).map_or(&POD_REFUSED, |(_, _, rule)| rule)
}

/// Whether a message is a refusal of a pod, with any code, because webhooks choose their own.
pub fn is_refusal(message: &str) -> bool {
    let reading = Reading::of(message);
    reading.has(DENIED) || refused(&reading).is_some()
}

/// The API server's words for a webhook that denies a request.
const DENIED: &str = "denied the request";

/// The message for a missing right to create pods (RBAC authorizer of kube-apiserver).
const MAY_NOT_CREATE_PODS: &str = "cannot create resource \"pods\"";

/// Whether a message reports a missing right.
pub fn lacks_right(message: &str) -> bool {
    Reading::of(message).has(MAY_NOT_CREATE_PODS)
}

/// The message without the words of the controller: `Error creating: pods "web-" is forbidden: …`.
pub fn said(message: &str) -> &str {
    let rest = message.strip_prefix("(combined from similar events): ").unwrap_or(message);
    let rest = rest.strip_prefix("Error creating: ").unwrap_or(rest);
    rest.split_once(" failed error: ").map_or(rest, |(_, said)| said)
}

/// The rules named in output of this program or the webhook.
fn printed(text: &str) -> Vec<Explanation> {
    let ids: HashSet<&str> = all().map(|rule| rule.id).collect();
    let is_printed = |word: &&str| {
        let start = (word.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let around = text.get(..start).zip(text.get(start + word.len()..));
        ids.contains(word) && around.is_some_and(|(before, after)| names_rule(before, after))
    };
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '-');
    let named: HashSet<&str> = words.filter(is_printed).collect();
    let of_table = all().filter(|rule| named.contains(rule.id)).take(MAX_FOUND);
    of_table.map(|rule| fault(rule.id.to_owned(), None, rule)).collect()
}

/// Whether a rule name between these texts was printed by this program, or is the whole text.
fn names_rule(before: &str, after: &str) -> bool {
    if before.trim_start().is_empty() && after.trim_end().is_empty() {
        return true;
    }
    let is_value = || {
        let key = before.strip_suffix('"').map(|before| before.trim_end_matches(' ').trim_end_matches([':', '=']));
        let keys = ["\"rule\"", "\"ruleId\"", "\"reason\"", " reason"];
        key.is_some_and(|key| keys.iter().any(|known| key.ends_with(known))) && after.starts_with('"')
    };
    // `the broker refused: 403 Forbidden, ticket-pod: …`
    let is_of_broker = || {
        // From the last comma on: a scan of all the text for each word that is an id takes seconds for each MB.
        let status = before.strip_suffix(", ").filter(|_| after.starts_with(": "));
        let status = status.and_then(|before| before.rsplit(',').next()?.rsplit('\n').next());
        status.and_then(|line| line.rsplit_once("the broker refused: ")).is_some_and(|(_, status)| status.len() < 40)
    };
    let is_last = || {
        let rest = after.strip_prefix(']').map(|rest| rest.trim_start_matches(['"', ',', ' ', '\t', '\r']));
        before.ends_with(" [") && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
    };
    let is_of_severity = || ["note[", "warning[", "error["].iter().any(|severity| before.ends_with(severity));
    is_of_severity() && after.starts_with(']')
        || before.ends_with("title=") && after.starts_with("::")
        || is_last()
        || is_value()
        || is_of_broker()
}

fn of_others(text: &str) -> (Vec<Explanation>, Reading) {
    if let Some(name) = number::alone(text).and_then(|WindowsStatus(value)| symbols::of_mit(value)) {
        return of_others(name);
    }
    let alone = |word: &str| number::alone(word).or_else(|| status::of_name(word));
    let alone: Option<Vec<_>> = text.split_whitespace().take(MAX_FOUND).map(alone).collect();
    if let Some(statuses) = alone {
        let explained = |status: WindowsStatus| status.explain(None).unwrap_or_else(|| status.unknown());
        let explained: Vec<_> = match *statuses.as_slice() {
            [small] if number::is_small(text) => vec![small.ambiguous()],
            _ => statuses.into_iter().map(explained).collect(),
        };
        return (different(explained.into_iter()), Reading::default());
    }
    let (text, names, reading) = read(text);
    (explanations(&text, &names, &reading), reading)
}

/// The normal form of a text, the names of the numbers in it that are codes of a protocol, and the words of both.
fn read(text: &str) -> (String, Vec<&'static str>, Reading) {
    let text = normal(text);
    let reading = Reading::of_normal(&text);
    let text = reading.without_nothing(&text);
    let of_protocol = symbols::of_protocol(&text);
    let symbol = |WindowsStatus(value)| of_protocol(value).or_else(|| symbols::of_mit(value));
    let names: Vec<_> = number::find(&text).filter_map(symbol).take(MAX_FOUND).collect();
    let reading = if has_sentence(&reading) { reading } else { reading.and(Reading::of(&names.join(" "))) };
    (text, names, reading)
}

/// Whether a text has a sentence of a rule, besides words that surround a cause.
fn has_sentence(reading: &Reading) -> bool {
    reading.found().any(|(pattern, _)| matches!(pattern.says, Says::OfRule(_, Refusal(_) | Start(_) | Message(_))))
}

fn explanations(text: &str, names: &[&'static str], reading: &Reading) -> Vec<Explanation> {
    let phase = Phase::of(text);
    let counts_vague = is_of_logon(text, phase);
    let explained = |status: WindowsStatus| status.explain(phase).filter(|_| counts_vague || !status.is_vague());
    let events = EventNumbers::of(text);
    let statuses = statuses(text, names);
    let (of_rules, of_windows) = sentences(reading, explained);
    // A sentence that names the failed part is more specific than the status at its end.
    let is_named = !of_rules.is_empty();
    let mut found = if is_named { of_rules } else { of_windows };
    found.extend(no_faults(reading, &events));
    if !is_named {
        found.extend(statuses.iter().copied().filter_map(explained).take(MAX_FOUND));
    }
    if !found.iter().any(Explanation::is_fault) {
        found.extend(without_fault(text, general(reading, &events), found.is_empty()));
        let unknown = unknown(text, &statuses).filter(|status| explained(**status).is_none());
        found.extend(unknown.take(MAX_FOUND).map(|status| status.unknown()));
    }
    if found.is_empty() {
        let written = symbols::names_of_protocols(text).take(MAX_FOUND);
        found.extend(names.iter().copied().chain(written).map(symbols::explain));
    }
    if reading.has("failed to fetch gmsa credentials") {
        found.iter_mut().for_each(of_plugin_user);
    }
    let has_fault = found.iter().any(Explanation::is_fault);
    different(found.into_iter().filter(|found| !has_fault || found.is_fault()))
}

/// The statuses in a text, each once. The last one comes first, because it is the cause of the others.
fn statuses(text: &str, names: &[&str]) -> Vec<WindowsStatus> {
    // Beside names of a protocol, small numbers are codes of that protocol.
    let counts = |status: &WindowsStatus| status.0 > 0 && (names.is_empty() || status.0 > 0xff);
    let mut statuses: Vec<_> = number::find(text).chain(status::named(text)).filter(counts).collect();
    statuses.reverse();
    let mut seen = HashSet::new();
    statuses.retain(|WindowsStatus(value)| seen.insert(*value));
    statuses
}

/// The answer of [`explain`] without one of the patterns, by its index.
#[cfg(test)]
pub fn explain_without(text: &str, pattern: usize) -> (Vec<Explanation>, Reading) {
    let (normal, names, reading) = read(text);
    let reading = reading.without(pattern);
    let others = explanations(&normal, &names, &reading);
    (different(printed(text).into_iter().chain(others)), reading)
}

/// A node that fetches the password of an account logs on as the user of its plugin, and as nobody else.
fn of_plugin_user(found: &mut Explanation) {
    if let Meaning::Fault(rules) = &mut found.meaning {
        let of_logon = rules.iter_mut().filter(|(_, rule)| [&START_LOGON, &GSS_FAILURE].contains(rule));
        of_logon.for_each(|(_, rule)| *rule = &PLUGIN_USER);
    }
}

/// The explanation of a text without specific words: an exit code, then words with several causes.
fn without_fault(text: &str, general: Option<Explanation>, is_alone: bool) -> Vec<Explanation> {
    // These words name why the kubelet or the system ended it.
    let is_ended = ["oomkilled", "liveness probe", "startup probe"].iter().any(|reason| text.contains(reason));
    let exited = exited(text).filter(|_| !is_ended);
    let faults: Vec<_> = exited.clone().filter(Explanation::is_fault).into_iter().chain(general).collect();
    if faults.is_empty() && is_alone { exited.into_iter().collect() } else { faults }
}

/// The numbers that are statuses anywhere, by their form, their name or the word before them.
fn unknown<'s>(text: &str, statuses: &'s [WindowsStatus]) -> impl Iterator<Item = &'s WindowsStatus> {
    let by_name: HashSet<u32> = status::named(text).map(|WindowsStatus(value)| value).collect();
    // `System error 71 has occurred.`
    let is_of_windows = text.contains("system error");
    statuses.iter().filter(move |status| status.is_failure() || is_of_windows || by_name.contains(&status.0))
}

/// Whether a text is about the start of a container or a failed logon, so an otherwise vague status counts.
fn is_of_logon(text: &str, phase: Option<Phase>) -> bool {
    phase == Some(Phase::Start) || LOGON_WORDS.iter().any(|word| text.contains(word))
}

/// The meaning of a small exit code: by convention, some come from a shell or a signal.
fn exited(text: &str) -> Option<Explanation> {
    // Any program prints the code of another: only words of kubectl and the kubelet, or the code alone, are explained.
    let is_alone = || text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).starts_with("exit");
    let is_of_container =
        || ["container", "command terminated with", "terminated"].iter().any(|word| text.contains(word));
    let code = number::exit(text).filter(|_| is_alone() || is_of_container())?;
    let is_of = |words: &Words| matches!(words, Words::Exit(codes) if codes.contains(&code));
    let meaning = match words().find(|(_, words)| is_of(words)) {
        Some((rule, _)) => Meaning::Fault(vec![(None, rule)]),
        None if code == 0 => Meaning::NoFault("The program ended by itself, without an error.".to_owned()),
        None => Meaning::Unknown(
            "This is the program's own exit code, not a Windows status: its documentation and its log say what it means. \
             `kubectl logs POD --namespace NAMESPACE --previous` shows the log of a container that was started again."
                .to_owned(),
        ),
    };
    let code = if code == u32::MAX { "-1".to_owned() } else { code.to_string() };
    Some(Explanation { found: format!("exit code {code}"), meaning })
}

/// Removes duplicates. The first of equal explanations is the most specific.
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

/// The explained sentences of rules in a text, and those of Windows, which are statuses; of both, the most important first: a refusal, then the
/// others from last to first, because the last is the cause. A sentence within another is not explained.
fn sentences(
    reading: &Reading,
    explained: impl Fn(WindowsStatus) -> Option<Explanation>,
) -> (Vec<Explanation>, Vec<Explanation>) {
    let (mut spans, mut sentences) = (Vec::new(), BTreeMap::new());
    for (index, (pattern, places)) in reading.found().enumerate() {
        let found = quoted(pattern.words);
        let sentence = match pattern.says {
            Says::OfRule(rule, Start(_)) => Some((true, fault(found, Some(Phase::Start), rule))),
            Says::OfRule(rule, Message(_)) => Some((true, fault(found, None, rule))),
            Says::OfWindows(name) => {
                let status = symbols::value(name).map(WindowsStatus);
                let Some(explanation) = status.and_then(&explained) else { continue };
                let found = format!("{found}: {}", explanation.found);
                Some((false, Explanation { found, ..explanation }))
            }
            Says::Nothing => None,
            Says::OfRule(..) | Says::OfRemedy(..) | Says::NoFault(_) => continue,
        };
        sentences.extend(sentence.map(|sentence| (index, sentence)));
        spans.extend(places.iter().map(|span| (*span, pattern.words.len(), index)));
    }
    let mut outer = outermost(spans);
    let refusal = refused(reading).filter(|(depth, ..)| outer.iter().all(|(span, _)| *depth <= span.depth));
    let refusal = refusal.map(|(_, words, rule)| (true, fault(quoted(words), None, rule)));
    // The first place of each pattern counts, and at one place the order of the table.
    let mut seen = HashSet::new();
    outer.retain(|(_, index)| seen.insert(*index));
    outer.sort_by_key(|(span, index)| (Reverse(span.end), span.start, *index));
    let ordered = outer.iter().filter_map(|(_, index)| sentences.remove(index));
    let (of_rules, of_windows): (Vec<_>, Vec<_>) =
        refusal.into_iter().chain(ordered).partition(|(is_of_rule, _)| *is_of_rule);
    let explanations = |sentences: Vec<(bool, Explanation)>| sentences.into_iter().map(|(_, found)| found).collect();
    (explanations(of_rules), explanations(of_windows))
}

/// The spans outside longer ones, in the order of their starts, each with its index. Each span comes with the length of its words: at one
/// place, those with a gap for any name are shorter than those that say more of it.
fn outermost(mut spans: Vec<(Span, usize, usize)>) -> Vec<(Span, usize)> {
    spans.sort_by_key(|(span, length, index)| (span.start, Reverse(span.end), Reverse(*length), *index));
    let mut furthest = (0, 0, 0);
    spans.retain(|(span, length, _)| {
        let is_part =
            span.end < furthest.1 || span.end == furthest.1 && (furthest.0 < span.start || *length < furthest.2);
        if span.end > furthest.1 {
            furthest = (span.start, span.end, *length);
        }
        !is_part
    });
    spans.into_iter().map(|(span, _, index)| (span, index)).collect()
}

/// The explanations of successful steps.
fn no_faults(reading: &Reading, events: &EventNumbers<'_>) -> Vec<Explanation> {
    let of_words = reading.found().filter_map(|(pattern, _)| match pattern.says {
        Says::NoFault(what) => Some((quoted(pattern.words), what)),
        _ => None,
    });
    let of_events = GOOD.iter().flat_map(|(words, what)| words.iter().map(move |words| (*words, *what)));
    let of_events = of_events.filter_map(|(words, what)| Some((events.find(words)?, what)));
    let no_fault = |(found, what): (String, &str)| Explanation { found, meaning: Meaning::NoFault(what.to_owned()) };
    of_words.chain(of_events).map(no_fault).collect()
}

/// The first general words of the table, or the first event.
fn general(reading: &Reading, events: &EventNumbers<'_>) -> Option<Explanation> {
    words().find_map(|(rule, words)| {
        let found = match words {
            General(of) => reading.has(of).then(|| quoted(of)),
            words => events.find(words),
        };
        found.map(|found| fault(found, None, rule))
    })
}

/// The numbers in a text that may be numbers of Windows events.
struct EventNumbers<'t> {
    text: &'t str,
    numbers: HashSet<u32>,
}

impl<'t> EventNumbers<'t> {
    fn of(text: &'t str) -> Self {
        let of_rules = words().map(|(_, words)| words);
        let of_table = of_rules.chain(GOOD.iter().flat_map(|(words, _)| words.iter().copied()));
        let known: HashSet<u32> = of_table
            .filter_map(|words| if let Event(_, numbers) = words { Some(numbers) } else { None })
            .flatten()
            .copied()
            .collect();
        let mut before = "";
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let numbers = words.by_ref().filter_map(|word| {
            let before = std::mem::replace(&mut before, word);
            let number = word.parse().ok().filter(|number| known.contains(number))?;
            // A large number is an event number anywhere in a text that names its source.
            let is_event = number > 99 || matches!(before, "event" | "id" | "eventid" | "number" | "ccg");
            is_event.then_some(number)
        });
        Self { text, numbers: numbers.collect() }
    }

    /// Finds one of these events in the text.
    fn find(&self, words: Words) -> Option<String> {
        let Event(source, numbers) = words else { return None };
        let number = numbers.iter().find(|number| self.numbers.contains(number) && self.text.contains(source))?;
        Some(format!("event {number} of {source}"))
    }
}

/// The first words of a refusal, the number of quotations around them, and their rule. Quoted text within a refusal is a name or a
/// quotation.
fn refused(reading: &Reading) -> Option<(usize, &'static str, &'static Rule)> {
    let found = reading.found().filter_map(|(pattern, spans)| match pattern.says {
        Says::OfRule(rule, Refusal(words)) => {
            let first = spans.iter().min_by_key(|span| (span.depth, span.start))?;
            Some((first.depth, first.start, words, rule))
        }
        _ => None,
    });
    let first = found.min_by_key(|(depth, start, words, _)| (*depth, *start, Reverse(words.len())));
    first.map(|(depth, _, words, rule)| (depth, words, rule))
}

fn fault(found: String, phase: Option<Phase>, rule: &'static Rule) -> Explanation {
    Explanation { found, meaning: Meaning::Fault(vec![(phase, rule)]) }
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('*', " … ").replace('?', "…"))
}

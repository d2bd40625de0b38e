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

use std::{cmp::Reverse, collections::HashSet};

use super::{
    ByWords, POD_REFUSED, Rule,
    Words::{self, Event, General, Message, Start},
    all,
    meaning::{Explanation, Meaning, Phase},
    number,
    status::{self, MESSAGES, Status},
    symbols, words,
};

/// How many different errors of one text are explained.
pub const MAX_FOUND: usize = 16;

/// Longer than the names and addresses in one message, and shorter than several messages.
const MAX_BETWEEN: usize = 600;

/// What says that a step succeeded, or is part of every logon.
static NO_FAULTS: &[(&[Words], &str)] = &[
    (
        &[Message("credential guard instantiated the plugin"), Event("containers-ccg", &[1])],
        "The plugin is registered on the node and was started.",
    ),
    (
        &[Message("fetched gmsa credentials for"), Event("containers-ccg", &[2])],
        "The node has the password of the account.",
    ),
    (
        &[Message("is refetching the credentials"), Event("containers-ccg", &[7])],
        "The password of the account has changed, and the node retrieves the new one.",
    ),
    (
        &[Message("nt authority\\network service")],
        "On the network, such a process acts as the gMSA: `klist` and `nltest /sc_verify:DOMAIN` show it.",
    ),
    (
        &[Message("tls handshake error from *: eof")],
        "A client connected and sent nothing, as TCP health checks of load balancers do.",
    ),
    (&[Message("trust verification status = 0 0x0 nerr_success")], "The domain trusts the container."),
    (
        &[Message("a ticket to krbtgt has been retrieved successfully")],
        "The container logs on to the domain as the account.",
    ),
    (
        &[Message("successfully fetched the password of a group managed")],
        "A domain controller sent a client the password of the account.",
    ),
    (
        &[Message("kdc_err_preauth_required"), Message("additional pre-authentication required")],
        "The first answer of every Kerberos logon: the client repeats its request with a proof of its password.",
    ),
    (
        &[Message("ip addresses don't map to any of the existing sites")],
        "The addresses of some clients belong to no site of the domain. It works, and they may take a distant domain controller.",
    ),
    (
        &[Message("current logged-on user is not a domain user")],
        "A local user of the container has no such name. SYSTEM and NETWORK SERVICE act as the gMSA on the network all the same: `klist` shows it.",
    ),
    (&[Message("krb_err_response_too_big")], "The client repeats its request over TCP: let TCP 88 through."),
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

/// Whether a message says that a pod was refused, with any code: a webhook chooses its own.
pub fn is_refusal(message: &str) -> bool {
    let message = plain(message);
    message.contains("denied the request") || refused(&message).is_some()
}

/// That a user lacks the right to create pods (RBAC authorizer of kube-apiserver).
pub(super) const MAY_NOT_CREATE_PODS: &str = "cannot create resource \"pods\"";

/// Whether a message says so.
pub fn lacks_right(message: &str) -> bool {
    plain(message).contains(MAY_NOT_CREATE_PODS)
}

/// The message without the words of the controller: `Error creating: pods "web-" is forbidden: …`.
pub fn said(message: &str) -> &str {
    let rest = message.strip_prefix("(combined from similar events): ").unwrap_or(message);
    let rest = rest.strip_prefix("Error creating: ").unwrap_or(rest);
    rest.split_once(" failed error: ").map_or(rest, |(_, said)| said)
}

/// As words have it: in lower case, with one space between words and no line breaks. Microsoft's page writes `plug-in`, the events
/// write `plugin`. That pods stay away from the nodes of the control plane is no cause, and the taint of a condition is none of an administrator.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace(['\u{2018}', '\u{2019}'], "'").replace(['\u{201c}', '\u{201d}'], "\"");
    let words: Vec<&str> = lower.split_whitespace().filter(|word| !matches!(*word, ">" | "|" | "+" | "│")).collect();
    let mut plain = words.join(" ").replace("plug-in", "plugin");
    // As YAML writes what is between single quotes.
    for word in ["n''t", "''s "] {
        plain = plain.replace(word, &word.replace("''", "'"));
    }
    for role in ["control-plane", "master"] {
        plain = plain.replace(&format!("untolerated taint {{node-role.kubernetes.io/{role}: }}"), "");
    }
    for condition in
        ["not-ready", "unreachable", "unschedulable", "disk-pressure", "memory-pressure", "network-unavailable"]
    {
        plain = plain.replace(
            &format!("untolerated taint {{node.kubernetes.io/{condition}"),
            &format!("node condition {{{condition}"),
        );
    }
    plain
}

/// The forms of a text that are tried one after the other: as it is, out of single quotes of YAML, wrapped inside words, and out of a string of
/// JSON, Go or XML.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![plain(text)];
    if text.contains("''") {
        forms.push(plain(&text.replace("''", "'")));
    }
    forms.push(plain(&text.lines().map(str::trim).collect::<String>()));
    forms.push(plain(&unescaped(text)));
    // Of a string, all is between quotes.
    if text.contains("\\\"") && forms.first().is_some_and(|form| refused(form).is_none()) {
        forms.rotate_right(1);
    }
    forms
}

/// Out of a string of JSON, Go or XML, and so without the quotes around it.
fn unescaped(text: &str) -> String {
    const QUOTE: &str = "\0";
    let escapes = [
        ("\\\"", QUOTE),
        ("\\u0022", QUOTE),
        ("&quot;", QUOTE),
        ("\"", ""),
        (QUOTE, "\""),
        ("\\\\", "\\"),
        ("\\r", " "),
        ("\\n", " "),
        ("\\t", " "),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    let bare = escapes.iter().fold(text.to_owned(), |bare, (escape, means)| bare.replace(escape, means));
    // `\u0027`
    let mut parts = bare.split("\\u");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let character = part.get(..4).and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        if let Some((character, rest)) = character.zip(part.get(4..)) {
            bare.push(character);
            bare.push_str(rest);
        } else {
            bare.extend(["\\u", part]);
        }
    }
    bare
}

/// What to do by the first of these remedies whose words a text has.
pub(super) fn first_of(text: &str, remedies: &[ByWords]) -> Option<&'static str> {
    if remedies.is_empty() || text.is_empty() {
        return None;
    }
    let is_in = |form: &str, of: &[&str]| of.iter().any(|words| position(form, words).is_some());
    let in_form = |form: &str| remedies.iter().find(|(of, _)| is_in(form, of));
    forms(text).iter().find_map(|form| in_form(form)).map(|(_, remedy)| *remedy)
}

/// The rules that a text names which this program, or the webhook, has printed.
fn printed(text: &str) -> Vec<Explanation> {
    let names = |rule: &Rule| {
        let id = rule.id;
        let of_line = |line: &str| {
            ["note", "warning", "error"].iter().any(|severity| line.contains(&format!("{severity}[{id}]")))
                || line.trim_end().trim_end_matches(['"', ',']).ends_with(&format!(" [{id}]"))
                || ["rule", "ruleId"]
                    .iter()
                    .any(|key| [": ", ":"].iter().any(|colon| line.contains(&format!("\"{key}\"{colon}\"{id}\""))))
                || line.contains(&format!("title={id}::"))
        };
        text.trim() == id || text.lines().filter(|line| line.contains(id)).any(of_line)
    };
    all().filter(|rule| names(rule)).take(MAX_FOUND).map(|rule| fault(rule.id.to_owned(), None, rule)).collect()
}

fn of_others(text: &str) -> Vec<Explanation> {
    if let Some(name) = number::alone(text).and_then(|Status(value)| symbols::of_mit(value)) {
        return of_others(name);
    }
    let alone: Option<Vec<_>> = text.split_whitespace().take(MAX_FOUND).map(number::alone).collect();
    if let Some(statuses) = alone {
        let explained = statuses.into_iter().map(|status| status.explain(None).unwrap_or_else(|| status.unknown()));
        return different(explained);
    }
    let (lower, bare) = (plain(text), unescaped(text));
    // Behind an escape, as in `Result Code:\t0x12` of JSON, a number is no word.
    let numbers = || number::find(&bare);
    let of_protocol = symbols::of_protocol(&lower);
    let symbol = |Status(value)| of_protocol(value).or_else(|| symbols::of_mit(value));
    let names: Vec<_> = numbers().filter_map(symbol).take(MAX_FOUND).collect();
    let phase = Phase::of(&lower);
    let (mut found, mut general) = (Vec::new(), None);
    for form in forms(&format!("{text} {}", names.join(" "))) {
        let (of_form, of_form_general) = sentences(&form, phase);
        found = of_form;
        general = general.or(of_form_general);
        if !found.is_empty() {
            break;
        }
    }
    let is_told = is_of_logon(&lower, phase);
    let counts = |status: &Status| status.0 > 0 && (names.is_empty() || status.0 > 0xff);
    // As with sentences, the last is the cause of those before it.
    let mut statuses: Vec<_> = numbers().chain(status::named(text)).filter(counts).collect();
    statuses.reverse();
    let mut seen = HashSet::new();
    statuses.retain(|Status(value)| seen.insert(*value));
    // Beside a step that is named, such a status says no more.
    let is_named = phase == Some(Phase::Start) && !found.is_empty();
    let explained = |status: &Status| status.explain(phase).filter(|_| (is_told && !is_named) || !status.is_vague());
    found.extend(statuses.iter().filter_map(explained).take(MAX_FOUND));
    if !found.iter().any(Explanation::is_fault) {
        // Why the kubelet or the system ended it is known.
        let is_ended = ["oomkilled", "liveness probe", "startup probe"].iter().any(|reason| lower.contains(reason));
        let exited = exited(&lower).filter(|_| !is_ended);
        found.extend(exited.clone().filter(Explanation::is_fault).into_iter().chain(general));
        if found.is_empty() {
            found.extend(exited);
        }
        let by_name: HashSet<u32> = status::named(text).map(|Status(value)| value).collect();
        let called = called_errors(&lower);
        let is_of_windows = lower.contains("system error") || lower.contains("win32");
        let is_called_error = |Status(value): &Status| {
            // A number in this range is an HTTP status.
            (is_of_windows || !(400..600).contains(value)) && called.contains(value)
        };
        let unknown = statuses.iter().filter(|status| {
            (status.is_failure() || by_name.contains(&status.0) || is_called_error(status))
                && explained(status).is_none()
        });
        found.extend(unknown.take(MAX_FOUND).map(|status| status.unknown()));
        if found.is_empty() {
            let written = symbols::names_of_protocols(text).take(MAX_FOUND);
            found.extend(names.iter().copied().chain(written).map(symbols::explain));
        }
    }
    let has_fault = found.iter().any(Explanation::is_fault);
    different(found.into_iter().filter(|found| !has_fault || found.is_fault()))
}

/// The numbers behind `error`, `error code` and the like.
fn called_errors(text: &str) -> HashSet<u32> {
    let number = |(at, word): (usize, &str)| {
        let rest = text.get(at + word.len()..)?;
        let rest = rest.strip_prefix(" code").unwrap_or(rest);
        let rest = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(' ')?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    text.match_indices("error").filter_map(number).collect()
}

/// Whether a node starts a container, or a logon failed, so that a status counts which says little elsewhere.
fn is_of_logon(text: &str, phase: Option<Phase>) -> bool {
    let words = ["netlogon", "trusted dc", "trust verification", "klist", "nltest", "logon", "join"];
    phase == Some(Phase::Start) || words.iter().any(|word| text.contains(word))
}

/// What the small exit code of a program means: by convention, some are those of a shell or of a signal.
fn exited(text: &str) -> Option<Explanation> {
    let code = number::exit(text)?;
    let rule = words().find(|(_, words)| matches!(words, Words::Exit(codes) if codes.contains(&code)));
    let meaning = match rule {
        Some((rule, _)) => Meaning::Fault(vec![(None, rule)]),
        None if code == 0 => Meaning::NoFault("The program ended by itself, without an error.".to_owned()),
        None => Meaning::Unknown(
            "It is of the program, and no status of Windows: only its own documentation and its log say what it means. \
             `kubectl logs POD --namespace NAMESPACE --previous` shows the log of a container that was started again."
                .to_owned(),
        ),
    };
    let code = if code == u32::MAX { "-1".to_owned() } else { code.to_string() };
    Some(Explanation { found: format!("exit code {code}"), meaning })
}

/// Without duplicates. The first of several equal ones is the most specific.
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

/// The explanations of the sentences of a plain text: a refusal, then the others, whose last one causes those before it. The second value
/// counts if there are none. A sentence within another one is not explained on its own.
fn sentences(text: &str, phase: Option<Phase>) -> (Vec<Explanation>, Option<Explanation>) {
    let (mut specific, mut general) = (Vec::new(), None);
    for (rule, words) in words() {
        match words {
            Start(of) | Message(of) => {
                let phase = matches!(words, Start(_)).then_some(Phase::Start);
                specific.extend(span(text, of).map(|at| (at, fault(quoted(of), phase, rule))));
            }
            General(_) | Event(..) if general.is_none() => {
                general = found(text, words).map(|found| fault(found, None, rule));
            }
            _ => {}
        }
    }
    let of_windows = MESSAGES.iter().filter_map(|(name, message)| {
        let at = span(text, message)?;
        let status = Status(symbols::value(name)?);
        let explained = status.explain(phase).filter(|_| is_of_logon(text, phase) || !status.is_vague())?;
        Some((at, Explanation { found: format!("{}: {}", quoted(message), explained.found), ..explained }))
    });
    specific.extend(of_windows);
    // The sort is stable: at one place, the order of the table holds.
    specific.sort_by_key(|((start, end), _)| (Reverse(*end), *start));
    let spans: Vec<(usize, usize)> = specific.iter().map(|(span, _)| *span).collect();
    let is_part = |(start, end): (usize, usize)| {
        spans.iter().any(|(from, to)| *from <= start && end <= *to && end - start < to - from)
    };
    let refusal = refused(text).map(|(words, rule)| fault(quoted(words), None, rule));
    let specific = specific.into_iter().filter(|(span, _)| !is_part(*span)).map(|(_, found)| found);
    let no_faults = NO_FAULTS.iter().flat_map(|(words, what)| words.iter().map(move |words| (*words, *what)));
    let no_faults = no_faults.filter_map(|(words, what)| {
        Some(Explanation { found: found(text, words)?, meaning: Meaning::NoFault(what.to_owned()) })
    });
    (refusal.into_iter().chain(specific).chain(no_faults).collect(), general)
}

/// The match of a sentence or an event at any place in a text.
fn found(text: &str, words: Words) -> Option<String> {
    match words {
        Message(of) | General(of) => position(text, of).map(|_| quoted(of)),
        Event(source, numbers) => {
            let number = numbers.iter().find(|number| event(text, source, **number))?;
            Some(format!("event {number} of {source}"))
        }
        _ => None,
    }
}

/// Whether a text tells of an event of this source with this number.
fn event(text: &str, source: &str, number: u32) -> bool {
    if !text.contains(source) {
        return false;
    }
    let (mut before, number) = ("", number.to_string());
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| {
        let before = std::mem::replace(&mut before, word);
        // Large numbers are event numbers at any place in a text with their source.
        word == number && (number.len() > 2 || matches!(before, "event" | "id" | "eventid" | "number" | "ccg"))
    })
}

/// The first words of a refusal, and their rule. Text in quotes is a name, or a quotation.
fn refused(text: &str) -> Option<(&'static str, &'static Rule)> {
    let text = &unquoted(text);
    let found = words().filter_map(|(rule, words)| match words {
        Words::Refusal(words) => Some((position(text, words)?, words, rule)),
        _ => None,
    });
    found.min_by_key(|(at, words, _)| (*at, Reverse(words.len()))).map(|(_, words, rule)| (words, rule))
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
    span(text, words).map(|(start, _)| start)
}

/// Where the words begin and end in the text.
fn span(text: &str, words: &str) -> Option<(usize, usize)> {
    let mut parts = words.split('*');
    let (start, mut end) = part(text, parts.next()?)?;
    for words in parts {
        let (_, after) = part(text.get(end..)?, words).filter(|(between, _)| *between <= MAX_BETWEEN)?;
        end += after;
    }
    Some((start, end))
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

fn fault(found: String, phase: Option<Phase>, rule: &'static Rule) -> Explanation {
    Explanation { found, meaning: Meaning::Fault(vec![(phase, rule)]) }
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('*', " … ").replace('?', "…"))
}

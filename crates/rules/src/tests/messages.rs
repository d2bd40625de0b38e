//! What people find, in the data of `crates/rules` and in `tests/messages`: each text is answered with its rule first, and with the word
//! that helps. `docs/messages.md` lists those of one line in the data, and `docs/troubleshooting.md` the most common parts of them.
//! `docs/rules.md` has all rules.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use serde::Deserialize;

use gmsa_test_support::rules::{FamilyData, GroupData, Seen, WordData, families};

use super::{super::text::explain_without, *};

/// The files of texts that prove silence, order or several rules.
const FILES: [&str; 4] = ["codes", "good", "noise", "pastes"];

const HEAD: &str = "# Messages

Made of `crates/rules/data` by `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules`: do not edit.

What `kubectl gmsa explain` knows, as it appears in events, logs and answers. Names, addresses and numbers in them are examples. A rule says what its message means and
what to do; `explain` says more, by the words of the message. [Troubleshooting](troubleshooting.md) begins with what you see.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    text: String,
    /// The rule that is said first; `none` where the text is decoded, and no cause is known.
    rule: String,
    /// Empty where there is no answer.
    word: String,
    /// The thread, page or source file that it is from.
    source: String,
}

/// The messages of a file.
fn messages(file: &str) -> Vec<Message> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages").join(file).with_extension("yaml");
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The source of words that no real message needs alone.
const MADE: &str = "made";

/// The messages of the data, by the headings of their families.
fn of_data() -> Vec<(String, Vec<Message>)> {
    let message = |rule: &str, Seen { text, first, says, from }: Seen| {
        let rule = first.unwrap_or_else(|| rule.to_owned());
        Message { text, rule, word: says, source: from }
    };
    let of_words = |rule: &str, words: Vec<WordData>| -> Vec<Message> {
        words.into_iter().flat_map(|word| word.seen).map(|seen| message(rule, seen)).collect()
    };
    let family = |FamilyData { heading, rules, good, nothing, windows, .. }: FamilyData| {
        let of_rules = rules.into_iter().flat_map(|rule| of_words(&rule.id, rule.words));
        let good = good.into_iter().flat_map(|good| of_words("", good.words));
        let nothing = nothing.into_iter().flat_map(|nothing| nothing.seen);
        let windows = windows.into_iter().flat_map(|windows| windows.seen);
        let others = nothing.chain(windows).map(|seen| message("", seen));
        (heading, of_rules.chain(good).chain(others).collect())
    };
    families().into_iter().map(family).collect()
}

/// The rule that is said first of a text, and the answer, from its explanations.
fn answer((found, reading): &(Vec<Explanation>, Reading)) -> (&'static str, String) {
    let first = match found.first().map(|found| &found.meaning) {
        Some(Meaning::Fault(rules)) => rules.first().map_or("", |(_, rule)| rule.id),
        Some(Meaning::Unknown(_)) => "none",
        Some(Meaning::NoFault(_)) | None => "",
    };
    let explained = found.iter().map(|Explanation { found, meaning }| match meaning {
        Meaning::Fault(rules) => {
            let lines = rules.iter().map(|(_, rule)| format!("{found} {}\n", for_people(found, rule, reading)));
            lines.collect::<Vec<_>>().concat()
        }
        Meaning::NoFault(what) | Meaning::Unknown(what) => format!("{found} {what}\n"),
    });
    (first, explained.collect())
}

/// A cause as `explain` prints it, but for names in its remedy: the words of the found part can select the remedy too.
fn for_people(found: &str, rule: &Rule, reading: &Reading) -> String {
    let remedy = [&Reading::of(found), reading].iter().filter_map(|reading| reading.remedy(rule)).min();
    let remedy = remedy.and_then(|index| Some(entry(rule)?.remedies.get(index)?.1)).unwrap_or(rule.remedy);
    format!("[{}] {} fix: {remedy}", rule.id, rule.title)
}

impl Message {
    /// Whether this is its answer.
    fn is_answered_by(&self, (first, answer): &(&str, String)) -> bool {
        let is_silent = self.word.is_empty() && self.rule.is_empty();
        *first == self.rule && answer.contains(&self.word) && is_silent == answer.is_empty()
    }
}

/// All messages.
fn all_messages() -> Vec<Message> {
    of_data().into_iter().flat_map(|(_, messages)| messages).chain(FILES.into_iter().flat_map(messages)).collect()
}

/// Whether an explanation is of this rule, and begins with this status, event or exit code.
fn is_of(Explanation { found, meaning }: &Explanation, rule: &str, number: &str) -> bool {
    let is_of_rule = match meaning {
        Meaning::Fault(rules) => rules.iter().any(|(_, of)| of.id == rule),
        Meaning::NoFault(_) => rule.is_empty(),
        Meaning::Unknown(_) => false,
    };
    let is_word = |at: usize| !found[at + number.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    is_of_rule && found.match_indices(number).any(|(at, _)| is_word(at))
}

#[test]
fn every_row_of_the_table_is_needed() {
    let (mut patterns, mut numbers) = (patterns(), numbers());
    for message in all_messages() {
        let text = &message.text;
        let (found, reading) = explain(text);
        numbers.retain(|(rule, number)| !found.iter().any(|found| is_of(found, rule, number)));
        for pattern in reading.indices() {
            let is_needed = || !message.is_answered_by(&answer(&explain_without(text, pattern)));
            if patterns.contains_key(&pattern) && is_needed() {
                patterns.remove(&pattern);
            }
        }
    }
    assert!(patterns.is_empty() && numbers.is_empty(), "no message needs {patterns:#?} {numbers:#?}");
}

#[test]
fn every_message_is_known_with_the_word_that_helps() {
    let (mut count, mut texts, mut wrong) = (0, BTreeSet::new(), String::new());
    for message in all_messages() {
        let Message { text, rule, word, source } = &message;
        count += 1;
        assert!(texts.insert(text.clone()), "twice: {text}");
        assert!(source.starts_with("https://") || ["this project", MADE].contains(&&**source), "{text}: {source}");
        let answer = answer(&explain(text));
        if !message.is_answered_by(&answer) {
            let _ = writeln!(wrong, "{text}\n  expected {rule} and {word:?}:\n{}", answer.1);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 150, "{count}");
}

/// The page: the messages of one line, by families.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for (heading, messages) in of_data() {
        // A cell of a table is short.
        let is_short = |text: &str| !text.contains('\n') && text.split_whitespace().count() <= 40;
        let is_listed = |message: &&Message| {
            !matches!(&*message.rule, "" | "none") && message.source != MADE && is_short(&message.text)
        };
        let rows = messages.iter().filter(is_listed);
        let rows: Vec<_> = rows
            .map(|Message { text, rule, .. }| {
                let text = text.replace('|', "\\|");
                let fence = if text.contains('`') { "``" } else { "`" };
                format!("| {fence}{text}{fence} | [{rule}](rules.md#{rule}) |\n")
            })
            .collect();
        if !rows.is_empty() {
            let _ = write!(page, "\n## {heading}\n\n| Message | Rule |\n|---|---|\n{}", rows.concat());
        }
    }
    page
}

/// What people see most, in the order in which it can happen to a pod.
const COMMON: [&str; 29] = [
    "is not authorized to `use` GMSA cred spec",
    "cred spec webapp1 does not exist",
    "is not a lower-case DNS subdomain",
    "does not match the contents of GMSA resource",
    "does not carry its contents, so it would start without its identity",
    "cannot update an existing pod's GMSA settings",
    "failed calling webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\"",
    "no matches for kind \"GMSACredentialSpec\"",
    "error looking up service account",
    "windows options cannot be set for a linux pod",
    "no matching manifest for windows/amd64",
    "winapi error #3489792023",
    "Container Credential Guard failed to parse the credential spec",
    "Container Credential Guard failed to instantiate the plugin",
    "Container Credential Guard failed to fetch credentials from the plugin",
    "Netlogon failed to retrieve the password",
    "1722 0x6ba RPC_S_SERVER_UNAVAILABLE",
    "ERROR_NO_LOGON_SERVERS",
    "ERROR_NO_SUCH_DOMAIN",
    "ERROR_TRUSTED_RELATIONSHIP_FAILURE",
    "Non-existent domain",
    "Cannot generate SSPI context",
    "The login is from an untrusted domain",
    "Login failed for user 'NT AUTHORITY\\ANONYMOUS LOGON'",
    "HTTP Error 401",
    "KDC has no support for encryption type",
    "Clock skew too great",
    "New-ADServiceAccount : Key does not exist",
    "Cannot install service account",
];

/// The table of the page on which one begins: each common part, by the first message that has it.
fn common() -> String {
    let all = all_messages();
    let row = |part: &&str| {
        let Message { text, rule, .. } = all.iter().find(|message| message.text.contains(part)).unwrap();
        let Meaning::Fault(found) = &explain(text).0[0].meaning else { panic!("{text} has no rule") };
        let fence = if part.contains('`') { "``" } else { "`" };
        format!("| {fence}{part}{fence} | {} | [{rule}](rules.md#{rule}) |\n", found[0].1.title)
    };
    format!("| You see | It means | What to do |\n|---|---|---|\n{}", COMMON.iter().map(row).collect::<String>())
}

/// Compares a page with what it must say, or writes it.
fn compare(page: &str, said: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let said = said(&text);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &said).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap().replace("\r\n", "\n"), said);
}

/// An engineer on call pastes its name.
#[test]
fn every_alert_of_the_charts_is_explained() {
    let mut count = 0;
    for chart in ["gmsa-webhook", "gmsa-tickets"] {
        let alerts = format!("../../charts/{chart}/files/alerts.yaml");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(alerts)).unwrap();
        for alert in text.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
            let (found, _) = explain(&format!("[FIRING:1] {alert} (critical)"));
            let [Explanation { found, meaning: Meaning::Fault(_) }] = &*found else { panic!("{alert}: {found:?}") };
            assert_eq!(*found, format!("\"{alert}\""));
            count += 1;
        }
    }
    // So that a file that is not read as expected does not pass.
    assert_eq!(count, 27, "a new alert is counted here");
}

#[test]
fn the_page_of_the_rules_has_every_rule() {
    compare("rules.md", |_| rules());
}

#[test]
fn the_page_has_one_anchor_for_each_rule() {
    let page = rules();
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let mut anchors: Vec<_> =
        headings.map(|line| line.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-")).collect();
    for rule in all() {
        let count = anchors.iter().filter(|anchor| *anchor == rule.id).count();
        assert_eq!(count, 1, "{} must be once in `groups` of 10-core.yaml", rule.id);
        assert_eq!(rule.page(), format!("docs/rules.md#{}", rule.id));
    }
    anchors.sort();
    let count = anchors.len();
    anchors.dedup();
    assert_eq!(anchors.len(), count, "two headings with the same anchor");
}

/// The ids of the rules by the headings of the page. Rules of the core come before others of the same heading.
fn groups() -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for FamilyData { heading, groups: of_core, rules, .. } in families() {
        let ids = rules.into_iter().map(|rule| rule.id).collect();
        let of_family = if of_core.is_empty() { vec![GroupData { heading, rules: ids }] } else { of_core };
        for GroupData { heading, rules } in of_family.into_iter().filter(|group| !group.rules.is_empty()) {
            match groups.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, known)) => known.extend(rules),
                None => groups.push((heading, rules)),
            }
        }
    }
    groups
}

#[test]
fn the_rules_under_denials_are_those_of_the_denials() {
    let (_, ids) = groups().into_iter().find(|(heading, _)| heading == "Denials").unwrap();
    assert_eq!(ids, Denial::RULES.map(|rule| rule.id));
}

/// The page of all rules, as Markdown.
fn rules() -> String {
    let mut page = "# Rules\n\nWritten by `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules`: do not edit.\n\nWhat `kubectl gmsa` (`check`, `credspec lint`, `account lint`, `account test`, \
         `doctor`, `why`, `verify`, `probe`, `explain`, `outdated`), the webhook's warnings and `gmsa-webhook certs inspect` look for. Their output contains \
         the name of the rule, which never changes; a warning of the webhook ends with it, in brackets.\n"
        .to_owned();
    for (heading, ids) in groups() {
        let _ = write!(page, "\n## {heading}\n");
        for id in ids {
            let rule = all().find(|rule| rule.id == id);
            let Rule { severity, title, remedy, .. } = rule.unwrap_or_else(|| panic!("{heading}: no rule {id}"));
            let _ = write!(page, "\n### {id}\n\n{} ({})\n\n{remedy}\n", title, severity.as_str());
        }
    }
    page
}

#[test]
fn the_pages_list_the_messages() {
    compare("messages.md", |_| page());
    compare("troubleshooting.md", |text| {
        let (begin, end) =
            ("<!-- messages: written by `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules` -->\n", "<!-- messages: end -->");
        let (before, rest) = text.split_once(begin).unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        format!("{before}{begin}\n{}\n{end}{after}", common())
    });
}

/// A rule without words is reported by code.
#[test]
fn every_rule_can_be_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let code: String = ["src", "crates"].iter().map(|folder| code_below(&root.join(folder))).collect();
    let unused = ENTRIES.iter().filter(|entry| entry.words.is_empty()).map(|entry| entry.rule.id);
    let unused: Vec<&str> = unused.filter(|id| !code.contains(&id.replace('-', "_").to_uppercase())).collect();
    assert!(unused.is_empty(), "neither words nor code report {unused:?}");
}

/// The product's source files below a folder.
fn code_below(folder: &Path) -> String {
    let mut code = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_other = ["tests", "rules", "test-support"].iter().any(|name| path.file_name().unwrap() == *name);
        if path.is_dir() && (!is_other || path.ends_with("shared/rules")) {
            code += &code_below(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("generated.rs") {
            code += &fs::read_to_string(path).unwrap();
        }
    }
    code
}

//! `generated.rs`, here and in the core, is what the data says.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the data must fail")]

use std::{fmt::Write as _, fs, path::Path};

use gmsa_test_support::rules::{FamilyData, ListData, RuleData, WordData, families};

const COMMAND: &str = "UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules --test generated";

/// The rules of the core, or the others, and the lists of words there, as constants.
fn constants(families: &[FamilyData], are_of_core: bool) -> String {
    let mut constants = format!("// Made of `crates/rules/data` by `{COMMAND}`: do not edit.\n\n");
    let families = || families.iter().filter(|family| is_of_core(family) == are_of_core);
    for ListData { name: list, about, words } in families().flat_map(|family| &family.lists) {
        let _ = writeln!(constants, "#[doc = {about:?}]\npub static {}: &[&str] = &{words:?};", name(list));
    }
    for RuleData { id, severity, title, remedy, .. } in families().flat_map(|family| &family.rules) {
        let _ = write!(
            constants,
            "#[doc = {title:?}]\npub static {}: Rule = Rule {{\n    id: {id:?},\n    severity: Severity::{severity:?},\n    title: {title:?},\n    remedy: {remedy:?},\n}};\n",
            name(id)
        );
    }
    constants
}

fn is_of_core(family: &FamilyData) -> bool {
    !family.groups.is_empty()
}

/// The table as the library includes it: a line for each word.
fn table(families: &[FamilyData]) -> String {
    let mut table = "\n/// The table: its order decides between general words in one text, and between rules with words at the same place.\npub static ENTRIES: &[RuleEntry] = &[\n".to_owned();
    for family in families {
        let path = if is_of_core(family) { "core::" } else { "" };
        for rule in &family.rules {
            let _ = writeln!(table, "RuleEntry {{ rule: &{path}{}, words: &[", name(&rule.id));
            table.extend(rule.words.iter().map(|word| format!("    {},\n", words(word))));
            table += "], remedies: &[\n";
            table.extend(
                rule.remedies.iter().map(|remedy| format!("    (&{:?}, {:?}),\n", remedy.words, remedy.remedy)),
            );
            table += "] },\n";
        }
    }
    table += "];\n\n/// Texts of a successful step, or of every logon, each with what it means.\npub static GOOD: &[(&[Words], &str)] = &[\n";
    for good in families.iter().flat_map(|family| &family.good) {
        table += "(&[\n";
        table.extend(good.words.iter().map(|word| format!("    {},\n", words(word))));
        let _ = writeln!(table, "], {:?}),", good.says);
    }
    table += "];\n\n/// Parts of a message in which other words and numbers do not count.\npub static NOTHING: &[&str] = &[\n";
    table.extend(
        families.iter().flat_map(|family| &family.nothing).map(|nothing| format!("    {:?},\n", nothing.message)),
    );
    table += "];\n\n/// Parts of messages of Windows in lower case, each with its status.\npub static WINDOWS: &[(&str, &str)] = &[\n";
    let windows = families.iter().flat_map(|family| &family.windows);
    table.extend(windows.map(|windows| format!("    ({:?}, {:?}),\n", windows.status, windows.message)));
    table += "];\n\n/// Rules of earlier releases, each with the reason why it is gone.\npub static REMOVED: &[(&str, &str)] = &[\n";
    let removed = families.iter().flat_map(|family| &family.removed);
    table.extend(removed.map(|(id, reason)| format!("    ({id:?}, {reason:?}),\n")));
    table + "];\n"
}

/// The name of a rule, or of a list, in Rust.
fn name(id: &str) -> String {
    id.replace('-', "_").to_uppercase()
}

fn words(word: &WordData) -> String {
    let text = |kind: &str, text: &Option<String>| text.as_ref().map(|text| format!("{kind}({text:?})"));
    let list = |kind: &str, names: &[String]| (!names.is_empty()).then(|| format!("{kind}(&{names:?})"));
    text("Refusal", &word.refusal)
        .or_else(|| text("Start", &word.start))
        .or_else(|| text("Message", &word.message))
        .or_else(|| text("General", &word.general))
        .or_else(|| word.event.as_ref().map(|source| format!("Event({source:?}, &{:?})", word.ids)))
        .or_else(|| (!word.exit.is_empty()).then(|| format!("Exit(&{:?})", word.exit)))
        .or_else(|| list("Codes", &word.codes))
        .or_else(|| list("StartCodes", &word.start_codes))
        .or_else(|| list("RunningCodes", &word.running_codes))
        .unwrap()
}

#[test]
fn the_tables_are_what_the_data_says() {
    let families = families();
    let of_rules = constants(&families, false) + &table(&families);
    for (path, made) in [("../core/generated.rs", constants(&families, true)), ("generated.rs", of_rules)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        assert!(found == made, "{} is not what the data says: {COMMAND}", path.display());
    }
}

//! Which of two reports of one object is kept, and how much in all.

use std::{sync::Arc, time::Duration};

use gmsa_core::credspec::{Contents, MAX_CONTENTS_BYTES};
use serde_json::json;

use super::*;

fn name(name: &str) -> SpecName {
    SpecName::parse(name).unwrap()
}

/// Contents that tell from which version they are.
fn contents(version: u64) -> Arc<Contents> {
    Arc::new(Contents::of(json!({ "version": version }).as_object().unwrap()))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what the store takes")]
fn fact(version: u64) -> Option<SpecFact> {
    Some(SpecFact::Contents(contents(version)))
}

const MISSING: SpecRead = SpecRead { version: None, fact: SpecFact::Missing };

fn found(version: u64) -> SpecRead {
    SpecRead { version: Some(version), fact: SpecFact::Contents(contents(version)) }
}

const BUDGET: usize = 24 << 20;

fn list(store: &mut Store, specs: &[(&str, u64)]) {
    store.begin_list();
    for (spec, version) in specs {
        store.listed(name(spec), Some(*version), fact(*version));
    }
    store.end_list();
    store.synced = Some(Moment::now());
}

/// A store with a list in which `web` has version 5.
fn listed() -> Store {
    let mut store = Store::new(BUDGET);
    list(&mut store, &[("web", 5)]);
    store
}

/// Hibernation, and a virtual machine that is restored from a snapshot: the clock of the process stood still.
#[test]
fn what_was_brought_before_the_machine_stood_still_is_not_answered() {
    let store = listed();
    let synced = store.synced.unwrap();
    let second = Duration::from_secs(1);
    let suspended = |time| Moment { boot: synced.boot + time, ..synced };
    let restored = |time| Moment { wall: synced.wall + time, ..synced };
    let is_answered = |now| store.get(&name("web"), now).is_some();
    assert_eq!([suspended(OLDEST), restored(OLDEST), synced + OLDEST].map(is_answered), [true; 3]);
    assert_eq!([suspended(OLDEST + second), restored(OLDEST + second)].map(is_answered), [false; 2]);
    assert_eq!(OLDEST, Duration::from_secs(131));
}

fn apply(store: &mut Store, spec: &str, version: u64) {
    store.apply(name(spec), Some(version), fact(version));
}

fn read(store: &mut Store, spec: &str, read: &SpecRead) {
    let before = store.before_read(&name(spec));
    store.after_read(&name(spec), before, read);
}

fn version(store: &Store, spec: &str) -> Option<u64> {
    store.get(&name(spec), Moment::now()).map(|fact| {
        let SpecFact::Contents(contents) = fact else { panic!("{fact:?}") };
        contents.text().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    })
}

#[test]
fn memory_answers_only_while_the_watch_is_healthy() {
    let mut store = listed();
    assert_eq!(version(&store, "web"), Some(5));
    store.synced = None;
    assert_eq!(version(&store, "web"), None);
    assert_eq!(store.held, 1);
}

#[test]
fn nothing_older_replaces_what_is_newer() {
    let mut store = listed();
    apply(&mut store, "web", 12);
    apply(&mut store, "web", 11);
    assert_eq!(version(&store, "web"), Some(12));
    read(&mut store, "web", &found(11));
    assert_eq!(version(&store, "web"), Some(12));
    read(&mut store, "web", &found(13));
    assert_eq!(version(&store, "web"), Some(13));
    apply(&mut store, "web", 12);
    assert_eq!(version(&store, "web"), Some(13));
    store.remove(&name("web"), Some(12));
    assert_eq!(version(&store, "web"), Some(13), "it was created again since");
    read(&mut store, "new", &found(11));
    assert_eq!(version(&store, "new"), Some(11));
}

#[test]
fn a_list_is_the_truth() {
    let mut store = listed();
    apply(&mut store, "newer", 21);
    apply(&mut store, "gone", 19);
    store.begin_list();
    store.listed(name("newer"), Some(20), fact(20));
    // A read of what the list does not have does not outlive it: its deletion may have come before the list.
    read(&mut store, "read", &found(19));
    store.listed(name("other"), Some(7), fact(7));
    store.end_list();
    let versions = ["web", "newer", "gone", "read", "other"].map(|spec| version(&store, spec));
    assert_eq!(versions, [None, Some(20), None, None, Some(7)]);
    assert_eq!(store.held, 2);
}

#[test]
fn a_read_does_not_bring_back_what_was_deleted_since_it_began() {
    let mut store = listed();
    let before = store.before_read(&name("web"));
    store.remove(&name("web"), Some(11));
    store.after_read(&name("web"), before, &found(5));
    assert_eq!(version(&store, "web"), None);

    let mut store = listed();
    let before = store.before_read(&name("gone"));
    list(&mut store, &[]);
    store.after_read(&name("gone"), before, &found(15));
    assert_eq!(version(&store, "gone"), None, "it may have been deleted before the list was made");
}

#[test]
fn a_read_that_finds_nothing_removes_what_was_known_when_it_began() {
    let mut store = listed();
    read(&mut store, "web", &MISSING);
    assert_eq!(version(&store, "web"), None);

    let mut store = listed();
    let before = store.before_read(&name("web"));
    apply(&mut store, "web", 11);
    store.after_read(&name("web"), before, &MISSING);
    assert_eq!(version(&store, "web"), Some(11), "it was created again meanwhile");
}

#[test]
fn a_version_that_is_no_number_is_taken_from_the_watch_alone() {
    let mut store = listed();
    read(&mut store, "new", &SpecRead { version: None, ..found(1) });
    assert_eq!(version(&store, "new"), None);
    store.apply(name("new"), None, fact(2));
    assert_eq!(version(&store, "new"), Some(2));
    store.remove(&name("new"), None);
    assert_eq!(version(&store, "new"), None);
}

#[test]
fn only_names_stay_known_where_there_will_be_no_events() {
    let mut store = listed();
    store.give_up();
    read(&mut store, "found", &found(11));
    store.synced = Some(Moment::now());
    let known = |store: &Store| ["web", "found", "other"].map(|spec| store.before_read(&name(spec)).known.is_some());
    assert_eq!(known(&store), [true, true, false]);
    assert_eq!((version(&store, "web"), version(&store, "found"), store.held), (None, None, 0));
    read(&mut store, "web", &MISSING);
    assert_eq!(known(&store), [false, true, false]);
    list(&mut store, &[("web", 12)]);
    assert_eq!(known(&store), [true, false, false]);
}

#[test]
fn what_is_kept_stays_within_the_budget() {
    let longest = json!({"k": "x".repeat(MAX_CONTENTS_BYTES - r#"{"k":""}"#.len())});
    let longest = || Some(SpecFact::Contents(Arc::new(Contents::of(longest.as_object().unwrap()))));
    let too_long = || Some(SpecFact::Contents(Contents::too_long()));
    let mut store = listed();
    let store_of_one = store.bytes;
    for n in 0..1000 {
        store.apply(name(&format!("spec-{n:03}")), Some(n), longest());
    }
    // Each takes 64 KiB, 8 bytes of a name and the rest; one was there before.
    assert_eq!(store.held - 1, (BUDGET / 8 * 7 - store_of_one) / (MAX_CONTENTS_BYTES + 8 + OVERHEAD));
    assert!(
        store.before_read(&name("spec-999")).known.is_some() && store.get(&name("spec-999"), Moment::now()).is_none()
    );
    // That one is too long takes no more than its name.
    store.apply(name("too-long"), Some(1), too_long());
    assert!(store.get(&name("too-long"), Moment::now()) == too_long());
    // Not even names without end.
    for n in 0..BUDGET / OVERHEAD {
        store.apply(name(&format!("name-{n}")), Some(1), None);
    }
    assert!(store.bytes <= BUDGET && BUDGET - store.bytes < 300, "{}", store.bytes);
    list(&mut store, &[]);
    assert_eq!((store.bytes, store.held, store.specs.len()), (0, 0, 0));
    store.apply(name("too-long"), Some(1), too_long());
    assert_eq!((store.bytes, store.held), (OVERHEAD + "too-long".len(), 1));
    store.give_up();
    assert_eq!((store.bytes, store.held), (OVERHEAD + "too-long".len(), 0));
}

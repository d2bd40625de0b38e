//! Which of two reports of one object is kept.

use std::time::Duration;

use serde_json::json;
use tokio::time::advance;

use super::*;

fn name(name: &str) -> SpecName {
    SpecName::parse(name).unwrap()
}

/// Contents that tell from which version they are.
fn contents(version: u64) -> Arc<Contents> {
    Arc::new(Contents::of(json!({ "version": version }).as_object().unwrap()))
}

fn at(version: u64) -> Version {
    Version(Some(version))
}

fn entry(version: u64) -> Entry {
    Entry { version: at(version), contents: Some(contents(version)) }
}

fn found(version: u64) -> Read {
    Read::Found { resource_version: version.to_string(), contents: Some(contents(version)) }
}

/// A store with a list made at version 10, in which `web` has version 5.
fn listed() -> Store {
    let mut store = Store::default();
    store.replace(Instant::now(), at(10), [(name("web"), entry(5))]);
    store.connected(true);
    store
}

fn version(store: &Store, spec: &str) -> Option<u64> {
    store.get(&name(spec)).and_then(|entry| entry.version.0)
}

#[tokio::test(start_paused = true)]
async fn memory_is_believed_only_while_the_watch_is_connected_and_it_was_confirmed_in_time() {
    let mut store = Store::default();
    assert!(!store.is_trusted());
    store.replace(Instant::now(), at(10), [(name("web"), entry(5))]);
    assert!(!store.is_trusted());
    store.connected(true);
    assert_eq!(version(&store, "web"), Some(5));
    advance(TRUST.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(version(&store, "web"), Some(5));
    advance(Duration::from_millis(1)).await;
    assert_eq!(version(&store, "web"), None);
    store.connected(false);
    store.connected(true);
    assert_eq!(version(&store, "web"), None, "a new connection says nothing of what happened");
    store.prolong(Instant::now());
    assert_eq!(version(&store, "web"), None, "an event does not show that the others have arrived");
    store.compared(Instant::now());
    assert_eq!(version(&store, "web"), Some(5));
    store.connected(false);
    assert_eq!(version(&store, "web"), None);
}

#[tokio::test(start_paused = true)]
async fn trust_counts_from_the_request_of_a_list() {
    let mut store = Store::default();
    store.connected(true);
    let requested = Instant::now();
    advance(Duration::from_secs(30)).await;
    store.replace(requested, at(10), [(name("web"), entry(5))]);
    advance(TRUST.saturating_sub(Duration::from_secs(31))).await;
    assert!(store.is_trusted());
    advance(Duration::from_secs(1)).await;
    assert!(!store.is_trusted());
}

#[tokio::test(start_paused = true)]
async fn events_prolong_trust_and_leave_the_comparison_where_it_was() {
    let mut store = listed();
    let compared = Instant::now();
    for _ in 0..10 {
        advance(Duration::from_secs(45)).await;
        store.prolong(Instant::now());
    }
    let verified = store.trusted().unwrap();
    assert_eq!((verified.confirmed, verified.compared), (Instant::now(), compared));
    store.prolong(compared);
    assert_eq!(store.trusted().unwrap().confirmed, Instant::now(), "an older proof changes nothing");
}

#[tokio::test(start_paused = true)]
async fn only_an_event_of_the_object_itself_explains_a_difference() {
    let events: [fn(&mut Store, &str); 2] =
        [|store, spec| store.apply(name(spec), entry(12)), |store, spec| store.remove(&name(spec), at(12))];
    for event in events {
        let mut store = listed();
        store.mark_differing(name("web"));
        event(&mut store, "other");
        store.prolong(Instant::now());
        let before = store.before_read(&name("web"));
        store.after_read(&name("web"), before, &found(11));
        assert!(store.is_differing(&name("web")));
        assert!(!store.has("web", at(11)), "a read does not hide that there is no event");
        event(&mut store, "web");
        assert!(!store.is_differing(&name("web")));
        assert!(!store.is_trusted(), "until each object has been compared again");
        store.compared(Instant::now());
        assert!(store.is_trusted());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_lacks_is_unlisted_unless_it_is_newer_than_the_list() {
    let mut store = listed();
    store.apply(name("new"), entry(12));
    let unlisted = |listed: &[&str], version| {
        let listed = listed.iter().map(ToString::to_string).collect();
        store.unlisted(&listed, at(version)).cloned()
    };
    assert_eq!(unlisted(&["web"], 11), None);
    assert_eq!(unlisted(&["web"], 12), Some(name("new")));
    assert_eq!(unlisted(&["new"], 11), Some(name("web")));
}

#[test]
fn an_object_is_compared_by_name_and_version() {
    let mut store = listed();
    assert!(store.has("web", at(5)));
    assert!(store.has("web", at(4)), "memory has a later version");
    assert!(!store.has("web", at(6)));
    assert!(!store.has("other", at(5)));
    store.apply(name("opaque"), Entry { version: Version::parse("a"), contents: None });
    for version in ["a", "b", "5"] {
        assert!(!store.has("opaque", Version::parse(version)), "{version}");
    }
    assert!(!store.has("web", Version::parse("b")));
}

#[test]
fn names_stay_known_where_nothing_is_kept_of_the_objects() {
    let mut store = listed();
    assert!(store.is_known(&name("web")));
    assert!(!store.is_known(&name("found")));
    store.give_up();
    assert!(store.is_known(&name("web")));
    let before = store.before_read(&name("found"));
    store.after_read(&name("found"), before, &found(11));
    assert!(store.is_known(&name("found")));
    assert_eq!(store.len(), 0);
    let before = store.before_read(&name("web"));
    store.after_read(&name("web"), before, &Read::Missing);
    assert!(!store.is_known(&name("web")));
    store.replace(Instant::now(), at(12), [(name("web"), entry(12))]);
    assert!(store.is_known(&name("web")));
    assert!(!store.is_known(&name("found")));
}

#[tokio::test(start_paused = true)]
async fn nothing_older_replaces_what_is_newer() {
    let mut store = listed();
    store.apply(name("web"), entry(12));
    store.apply(name("web"), entry(11));
    assert_eq!(version(&store, "web"), Some(12));
    let before = store.before_read(&name("web"));
    store.after_read(&name("web"), before, &found(11));
    assert_eq!(version(&store, "web"), Some(12));
    store.after_read(&name("web"), before, &found(13));
    assert_eq!(version(&store, "web"), Some(13));
    store.apply(name("web"), entry(12));
    assert_eq!(version(&store, "web"), Some(13));
    store.remove(&name("web"), at(12));
    assert_eq!(version(&store, "web"), Some(13), "it was created again since");
}

#[tokio::test(start_paused = true)]
async fn what_a_read_brings_is_remembered() {
    let mut store = listed();
    let before = store.before_read(&name("new"));
    store.after_read(&name("new"), before, &found(11));
    assert_eq!(version(&store, "new"), Some(11));
    assert_eq!(store.get(&name("new")).unwrap().contents, Some(contents(11)));
}

#[tokio::test(start_paused = true)]
async fn a_read_does_not_bring_back_what_was_deleted_since_it_began() {
    let mut store = listed();
    let before = store.before_read(&name("web"));
    store.remove(&name("web"), at(11));
    store.after_read(&name("web"), before, &found(5));
    assert_eq!(version(&store, "web"), None);

    let mut store = listed();
    let before = store.before_read(&name("gone"));
    store.replace(Instant::now(), at(20), []);
    store.after_read(&name("gone"), before, &found(15));
    assert_eq!(version(&store, "gone"), None, "it may have been deleted before the list was made");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_finds_nothing_removes_what_was_known_when_it_began() {
    let mut store = listed();
    let before = store.before_read(&name("web"));
    store.after_read(&name("web"), before, &Read::Missing);
    assert_eq!(version(&store, "web"), None);

    let mut store = listed();
    let before = store.before_read(&name("web"));
    store.apply(name("web"), entry(11));
    store.after_read(&name("web"), before, &Read::Missing);
    assert_eq!(version(&store, "web"), Some(11), "it was created again meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_list_replaces_all_but_what_was_read_since_it_was_made() {
    let mut store = listed();
    store.apply(name("newer"), entry(21));
    store.apply(name("older"), entry(19));
    store.replace(Instant::now(), at(20), [(name("web"), entry(18)), (name("other"), entry(7))]);
    assert_eq!(
        ["web", "other", "newer", "older"].map(|spec| version(&store, spec)),
        [Some(18), Some(7), Some(21), None]
    );
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_taken_from_the_watch_alone() {
    let opaque = || Entry { version: Version::parse("opaque"), contents: None };
    let mut store = listed();
    let before = store.before_read(&name("new"));
    let read = Read::Found { resource_version: "opaque".to_owned(), contents: None };
    store.after_read(&name("new"), before, &read);
    assert_eq!(store.get(&name("new")), None);
    store.apply(name("web"), opaque());
    assert_eq!(store.get(&name("web")), Some(&opaque()));
    store.after_read(&name("web"), store.before_read(&name("web")), &found(99));
    assert_eq!(store.get(&name("web")), Some(&opaque()));
    store.remove(&name("web"), Version::parse("opaque"));
    assert_eq!(store.get(&name("web")), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_where_there_will_be_no_events() {
    let mut store = listed();
    store.give_up();
    assert_eq!(store.len(), 0);
    store.connected(true);
    let before = store.before_read(&name("web"));
    store.after_read(&name("web"), before, &found(5));
    assert_eq!(store.len(), 0);
}

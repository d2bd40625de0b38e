//! What a review can cost, counted in bytes and allocations: a body of any shape is parsed in bounded memory, and twice the
//! body costs at most about twice as much.
//!
//! Time is not measured. What is not counted here is bounded by constants: the slots and the names of a pod.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use allocation_counter::{AllocationInfo, measure};
use futures::FutureExt as _;
use gmsa_core::{
    admission::{
        Decision, Enforcement, Fact, Failure, Known, MAX_PATCH_BYTES, MAX_SPECS_PER_POD, MOST_BYTES_TO_ANSWER,
        Question, Review, Settings, Source, SpecFact, TicketSettings, UseFact, Webhook, review::most_bytes_to_parse,
    },
    credspec::Contents,
};
use gmsa_test_support::golden::sidecar;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

/// The largest body that the server takes.
const MAX_BODY: usize = 8 * MIB;

/// The webhooks, each with the kind that it decides about.
const WEBHOOKS: [(Webhook, &str); 4] = [
    (Webhook::Mutate, r#"{"kind":"Pod"}"#),
    (Webhook::Validate, r#"{"kind":"Pod"}"#),
    (Webhook::ValidateWorkload, r#"{"group":"apps","kind":"Deployment"}"#),
    (Webhook::ValidateCredspec, r#"{"group":"windows.k8s.io","kind":"GMSACredentialSpec"}"#),
];

/// Pieces that a body is filled with, over and over: the text in front, the piece, the text behind.
type Filling = (&'static str, &'static str, &'static str);

const LISTS_IN_LISTS: Filling = ("", "[", "");

const FILLINGS: [Filling; 16] = [
    ("[{}", ",{}", "]"),
    ("[[0]", ",[0]", "]"),
    (r#"[{"a":0}"#, r#",{"a":0}"#, "]"),
    ("[0", ",0", "]"),
    (r#"[""#, r#"","#, r#""]"#),
    ("[null", ",null", "]"),
    (r#"[{"name":"c"}"#, r#",{"name":"c"}"#, "]"),
    // The same key, and others.
    (r#"{"a":0"#, r#","a":0"#, "}"),
    ("{\"a\":0", ",\"KEY\":0", "}"),
    ("\"", "xxxxxxxx", "\""),
    ("\"\\n", "\\u0041", "\""),
    // A text that is long when it is quoted.
    ("\"", "\u{301}\u{301}\u{301}\u{301}", "\""),
    ("1", "11111111", ""),
    ("0.1", "11111111", "1e5"),
    LISTS_IN_LISTS,
    ("", "{\"a\":", ""),
];

/// Objects of a review, a line each, with a place that `$` marks.
const OBJECTS: &str = include_str!("bounds/objects");

/// The shortest containers, and the shortest fields that Windows does not have.
const CONTAINERS: &str = include_str!("bounds/containers");

/// Makes a pod use GMSA, so that its placement matters.
const GMSA: &str = r#""securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"n","gmsaCredentialSpec":"{}"}}"#;

/// A pod with a list of containers.
const POD: &str = r#"{"spec":{"containers":$}}"#;

/// About `length` bytes of a filling.
fn fill((head, piece, tail): Filling, length: usize) -> String {
    let mut text = head.to_owned();
    let mut key = 0;
    while text.len() + piece.len() + tail.len() < length {
        if piece.contains("KEY") {
            text.push_str(&piece.replace("KEY", &key.to_string()));
            key += 1;
        } else {
            text.push_str(piece);
        }
    }
    text + tail
}

fn list(piece: &str, count: usize) -> String {
    format!("[{}]", vec![piece; count].join(","))
}

fn slot(options: &Value) -> String {
    json!({"securityContext": {"windowsOptions": options}}).to_string()
}

/// A request with these fields.
fn request(fields: &str) -> String {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{{fields}}}}}"#)
}

fn review((webhook, kind): (Webhook, &str), object: &str, filling: &str) -> String {
    let mut object = object.replace("GMSA", GMSA).replace('$', filling);
    if webhook == Webhook::ValidateWorkload {
        object = format!(r#"{{"spec":{{"template":{object}}}}}"#);
    }
    let uid_and_kind = format!(r#""uid":"u","kind":{kind}"#);
    request(&format!(r#"{uid_and_kind},"namespace":"n","operation":"UPDATE","object":{object},"oldObject":{object}"#))
}

fn created(webhook: (Webhook, &str), object: &str, containers: &str) -> Review {
    let body = review(webhook, object, containers).replace("UPDATE", "CREATE");
    Review::parse(body.as_bytes(), webhook.0).unwrap()
}

fn contents(credspec: &Value) -> Known<SpecFact> {
    let fact = SpecFact::Contents(Arc::new(Contents::of(credspec.as_object().unwrap())));
    Known { fact, source: Source::Cache }
}

/// While it is parsed it takes bounded memory, and afterwards no more than was read.
fn assert_bounded(body: &str, webhook: Webhook, case: &str) {
    let mut review = None;
    let info = measure(|| review = Review::parse(body.as_bytes(), webhook).ok());
    drop(review);
    let most = most_bytes_to_parse(body.len());
    let peak = usize::try_from(info.bytes_max).unwrap();
    assert!(peak <= most, "{case}: {peak} bytes for a body of {}, more than {most}", body.len());
    let kept = usize::try_from(info.bytes_current).unwrap();
    assert!(kept <= body.len(), "{case}: {kept} bytes are kept of a body of {}", body.len());
}

#[test]
fn a_body_of_any_shape_is_parsed_in_bounded_memory() {
    for webhook in WEBHOOKS {
        for object in OBJECTS.lines() {
            for filling in FILLINGS {
                for length in [16, 256, 32 * 1024] {
                    let body = review(webhook, object, &fill(filling, length));
                    assert_bounded(&body, webhook.0, &format!("{webhook:?}, {object}, {filling:?}, {length}"));
                }
            }
        }
    }
}

/// As many containers as fit into a small body.
#[test]
fn what_is_kept_is_never_larger_than_what_was_read() {
    let of_pod = r#""hostIPC":1,"hostPID":1,"volumes":[{"emptyDir":{"medium":"Memory"}}]"#;
    for webhook in WEBHOOKS {
        for containers in ["containers", "initContainers", "ephemeralContainers"] {
            for piece in CONTAINERS.lines() {
                for times in [1, 2, 63, 64, 65, 999, 1000, 1001] {
                    let object = format!(r#"{{"spec":{{{of_pod},"{containers}":$,GMSA}}}}"#);
                    let body = review(webhook, &object, &list(piece, times));
                    assert_bounded(&body, webhook.0, &format!("{webhook:?}, {containers}, {times} × {piece}"));
                }
            }
        }
    }
}

/// Values of any shape, of the words that stand in the objects and containers.
fn value() -> impl Strategy<Value = String> {
    let words = [OBJECTS, CONTAINERS].map(|text| text.split('"').skip(1).step_by(2)).into_iter().flatten();
    let words: Vec<&str> = words.collect::<BTreeSet<_>>().into_iter().collect();
    let leaf = select(vec!["null", "0", "true", "{}", "[]", "\"\"", "\"n\"", r#""\n\u0041""#, "\"nanoserver\""]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 64, 8, move |inner| {
        let fields = |count| btree_map(select(words.clone()), inner.clone(), count);
        let written = |(key, value)| format!("{key:?}:{value}");
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(|items| format!("[{}]", items.join(","))),
            prop_oneof![fields(0..6), fields(1..2)].prop_map(move |fields: BTreeMap<&str, String>| {
                format!("{{{}}}", fields.into_iter().map(written).collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_kept_of_any_object_is_never_larger_than_what_was_read(
        object in value(), containers in vec(value(), 0..8), webhook in select(WEBHOOKS.to_vec()),
    ) {
        let of_pod = format!(r#"{{"spec":{{"containers":[{}],GMSA}}}}"#, containers.join(","));
        for object in [object, of_pod] {
            let body = review(webhook, &object, "");
            assert_bounded(&body, webhook.0, &body);
        }
    }
}

#[test]
fn a_request_of_any_shape_is_parsed_in_bounded_memory() {
    let outside = ["apiVersion", "kind", "request"].map(|field| format!(r#"{{"{field}":$}}"#));
    let inside = ["uid", "kind", "subResource", "namespace", "operation", "object", "oldObject", "userInfo"]
        .map(|field| request(&format!(r#""{field}":$"#)));
    for body in outside.iter().chain(&inside) {
        for filling in FILLINGS {
            let case = format!("{body}, {filling:?}");
            assert_bounded(&body.replace('$', &fill(filling, 128 * 1024)), Webhook::Validate, &case);
        }
    }
}

#[test]
fn the_largest_bodies_are_parsed_within_one_and_a_half_times_their_size() {
    let [mutate, validate, _, credspec] = WEBHOOKS;
    let half = MAX_BODY / 2 - 1024;
    let full = |piece: &str| list(piece, half / (piece.len() + 1));
    let escaped =
        slot(&json!({"gmsaCredentialSpec": ""})).replace(r#""""#, &format!("\"{}\"", r"\u0041".repeat(64 * 1024)));
    let os = OBJECTS.lines().find(|object| object.contains(r#""values":$"#)).unwrap();
    let one_text = fill(("\"\\n", "xxxxxxxx", "\""), 2 * half);
    let one_text =
        format!(r#""uid":"u","kind":{},"operation":"CREATE","object":{{"spec":{{"hostname":{one_text}}}}}"#, mutate.1);
    for (case, webhook, body) in [
        ("containers", mutate, review(mutate, POD, &full("{}"))),
        ("contents", mutate, review(mutate, POD, &full(&escaped))),
        ("affinity", validate, review(validate, os, &full("\"\""))),
        ("trees", credspec, review(credspec, r#"{"credspec":$}"#, &full("[0]"))),
        ("one escaped text", mutate, request(&one_text)),
        ("lists in lists", mutate, fill(LISTS_IN_LISTS, 2 * half)),
    ] {
        assert!((MAX_BODY - MIB..MAX_BODY).contains(&body.len()), "{case}: {}", body.len());
        assert_bounded(&body, webhook.0, case);
    }
}

#[test]
fn the_largest_answer_is_written_in_bounded_memory() {
    let webhook = WEBHOOKS[0];
    // The largest patches that fit, filled by few and by many operations.
    for (slots, bytes) in [(1, 2_096_900), (31, 67_000), (999, 1_950)] {
        let review = created(webhook, POD, &list(&slot(&json!({"gmsaCredentialSpecName": "s"})), slots));
        let known = contents(&json!({"k": "x".repeat(bytes)}));
        let review = Arc::new(review);
        let mut patch = 0;
        let info = measure(|| {
            let step = Decision::begin(Arc::clone(&review), webhook.0, Settings::default());
            let decision = step.answered_by(async |_| Fact::Contents(known.clone())).now_or_never().unwrap();
            patch = decision.patch.as_ref().map_or(0, Vec::len);
            drop(review.answer(&decision));
        });
        assert!((MAX_PATCH_BYTES * 9 / 10..=MAX_PATCH_BYTES).contains(&patch), "{slots} slots: {patch}");
        let most = u64::try_from(MOST_BYTES_TO_ANSWER).unwrap();
        assert!(info.bytes_max <= most, "{slots} slots: {} bytes", info.bytes_max);
    }
}

#[test]
fn a_credential_spec_is_parsed_once_however_many_slots_name_it() {
    let known = contents(&json!({"k": vec![0; 30_000]}));
    let allowed = Known { fact: UseFact::Allowed, source: Source::Api };
    let answer = async |question: &Question| match question {
        Question::Contents(..) => Fact::Contents(known.clone()),
        Question::Use(..) => Fact::Use(allowed.clone()),
    };
    let settings = Settings { enforcement: Enforcement::Warn, ..Settings::default() };
    let slot = slot(&json!({"gmsaCredentialSpecName": "s", "gmsaCredentialSpec": "{}"}));
    for webhook in [WEBHOOKS[1], WEBHOOKS[2]] {
        let cost = |slots: usize| {
            let review = Arc::new(created(webhook, POD, &list(&slot, slots)));
            let begin = || Decision::begin(Arc::clone(&review), webhook.0, settings.clone());
            measure(|| drop(begin().answered_by(answer).now_or_never().unwrap())).bytes_total
        };
        let (one, many) = (cost(1), cost(999));
        assert!(many < 2 * one, "{webhook:?}: {one} {many}");
    }
}

/// What it costs to parse, decide and answer, with hostile facts.
fn cost(webhook: (Webhook, &str), object: &str, filling: &str) -> AllocationInfo {
    let (body, webhook) = (review(webhook, object, filling), webhook.0);
    measure(|| {
        let Ok(review) = Review::parse(body.as_bytes(), webhook).map(Arc::new) else { return };
        for enforcement in [Enforcement::Enforce, Enforcement::Warn] {
            let (hostname, tickets) = (Some("h".to_owned()), TicketSettings::On(Arc::new(sidecar())));
            let settings = Settings { enforcement, strict_credential_specs: true, hostname, tickets };
            let (source, mut asked) = (Source::Api, 0);
            let fact = UseFact::Failed(Failure::new("c"));
            let decision = Decision::begin(Arc::clone(&review), webhook, settings)
                .answered_by(async |question| {
                    asked += 1;
                    match question {
                        Question::Contents(..) => Fact::Contents(Known { fact: SpecFact::Missing, source }),
                        Question::Use(..) => Fact::Use(Known { fact: fact.clone(), source }),
                    }
                })
                .now_or_never()
                .unwrap();
            assert!(asked <= 2 * MAX_SPECS_PER_POD);
            drop(review.answer(&decision));
        }
    })
}

#[test]
fn twice_the_body_costs_at_most_twice_as_much() {
    let names = |count: usize| {
        let slots = (0..count).map(|n| slot(&json!({"gmsaCredentialSpecName": format!("s{n}")})));
        format!("[{}]", slots.collect::<Vec<_>>().join(","))
    };
    for webhook in WEBHOOKS {
        for object in OBJECTS.lines() {
            for filling in FILLINGS {
                let [once, twice] = [8, 16].map(|kib| cost(webhook, object, &fill(filling, kib * 1024)));
                let case = format!("{webhook:?}, {object}, {filling:?}");
                assert!(twice.bytes_total <= 2 * once.bytes_total + 128 * 1024, "{case}: {once:?} {twice:?}");
                assert!(twice.count_total <= 2 * once.count_total + 1024, "{case}: {once:?} {twice:?}");
            }
        }
        // From the bound on slots on, names cost nothing more than their bytes.
        let [once, many] = [1_000, 60_000].map(|count| cost(webhook, POD, &names(count)));
        assert!(many.count_total <= 60 * once.count_total, "{webhook:?}: {once:?} {many:?}");
        assert!(many.bytes_total <= 60 * once.bytes_total, "{webhook:?}: {once:?} {many:?}");
    }
}

/// What is read from the API server is parsed into a tree of values, and so is what the linter is given.
#[test]
fn a_hostile_credential_spec_is_parsed_within_what_an_answer_may_take() {
    let most = u64::try_from(MOST_BYTES_TO_ANSWER).unwrap();
    for piece in [r#"{"a":0}"#, "[]", "[0]", "0", r#"{"a":{"a":{"a":{}}}}"#] {
        let credspec = format!(r#"{{"k":{}}}"#, list(piece, 72 * 1024 / (piece.len() + 1) - 1));
        let read = measure(|| drop(Contents::of(&serde_json::from_str(&credspec).unwrap())));
        let body = review(WEBHOOKS[3], r#"{"credspec":$}"#, &credspec);
        let review = Review::parse(body.as_bytes(), Webhook::ValidateCredspec).unwrap();
        let review = Arc::new(review);
        let begin = || Decision::begin(Arc::clone(&review), Webhook::ValidateCredspec, Settings::default());
        let linted = measure(|| drop(begin()));
        for (what, info) in [("read", read), ("linted", linted)] {
            assert!(info.bytes_max <= most, "{what}, {piece}: {} bytes", info.bytes_max);
        }
    }
}

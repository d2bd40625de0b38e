//! What a review can cost, counted in bytes and allocations: a body of any shape is parsed in bounded memory, and twice the
//! body costs at most about twice as much.
//!
//! Time is not measured. What is not counted here is bounded by constants: the slots and the names of a pod.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail")]

use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use gmsa_core::{
    admission::{
        Enforcement, Facts, Failure, Known, MAX_PATCH_BYTES, MAX_SPECS_PER_POD, MOST_BYTES_TO_ANSWER, Review, Settings,
        Source, SpecFact, UseFact, Webhook, review::most_bytes_to_parse,
    },
    credspec::{Contents, SpecName},
};
use proptest::prelude::*;

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

/// Pieces that a body is filled with, over and over: what they look like, the text in front, the piece, the text behind.
const FILLINGS: [(&str, &str, &str, &str); 16] = [
    ("a list of objects", "[{}", ",{}", "]"),
    ("a list of lists", "[[0]", ",[0]", "]"),
    ("a list of small objects", r#"[{"a":0}"#, r#",{"a":0}"#, "]"),
    ("a list of numbers", "[0", ",0", "]"),
    ("a list of texts", r#"[""#, r#"","#, r#""]"#),
    ("a list of nulls", "[null", ",null", "]"),
    ("a list of names", r#"[{"name":"c"}"#, r#",{"name":"c"}"#, "]"),
    ("an object with the same key", r#"{"a":0"#, r#","a":0"#, "}"),
    ("an object with keys", "{\"a\":0", ",\"KEY\":0", "}"),
    ("a text", "\"", "xxxxxxxx", "\""),
    ("a text with escapes", "\"\\n", "\\u0041", "\""),
    ("a text that is long when it is quoted", "\"", "\u{301}\u{301}\u{301}\u{301}", "\""),
    ("a long number", "1", "11111111", ""),
    ("a number with a fraction", "0.1", "11111111", "1e5"),
    ("lists in lists", "", "[", ""),
    ("objects in objects", "", "{\"a\":", ""),
];

/// Places in a review that `$` marks, by the part of it that is there.
const OBJECTS: [&str; 33] = [
    "$",
    r#"{"metadata":$}"#,
    r#"{"metadata":{"name":$}}"#,
    r#"{"metadata":{"ownerReferences":$}}"#,
    r#"{"metadata":{"ownerReferences":[{"controller":$}]}}"#,
    r#"{"metadata":{"annotations":$}}"#,
    r#"{"metadata":{"annotations":{"gmsa-webhook/random-hostname":$}}}"#,
    r#"{"spec":$}"#,
    r#"{"spec":{"os":$}}"#,
    r#"{"spec":{"os":{"name":$}}}"#,
    r#"{"spec":{"hostname":$}}"#,
    r#"{"spec":{"serviceAccountName":$}}"#,
    r#"{"spec":{"securityContext":$}}"#,
    r#"{"spec":{"securityContext":{"windowsOptions":$}}}"#,
    r#"{"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":$}}}}"#,
    r#"{"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpec":$}}}}"#,
    r#"{"spec":{"securityContext":{"windowsOptions":{"hostProcess":$}}}}"#,
    r#"{"spec":{"containers":$}}"#,
    r#"{"spec":{"initContainers":$}}"#,
    r#"{"spec":{"containers":[{"name":$}]}}"#,
    r#"{"spec":{"containers":[{"securityContext":$}]}}"#,
    r#"{"spec":{"volumes":$}}"#,
    r#"{"spec":{"nodeSelector":$,GMSA}}"#,
    r#"{"spec":{"nodeSelector":{"kubernetes.io/os":$},GMSA}}"#,
    r#"{"spec":{"affinity":$,GMSA}}"#,
    r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":$}},GMSA}}"#,
    r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":$}}},GMSA}}"#,
    r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":$}]}}},GMSA}}"#,
    r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":$}]}]}}},GMSA}}"#,
    r#"{"spec":{"runtimeClassName":$,GMSA}}"#,
    r#"{"credspec":$}"#,
    r#"{"credspec":{"ActiveDirectoryConfig":{"GroupManagedServiceAccounts":$}}}"#,
    r#"{"apiVersion":$}"#,
];

/// Makes a pod use GMSA, so that its placement matters.
const GMSA: &str = r#""securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"n","gmsaCredentialSpec":"{}"}}"#;

/// About `length` bytes of a filling.
fn fill((_, head, piece, tail): (&str, &str, &str, &str), length: usize) -> String {
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

fn review(webhook: Webhook, kind: &str, object: &str, filling: &str) -> String {
    let object = object.replace("GMSA", GMSA).replace('$', filling);
    let object =
        if webhook == Webhook::ValidateWorkload { format!(r#"{{"spec":{{"template":{object}}}}}"#) } else { object };
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"namespace":"n","operation":"UPDATE","object":{object},"oldObject":{object}}}}}"#
    )
}

fn parse(body: &str, webhook: Webhook) -> AllocationInfo {
    measure(|| drop(Review::parse(body.as_bytes(), webhook)))
}

/// How many bytes a parsed review points to.
fn kept(body: &str, webhook: Webhook) -> usize {
    let mut review = None;
    let info = measure(|| review = Review::parse(body.as_bytes(), webhook).ok());
    drop(review);
    usize::try_from(info.bytes_current).unwrap()
}

/// While it is parsed it takes bounded memory, and afterwards no more than was read.
fn assert_bounded(info: &AllocationInfo, body: &str, webhook: Webhook, case: &str) {
    let most = most_bytes_to_parse(body.len());
    let peak = usize::try_from(info.bytes_max).unwrap();
    assert!(peak <= most, "{case}: {peak} bytes for a body of {}, more than {most}", body.len());
    let kept = kept(body, webhook);
    assert!(kept <= body.len(), "{case}: {kept} bytes are kept of a body of {}", body.len());
}

#[test]
fn the_bound_is_one_and_a_half_times_the_body_and_a_constant() {
    assert_eq!(most_bytes_to_parse(0), 256 * 1024);
    assert_eq!(most_bytes_to_parse(MAX_BODY), MAX_BODY * 3 / 2 + 256 * 1024);
}

#[test]
fn a_body_of_any_shape_is_parsed_in_bounded_memory() {
    for (webhook, kind) in WEBHOOKS {
        for object in OBJECTS {
            for filling in FILLINGS {
                for length in [16, 256, 32 * 1024] {
                    let filled = fill(filling, length);
                    let body = review(webhook, kind, object, &filled);
                    let case = format!("{webhook:?}, {object}, {}, {length}", filling.0);
                    assert_bounded(&parse(&body, webhook), &body, webhook, &case);
                }
            }
        }
    }
}

/// The shortest containers, and the shortest fields that Windows does not have, as many as fit into a small body.
#[test]
fn what_is_kept_is_never_larger_than_what_was_read() {
    let options = |options: &str| format!(r#"{{"securityContext":{{"windowsOptions":{options}}}}}"#);
    let context = |fields: &str| format!(r#"{{"securityContext":{{{fields}}}}}"#);
    let pieces = [
        "{}".to_owned(),
        r#"{"name":""}"#.to_owned(),
        r#"{"name":"c"}"#.to_owned(),
        options("{}"),
        options(r#"{"hostProcess":true}"#),
        options(r#"{"hostProcess":null}"#),
        options(r#"{"runAsUserName":""}"#),
        options(r#"{"gmsaCredentialSpec":""}"#),
        options(r#"{"gmsaCredentialSpecName":"n","gmsaCredentialSpec":"{}"}"#),
        context(r#""sysctls":0,"fsGroup":0,"procMount":0"#),
        r#"{"image":"nanoserver"}"#.to_owned(),
        r#"{"volumeDevices":[0]}"#.to_owned(),
        r#"{"volumeMounts":[{"mountPropagation":"x"},{"mountPropagation":"x"}]}"#.to_owned(),
        r#"{"resources":{"limits":{"hugepages-":0}}}"#.to_owned(),
    ];
    let of_pod = r#""hostIPC":1,"hostPID":1,"volumes":[{"emptyDir":{"medium":"Memory"}}]"#;
    for (webhook, kind) in WEBHOOKS {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            for piece in &pieces {
                for times in [1, 2, 63, 64, 65, 999, 1000, 1001] {
                    let items = vec![piece.as_str(); times].join(",");
                    let object = format!(r#"{{"spec":{{{of_pod},"{list}":[$],GMSA}}}}"#);
                    let body = review(webhook, kind, &object, &items);
                    let case = format!("{webhook:?}, {list}, {times} × {piece}");
                    assert_bounded(&parse(&body, webhook), &body, webhook, &case);
                }
            }
        }
    }
}

/// Values of any shape, of the keys that a review knows.
fn value() -> impl Strategy<Value = String> {
    const KEYS: [&str; 17] = [
        "spec",
        "metadata",
        "template",
        "name",
        "containers",
        "initContainers",
        "volumes",
        "securityContext",
        "windowsOptions",
        "gmsaCredentialSpecName",
        "gmsaCredentialSpec",
        "hostProcess",
        "runAsUser",
        "image",
        "hostIPC",
        "credspec",
        "k",
    ];
    let leaf = prop::sample::select(vec![
        "null",
        "0",
        "true",
        "{}",
        "[]",
        r#""""#,
        r#""n""#,
        r#""\n\u0041""#,
        r#""nanoserver""#,
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 64, 8, |inner| {
        let entry = (prop::sample::select(KEYS.to_vec()), inner.clone());
        let object = prop::collection::btree_map(prop::sample::select(KEYS.to_vec()), inner.clone(), 0..6);
        let written = |(key, value): (&str, String)| format!("{key:?}:{value}");
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(|items| format!("[{}]", items.join(","))),
            object.prop_map(move |object| format!(
                "{{{}}}",
                object.into_iter().map(written).collect::<Vec<_>>().join(",")
            )),
            entry.prop_map(move |entry| format!("{{{}}}", written(entry))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_kept_of_any_object_is_never_larger_than_what_was_read(
        object in value(),
        containers in prop::collection::vec(value(), 0..8),
        webhook in prop::sample::select(WEBHOOKS.to_vec()),
    ) {
        let (webhook, kind) = webhook;
        let of_pod = format!(r#"{{"spec":{{"containers":[{}],GMSA}}}}"#, containers.join(","));
        for object in [object, of_pod] {
            let body = review(webhook, kind, &object, "");
            assert_bounded(&parse(&body, webhook), &body, webhook, &body);
        }
    }
}

#[test]
fn a_request_of_any_shape_is_parsed_in_bounded_memory() {
    let fields = ["apiVersion", "kind", "request"];
    let in_request = ["uid", "kind", "subResource", "namespace", "operation", "object", "oldObject", "userInfo"];
    for filling in FILLINGS {
        let filled = fill(filling, 128 * 1024);
        for field in fields {
            let body = format!(r#"{{"{field}":{filled}}}"#);
            assert_bounded(
                &parse(&body, Webhook::Validate),
                &body,
                Webhook::Validate,
                &format!("{field}, {}", filling.0),
            );
        }
        for field in in_request {
            let body = format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"{field}":{filled}}}}}"#
            );
            assert_bounded(
                &parse(&body, Webhook::Validate),
                &body,
                Webhook::Validate,
                &format!("request.{field}, {}", filling.0),
            );
        }
    }
}

#[test]
fn the_largest_bodies_are_parsed_within_one_and_a_half_times_their_size() {
    let escaped = r"\u0041".repeat(64 * 1024);
    let contents = format!(r#"{{"securityContext":{{"windowsOptions":{{"gmsaCredentialSpec":"{escaped}"}}}}}}"#);
    let list = |piece: &str, length: usize| vec![piece; length / (piece.len() + 1)].join(",");
    let os = r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":$}]}]}}},GMSA}}"#;
    let (mutate, pod) = WEBHOOKS[0];
    let (validate, _) = WEBHOOKS[1];
    let (credspec, spec) = WEBHOOKS[3];
    let half = MAX_BODY / 2 - 1024;
    for (case, webhook, body) in [
        ("containers", mutate, review(mutate, pod, r#"{"spec":{"containers":[$]}}"#, &list("{}", half))),
        ("contents", mutate, review(mutate, pod, r#"{"spec":{"containers":[$]}}"#, &list(&contents, half))),
        ("affinity", validate, review(validate, pod, os, &format!("[{}]", list("\"\"", half)))),
        ("trees", credspec, review(credspec, spec, r#"{"credspec":[$]}"#, &list("[0]", half))),
        ("one escaped text", mutate, {
            let text = fill(("", "\"\\n", "xxxxxxxx", "\""), 2 * half);
            let object = format!(r#"{{"spec":{{"hostname":{text}}}}}"#);
            format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{pod},"operation":"CREATE","object":{object}}}}}"#
            )
        }),
        ("lists in lists", mutate, fill(FILLINGS[14], 2 * half)),
    ] {
        assert!((MAX_BODY - MIB..MAX_BODY).contains(&body.len()), "{case}: {}", body.len());
        assert_bounded(&parse(&body, webhook), &body, webhook, case);
    }
}

#[test]
fn the_largest_answer_is_written_in_bounded_memory() {
    let webhook = Webhook::Mutate;
    let contents = |bytes: usize| {
        let credspec = serde_json::json!({"k": "x".repeat(bytes)});
        let fact = SpecFact::Contents(Arc::new(Contents::of(credspec.as_object().unwrap())));
        Known { fact, source: Source::Cache }
    };
    // Of patches that are filled by few and by many operations, the largest that fit.
    for (slots, bytes) in [(1, 2_096_900), (31, 67_000), (999, 1_950)] {
        let slot = r#"{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"s"}}}"#;
        let containers = format!("[{}]", vec![slot; slots].join(","));
        let body = review(webhook, WEBHOOKS[0].1, r#"{"spec":{"containers":$}}"#, &containers);
        let body = body.replace("UPDATE", "CREATE");
        let review = Review::parse(body.as_bytes(), webhook).unwrap();
        let facts = Facts { specs: vec![(name("s"), contents(bytes))], ..Facts::default() };
        let mut patch = 0;
        let info = measure(|| {
            let decision = review.decide(webhook, Settings::default(), &facts);
            patch = decision.patch.as_ref().map_or(0, |patch| patch.as_bytes().len());
            drop(review.answer(&decision));
        });
        assert!((MAX_PATCH_BYTES * 9 / 10..=MAX_PATCH_BYTES).contains(&patch), "{slots} slots: {patch}");
        let most = u64::try_from(MOST_BYTES_TO_ANSWER).unwrap();
        assert!(info.bytes_max <= most, "{slots} slots: {} bytes", info.bytes_max);
    }
}

#[test]
fn a_credential_spec_is_parsed_once_however_many_slots_name_it() {
    let credspec = serde_json::json!({"k": vec![0; 30_000]});
    let fact = SpecFact::Contents(Arc::new(Contents::of(credspec.as_object().unwrap())));
    let source = Source::Cache;
    let facts = Facts {
        specs: vec![(name("s"), Known { fact, source })],
        uses: vec![(name("s"), Known { fact: UseFact::Allowed, source: Source::Api })],
        hostname: None,
    };
    let settings = Settings { enforcement: Enforcement::Warn, ..Settings::default() };
    for (webhook, kind, object) in [
        (Webhook::ValidateWorkload, WEBHOOKS[2].1, r#"{"spec":{"template":{"spec":{"containers":$}}}}"#),
        (Webhook::Validate, WEBHOOKS[1].1, r#"{"spec":{"containers":$}}"#),
    ] {
        let cost = |slots: usize| {
            let slot =
                r#"{"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"s","gmsaCredentialSpec":"{}"}}}"#;
            let containers = format!("[{}]", vec![slot; slots].join(","));
            let body = review(webhook, kind, object, &containers);
            let body = body.replace("UPDATE", "CREATE");
            let review = Review::parse(body.as_bytes(), webhook).unwrap();
            measure(|| drop(review.decide(webhook, settings, &facts))).bytes_total
        };
        let (one, many) = (cost(1), cost(999));
        assert!(many < 2 * one, "{webhook:?}: {one} {many}");
    }
}

fn name(text: &str) -> SpecName {
    SpecName::parse(text).unwrap()
}

/// Parses, decides and answers, with hostile facts.
fn answer(body: &str, webhook: Webhook) {
    let Ok(review) = Review::parse(body.as_bytes(), webhook) else { return };
    for enforcement in [Enforcement::Enforce, Enforcement::Warn] {
        let settings = Settings { enforcement, strict_credential_specs: true };
        let source = Source::Api;
        let fact = UseFact::Failed(Failure::new("c"));
        let questions = review.questions(webhook, settings);
        let known = |_: &SpecName| Known { fact: SpecFact::Missing, source };
        let facts = questions.facts(known, |_, _| Known { fact: fact.clone(), source });
        assert!(questions.all.len() <= MAX_SPECS_PER_POD);
        let facts = Facts { hostname: Some("h".to_owned()), ..facts };
        drop(review.answer(&review.decide(webhook, settings, &facts)));
    }
}

#[test]
fn twice_the_body_costs_at_most_twice_as_much() {
    let names = |count: usize| {
        let containers: Vec<String> = (0..count)
            .map(|n| {
                format!(
                    r#"{{"name":"c{n}","securityContext":{{"windowsOptions":{{"gmsaCredentialSpecName":"s{n}"}}}}}}"#
                )
            })
            .collect();
        format!("[{}]", containers.join(","))
    };
    for (webhook, kind) in WEBHOOKS {
        for object in OBJECTS {
            for filling in FILLINGS {
                let cost = |length: usize| {
                    let body = review(webhook, kind, object, &fill(filling, length));
                    measure(|| answer(&body, webhook))
                };
                let (once, twice) = (cost(8 * 1024), cost(16 * 1024));
                let case = format!("{webhook:?}, {object}, {}", filling.0);
                assert!(twice.bytes_total <= 2 * once.bytes_total + 128 * 1024, "{case}: {once:?} {twice:?}");
                assert!(twice.count_total <= 2 * once.count_total + 1024, "{case}: {once:?} {twice:?}");
            }
        }
        // From the bound on slots on, names cost nothing more than their bytes.
        let cost = |count: usize| {
            let body = review(webhook, kind, r#"{"spec":{"containers":$}}"#, &names(count));
            measure(|| answer(&body, webhook))
        };
        let (once, many) = (cost(1_000), cost(60_000));
        assert!(many.count_total <= 60 * once.count_total, "{webhook:?}: {once:?} {many:?}");
        assert!(many.bytes_total <= 60 * once.bytes_total, "{webhook:?}: {once:?} {many:?}");
    }
}

/// What is read from the API server is parsed into a tree of values, and so is what the linter is given.
#[test]
fn a_hostile_credential_spec_is_parsed_within_what_an_answer_may_take() {
    let most = u64::try_from(MOST_BYTES_TO_ANSWER).unwrap();
    for piece in [r#"{"a":0}"#, "[]", "[0]", "0", r#"{"a":{"a":{"a":{}}}}"#] {
        let list = vec![piece; 72 * 1024 / (piece.len() + 1) - 1].join(",");
        let credspec = format!(r#"{{"k":[{list}]}}"#);
        let read = measure(|| drop(Contents::of(&serde_json::from_str(&credspec).unwrap())));
        let (webhook, kind) = WEBHOOKS[3];
        let body = review(webhook, kind, r#"{"credspec":$}"#, &credspec);
        let review = Review::parse(body.as_bytes(), webhook).unwrap();
        let linted = measure(|| drop(review.decide(webhook, Settings::default(), &Facts::default())));
        for (what, info) in [("read", read), ("linted", linted)] {
            assert!(info.bytes_max <= most, "{what}, {piece}: {} bytes", info.bytes_max);
        }
    }
}

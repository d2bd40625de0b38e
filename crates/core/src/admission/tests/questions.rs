//! What is asked, in which order, and that it is enough.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::admission::case::Case;

fn all(names: &[&str], spec: &SpecFact, may_use: &UseFact) -> Facts {
    Facts {
        specs: names.iter().map(|text| (name(text), known(spec.clone(), Source::Api))).collect(),
        uses: names.iter().map(|text| ((Verb::Use, name(text)), known(may_use.clone(), Source::Api))).collect(),
    }
}

/// The contents of each of these names, and whether it may be used.
fn both<const N: usize>(names: [&str; N]) -> Vec<Question> {
    names.into_iter().flat_map(|text| [contents_of(text), use_of(text)]).collect()
}

fn enforced(webhook: Webhook, review: &Value, facts: &Facts) -> (Vec<Question>, Decision) {
    stepped(enforcing(Enforcement::Enforce), webhook, review, facts)
}

fn pod_of_names() -> Value {
    create(&json!({
        "securityContext": named("b"),
        "containers": [{"name": "c1", "securityContext": named("a")}, {"name": "c2", "securityContext": named("b")}],
        "initContainers": [{"name": "i", "securityContext": options("c", "{}")}],
        "ephemeralContainers": [{"name": "e", "securityContext": named("d")}],
    }))
}

#[test]
fn each_distinct_question_is_asked_once_and_one_name_after_the_other() {
    let facts = all(&["a", "b", "d"], &contents(&json!({})), &UseFact::Allowed);
    let (asked, decision) = enforced(MUTATE, &pod_of_names(), &facts);
    assert_eq!(asked, ["b", "a", "d"].map(contents_of));
    assert_eq!((decision.is_allowed(), decision.reason), (true, "expanded"));

    let full = |spec: &str| json!({"name": spec, "securityContext": options(spec, "{}")});
    let pod = create(&json!({"containers": [full("a"), full("b"), full("a")]}));
    let (asked, decision) = enforced(Webhook::Validate, &pod, &facts);
    assert_eq!(asked, both(["a", "b"]));
    assert_eq!((decision.is_allowed(), decision.reason), (true, "authorized"));
}

#[test]
fn nothing_is_asked_after_the_first_name_that_is_denied() {
    let (yes, no) = (&UseFact::Allowed, &UseFact::Denied { reason: None });
    let (there, failed) = (&contents(&json!({})), &UseFact::Failed(Failure::new("away")));
    let full = |spec: String| json!({"name": spec, "securityContext": options(&spec, "{}")});
    let bare = |spec: String| json!({"name": spec, "securityContext": named(&spec)});
    let names = || (0..24).map(|n| format!("s{n}"));
    let (expanded, unexpanded) = (
        create(&json!({"containers": names().map(full).collect::<Vec<_>>()})),
        create(&json!({"containers": names().map(bare).collect::<Vec<_>>()})),
    );
    for (webhook, pod, facts, reason) in [
        (Webhook::Validate, &expanded, all(&["s0"], there, no), "not-authorized"),
        (Webhook::Validate, &expanded, all(&["s0"], there, failed), "authorization-failed"),
        (Webhook::Validate, &expanded, all(&["s0"], &SpecFact::Missing, yes), "spec-missing"),
        (Webhook::Validate, &unexpanded, all(&["s0"], there, yes), "name-without-contents"),
        (MUTATE, &unexpanded, all(&["s0"], &SpecFact::Missing, yes), "spec-missing"),
        (MUTATE, &unexpanded, all(&["s0"], &SpecFact::Unusable, yes), "spec-unusable"),
        (MUTATE, &unexpanded, all(&["s0"], &SpecFact::Failed(Failure::new("away")), yes), "spec-unreadable"),
    ] {
        let (asked, decision) = enforced(webhook, pod, &facts);
        assert!(asked.iter().all(|question| question.spec() == &name("s0")), "{asked:?}");
        assert_eq!(decision.reason, reason, "{webhook:?}");
    }
}

#[test]
fn a_denial_that_needs_no_fact_ends_the_questions() {
    let full = |spec: &str| json!({"name": spec, "securityContext": options(spec, "{}")});
    let stop = |last: Value| create(&json!({"containers": [full("a"), full("b"), full("a"), last, full("c")]}));
    let facts = all(&["a", "b", "d"], &contents(&json!({})), &UseFact::Allowed);
    for last in [options("", "{}"), options("X", "{}"), json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}})] {
        let pod = stop(json!({"name": "last", "securityContext": last}));
        assert_eq!(enforced(Webhook::Validate, &pod, &facts).0, both(["a", "b"]));
    }
    // A name without contents: whether it may be used is said first, and its contents do not matter.
    let pod = stop(json!({"name": "last", "securityContext": named("d")}));
    let asked = enforced(Webhook::Validate, &pod, &facts).0;
    assert_eq!(asked, [both(["a", "b"]), vec![use_of("d")]].concat());
}

#[test]
fn without_enforcement_everything_is_asked() {
    let nothing = Facts::default();
    let asked = |webhook| stepped(enforcing(Enforcement::Warn), webhook, &pod_of_names(), &nothing).0;
    assert_eq!(asked(MUTATE), ["b", "a", "d"].map(contents_of));
    assert_eq!(asked(Webhook::Validate), [use_of("b"), use_of("a"), contents_of("c"), use_of("c"), use_of("d")]);
}

/// An answer to another question than the one that was asked counts as none.
#[test]
fn an_answer_of_another_kind_denies() {
    let pod = create(&json!({"securityContext": options("a", "{}")}));
    let review = Review::parse(pod.to_string().as_bytes(), Webhook::Validate).unwrap();
    let contents = known(contents(&json!({})), Source::Api);
    let step = Decision::begin(review, Webhook::Validate, Settings::default());
    let decision = step.answered_by(async |_| Fact::Contents(contents.clone())).now_or_never().unwrap();
    assert_eq!(decision.reason, "authorization-failed");
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A container whose slot may name any credential spec, or none that there can be, and carry its contents, others, or none.
fn container() -> impl Strategy<Value = Value> {
    let names = option::weighted(0.9, select(vec!["a", "a", "b", "c", "d", "X"]));
    (names, option::weighted(0.8, select(vec!["{}", "{}", "[]"]))).prop_map(|(name, contents)| {
        let options = json!({"gmsaCredentialSpecName": name, "gmsaCredentialSpec": contents});
        json!({"name": "c", "securityContext": {"windowsOptions": options}})
    })
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let failed = || Failure::new("away");
    let there = contents(&json!({}));
    let spec = select(vec![
        there.clone(),
        there.clone(),
        there,
        SpecFact::Missing,
        SpecFact::Unusable,
        SpecFact::Failed(failed()),
    ]);
    let may_use = select(vec![
        UseFact::Allowed,
        UseFact::Allowed,
        UseFact::Allowed,
        UseFact::Denied { reason: None },
        UseFact::Failed(failed()),
    ]);
    (vec(spec, NAMES.len()), vec(may_use, NAMES.len())).prop_map(|(specs, uses)| {
        let of = || NAMES.into_iter().map(name);
        Facts {
            specs: of().zip(specs).map(|(name, fact)| (name, known(fact, Source::Api))).collect(),
            uses: of().zip(uses).map(|(name, fact)| ((Verb::Use, name), known(fact, Source::Api))).collect(),
        }
    })
}

proptest! {
    #[test]
    fn what_is_asked_is_enough_and_decides_as_all_facts_do(containers in vec(container(), 0..6), all in any_facts()) {
        let pod = create(&json!({"containers": containers}));
        for webhook in [MUTATE, Webhook::Validate] {
            for enforcement in [Enforcement::Enforce, Enforcement::Warn] {
                let settings = Settings { hostname: Some("h".to_owned()), ..enforcing(enforcement) };
                let (_, decision) = stepped(settings.clone(), webhook, &pod, &all);
                let review = Review::parse(pod.to_string().as_bytes(), webhook).unwrap();
                let claims = match webhook {
                    MUTATE => mutate::claims(&review, &settings.tickets),
                    _ => validate::claims(&review),
                };
                let claims = claims.unwrap();
                let (exhaustive, _) = Case { review: Arc::new(review), webhook, settings, claims, facts: all.clone() }.decide();
                prop_assert_eq!(&decision.verdict, &exhaustive.verdict);
                prop_assert_eq!(&decision.denials, &exhaustive.denials);
                prop_assert_eq!(&decision.patch, &exhaustive.patch);
                prop_assert_eq!(&decision.warnings, &exhaustive.warnings);
                prop_assert_eq!(decision.reason, exhaustive.reason);
                // The first of all denials is the one that is enforced.
                if enforcement == Enforcement::Enforce {
                    let trial = decided_with(Enforcement::Warn, webhook, &pod, &all);
                    let first = trial.denials.first().map(|found| &found.denial);
                    let denied = decision.denials.first().map(|found| &found.denial);
                    prop_assert_eq!(first, denied);
                    prop_assert_eq!(decision.is_allowed(), first.is_none());
                }
            }
        }
    }
}

//! What is asked, in which order, and that it is enough.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

use super::*;

/// Answers what is asked from `all`, until there is a decision; gives also what was asked, round by round.
fn stepped(webhook: Webhook, review: &Value, enforcement: Enforcement, all: &Facts) -> (Vec<Needs>, Decision) {
    let (mut facts, mut rounds) = (Facts { hostname: all.hostname.clone(), ..Facts::default() }, Vec::new());
    loop {
        let needs = match asked(webhook, review, enforcement, &facts) {
            Ok(decision) => return (rounds, decision),
            Err(needs) => needs,
        };
        let spec = |name: &SpecName| (name.clone(), all.spec(name).unwrap().clone());
        let may_use = |name: &SpecName| (name.clone(), all.may_use(name).unwrap().clone());
        facts.specs.extend(needs.specs.iter().map(spec));
        facts.uses.extend(needs.uses.iter().map(may_use));
        rounds.push(needs);
    }
}

fn all(names: &[&str], spec: &SpecFact, may_use: &UseFact) -> Facts {
    Facts {
        specs: names.iter().map(|text| (name(text), known(spec.clone(), Source::Api))).collect(),
        uses: names.iter().map(|text| (name(text), known(may_use.clone(), Source::Api))).collect(),
        hostname: None,
    }
}

fn subject() -> Subject {
    Subject { namespace: Arc::from("prod"), service_account: Arc::from("default") }
}

/// One name, whose contents and use are asked for at the same time.
fn both(text: &str) -> Needs {
    Needs { specs: vec![name(text)], subject: Some(subject()), uses: vec![name(text)], ..Needs::default() }
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
    let (rounds, decision) = stepped(MUTATE, &pod_of_names(), Enforcement::Enforce, &facts);
    let one = |text| Needs { specs: vec![name(text)], ..Needs::default() };
    assert_eq!(rounds, ["b", "a", "d"].map(one));
    assert_eq!((decision.is_allowed(), decision.reason), (true, "expanded"));

    let full = |spec: &str| json!({"name": spec, "securityContext": options(spec, "{}")});
    let pod = create(&json!({"containers": [full("a"), full("b"), full("a")]}));
    let (rounds, decision) = stepped(Webhook::Validate, &pod, Enforcement::Enforce, &facts);
    assert_eq!(rounds, ["a", "b"].map(both));
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
        let (rounds, decision) = stepped(webhook, pod, Enforcement::Enforce, &facts);
        assert_eq!((rounds.len(), decision.reason), (1, reason), "{webhook:?}");
    }
}

#[test]
fn a_denial_that_needs_no_fact_ends_the_questions() {
    let full = |spec: &str| json!({"name": spec, "securityContext": options(spec, "{}")});
    let stop = |last: Value| create(&json!({"containers": [full("a"), full("b"), full("a"), last, full("c")]}));
    let facts = all(&["a", "b", "d"], &contents(&json!({})), &UseFact::Allowed);
    for last in [options("", "{}"), options("X", "{}"), json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}})] {
        let pod = stop(json!({"name": "last", "securityContext": last}));
        assert_eq!(stepped(Webhook::Validate, &pod, Enforcement::Enforce, &facts).0, ["a", "b"].map(both));
    }
    // A name without contents: whether it may be used is said first, and its contents do not matter.
    let pod = stop(json!({"name": "last", "securityContext": named("d")}));
    let only_use = Needs { subject: Some(subject()), uses: vec![name("d")], ..Needs::default() };
    let rounds = stepped(Webhook::Validate, &pod, Enforcement::Enforce, &facts).0;
    assert_eq!(rounds, [both("a"), both("b"), only_use]);
}

#[test]
fn without_enforcement_everything_is_asked_at_once() {
    let specs = ["b", "a", "d"].map(name).to_vec();
    let asked = |webhook| asked(webhook, &pod_of_names(), Enforcement::Warn, &Facts::default()).unwrap_err();
    assert_eq!(asked(MUTATE), Needs { specs, ..Needs::default() });
    let uses = ["b", "a", "c", "d"].map(name).to_vec();
    let specs = vec![name("c")];
    assert_eq!(asked(Webhook::Validate), Needs { specs, subject: Some(subject()), uses, ..Needs::default() });
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
            uses: of().zip(uses).map(|(name, fact)| (name, known(fact, Source::Api))).collect(),
            hostname: Some("h".to_owned()),
        }
    })
}

proptest! {
    #[test]
    fn what_is_asked_is_enough_and_decides_as_all_facts_do(containers in vec(container(), 0..6), all in any_facts()) {
        let pod = create(&json!({"containers": containers}));
        for webhook in [MUTATE, Webhook::Validate] {
            for enforcement in [Enforcement::Enforce, Enforcement::Warn] {
                let (_, decision) = stepped(webhook, &pod, enforcement, &all);
                let exhaustive = asked(webhook, &pod, enforcement, &all).unwrap();
                prop_assert_eq!(&decision.verdict, &exhaustive.verdict);
                prop_assert_eq!(&decision.denials, &exhaustive.denials);
                prop_assert_eq!(&decision.patch, &exhaustive.patch);
                prop_assert_eq!(&decision.warnings, &exhaustive.warnings);
                prop_assert_eq!(decision.reason, exhaustive.reason);
                // The first of all denials is the one that is enforced.
                if enforcement == Enforcement::Enforce {
                    let trial = asked(webhook, &pod, Enforcement::Warn, &all).unwrap();
                    let first = trial.denials.first().map(|found| &found.denial);
                    let denied = decision.denials.first().map(|found| &found.denial);
                    prop_assert_eq!(first, denied);
                    prop_assert_eq!(decision.is_allowed(), first.is_none());
                }
            }
        }
    }
}

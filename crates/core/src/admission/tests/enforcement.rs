//! Denials that are not enforced.

use serde_json::json;

use super::*;

fn warned(webhook: Webhook, review: &Value, facts: &Facts) -> Decision {
    decided_with(Enforcement::Warn, webhook, review, facts)
}

#[test]
fn without_enforcement_a_denial_becomes_a_warning_of_at_most_256_characters() {
    let hostile = "X".repeat(300);
    let decision =
        warned(Webhook::Validate, &create(&json!({"securityContext": options(&hostile, "{}")})), &Facts::default());
    let (Verdict::WouldDeny(denial), None) = (&decision.verdict, &decision.patch) else { panic!("{decision:?}") };
    assert_eq!((denial.code(), decision.reason), (422, "invalid-spec-name"));
    let start =
        format!("GMSA, not enforced: GMSA cred spec name \"{}", "X".repeat(253)).chars().take(255).collect::<String>();
    assert_eq!(decision.warnings[0], format!("{start}…"));
    assert_eq!(decision.warnings[0].chars().count(), 256);
    assert_eq!(decision.audit, annotated([("validate-decision", "would-deny: invalid-spec-name")]));
}

#[test]
fn without_enforcement_a_failure_still_denies() {
    let pod =
        create(&json!({"securityContext": named("a"), "containers": [{"name": "c", "securityContext": named("b")}]}));
    let failure = SpecFact::Failed(Failure { kind: FailureKind::TimedOut, ..Failure::new("too late") });
    let facts = Facts {
        specs: vec![(name("a"), known(SpecFact::Missing, Source::Api)), (name("b"), known(failure, Source::Api))],
        ..Facts::default()
    };
    let decision = warned(MUTATE, &pod, &facts);
    let Verdict::Denied(denial) = &decision.verdict else { panic!("{decision:?}") };
    assert_eq!(
        (denial.code(), denial.to_string()),
        (504, "unable to retrieve the contents of cred spec b: too late".to_owned())
    );
    assert_eq!(decision.warnings, [""; 0]);
}

#[test]
fn without_enforcement_what_was_not_asked_is_a_warning() {
    let failure = SpecFact::Failed(Failure { kind: FailureKind::NotAsked, ..Failure::new("too much to do") });
    let facts = Facts { specs: vec![(name("a"), known(failure, Source::Api))], ..Facts::default() };
    let decision = warned(MUTATE, &create(&json!({"securityContext": named("a")})), &facts);
    let Verdict::WouldDeny(denial) = &decision.verdict else { panic!("{decision:?}") };
    assert_eq!(denial.to_string(), "unable to retrieve the contents of cred spec a: too much to do");
}

#[test]
fn without_enforcement_a_cached_spec_is_read_live_too() {
    let unusable = |spec: &str| (name(spec), known(SpecFact::Unusable, Source::Cache));
    let missing = (name("a"), known(SpecFact::Missing, Source::Api));
    let facts = Facts { specs: vec![missing, unusable("b")], ..Facts::default() };
    // Once, however many slots name it.
    let containers = ["a", "b", "b"].map(|spec| json!({"securityContext": named(spec)}));
    let pod = create(&json!({"containers": containers}));
    let asked = stepped(enforcing(Enforcement::Warn), MUTATE, &pod, &facts).0;
    assert_eq!(asked, [contents_of("a"), contents_of("b"), again("b")]);
}

#[test]
fn without_enforcement_the_patch_holds_what_fits() {
    let large = contents(&json!({"a": "x".repeat(MAX_PATCH_BYTES)}));
    let facts = Facts {
        specs: vec![(name("large"), known(large, Source::Api)), (name("a"), known(contents(&json!({})), Source::Api))],
        ..Facts::default()
    };
    let containers =
        json!([{"name": "c", "securityContext": named("large")}, {"name": "d", "securityContext": named("a")}]);
    let decision = warned(MUTATE, &create(&json!({"containers": containers})), &facts);
    let (Verdict::WouldDeny(Denial::PatchTooLarge), Some(patch)) = (&decision.verdict, &decision.patch) else {
        panic!("{decision:?}")
    };
    let place = "/spec/containers/1/securityContext/windowsOptions/gmsaCredentialSpec";
    let operations = json!([{"op": "add", "path": place, "value": "{}"}]);
    assert_eq!(serde_json::from_slice::<Value>(patch).unwrap(), operations);
}

#[test]
fn without_enforcement_every_denial_names_its_slot() {
    let slots = [
        json!({"name": "misnamed", "securityContext": named("A")}),
        json!({"name": "missing", "securityContext": named("a")}),
    ];
    let pod = create(&json!({"securityContext": named("a"), "containers": slots, "initContainers": slots}));
    let missing = SpecFact::Missing;
    let facts = Facts { specs: vec![(name("a"), known(missing, Source::Api))], ..Facts::default() };
    let denials = warned(MUTATE, &pod, &facts).denials;
    let mut found: Vec<_> = denials.iter().map(|found| (found.slot.unwrap(), found.denial.reason())).collect();
    found.sort_by_key(|((kind, index), _)| (kind.field(), *index));
    let expected = [
        (SlotKind::Pod, 0, "spec-missing"),
        (SlotKind::Container, 0, "invalid-spec-name"),
        (SlotKind::Container, 1, "spec-missing"),
        (SlotKind::InitContainer, 0, "invalid-spec-name"),
        (SlotKind::InitContainer, 1, "spec-missing"),
    ];
    assert_eq!(found, expected.map(|(kind, index, reason)| ((kind, index), reason)));
}

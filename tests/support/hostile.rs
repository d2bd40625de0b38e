//! What must hold for any bytes at all. The property tests and the fuzz targets call these with theirs; whatever does not
//! hold panics.

use std::sync::Arc;

use gmsa_core::{
    admission::{
        Enforcement, Facts, Failure, MAX_PATCH_BYTES, MAX_SPECS_PER_POD, Plan, Review, Source, SpecFact, UseFact,
        Webhook,
    },
    credspec::{Contents, compare::compare},
};
use serde_json::{Map, Value};

/// A request body: whatever it is, and whatever is found out for it, there is one whole answer, within its bounds.
pub fn review(body: &[u8]) {
    let seed = body.len();
    let enforcement = if seed.is_multiple_of(2) { Enforcement::Enforce } else { Enforcement::Warn };
    for webhook in [
        Webhook::Mutate { random_hostname: true },
        Webhook::Validate,
        Webhook::ValidateWorkload,
        Webhook::ValidateCredspec { strict: true },
    ] {
        let Ok(review) = Review::parse(body, webhook) else { continue };
        let plan = Plan::new(webhook, &review).with_enforcement(enforcement);
        let needs = plan.needs();
        assert!(needs.specs.len() <= MAX_SPECS_PER_POD && needs.uses.len() <= MAX_SPECS_PER_POD);
        let specs = needs.specs.iter().enumerate();
        let uses = needs.uses.iter().enumerate();
        let facts = Facts {
            specs: specs.map(|(at, name)| (name.clone(), spec_fact(seed + at), Source::Cache)).collect(),
            uses: uses.map(|(at, name)| (name.clone(), use_fact(seed / 4 + at), Source::Api)).collect(),
            hostname: needs.hostname.then(|| "host".to_owned()),
        };
        let decision = plan.decide(&facts);
        if let Some(patch) = decision.verdict.patch() {
            assert!(patch.as_bytes().len() <= MAX_PATCH_BYTES);
            let operations: Vec<Value> = serde_json::from_slice(patch.as_bytes()).unwrap();
            assert!(!operations.is_empty());
        }
        let answer: Value = serde_json::from_slice(&review.answer(&decision)).unwrap();
        assert_eq!(answer["response"]["uid"], review.uid);
        assert!(decision.warnings.len() <= 40, "{decision:?}");
        assert_eq!(answer["response"]["allowed"], decision.is_allowed());
        // No facts, no approval of a pod that needs some.
        let judges_pods = matches!(webhook, Webhook::Mutate { .. } | Webhook::Validate);
        if judges_pods && !(needs.specs.is_empty() && needs.uses.is_empty()) {
            assert!(!plan.decide(&Facts::default()).is_allowed());
        }
    }
}

fn spec_fact(choice: usize) -> SpecFact {
    match choice % 4 {
        0 => SpecFact::Missing,
        1 => SpecFact::Unusable,
        2 => SpecFact::Failed(Failure { timed_out: true, cause: "\"\n<".to_owned() }),
        _ => SpecFact::Contents(Arc::new(Contents::of(&Map::new()))),
    }
}

fn use_fact(choice: usize) -> UseFact {
    match choice % 4 {
        0 => UseFact::Denied { reason: Some("\u{1b}\"\n".to_owned()) },
        1 => UseFact::Failed(Failure { timed_out: false, cause: String::new() }),
        _ => UseFact::Allowed,
    }
}

/// Two texts: each is compared with the other's contents, and both say the same.
pub fn compared(one: &str, other: &str) {
    let contents = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok().map(|map| Contents::of(&map));
    let (one_contents, other_contents) = (contents(one), contents(other));
    if let Some(contents) = &one_contents {
        let _ = compare(other, contents);
        compare(contents.text(), contents).unwrap();
    }
    // Printed, no text holds a key twice.
    if let (Some(one), Some(other)) = (one_contents, other_contents) {
        assert_eq!(compare(one.text(), &other).is_ok(), compare(other.text(), &one).is_ok());
    }
}

/// A credential spec: its contents text is JSON of the same value, printed again it is the same text, and no character
/// in it can end a script or a line.
pub fn contents(credspec: &[u8]) {
    let Ok(map) = serde_json::from_slice::<Map<String, Value>>(credspec) else { return };
    let contents = Contents::of(&map);
    let again: Map<String, Value> = serde_json::from_str(contents.text()).unwrap();
    assert_eq!(Contents::of(&again), contents);
    assert_eq!(serde_json::from_str::<String>(contents.quoted()).unwrap(), contents.text());
    assert!(
        !contents.text().contains(|c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f'))
    );
    // White space and the order of keys are all that pretty printing changes.
    compare(&serde_json::to_string_pretty(&map).unwrap(), &contents).unwrap();
}

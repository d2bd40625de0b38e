//! Asks the code under test about a review in an imagined cluster.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::FutureExt as _;
use gmsa_core::{
    admission::{
        Decision, Enforcement, Fact, Failure, Known, Question, Review, Settings, Source, SpecFact, UseFact, Webhook,
    },
    credspec::Contents,
};
use serde_json::Value;

use super::oracle::{Outcome, World};
use crate::reviews::created;

pub const MUTATE: Webhook = Webhook::Mutate;

pub fn review(operation: &str, sub_resource: &str, object: &Value, old: &Value) -> Value {
    let mut review = created("prod", object);
    let request = review["request"].as_object_mut().unwrap();
    request
        .extend([("operation", operation), ("subResource", sub_resource)].map(|(key, text)| (key.into(), text.into())));
    request.insert("oldObject".to_owned(), old.clone());
    review
}

/// The answer to what is asked.
fn answer(world: &World, question: &Question) -> Fact {
    let spec = |name: &str| match world.specs.get(name) {
        Some(credspec) => SpecFact::Contents(Arc::new(Contents::of(credspec.as_object().unwrap()))),
        None => SpecFact::Missing,
    };
    let may_use = |name: &str| {
        if world.unknown.iter().any(|unknown| unknown == name) {
            UseFact::Failed(Failure::new("the authorizer is away"))
        } else if world.allowed.iter().any(|allowed| allowed == name) {
            UseFact::Allowed
        } else {
            UseFact::Denied { reason: None }
        }
    };
    let source = Source::Api;
    match question {
        Question::Contents(name, _) => Fact::Contents(Known { fact: spec(name.as_str()), source }),
        Question::Use(_, _, name) => Fact::Use(Known { fact: may_use(name.as_str()), source }),
    }
}

/// The `response` of the answer.
fn decided(webhook: Webhook, review: &Value, world: &World, enforcement: Enforcement) -> (Value, Decision) {
    let review = Arc::new(Review::parse(review.to_string().as_bytes(), webhook).unwrap());
    let settings = Settings { enforcement, ..Settings::default() };
    let step = Decision::begin(Arc::clone(&review), webhook, settings);
    let decision = step.answered_by(async |question| answer(world, question)).now_or_never().unwrap();
    (serde_json::from_slice::<Value>(&review.answer(&decision)).unwrap()["response"].take(), decision)
}

/// The denials that are warnings where they are not enforced, as code and reason, and the lines of the warnings.
pub fn warned(review: &Value, world: &World) -> (Vec<(u16, &'static str)>, Vec<String>) {
    let (response, decision) = decided(Webhook::Validate, review, world, Enforcement::Warn);
    assert_eq!(response["allowed"], true);
    let lines = response["warnings"].as_array().into_iter().flatten().map(|line| line.as_str().unwrap());
    let lines = lines.filter_map(|line| line.strip_prefix("GMSA, not enforced: ").map(str::to_owned)).collect();
    (decision.denials.iter().map(|found| (found.denial.code(), found.denial.reason())).collect(), lines)
}

/// The `response` of the answer, and what it says. Without enforcement the answer differs in what the contract says and in
/// nothing else.
fn ask(webhook: Webhook, review: &Value, world: &World) -> (Value, Outcome) {
    let [(mut enforced, decision), (mut warned, _)] =
        [Enforcement::Enforce, Enforcement::Warn].map(|enforcement| decided(webhook, review, world, enforcement));
    match enforced["status"]["code"].as_u64() {
        Some(403 | 404 | 417 | 422) if warned["allowed"] == true => {
            let message = enforced["status"]["message"].as_str().unwrap();
            let text: String = format!("GMSA, not enforced: {message}").chars().take(255).collect();
            assert!(warned["warnings"][0].as_str().unwrap().starts_with(&text), "{warned} {enforced}");
            let mut audit = warned["auditAnnotations"].take().as_object_mut().unwrap().clone();
            audit.retain(|key, _| key.ends_with("-decision"));
            assert!(audit.values().next().unwrap().as_str().unwrap().starts_with("would-deny: "), "{audit:?}");
        }
        // Where the pod is not denied for the first thing that it asks for, a later failure may deny it.
        Some(403 | 404 | 417 | 422) => {
            assert!(warned["status"]["code"].as_u64() >= Some(500), "{warned} {enforced}");
        }
        // Without enforcement, slots after the one whose check failed are asked about too.
        Some(500..) => {
            let audits = [&mut warned, &mut enforced].map(|response| response["auditAnnotations"].take());
            assert_eq!(audits[0]["validate-decision"], audits[1]["validate-decision"]);
            assert_eq!(warned, enforced);
        }
        _ => assert_eq!(warned, enforced),
    }
    let outcome = if enforced["allowed"] == true {
        assert!(enforced.get("status").is_none());
        Ok(())
    } else {
        let code = enforced["status"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Err((code.unwrap(), decision.reason))
    };
    (enforced, outcome)
}

pub fn validate(review: &Value, world: &World) -> Outcome {
    let (response, outcome) = ask(Webhook::Validate, review, world);
    assert!(response.get("patch").is_none());
    outcome
}

/// The patch, or nothing where the answer has none.
pub fn mutate(review: &Value, world: &World) -> Result<Option<json_patch::Patch>, (u16, &'static str)> {
    let (response, outcome) = ask(MUTATE, review, world);
    outcome?;
    Ok(response.get("patch").map(|patch| {
        assert_eq!(response["patchType"], "JSONPatch");
        serde_json::from_slice(&BASE64_STANDARD.decode(patch.as_str().unwrap()).unwrap()).unwrap()
    }))
}

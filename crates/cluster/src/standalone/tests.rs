//! The examples, decided the way `serve --standalone` decides.

use std::{fs, path::PathBuf};

use futures::FutureExt as _;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{authorizer::Authorizer, resolver::Resolver};
use gmsa_core::admission::{Decision, Fact, Question, Review, Settings, Verdict, Webhook};

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Decides a review of the examples, as the server does in standalone mode.
fn decide_example(webhook: Webhook, file: &str) -> Decision {
    let standalone = Standalone::load(&examples()).unwrap();
    let body = fs::read(examples().join(file)).unwrap();
    let review = Review::parse(&body, webhook).unwrap();
    // Files answer at once.
    let now = Instant::now();
    Decision::begin(review, webhook, Settings::default())
        .answered_by(async |question| match question {
            Question::Contents(name, freshness) => {
                Fact::Contents(standalone.specs.resolve(name, *freshness, now).now_or_never().unwrap())
            }
            Question::Use(account, verb, name) => {
                Fact::Use(standalone.rbac.may(account, *verb, name, now).now_or_never().unwrap())
            }
        })
        .now_or_never()
        .unwrap()
}

#[test]
fn the_examples_hold_one_of_each() {
    let Standalone { specs, rbac } = Standalone::load(&examples()).unwrap();
    assert_eq!(specs.names().map(ToString::to_string).collect::<Vec<_>>(), ["gmsa-webapp1"]);
    assert_eq!((rbac.role_count(), rbac.binding_count()), (1, 1));
}

#[test]
fn the_example_reviews_are_allowed_and_the_second_is_the_first_patched() {
    let mutate = decide_example(Webhook::Mutate, "review-mutate.json");
    let (Verdict::Allowed, Some(patch)) = (&mutate.verdict, &mutate.patch) else { panic!("{mutate:?}") };
    let validate: serde_json::Value =
        serde_json::from_slice(&fs::read(examples().join("review-validate.json")).unwrap()).unwrap();
    let contents = &validate["request"]["object"]["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"];
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(patch).unwrap(),
        json!([{"op": "add", "path": "/spec/securityContext/windowsOptions/gmsaCredentialSpec", "value": contents}])
    );
    let validate = decide_example(Webhook::Validate, "review-validate.json");
    assert_eq!((validate.verdict, validate.patch, validate.reason), (Verdict::Allowed, None, "authorized"));
}

#[test]
fn nothing_to_load_is_fine() {
    let empty = tempfile::tempdir().unwrap();
    let Standalone { specs, rbac } = Standalone::load(empty.path()).unwrap();
    assert_eq!((specs.names().len(), rbac.role_count(), rbac.binding_count()), (0, 0, 0));
}

#[test]
fn problems_of_both_kinds_are_reported_together() {
    let text = "apiVersion: windows.k8s.io/v1\nkind: GMSACredentialSpec\nmetadata: {name: A}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n";
    let error = Standalone::from_manifests(manifests::parse("a.yaml", text, &Bounds::SERVER)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot load the manifests: \
         a.yaml, document 1, line 3: metadata.name: expected a lower-case DNS subdomain, found \"A\"; \
         a.yaml, document 2, line 5: metadata.name: expected a string that is not empty"
    );
}

//! The decision, rule by rule of the contract. The whole answers are in tests/golden.

mod bounds;
mod denials;
mod enforcement;
mod questions;
mod updates;

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::{pod::SlotKind, *};
use crate::credspec::{Contents, SpecName, Verb};

const MUTATE: Webhook = Webhook::Mutate;

fn name(text: &str) -> SpecName {
    SpecName::parse(text).unwrap()
}

fn contents(value: &Value) -> SpecFact {
    SpecFact::Contents(Arc::new(Contents::of(value.as_object().unwrap())))
}

/// A review as JSON; `decided` parses it and decides with the facts given.
pub(super) fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "prod",
            "operation": operation,
            "object": object,
            "oldObject": old,
        },
    })
}

fn create(spec: &Value) -> Value {
    review("CREATE", &json!({"metadata": {"name": "web"}, "spec": spec}), &Value::Null)
}

/// Audit annotations.
fn annotated<const N: usize>(annotations: [(&str, &str); N]) -> Vec<(String, String)> {
    annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// Answers from `facts` what is asked; gives also what was asked, in order. What is not among the facts could not be found out.
fn stepped(settings: Settings, webhook: Webhook, review: &Value, facts: &Facts) -> (Vec<Question>, Decision) {
    let review = Review::parse(review.to_string().as_bytes(), webhook).unwrap();
    let mut asked = Vec::new();
    let unknown = || Failure::new("it was not looked up");
    let decision = Decision::begin(review, webhook, settings)
        .answered_by(async |question| {
            asked.push(question.clone());
            match question {
                Question::Contents(spec, _) => {
                    Fact::Contents(facts.spec(spec).cloned().unwrap_or_else(|| known(unknown().into(), Source::Api)))
                }
                Question::Use(_, verb, spec) => Fact::Use(
                    facts.use_of(*verb, spec).cloned().unwrap_or_else(|| known(unknown().into(), Source::Api)),
                ),
            }
        })
        .now_or_never()
        .unwrap();
    (asked, decision)
}

fn enforcing(enforcement: Enforcement) -> Settings {
    Settings { enforcement, ..Settings::default() }
}

fn decided_with(enforcement: Enforcement, webhook: Webhook, review: &Value, facts: &Facts) -> Decision {
    stepped(enforcing(enforcement), webhook, review, facts).1
}

fn decided(webhook: Webhook, review: &Value, facts: &Facts) -> Decision {
    decided_with(Enforcement::Enforce, webhook, review, facts)
}

/// What is asked where every credential spec is there and may be used.
fn asked(webhook: Webhook, review: &Value) -> Vec<Question> {
    let names: Vec<String> = review.to_string().split('"').map(str::to_owned).collect();
    let names: Vec<SpecName> = names.iter().filter_map(|name| SpecName::parse(name)).collect();
    let all = Facts {
        specs: names.iter().map(|name| (name.clone(), known(contents(&json!({})), Source::Api))).collect(),
        uses: names.iter().map(|name| ((Verb::Use, name.clone()), known(UseFact::Allowed, Source::Api))).collect(),
    };
    stepped(enforcing(Enforcement::Enforce), webhook, review, &all).0
}

fn contents_of(text: &str) -> Question {
    Question::Contents(name(text), Freshness::Any)
}

fn again(text: &str) -> Question {
    Question::Contents(name(text), Freshness::Live)
}

/// Whether a pod without a service account of its own may use a credential spec.
fn use_of(text: &str) -> Question {
    Question::Use(ServiceAccount { namespace: Arc::from("prod"), name: Arc::from("default") }, Verb::Use, name(text))
}

fn known<F>(fact: F, source: Source) -> Known<F> {
    Known { fact, source }
}

fn denial(webhook: Webhook, review: &Value, facts: &Facts) -> (u16, String) {
    match decided(webhook, review, facts).verdict {
        Verdict::Denied(denial) => (denial.code(), denial.to_string()),
        allowed => panic!("{allowed:?}"),
    }
}

fn options(name: &str, contents: &str) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": name, "gmsaCredentialSpec": contents}})
}

fn named(name: &str) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": name}})
}

/// Facts about one credential spec whose contents are `{"a":1}`.
fn facts(spec: &str, may_use: UseFact, source: Source) -> Facts {
    Facts {
        specs: vec![(name(spec), known(contents(&json!({"a": 1})), source))],
        uses: vec![((Verb::Use, name(spec)), known(may_use, source))],
    }
}

#[test]
fn a_host_name_is_given_to_a_new_pod_that_has_none() {
    let facts = facts("p", UseFact::Allowed, Source::Api);
    let with = |hostname: Option<&str>| Settings { hostname: hostname.map(str::to_owned), ..Settings::default() };
    let decided = |review: &Value, hostname| stepped(with(hostname), MUTATE, review, &facts).1;
    let unnamed = json!({"metadata": {"name": "web"}, "spec": {"securityContext": named("p")}});
    let mut of_its_own = unnamed.clone();
    of_its_own["spec"]["hostname"] = json!("own");
    let mut expanded = unnamed.clone();
    expanded["spec"]["securityContext"] = options("p", "{}");
    let mut debugged = unnamed.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "e", "securityContext": named("p")}]);
    let mut update = review("UPDATE", &debugged, &unnamed);
    update["request"]["subResource"] = json!("ephemeralcontainers");
    let contents = |place: &str| {
        let path = format!("/spec{place}/securityContext/windowsOptions/gmsaCredentialSpec");
        json!({"op": "add", "path": path, "value": "{\"a\":1}"})
    };
    let hostname = json!({"op": "add", "path": "/spec/hostname", "value": "h"});
    let create = |pod: &Value| review("CREATE", pod, &Value::Null);
    for (review, given, operations) in [
        (create(&unnamed), Some("h"), json!([contents(""), hostname])),
        (create(&of_its_own), Some("h"), json!([contents("")])),
        (create(&expanded), Some("h"), json!([hostname])),
        (create(&unnamed), None, json!([contents("")])),
        (update, Some("h"), json!([contents("/ephemeralContainers/0")])),
    ] {
        let decision = decided(&review, given);
        let (Verdict::Allowed, Some(patch)) = (&decision.verdict, &decision.patch) else { panic!("{decision:?}") };
        assert_eq!(serde_json::from_slice::<Value>(patch).unwrap(), operations, "{review}");
    }
    assert_eq!(decided(&create(&json!({"metadata": {"name": "web"}})), Some("h")).patch, None);
}

#[test]
fn an_access_review_names_the_service_account_and_its_two_groups() {
    let account = ServiceAccount { namespace: Arc::from("prod"), name: Arc::from("sa") };
    assert_eq!(account.user(), "system:serviceaccount:prod:sa");
    assert_eq!(account.groups(), ["system:serviceaccounts", "system:serviceaccounts:prod"]);
}

#[test]
fn nothing_is_asked_where_the_review_says_enough() {
    let web = json!({"metadata": {"name": "web"}, "spec": {"securityContext": options("a", "{}")}});
    let mut deployment = create(&json!({"securityContext": named("a")}));
    deployment["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let many: Vec<_> = (0..25).map(|n| json!({"name": "c", "securityContext": named(&format!("s{n}"))})).collect();
    for review in [
        create(&json!({})),
        create(&json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "{}"}}})),
        create(&json!({"securityContext": named("../../version")})),
        create(&json!({"containers": many})),
        review("UPDATE", &web, &web),
        review("DELETE", &Value::Null, &web),
        review("CREATE", &Value::Null, &Value::Null),
        review("UPDATE", &web, &Value::Null),
        deployment,
    ] {
        for webhook in [MUTATE, Webhook::Validate] {
            assert_eq!(asked(webhook, &review), [], "{webhook:?} {review}");
        }
    }
    // The mutating webhook leaves pods for Linux and slots with contents alone.
    assert_eq!(asked(MUTATE, &create(&json!({"os": {"name": "linux"}, "securityContext": named("a")}))), []);
    assert_eq!(asked(MUTATE, &create(&json!({"securityContext": options("a", "{}")}))), []);
}

#[test]
fn a_name_from_a_pod_is_escaped_and_cut_in_messages() {
    let long = "é".repeat(300);
    for (hostile, quoted) in [
        ("", r#""""#.to_owned()),
        ("x?watch=true", r#""x?watch=true""#.to_owned()),
        ("../../version", r#""../../version""#.to_owned()),
        ("a\n\u{1b}[31m\"", r#""a\n\u{1b}[31m\"""#.to_owned()),
        (&long, format!("\"{}\"…", "é".repeat(253))),
    ] {
        let pod = create(&json!({"containers": [{"name": "c", "securityContext": options(hostile, "{}")}]}));
        let message = format!("GMSA cred spec name {quoted} of container \"c\" is not a lower-case DNS subdomain");
        for webhook in [MUTATE, Webhook::Validate] {
            assert_eq!(denial(webhook, &pod, &Facts::default()), (422, message.clone()));
        }
    }
}

#[test]
fn only_pods_and_their_creation_and_update_are_judged() {
    let mut other = create(&json!({}));
    other["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let web = json!({"metadata": {"name": "web"}});
    for (review, message) in [
        (other, "expected a Pod object, got a Deployment.apps"),
        (review("DELETE", &Value::Null, &web), "expected a CREATE or UPDATE operation, got DELETE"),
        (review("CONNECT", &web, &Value::Null), "expected a CREATE or UPDATE operation, got CONNECT"),
        (review("CREATE", &Value::Null, &web), "the AdmissionReview of a Pod CREATE has no request.object"),
        (review("UPDATE", &Value::Null, &web), "the AdmissionReview of a Pod UPDATE has no request.object"),
    ] {
        for webhook in [MUTATE, Webhook::Validate] {
            assert_eq!(denial(webhook, &review, &Facts::default()), (400, message.to_owned()));
        }
    }
    let no_old = "the AdmissionReview of a Pod UPDATE has no request.oldObject".to_owned();
    let mut update = review("UPDATE", &web, &Value::Null);
    assert_eq!(denial(Webhook::Validate, &update, &Facts::default()), (400, no_old.clone()));
    update["request"]["subResource"] = json!("ephemeralcontainers");
    assert_eq!(denial(MUTATE, &update, &Facts::default()), (400, no_old));
}

#[test]
fn why_a_pod_is_left_as_it_is_is_said() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"securityContext": named("a")}});
    let mut linux = create(&pod["spec"]);
    linux["request"]["object"]["spec"]["os"] = json!({"name": "linux"});
    for (review, reason) in [
        (linux, "linux"),
        (review("UPDATE", &pod, &pod), "nothing-to-mutate"),
        (create(&json!({})), "no-gmsa"),
        (create(&json!({"securityContext": options("a", "{}")})), "already-expanded"),
    ] {
        let decision = decided(MUTATE, &review, &Facts::default());
        assert_eq!((decision.is_allowed(), decision.reason), (true, reason));
    }
}

#[test]
fn an_invalid_service_account_is_refused_before_it_is_asked_about() {
    for namespace in ["", "Prod", "a.b", "a/b", "a:b"] {
        let mut review = create(&json!({"securityContext": options("a", "{}")}));
        review["request"]["namespace"] = json!(namespace);
        let message = format!("the AdmissionReview has no valid request.namespace: {namespace:?} is not a DNS label");
        assert_eq!(denial(Webhook::Validate, &review, &Facts::default()), (400, message));
        assert_eq!(asked(Webhook::Validate, &review), []);
    }
    for account in ["Default", "a/b", "x:y", "../x"] {
        let review = create(&json!({"serviceAccountName": account, "securityContext": options("a", "{}")}));
        let message = format!("service account name {account:?} is not a lower-case DNS subdomain");
        assert_eq!(denial(Webhook::Validate, &review, &Facts::default()), (422, message));
        assert_eq!(asked(Webhook::Validate, &review), []);
    }
}

#[test]
fn a_cached_spec_is_read_live_before_its_contents_deny() {
    let pod = |contents: &str| create(&json!({"securityContext": options("a", contents)}));
    let asked =
        |enforcement, webhook, review: &Value, facts: &Facts| stepped(enforcing(enforcement), webhook, review, facts).0;
    let validate = |review: &Value, facts: &Facts| asked(Enforcement::Enforce, Webhook::Validate, review, facts);
    let cached = facts("a", UseFact::Allowed, Source::Cache);
    let once = [contents_of("a"), use_of("a")];
    assert_eq!(validate(&pod("{\"a\":2}"), &cached), [contents_of("a"), use_of("a"), again("a")]);
    assert_eq!(validate(&pod("{\"a\":1}"), &cached), once);
    assert_eq!(validate(&pod("{\"a\":2}"), &facts("a", UseFact::Allowed, Source::Api)), once);
    assert_eq!(validate(&pod("{\"a\":2}"), &facts("a", UseFact::Denied { reason: None }, Source::Cache)), once);

    // No other denial after one that stands matters where the first one decides.
    let two = create(&json!({"containers": [
        {"name": "c", "securityContext": options("b", "{}")}, {"name": "d", "securityContext": options("a", "{}")},
    ]}));
    let mut both = cached.clone();
    both.specs.push((name("b"), known(contents(&json!({})), Source::Cache)));
    both.uses.push(((Verb::Use, name("b")), known(UseFact::Denied { reason: None }, Source::Api)));
    assert_eq!(validate(&two, &both), [contents_of("b"), use_of("b")]);
    let all = [contents_of("b"), use_of("b"), contents_of("a"), use_of("a"), again("a")];
    assert_eq!(asked(Enforcement::Warn, Webhook::Validate, &two, &both), all);

    // A denial that stands when its contents are read live ends the reads.
    both.uses[1].1.fact = UseFact::Allowed;
    let first = [contents_of("b"), use_of("b"), contents_of("a"), use_of("a"), again("b")];
    let others = create(&json!({"containers": [
        {"name": "c", "securityContext": options("b", "[]")}, {"name": "d", "securityContext": options("a", "{}")},
    ]}));
    assert_eq!(validate(&others, &both), first);

    let unusable = |source| Facts { specs: vec![(name("a"), known(SpecFact::Unusable, source))], ..Facts::default() };
    let unexpanded = create(&json!({"securityContext": named("a")}));
    let mutate = |facts: &Facts| asked(Enforcement::Enforce, MUTATE, &unexpanded, facts);
    assert_eq!(mutate(&unusable(Source::Cache)), [contents_of("a"), again("a")]);
    assert_eq!(mutate(&unusable(Source::Joined)), [contents_of("a")]);
}

#[test]
fn audit_annotations_say_how_it_was_decided() {
    let second = json!([{"name": "c", "securityContext": options("b", "{}")}]);
    let pod = create(&json!({"securityContext": options("a", "{\"a\":1}"), "containers": second}));
    let mut all = facts("a", UseFact::Allowed, Source::Cache);
    all.uses[0].1.source = Source::Remembered;
    all.specs.push((name("b"), known(contents(&json!({})), Source::Api)));
    all.uses.push(((Verb::Use, name("b")), known(UseFact::Allowed, Source::Joined)));
    let decision = decided(Webhook::Validate, &pod, &all);
    assert_eq!(decision.reason, "authorized");
    assert_eq!(decision.specs, ["a", "b"].map(name));
    let annotations = [
        ("validate-credential-specs", "a (use: remembered, contents: cache), b (use: joined, contents: api)"),
        ("validate-decision", "authorized"),
    ];
    assert_eq!(decision.audit, annotated(annotations));

    let facts = Facts { specs: vec![(name("a"), known(SpecFact::Missing, Source::Files))], ..Facts::default() };
    let decision = decided(MUTATE, &create(&json!({"securityContext": named("a")})), &facts);
    assert_eq!(
        decision.audit,
        annotated([("mutate-credential-specs", "a (contents: files)"), ("mutate-decision", "spec-missing")])
    );
    assert_eq!(decided(MUTATE, &create(&json!({})), &Facts::default()).audit, []);
}

#[test]
fn slots_are_walked_in_order_and_named() {
    let body = create(&json!({
        "securityContext": options("p", ""),
        "ephemeralContainers": [{"name": "e"}],
        "initContainers": [{"name": "i", "securityContext": {}}],
        "containers": [{"name": "c1", "securityContext": {"windowsOptions": {}}}, {"securityContext": named("n")}],
    }))
    .to_string();
    let review = Review::parse(body.as_bytes(), MUTATE).unwrap();
    let slots: Vec<_> =
        review.object.as_ref().unwrap().slots().map(|s| (s.kind, s.index, s.owner, s.name, s.contents)).collect();
    assert_eq!(
        slots,
        [
            (SlotKind::Pod, 0, "web", Some("p"), Some("")),
            (SlotKind::Container, 0, "c1", None, None),
            (SlotKind::Container, 1, "", Some("n"), None),
            (SlotKind::InitContainer, 0, "i", None, None),
            (SlotKind::EphemeralContainer, 0, "e", None, None),
        ]
    );
}

#[test]
fn a_pod_without_a_name_is_called_by_its_generate_name() {
    for (metadata, called) in [
        (json!({"name": "web", "generateName": "w-"}), "web"),
        (json!({"name": "", "generateName": "w-"}), "w-"),
        (json!({"generateName": "w-"}), "w-"),
        (json!({}), ""),
    ] {
        let mut review = create(&json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": ""}}}));
        review["request"]["object"]["metadata"] = metadata;
        let end = "has a GMSA cred spec set, but does not define the name of the corresponding resource";
        assert_eq!(denial(Webhook::Validate, &review, &Facts::default()), (422, format!("pod {called:?} {end}")));
    }
}

//! Writing answers.

use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    admission::{Failure, FailureKind, Settings, Step, Webhook},
    credspec::SpecName,
};

fn create(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u1", "kind": {"kind": "Pod"}, "namespace": "prod", "operation": "CREATE", "object": object},
    })
}

fn parse(review: &Value) -> Review {
    Review::parse(review.to_string().as_bytes(), Webhook::Validate).unwrap()
}

fn decision(verdict: Verdict) -> Decision {
    Decision {
        verdict,
        patch: None,
        denials: Vec::new(),
        reason: "r",
        specs: Vec::new(),
        warnings: Vec::new(),
        audit: Vec::new(),
    }
}

fn answer_to(api_version: &str, decision: &Decision) -> String {
    let mut review = create(&json!({}));
    review["apiVersion"] = json!(api_version);
    String::from_utf8(parse(&review).answer(decision)).unwrap()
}

#[test]
fn an_answer_speaks_the_version_of_the_request_and_gives_its_uid_back() {
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        assert_eq!(
            answer_to(version, &decision(Verdict::Allowed)),
            format!(
                r#"{{"apiVersion":"{version}","kind":"AdmissionReview","response":{{"uid":"u1","allowed":true}}}}"#
            )
        );
    }
}

#[test]
fn an_answer_escapes_the_uid() {
    let mut review = create(&json!({}));
    review["request"]["uid"] = json!("\"\n\u{1}</é");
    let answer = parse(&review).answer(&decision(Verdict::Allowed));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["uid"], "\"\n\u{1}</é");
}

#[test]
fn an_allowed_answer_carries_patch_warnings_and_annotations() {
    let options = json!({"gmsaCredentialSpecName": "web", "gmsaCredentialSpec": "{}"});
    let review = Arc::new(parse(&create(&json!({"spec": {"securityContext": {"windowsOptions": options}}}))));
    let settings = Settings { hostname: Some("h".to_owned()), ..Settings::default() };
    let Step::Done(decided) = Decision::begin(Arc::clone(&review), Webhook::Mutate, settings) else {
        panic!("nothing is asked")
    };
    let decision = Decision {
        warnings: vec!["w1".to_owned(), "w2".to_owned()],
        audit: [("mutate-credential-specs", "web"), ("mutate-decision", "expanded")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
        ..decided
    };
    let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/spec/hostname","value":"h"}]"#);
    let start =
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u1","allowed":true,"#;
    let annotations = r#""auditAnnotations":{"mutate-credential-specs":"web","mutate-decision":"expanded"},"#;
    assert_eq!(
        answer_to("admission.k8s.io/v1", &decision),
        format!(r#"{start}{annotations}"warnings":["w1","w2"],"patchType":"JSONPatch","patch":"{patch}"}}}}"#)
    );
}

#[test]
fn a_denied_answer_carries_a_status_and_a_reason_where_one_fits_the_code() {
    let spec = SpecName::parse("web").unwrap();
    assert_eq!(
        answer_to("admission.k8s.io/v1", &decision(Verdict::Denied(Denial::SpecMissing(spec.clone())))),
        concat!(
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u1","allowed":false,"#,
            r#""status":{"status":"Failure","message":"cred spec web does not exist","reason":"NotFound","code":404}}}"#
        )
    );
    let failure = Failure { kind: FailureKind::TimedOut, ..Failure::new("no answer within 9s") };
    assert_eq!(
        answer_to("admission.k8s.io/v1", &decision(Verdict::Denied(Denial::SpecUnreadable { spec, failure }))),
        concat!(
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u1","allowed":false,"#,
            r#""status":{"status":"Failure","#,
            r#""message":"unable to retrieve the contents of cred spec web: no answer within 9s","code":504}}}"#
        )
    );
}

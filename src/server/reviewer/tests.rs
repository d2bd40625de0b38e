//! What a review can make of its log line.

use gmsa_core::admission::{Denial, Failure};
use serde_json::json;

use super::*;
use crate::telemetry::{
    LogFormat,
    log::{LONGEST, tests::written},
};

/// A decision about as many credential specs as a pod may name, each with the longest name, and a cause of any length.
fn longest(text: &str) -> Decision {
    let specs: Vec<_> = (0..24).map(|n| SpecName::parse(&format!("{n:02}{}", "x".repeat(251))).unwrap()).collect();
    let failure = Failure::new(text);
    let denial = Denial::SpecUnreadable { spec: specs[0].clone(), failure };
    let reason = denial.reason();
    let verdict = Verdict::Denied(denial);
    Decision { verdict, patch: None, denials: Vec::new(), reason, specs, warnings: Vec::new(), audit: Vec::new() }
}

#[test]
fn the_line_of_a_review_is_bounded_and_whole() {
    for character in ["x", "\"", "\0", "\u{7f}", "\u{301}", "\u{10ffff}", "é", "日"] {
        let text = character.repeat(2048);
        let mut uid = text.clone();
        uid.truncate(128 - 128 % character.len());
        let request = json!({
            "uid": uid, "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": text,
            "operation": "CREATE", "object": {"metadata": {"name": text}, "spec": {}},
        });
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let review = Review::parse(review.to_string().as_bytes(), Webhook::Mutate).unwrap();
        let decision = longest(&text);
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = written(format, || log(Webhook::Mutate, &review, &decision, Duration::MAX));
            assert!(line.len() <= LONGEST, "{} bytes: {line}", line.len());
            let last = line.contains("duration") && !line.contains("a longer line was cut");
            assert!(last && line.contains("unable to retrieve the contents of cred spec 00x"), "{line}");
        }
    }
}

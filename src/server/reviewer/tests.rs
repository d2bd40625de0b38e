//! What is asked for a review and in which order, and what it can make of its log line.

use std::sync::Mutex;

use futures::future::{BoxFuture, FutureExt as _, ready};
use gmsa_core::{admission::Denial, credspec::Contents};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    server::threads::RUNS,
    telemetry::{
        LogFormat,
        log::{LONGEST, tests::written},
    },
};

/// A cache that holds `{"old":1}` for every credential spec, in front of an API server that holds other contents; it writes down what
/// it is asked.
struct Behind {
    live: SpecFact,
    asked: Mutex<Vec<(String, Freshness)>>,
}

fn contents(of: &Value) -> SpecFact {
    let credspec: Map<String, Value> = of.as_object().unwrap().clone();
    SpecFact::Contents(Arc::new(Contents::of(&credspec)))
}

impl Resolver for Behind {
    fn resolve<'a>(&'a self, name: &'a SpecName, freshness: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        self.asked.lock().unwrap().push((name.to_string(), freshness));
        let known = match freshness {
            Freshness::Any => Known { fact: contents(&json!({"old": 1})), source: Source::Cache },
            Freshness::Live => Known { fact: self.live.clone(), source: Source::Api },
        };
        ready(known).boxed()
    }
}

/// An authorizer that allows everything.
struct Everybody;

impl Authorizer for Everybody {
    fn may_use<'a>(&'a self, _: &'a Subject, _: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
        ready(Known { fact: UseFact::Allowed, source: Source::Api }).boxed()
    }
}

/// How often it is decided about a pod with two containers that carry these contents of two credential specs, the reason of the last
/// decision, and what was asked.
async fn validated(
    carried: &str,
    live: SpecFact,
    enforcement: Enforcement,
) -> (usize, &'static str, Vec<(String, Freshness)>) {
    let behind = Arc::new(Behind { live, asked: Mutex::default() });
    let sources = Sources { resolver: Arc::clone(&behind) as _, authorizer: Arc::new(Everybody) };
    let reviewer = Reviewer {
        for_decisions: sources.clone(),
        for_advice: sources,
        random_hostname: false,
        strict_credential_specs: false,
        enforcement,
        warn_namespaces: Arc::default(),
        metrics: Metrics::new().0,
    };
    let container = |spec: &str| {
        let options = json!({"gmsaCredentialSpecName": spec, "gmsaCredentialSpec": carried});
        json!({"name": spec, "securityContext": {"windowsOptions": options}})
    };
    let pod = json!({"spec": {"containers": [container("a"), container("b")]}});
    let review = Arc::new(Review::of_pod("shop", &pod).unwrap());
    let (now, soon) = (Instant::now(), Instant::now() + Duration::from_secs(60));
    RUNS.set(0);
    let (decision, _) = reviewer.decide(Webhook::Validate, &review, &Thread::Serving, now, soon).await.unwrap();
    let asked = behind.asked.lock().unwrap().clone();
    (RUNS.get(), decision.reason, asked)
}

#[tokio::test]
async fn a_review_is_decided_once_and_what_a_cache_denies_is_read_and_decided_once_more() {
    let (old, new) = (contents(&json!({"old": 1})), contents(&json!({"new": 1})));
    let any = ["a", "b"].map(|name| (name.to_owned(), Freshness::Any));
    let live = ["a", "b"].map(|name| (name.to_owned(), Freshness::Live));
    let both = [any.clone(), live.clone()].concat();
    let first = [&any[..], &live[..1]].concat();
    let enforce = Enforcement::Enforce;
    assert_eq!(validated(r#"{"old":1}"#, new.clone(), enforce).await, (1, "authorized", any.to_vec()));
    // Both credential specs have changed: one more decision is enough for both.
    assert_eq!(validated(r#"{"new":1}"#, new, enforce).await, (2, "authorized", both.clone()));
    // The first denial stands, so nothing is asked after it.
    assert_eq!(validated(r#"{"new":1}"#, old.clone(), enforce).await, (2, "contents-differ", first));
    assert_eq!(validated(r#"{"new":1}"#, old, Enforcement::Warn).await, (2, "contents-differ", both));
}

/// A decision about as many credential specs as a pod may name, each with the longest name, and a cause of any length.
fn longest(text: &str) -> Decision {
    let specs: Vec<_> = (0..24).map(|n| SpecName::parse(&format!("{n:02}{}", "x".repeat(251))).unwrap()).collect();
    let failure = Failure::new(text);
    let denial = Denial::SpecUnreadable { spec: specs[0].clone(), failure };
    let reason = denial.reason();
    let verdict = Verdict::Denied(denial);
    Decision {
        verdict,
        patch: None,
        denials: Vec::new(),
        reason,
        specs,
        warnings: Vec::new(),
        audit: Vec::new(),
        unconfirmed: Vec::new(),
    }
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

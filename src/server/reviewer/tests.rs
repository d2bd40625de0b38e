//! What is asked for a review and in which order, and what it can make of its log line.

use std::{
    io::{self, Write},
    mem,
    sync::Mutex,
};

use futures::future::{BoxFuture, FutureExt as _, ready};
use gmsa_cluster::{
    authorizer::Authorization,
    resolver::{Freshness, Resolved},
};
use gmsa_core::{
    admission::{Denial, ServiceAccount},
    credspec::{Contents, Verb},
};
use gmsa_edge::telemetry::{self, LONGEST, LogFormat};
use serde_json::{Map, Value, json};
use tracing::dispatcher::{self, Dispatch};
use tracing_subscriber::{layer::SubscriberExt as _, registry};

use super::*;

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
    fn may<'a>(&'a self, _: &'a ServiceAccount, _: Verb, _: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
        ready(Known { fact: UseFact::Allowed, source: Source::Api }).boxed()
    }
}

/// The decision about a pod with two containers that carry these contents of two credential specs, and what was asked.
async fn validated(carried: &str, live: SpecFact, enforcement: Enforcement) -> (String, Vec<(String, Freshness)>) {
    let behind = Arc::new(Behind { live, asked: Mutex::default() });
    let sources = LookUpSources { resolver: Arc::clone(&behind) as _, authorizer: Arc::new(Everybody) };
    let reviewer = Reviewer {
        for_decisions: sources.clone(),
        for_advice: sources,
        random_hostname: false,
        strict_credential_specs: false,
        enforcement,
        warn_namespaces: Arc::default(),
        tickets: watch::channel(TicketSettings::Off).1,
        metrics: Metrics::new().1,
    };
    let container = |spec: &str| {
        let options = json!({"gmsaCredentialSpecName": spec, "gmsaCredentialSpec": carried});
        json!({"name": spec, "securityContext": {"windowsOptions": options}})
    };
    let pod = json!({"spec": {"containers": [container("a"), container("b")]}});
    let review = Arc::new(Review::of_pod("shop", &pod).unwrap());
    let started = Instant::now();
    let deadline = started + Duration::from_secs(60);
    let answer = reviewer.decide(Webhook::Validate, &review, &Thread::Serving, started, deadline).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let asked = behind.asked.lock().unwrap().clone();
    (answer["response"]["auditAnnotations"]["validate-decision"].as_str().unwrap().to_owned(), asked)
}

#[tokio::test]
async fn what_a_cache_denies_is_read_from_the_api_server_first() {
    let (old, new) = (contents(&json!({"old": 1})), contents(&json!({"new": 1})));
    let any = ["a", "b"].map(|name| (name.to_owned(), Freshness::Any));
    let live = ["a", "b"].map(|name| (name.to_owned(), Freshness::Live));
    let both = [any.clone(), live.clone()].concat();
    let first = [&any[..], &live[..1]].concat();
    let enforce = Enforcement::Enforce;
    assert_eq!(validated(r#"{"old":1}"#, new.clone(), enforce).await, ("authorized".to_owned(), any.to_vec()));
    // Both credential specs have changed.
    assert_eq!(validated(r#"{"new":1}"#, new, enforce).await, ("authorized".to_owned(), both.clone()));
    // The first denial stands, so nothing is asked after it.
    assert_eq!(validated(r#"{"new":1}"#, old.clone(), enforce).await, ("contents-differ".to_owned(), first));
    assert_eq!(
        validated(r#"{"new":1}"#, old, Enforcement::Warn).await,
        ("would-deny: contents-differ".to_owned(), both)
    );
}

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
            "operation": "CREATE", "object": {"metadata": {"name": text}, "spec": {"serviceAccountName": text}},
        });
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let review = Review::parse(review.to_string().as_bytes(), Webhook::Mutate).unwrap();
        let decision = longest(&text);
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = written(format, || log(Webhook::Mutate, &review, &decision, Duration::MAX));
            assert!(line.len() <= LONGEST, "{} bytes: {line}", line.len());
            let last = line.contains("duration_seconds") && !line.contains("a longer line was cut");
            assert!(last && line.contains("unable to retrieve the contents of cred spec 00x"), "{line}");
        }
    }
}

/// A log in memory.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is written while `events` runs.
fn written(format: LogFormat, events: impl FnOnce()) -> String {
    let log = Written::default();
    let (layer, guard, _) = telemetry::layer(format, log.clone());
    dispatcher::with_default(&Dispatch::from(registry().with(layer)), events);
    drop(guard);
    String::from_utf8(mem::take(&mut log.0.lock().unwrap())).unwrap()
}

/// What is logged of a review of the pod `web`, which runs as `robot` and is decided with the credential spec `a`, `{"a":1}`, in the cluster.
fn logged(webhook: Webhook, request: &Value, may_use: &UseFact, enforcement: Enforcement) -> Value {
    let mut whole = json!({"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "shop"});
    whole.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole});
    let review = Arc::new(Review::parse(review.to_string().as_bytes(), webhook).unwrap());
    let settings = Settings { enforcement, ..Settings::default() };
    let decision = Decision::begin(Arc::clone(&review), webhook, settings)
        .answered_by(async |question| match question {
            Question::Contents(..) => Fact::Contents(Known { fact: contents(&json!({"a": 1})), source: Source::Api }),
            Question::Use(..) => Fact::Use(Known { fact: may_use.clone(), source: Source::Api }),
        })
        .now_or_never()
        .unwrap();
    let line = written(LogFormat::Json, || log(webhook, &review, &decision, Duration::from_micros(1_500)));
    let mut line: Value = serde_json::from_str(&line).unwrap();
    let line = line.as_object_mut().unwrap();
    for field in ["timestamp", "target", "path", "uid", "namespace", "pod", "operation"] {
        line.remove(field);
    }
    Value::Object(line.clone())
}

/// The log is an audit: it says once, at info, which service account got which credential spec, and denials as ever.
#[test]
fn each_pod_that_validate_admits_with_gmsa_is_one_line_at_info() {
    let pod = |options: Value| {
        let spec = json!({"serviceAccountName": "robot", "securityContext": {"windowsOptions": options}});
        json!({"metadata": {"name": "web"}, "spec": spec})
    };
    let create = |options: Value| json!({"operation": "CREATE", "object": pod(options)});
    let named = json!({"gmsaCredentialSpecName": "a"});
    let full = json!({"gmsaCredentialSpecName": "a", "gmsaCredentialSpec": "{\"a\":1}"});
    let mut dry_run = create(full.clone());
    dry_run["dryRun"] = json!(true);
    let update = json!({"operation": "UPDATE", "object": pod(full.clone()), "oldObject": pod(full.clone())});
    let (yes, no) = (UseFact::Allowed, UseFact::Denied { reason: None });
    let denial = "service account \"robot\" is not authorized to `use` GMSA cred spec \"a\"";
    let line = |level: &str, message: &str, specs: &str, reason: &str| {
        json!({
            "level": level, "message": message, "specs": specs, "reason": reason, "service_account": "robot",
            "duration_seconds": 0.0015,
        })
    };
    let with_denial = |message: &str| {
        let mut line = line("INFO", message, "a", "not-authorized");
        line.as_object_mut().unwrap().extend([("code".to_owned(), json!(403)), ("denial".to_owned(), json!(denial))]);
        line
    };
    let (validate, enforce, warn) = (Webhook::Validate, Enforcement::Enforce, Enforcement::Warn);
    for (webhook, request, may_use, enforcement, expected) in [
        (validate, create(full.clone()), &yes, enforce, line("INFO", "allowed", "a", "authorized")),
        (validate, create(full.clone()), &yes, warn, line("INFO", "allowed", "a", "authorized")),
        (validate, create(full.clone()), &no, enforce, with_denial("denied")),
        (validate, create(full), &no, warn, with_denial("would deny, not enforced")),
        // Nothing is stored, or nothing of it is GMSA's.
        (validate, dry_run, &yes, enforce, line("DEBUG", "allowed", "a", "authorized")),
        (validate, update, &yes, enforce, line("DEBUG", "allowed", "", "unchanged")),
        (validate, create(json!({})), &yes, enforce, line("DEBUG", "allowed", "", "no-gmsa")),
        // /validate has the last word.
        (Webhook::Mutate, create(named), &yes, enforce, line("DEBUG", "filled in", "a", "expanded")),
    ] {
        assert_eq!(logged(webhook, &request, may_use, enforcement), expected);
    }
}

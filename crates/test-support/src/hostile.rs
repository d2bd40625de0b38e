//! What must hold for any bytes at all. The property tests and the fuzz targets call these with theirs; what does not
//! hold panics.

use std::sync::Arc;

use futures::FutureExt as _;
use gmsa_core::{
    admission::{
        Decision, Enforcement, Fact, Failure, FailureKind, Freshness, Known, MAX_PATCH_BYTES, MAX_SPECS_PER_POD,
        Question, Review, Settings, Source, SpecFact, TicketSettings, UseFact, Webhook,
    },
    credspec::{
        Contents, MAX_CONTENTS_BYTES,
        compare::{Difference, compare},
        generate::{Domain, Draft},
        lint, text,
    },
};
use serde_json::{Map, Value};

use crate::{golden::sidecar, oracle, slow_json};

/// The head of a TLS record that announces more than is sent: a server waits for the rest.
pub const HALF_A_HELLO: &[u8] = &[22, 3, 1, 0, 200, 1, 0];

/// Any request body, with any facts, gets one whole answer, within its bounds.
pub fn review(body: &[u8]) {
    let seed = body.len();
    let enforcement = if seed.is_multiple_of(2) { Enforcement::Enforce } else { Enforcement::Warn };
    for webhook in Webhook::ALL {
        let Ok(review) = Review::parse(body, webhook) else { continue };
        let (hostname, tickets) = (Some("host".to_owned()), TicketSettings::On(Arc::new(sidecar())));
        let settings = Settings { enforcement, strict_credential_specs: true, hostname, tickets };
        let review = Arc::new(review);
        // Each credential spec is asked for once, and once more where a cache knew it.
        let [mut specs, mut uses, mut again] = [const { 0..MAX_SPECS_PER_POD }; 3];
        let decision = Decision::begin(Arc::clone(&review), webhook, settings)
            .answered_by(async |question| match question {
                Question::Contents(_, Freshness::Any) => {
                    Fact::Contents(Known { fact: spec_fact(seed + specs.next().unwrap()), source: Source::Cache })
                }
                Question::Contents(spec, Freshness::Live) => {
                    again.next().unwrap();
                    Fact::Contents(Known { fact: spec_fact(seed + spec.as_str().len()), source: Source::Api })
                }
                Question::Use(..) => {
                    Fact::Use(Known { fact: use_fact(seed / 4 + uses.next().unwrap()), source: Source::Api })
                }
            })
            .now_or_never()
            .unwrap();
        if let Some(patch) = decision.patch.as_ref().filter(|_| decision.is_allowed()) {
            assert!(patch.len() <= MAX_PATCH_BYTES);
            let operations: Vec<Value> = serde_json::from_slice(patch).unwrap();
            assert!(!operations.is_empty());
            if decision.reason == "tickets" {
                injected(body, &operations);
            } else {
                expanded(body, &operations, enforcement);
            }
        }
        let answer: Value = serde_json::from_slice(&review.answer(&decision)).unwrap();
        assert_eq!(answer["response"]["uid"], review.uid);
        assert!(decision.warnings.len() <= 120, "{decision:?}");
        assert_eq!(answer["response"]["allowed"], decision.is_allowed());
    }
}

/// Applied to the pod, a patch fills in contents where there is a name and none, gives a host name where there is none, and
/// does nothing else.
fn expanded(body: &[u8], operations: &[Value], enforcement: Enforcement) {
    // Unknown fields may hold what this reader does not take.
    let Ok(review) = serde_json::from_slice::<Value>(body) else { return };
    let request = &review["request"];
    let mut pod = without_nulls(&request["object"]);
    let mut patched = pod.clone();
    let patch: json_patch::Patch = serde_json::from_value(Value::from(operations)).unwrap();
    json_patch::patch(&mut patched, &patch).unwrap();
    for (before, after) in oracle::slots(&pod).into_iter().zip(oracle::slots(&patched)) {
        let filled = before.contents.is_none() && after.contents.is_some();
        if filled {
            assert_eq!(after.contents.as_deref(), Some("{}"));
            let options = patched.pointer_mut(&format!("{}/windowsOptions", before.pointer)).unwrap();
            options.as_object_mut().unwrap().remove("gmsaCredentialSpec");
        }
        let must_be = request["operation"] == "CREATE" && enforcement == Enforcement::Enforce;
        assert!(!filled || before.name.is_some());
        assert!(!must_be || before.name.is_none() || after.contents.is_some(), "{before:?}");
    }
    for pod in [&mut pod, &mut patched] {
        let spec = pod["spec"].as_object_mut().unwrap();
        if spec.get("hostname").is_some_and(|name| name == "host" || name == "") {
            spec.remove("hostname");
        }
    }
    assert_eq!(patched, pod);
}

/// Applied to the pod, the injection adds and does nothing else, and the pod that comes a second time is left as it is.
fn injected(body: &[u8], operations: &[Value]) {
    let mut review: Value = serde_json::from_slice(body).unwrap();
    assert!(operations.iter().all(|operation| operation["op"] == "add"));
    // No API server sends a pod without a spec: it refuses this patch, and so the pod.
    if !review["request"]["object"]["spec"].is_object() {
        return;
    }
    let patch: json_patch::Patch = serde_json::from_value(Value::from(operations)).unwrap();
    json_patch::patch(&mut review["request"]["object"], &patch).unwrap();
    let again = Review::parse(review.to_string().as_bytes(), Webhook::Mutate).unwrap();
    let tickets = TicketSettings::On(Arc::new(sidecar()));
    let settings = Settings { tickets, ..Settings::default() };
    let decision = Decision::begin(again, Webhook::Mutate, settings)
        .answered_by(async |question| panic!("{question:?}"))
        .now_or_never()
        .unwrap();
    assert!(decision.patch.is_none(), "{review}");
}

/// For Kubernetes a field that is null is not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        value => value.clone(),
    }
}

fn spec_fact(choice: usize) -> SpecFact {
    match choice % 4 {
        0 => SpecFact::Missing,
        1 => SpecFact::Unusable,
        2 => SpecFact::Failed(Failure { kind: FailureKind::TimedOut, ..Failure::new("\"\n<") }),
        _ => SpecFact::Contents(Arc::new(Contents::of(&Map::new()))),
    }
}

fn use_fact(choice: usize) -> UseFact {
    match choice % 4 {
        0 => UseFact::Denied { reason: Some("\u{1b}\"\n".to_owned()) },
        1 => UseFact::Failed(Failure::new("")),
        _ => UseFact::Allowed,
    }
}

/// Two texts: each is compared with the other's contents as a slow reader compares them, and both say the same.
pub fn compared(one: &str, other: &str) {
    let contents = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok().map(|map| Contents::of(&map));
    let (one_contents, other_contents) = (contents(one), contents(other));
    if let Some(contents) = &one_contents {
        let outcome = compare(other, contents);
        compare(contents.text(), contents).unwrap();
        match (slow_json::read(contents.text()), slow_json::read(other)) {
            // Not where a key is twice in the credential spec: there the last one counts.
            (Some(spec), Some(pod)) => {
                let equal = !slow_json::has_duplicate_key(&pod) && slow_json::equal(&spec, &pod);
                assert_eq!(outcome.is_ok(), equal, "{outcome:?}: {other:?}, {contents:?}");
            }
            // It is read up to the first fault.
            (_, None) => {
                assert!(
                    matches!(outcome, Err(Difference::NotJson | Difference::DuplicateKey)),
                    "{outcome:?}: {other:?}"
                );
            }
            (None, _) => {}
        }
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
    // A patch carries it with the escapes of JSON alone, which are Go's too for such a text.
    assert_eq!(serde_json::to_string(contents.text()).unwrap(), text::print(contents.text()));
    assert!(
        !contents.text().contains(|c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f'))
    );
    // It is what a second writer writes.
    if let Some(tree) = std::str::from_utf8(credspec).ok().and_then(slow_json::read)
        && !slow_json::has_duplicate_key(&tree)
    {
        assert_eq!(contents.text(), slow_json::printed(&tree));
    }
    // White space and the order of keys are all that pretty printing changes. Not of what was read first: Go prints a large
    // float64 as an integer, which is compared as one.
    let pretty = serde_json::to_string_pretty(&again).unwrap();
    if pretty.len() <= MAX_CONTENTS_BYTES {
        compare(&pretty, &contents).unwrap();
    }
}

/// Any JSON: the linter finds a bounded number of things in it, none longer than a screen, and what was read from a
/// directory or from Docker makes a manifest that reads back as the object that it was made from.
pub fn linted(json: &str) {
    if let Ok(value) = serde_json::from_str::<Value>(json) {
        let findings = lint::object(&value);
        assert!(findings.len() <= 64);
        assert!(findings.iter().all(|finding| finding.to_string().len() < 4096), "{findings:?}");
    }
    let suggested = lint::suggest_name(json);
    assert!(gmsa_core::credspec::is_dns_subdomain(&suggested), "{suggested:?}");
    let from_directory = Domain::from_directory(json).ok();
    let drafts = [
        from_directory
            .map(|domain| Draft::new("web".to_owned(), "WebApp1".to_owned(), domain, &[json.to_owned()], None)),
        Draft::from_docker(None, json).ok(),
    ];
    for draft in drafts.into_iter().flatten() {
        assert!(lint::object(&draft.object()).len() <= 64);
        assert_eq!(serde_saphyr::from_str::<Value>(&draft.yaml()).unwrap(), draft.object(), "{}", draft.yaml());
    }
}

/// Any answer of a KDC, or with `kind` 4 and above any text inside a reply: it is read without a panic, and is no ticket, as its nonce is another one.
#[cfg(feature = "kdc")]
pub fn kdc_answer(kind: u8, bytes: &[u8]) {
    use gmsa_kerberos::{EncryptionType, Error, KdcRequest, Key, Password, Principal, PrincipalName, Realm};
    use time::UtcDateTime;

    let realm = Realm::from_domain("contoso.com").unwrap();
    let client = Principal { name: PrincipalName::account("WebApp1$").unwrap(), realm };
    let key_type = EncryptionType::ALL[usize::from(kind & 1)];
    let key = Key::new(key_type, &[7; 32][..key_type.key_length()]).unwrap();
    let now = UtcDateTime::from_unix_timestamp(1_795_425_164).unwrap();
    let request = KdcRequest::as_req(&client, Some(&key), now, now).unwrap();
    let reply;
    let answer = if kind & 4 == 0 {
        bytes
    } else {
        reply = crate::kdc::reply_with("CONTOSO.COM", "WebApp1$", &key, bytes);
        &reply
    };
    let refused = |error: Error| assert!(error.to_string().len() < 1000 && !error.is_unanswered(), "{error}");
    match request.ticket(answer, &key) {
        // By chance: one of 2^31.
        Ok(ticket) => assert_eq!(kind & 4, 4, "{ticket:?}"),
        Err(error) => refused(error),
    }
    // The work of a key takes milliseconds.
    if kind & 2 != 0 {
        let key = request.salt(answer).and_then(|salt| Password::new("password").key(&salt));
        key.map_or_else(refused, drop);
    }
}

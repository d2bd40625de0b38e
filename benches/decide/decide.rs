//! How long a review takes inside the core: parsing, deciding and answering apart, for one of 3 KB and one of 1 MB.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on must fail")]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gmsa_core::{
    admission::{Facts, Known, Review, Settings, Source, SpecFact, UseFact, Webhook},
    credspec::Contents,
};
use serde_json::{Map, Value, json};

fn credspec() -> Map<String, Value> {
    let credspec = json!({
        "CmsPlugins": ["ActiveDirectory"],
        "DomainJoinConfig": {
            "Sid": "S-1-5-21-2126449477-2524075714-3094792973",
            "MachineAccountName": "WebApp1",
            "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
            "DnsTreeName": "contoso.com",
            "DnsName": "contoso.com",
            "NetBiosName": "CONTOSO",
        },
        "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [{"Name": "WebApp1", "Scope": "CONTOSO"}]},
    });
    credspec.as_object().unwrap().clone()
}

/// A review of a pod that names a credential spec, padded to about `size` bytes with fields that the core skips, as in
/// `managedFields`.
fn review(contents: Option<&str>, size: usize) -> Vec<u8> {
    let field = json!({"f:spec": {"f:containers": {"k:{\"name\":\"iis\"}": {".": {}, "f:image": {}, "f:name": {}}}}});
    let padding = vec![field.clone(); size.saturating_sub(1000) / field.to_string().len()];
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0a3e3c66-5f9d-4f25-a99f-c15524f735cb",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "prod",
            "operation": "CREATE",
            "object": {
                "metadata": {"name": "web", "managedFields": padding},
                "spec": {
                    "serviceAccountName": "web",
                    "securityContext": {
                        "windowsOptions": {"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": contents},
                    },
                    "containers": [{"name": "iis", "image": "mcr.microsoft.com/windows/servercore/iis"}],
                },
            },
            "oldObject": null,
        },
    });
    review.to_string().into_bytes()
}

fn facts(webhook: Webhook, review: &Review) -> Facts {
    let contents = Arc::new(Contents::of(&credspec()));
    let spec = Known { fact: SpecFact::Contents(contents), source: Source::Cache };
    let may_use = Known { fact: UseFact::Allowed, source: Source::Remembered };
    review.questions(webhook, Settings::default()).facts(|_| spec.clone(), |_, _| may_use.clone())
}

fn core(criterion: &mut Criterion) {
    let contents = Contents::of(&credspec());
    // Not byte for byte what the webhook would write, so that the comparison has to read it.
    let rewritten = contents.text().replace("\":", "\": ");
    for (size, bytes) in [("3KB", 3_000), ("1MB", 1_000_000)] {
        for (name, webhook, carried) in [
            ("mutate", Webhook::Mutate, None),
            ("validate", Webhook::Validate, Some(contents.text())),
            ("validate-rewritten", Webhook::Validate, Some(rewritten.as_str())),
        ] {
            let body = review(carried, bytes);
            let parsed = Review::parse(&body, webhook).unwrap();
            let facts = facts(webhook, &parsed);
            let decide = |facts: &Facts| parsed.decide(webhook, Settings::default(), facts);
            let decision = decide(&facts);
            assert!(decision.is_allowed(), "{name}: {decision:?}");
            let mut group = criterion.benchmark_group(format!("{name}/{size}"));
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_function("parse", |bencher| bencher.iter(|| Review::parse(black_box(&body), webhook).unwrap()));
            group.throughput(Throughput::Elements(1));
            let questions = || black_box(&parsed).questions(webhook, Settings::default());
            group.bench_function("questions", |bencher| bencher.iter(questions));
            group.bench_function("decide", |bencher| bencher.iter(|| decide(black_box(&facts))));
            group.bench_function("answer", |bencher| bencher.iter(|| parsed.answer(black_box(&decision))));
        }
    }
    // What a change of a credential spec costs.
    let credspec = credspec();
    criterion.bench_function(&format!("contents/{}", contents.text().len()), |bencher| {
        bencher.iter(|| Contents::of(black_box(&credspec)));
    });
}

criterion_group!(benches, core);
criterion_main!(benches);

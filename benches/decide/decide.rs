//! How long a review takes inside the core: parsing, deciding and answering apart, for one of 3 KB and one of 1 MB.

#![allow(
    missing_docs,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on must fail"
)]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gmsa_core::{
    admission::{Facts, Known, Review, Settings, Source, SpecFact, UseFact, Webhook},
    credspec::Contents,
};
use serde_json::{Map, Value, json};

fn credspec() -> Map<String, Value> {
    let example: Value = serde_saphyr::from_str(include_str!("../../examples/credspec.yaml")).unwrap();
    example["credspec"].as_object().unwrap().clone()
}

/// The captured review of a pod that names a credential spec, with these contents, padded to `size` bytes or more with fields that the
/// core skips, as in `managedFields`.
fn review(contents: Option<&str>, size: usize) -> Vec<u8> {
    let mut review: Value = serde_json::from_str(include_str!("../baseline/pod-with-gmsa.mutate.json")).unwrap();
    let field = json!({"f:spec": {"f:containers": {"k:{\"name\":\"iis\"}": {".": {}, "f:image": {}, "f:name": {}}}}});
    let missing = size.saturating_sub(review.to_string().len());
    let pod = &mut review["request"]["object"];
    let padding = vec![field.clone(); missing / field.to_string().len()];
    pod["metadata"]["managedFields"].as_array_mut().unwrap().extend(padding);
    pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(contents);
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

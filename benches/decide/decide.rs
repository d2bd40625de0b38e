//! How long a review takes inside the core: parsing, deciding and answering apart, for one of 3 KB and one of 1 MB.

#![allow(
    missing_docs,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on must fail"
)]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::FutureExt as _;
use gmsa_core::{
    admission::{Decision, Fact, Known, Question, Review, Settings, Source, SpecFact, UseFact, Webhook},
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

/// The decision, with the credential spec in the cache and the right remembered.
fn decide(review: &Arc<Review>, webhook: Webhook, spec: &Known<SpecFact>) -> Decision {
    let step = Decision::begin(Arc::clone(review), webhook, Settings::default());
    step.answered_by(async |question| match question {
        Question::Contents(..) => Fact::Contents(spec.clone()),
        Question::Use(..) => Fact::Use(Known { fact: UseFact::Allowed, source: Source::Remembered }),
    })
    .now_or_never()
    .unwrap()
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
            let parsed = Arc::new(Review::parse(&body, webhook).unwrap());
            let known = SpecFact::Contents(Arc::new(Contents::of(&credspec())));
            let spec = Known { fact: known, source: Source::Cache };
            let decision = decide(&parsed, webhook, &spec);
            assert!(decision.is_allowed(), "{name}: {decision:?}");
            let mut group = criterion.benchmark_group(format!("{name}/{size}"));
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_function("parse", |bencher| bencher.iter(|| Review::parse(black_box(&body), webhook).unwrap()));
            group.throughput(Throughput::Elements(1));
            group.bench_function("decide", |bencher| bencher.iter(|| decide(black_box(&parsed), webhook, &spec)));
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

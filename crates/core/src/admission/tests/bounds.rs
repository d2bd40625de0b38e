//! The bounds on one pod: names, slots, bytes of patch.

use serde_json::json;

use super::*;

#[test]
fn at_most_24_distinct_names() {
    let pod = |distinct: usize| {
        let slot = |n: usize| json!({"name": "c", "securityContext": named(&format!("s{}", n % distinct))});
        create(&json!({"containers": (0..60).map(slot).collect::<Vec<_>>()}))
    };
    let refused = (422, "a pod may name at most 24 distinct GMSA cred specs".to_owned());
    assert_eq!(asked(MUTATE, &pod(24)).len(), 24);
    assert_eq!(asked(Webhook::Validate, &pod(24)), [use_of("s0")]);
    for webhook in [MUTATE, Webhook::Validate] {
        assert_eq!(denial(webhook, &pod(25), &Facts::default()), refused);
    }
}

#[test]
fn a_patch_is_at_most_2_mib() {
    // Thirty slots whose contents are large, and one whose contents make the patch as long as it is to be.
    let slots = |spec: &str, count: usize| vec![json!({"name": "c", "securityContext": named(spec)}); count];
    let pod = create(&json!({"securityContext": named("b"), "containers": slots("a", 30)}));
    let of_length = |length: usize| contents(&json!({"a": "x".repeat(length)}));
    let large = of_length(65_000);
    let facts = |length: usize| Facts {
        specs: vec![
            (name("a"), known(large.clone(), Source::Files)),
            (name("b"), known(of_length(length), Source::Files)),
        ],
        ..Facts::default()
    };
    let written = |length: usize| decided(MUTATE, &pod, &facts(length)).patch.unwrap().len();
    let fits = MAX_PATCH_BYTES - written(0);
    assert_eq!(written(fits), 2 * 1024 * 1024);
    let refused = "the GMSA cred spec contents of this pod would take more than 2097152 bytes: use fewer containers or name the GMSA cred spec on the pod";
    assert_eq!(denial(MUTATE, &pod, &facts(fits + 1)), (422, refused.to_owned()));
}

#[test]
fn at_most_1000_slots() {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let list = |count: usize| vec![json!({"name": "c", "securityContext": named("a")}); count];
    let pod = |counts: [usize; 3]| {
        let spec: serde_json::Map<_, _> =
            lists.iter().zip(counts).map(|(name, count)| ((*name).to_owned(), json!(list(count)))).collect();
        json!({"metadata": {"name": "web"}, "spec": spec})
    };
    let refused = "a pod may have at most 999 containers, init containers and ephemeral containers together".to_owned();
    for webhook in [MUTATE, Webhook::Validate] {
        for counts in [[999, 0, 0], [333, 333, 333]] {
            let asked = asked(webhook, &review("CREATE", &pod(counts), &Value::Null));
            assert_eq!(asked.len(), 1, "{webhook:?} {counts:?}");
        }
        for counts in [[1000, 0, 0], [0, 1000, 0], [0, 0, 1000], [334, 333, 333], [5000, 0, 1]] {
            let (small, large) = (json!({"metadata": {"name": "web"}}), pod(counts));
            for review in [
                review("CREATE", &large, &Value::Null),
                review("UPDATE", &large, &small),
                review("UPDATE", &small, &large),
            ] {
                assert_eq!(asked(webhook, &review), [], "{webhook:?} {counts:?}");
                assert_eq!(denial(webhook, &review, &Facts::default()), (422, refused.clone()), "{counts:?}");
            }
        }
    }
}

//! Updates of a pod that exists.

use serde_json::json;

use super::*;
use crate::credspec::MAX_CONTENTS_BYTES;

#[test]
fn an_update_says_what_it_changed() {
    let with = |context: Value| json!({"metadata": {"name": "web"}, "spec": {"securityContext": context}});
    let old = with(options("a", "{}"));
    let of_bytes = |count: usize| with(options("a", &"x".repeat(count)));
    let (longest, too_long) = (of_bytes(MAX_CONTENTS_BYTES), of_bytes(MAX_CONTENTS_BYTES + 1));
    for (old, new, what) in [
        (&old, &with(options("b", "{}")), "name"),
        (&old, &with(options("a", "[]")), "contents"),
        (&old, &with(options("b", "[]")), "name and contents"),
        (&old, &with(json!({})), "name and contents"),
        // Only its beginning is known.
        (&too_long, &too_long, "contents"),
    ] {
        let message = format!("cannot update an existing pod's GMSA settings (GMSA {what} modified on pod \"web\")");
        let update = review("UPDATE", new, old);
        assert_eq!(denial(Webhook::Validate, &update, &Facts::default()), (403, message));
    }
    // A removed container takes its name and contents with it.
    let container = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "securityContext": options("a", "{}")}]}});
    let gone = decided(Webhook::Validate, &review("UPDATE", &with(json!({})), &container), &Facts::default());
    assert_eq!((gone.is_allowed(), gone.reason), (false, "modified"));
    for pod in [&old, &longest] {
        assert!(decided(Webhook::Validate, &review("UPDATE", pod, pod), &Facts::default()).is_allowed());
    }
}

#[test]
fn an_update_may_move_slots_and_name_the_pod() {
    let container = |of: &str| json!({"name": of, "securityContext": options(of, "{}")});
    let pod = |name: &str, order: [&str; 2]| {
        let containers = order.map(container);
        json!({"metadata": {"name": name}, "spec": {"securityContext": options("pod", "{}"), "containers": containers}})
    };
    let update = review("UPDATE", &pod("web-1", ["b", "a"]), &pod("", ["a", "b"]));
    let decision = decided(Webhook::Validate, &update, &Facts::default());
    assert_eq!((decision.is_allowed(), decision.reason), (true, "unchanged"));
}

#[test]
fn an_update_fills_in_the_new_ephemeral_containers_alone() {
    let container = |of: &str| json!({"name": of, "securityContext": named(of)});
    let pod = |ephemeral: &[&str]| {
        let ephemeral: Vec<_> = ephemeral.iter().map(|of| container(of)).collect();
        json!({"spec": {"securityContext": named("pod"), "containers": [container("main")], "ephemeralContainers": ephemeral}})
    };
    let mut update = review("UPDATE", &pod(&["old", "new"]), &pod(&["old"]));
    update["request"]["subResource"] = json!("ephemeralcontainers");
    assert_eq!(asked(MUTATE, &update), [contents_of("new")]);
}

#[test]
fn an_update_validates_what_it_adds_as_a_new_pod() {
    let pod = |ephemeral: &[Value]| json!({"spec": {"securityContext": options("p", "{}"), "ephemeralContainers": ephemeral}});
    let container = |context: Value| json!({"name": "debug", "securityContext": context});
    let update = |added: Value| review("UPDATE", &pod(&[container(added)]), &pod(&[]));
    let none = json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}});
    let denied = facts("e", UseFact::Denied { reason: None }, Source::Api);
    let allowed = facts("e", UseFact::Allowed, Source::Api);
    assert_eq!(asked(Webhook::Validate, &update(options("e", "{}"))), [contents_of("e"), use_of("e")]);
    for (added, facts, is_allowed, reason) in [
        (options("e", "{\"a\":1}"), &allowed, true, "authorized"),
        (options("e", "{\"a\":1}"), &denied, false, "not-authorized"),
        (options("e", "{}"), &allowed, false, "contents-differ"),
        (none, &allowed, false, "contents-without-name"),
    ] {
        let decision = decided(Webhook::Validate, &update(added), facts);
        assert_eq!((decision.is_allowed(), decision.reason), (is_allowed, reason));
    }
}

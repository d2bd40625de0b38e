//! Every combination of a slot's kind, name, contents and authorisation, on creation and on update.

use serde_json::{Value, json};

use super::{
    oracle::{LISTS, World, created, is_valid_name, slots, updated},
    world::{mutate, review, validate},
};

const NAMES: [Option<&str>; 4] = [None, Some("web"), Some("../Web"), Some("unknown")];
const CONTENTS: [Option<&str>; 6] = [
    None,
    Some(r#"{"account":"web","domain":"contoso"}"#),
    Some(r#"{ "domain": "contoso", "account": "web" }"#),
    Some(r#"{"account":"admin","domain":"contoso"}"#),
    Some(r#"{"account":"admin","account":"web","domain":"contoso"}"#),
    Some(r#"{"account":"web""#),
];
/// The slot in the old object of an update.
#[derive(Clone, Copy, Debug)]
enum Before {
    Absent,
    Same,
    Different,
}
const ALLOWED: &str = "allowed";
const DENIED: &str = "denied";
const FAILED: &str = "failed";

fn world(authorisation: &str) -> World {
    let specs = json!({"web": {"account": "web", "domain": "contoso"}});
    let both = || vec!["web".to_owned(), "unknown".to_owned()];
    World {
        specs: specs.as_object().unwrap().clone(),
        allowed: if authorisation == ALLOWED { both() } else { Vec::new() },
        unknown: if authorisation == FAILED { both() } else { Vec::new() },
    }
}

/// A pod with the slot, beside a container without any; `kind` 0 is the pod itself, then the lists.
fn pod(kind: usize, slot: Option<(Option<&str>, Option<&str>)>) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}});
    let Some((name, contents)) = slot else { return pod };
    let mut options = json!({});
    for (field, text) in [("gmsaCredentialSpecName", name), ("gmsaCredentialSpec", contents)] {
        if let Some(text) = text {
            options[field] = json!(text);
        }
    }
    let security_context = json!({"windowsOptions": options});
    match kind.checked_sub(1) {
        None => pod["spec"]["securityContext"] = security_context,
        Some(list) => {
            let containers = &mut pod["spec"][LISTS[list].0];
            let mut all = containers.as_array().cloned().unwrap_or_default();
            all.push(json!({"name": "slot", "securityContext": security_context}));
            *containers = json!(all);
        }
    }
    pod
}

/// Calls with every slot: its kind, name, contents, and the authorisation.
fn every_slot(mut with: impl FnMut(usize, (Option<&str>, Option<&str>), &World, &str)) {
    for kind in 0..=LISTS.len() {
        for name in NAMES {
            for contents in CONTENTS {
                for authorisation in [ALLOWED, DENIED, FAILED] {
                    let case = format!("kind {kind}, name {name:?}, contents {contents:?}, {authorisation}");
                    with(kind, (name, contents), &world(authorisation), &case);
                }
            }
        }
    }
}

#[test]
fn every_slot_of_a_new_pod_is_validated_as_the_contract_says() {
    let mut accepted = 0;
    every_slot(|kind, slot, world, case| {
        let pod = pod(kind, Some(slot));
        let expected = slots(&pod).iter().try_for_each(|slot| created(slot, world));
        let outcome = validate(&review("CREATE", "", &pod, &Value::Null), world);
        assert_eq!(outcome, expected, "{case}");
        accepted += u32::from(outcome.is_ok());
    });
    // Of each kind: no name and no contents, three times; and allowed with equal or reordered contents.
    assert_eq!(accepted, 4 * (3 + 2));
}

#[test]
fn every_slot_of_an_updated_pod_is_validated_as_the_contract_says() {
    let mut accepted = 0;
    every_slot(|kind, slot, world, case| {
        let new = pod(kind, Some(slot));
        for before in [Before::Absent, Before::Same, Before::Different] {
            let old = match before {
                Before::Absent => pod(kind, None),
                Before::Same => new.clone(),
                Before::Different => pod(kind, Some((Some("other"), Some("{}")))),
            };
            for sub_resource in ["", "status", "resize", "ephemeralcontainers"] {
                let expected = updated(&old, &new, world);
                let outcome = validate(&review("UPDATE", sub_resource, &new, &old), world);
                assert_eq!(outcome, expected, "{case}, {before:?}");
                accepted += u32::from(outcome.is_ok());
            }
        }
    });
    // Of each kind, on four paths: every slot that stays the same, the pod without a slot before and after; of containers
    // also new ones as on creation.
    let same = 4 * 6 * 3;
    assert_eq!(accepted, 4 * (4 * same + 3 + 3 * (3 + 2)));
}

#[test]
fn every_slot_is_expanded_as_the_contract_says() {
    let mut expanded = 0;
    every_slot(|kind, slot, world, case| {
        let (new, absent) = (pod(kind, Some(slot)), pod(kind, None));
        let ephemeral = LISTS.len();
        for (review, counts) in [
            (review("CREATE", "", &new, &Value::Null), true),
            (review("UPDATE", "", &new, &absent), false),
            (review("UPDATE", "resize", &new, &absent), false),
            (review("UPDATE", "ephemeralcontainers", &new, &absent), kind == ephemeral),
            (review("UPDATE", "ephemeralcontainers", &new, &new), false),
        ] {
            let expected = match slot {
                (Some(name), _) if counts && !is_valid_name(name) => Err(422),
                (Some("unknown"), None) if counts => Err(404),
                (Some("web"), None) if counts => Ok(true),
                _ => Ok(false),
            };
            let outcome = mutate(&review, world);
            let seen = outcome.as_ref().map(Option::is_some).map_err(|(code, _)| *code);
            assert_eq!(seen, expected, "{case}: {outcome:?}");
            let Ok(Some(patch)) = outcome else { continue };
            expanded += 1;
            let mut patched = new.clone();
            json_patch::patch(&mut patched, &patch).unwrap();
            assert_eq!(patched, pod(kind, Some((Some("web"), CONTENTS[1]))), "{case}");
        }
    });
    // Authorisation does not matter here: four kinds on creation, and the ephemeral container that is added.
    assert_eq!(expanded, 3 * (4 + 1));
}

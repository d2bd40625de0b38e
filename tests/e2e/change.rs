//! Credential specs that come and change while pods are created.

use serde_json::{Value, json};

use crate::{
    control_plane::{Refusal, SPECS, until},
    pods::{self, denied, filled, gmsa, pod, slots},
    world::{USER, World, credential_spec},
};

/// Contents that differ by a number, and how they stand in pods.
pub fn edition(number: u32) -> (Value, String) {
    let contents =
        json!({"CmsPlugins": ["ActiveDirectory"], "DomainJoinConfig": {"NetBiosName": format!("N{number}")}});
    (contents, format!(r#"{{"CmsPlugins":["ActiveDirectory"],"DomainJoinConfig":{{"NetBiosName":"N{number}"}}}}"#))
}

/// Creates a credential spec of the first edition.
pub async fn create_first(world: &World, name: &str) -> String {
    let (contents, text) = edition(1);
    world.client().create(SPECS, &credential_spec(name, &contents)).await.unwrap();
    text
}

/// Changes a credential spec to the second edition.
pub async fn change_to_second(world: &World, name: &str) -> String {
    let (contents, text) = edition(2);
    world.client().merge(&format!("{SPECS}/{name}"), &json!({"credspec": contents})).await.unwrap();
    text
}

/// A pod that names a credential spec.
pub fn user_of(spec: &str, name: &str) -> Value {
    pod(name, USER, &json!({"securityContext": gmsa(spec)}))
}

/// Tries pods, without storing them, until they get the new text. Until then each gets the old one, whole, or is refused
/// because the two webhooks were asked just before and after the change came to be known.
pub async fn until_new(world: &World, spec: &str, old: &str, new: &str) {
    let dry_run = format!("{}?dryRun=All", pods::PATH);
    let message = format!(
        "the GMSA cred spec contents for pod \"tried\" does not match the contents of GMSA resource {spec:?}: they hold \
         other values, in the form in which the webhook writes them: the resource may have changed meanwhile, try again"
    );
    let between: Refusal = denied(422, &message);
    until("pods get the new contents", async || match world.client().create(&dry_run, &user_of(spec, "tried")).await {
        Ok(pod) if slots(&pod) == json!({"pod": filled(spec, new)}) => Some(()),
        Ok(pod) => {
            assert_eq!(slots(&pod), json!({"pod": filled(spec, old)}));
            None
        }
        Err(refusal) => {
            assert_eq!(refusal, between);
            None
        }
    })
    .await;
}

pub async fn spec_created_and_used_at_once(world: &mut World) {
    let text = create_first(world, "fresh").await;
    let stored = world.stored(&user_of("fresh", "fresh")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("fresh", &text)}));
}

pub async fn spec_changed_then_used(world: &mut World) {
    let old = create_first(world, "changing").await;
    let stored = world.stored(&user_of("changing", "before-the-change")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("changing", &old)}));
    let new = change_to_second(world, "changing").await;
    until_new(world, "changing", &old, &new).await;
    let stored = world.stored(&user_of("changing", "after-the-change")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("changing", &new)}));
}

//! Credential specs that come and change while pods are created.

use serde_json::{Value, json};

use crate::{
    control_plane::{SPECS, until},
    pods::{self, filled, gmsa, pod, slots},
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
    until("pods get the new contents", async || match world.client().create(&dry_run, &user_of(spec, "tried")).await {
        Ok(pod) if slots(&pod) == json!({"pod": filled(spec, new)}) => Some(()),
        Ok(pod) => {
            assert_eq!(slots(&pod), json!({"pod": filled(spec, old)}));
            None
        }
        Err(refusal) => {
            let between = "the resource may have changed meanwhile, try again";
            assert!(refusal.code == 422 && refusal.message.ends_with(between), "{refusal:?}");
            None
        }
    })
    .await;
}

pub async fn spec_created_used_and_changed(world: &mut World) {
    let old = create_first(world, "changing").await;
    let stored = world.stored(&user_of("changing", "before-the-change")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("changing", &old)}));
    let new = change_to_second(world, "changing").await;
    until_new(world, "changing", &old, &new).await;
    let stored = world.stored(&user_of("changing", "after-the-change")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("changing", &new)}));
}

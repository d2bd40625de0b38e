//! Updates of a pod that uses GMSA. The API server itself refuses those of its GMSA settings, before it asks a validating
//! webhook: what it says is its own.

use serde_json::{Value, json};

use crate::{
    control_plane::Refusal,
    pods::{filled, gmsa, path, pod, slots},
    world::{USER, WEB, World},
};

/// The API server's own words. It goes on with the fields that may change, which differ between versions, and the whole spec.
fn immutable(name: &str) -> String {
    format!(
        "Pod {name:?} is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
}

/// Stores a pod, tries a change of its options, and makes sure that it is refused and that nothing has changed.
async fn refused(world: &World, name: &str, options: Value) {
    let pod = pod(name, USER, &json!({"securityContext": gmsa("web")}));
    let before = world.stored(&pod).await;
    let patch = json!({"spec": {"securityContext": {"windowsOptions": options}}});
    let Refusal { code, message } = world.client().merge(&path(&pod), &patch).await.unwrap_err();
    assert_eq!(code, 422);
    assert!(message.starts_with(&immutable(name)), "{message}");
    assert_eq!(world.client().get(&path(&pod)).await, Ok(before));
}

pub async fn of_labels(world: &mut World) {
    let pod = pod("labelled", USER, &json!({"securityContext": gmsa("web")}));
    world.stored(&pod).await;
    world.client().merge(&path(&pod), &json!({"metadata": {"labels": {"tier": "front"}}})).await.unwrap();
    let stored = world.client().get(&path(&pod)).await.unwrap();
    assert_eq!(stored["metadata"]["labels"], json!({"tier": "front"}));
    assert_eq!(slots(&stored), json!({"pod": filled("web", WEB)}));
}

pub async fn of_the_name(world: &mut World) {
    refused(world, "renamed", json!({"gmsaCredentialSpecName": "sql"})).await;
}

pub async fn of_the_contents(world: &mut World) {
    refused(world, "rewritten", json!({"gmsaCredentialSpec": "{}"})).await;
}

//! Ephemeral containers, which come to a pod that exists through a subresource of their own.

use serde_json::{Value, json};

use crate::{
    control_plane::Refusal,
    pods::{container, denied, filled, gmsa, path, pod, slots},
    world::{USER, VISITOR, WEB, World},
};

/// Adds an ephemeral container `debugger` to a stored pod.
async fn add(world: &World, pod: &Value, security_context: &Value) -> Result<Value, Refusal> {
    let patch = json!({"spec": {"ephemeralContainers": [container("debugger", security_context)]}});
    world.client().merge_lists(&format!("{}/ephemeralcontainers", path(pod)), &patch).await
}

pub async fn added_expanded_and_authorized(world: &mut World) {
    let pod = pod("debugged", USER, &json!({}));
    world.stored(&pod).await;
    add(world, &pod, &gmsa("web")).await.unwrap();
    let stored = world.client().get(&path(&pod)).await.unwrap();
    assert_eq!(slots(&stored), json!({"ephemeralContainers/debugger": filled("web", WEB)}));
}

pub async fn refused_where_not_authorized(world: &mut World) {
    let pod = pod("not-debugged", VISITOR, &json!({}));
    let before = world.stored(&pod).await;
    let message = r#"service account "visitor" is not authorized to `use` GMSA cred spec "web""#;
    assert_eq!(add(world, &pod, &gmsa("web")).await, Err(denied(403, message)));
    let message = "cred spec unknown does not exist";
    assert_eq!(add(world, &pod, &gmsa("unknown")).await, Err(denied(404, message)));
    assert_eq!(world.client().get(&path(&pod)).await, Ok(before));
}

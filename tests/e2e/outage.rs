//! What goes on when the API server does not. What is refused while no webhook answers is asserted with the chart's own configurations, in
//! `install/admission.rs`.

use serde_json::json;

use crate::{
    change::{change_to_second, create_first, until_new, user_of},
    control_plane::until,
    pods::{self, filled, slots},
    world::World,
};

pub async fn api_server_restarted(world: &mut World) {
    let old = create_first(world, "surviving").await;
    let stored = world.stored(&user_of("surviving", "before-the-restart")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("surviving", &old)}));
    world.control_plane.kill_api_server();
    world.control_plane.restart_api_server().await;

    // The API server answers before it knows its webhooks again, and before the webhook knows of the API server.
    let stored = until("the webhook works for the new API server", async || {
        let pod = user_of("surviving", "after-the-restart");
        world.client().create(pods::PATH, &pod).await.ok()
    })
    .await;
    assert_eq!(slots(&stored), json!({"pod": filled("surviving", &old)}));
    let new = change_to_second(world, "surviving").await;
    until_new(world, "surviving", &old, &new).await;
    world.until_watching().await;
}

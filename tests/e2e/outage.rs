//! What goes on when a part of the cluster does not.

use serde_json::json;

use crate::{
    change::{change_to_second, create_first, until_new, user_of},
    control_plane::{Refusal, SERVICE, until},
    pods::{self, container, filled, gmsa, path, pod, slots},
    world::{USER, WEB, WEBHOOK, World},
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

pub async fn webhook_killed(world: &mut World) {
    let running = pod("running", USER, &json!({"securityContext": gmsa("web")}));
    assert_eq!(slots(&world.stored(&running).await), json!({"pod": filled("web", WEB)}));
    let port = world.webhook.address.port();
    world.webhook.kill();

    // What needs the webhook is refused, whichever slot it is that needs it.
    let mut sidecar = container("beside", &gmsa("web"));
    sidecar["restartPolicy"] = json!("Always");
    let unnamed = json!({"windowsOptions": {"gmsaCredentialSpec": WEB}});
    for spec in [
        json!({"securityContext": gmsa("web")}),
        json!({"containers": [container("main", &gmsa("web"))]}),
        json!({"initContainers": [container("before", &gmsa("web"))]}),
        json!({"initContainers": [sidecar]}),
        json!({"containers": [container("main", &json!({})), container("second", &unnamed)]}),
    ] {
        let refusal = world.refused(&pod("orphan", USER, &spec)).await;
        assert_unreachable(&refusal, port);
    }
    // What does not need it goes on, where the API server can tell.
    if !world.control_plane.has_match_conditions() {
        assert_unreachable(&world.refused(&pod("plain-orphan", USER, &json!({}))).await, port);
        return;
    }
    let plain = json!({
        "initContainers": [container("before", &json!({}))],
        "containers": [container("main", &json!({"windowsOptions": {"runAsUserName": "ContainerUser"}}))],
    });
    let plain = pod("plain-orphan", USER, &plain);
    let expected = json!({"containers/main": {"windowsOptions": {"runAsUserName": "ContainerUser"}}});
    assert_eq!(slots(&world.stored(&plain).await), expected);
    let client = world.client();
    let subresource = format!("{}/ephemeralcontainers", path(&plain));
    let debugger = |context| json!({"spec": {"ephemeralContainers": [container("debugger", &context)]}});
    assert_unreachable(&client.merge_lists(&subresource, &debugger(gmsa("web"))).await.unwrap_err(), port);
    client.merge_lists(&subresource, &debugger(json!({}))).await.unwrap();

    // So does a pod that has its contents already, up to its end.
    let labelled = client.merge(&path(&running), &json!({"metadata": {"labels": {"tier": "front"}}})).await.unwrap();
    assert_eq!(labelled["metadata"]["labels"], json!({"tier": "front"}));
    client.delete(&path(&running)).await.unwrap();
    assert_eq!(client.get(&path(&running)).await.unwrap_err().code, 404);
}

/// The API server's own words for a webhook that it cannot call. Whether it tried IPv4 or IPv6 first is not our part.
fn assert_unreachable(refusal: &Refusal, port: u16) {
    let refused = |host: &str| {
        format!(
            "Internal error occurred: failed calling webhook {WEBHOOK:?}: failed to call webhook: \
             Post \"https://{SERVICE}.{SERVICE}.svc:{port}/mutate?timeout=5s\": \
             dial tcp {host}:{port}: connect: connection refused"
        )
    };
    assert!(["127.0.0.1", "[::1]"].map(refused).contains(&refusal.message), "{}", refusal.message);
    assert_eq!(refusal.code, 500);
}

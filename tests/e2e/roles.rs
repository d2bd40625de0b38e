//! The webhook in the place of the Go webhook, with nothing but the permissions that its chart gives.

use serde_json::json;

use crate::{
    BINARY,
    change::{change_to_second, create_first, user_of},
    control_plane::{Account, Webhook, grant},
    pods::{filled, gmsa, not_authorized, pod, slots},
    world::{NAMESPACE, USER, VISITOR, World},
};

pub async fn minimal_roles_of_the_go_chart_suffice(world: &mut World) {
    let account = Account { name: "go-chart", verbs: &["get"] };
    let kubeconfig = account.create(&world.control_plane).await;
    let port = world.webhook.address.port();
    world.webhook.kill();
    let folder = world.control_plane.folder();
    world.webhook = Webhook::start(BINARY, folder, "go-chart", &kubeconfig, &world.certificate, port).await;

    let text = create_first(world, "live").await;
    grant(world.client(), NAMESPACE, USER, &["live"]).await;
    let stored = world.stored(&user_of("live", "live-before")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("live", &text)}));
    // Nothing is remembered, so a change is seen at once.
    let text = change_to_second(world, "live").await;
    let stored = world.stored(&user_of("live", "live-after")).await;
    assert_eq!(slots(&stored), json!({"pod": filled("live", &text)}));
    let refusal = world.refused(&pod("live-denied", VISITOR, &json!({"securityContext": gmsa("live")}))).await;
    assert_eq!(refusal, not_authorized(VISITOR, "live"));

    let scrape = world.webhook.scrape().await;
    assert_eq!(scrape.sum("gmsa_webhook_spec_watch_state", &[r#"state="live""#]), 1.0);
    assert_eq!(scrape.sum("gmsa_webhook_spec_lookups_total", &[r#"source="cache""#]), 0.0);
    assert_eq!(scrape.sum("gmsa_webhook_specs_known", &[]), 0.0);
}

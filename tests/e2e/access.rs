//! Who may use what.

use serde_json::json;

use crate::{
    control_plane::{grant, service_account},
    pods::{denied, filled, gmsa, pod, slots},
    world::{NAMESPACE, WEB, World},
};

const NO_USE: &str = r#"service account "visitor" is not authorized to `use` GMSA cred spec "web""#;

pub async fn use_granted_a_second_ago(world: &mut World) {
    let pod = pod("granted", "newcomer", &json!({"securityContext": gmsa("web")}));
    service_account(world.client(), NAMESPACE, "newcomer").await;
    let refusal = world.refused(&pod).await;
    assert_eq!(refusal, denied(403, &NO_USE.replace("visitor", "newcomer")));
    grant(world.client(), NAMESPACE, "newcomer", &["web"]).await;
    assert_eq!(slots(&world.stored(&pod).await), json!({"pod": filled("web", WEB)}));
}

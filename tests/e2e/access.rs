//! Who may use what.

use serde_json::json;

use crate::{
    control_plane::{grant, service_account},
    pods::{container, denied, filled, gmsa, pod, slots},
    world::{NAMESPACE, USER, VISITOR, WEB, World},
};

const NO_USE: &str = r#"service account "visitor" is not authorized to `use` GMSA cred spec "web""#;

pub async fn unknown_spec(world: &mut World) {
    let spec = json!({"containers": [container("main", &gmsa("unknown"))]});
    let refusal = world.refused(&pod("unknown-spec", USER, &spec)).await;
    assert_eq!(refusal, denied(404, "cred spec unknown does not exist"));
}

pub async fn no_use(world: &mut World) {
    let spec = json!({"securityContext": gmsa("web")});
    assert_eq!(world.refused(&pod("no-use", VISITOR, &spec)).await, denied(403, NO_USE));
}

pub async fn use_granted_a_second_ago(world: &mut World) {
    let pod = pod("granted", "newcomer", &json!({"securityContext": gmsa("web")}));
    service_account(world.client(), NAMESPACE, "newcomer").await;
    let refusal = world.refused(&pod).await;
    assert_eq!(refusal, denied(403, &NO_USE.replace("visitor", "newcomer")));
    grant(world.client(), NAMESPACE, "newcomer", &["web"]).await;
    assert_eq!(slots(&world.stored(&pod).await), json!({"pod": filled("web", WEB)}));
}

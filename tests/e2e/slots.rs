//! Names become contents, in every kind of slot of a pod, for those who may use them.

use serde_json::{Value, json};

use crate::{
    control_plane::{Refusal, grant, service_account},
    pods::{container, denied, filled, gmsa, not_authorized, path, pod, slots},
    world::{NAMESPACE, SQL, USER, VISITOR, WEB, World},
};

pub async fn several_containers_and_specs(world: &mut World) {
    let containers = [
        container("sql", &gmsa("sql")),
        container("inherits", &json!({})),
        container("web", &gmsa("web")),
        container("user-only", &json!({"windowsOptions": {"runAsUserName": "NT AUTHORITY\\SYSTEM"}})),
    ];
    let mut sidecar = container("beside", &gmsa("sql"));
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({"securityContext": gmsa("web"), "containers": containers, "initContainers": [sidecar]});
    let expected = json!({
        "pod": filled("web", WEB),
        "containers/sql": filled("sql", SQL),
        "containers/web": filled("web", WEB),
        "containers/user-only": {"windowsOptions": {"runAsUserName": "NT AUTHORITY\\SYSTEM"}},
        "initContainers/beside": filled("sql", SQL),
    });
    assert_eq!(slots(&world.stored(&pod("several", USER, &spec)).await), expected);
}

pub async fn pod_without_gmsa_costs_no_call(world: &mut World) {
    let reviews = async || world.webhook.scrape().await.sum("gmsa_webhook_reviews_total", &[]);
    let before = reviews().await;
    let spec = json!({
        "initContainers": [container("before", &json!({"windowsOptions": {"runAsUserName": "ContainerUser"}}))],
    });
    world.stored(&pod("plain", USER, &spec)).await;
    // One by each webhook where the API server has no conditions to tell the pod by.
    let expected = if world.control_plane.has_match_conditions() { 0.0 } else { 2.0 };
    assert_eq!(reviews().await - before, expected);
}

/// Adds an ephemeral container `debugger` to a stored pod.
async fn debug(world: &World, pod: &Value, security_context: &Value) -> Result<Value, Refusal> {
    let patch = json!({"spec": {"ephemeralContainers": [container("debugger", security_context)]}});
    world.client().merge_lists(&format!("{}/ephemeralcontainers", path(pod)), &patch).await
}

pub async fn ephemeral_container_expanded_and_authorized(world: &mut World) {
    let pod = pod("debugged", USER, &json!({}));
    world.stored(&pod).await;
    debug(world, &pod, &gmsa("web")).await.unwrap();
    let stored = world.client().get(&path(&pod)).await.unwrap();
    assert_eq!(slots(&stored), json!({"ephemeralContainers/debugger": filled("web", WEB)}));
}

pub async fn ephemeral_container_refused_where_not_authorized(world: &mut World) {
    let pod = pod("not-debugged", VISITOR, &json!({}));
    let before = world.stored(&pod).await;
    assert_eq!(debug(world, &pod, &gmsa("web")).await, Err(not_authorized(VISITOR, "web")));
    assert_eq!(debug(world, &pod, &gmsa("unknown")).await, Err(denied(404, "cred spec unknown does not exist")));
    assert_eq!(world.client().get(&path(&pod)).await, Ok(before));
}

pub async fn use_granted_a_second_ago(world: &mut World) {
    let pod = pod("granted", "newcomer", &json!({"securityContext": gmsa("web")}));
    service_account(world.client(), NAMESPACE, "newcomer").await;
    let refusal = world.refused(&pod).await;
    assert_eq!(refusal, not_authorized("newcomer", "web"));
    grant(world.client(), NAMESPACE, "newcomer", &["web"]).await;
    assert_eq!(slots(&world.stored(&pod).await), json!({"pod": filled("web", WEB)}));
}

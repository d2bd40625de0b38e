//! Names become contents, in every kind of slot that a new pod has.

use serde_json::{Value, json};

use crate::{
    pods::{container, filled, gmsa, pod, slots},
    world::{SQL, USER, WEB, World},
};

/// Stores a pod of this spec, and holds its slots against what is expected.
async fn stored_slots(world: &World, name: &str, spec: Value, expected: Value) {
    let stored = world.stored(&pod(name, USER, &spec)).await;
    assert_eq!(slots(&stored), expected);
}

pub async fn several_containers_and_specs(world: &mut World) {
    let containers = [
        container("sql", &gmsa("sql")),
        container("inherits", &json!({})),
        container("web", &gmsa("web")),
        container("user-only", &json!({"windowsOptions": {"runAsUserName": "NT AUTHORITY\\SYSTEM"}})),
    ];
    let expected = json!({
        "pod": filled("web", WEB),
        "containers/sql": filled("sql", SQL),
        "containers/web": filled("web", WEB),
        "containers/user-only": {"windowsOptions": {"runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    });
    stored_slots(world, "several", json!({"securityContext": gmsa("web"), "containers": containers}), expected).await;
}

pub async fn sidecar(world: &mut World) {
    let mut sidecar = container("beside", &gmsa("sql"));
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({"initContainers": [sidecar]});
    stored_slots(world, "sidecar", spec, json!({"initContainers/beside": filled("sql", SQL)})).await;
}

pub async fn pod_without_gmsa_costs_no_call(world: &mut World) {
    let reviews = async || world.webhook.scrape().await.sum("gmsa_webhook_reviews_total", &[]);
    let before = reviews().await;
    let spec = json!({
        "initContainers": [container("before", &json!({"windowsOptions": {"runAsUserName": "ContainerUser"}}))],
    });
    let expected = json!({"initContainers/before": {"windowsOptions": {"runAsUserName": "ContainerUser"}}});
    stored_slots(world, "plain", spec, expected).await;
    // One by each webhook where the API server has no conditions to tell the pod by.
    let expected = if world.control_plane.has_match_conditions() { 0.0 } else { 2.0 };
    assert_eq!(reviews().await - before, expected);
}

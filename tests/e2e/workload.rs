//! Pods that a controller creates.

use serde_json::{Value, json};

use crate::{
    control_plane::until,
    pods::{self, denied, filled, gmsa, pod, slots},
    world::{NAMESPACE, USER, VISITOR, WEB, World},
};

/// The path of deployments and replica sets.
fn apps() -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}")
}

/// Creates a Deployment of one pod; `false`, with a word, where no controller would act on it.
async fn deploy(world: &World, name: &str, service_account: &str) -> bool {
    if !world.control_plane.has_controllers() {
        println!("        there is no kube-controller-manager: no pod comes of a Deployment");
        return false;
    }
    let labels = json!({"app": name});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": pod(name, service_account, &json!({"securityContext": gmsa("web")}))["spec"],
    });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    });
    world.client().create(&format!("{}/deployments", apps()), &deployment).await.unwrap();
    true
}

/// The first object of a collection that belongs to the Deployment, where there is one.
async fn first(world: &World, collection: &str, app: &str) -> Option<Value> {
    let list = world.client().get(&format!("{collection}?labelSelector=app%3D{app}")).await.unwrap();
    list["items"].get(0).cloned()
}

pub async fn pods_of_a_deployment(world: &mut World) {
    if deploy(world, "deployed", USER).await {
        let pod = until("the Deployment has a pod", async || first(world, pods::PATH, "deployed").await).await;
        assert_eq!(slots(&pod), json!({"pod": filled("web", WEB)}));
    }
}

pub async fn replica_set_says_why_it_has_no_pods(world: &mut World) {
    if deploy(world, "stuck", VISITOR).await {
        let replica_sets = format!("{}/replicasets", apps());
        let conditions = until("the ReplicaSet has a condition", async || {
            let replica_set = first(world, &replica_sets, "stuck").await?;
            replica_set["status"]["conditions"].as_array().cloned()
        })
        .await;
        let [condition] = &*conditions else { panic!("one condition is expected: {conditions:?}") };
        let message = r#"service account "visitor" is not authorized to `use` GMSA cred spec "web""#;
        let expected = ["ReplicaFailure", "True", "FailedCreate", &denied(403, message).message];
        assert_eq!(["type", "status", "reason", "message"].map(|field| condition[field].as_str().unwrap()), expected);
        assert_eq!(first(world, pods::PATH, "stuck").await, None);
    }
}

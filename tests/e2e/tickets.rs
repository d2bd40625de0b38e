//! Linux pods get the sidecar, and the API server takes them with it; a token for tickets is authorized when the pod is created, and cannot change.

use serde_json::{Value, json};

use crate::{
    control_plane::{Refusal, grant, namespace, service_account, until},
    pods::{PATH, denied, not_authorized},
    world::{USER, VISITOR, World},
};

/// The namespace of pods under Pod Security `restricted`.
const RESTRICTED: &str = "linux";

fn container(name: &str) -> Value {
    let security_context = json!({
        "allowPrivilegeEscalation": false,
        "runAsNonRoot": true,
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    json!({"name": name, "image": "images.invalid/app:1", "securityContext": security_context})
}

/// A pod that asks for tickets.
fn pod(name: &str, more: &Value) -> Value {
    let mut spec = json!({"os": {"name": "linux"}, "serviceAccountName": USER, "containers": [container("main")]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"name": name, "annotations": {"gmsa-webhook/tickets": "web"}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// A volume with a token for tickets, and one for another audience.
fn tokens(spec: &str) -> Value {
    let token = |audience: &str| json!({"serviceAccountToken": {"audience": audience, "path": audience}});
    json!([{"name": "by-hand", "projected": {"sources": [token("vault"), token(&format!("gmsa-tickets/{spec}"))]}}])
}

fn has_native_sidecars(world: &World) -> bool {
    world.control_plane.version.split('.').nth(1).unwrap().parse::<u32>().unwrap() >= 29
}

/// Names in a list of a container or a pod.
fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|item| item["name"].as_str().unwrap()).collect()
}

pub async fn linux_pods_are_taken_with_the_sidecar(world: &mut World) {
    let client = world.client();
    let restricted = format!("/api/v1/namespaces/{RESTRICTED}/pods");
    namespace(client, RESTRICTED, &json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    service_account(client, RESTRICTED, USER).await;
    grant(client, RESTRICTED, USER, &["web"]).await;
    if !has_native_sidecars(world) {
        let version = &world.control_plane.version;
        let cause =
            format!("they need native sidecars, which Kubernetes has from 1.29 on, and this cluster is {version}");
        let refusal = client.create(&restricted, &pod("old", &json!({}))).await.unwrap_err();
        assert_eq!(refusal, denied(422, &format!("this pod cannot have tickets: {cause}")));
        return;
    }
    // The webhook asks for the version when it starts.
    let dry_run = format!("{restricted}?dryRun=All");
    until("the webhook knows the cluster", async || client.create(&dry_run, &pod("known", &json!({}))).await.ok())
        .await;
    let own = json!({"initContainers": [container("migrate")]});
    for (path, name, more, mode) in [
        (restricted.as_str(), "plain", json!({}), "--mode=0444"),
        (&restricted, "grouped", json!({"securityContext": {"fsGroup": 2000}}), "--mode=0440"),
        (&restricted, "initialized", own, "--mode=0444"),
        (&restricted, "shared", json!({"shareProcessNamespace": true}), "--mode=0444"),
        // Pod Security `restricted` takes no such pods, with the sidecar or without.
        (PATH, "on-the-host", json!({"hostNetwork": true}), "--mode=0444"),
    ] {
        client.create(path, &pod(name, &more)).await.unwrap();
        let stored = client.get(&format!("{path}/{name}")).await.unwrap();
        let spec = &stored["spec"];
        let sidecar = &spec["initContainers"][0];
        assert_eq!((&sidecar["name"], &sidecar["restartPolicy"]), (&json!("gmsa-tickets"), &json!("Always")), "{name}");
        assert!(sidecar["args"].as_array().unwrap().contains(&json!(mode)), "{name}: {sidecar}");
        let audience = spec.pointer("/volumes").unwrap().as_array().unwrap().iter().find(|volume| {
            volume.pointer("/projected/sources/0/serviceAccountToken/audience") == Some(&json!("gmsa-tickets/web"))
        });
        assert_eq!(audience.unwrap()["name"], "gmsa-tickets-token", "{name}");
        let others =
            ["initContainers", "containers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
        for other in others.filter(|container| container["name"] != "gmsa-tickets") {
            assert_eq!(names(&other["env"]), ["KRB5CCNAME", "KRB5_CONFIG"], "{name}");
            let mounts = other["volumeMounts"].as_array().unwrap();
            let tickets = json!({"name": "gmsa-tickets", "mountPath": "/var/run/gmsa", "readOnly": true});
            assert!(mounts.contains(&tickets), "{name}: {other}");
            assert!(!names(&other["volumeMounts"]).contains(&"gmsa-tickets-token"), "{name}: {other}");
        }
    }
}

pub async fn a_token_for_tickets_is_authorized_and_cannot_change(world: &mut World) {
    let client = world.client();
    let mut by_hand = pod("by-hand", &json!({"volumes": tokens("web")}));
    by_hand["metadata"].as_object_mut().unwrap().remove("annotations");
    let mut of_visitor = by_hand.clone();
    of_visitor["spec"]["serviceAccountName"] = json!(VISITOR);
    let reviewed = world.control_plane.has_match_conditions();
    assert!(reviewed || !has_native_sidecars(world));
    assert_eq!(world.refused(&of_visitor).await, not_authorized(VISITOR, "web"));
    let stored = world.stored(&by_hand).await;
    let path = format!("{PATH}/by-hand");
    // The annotation of a pod can change, and does nothing then; its volumes cannot.
    client.merge(&path, &json!({"metadata": {"annotations": {"gmsa-webhook/tickets": "sql"}}})).await.unwrap();
    let volumes = stored["spec"]["volumes"].clone();
    let changed: Value =
        serde_json::from_str(&volumes.to_string().replace("gmsa-tickets/web", "gmsa-tickets/sql")).unwrap();
    assert_ne!(changed, volumes);
    let Refusal { code, message } = client.merge(&path, &json!({"spec": {"volumes": changed}})).await.unwrap_err();
    let forbidden = "Pod \"by-hand\" is invalid: spec: Forbidden: pod updates may not change fields other than";
    assert!(code == 422 && message.starts_with(forbidden), "{code} {message}");
    // An ephemeral container can mount a volume of the pod, and brings none.
    let mount = json!({"name": "by-hand", "mountPath": "/tokens"});
    let debugger = json!({"name": "debugger", "image": "images.invalid/debug:1", "volumeMounts": [mount]});
    let change = json!({"spec": {"ephemeralContainers": [debugger]}});
    client.merge_lists(&format!("{path}/ephemeralcontainers"), &change).await.unwrap();
    let after = client.get(&path).await.unwrap();
    assert_eq!(after["spec"]["volumes"], volumes);
    assert_eq!(names(&after["spec"]["ephemeralContainers"]), ["debugger"]);
}

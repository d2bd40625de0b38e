//! Who gets no tickets: real tokens that are bound to something else, of pods that are gone, or for something else.

use serde_json::json;

use crate::world::{World, audience, service};

const TOKEN: (u16, &str) = (401, "ticket-token");
const POD: (u16, &str) = (403, "ticket-pod");

#[tokio::test]
async fn no_other_token_gets_tickets() {
    service("Attack", &["HTTP/attack.contoso.com"]);
    let world = World::start("Attack").await;
    let services = Some("HTTP/attack.contoso.com");
    for (name, account, services) in
        [("web", "AttackApp", services), ("admin", "AttackApp", services), ("windows", "AttackApp", None)]
    {
        world.spec(name, account, services).await;
    }
    // It names the account in words, and another domain by the SID.
    let mut foreign = World::spec_object("foreign", "AttackApp", services);
    foreign["credspec"]["DomainJoinConfig"]["Sid"] = json!("S-1-5-21-1-2-3");
    world.plane.client.create(gmsa_test_support::control_plane::SPECS, &foreign).await.unwrap();
    world.user_of("web", &["web", "windows", "foreign", "gone"]).await;
    world.user_of("other", &[]).await;
    let client = &world.plane.client;
    client.create("/api/v1/nodes", &json!({"metadata": {"name": "node"}})).await.unwrap();
    let secret = json!({"metadata": {"name": "secret"}});
    let secret = client.create("/api/v1/namespaces/shop/secrets", &secret).await.unwrap();
    let node = client.get("/api/v1/nodes/node").await.unwrap();

    let pod = world.pod("web", "web", "web").await;
    let good = world.token_of(&pod, "web").await;
    let plain = world.pod_with("plain", "web", json!([])).await;
    let annotation = json!({"metadata": {"annotations": {"gmsa-webhook/tickets": "web"}}});
    client.merge(&plain.path(), &annotation).await.unwrap();
    let other = world.pod("other", "other", "web").await;
    let bound = |kind: &str, object: &serde_json::Value| json!({"kind": kind, "apiVersion": "v1", "name": object["metadata"]["name"], "uid": object["metadata"]["uid"]});
    let web = &audience("web");
    for (what, token, spec, expected) in [
        ("the pod's own", good.clone(), "web", (200, "")),
        ("none", String::new(), "web", TOKEN),
        ("no token", "eyJhbGciOiJub25lIn0.e30.".to_owned(), "web", TOKEN),
        ("unbound", world.token("web", web, json!(null)).await, "web", TOKEN),
        ("bound to a node", world.token("web", web, bound("Node", &node)).await, "web", TOKEN),
        ("bound to a Secret", world.token("web", web, bound("Secret", &secret)).await, "web", TOKEN),
        ("for another credential spec", good.clone(), "admin", TOKEN),
        (
            "for the API server",
            world.token("web", "https://kubernetes.default.svc", pod.reference()).await,
            "web",
            TOKEN,
        ),
        (
            "for the webhook's audience without a name",
            world.token("web", "gmsa-tickets/", pod.reference()).await,
            "web",
            TOKEN,
        ),
        ("minted for a pod that mounts none, and was annotated later", world.token_of(&plain, "web").await, "web", POD),
        ("minted for a pod that mounts another one", world.token_of(&pod, "windows").await, "windows", POD),
        (
            "of a service account without permission",
            world.token_of(&other, "web").await,
            "web",
            (403, "not-authorized"),
        ),
    ] {
        let answer = world.answer(&token, spec).await;
        assert_eq!((answer.0, &*answer.1), expected, "{what}: {}", world.logs());
    }
    // The broker keeps the rest of a pod's requests for later: each of these has a pod of its own.
    for (spec, expected) in [
        ("windows", (403, "ticket-services")),
        ("foreign", (403, "account-differs")),
        ("gone", (404, "spec-missing")),
        ("admin", (403, "not-authorized")),
    ] {
        let pod = world.pod(&format!("web-{spec}"), "web", spec).await;
        let answer = world.answer(&world.token_of(&pod, spec).await, spec).await;
        assert_eq!((answer.0, &*answer.1), expected, "{spec}: {}", world.logs());
    }
}

#[tokio::test]
async fn a_pod_that_ends_gets_no_more_tickets() {
    service("End", &["HTTP/end.contoso.com"]);
    let world = World::start("End").await;
    world.web("EndApp", "HTTP/end.contoso.com").await;
    let client = &world.plane.client;

    for phase in ["Succeeded", "Failed"] {
        let pod = world.pod(&phase.to_lowercase(), "web", "web").await;
        let token = world.token_of(&pod, "web").await;
        assert_eq!(world.answer(&token, "web").await.0, 200);
        client.merge(&format!("{}/status", pod.path()), &json!({"status": {"phase": phase}})).await.unwrap();
        assert_eq!(world.answer(&token, "web").await, (403, "ticket-pod".to_owned()), "{phase}");
    }

    let pod = world.pod("deleted", "web", "web").await;
    let token = world.token_of(&pod, "web").await;
    assert_eq!(world.answer(&token, "web").await.0, 200);
    world.delete(&pod).await;
    assert_eq!(world.answer(&token, "web").await, (403, "ticket-pod".to_owned()));
    world.release(&pod).await;
    // The API server may remember the token for ten seconds, or know that its pod is gone.
    let refused = |answer: (u16, String)| matches!((answer.0, &*answer.1), (401, "ticket-token") | (403, "ticket-pod"));
    assert!(refused(world.answer(&token, "web").await));

    let again = world.pod("deleted", "web", "web").await;
    assert!(refused(world.answer(&token, "web").await));
    assert_eq!(world.answer(&world.token_of(&again, "web").await, "web").await.0, 200);
}

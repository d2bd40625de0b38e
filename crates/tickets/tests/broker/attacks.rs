//! Who tries to get tickets without having a right to them, and how: each row of the list of attacks that the broker itself can repel.

use gmsa_test_support::Verb;
use serde_json::json;

use crate::world::{World, bound_to, pod, spec};

#[tokio::test]
async fn a_token_for_one_credential_spec_opens_no_other() {
    let world = World::start().await;
    world.api.apply(spec("admin", Some("*")));
    world.api.grant_only(&[("shop", "web", "webapp1"), ("shop", "web", "admin")]);
    let answer = world.ask_for("admin", "token-1").await;
    assert_eq!(answer.refusal(), (401, "ticket-token", "the token is not for the audience gmsa-tickets/admin"));
    assert_eq!(world.api.count(Verb::Create, "tokenreviews"), 0);
    // What a token says of itself opens nothing.
    let says = ["gmsa-tickets/webapp1", "gmsa-tickets/admin"];
    world.accept_token_that_says("forged", &says, &says[..1], bound_to("web-1", "u1"));
    let answer = world.ask_for("admin", "forged").await;
    let message = "the API server does not accept the token for the audience gmsa-tickets/admin: [invalid bearer token, token audiences \
                   [\"gmsa-tickets/webapp1\"] is invalid for the target audiences [\"gmsa-tickets/admin\"]]";
    assert_eq!(answer.refusal(), (401, "ticket-token", message));
}

#[tokio::test]
async fn a_token_that_somebody_else_requested_opens_nothing_that_the_volumes_do_not() {
    let world = World::start().await;
    world.api.apply(spec("admin", Some("*")));
    world.api.grant_only(&[("shop", "web", "webapp1"), ("shop", "web", "admin")]);
    // `create serviceaccounts/token`, bound to the pod, for an audience that it has no volume of.
    world.accept_token("minted", &["gmsa-tickets/admin"], bound_to("web-1", "u1"));
    let answer = world.ask_for("admin", "minted").await;
    let message = "the pod \"web-1\" has no projected token with the audience gmsa-tickets/admin in its volumes";
    assert_eq!(answer.refusal(), (403, "ticket-pod", message));
    // Annotations say nothing: anyone who may patch the pod writes them.
    let mut annotated = pod("web-1", "u1");
    annotated["metadata"]["annotations"] = json!({"gmsa-webhook/tickets": "admin"});
    world.api.apply(annotated);
    assert_eq!(world.ask_for("admin", "minted").await.refusal(), (403, "ticket-pod", message));
}

#[tokio::test]
async fn a_token_of_a_pod_that_was_created_again_is_not_that_of_the_new_one() {
    let world = World::start().await;
    assert_eq!(world.ask().await.status, 200);
    world.api.delete("pods", "shop", "web-1");
    assert_eq!(world.ask().await.status, 403);
    world.api.apply(pod("web-1", "u2"));
    assert_eq!(world.ask().await.status, 403);
    world.accept_token("token-2", &["gmsa-tickets/webapp1"], bound_to("web-1", "u2"));
    assert_eq!(world.ask_for("webapp1", "token-2").await.status, 200);
}

#[tokio::test]
async fn the_names_of_a_token_lead_to_no_other_object() {
    let world = World::start().await;
    for (pod, namespace) in
        [("../secrets/x", "shop"), ("web-1?x", "shop"), ("web-1", "shop/../kube-system"), ("web-1", "..")]
    {
        let mut user = bound_to(pod, "u1");
        user["username"] = json!(format!("system:serviceaccount:{namespace}:web"));
        world.accept_token("token-1", &["gmsa-tickets/webapp1"], user);
        assert_eq!(world.ask().await.status, 401, "{pod} {namespace}");
    }
    assert_eq!(world.api.count(Verb::Get, ""), 0);
}

#[tokio::test]
async fn a_revoked_right_ends_new_tickets() {
    let world = World::start().await;
    assert_eq!(world.ask().await.status, 200);
    world.api.grant_only(&[]);
    let message = "service account \"web\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    assert_eq!(world.ask().await.refusal(), (403, "not-authorized", message));
}

#[tokio::test]
async fn a_credential_spec_that_leads_to_another_account_gives_none_of_the_first() {
    let world = World::start().await;
    assert_eq!(world.ask().await.status, 200);
    let mut edited = spec("webapp1", Some("HTTP/app.contoso.com"));
    edited["credspec"]["DomainJoinConfig"]["Sid"] = json!("S-1-5-21-7-8-9");
    world.api.apply(edited);
    let answer = world.ask().await;
    let message =
        "the account \"webapp1\" of contoso.com is in the domain S-1-5-21-1-2-3, the cred spec says S-1-5-21-7-8-9";
    assert_eq!(answer.refusal(), (403, "account-differs", message));
}

#[tokio::test]
async fn a_list_of_services_gives_no_ticket_granting_ticket() {
    const OF_THE_KDC: &str = "a service of the KDC itself: * alone gives a ticket-granting ticket";
    const UNREADABLE: &str =
        "which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433";
    for (word, why) in [
        ("krbtgt/CONTOSO.COM", OF_THE_KDC),
        ("KRBTGT/contoso.com", OF_THE_KDC),
        ("kadmin/changepw", OF_THE_KDC),
        // No ticket is for such a name, so none would stand in front of the logon's own.
        ("HTTP/a//b", UNREADABLE),
        ("HTTP/a:1433/", UNREADABLE),
        ("HTTP/a@CONTOSO.COM", UNREADABLE),
        ("HTTP/a\u{0}b", UNREADABLE),
        ("HTTP/\u{fc}", UNREADABLE),
        ("\u{212a}rbtgt/CONTOSO.COM", UNREADABLE),
    ] {
        let world = World::start().await;
        world.api.apply(spec("webapp1", Some(word)));
        let answer = world.ask().await;
        let message = format!(
            "cred spec webapp1 gives no tickets: its annotation gmsa-webhook/services lists {}, {why}",
            gmsa_core::quote::Quoted::new(word)
        );
        assert_eq!(answer.refusal(), (403, "ticket-services", message.as_str()));
        assert_eq!(world.kdc.asked(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_token_of_another_namespace_is_not_one_of_the_pod() {
    let world = World::start().await;
    world.api.grant_only(&[("shop", "web", "webapp1"), ("other", "web", "webapp1")]);
    let mut user = bound_to("web-1", "u1");
    user["username"] = json!("system:serviceaccount:other:web");
    world.accept_token("token-1", &["gmsa-tickets/webapp1"], user);
    assert_eq!(world.ask().await.refusal(), (403, "ticket-pod", "the pod \"web-1\" does not exist any more"));
    // A pod of the same name there has another uid.
    let mut elsewhere = pod("web-1", "u2");
    elsewhere["metadata"]["namespace"] = json!("other");
    world.api.apply(elsewhere);
    let message = "the pod \"web-1\" has another uid than the token: it was replaced";
    assert_eq!(world.ask().await.refusal(), (403, "ticket-pod", message));
}

#[tokio::test]
async fn a_token_is_in_no_message() {
    let world = World::start().await;
    // An authenticator of others may quote what it got.
    world.accept_token("token-1", &["gmsa-tickets/webapp1"], bound_to("web-1", "u1"));
    let token = world.tokens.lock().unwrap()["token-1"].clone();
    let said = json!({"status": {"authenticated": false, "error": format!("no such token: {token}")}});
    world.api.fault(Verb::Create, "tokenreviews", 1, gmsa_test_support::Fault::Object(said));
    let answer = world.ask().await;
    let message =
        "the API server does not accept the token for the audience gmsa-tickets/webapp1: no such token: TOKEN";
    assert_eq!(answer.refusal(), (401, "ticket-token", message));
}

#[tokio::test]
async fn a_token_that_is_too_long_is_not_sent_on() {
    let world = World::start().await;
    let answer = world.ask_for("webapp1", &"x".repeat(6 * 1024 + 1)).await;
    assert_eq!(answer.refusal(), (401, "ticket-token", "the token has more than 6144 bytes"));
    assert_eq!(world.api.count(Verb::Create, ""), 0);
}

//! Every status and cause of the interface: status, reason, whole message, and the keys of an answer.

use gmsa_test_support::{
    Fault, Verb,
    directory::{DirectoryAccount, DirectoryConduct},
    kdc::Conduct,
};
use serde_json::json;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::world::{SERVICES, World, bound_to, pod, spec};

#[tokio::test]
async fn a_pod_gets_the_tickets_of_its_account() {
    let world = World::start().await;
    let before = OffsetDateTime::now_utc();
    let answer = world.ask().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("\r\ncontent-type: application/json\r\n"), "{}", answer.head);
    assert!(answer.head.contains("\r\ncache-control: no-store\r\n"), "{}", answer.head);
    let keys: Vec<&String> = answer.body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ccache", "credentialSpec", "expires", "krb5Conf", "principal", "renewAfter", "services"]);
    assert_eq!(answer.body["credentialSpec"], "webapp1");
    assert_eq!(answer.body["principal"], "WebApp1$@CONTOSO.COM");
    assert_eq!(answer.body["services"], json!(["HTTP/app.contoso.com", "MSSQLSvc/sql1.contoso.com:1433"]));
    let time = |key: &str| OffsetDateTime::parse(answer.body[key].as_str().unwrap(), &Rfc3339).unwrap();
    let (life, renewal) = (time("expires") - before, time("renewAfter") - before);
    assert!((Duration::minutes(59)..=Duration::minutes(61)).contains(&life), "{life}");
    assert!((Duration::minutes(29)..=Duration::minutes(31)).contains(&renewal), "{renewal}");
    let ccache = answer.ccache();
    assert_eq!(ccache[..16], [5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    let holds = |text: &str| ccache.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(holds("app.contoso.com") && holds("sql1.contoso.com:1433") && !holds("krbtgt"));
    let conf = answer.body["krb5Conf"].as_str().unwrap();
    assert!(conf.contains("default_ccache_name = FILE:/var/run/gmsa/krb5cc\n") && !conf.contains("[realms]"), "{conf}");
    assert_eq!(
        world.kdc.asked(),
        ["AS WebApp1$", "AS+ WebApp1$", "TGS HTTP/app.contoso.com", "TGS MSSQLSvc/sql1.contoso.com:1433"]
    );
    assert!(world.shows("gmsa_tickets_requests_total{outcome=\"given\"} 1"));
}

#[tokio::test]
async fn short_tickets_are_renewed_two_minutes_before_their_end() {
    let world = World::start().await;
    for (minutes, renewal) in [(3, 1), (1, 0)] {
        world.kdc.most(Duration::minutes(minutes));
        world.api.apply(spec("webapp1", Some("*")));
        let before = OffsetDateTime::now_utc();
        let answer = world.ask().await;
        let renew_after = OffsetDateTime::parse(answer.body["renewAfter"].as_str().unwrap(), &Rfc3339).unwrap();
        let left = renew_after - before - Duration::minutes(renewal);
        assert!((Duration::seconds(-2)..Duration::seconds(30)).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn a_ticket_granting_ticket_is_given_for_a_star_alone() {
    let world = World::start().await;
    world.api.apply(spec("webapp1", Some("*")));
    let (first, second) = (world.ask().await, world.ask().await);
    assert_eq!((first.status, &first.body["services"]), (200, &json!(["*"])));
    let ccache = first.ccache();
    assert!(ccache.windows(6).any(|bytes| bytes == b"krbtgt"));
    assert_ne!(ccache, second.ccache(), "each pod has a session key of its own");
    let conf = first.body["krb5Conf"].as_str().unwrap();
    assert!(conf.contains(&format!("kdc = {}\n", world.kdc.address)), "{conf}");
    // The second logon uses the kept key.
    assert_eq!(world.kdc.asked(), ["AS WebApp1$", "AS+ WebApp1$", "AS+ WebApp1$"]);
}

/// A cause: what is changed, and the answer.
type Row = (fn(&World), u16, &'static str, &'static str);

fn joined(world: &World, field: &str, value: &str) {
    let mut spec = spec("webapp1", Some(SERVICES));
    spec["credspec"]["DomainJoinConfig"][field] = json!(value);
    world.api.apply(spec);
}

fn account(world: &World, change: impl Fn(&mut DirectoryAccount)) {
    let mut account = DirectoryAccount::with_password(1);
    change(&mut account);
    world.directory.account("WebApp1", account);
}

const ROWS: &[Row] = &[
    // 401
    (
        |world| world.accept_token("token-1", &["https://kubernetes.default.svc"], bound_to("web-1", "u1")),
        401,
        "ticket-token",
        "the token is not for the audience gmsa-tickets/webapp1",
    ),
    // 403: the pod. The other causes are in `broker/caller.rs`.
    (|world| world.api.delete("pods", "shop", "web-1"), 403, "ticket-pod", "the pod \"web-1\" does not exist any more"),
    // 404, 403, 501: the credential spec
    (
        |world| world.api.delete("gmsacredentialspecs", "", "webapp1"),
        404,
        "spec-missing",
        "cred spec webapp1 does not exist",
    ),
    (
        |world| _ = world.api.apply(spec("webapp1", None)),
        403,
        "ticket-services",
        "cred spec webapp1 gives no tickets: its owner lists no services in the annotation gmsa-webhook/services",
    ),
    (
        |world| joined(world, "DnsName", "fabrikam.com"),
        501,
        "ticket-domain",
        "cred spec webapp1 is of the domain \"fabrikam.com\", which the broker does not have",
    ),
    // 403: use
    (
        |world| {
            world.api.grant_only(&[
                ("shop", "web", "other"),
                ("shop", "admin", "webapp1"),
                ("other", "web", "webapp1"),
            ]);
        },
        403,
        "not-authorized",
        "service account \"web\" is not authorized to `use` GMSA cred spec \"webapp1\"",
    ),
    // 403: the account
    (
        |world| joined(world, "MachineAccountName", "Other"),
        403,
        "account-unknown",
        "there is no account \"other\" in contoso.com",
    ),
    (
        |world| account(world, |account| account.domain_sid = [4, 5, 6]),
        403,
        "account-differs",
        "the account \"webapp1\" of contoso.com is in the domain S-1-5-21-4-5-6, the cred spec says S-1-5-21-1-2-3",
    ),
    (
        |world| account(world, |account| account.sam = Some("WébApp1")),
        403,
        "account-differs",
        "the account \"webapp1\" is in the domain contoso.com under the name \"WébApp1\", the cred spec says \"webapp1\"",
    ),
    (
        |world| account(world, |account| account.class = "computer"),
        403,
        "account-class",
        "\"webapp1\" is not a group Managed Service Account of contoso.com, but \"computer\"",
    ),
    // 409
    (
        |world| world.kdc.conduct(Conduct::Refuse(14, None)),
        409,
        "ticket-encryption",
        "WebApp1$@CONTOSO.COM cannot log on: the KDC (Kerberos code 14) has no AES key of it",
    ),
    (
        |world| world.kdc.conduct(Conduct::Rc4),
        409,
        "ticket-encryption",
        "WebApp1$@CONTOSO.COM cannot log on: the KDC has no AES key of it",
    ),
    (
        |world| world.kdc_knows(9),
        409,
        "logon-denied",
        "WebApp1$@CONTOSO.COM cannot log on: the KDC rejects the passwords that the directory gives; they are not tried again for a while",
    ),
    // 502
    (
        |world| account(world, |account| account.current = None),
        502,
        "account-password",
        "the user \"broker@contoso.com\" may not retrieve the password of WebApp1, or the domain makes none",
    ),
    (
        |world| _ = world.api.apply(spec("webapp1", Some("HTTP/app.contoso.com, HTTP/unknown.contoso.com"))),
        502,
        "principal-unknown",
        "the KDC of CONTOSO.COM refuses: it does not know the service HTTP/unknown.contoso.com, or knows it twice (Kerberos code 7)",
    ),
    (
        |world| world.kdc.conduct(Conduct::Answer(b"\x7E\x00".to_vec())),
        502,
        "ticket-answer",
        "CONTOSO.COM: the answer of the KDC cannot be read: reply",
    ),
    // 503
    (
        |world| world.api.fault(Verb::Create, "tokenreviews", 9, Fault::forbidden()),
        503,
        "ticket-check",
        "the token cannot be checked: the API server answered 403: not allowed here",
    ),
    (
        |world| world.api.fault(Verb::Get, "/pods/", 9, Fault::forbidden()),
        503,
        "ticket-check",
        "the pod \"web-1\" cannot be read: the API server answered 403: not allowed here",
    ),
    (
        |world| world.api.fault(Verb::Get, "gmsacredentialspecs", 9, Fault::forbidden()),
        503,
        "spec-unreadable",
        "unable to retrieve the contents of cred spec webapp1: the API server answered 403: not allowed here",
    ),
    (
        |world| world.api.fault(Verb::Get, "gmsacredentialspecs", 9, Fault::Object(spec("other", Some("*")))),
        503,
        "spec-unreadable",
        "unable to retrieve the contents of cred spec webapp1: the API server's answer is about another object",
    ),
    (
        |world| world.api.fault(Verb::Create, "localsubjectaccessreviews", 9, Fault::forbidden()),
        503,
        "authorization-failed",
        "unable to check whether service account \"web\" is authorized to `use` GMSA cred spec \"webapp1\": the API server answered 403: \
         not allowed here",
    ),
];

/// What a pod gets is this refusal, which is counted.
async fn refused(world: &World, status: u16, reason: &str, message: &str) {
    let answer = world.ask().await;
    assert_eq!(answer.status, status, "{message}");
    assert_eq!(answer.refusal(), (status, reason, message));
    let retry = answer.head.contains("\r\nretry-after: 10\r\n");
    assert_eq!(retry, status == 503, "{message}: {}", answer.head);
    assert!(world.shows(&format!("gmsa_tickets_requests_total{{outcome=\"{reason}\"}} 1")), "{reason}");
}

#[tokio::test]
async fn each_cause_has_its_status_and_words() {
    for (change, status, reason, message) in ROWS {
        let world = World::start().await;
        change(&world);
        refused(&world, *status, reason, message).await;
    }
}

#[tokio::test]
async fn each_refusal_of_a_logon_has_its_status_and_words() {
    let policy =
        "a policy of the domain refuses it, or requires armored requests (FAST), which the broker does not send";
    let expired = "its password has expired, or must be changed first";
    for (code, status, answer, reason, why) in [
        (18, Some(0xC000_0072), 409, "account-disabled", "it is disabled"),
        (18, Some(0xC000_0193), 409, "account-expired", "it has expired"),
        (18, Some(0xC000_0234), 409, "account-locked", "it is locked out"),
        (18, None, 409, "account-revoked", "it is disabled, locked out or has expired"),
        (23, Some(0xC000_0224), 409, "password-expired", expired),
        (6, None, 409, "account-unknown", "the KDC does not know it"),
        (12, None, 409, "logon-restricted", policy),
        (68, None, 502, "kerberos-configuration", "it does not serve the account's realm"),
        (60, None, 502, "logon-denied", "for an unknown reason"),
        (29, None, 503, "kdc-unreachable", "it is not available"),
    ] {
        let world = World::start().await;
        world.kdc.conduct(Conduct::Refuse(code, status));
        let who = if answer == 409 { "WebApp1$@CONTOSO.COM cannot log on" } else { "the KDC of CONTOSO.COM refuses" };
        let status = status.map(|status: u32| format!(", status {status:#x}")).unwrap_or_default();
        refused(&world, answer, reason, &format!("{who}: {why} (Kerberos code {code}{status})")).await;
    }
}

#[tokio::test]
async fn nothing_is_asked_beyond_the_check_that_fails() {
    let world = World::start().await;
    let calls = || {
        let counts = [(Verb::Create, "tokenreviews"), (Verb::Get, "/pods/"), (Verb::Get, "gmsacredentialspecs")]
            .map(|(verb, path)| world.api.count(verb, path));
        world.api.forget_requests();
        (counts, world.directory.asked().len(), world.kdc.asked().len())
    };
    for token in ["unknown", "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmVk"] {
        assert_eq!(world.ask_for("webapp1", token).await.status, 401);
        assert_eq!(calls(), ([0, 0, 0], 0, 0));
    }
    world.accept_token_that_says("forged", &["gmsa-tickets/webapp1"], &[], bound_to("web-1", "u1"));
    assert_eq!(world.ask_for("webapp1", "forged").await.status, 401);
    assert_eq!(calls(), ([1, 0, 0], 0, 0));
    world.api.delete("pods", "shop", "web-1");
    assert_eq!(world.ask().await.status, 403);
    assert_eq!(calls(), ([1, 1, 0], 0, 0));
    world.api.apply(pod("web-1", "u1"));
    world.api.grant_only(&[]);
    assert_eq!(world.ask().await.status, 403);
    // Without `use` nobody learns whether there is such a credential spec.
    assert_eq!(calls(), ([1, 1, 0], 0, 0));
}

#[tokio::test]
async fn what_is_not_a_request_for_tickets_is_refused_in_json() {
    const JSON: &str = "authorization: Bearer token-1\r\ncontent-type: application/json\r\n";
    const BODY: &str = r#"{"credentialSpec": "webapp1"}"#;
    let long = format!(r#"{{"credentialSpec": "{}"}}"#, "a".repeat(4096));
    let unreadable = "the body must be {\"credentialSpec\": \"NAME\"} and nothing else";
    let missing = "the request has no token: send Authorization: Bearer TOKEN";
    let world = World::start().await;
    for (line, headers, body, status, message) in [
        ("POST /v1/tickets", JSON, "", 400, unreadable),
        ("POST /v1/tickets", JSON, "{}", 400, unreadable),
        ("POST /v1/tickets", JSON, "[\"webapp1\"]", 400, unreadable),
        ("POST /v1/tickets", JSON, r#"{"credentialSpec": 7}"#, 400, unreadable),
        ("POST /v1/tickets", JSON, r#"{"credentialSpec": "webapp1", "x": 1}"#, 400, unreadable),
        ("POST /v1/tickets", JSON, r#"{"credentialSpec": "webapp1", "credentialSpec": "webapp1"}"#, 400, unreadable),
        ("POST /v1/tickets", JSON, r#"{"credentialspec": "webapp1"}"#, 400, unreadable),
        ("POST /v1/tickets", JSON, &long, 400, "the body is larger than 4096 bytes"),
        (
            "POST /v1/tickets",
            JSON,
            r#"{"credentialSpec": "../Web"}"#,
            400,
            "the name \"../Web\" is not a lower-case DNS subdomain",
        ),
        ("POST /v1/tickets", JSON, r#"{"credentialSpec": ""}"#, 400, "the name \"\" is not a lower-case DNS subdomain"),
        (
            "POST /v1/tickets",
            "authorization: Bearer token-1\r\n",
            BODY,
            400,
            "the content type must be application/json",
        ),
        ("POST /v1/tickets", "content-type: application/json\r\n", BODY, 401, missing),
        ("POST /v1/tickets", "authorization: Basic eDp5\r\ncontent-type: application/json\r\n", BODY, 401, missing),
        ("POST /v1/tickets", "authorization: Bearer \r\ncontent-type: application/json\r\n", BODY, 401, missing),
        (
            "POST /v1/tickets",
            "authorization: Bearer token-1\r\nauthorization: Bearer token-2\r\ncontent-type: application/json\r\n",
            BODY,
            401,
            "the request has more than one Authorization: send one token",
        ),
        ("POST /v1/ticket", JSON, BODY, 404, "there is no path \"/v1/ticket\": tickets are at /v1/tickets"),
        ("GET /v1/ca", "", "", 404, "there is no path \"/v1/ca\": tickets are at /v1/tickets"),
        ("GET /v1/tickets", "", "", 405, "/v1/tickets does not take GET"),
        ("DELETE /v1/tickets", JSON, "", 405, "/v1/tickets does not take DELETE"),
    ] {
        let answer = world.send(line, headers, body).await;
        let reason = if status == 401 { "ticket-token" } else { "ticket-request" };
        assert_eq!(answer.refusal(), (status, reason, message), "{line} {headers} {body}");
        let has = |line: &str| answer.head.contains(&format!("\r\n{line}\r\n"));
        assert!(has("content-type: application/json"), "{}", answer.head);
        assert_eq!(
            [has("www-authenticate: Bearer"), has("allow: POST")],
            [status == 401, status == 405],
            "{}",
            answer.head
        );
    }
    assert_eq!(world.api.count(Verb::Create, ""), 0);
}

#[tokio::test]
async fn a_pod_that_asks_too_often_is_told_to_wait() {
    let world = World::start().await;
    world.add_pod("web-2", "webapp1");
    let mut answer = world.ask().await;
    // It has a request more each 3 s, which takes far less.
    for _ in 0..1000 {
        if answer.status != 200 {
            break;
        }
        answer = world.ask().await;
    }
    let message = "too many requests of this pod: it has 10 at once, and one more each 3 s";
    assert_eq!(answer.refusal(), (429, "ticket-rate", message));
    // When it has a request again.
    let is_soon = |seconds| answer.head.contains(&format!("\r\nretry-after: {seconds}\r\n"));
    assert!((1..=3).any(is_soon), "{}", answer.head);
    assert_eq!(world.ask_for("webapp1", "web-2").await.status, 200);
}

#[tokio::test]
async fn the_user_of_the_broker_may_not_log_on() {
    for (status, why) in
        [("533", "the account is disabled"), ("775", "the account is locked out"), ("532", "the password has expired")]
    {
        let world = World::start().await;
        world.directory.conduct(DirectoryConduct::RefuseUser(status));
        let message = format!("ldaps://{} does not let broker@contoso.com in: {why}", world.directory.address);
        assert_eq!(world.ask().await.refusal(), (502, "ldap-credentials", message.as_str()));
        // No password is called wrong, so it may be tried again.
        world.directory.conduct(DirectoryConduct::Honest);
        assert_eq!(world.ask().await.status, 200);
    }
}

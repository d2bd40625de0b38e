//! Services of a second domain, NORTHWIND.COM, which trusts the first one: `tests/directory.sh` makes both.

use gmsa_test_support::until;
use serde_json::json;

use crate::{clients::WebServer, services::AES, world::World};

const HOST: &str = "web.northwind.com";

#[tokio::test]
async fn a_pod_logs_on_to_a_service_of_a_listed_domain_and_of_no_other() {
    let mut world = World::start("Refer").await;
    world.restart(|domain| domain["referrals"] = json!([{"name": "northwind.com"}])).await;
    let sql = "MSSQLSvc/sql.northwind.com:1433";
    world.web("ReferApp", &format!("HTTP/{HOST}, {sql}")).await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;

    // Each ticket under both realms, none between realms.
    let listed = agent.prints("klist -e");
    assert!(listed.contains("\nDefault principal: ReferApp$@CONTOSO.COM\n"), "{listed}");
    for service in [format!("HTTP/{HOST}"), sql.to_owned()] {
        for realm in ["NORTHWIND.COM", "CONTOSO.COM"] {
            assert!(listed.contains(&format!("  {service}@{realm}\n")), "{listed}");
        }
    }
    assert!(listed.contains(&format!("Etype (skey, tkt): {AES}, {AES}")) && !listed.contains("krbtgt/"), "{listed}");
    // MIT knows no realm of the host, and asks nobody.
    assert!(agent.prints(&format!("kvno -S HTTP {HOST}")).starts_with(&format!("HTTP/{HOST}@: kvno = ")), "{listed}");
    let server = WebServer::start_in("/dc2", &world, &format!("HTTP/{HOST}")).await;
    assert_eq!(agent.prints(&server.curl(HOST, "")), "ReferApp$@CONTOSO.COM\n");

    // A listed domain where the name is unknown, and one that is not listed.
    world.spec("unknown", "ReferApp", Some("HTTP/unknown.northwind.com")).await;
    world.user_of("other", &["unknown", "web"]).await;
    let unknown = world.pod("unknown", "other", "unknown").await;
    let token = world.token_of(&unknown, "unknown").await;
    let answer = world.asked(&token, "unknown").await.unwrap().json();
    let message = "the KDC of NORTHWIND.COM refuses: it does not know the service HTTP/unknown.northwind.com, or knows it twice (Kerberos code 7)";
    assert_eq!((&answer["reason"], &answer["message"]), (&json!("principal-unknown"), &json!(message)));
    world.restart(|domain| domain["referrals"] = json!([{"name": "fabrikam.com"}])).await;
    agent.status("502 Bad Gateway, ticket-referral: the KDC of CONTOSO.COM refers HTTP/web.northwind.com to NORTHWIND.COM, which `referrals` of contoso.com does not list").await;
    // The pod keeps what it has.
    assert_eq!(agent.prints(&server.curl(HOST, "")), "ReferApp$@CONTOSO.COM\n");
    world.restart(|domain| domain["referrals"] = json!([{"name": "northwind.com", "controllers": ["10.0.0.2"]}])).await;
    let tickets = agent.file("krb5cc").unwrap();
    until("there are new tickets", async || agent.file("krb5cc").filter(|renewed| *renewed != tickets)).await;
}

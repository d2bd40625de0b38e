//! What a pod gets, and what ends it.

use std::fs;

use gmsa_test_support::{
    domain::{account, administer, change},
    repository, until,
};
use serde_json::{Value, json};

use crate::world::{World, name_ldap, of_user, service};

pub const AES: &str = "aes256-cts-hmac-sha1-96";

/// Changes an attribute of an account.
fn set(account: &str, attribute: &str, value: &str) {
    change(&format!(
        "dn: CN={account},CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: modify\nreplace: {attribute}\n{attribute}: {value}\n"
    ));
}

/// Gives a user keys of these types: 8 is AES-128, 16 AES-256.
fn encrypts(user: &str, types: &str) {
    let attribute = "msDS-SupportedEncryptionTypes";
    change(&format!(
        "dn: CN={user},CN=Users,DC=contoso,DC=com\nchangetype: modify\nreplace: {attribute}\n{attribute}: {types}\n"
    ));
}

#[tokio::test]
async fn a_pod_reaches_the_services_that_the_owner_listed_until_its_permission_is_revoked() {
    service("Reach", &["HTTP/reach.contoso.com", "MSSQLSvc/reach.contoso.com:1433"]);
    encrypts("Reachservice", "24");
    name_ldap();
    let world = World::start("Reach").await;
    let services = "http/Reach.contoso.com, MSSQLSvc/reach.contoso.com:1433, ldap/dc1.contoso.com";
    world.web("ReachApp", services).await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;

    let listed = agent.prints("klist -e");
    assert!(listed.contains("\nDefault principal: ReachApp$@CONTOSO.COM\n"), "{listed}");
    for service in ["HTTP/reach.contoso.com", "MSSQLSvc/reach.contoso.com:1433", "ldap/dc1.contoso.com"] {
        let ticket = format!("  {service}@CONTOSO.COM\n\tEtype (skey, tkt): {AES}, {AES} \n");
        assert!(listed.contains(&ticket), "{listed}");
        let known = agent.prints(&format!("kvno {service}"));
        assert!(known.starts_with(&format!("{service}@CONTOSO.COM: kvno = ")), "{known}");
    }
    // No ticket-granting ticket, so none for a service that is not listed.
    assert!(!listed.contains("krbtgt/") && agent.fails("kvno host/dc1.contoso.com"), "{listed}");
    let who = "ldapwhoami -Q -Y GSSAPI -H ldap://dc1.contoso.com";
    assert_eq!(agent.prints(who), "u:CONTOSO\\ReachApp$\n");

    // Renewed tickets are others, and a client takes them.
    let first = agent.file("krb5cc").unwrap();
    until("the tickets are renewed", async || agent.file("krb5cc").filter(|renewed| *renewed != first)).await;
    assert_eq!(agent.prints(who), "u:CONTOSO\\ReachApp$\n");

    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/web-uses-web";
    world.plane.client.delete(bindings).await.unwrap();
    agent
        .status(
            "the broker refused: 403 Forbidden, not-authorized: service account \"web\" is not authorized to `use` GMSA cred spec \"web\"",
        )
        .await;
    assert_eq!([agent.file("krb5cc"), agent.file("krb5.conf")], [None, None]);
    assert!(agent.fails(who));
    let logs = world.logs();
    assert!(!logs.contains("eyJ") && !logs.contains("Passw0rd"), "{logs}");
}

/// The pod of docs/linux-pods.md in a namespace with the strictest Pod Security.
#[tokio::test]
async fn the_pod_of_the_page_is_taken() {
    let world = World::start("Page").await;
    let strict = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    world.plane.client.merge("/api/v1/namespaces/shop", &strict).await.unwrap();
    world.user_of("web", &[]).await;
    let page = fs::read_to_string(repository().join("docs/linux-pods.md")).unwrap();
    let pod = page.split("```yaml\n").nth(2).unwrap().split("```").next().unwrap();
    let mut pod: Value = serde_saphyr::from_str(pod).unwrap();
    // The page leaves the application's own settings out.
    pod["spec"]["containers"][0]["securityContext"] = pod["spec"]["initContainers"][0]["securityContext"].clone();
    let stored = world.plane.client.create("/api/v1/namespaces/shop/pods", &pod).await.unwrap();
    assert_eq!(stored["spec"]["initContainers"][0]["restartPolicy"], "Always");
}

#[tokio::test]
async fn an_account_gets_tickets_as_the_domain_lets_it() {
    let world = World::start("Kind").await;
    service("Kind", &["HTTP/kind.contoso.com"]);
    encrypts("Kindservice", "8");
    for (name, attribute, value, expected) in [
        ("KindWeak", "msDS-SupportedEncryptionTypes", "8", (200, "")),
        ("KindOff", "userAccountControl", "4098", (409, "account-disabled")),
        ("KindLate", "accountExpires", "1", (409, "account-expired")),
        ("KindGone", "sAMAccountName", "KindElse$", (403, "account-unknown")),
    ] {
        account(name, "KindHosts", &[]);
        set(name, attribute, value);
        let spec = name.to_lowercase();
        world.spec(&spec, name, Some("HTTP/kind.contoso.com")).await;
        world.user_of(&spec, &[&spec]).await;
        let pod = world.pod(&spec, &spec, &spec).await;
        let token = world.token_of(&pod, &spec).await;
        let answer = world.answer(&token, &spec).await;
        assert_eq!((answer.0, &*answer.1), expected, "{name}: {}", world.logs());
    }
    let pod = world.pod("weak", "kindweak", "kindweak").await;
    let agent = world.agent(&pod, "kindweak").await;
    let listed = agent.prints("klist -e");
    assert!(listed.contains("\nDefault principal: KindWeak$@CONTOSO.COM\n"), "{listed}");
    let aes = "aes128-cts-hmac-sha1-96";
    assert!(
        listed.contains(&format!("  HTTP/kind.contoso.com@CONTOSO.COM\n\tEtype (skey, tkt): {aes}, {aes} \n")),
        "{listed}"
    );
}

/// With a lock-out after three wrong passwords, six requests leave the user its two other tries.
#[tokio::test]
async fn a_wrong_password_of_the_user_is_tried_once() {
    administer("domain passwordsettings set --account-lockout-threshold=3");
    service("Wrong", &["HTTP/wrong.contoso.com"]);
    let world = World::start_with("Wrong", "not the password").await;
    world.web("WrongApp", "HTTP/wrong.contoso.com").await;
    for number in 0..6 {
        let pod = world.pod(&format!("web-{number}"), "web", "web").await;
        let token = world.token_of(&pod, "web").await;
        assert_eq!(world.answer(&token, "web").await, (502, "ldap-credentials".to_owned()));
    }
    assert_eq!(of_user("Wrongbroker", "badPwdCount").as_deref(), Some("1"));
    world.set_password();
    let pod = world.pod("web", "web", "web").await;
    let token = world.token_of(&pod, "web").await;
    until("the new password is used", async || {
        let answer = world.answer(&token, "web").await;
        Some(()).filter(|()| answer == (200, String::new()))
    })
    .await;
}

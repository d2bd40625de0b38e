//! The holder of a ticket-granting ticket: the sentences of docs/linux-pods.md about it that Samba and MIT's programs can show.

use std::fs;

use gmsa_test_support::domain::root;

use crate::{
    services::AES,
    world::{Agent, World, name_ldap},
};

/// Changes an attribute of the pod's own account, and says how that ended: with the code of LDAP.
fn changes(agent: &Agent, change: &str, attribute: &str, value: &str) -> String {
    let ldif = format!(
        "dn: CN=AnyApp,CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: modify\n{change}: {attribute}\n{attribute}{value}\n"
    );
    let output = agent.run("ldapmodify -Q -Y GSSAPI -H ldap://dc1.contoso.com", &ldif);
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_ticket_granting_ticket_is_given_only_for_an_asterisk() {
    let world = World::start("Any").await;
    world.spec("any", "AnyApp", Some("*")).await;
    world.user_of("web", &["any"]).await;
    let pod = world.pod("web", "web", "any").await;
    let agent = world.agent(&pod, "any").await;
    let listed = agent.prints("klist -e");
    assert_eq!(listed.matches("@CONTOSO.COM\n\tEtype").count(), 1, "{listed}");
    assert!(
        listed.contains(&format!("  krbtgt/CONTOSO.COM@CONTOSO.COM\n\tEtype (skey, tkt): {AES}, {AES} \n")),
        "{listed}"
    );
    // The agent replaces the cache meanwhile, so what a client gets goes elsewhere.
    assert_eq!(
        agent.prints("kvno --out-cache FILE:/tmp/any.host host/dc1.contoso.com"),
        "host/dc1.contoso.com@CONTOSO.COM: kvno = 1\n"
    );

    // The whole directory.
    name_ldap();
    let search = "ldapsearch -Q -LLL -Y GSSAPI -H ldap://dc1.contoso.com -b CN=Users,DC=contoso,DC=com cn=krbtgt cn";
    assert_eq!(agent.prints(search), "dn: CN=krbtgt,CN=Users,DC=contoso,DC=com\ncn: krbtgt\n\n");
    // Its own names and encryption types, and nothing else of it.
    assert_eq!(changes(&agent, "add", "servicePrincipalName", ": MSSQLSvc/anyapp.contoso.com"), "");
    assert_eq!(changes(&agent, "replace", "msDS-SupportedEncryptionTypes", ": 16"), "");
    let denied = "ldap_modify: Insufficient access (50)";
    assert_eq!(changes(&agent, "add", "msDS-AllowedToDelegateTo", ": ldap/dc1.contoso.com"), denied);
    let password = ":: IgBBAG4AMAB0AGgAZQByAC4AUABhAHMAcwB3ADAAcgBkACIA";
    assert_eq!(changes(&agent, "replace", "unicodePwd", password), denied);
    // A ticket as administrator for itself (S4U2Self), which services of the same account take; none for another service.
    assert_eq!(
        agent.prints("kvno --out-cache FILE:/tmp/any.self -I administrator AnyApp$"),
        "AnyApp$@CONTOSO.COM: kvno = 1\n"
    );
    let listed = agent.prints("klist -c FILE:/tmp/any.self");
    assert!(listed.contains("\nDefault principal: administrator@CONTOSO.COM\n"), "{listed}");
    let delegated = agent.run("kvno --out-cache FILE:/tmp/any.proxy -I administrator -P ldap/dc1.contoso.com", "");
    let said = String::from_utf8(delegated.stderr).unwrap();
    assert!(!delegated.status.success() && said.contains(": constrained delegation failed\n"), "{said}");
    // The password.
    fs::write(root().join("tmp/kpasswd.py"), include_str!("kpasswd.py")).unwrap();
    assert_eq!(
        agent.prints("python3 /tmp/kpasswd.py AnyApp$"),
        "krb5_change_password: Initial password required\nkrb5_set_password: Access denied\n"
    );
}

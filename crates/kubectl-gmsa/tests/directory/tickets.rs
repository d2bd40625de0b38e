//! Kerberos: the plugin logs on as an account, and MIT's programs use tickets that `gmsa-kerberos` got.

use std::{fs, net::SocketAddr, time::Duration};

use gmsa_kerberos::{Error, KdcRefusal, Kdcs, Password, Principal, PrincipalName, Realm, Ticket, ccache, krb5_conf};

use crate::domain::{account, administer, change, gmsa, prints, root, said, user};

const HOUR: Duration = Duration::from_secs(3600);
const KDC: &str = "10.0.0.1:88";
const SERVICE: &str = "ldap/dc1.contoso.com";

#[test]
fn an_account_logs_on_and_each_refusal_has_its_rule() {
    administer("group add TicketHosts");
    user("ticketuser", "Passw0rd!Ticket", Some("TicketHosts"));
    account("TicketApp", "TicketHosts", &["http/ticket.contoso.com"]);
    let test = || gmsa("account test TicketApp --ticket", ("ticketuser@contoso.com", "Passw0rd!Ticket"));
    let may = "pass  password  ticketuser@contoso.com may retrieve the password of TicketApp\n";
    let shown = said(test(), 0);
    let given = "pass  ticket    TicketApp$@CONTOSO.COM can log on: 10.0.0.1 gave a ticket with aes256-cts-hmac-sha1-96 until 20";
    let end = shown.strip_prefix(may).and_then(|rest| rest.strip_prefix(given)).unwrap_or_else(|| panic!("{shown}"));
    assert!(end.ends_with(" UTC\n"), "{shown}");
    for (attribute, value, back, expected) in [
        (
            "userAccountControl",
            "4098",
            "4096",
            "it is disabled (10.0.0.1: Kerberos code 18, status 0xc0000072) [account-disabled]\n",
        ),
        (
            "accountExpires",
            "1",
            "0",
            "it has expired (10.0.0.1: Kerberos code 18, status 0xc0000193) [account-expired]\n",
        ),
    ] {
        let set = |value: &str| {
            change(&format!(
                "dn: CN=TicketApp,CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: modify\nreplace: {attribute}\n{attribute}: {value}\n"
            ));
        };
        set(value);
        let shown = said(test(), 1);
        set(back);
        assert!(
            shown.starts_with(&format!("{may}fail  ticket    account TicketApp cannot log on: {expected}")),
            "{shown}"
        );
    }
    said(test(), 0);
}

fn principal(name: &str) -> Principal {
    Principal { name: PrincipalName::account(name).unwrap(), realm: Realm::from_domain("contoso.com").unwrap() }
}

async fn tickets(name: &str, password: &str) -> Result<[Ticket; 2], Error> {
    let kdcs = Kdcs::new(vec![KDC.parse().unwrap()], Duration::from_secs(10));
    let client = principal(name);
    let key = kdcs.key(&client, &Password::new(password)).await?;
    let tgt = kdcs.tgt(&client, &key, HOUR).await?;
    let ticket = kdcs.service_ticket(&tgt, &PrincipalName::service(SERVICE).unwrap(), false, HOUR).await?;
    Ok([tgt, ticket])
}

/// Runs a command where the controller is installed, with these tickets.
fn with(tickets: &[Ticket], command: &str) -> String {
    let kdcs: Vec<SocketAddr> = tickets.iter().take(tickets.len() - 1).map(|_| KDC.parse().unwrap()).collect();
    let conf = krb5_conf(&tickets[0].client.realm, "/tmp/krb5cc", &kdcs);
    fs::write(root().join("tmp/krb5.conf"), conf).unwrap();
    fs::write(root().join("tmp/krb5cc"), ccache(tickets)).unwrap();
    let command = format!("env KRB5_CONFIG=/tmp/krb5.conf KRB5CCNAME=FILE:/tmp/krb5cc {command}");
    prints(&command.split(' ').collect::<Vec<_>>(), "")
}

#[tokio::test]
async fn mit_reads_and_uses_the_tickets() {
    user("krbuser", "Passw0rd!Krb", None);
    // A controller registers it when it starts, which this one does not.
    administer(&format!("spn add {SERVICE} DC1$"));
    let both = tickets("krbuser", "Passw0rd!Krb").await.unwrap();
    // The second ends with the first, whose times have no fractions.
    let lives = both.each_ref().map(|ticket| (ticket.endtime - ticket.starttime).whole_seconds());
    assert!(lives.iter().all(|life| (3599..=3600).contains(life)), "{lives:?}");
    let listed = with(&both, "klist -e -f");
    for expected in [
        "Ticket cache: FILE:/tmp/krb5cc\nDefault principal: krbuser@CONTOSO.COM\n",
        "  krbtgt/CONTOSO.COM@CONTOSO.COM\n\tFlags: IA, Etype (skey, tkt): aes256-cts-hmac-sha1-96, aes256-cts-hmac-sha1-96 \n",
        "  ldap/dc1.contoso.com@CONTOSO.COM\n\tFlags: ATO, Etype (skey, tkt): aes256-cts-hmac-sha1-96, aes256-cts-hmac-sha1-96 \n",
    ] {
        assert!(listed.contains(expected), "{listed}");
    }
    // With the TGT the client gets another ticket; without it, and without a KDC, the ticket for the service is enough.
    assert_eq!(with(&both, "kvno host/dc1.contoso.com"), "host/dc1.contoso.com@CONTOSO.COM: kvno = 1\n");
    let [_, ticket] = both;
    let who = with(&[ticket], "ldapwhoami -Q -Y GSSAPI -H ldap://dc1.contoso.com");
    assert_eq!(who, "u:CONTOSO\\krbuser\n");
}

#[tokio::test]
async fn the_kdc_refuses_in_its_codes() {
    user("refused", "Passw0rd!Refused", None);
    let refusal = |result: Result<[Ticket; 2], Error>| match result {
        Err(Error::Refused(error)) => (error.refusal(), error.clock_difference.whole_seconds().abs() < 5),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(tickets("refused", "wrong").await), (KdcRefusal::WrongPassword, true));
    assert_eq!(refusal(tickets("nobody", "wrong").await), (KdcRefusal::UnknownAccount, true));
    change("dn: CN=refused,CN=Users,DC=contoso,DC=com\nchangetype: modify\nreplace: pwdLastSet\npwdLastSet: 0\n");
    assert_eq!(refusal(tickets("refused", "Passw0rd!Refused").await), (KdcRefusal::MustChangePassword, true));
}

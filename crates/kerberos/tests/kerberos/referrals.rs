//! Tickets of other realms: what is asked of each KDC, and answers that lie about it.

use gmsa_kerberos::{Error, KdcRefusal, Kdcs, PrincipalName, Realm, Ticket};
use gmsa_test_support::kdc::{Conduct, Kdc, Lie};

use crate::{HOUR, SERVICE, client, kdc, password};

const OTHER: &str = "HTTP/web.northwind.com";

/// The KDCs of two realms with a trust, of which the second has a service.
async fn realms() -> [Kdc; 2] {
    let (home, other) = (kdc().await, Kdc::start("northwind.com").await);
    home.trust(&other);
    home.refer(OTHER, "NORTHWIND.COM");
    other.service(OTHER);
    [home, other]
}

async fn tgt(home: &Kdc) -> Ticket {
    let kdcs = Kdcs::new(vec![home.address], HOUR);
    let key = kdcs.key(&client(), &password()).await.unwrap();
    kdcs.tgt(&client(), &key, HOUR).await.unwrap()
}

async fn ask(kdc: &Kdc, tgt: &Ticket, service: &str, with_referrals: bool) -> Result<Ticket, Error> {
    let service = PrincipalName::service(service).unwrap();
    Kdcs::new(vec![kdc.address], HOUR).service_ticket(tgt, &service, with_referrals, HOUR).await
}

/// The KDC itself asserts the realms of body and authenticator.
#[tokio::test]
async fn a_referral_leads_to_a_ticket_of_another_realm() {
    let [home, other] = realms().await;
    let tgt = tgt(&home).await;
    assert_eq!(tgt.granting_realm().unwrap().as_str(), "CONTOSO.COM");
    let referral = ask(&home, &tgt, OTHER, true).await.unwrap();
    assert_eq!(referral.service.to_string(), "krbtgt/NORTHWIND.COM@CONTOSO.COM");
    let northwind = referral.granting_realm().unwrap();
    assert_eq!(northwind.as_str(), "NORTHWIND.COM");
    let ticket = ask(&other, &referral, OTHER, true).await.unwrap();
    assert_eq!(ticket.service.to_string(), format!("{OTHER}@NORTHWIND.COM"));
    assert_eq!((ticket.client.to_string(), ticket.granting_realm()), ("WebApp1$@CONTOSO.COM".to_owned(), None));
    assert_eq!(ticket.realms().map(Realm::as_str).collect::<Vec<_>>(), ["NORTHWIND.COM", "CONTOSO.COM"]);
    // A ticket of the account's own realm stands in a cache once.
    let own = ask(&home, &tgt, SERVICE, true).await.unwrap();
    assert_eq!(own.realms().map(Realm::as_str).collect::<Vec<_>>(), ["CONTOSO.COM"]);
    // The ticket for the other realm can be asked for by its name.
    let direct = ask(&home, &tgt, "krbtgt/NORTHWIND.COM", true).await.unwrap();
    assert_eq!(direct.service, referral.service);
    let asked = ["TGS+ HTTP/web.northwind.com", "TGS+ ldap/dc1.contoso.com", "TGS+ krbtgt/NORTHWIND.COM"];
    assert_eq!(
        (&home.asked()[2..], other.asked().as_slice()),
        (&asked.map(str::to_owned)[..], &[asked[0].to_owned()][..])
    );
}

#[tokio::test]
async fn a_referral_that_was_not_asked_for_is_another_service() {
    let [home, _] = realms().await;
    let error = ask(&home, &tgt(&home).await, OTHER, false).await.unwrap_err();
    assert_eq!(error.to_string(), "the answer of the KDC has another service than the request");
    assert_eq!(home.asked()[2..], ["TGS HTTP/web.northwind.com"]);
}

#[tokio::test]
async fn only_what_is_encrypted_makes_a_referral() {
    let [home, other] = realms().await;
    let tgt = tgt(&home).await;
    let referral = ask(&home, &tgt, OTHER, true).await.unwrap();
    for (lie, what) in [
        (Lie::InnerReferral, "service"),
        (Lie::OuterReferral, "service"),
        (Lie::Service, "service"),
        (Lie::InnerService, "service"),
        (Lie::Nonce, "nonce"),
        (Lie::Realm, "realm"),
        (Lie::TicketRealm, "realm"),
        (Lie::InnerRealm, "realm"),
        (Lie::Client, "client"),
    ] {
        for (kdc, tgt) in [(&home, &tgt), (&other, &referral)] {
            kdc.conduct(Conduct::Lie(lie));
            let error = ask(kdc, tgt, OTHER, true).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the answer of the KDC has another {what} than the request"),
                "{lie:?}"
            );
        }
    }
}

/// A realm is a DNS name in capitals: nothing else becomes one.
#[tokio::test]
async fn a_referral_to_what_is_no_realm_is_another_service() {
    let [home, _] = realms().await;
    let tgt = tgt(&home).await;
    for realm in ["northwind.com", "NORTHWIND.COM/x", "NORTH WIND", "N@RTHWIND.COM", ""] {
        home.refer(OTHER, realm);
        let error = ask(&home, &tgt, OTHER, true).await.unwrap_err();
        assert!(matches!(error, Error::Mismatch("service")), "{realm}: {error}");
    }
}

#[tokio::test]
async fn a_realm_takes_only_tickets_of_realms_that_it_trusts() {
    let [home, other] = realms().await;
    let tgt = tgt(&home).await;
    let referral = ask(&home, &tgt, OTHER, true).await.unwrap();
    // The other side has another secret, and then no trust at all.
    other.trust(&Kdc::start("contoso.com").await);
    for (kdc, code) in [(&other, 31), (&Kdc::start("northwind.com").await, 35)] {
        let Err(Error::Refused(error)) = ask(kdc, &referral, OTHER, true).await else { panic!("{code}") };
        assert_eq!((error.code, error.refusal()), (code, KdcRefusal::Other));
    }
}

//! A KDC that keeps to the protocol: what it gives, and each of its refusals.

use std::{net::SocketAddr, time::Duration};

use gmsa_kerberos::{EncryptionType, Error, KdcRefusal, Kdcs, Key, Password, PrincipalName};
use gmsa_test_support::kdc::{Conduct, Kdc};
use tokio::net::TcpListener;

use crate::{HOUR, SERVICE, client, kdc, password, tickets};

#[tokio::test]
async fn a_password_becomes_a_key_a_tgt_and_a_ticket() {
    let kdc = kdc().await;
    for etype in EncryptionType::ALL {
        kdc.account("WebApp1$", &password(), etype);
        let [tgt, ticket] = tickets(&kdc).await.unwrap();
        assert_eq!(kdc.asked(), ["AS WebApp1$", "AS+ WebApp1$", &format!("TGS {SERVICE}")]);
        assert_eq!(
            (tgt.client.to_string(), tgt.service.to_string()),
            ("WebApp1$@CONTOSO.COM".to_owned(), "krbtgt/CONTOSO.COM@CONTOSO.COM".to_owned())
        );
        assert_eq!(ticket.service.to_string(), format!("{SERVICE}@CONTOSO.COM"));
        assert_eq!((tgt.session_key.etype(), ticket.session_key.etype()), (etype, EncryptionType::Aes256));
        assert_eq!(tgt.flags, 0x0040_0000);
        let life = ticket.endtime - ticket.starttime;
        assert!((3599..=3600).contains(&life.whole_seconds()), "{life}");
    }
}

#[tokio::test]
async fn the_end_is_that_of_the_answer() {
    let kdc = kdc().await;
    kdc.most(time::Duration::minutes(10));
    let [tgt, _] = tickets(&kdc).await.unwrap();
    assert_eq!(tgt.endtime - tgt.starttime, time::Duration::minutes(10));
}

#[tokio::test]
async fn an_account_without_preauthentication_has_a_key_too() {
    let kdc = kdc().await;
    kdc.without_preauthentication();
    tickets(&kdc).await.unwrap();
    assert_eq!(kdc.asked(), ["AS WebApp1$", "AS+ WebApp1$", &format!("TGS {SERVICE}")]);
}

/// The words of an error, and what it means where the KDC refuses.
fn said<T>(result: Result<T, Error>) -> (String, Option<KdcRefusal>) {
    match result {
        Ok(_) => ("fine".to_owned(), None),
        Err(Error::Refused(error)) => (format!("the KDC refuses: {error}"), Some(error.refusal())),
        Err(error) => (error.to_string(), None),
    }
}

#[tokio::test]
async fn each_refusal_has_a_meaning() {
    let kdc = kdc().await;
    for (code, status, refusal) in [
        (1, None, KdcRefusal::Expired),
        (6, None, KdcRefusal::UnknownAccount),
        (7, None, KdcRefusal::UnknownService),
        (12, Some(0xC000_0070), KdcRefusal::Policy),
        (14, None, KdcRefusal::NoAes),
        (18, Some(0xC000_0072), KdcRefusal::Disabled),
        (18, Some(0xC000_0193), KdcRefusal::Expired),
        (18, Some(0xC000_0234), KdcRefusal::Locked),
        (18, None, KdcRefusal::Revoked),
        (23, Some(0xC000_0224), KdcRefusal::MustChangePassword),
        (23, None, KdcRefusal::MustChangePassword),
        (24, None, KdcRefusal::WrongPassword),
        (29, None, KdcRefusal::Unavailable),
        // Without the names of the request.
        (31, None, KdcRefusal::Other),
        (32, None, KdcRefusal::TicketExpired),
        (37, None, KdcRefusal::Clock),
        (35, None, KdcRefusal::Other),
        (44, None, KdcRefusal::Other),
        (52, None, KdcRefusal::Other),
        (68, None, KdcRefusal::WrongRealm),
        (-1, None, KdcRefusal::Other),
    ] {
        kdc.conduct(Conduct::RefuseProven(code, status));
        let status = status.map_or(String::new(), |status: u32| format!(", status {status:#x}"));
        let words = format!("the KDC refuses: Kerberos code {code}{status}");
        assert_eq!(said(tickets(&kdc).await), (words, Some(refusal)));
    }
}

#[tokio::test]
async fn a_password_is_tried_once() {
    let kdc = kdc().await;
    kdc.account("WebApp1$", &Password::new("other"), EncryptionType::Aes256);
    assert_eq!(
        said(tickets(&kdc).await),
        ("the KDC refuses: Kerberos code 24".to_owned(), Some(KdcRefusal::WrongPassword))
    );
    assert_eq!(kdc.asked(), ["AS WebApp1$", "AS+ WebApp1$"]);
}

#[tokio::test]
async fn the_difference_of_the_clocks_is_known() {
    let kdc = kdc().await;
    for minutes in [-10, 10] {
        kdc.clock(time::Duration::minutes(minutes));
        let Err(Error::Refused(error)) = tickets(&kdc).await else { panic!("{minutes}") };
        // The request took less than half a minute.
        let rounded = (error.clock_difference + time::Duration::seconds(30)).whole_seconds().div_euclid(60);
        assert_eq!((error.refusal(), rounded), (KdcRefusal::Clock, minutes));
    }
    kdc.clock(time::Duration::minutes(4));
    tickets(&kdc).await.unwrap();
}

#[tokio::test]
async fn names_and_keys_that_the_kdc_does_not_know_are_refused() {
    let kdc = kdc().await;
    let kdcs = Kdcs::new(vec![kdc.address], HOUR);
    let mut other = client();
    other.name = PrincipalName::account("Nobody$").unwrap();
    assert_eq!(said(kdcs.key(&other, &password()).await).1, Some(KdcRefusal::UnknownAccount));
    other.realm = gmsa_kerberos::Realm::from_domain("fabrikam.com").unwrap();
    assert_eq!(said(kdcs.key(&other, &password()).await).1, Some(KdcRefusal::WrongRealm));
    let key = kdcs.key(&client(), &password()).await.unwrap();
    let tgt = kdcs.tgt(&client(), &key, HOUR).await.unwrap();
    let service = PrincipalName::service("HTTP/nobody").unwrap();
    assert_eq!(said(kdcs.service_ticket(&tgt, &service, false, HOUR).await).1, Some(KdcRefusal::UnknownService));
    // A key of another type than the KDC has.
    let short = Key::random(EncryptionType::Aes128).unwrap();
    assert_eq!(said(kdcs.tgt(&client(), &short, HOUR).await).1, Some(KdcRefusal::NoAes));
}

/// An address where nothing listens.
async fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn a_kdc_that_does_not_answer_is_followed_by_the_next() {
    let (first, second) = (kdc().await, kdc().await);
    let ask = async |addresses: &[SocketAddr]| {
        Kdcs::new(addresses.to_vec(), Duration::from_millis(300)).key(&client(), &password()).await
    };
    let unavailable = || Conduct::Refuse(29, None);
    for conduct in
        [Conduct::Silent, Conduct::Close, Conduct::Raw(vec![0xFF; 8]), Conduct::Raw(vec![0, 0]), unavailable()]
    {
        first.conduct(conduct);
        ask(&[closed().await, first.address, second.address]).await.unwrap();
        assert_eq!(second.asked(), ["AS WebApp1$"]);
    }
    // The last word where no other one answers.
    first.conduct(unavailable());
    assert_eq!(said(ask(&[first.address, closed().await]).await).1, Some(KdcRefusal::Unavailable));
    // A refusal is an answer.
    first.conduct(Conduct::Refuse(6, None));
    assert_eq!(said(ask(&[first.address, second.address]).await).1, Some(KdcRefusal::UnknownAccount));
    assert!(second.asked().is_empty());
    assert!(matches!(ask(&[]).await, Err(Error::NoKdc)));
    // Why the first did not answer.
    let gone: Kdc = kdc().await;
    gone.conduct(Conduct::Silent);
    let error = ask(&[gone.address, closed().await]).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the KDC {} did not answer within 300 ms", gone.address));
    assert!(error.is_unanswered());
}

#[tokio::test]
async fn the_kdc_that_answered_is_asked_first_from_then_on() {
    let (first, second) = (kdc().await, kdc().await);
    let kdcs = Kdcs::new(vec![first.address, second.address], HOUR);
    let asked = async || {
        kdcs.key(&client(), &password()).await.unwrap();
        [first.asked().len(), second.asked().len()]
    };
    assert_eq!(asked().await, [1, 0]);
    first.conduct(Conduct::Close);
    assert_eq!(asked().await, [0, 1]);
    first.conduct(Conduct::Honest);
    assert_eq!(asked().await, [0, 1]);
    second.conduct(Conduct::Close);
    assert_eq!(asked().await, [1, 0]);
}

#[tokio::test]
async fn a_kdc_that_failed_is_not_asked_first_even_where_the_caller_stopped_waiting() {
    let (first, silent) = (kdc().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let kdcs = Kdcs::new(vec![first.address, silent.local_addr().unwrap()], HOUR);
    first.conduct(Conduct::Close);
    let (client, password) = (client(), password());
    // The caller leaves when the second one is asked.
    let until_asked = async || {
        tokio::select! {
            key = kdcs.key(&client, &password) => panic!("{key:?}"),
            accepted = silent.accept() => accepted.unwrap(),
        }
    };
    let _held = until_asked().await;
    first.conduct(Conduct::Honest);
    until_asked().await;
    assert!(first.asked().is_empty());
}

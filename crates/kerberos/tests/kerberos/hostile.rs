//! A KDC that lies, and any bytes at all.

use gmsa_kerberos::{EncryptionType, Error, KdcRequest, Key, Ticket};
use gmsa_test_support::{
    hostile,
    kdc::{Conduct, Lie},
};
use time::{Duration, UtcDateTime};

use crate::{client, kdc, tickets};

#[tokio::test]
async fn a_lie_is_found() {
    let kdc = kdc().await;
    for (lie, what) in [
        (Lie::Nonce, "nonce"),
        (Lie::Realm, "realm"),
        (Lie::TicketRealm, "realm"),
        (Lie::InnerRealm, "realm"),
        (Lie::Client, "client"),
        (Lie::Service, "service"),
        (Lie::InnerService, "service"),
        (Lie::EncryptionType, "encryption type"),
    ] {
        kdc.conduct(Conduct::Lie(lie));
        let expected = format!("the answer of the KDC has another {what} than the request");
        assert_eq!(tickets(&kdc).await.unwrap_err().to_string(), expected, "{lie:?}");
    }
    for lie in [Lie::OtherKey, Lie::OtherUsage] {
        kdc.conduct(Conduct::Lie(lie));
        let expected = "the answer of the KDC does not decrypt with the key: it was encrypted with another key, or changed on its way";
        assert_eq!(tickets(&kdc).await.unwrap_err().to_string(), expected, "{lie:?}");
    }
    kdc.conduct(Conduct::Lie(Lie::SessionType));
    let expected = "the answer of the KDC cannot be read: encrypted part";
    assert_eq!(tickets(&kdc).await.unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn work_and_memory_are_bounded() {
    let kdc = kdc().await;
    let address = kdc.address;
    let length = |length: u32| Conduct::Raw(length.to_be_bytes().to_vec());
    let large = |bytes: u32| format!("the KDC {address} answers with {bytes} bytes: the limit is 64 KiB");
    let late = format!("the KDC {address} did not answer within 1000 ms");
    let unreadable = |what: &str| format!("the answer of the KDC cannot be read: {what}");
    let work = |asked: u64| format!("the KDC asks for {asked} iterations of the password: the limit is 65,536");
    for (conduct, expected) in [
        (length(1 << 31), large(1 << 31)),
        (length(65_537), large(65_537)),
        (length(65_536), late.clone()),
        (Conduct::Silent, late),
        (Conduct::Close, format!("the KDC {address} ended the connection without an answer")),
        (Conduct::Answer(Vec::new()), unreadable("reply")),
        (Conduct::Answer(vec![0xFF; 65_536]), unreadable("reply")),
        (Conduct::Answer(vec![0x7E, 0x84, 0x80, 0, 0, 0]), unreadable("reply")),
        (Conduct::Answer(vec![0x7E, 2, 0x30, 0]), unreadable("KRB-ERROR")),
        (Conduct::Iterations(1 << 31), work(1 << 31)),
        (Conduct::Iterations(0), work(1 << 32)),
        (Conduct::Rc4, "the KDC offers no AES key for the account".to_owned()),
    ] {
        kdc.conduct(conduct.clone());
        assert_eq!(tickets(&kdc).await.unwrap_err().to_string(), expected, "{conduct:?}");
    }
}

/// Answers of a KDC that each byte of is changed: each is an error, or a ticket that differs only in what nothing protects.
#[tokio::test]
async fn no_change_of_an_answer_makes_another_ticket() {
    let kdc = kdc().await;
    let key = {
        let request = KdcRequest::as_req(&client(), None, UtcDateTime::now(), UtcDateTime::now()).unwrap();
        crate::password().key(&request.salt(&kdc.answer(request.bytes())).unwrap()).unwrap()
    };
    let now = UtcDateTime::now();
    let request = KdcRequest::as_req(&client(), Some(&key), now, now + Duration::hours(1)).unwrap();
    let answer = kdc.answer(request.bytes());
    let honest = request.ticket(&answer, &key).unwrap();
    let protected = |ticket: &Ticket| {
        (ticket.session_key.as_bytes().to_vec(), ticket.endtime, ticket.flags, ticket.service.clone())
    };
    for at in 0..answer.len() {
        for bit in [1, 0x20, 0x80] {
            let mut changed = answer.clone();
            changed[at] ^= bit;
            match request.ticket(&changed, &key) {
                Ok(ticket) => assert_eq!(protected(&ticket), protected(&honest), "{at}"),
                Err(Error::Refused(error)) => panic!("{at}: {error}"),
                Err(_) => {}
            }
        }
        assert!(request.ticket(&answer[..at], &key).is_err());
    }
}

proptest::proptest! {
    #[test]
    fn any_answer_is_read_without_a_panic(kind in 0u8..8, answer in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        hostile::kdc_answer(kind, &answer);
    }
}

#[test]
fn a_key_that_nobody_has_opens_nothing() {
    let (one, other) = (Key::random(EncryptionType::Aes256).unwrap(), Key::random(EncryptionType::Aes256).unwrap());
    let encrypted = one.encrypt(3, b"text").unwrap();
    assert!(matches!(other.decrypt(3, &encrypted), Err(Error::Decrypt)));
    assert_ne!(one.encrypt(3, b"text").unwrap(), encrypted, "each has its own random block");
}

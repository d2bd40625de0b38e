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
    for (lie, expected) in [
        (Lie::Nonce, "the answer of the KDC has another nonce than the request"),
        (Lie::Realm, "the answer of the KDC has another realm than the request"),
        (Lie::TicketRealm, "the answer of the KDC has another realm than the request"),
        (Lie::InnerRealm, "the answer of the KDC has another realm than the request"),
        (Lie::Client, "the answer of the KDC has another client than the request"),
        (Lie::Service, "the answer of the KDC has another service than the request"),
        (Lie::InnerService, "the answer of the KDC has another service than the request"),
        (Lie::SessionType, "the answer of the KDC cannot be read: encrypted part"),
        (Lie::EncryptionType, "the answer of the KDC has another encryption type than the request"),
        (
            Lie::OtherKey,
            "the answer of the KDC does not decrypt with the key: it was encrypted with another key, or changed on its way",
        ),
        (
            Lie::OtherUsage,
            "the answer of the KDC does not decrypt with the key: it was encrypted with another key, or changed on its way",
        ),
    ] {
        kdc.conduct(Conduct::Lie(lie));
        assert_eq!(tickets(&kdc).await.unwrap_err().to_string(), expected, "{lie:?}");
    }
}

#[tokio::test]
async fn work_and_memory_are_bounded() {
    let kdc = kdc().await;
    let address = kdc.address;
    let length = |length: u32| length.to_be_bytes().to_vec();
    for (conduct, expected) in [
        (
            Conduct::Raw(length(1 << 31)),
            format!("the KDC {address} answers with {} bytes: the limit is 64 KiB", 1u32 << 31),
        ),
        (Conduct::Raw(length(65_537)), format!("the KDC {address} answers with 65537 bytes: the limit is 64 KiB")),
        (Conduct::Raw(length(65_536)), format!("the KDC {address} did not answer within 1000 ms")),
        (Conduct::Silent, format!("the KDC {address} did not answer within 1000 ms")),
        (Conduct::Close, format!("the KDC {address} ended the connection without an answer")),
        (Conduct::Answer(Vec::new()), "the answer of the KDC cannot be read: reply".to_owned()),
        (Conduct::Answer(vec![0xFF; 65_536]), "the answer of the KDC cannot be read: reply".to_owned()),
        (Conduct::Answer(vec![0x7E, 0x84, 0x80, 0, 0, 0]), "the answer of the KDC cannot be read: reply".to_owned()),
        (Conduct::Answer(vec![0x7E, 2, 0x30, 0]), "the answer of the KDC cannot be read: KRB-ERROR".to_owned()),
        (
            Conduct::Iterations(1 << 31),
            "the KDC asks for 2147483648 iterations of the password: the limit is 65,536".to_owned(),
        ),
        (
            Conduct::Iterations(0),
            "the KDC asks for 4294967296 iterations of the password: the limit is 65,536".to_owned(),
        ),
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

//! What is made here is read by picky-krb, and the other way round.

use gmsa_kerberos::{EncryptionType, EtypeInfo2Entry, KdcRequest, Key, Password, PrincipalName};
use picky_krb::{
    crypto::CipherSuite,
    messages::{ApReq, AsReq, TgsReq},
};
use proptest::prelude::*;
use time::{Duration, UtcDateTime};

use crate::{SERVICE, client, kdc, password};

fn suite(etype: EncryptionType) -> CipherSuite {
    match etype {
        EncryptionType::Aes256 => CipherSuite::Aes256CtsHmacSha196,
        EncryptionType::Aes128 => CipherSuite::Aes128CtsHmacSha196,
    }
}

proptest! {
    #[test]
    fn both_encrypt_alike(key in any::<[u8; 32]>(), short in any::<bool>(), usage in 0..1024, text in prop::collection::vec(any::<u8>(), 0..200)) {
        let etype = if short { EncryptionType::Aes128 } else { EncryptionType::Aes256 };
        let (key, theirs) = (Key::new(etype, &key[..etype.key_length()]).unwrap(), suite(etype));
        let number = u32::try_from(usage).unwrap();
        let ours = key.encrypt(number, &text).unwrap();
        prop_assert_eq!(theirs.cipher().decrypt(key.as_bytes(), usage, &ours).unwrap(), text.clone());
        let encrypted = theirs.cipher().encrypt(key.as_bytes(), usage, &text).unwrap();
        prop_assert_eq!(key.decrypt(number, &encrypted).unwrap().to_vec(), text.clone());
        let checksum = theirs.cipher().checksum_type().hasher().checksum(key.as_bytes(), usage, &text).unwrap();
        prop_assert_eq!(key.checksum(number, &text).unwrap(), checksum);
    }

    #[test]
    fn both_make_the_same_key_of_a_password(text in ".{0,80}", salt in ".{0,40}", short in any::<bool>()) {
        let etype = if short { EncryptionType::Aes128 } else { EncryptionType::Aes256 };
        let ours = Password::new(&text).key(&EtypeInfo2Entry { etype, salt: salt.clone().into_bytes(), iterations: 4096 }).unwrap();
        let theirs = suite(etype).cipher().generate_key_from_password(text.as_bytes(), salt.as_bytes()).unwrap();
        prop_assert_eq!(ours.as_bytes(), theirs);
    }
}

#[tokio::test]
async fn requests_are_read_and_written_the_same() {
    let kdc = kdc().await;
    let now = UtcDateTime::now();
    let until = now + Duration::hours(1);
    let salt = KdcRequest::as_req(&client(), None, now, until).unwrap();
    let key = password().key(&salt.salt(&kdc.answer(salt.bytes())).unwrap()).unwrap();
    let initial = KdcRequest::as_req(&client(), Some(&key), now, until).unwrap();
    for request in [&salt, &initial] {
        let read: AsReq = picky_asn1_der::from_bytes(request.bytes()).unwrap();
        assert_eq!(picky_asn1_der::to_vec(&read).unwrap(), request.bytes());
    }
    let tgt = initial.ticket(&kdc.answer(initial.bytes()), &key).unwrap();
    let request = KdcRequest::tgs_req(&tgt, &PrincipalName::service(SERVICE).unwrap(), true, now, until).unwrap();
    let read: TgsReq = picky_asn1_der::from_bytes(request.bytes()).unwrap();
    assert_eq!(picky_asn1_der::to_vec(&read).unwrap(), request.bytes());
    let proof = read.0.padata.0.as_ref().unwrap().0.0[0].padata_data.0.0.clone();
    let proof_read: ApReq = picky_asn1_der::from_bytes(&proof).unwrap();
    assert_eq!(picky_asn1_der::to_vec(&proof_read).unwrap(), proof);
}

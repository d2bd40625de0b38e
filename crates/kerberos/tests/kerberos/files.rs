//! What is written for other programs, byte for byte.

use gmsa_kerberos::{
    EncryptionType, Key, KeytabEntry, Principal, PrincipalName, Ticket, ccache, keytab, krb5_conf, with_former,
};
use time::UtcDateTime;

use crate::client;

fn ticket(service: &str, etype: EncryptionType, endtime: i64) -> Ticket {
    let at = |seconds| UtcDateTime::from_unix_timestamp(seconds).unwrap();
    let client = client();
    Ticket {
        service: Principal { name: PrincipalName::service(service).unwrap(), realm: client.realm.clone() },
        client,
        session_key: Key::new(etype, &vec![0xAB; etype.key_length()]).unwrap(),
        flags: 0x0040_0000,
        authtime: at(1_795_425_164),
        starttime: at(1_795_425_165),
        endtime: at(endtime),
        encoded: b"TICKET".to_vec(),
    }
}

#[test]
fn a_cache_is_that_of_mit() {
    let client = b"\0\0\0\x01\0\0\0\x01\0\0\0\x0bCONTOSO.COM\0\0\0\x08WebApp1$";
    let times = b"\x6b\x04\x03\x8c\x6b\x04\x03\x8d";
    let expected = [
        &b"\x05\x04\0\x0c\0\x01\0\x08\0\0\0\0\0\0\0\0"[..],
        client,
        client,
        b"\0\0\0\x02\0\0\0\x02\0\0\0\x0bCONTOSO.COM\0\0\0\x04HTTP\0\0\0\x0fapp.contoso.com",
        b"\0\x12\0\0\0\x20",
        &[0xAB; 32],
        times,
        b"\x6b\x04\x11\x9c\0\0\0\0",
        b"\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0\0\x06TICKET\0\0\0\0",
        client,
        b"\0\0\0\x02\0\0\0\x02\0\0\0\x0bCONTOSO.COM\0\0\0\x04ldap\0\0\0\x0fdc1.contoso.com",
        b"\0\x11\0\0\0\x10",
        &[0xAB; 16],
        times,
        b"\xff\xff\xff\xff\0\0\0\0",
        b"\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0\0\x06TICKET\0\0\0\0",
    ]
    .concat();
    let tickets = [
        ticket("HTTP/app.contoso.com", EncryptionType::Aes256, 1_795_428_764),
        // A time that does not fit is the last one that does.
        ticket("ldap/dc1.contoso.com", EncryptionType::Aes128, 253_402_300_799),
    ];
    let cache = ccache(&tickets);
    assert_eq!(*cache, expected);
    assert!(cache.capacity() >= cache.len(), "it did not move while it was written");
    assert!(ccache(&[]).is_empty());
}

/// Clients that do not know the realm of a service look for its ticket under their own.
#[test]
fn a_ticket_of_another_realm_is_in_the_cache_under_both_realms() {
    let mut other = ticket("HTTP/web.northwind.com", EncryptionType::Aes256, 1_795_428_764);
    let own = ccache(std::slice::from_ref(&other));
    other.service.realm = gmsa_kerberos::Realm::from_domain("northwind.com").unwrap();
    let both = ccache(std::slice::from_ref(&other));
    // After the header and the default principal there is one entry, in which only the service's realm differs.
    let (head, entry) = own.split_at(16 + 35);
    let realm = |name: &str| [&u32::try_from(name.len()).unwrap().to_be_bytes(), name.as_bytes()].concat();
    let (before, after) = entry.split_at(35 + 8);
    let after = after.strip_prefix(realm("CONTOSO.COM").as_slice()).unwrap();
    assert_eq!(*both, [head, before, &realm("NORTHWIND.COM"), after, entry].concat());
    assert!(both.capacity() >= both.len(), "it did not move while it was written");
}

#[test]
fn krb5_conf_names_kdcs_only_for_a_tgt() {
    let realm = client().realm;
    let text = |kdcs: &[std::net::SocketAddr]| krb5_conf(&realm, "/var/run/gmsa/krb5cc", kdcs);
    let start = "[libdefaults]\n    default_realm = CONTOSO.COM\n    default_ccache_name = FILE:/var/run/gmsa/krb5cc\n    \
                 dns_canonicalize_hostname = false\n    rdns = false\n    udp_preference_limit = 1\n    fcache_strict_checking = false\n\n";
    let realms = "[realms]\n    CONTOSO.COM = {\n        kdc = 10.0.0.1:88\n        kdc = [fd00::1]:88\n    }\n\n";
    let end = "[domain_realm]\n    .contoso.com = CONTOSO.COM\n    contoso.com = CONTOSO.COM\n";
    assert_eq!(text(&[]), format!("{start}{end}"));
    let kdcs = ["10.0.0.1:88".parse().unwrap(), "[fd00::1]:88".parse().unwrap()];
    assert_eq!(text(&kdcs), format!("{start}{realms}{end}"));
}

#[test]
fn a_keytab_is_that_of_mit() {
    let made = UtcDateTime::from_unix_timestamp(1_795_425_164).unwrap();
    let key = |etype: EncryptionType| Key::new(etype, &vec![0xAB; etype.key_length()]).unwrap();
    let (long, short) = (key(EncryptionType::Aes256), key(EncryptionType::Aes128));
    let service = Principal { name: PrincipalName::service("HTTP/app.contoso.com").unwrap(), realm: client().realm };
    let file = keytab(&[
        KeytabEntry { principal: &client(), made, kvno: 2, key: &long },
        // A number that does not fit into eight bits.
        KeytabEntry { principal: &service, made, kvno: 300, key: &short },
    ]);
    let expected = [
        &b"\x05\x02"[..],
        b"\0\0\0\x4a\0\x01\0\x0bCONTOSO.COM\0\x08WebApp1$\0\0\0\x01\x6b\x04\x03\x8c\x02\0\x12\0\x20",
        &[0xAB; 32],
        b"\0\0\0\x02",
        b"\0\0\0\x47\0\x02\0\x0bCONTOSO.COM\0\x04HTTP\0\x0fapp.contoso.com\0\0\0\x02\x6b\x04\x03\x8c\x2c\0\x11\0\x10",
        &[0xAB; 16],
        b"\0\0\x01\x2c",
    ];
    assert_eq!(*file, expected.concat());
    assert_eq!(file.len(), file.capacity());
    assert_eq!(*keytab(&[]), b"\x05\x02");
}

#[test]
fn former_keys_stay_until_those_after_them_are_old() {
    let at = |seconds| UtcDateTime::from_unix_timestamp(1_795_425_164 + seconds).unwrap();
    let key = Key::new(EncryptionType::Aes256, &[0xAB; 32]).unwrap();
    let principal = client();
    let file = |entries: &[(u32, i64)]| {
        let entry =
            |(kvno, made): &(u32, i64)| KeytabEntry { principal: &principal, made: at(*made), kvno: *kvno, key: &key };
        keytab(&entries.iter().map(entry).collect::<Vec<_>>())
    };
    let merged = |new: &[(u32, i64)], former: &[(u32, i64)], since| with_former(&file(new), &file(former), at(since));
    // The key 7 was replaced by that of 8, which was made at 100.
    assert_eq!(merged(&[(8, 100)], &[(8, 100), (7, 0)], 99), file(&[(8, 100), (7, 0)]));
    assert_eq!(merged(&[(8, 100)], &[(8, 100), (7, 0)], 100), file(&[(8, 100)]));
    assert_eq!(merged(&[(9, 200), (8, 100)], &[(7, 0), (6, 0)], 99), file(&[(9, 200), (8, 100), (7, 0), (6, 0)]));
    // A number that has other keys now, and one that is not known any more.
    assert_eq!(merged(&[(8, 100)], &[(9, 0), (8, 0)], 0), file(&[(8, 100)]));
    let new = file(&[(8, 100)]);
    let former = file(&[(7, 0)]);
    for length in 0..former.len() {
        assert_eq!(with_former(&new, &former[..length], at(0)), new, "{length}");
    }
    assert_eq!(with_former(&new, b"\x05\x02\xff\xff\xff\xff", at(0)), new);
}

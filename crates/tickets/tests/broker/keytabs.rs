//! Keytabs: what is in them, who gets one, and why others do not.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_kerberos::{EncryptionType, EtypeInfo2Entry, Key, Password};
use gmsa_test_support::directory::{DirectoryAccount, password};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::world::{Answer, SERVICES, World, bound_to, pass, pod, spec, times};

pub const SERVICE: &str = "HTTP/app.contoso.com";

/// A broker that gives keytabs, to the pod of [`World`], which has a token for one too. Its account's password is all of 1, and its key has the
/// number 7.
pub async fn keytab_world() -> World {
    world_with("  keytabs: true\n").await
}

async fn world_with(lines: &str) -> World {
    let world = World::with(times(), lines).await;
    world.api.delete("pods", "shop", "web-1");
    world.api.apply(keytab_pod("web-1", "u1"));
    world.accept_token("keytab-1", &["gmsa-keytab/webapp1"], bound_to("web-1", "u1"));
    world.api.grant_export("shop", "web", "webapp1");
    annotated(&world, Some(SERVICE));
    world.directory.account("WebApp1", DirectoryAccount { kvno: 7, ..DirectoryAccount::with_password(1) });
    world.kdc.seal(SERVICE, key(1), 18, Some(7));
    world
}

/// A pod with tokens for tickets and for a keytab.
pub fn keytab_pod(name: &str, uid: &str) -> Value {
    let mut pod = pod(name, uid);
    let token =
        json!({"serviceAccountToken": {"audience": "gmsa-keytab/webapp1", "expirationSeconds": 600, "path": "token"}});
    let volume = json!({"name": "gmsa-keytab-token", "projected": {"sources": [token]}});
    pod["spec"]["volumes"].as_array_mut().unwrap().push(volume);
    pod
}

/// The credential spec, whose owner lists these names for a keytab.
fn annotated(world: &World, names: Option<&str>) {
    let mut spec = spec("webapp1", Some(SERVICES));
    if let Some(names) = names {
        spec["metadata"]["annotations"]["gmsa-webhook/keytab"] = json!(names);
    }
    world.api.apply(spec);
}

pub async fn ask_keytab(world: &World, token: &str) -> Answer {
    world.ask_at("/v1/keytab", "webapp1", token).await
}

fn key_of(byte: u8, etype: EncryptionType) -> Key {
    let salt = EtypeInfo2Entry { etype, salt: b"CONTOSO.COMhostwebapp1.contoso.com".to_vec(), iterations: 4096 };
    Password::managed(&password(byte)).key(&salt).unwrap()
}

/// The AES-256 key of the account with a password whose bytes are all this one.
pub fn key(byte: u8) -> Key {
    key_of(byte, EncryptionType::Aes256)
}

/// An entry of a keytab.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub time: u32,
    pub kvno: u32,
    pub etype: u16,
    pub key: Vec<u8>,
}

/// The entries of a keytab, as the format says.
pub fn entries(answer: &Answer) -> Vec<Entry> {
    fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all: u32, byte| all << 8 | u32::from(*byte));
    let file = STANDARD.decode(answer.body["keytab"].as_str().unwrap_or_else(|| panic!("{answer:?}"))).unwrap();
    let mut file = file.strip_prefix(&[5, 2]).unwrap();
    let mut all = Vec::new();
    while !file.is_empty() {
        let size = number(take(&mut file, 4)) as usize;
        let mut entry = take(&mut file, size);
        let parts = number(take(&mut entry, 2));
        let mut text = || {
            let length = number(take(&mut entry, 2)) as usize;
            String::from_utf8(take(&mut entry, length).to_vec()).unwrap()
        };
        assert_eq!(text(), "CONTOSO.COM");
        let name = (0..parts).map(|_| text()).collect::<Vec<_>>().join("/");
        assert_eq!(number(take(&mut entry, 4)), parts);
        let (time, low, etype) =
            (number(take(&mut entry, 4)), number(take(&mut entry, 1)), number(take(&mut entry, 2)));
        let length = number(take(&mut entry, 2)) as usize;
        let key = take(&mut entry, length).to_vec();
        let kvno = number(take(&mut entry, 4));
        assert_eq!((kvno & 0xFF, entry), (low, &[][..]));
        all.push(Entry { name, time, kvno, etype: etype.try_into().unwrap(), key });
    }
    all
}

#[tokio::test]
async fn a_pod_gets_the_keys_of_its_account_for_each_name() {
    let world = keytab_world().await;
    let second = "HTTP/www.contoso.com";
    annotated(&world, Some(&format!("{SERVICE}, {second}")));
    world.kdc.service(second);
    world.kdc.seal(second, key_of(1, EncryptionType::Aes128), 17, Some(7));
    let before = OffsetDateTime::now_utc();
    let answer = ask_keytab(&world, "keytab-1").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("\r\ncache-control: no-store\r\n"), "{}", answer.head);
    let keys: Vec<&String> = answer.body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["credentialSpec", "keytab", "kvno", "names", "principal", "renewAfter"]);
    assert_eq!(answer.body["credentialSpec"], "webapp1");
    assert_eq!(answer.body["principal"], "WebApp1$@CONTOSO.COM");
    assert_eq!(answer.body["names"], json!([SERVICE, second]));
    assert_eq!(answer.body["kvno"], 7);
    let renewal = OffsetDateTime::parse(answer.body["renewAfter"].as_str().unwrap(), &Rfc3339).unwrap() - before;
    assert!((Duration::minutes(59)..=Duration::minutes(61)).contains(&renewal), "{renewal}");
    let all = entries(&answer);
    let time = all[0].time;
    assert!((i64::from(time) - before.unix_timestamp()).abs() < 60, "{time}");
    let entry = |name: &str, etype: EncryptionType| Entry {
        name: name.to_owned(),
        time,
        kvno: 7,
        etype: etype.number().try_into().unwrap(),
        key: key_of(1, etype).as_bytes().to_vec(),
    };
    let names = ["WebApp1$", SERVICE, second];
    let expected: Vec<_> = names.iter().flat_map(|name| EncryptionType::ALL.map(|etype| entry(name, etype))).collect();
    assert_eq!(all, expected);
    assert!(world.shows("gmsa_tickets_keytabs_total{pod_namespace=\"shop\"} 1"));
    assert!(world.shows("gmsa_tickets_requests_total{outcome=\"given\"} 1"));
    // The next request costs the directory nothing.
    let read = ["number WebApp1", "password WebApp1", "number WebApp1"];
    assert_eq!(world.directory.asked().iter().filter(|asked| read.contains(&&***asked)).count(), 4);
    assert_eq!(entries(&ask_keytab(&world, "keytab-1").await), expected);
    assert_eq!(world.directory.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn the_password_and_its_number_are_read_until_they_agree() {
    let world = keytab_world().await;
    // The change is due: the first read makes it, and the number follows.
    let changed = DirectoryAccount { previous: Some(password(1)), kvno: 8, ..DirectoryAccount::with_password(2) };
    let due = DirectoryAccount { kvno: 7, changed: Some(Box::new(changed.clone())), ..changed };
    world.directory.account("WebApp1", due);
    world.kdc_knows(2);
    world.kdc.seal(SERVICE, key(2), 18, Some(8));
    // Without tickets, whose logon reads the password too.
    let answer = ask_keytab(&world, "keytab-1").await;
    assert_eq!((answer.status, &answer.body["kvno"]), (200, &json!(8)));
    let keys = entries(&answer).into_iter().filter(|entry| (&*entry.name, entry.etype) == (SERVICE, 18));
    let keys: Vec<_> = keys.map(|entry| (entry.kvno, entry.key)).collect();
    assert_eq!(keys, [(8, 2), (7, 1)].map(|(kvno, byte)| (kvno, key(byte).as_bytes().to_vec())));
}

#[tokio::test]
async fn a_password_that_is_about_to_change_is_read_after_the_change() {
    let world = keytab_world().await;
    assert_eq!(ask_keytab(&world, "keytab-1").await.status, 200);
    let changed = DirectoryAccount { kvno: 8, ..DirectoryAccount::with_password(2) };
    let (previous, query) = (Some(password(1)), std::time::Duration::from_millis(100));
    let soon = DirectoryAccount { previous, query, kvno: 7, changed: Some(Box::new(changed.clone())), ..changed };
    world.directory.account("WebApp1", soon);
    world.kdc.seal(SERVICE, key(2), 18, Some(8));
    world.directory.asked();
    pass(3600).await;
    let answer = ask_keytab(&world, "keytab-1").await;
    assert_eq!((answer.status, &answer.body["kvno"]), (200, &json!(8)));
    let reads = world.directory.asked().into_iter().filter(|asked| asked.ends_with(" WebApp1"));
    let expected = ["number", "password", "number", "password", "number"].map(|what| format!("{what} WebApp1"));
    assert_eq!(reads.collect::<Vec<_>>(), expected);
}

/// What is changed, and the refusal.
type Row = (&'static str, fn(&World), u16, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "`use` alone",
        |world| world.api.grant_only(&[("shop", "web", "webapp1")]),
        403,
        "not-authorized",
        "service account \"web\" is not authorized to `export` GMSA cred spec \"webapp1\"",
    ),
    (
        "no annotation",
        |world| annotated(world, None),
        403,
        "keytab-names",
        "cred spec webapp1 gives no keytabs: its owner lists no names in the annotation gmsa-webhook/keytab",
    ),
    (
        "a star",
        |world| annotated(world, Some("*")),
        403,
        "keytab-names",
        "cred spec webapp1 gives no keytabs: its annotation gmsa-webhook/keytab lists \"*\", which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433",
    ),
    (
        "no volume",
        |world| {
            world.api.delete("pods", "shop", "web-1");
            world.api.apply(pod("web-1", "u1"));
        },
        403,
        "ticket-pod",
        "the pod \"web-1\" has no projected token with the audience gmsa-keytab/webapp1 in its volumes",
    ),
    (
        "RC4",
        |world| world.kdc.seal(SERVICE, key(1), 23, Some(7)),
        409,
        "keytab-keys",
        "the keytab of WebApp1$@CONTOSO.COM does not open the ticket for HTTP/app.contoso.com@CONTOSO.COM: its encryption type is 23, and a keytab has AES keys alone",
    ),
    (
        "another account's name, or a reset password",
        |world| world.kdc.seal(SERVICE, key(9), 18, Some(7)),
        409,
        "keytab-keys",
        "the keytab of WebApp1$@CONTOSO.COM does not open the ticket for HTTP/app.contoso.com@CONTOSO.COM: another account has this name, or the password was reset by hand, and is right again after its next change",
    ),
    (
        "another number",
        |world| world.kdc.seal(SERVICE, key(1), 18, Some(1)),
        409,
        "keytab-keys",
        "the keytab of WebApp1$@CONTOSO.COM does not open the ticket for HTTP/app.contoso.com@CONTOSO.COM: its key has the number 1, where the directory has 7",
    ),
    (
        "numbers of Windows 2000",
        |world| {
            let account = DirectoryAccount { previous: Some(password(2)), ..DirectoryAccount::with_password(1) };
            world.directory.account("WebApp1", account);
            world.kdc.seal(SERVICE, key(1), 18, Some(1));
        },
        409,
        "keytab-keys",
        "WebApp1$@CONTOSO.COM has had several passwords, and the domain gives the keys of all the number 1: its dSHeuristics set fKVNOEmuW2K",
    ),
    (
        "no such SPN",
        |world| annotated(world, Some("HTTP/nobody.contoso.com")),
        502,
        "principal-unknown",
        "the KDC of CONTOSO.COM refuses: it does not know the service HTTP/nobody.contoso.com, or knows it twice (Kerberos code 7)",
    ),
];

#[tokio::test]
async fn every_cause_has_its_refusal() {
    for (what, change, status, reason, message) in ROWS {
        let world = keytab_world().await;
        change(&world);
        assert_eq!(ask_keytab(&world, "keytab-1").await.refusal(), (*status, *reason, *message), "{what}");
        assert!(world.shows(&format!("gmsa_tickets_requests_total{{outcome=\"{reason}\"}} 1")), "{what}");
    }
}

#[tokio::test]
async fn a_domain_gives_none_unless_it_says_so_and_only_of_its_accounts() {
    let world = world_with("").await;
    let refused = ask_keytab(&world, "keytab-1").await;
    assert_eq!(refused.refusal(), (403, "keytab-domain", "the broker gives no keytabs of contoso.com"));
    assert_eq!((world.directory.asked(), world.kdc.asked()), (Vec::new(), Vec::new()));
    let world = world_with("  keytabs: true\n  accounts: [Other]\n").await;
    let refused = ask_keytab(&world, "keytab-1").await;
    assert_eq!(refused.refusal(), (403, "ticket-account", "the broker gives no keytabs of \"webapp1\" in contoso.com"));
}

#[tokio::test]
async fn a_token_opens_the_path_of_its_audience_alone() {
    let world = keytab_world().await;
    let at = async |path: &str, token: &str| world.ask_at(path, "webapp1", token).await;
    let message = "the token is not for the audience gmsa-keytab/webapp1";
    assert_eq!(at("/v1/keytab", "token-1").await.refusal(), (401, "ticket-token", message));
    let message = "the token is not for the audience gmsa-tickets/webapp1";
    assert_eq!(at("/v1/tickets", "keytab-1").await.refusal(), (401, "ticket-token", message));
    assert_eq!([at("/v1/keytab", "keytab-1").await.status, at("/v1/tickets", "token-1").await.status], [200, 200]);
    // A pod that may export an account need not be it.
    world.api.grant_only(&[]);
    world.api.grant_export("shop", "web", "webapp1");
    assert_eq!([at("/v1/keytab", "keytab-1").await.status, at("/v1/tickets", "token-1").await.status], [200, 403]);
}

#[tokio::test]
async fn a_revoked_right_ends_new_keytabs() {
    let world = keytab_world().await;
    assert_eq!(ask_keytab(&world, "keytab-1").await.status, 200);
    world.api.grant_only(&[("shop", "web", "webapp1")]);
    assert_eq!(ask_keytab(&world, "keytab-1").await.refusal().1, "not-authorized");
    // What the annotation of the pod says changes nothing.
    let mut edited = keytab_pod("web-1", "u1");
    edited["metadata"]["annotations"] = json!({"gmsa-webhook/keytab": "webapp1"});
    world.api.apply(edited);
    assert_eq!(ask_keytab(&world, "keytab-1").await.refusal().1, "not-authorized");
}

//! No key or password is left in the memory of a process that has used and dropped it. That process is this very test, run again.

use std::{
    env,
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    process::{Command, Stdio},
};

use gmsa_kerberos::{
    EncryptionType, EtypeInfo2Entry, KdcRequest, Key, KeytabEntry, Password, Principal, Ticket, ccache, keytab, usage,
};
use time::UtcDateTime;
use zeroize::{Zeroize as _, Zeroizing};

use crate::client;

/// The test below, as the test runner knows it.
const TEST: &str = "memory::no_secret_is_left_in_a_process_that_has_dropped_it";
const USER: &str = "GMSA_KERBEROS_TEST_USES_SECRETS";

/// The 256 bytes of a password, each of which is the same in no other one.
fn secret(seed: u8) -> Zeroizing<Vec<u8>> {
    let mut state = u32::from(seed) | 0x9E37_0000;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(256));
    bytes.extend(std::iter::repeat_with(next).take(256));
    bytes
}

fn account_key(etype: EncryptionType) -> Key {
    let entry = EtypeInfo2Entry { etype, salt: b"CONTOSO.COMhostwebapp1.contoso.com".to_vec(), iterations: 4096 };
    Password::managed(&secret(1)).key(&entry).unwrap()
}

fn tgt(etype: EncryptionType) -> Ticket {
    let Principal { name, realm } = client();
    let service = Principal { name: name.clone(), realm: realm.clone() };
    let session_key = Key::new(etype, &secret(2)[..etype.key_length()]).unwrap();
    let (client, now) = (Principal { name, realm }, UtcDateTime::now());
    Ticket { client, service, session_key, flags: 0, authtime: now, starttime: now, endtime: now, encoded: vec![5, 0] }
}

/// Does all that a broker does with keys.
fn use_secrets() {
    for etype in EncryptionType::ALL {
        let (key, tgt, now) = (account_key(etype), tgt(etype), UtcDateTime::now());
        KdcRequest::as_req(&client(), Some(&key), now, now).unwrap();
        KdcRequest::tgs_req(&tgt, &tgt.service.name, false, now, now).unwrap();
        let encrypted = key.encrypt(usage::AS_REP_ENCPART, tgt.session_key.as_bytes()).unwrap();
        key.decrypt(usage::AS_REP_ENCPART, &encrypted).unwrap();
        let principal = &client();
        assert!(!keytab(&[KeytabEntry { principal, made: now, kvno: 1, key: &key }]).is_empty());
        assert!(!ccache(&[tgt]).is_empty());
    }
}

/// What must not be found: parts of the password in UTF-16 and UTF-8, and halves of the keys.
fn needles() -> Vec<(&'static str, Vec<u8>)> {
    let password = secret(1);
    let text = char::decode_utf16(password.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)));
    let text: String = text.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let mut needles =
        vec![("the password", password[64..80].to_vec()), ("the password in UTF-8", text.as_bytes()[64..80].to_vec())];
    for etype in EncryptionType::ALL {
        let (key, session) = (account_key(etype), secret(2));
        for half in key.as_bytes().chunks(16) {
            needles.push(("the key of the account", half.to_vec()));
        }
        for half in session[..etype.key_length()].chunks(16) {
            needles.push(("the session key", half.to_vec()));
        }
    }
    needles
}

/// Whether the memory of a process, which must be a child, has these bytes.
fn holds(process: u32, needles: &[(&'static str, Vec<u8>)]) -> Vec<&'static str> {
    let maps = BufReader::new(File::open(format!("/proc/{process}/maps")).unwrap());
    let mut memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut left = Vec::new();
    for map in maps.lines().map(Result::unwrap).filter(|map| map.split(' ').nth(1).unwrap().starts_with("rw")) {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        memory.seek(SeekFrom::Start(start)).unwrap();
        memory.read_exact(&mut bytes).unwrap();
        for (what, needle) in needles {
            if bytes.windows(needle.len()).any(|window| window == needle.as_slice()) {
                left.push(*what);
            }
        }
        bytes.zeroize();
    }
    left
}

#[test]
fn no_secret_is_left_in_a_process_that_has_dropped_it() {
    let mut line = String::new();
    if let Ok(kept) = env::var(USER) {
        use_secrets();
        // The search finds what is kept.
        let kept = (kept == "keep").then(|| account_key(EncryptionType::Aes256));
        println!("\nused");
        std::io::stdin().read_line(&mut line).unwrap();
        drop(kept);
        return;
    }
    let needles = needles();
    for (kept, expected) in [("keep", vec!["the key of the account"; 2]), ("drop", Vec::new())] {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture"])
            .env(USER, kept)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(output.any(|line| line == "used"), "{kept}");
        let left = holds(child.id(), &needles);
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        output.for_each(drop);
        assert!(child.wait().unwrap().success());
        assert_eq!(left, expected, "{kept}");
    }
}

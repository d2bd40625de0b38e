//! What is in the memory of broker and agent after tickets were given: the broker keeps keys, no password; the agent has no secret of the domain.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::domain::{administer, prints, root, user};

use crate::world::{PASSWORD, World};

/// What is read at once: a page.
const PIECE: usize = 4096;

/// A part of the account's password that is in no other one, as the directory gives it to the broker's user.
fn password(account: &str, reader: &str) -> Vec<u8> {
    let login = format!("{reader}@contoso.com");
    let filter = format!("(sAMAccountName={account}$)");
    let base = "CN=Managed Service Accounts,DC=contoso,DC=com";
    let search = [
        "ldapsearch",
        "-LLL",
        "-o",
        "ldif-wrap=no",
        "-H",
        "ldaps://dc1.contoso.com",
        "-x",
        "-D",
        &login,
        "-w",
        PASSWORD,
    ];
    let shown = prints(&[&search[..], &["-b", base, &filter, "msDS-ManagedPassword"]].concat(), "");
    let blob = shown.lines().find_map(|line| line.strip_prefix("msDS-ManagedPassword:: ")).unwrap();
    let blob = BASE64_STANDARD.decode(blob).unwrap();
    // [MS-ADTS] 2.2.19: the offset of the current password is at byte 8.
    let start = usize::from(u16::from_le_bytes([blob[8], blob[9]]));
    blob[start + 64..start + 80].to_vec()
}

/// Half of the AES-256 key of an account, which is the last thing in its entry of a keytab but for the version.
fn key(account: &str) -> Vec<u8> {
    administer_keytab(account);
    key_in(&std::fs::read(root().join("tmp/memory.keytab")).unwrap())
}

/// Half of the first AES-256 key of a keytab.
pub fn key_in(keytab: &[u8]) -> Vec<u8> {
    // The type (18) and the length (32) of the key, before its bytes.
    let at = keytab.windows(4).position(|window| window == [0, 18, 0, 32]).unwrap() + 4;
    keytab[at..at + 16].to_vec()
}

fn administer_keytab(account: &str) {
    let principal = format!("--principal={account}$");
    let command =
        ["samba-tool", "domain", "exportkeytab", "/tmp/memory.keytab", &principal, "--configfile=/dc/etc/smb.conf"];
    prints(&command, "");
}

/// Whether a process has these bytes in what it can write. The allocator reserves a gigabyte, nearly all of which is empty.
pub fn holds(process: u32, needle: &[u8]) -> bool {
    let maps = BufReader::new(File::open(format!("/proc/{process}/maps")).unwrap());
    let mut memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let empty = vec![0; PIECE];
    maps.lines().map(Result::unwrap).filter(|map| map.split(' ').nth(1).unwrap().starts_with("rw")).any(|map| {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        memory.seek(SeekFrom::Start(start)).unwrap();
        // The end of the piece before: what is searched for may be in two of them.
        let mut before = Vec::new();
        (start..end).step_by(PIECE).any(|_| {
            let mut piece = vec![0; PIECE];
            if memory.read_exact(&mut piece).is_err() || piece == empty {
                before.clear();
                return false;
            }
            let bytes = [&before[..], &piece].concat();
            before = piece[PIECE - needle.len()..].to_vec();
            bytes.windows(needle.len()).any(|window| window == needle)
        })
    })
}

#[tokio::test]
async fn the_broker_keeps_a_key_and_the_agent_no_secret_of_the_domain() {
    user("Memoryservice", "Passw0rd!Service", None);
    administer("spn add HTTP/memory.contoso.com Memoryservice");
    let world = World::start("Memory").await;
    world.spec("web", "MemoryApp", Some("HTTP/memory.contoso.com")).await;
    world.user_of("web", &["web"]).await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;
    agent.ready().await;
    let secrets = [
        ("the password of the account", password("MemoryApp", "Memorybroker")),
        ("the password of the user", PASSWORD.as_bytes().to_vec()),
        ("the key of the account", key("MemoryApp")),
    ];
    let held = |process| {
        secrets.iter().filter(|(_, secret)| holds(process, secret)).map(|(what, _)| *what).collect::<Vec<_>>()
    };
    assert_eq!(held(world.broker.id()), ["the key of the account"]);
    assert_eq!(held(agent.process.id()), [""; 0]);
}

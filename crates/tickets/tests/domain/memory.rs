//! What is in the memory of broker and agent after tickets were given: the broker keeps keys, no password; the agent has no secret of the domain.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    domain::{prints, root},
    memory::holds,
};

use crate::world::{PASSWORD, World, service};

/// A part of the account's password that is in no other one, as the directory gives it to the broker's user.
fn password(account: &str, reader: &str) -> Vec<u8> {
    let login = format!("{reader}@contoso.com");
    let filter = format!("(sAMAccountName={account}$)");
    let base = "CN=Managed Service Accounts,DC=contoso,DC=com";
    let server = ["ldapsearch", "-LLL", "-o", "ldif-wrap=no", "-H", "ldaps://dc1.contoso.com", "-x"];
    let search = ["-D", &login, "-w", PASSWORD, "-b", base, &filter, "msDS-ManagedPassword"];
    let shown = prints(&[&server[..], &search].concat(), "");
    let blob = shown.lines().find_map(|line| line.strip_prefix("msDS-ManagedPassword:: ")).unwrap();
    let blob = BASE64_STANDARD.decode(blob).unwrap();
    // [MS-ADTS] 2.2.19: the offset of the current password is at byte 8.
    let start = usize::from(u16::from_le_bytes([blob[8], blob[9]]));
    blob[start + 64..start + 80].to_vec()
}

/// Half of the AES-256 key of an account, which is the last thing in its entry of a keytab but for the version.
fn key(account: &str) -> Vec<u8> {
    let principal = format!("--principal={account}$");
    let command =
        ["samba-tool", "domain", "exportkeytab", "/tmp/memory.keytab", &principal, "--configfile=/dc/etc/smb.conf"];
    prints(&command, "");
    key_in(&std::fs::read(root().join("tmp/memory.keytab")).unwrap())
}

/// Half of the first AES-256 key of a keytab.
pub fn key_in(keytab: &[u8]) -> Vec<u8> {
    // The type (18) and the length (32) of the key, before its bytes.
    let at = keytab.windows(4).position(|window| window == [0, 18, 0, 32]).unwrap() + 4;
    keytab[at..at + 16].to_vec()
}

#[tokio::test]
async fn the_broker_keeps_a_key_and_the_agent_no_secret_of_the_domain() {
    service("Memory", &["HTTP/memory.contoso.com"]);
    let world = World::start("Memory").await;
    world.web("MemoryApp", "HTTP/memory.contoso.com").await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;
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

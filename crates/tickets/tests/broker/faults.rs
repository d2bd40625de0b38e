//! Controllers that are silent, hostile or far away: each fault has its answer, and costs the tickets of its own domain alone.

use std::{fs, time::Duration};

use futures::future::join_all;
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::{DirectoryConduct, password},
    eventually,
    kdc::{Conduct, Kdc, Lie},
};
use gmsa_tickets::limits::Times;
use serde_json::json;

use crate::world::{SERVICES, World, spec, times};

/// A silent controller ends a request soon.
fn short() -> Times {
    Times { kdc: Duration::from_millis(300), ..times() }
}

#[tokio::test]
async fn a_kdc_that_lies_gives_no_tickets() {
    const READ: &str = "CONTOSO.COM: the answer of the KDC cannot be read: reply";
    let mismatch = |what: &str| format!("CONTOSO.COM: the answer of the KDC has another {what} than the request");
    let decrypt = "CONTOSO.COM: the answer of the KDC does not decrypt with the key: it was encrypted with another key, or changed on its way";
    let world = World::start().await;
    let kdc = world.kdc.address;
    for (conduct, message) in [
        (Conduct::Answer(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), READ.to_owned()),
        (Conduct::Answer(Vec::new()), READ.to_owned()),
        (Conduct::Answer(vec![0x6B; 65_000]), READ.to_owned()),
        (
            Conduct::Raw(vec![0x7F, 0xFF, 0xFF, 0xFF]),
            format!("the KDC {kdc} answers with 2147483647 bytes: the limit is 64 KiB"),
        ),
        (
            Conduct::Iterations(1 << 31),
            "CONTOSO.COM: the KDC asks for 2147483648 iterations of the password: the limit is 65,536".to_owned(),
        ),
        (Conduct::Lie(Lie::Nonce), mismatch("nonce")),
        (Conduct::Lie(Lie::OtherKey), decrypt.to_owned()),
        (Conduct::Lie(Lie::OtherUsage), decrypt.to_owned()),
    ] {
        world.kdc.conduct(conduct.clone());
        // Another pod each time: one has ten requests.
        let name = format!("pod-{}", format!("{conduct:?}").len());
        world.add_pod(&name, "webapp1");
        let answer = world.ask_for("webapp1", &name).await;
        assert_eq!(answer.refusal(), (502, "ticket-answer", message.as_str()), "{:?}", &format!("{conduct:?}")[..9]);
    }
    for lie in
        [Lie::Realm, Lie::Client, Lie::Service, Lie::TicketRealm, Lie::InnerRealm, Lie::InnerService, Lie::SessionType]
    {
        let world = World::start().await;
        world.kdc.conduct(Conduct::Lie(lie));
        let answer = world.ask().await;
        let (status, reason, message) = answer.refusal();
        assert_eq!((status, reason), (502, "ticket-answer"), "{lie:?}: {message}");
    }
}

#[tokio::test]
async fn a_kdc_that_does_not_answer_is_waited_for_only_so_long() {
    let world = World::with(short(), "").await;
    let kdc = world.kdc.address;
    for (conduct, why) in [
        (Conduct::Silent, format!("the KDC {kdc} did not answer within 300 ms")),
        (Conduct::Raw(vec![0, 0, 1]), format!("the KDC {kdc} did not answer within 300 ms")),
        (Conduct::Raw(vec![0, 0, 1, 0, 0x7E]), format!("the KDC {kdc} did not answer within 300 ms")),
        (Conduct::Close, format!("the KDC {kdc} ended the connection without an answer")),
    ] {
        world.kdc.conduct(conduct);
        let answer = world.ask().await;
        let message = format!("no KDC of CONTOSO.COM answers: {why}");
        assert_eq!(answer.refusal(), (503, "kdc-unreachable", message.as_str()));
        assert!(answer.head.contains("\r\nretry-after: 10\r\n"), "{}", answer.head);
    }
}

/// Each KDC and each service has a time limit; the request has one too, however many they are.
#[tokio::test]
async fn a_request_ends_while_a_kdc_is_silent() {
    let world = World::with(Times { request: Duration::from_secs(3), ..times() }, "").await;
    assert_eq!(world.ask().await.status, 200);
    world.kdc.conduct(Conduct::Silent);
    let message = "no KDC of CONTOSO.COM answers in time";
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", message));
}

#[tokio::test]
async fn a_controller_that_does_not_answer_is_followed_by_the_next_one() {
    let world = World::start().await;
    let (directory, first) = (world.directory.address, world.kdc.address);
    let second = Kdc::start_at(([127, 0, 0, 2], first.port()).into(), "contoso.com").await;
    second.account("WebApp1$", &Password::managed(&password(1)), EncryptionType::Aes256);
    SERVICES.split(", ").for_each(|service| second.service(service));
    // Nothing listens on the first port, and no directory at the third controller.
    let text = fs::read_to_string(world.path("tickets.yaml")).unwrap();
    let named = format!("'ldaps://127.0.0.1:9', 'ldaps://{directory}', 'ldaps://127.0.0.2'");
    fs::write(world.path("tickets.yaml"), text.replace(&format!("'ldaps://{directory}'"), &named)).unwrap();
    let world = world.restarted(times());
    // The KDC of the controller that gave the password comes first.
    assert_eq!((world.ask().await.status, second.asked()), (200, Vec::new()));
    world.kdc.conduct(Conduct::Close);
    let world = world.restarted(times());
    assert_eq!(world.ask().await.status, 200);
    let services = ["TGS HTTP/app.contoso.com", "TGS MSSQLSvc/sql1.contoso.com:1433"];
    assert_eq!(second.asked(), [&["AS WebApp1$", "AS+ WebApp1$"][..], &services].concat());
}

#[tokio::test]
async fn clocks_that_differ_are_said_with_the_difference() {
    for (ahead, words) in [(time::Duration::minutes(10), "ahead of"), (time::Duration::minutes(-10), "behind")] {
        let world = World::start().await;
        world.kdc.clock(ahead);
        let answer = world.ask().await;
        let (status, reason, message) = answer.refusal();
        assert_eq!((status, reason), (502, "directory-clock"));
        let seconds: i64 = message.split(' ').find_map(|word| word.parse().ok()).unwrap();
        assert!((598..=602).contains(&seconds), "{message}");
        let expected = format!(
            "the KDC of CONTOSO.COM refuses: its clock is {seconds} s {words} that of the broker (Kerberos code 37)"
        );
        assert_eq!(message, expected);
    }
    // Kerberos allows five minutes.
    let world = World::start().await;
    world.kdc.clock(time::Duration::minutes(4));
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_directory_that_sends_garbage_gives_no_password() {
    let world = World::start().await;
    let address = world.directory.address;
    let huge = [&[0x30, 0x83, 0x20, 0, 0][..], &[0; 100]].concat();
    for (conduct, status, message) in [
        (
            DirectoryConduct::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            502,
            format!("ldaps://{address} sends an answer that is not LDAP"),
        ),
        (DirectoryConduct::Raw(huge), 502, format!("ldaps://{address} takes more than 1 MiB of answers")),
        (
            DirectoryConduct::Close,
            503,
            format!("no domain controller of contoso.com answers: ldaps://{address} ended the connection"),
        ),
    ] {
        world.directory.conduct(conduct);
        let reason = if status == 502 { "ticket-answer" } else { "ldap-unreachable" };
        assert_eq!(world.ask().await.refusal(), (status, reason, message.as_str()));
    }
}

#[tokio::test]
async fn a_silent_domain_leaves_the_others_their_tickets() {
    let (silent, other) = (World::start().await, World::start().await);
    silent.directory.conduct(DirectoryConduct::Silent);
    // A broker of both: the silent one is fabrikam.com there.
    let config = |world: &World, name: &str| {
        let text = fs::read_to_string(world.path("tickets.yaml")).unwrap();
        text.replacen("domains:\n", "", 1).replace("name: contoso.com", &format!("name: {name}"))
    };
    let both = format!("domains:\n{}{}", config(&other, "contoso.com"), config(&silent, "fabrikam.com"));
    fs::write(other.path("tickets.yaml"), both).unwrap();
    let world = other.restarted(times());
    let mut fabrikam = spec("fabrikam", Some("HTTP/app.fabrikam.com"));
    fabrikam["credspec"]["DomainJoinConfig"]["DnsName"] = json!("fabrikam.com");
    world.api.apply(fabrikam);
    world.api.grant_only(&[("shop", "web", "webapp1"), ("shop", "web", "fabrikam")]);
    let ask = async |number: usize| {
        let name = format!("pod-{number}");
        world.add_pod(&name, "fabrikam");
        world.ask_for("fabrikam", &name).await
    };
    let room = gmsa_tickets::limits::BrokerLimits::of_memory(128 << 20).of_domain(2);
    let flood = join_all((0..room).map(&ask));
    let others = async {
        eventually("its share is taken", || world.taken("fabrikam.com") == room / 2).await;
        assert_eq!(world.ask().await.status, 200);
    };
    tokio::select! {
        _ = flood => panic!("the silent domain answered"),
        () = others => {}
    }
}

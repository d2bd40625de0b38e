//! What a pod gets while the controller of its domain is silent or hostile, or its clock or its host is another one.

use std::{env::consts::ARCH, fs, process::Command};

use gmsa_test_support::{
    directory::SimulatedDirectory,
    domain::{account, root},
};
use serde_json::json;

use crate::{
    relay::{Conduct, Relay},
    world::{PASSWORD, World, service},
};

const KDC: &str = "10.0.0.1:88";

/// Gives a pod of its own to an account, and says what the broker answers to it: status, reason and message.
async fn asked(world: &World, account: &str, services: &str) -> (u16, String, String) {
    let name = account.to_lowercase();
    world.spec(&name, account, Some(services)).await;
    world.user_of(&name, &[&name]).await;
    let pod = world.pod(&name, &name, &name).await;
    let answer = world.asked(&world.token_of(&pod, &name).await, &name).await.unwrap();
    let body = answer.json();
    let said = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), said("reason"), said("message"))
}

/// Another KDC is the one that the DNS names: the relay's own server.
#[tokio::test]
async fn a_kdc_that_is_silent_is_followed_by_another_and_one_that_is_hostile_gives_no_tickets() {
    service("Lie", &["HTTP/lie.contoso.com"]);
    let mut world = World::start("Lie").await;
    let relay = Relay::start("10.0.0.1", KDC.parse().unwrap());
    world.restart(|domain| domain["kdcPort"] = json!(relay.address.port())).await;
    let iterations = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        [4, 4, a, b, c, d]
    };
    let said = "CONTOSO.COM: the answer of the KDC cannot be read: reply";
    for (name, conduct, status, reason, message) in [
        ("LieSilent", Conduct::HoldAfter(0), 200, "", String::new()),
        ("LieGarbage", Conduct::Answer(b"\0\0\0\x09not DER\r\n".to_vec()), 502, "ticket-answer", said.to_owned()),
        ("LieLength", Conduct::Answer(vec![0x80, 0, 0, 0]), 200, "", String::new()),
        (
            "LieWork",
            Conduct::Replace(iterations(4096), iterations(1 << 31)),
            502,
            "ticket-answer",
            "CONTOSO.COM: the KDC asks for 2147483648 iterations of the password: the limit is 65,536".to_owned(),
        ),
        ("LieHonest", Conduct::Pass, 200, "", String::new()),
    ] {
        account(name, "LieHosts", &[]);
        relay.conduct(conduct);
        let answer = asked(&world, name, "HTTP/lie.contoso.com").await;
        assert_eq!(answer, (status, reason.to_owned(), message), "{name}: {}", world.logs());
    }
}

/// The same program with a clock that is so far ahead: Debian's loader starts it with its libfaketime.
pub fn with_clock(command: &Command, ahead: &str) -> Command {
    let libraries = root().join(format!("usr/lib/{ARCH}-linux-gnu"));
    let loader = fs::read_dir(&libraries).unwrap().map(|entry| entry.unwrap().path());
    let mut loader = loader.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("ld-linux-"));
    let mut started = Command::new(loader.next().unwrap());
    started.arg("--library-path").arg(&libraries).arg("--preload").arg(libraries.join("faketime/libfaketime.so.1"));
    started.arg(command.get_program()).args(command.get_args()).env_clear();
    started.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    started.env("FAKETIME", ahead).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    started
}

#[tokio::test]
async fn a_clock_that_is_too_far_away_is_named_with_the_difference() {
    service("Clock", &["HTTP/clock.contoso.com"]);
    let mut world = World::start("Clock").await;
    let command = with_clock(&world.command, "+10m");
    world.command = command;
    world.restart(|_| ()).await;
    let (status, reason, message) = asked(&world, "ClockApp", "HTTP/clock.contoso.com").await;
    assert_eq!((status, &*reason), (502, "directory-clock"), "{message}");
    let seconds: i64 = message.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!((598..=602).contains(&seconds), "{message}");
    assert_eq!(
        message,
        format!(
            "the KDC of CONTOSO.COM refuses: its clock is {seconds} s behind that of the broker (Kerberos code 37)"
        )
    );
    // Kerberos allows five minutes.
    world.command.env("FAKETIME", "+4m");
    world.restart(|_| ()).await;
    account("ClockNear", "ClockHosts", &[]);
    let answer = asked(&world, "ClockNear", "HTTP/clock.contoso.com").await;
    assert_eq!(answer, (200, String::new(), String::new()), "{}", world.logs());
}

/// As where the DNS is forged: the name of the controller leads to another host.
#[tokio::test]
async fn a_host_that_is_not_the_controller_gets_no_password_of_the_user() {
    let mut world = World::start("Forged").await;
    let other = SimulatedDirectory::start("contoso.com", "Forgedbroker@contoso.com", PASSWORD).await;
    let relay = Relay::start("10.0.0.1", other.address);
    let controller = format!("ldaps://dc1.contoso.com:{}", relay.address.port());
    world.restart(|domain| domain["controllers"] = json!([&controller])).await;
    let (status, reason, message) = asked(&world, "ForgedApp", "HTTP/forged.contoso.com").await;
    assert_eq!((status, &*reason), (502, "server-certificate"), "{message}");
    assert!(message.starts_with(&format!("the certificate of {controller} is not trusted: ")), "{message}");
    assert_eq!(other.asked(), [""; 0]);
}

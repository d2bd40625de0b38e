//! Keys, passwords and ticket-granting tickets: what is asked of a controller, how often, and that no account is locked out.

use std::time::Duration;

use futures::future::join_all;
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::{DirectoryAccount, DirectoryConduct, password},
    kdc::Conduct,
};
use gmsa_tickets::limits::Times;

use crate::world::{SECRET, SERVICES, World, pass, spec, times};

const WRONG: &str = "WebApp1$@CONTOSO.COM cannot log on: the KDC rejects the passwords that the directory gives; they are not tried \
                     again for a while";

async fn ask_as(world: &World, number: usize) -> u16 {
    let name = format!("pod-{number}");
    world.add_pod(&name, "webapp1");
    world.ask_for("webapp1", &name).await.status
}

#[tokio::test]
async fn an_account_has_one_logon_for_all_its_pods() {
    let world = World::start().await;
    let statuses = join_all((0..20).map(|number| ask_as(&world, number))).await;
    assert_eq!(statuses, [200; 20]);
    assert_eq!((world.reads(), world.kdc.asked().iter().filter(|asked| asked.starts_with("TGS")).count()), (1, 40));
    assert_eq!(ask_as(&world, 20).await, 200);
    assert_eq!((world.reads(), world.tries()), (0, 0));
}

#[tokio::test]
async fn the_password_is_read_again_when_its_interval_ends() {
    let world = World::start().await;
    world.api.apply(spec("webapp1", Some("*")));
    let account = DirectoryAccount { query: Duration::ZERO, ..DirectoryAccount::with_password(1) };
    world.directory.account("WebApp1", account);
    for _ in 0..2 {
        assert_eq!(world.ask().await.status, 200);
        assert_eq!((world.reads(), world.tries()), (1, 1));
    }
    world.directory.account("WebApp1", DirectoryAccount::with_password(1));
    assert_eq!(world.ask().await.status, 200);
    assert_eq!(world.ask().await.status, 200);
    assert_eq!((world.reads(), world.tries()), (1, 2));
}

#[tokio::test]
async fn the_previous_password_is_tried_after_a_second_read() {
    let world = World::start().await;
    let account = DirectoryAccount { previous: Some(password(2)), ..DirectoryAccount::with_password(1) };
    world.directory.account("WebApp1", account);
    world.kdc_knows(2);
    assert_eq!(world.ask().await.status, 200);
    assert_eq!((world.reads(), world.tries()), (2, 2));
}

#[tokio::test]
async fn a_kept_key_that_became_wrong_costs_one_try_and_one_read() {
    let world = World::start().await;
    world.api.apply(spec("webapp1", Some("*")));
    assert_eq!(world.ask().await.status, 200);
    world.directory.account("WebApp1", DirectoryAccount::with_password(2));
    world.kdc_knows(2);
    assert_eq!((world.reads(), world.tries()), (1, 1));
    assert_eq!(world.ask().await.status, 200);
    assert_eq!((world.reads(), world.tries()), (1, 2));
    // A logon tries two keys: the previous password is for the next one.
    let account = DirectoryAccount { previous: Some(password(4)), ..DirectoryAccount::with_password(3) };
    world.directory.account("WebApp1", account);
    world.kdc_knows(5);
    assert_eq!((world.ask().await.status, world.tries()), (409, 2));
}

#[tokio::test]
async fn no_flood_locks_an_account_out() {
    let world = World::start().await;
    let account = DirectoryAccount { previous: Some(password(2)), ..DirectoryAccount::with_password(1) };
    world.directory.account("WebApp1", account);
    world.kdc_knows(3);
    let statuses = join_all((0..30).map(|number| ask_as(&world, number))).await;
    assert_eq!(statuses, [409; 30]);
    // Each password once, however many requests there are, and no pause between them.
    assert_eq!(world.tries(), 2);
    assert_eq!(world.ask().await.refusal(), (409, "logon-denied", WRONG));
    assert_eq!(world.tries(), 0);
    // A password that was not tried yet.
    world.directory.account("WebApp1", DirectoryAccount::with_password(3));
    assert_eq!(world.ask().await.status, 200);
    assert_eq!(world.tries(), 1);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_have_a_password_tried_again() {
    let world = World::start().await;
    world.kdc_knows(3);
    for number in 0..5 {
        // It ends with the first event at the KDC.
        tokio::select! {
            _ = ask_as(&world, number) => {}
            () = gmsa_test_support::eventually("the KDC is asked", || world.tries() > 0) => {}
        }
    }
    assert_eq!(world.ask().await.refusal(), (409, "logon-denied", WRONG));
    assert!(world.tries() <= 2);
}

#[tokio::test]
async fn a_wrong_password_of_the_user_is_tried_once_in_half_an_hour() {
    let world = World::start().await;
    world.directory.password_of_user("Changed.2");
    let binds = || world.directory.asked().iter().filter(|asked| asked.starts_with("bind")).count();
    let file = world.path("password").display().to_string();
    let hint = |minutes| {
        format!("it is tried again in {minutes} min, or as soon as {file} holds another one or the broker is restarted")
    };
    let first = format!(
        "ldaps://{} does not let broker@contoso.com in: the password is wrong, or the domain does not know the user; {}",
        world.directory.address,
        hint(30)
    );
    assert_eq!(world.ask().await.refusal(), (502, "ldap-credentials", first.as_str()));
    assert_eq!(binds(), 1);
    pass(29 * 60).await;
    let statuses = join_all((0..20).map(|number| ask_as(&world, number))).await;
    assert_eq!((statuses, binds()), (vec![502; 20], 0));
    let again = format!("contoso.com refused the password of the user \"broker@contoso.com\": {}", hint(1));
    assert_eq!(world.ask().await.refusal(), (502, "ldap-credentials", again.as_str()));
    // Once in half an hour: the domain may have the password of the file by then.
    pass(60).await;
    assert_eq!((world.ask().await.refusal().2, binds()), (first.as_str(), 1));
    world.directory.password_of_user(SECRET);
    pass(30 * 60).await;
    assert_eq!((world.ask().await.status, binds()), (200, 1));
}

#[tokio::test]
async fn a_changed_file_has_the_password_of_the_user_tried_at_once() {
    let world = World::start().await;
    world.directory.password_of_user("Changed.2");
    let binds = || world.directory.asked().iter().filter(|asked| asked.starts_with("bind")).count();
    let file = world.path("password").display().to_string();
    assert_eq!((world.ask().await.status, binds()), (502, 1));
    world.write_password("Changed.2");
    assert_eq!((world.ask().await.status, binds()), (200, 1));
    // A file without a password is no reason to end.
    world.api.apply(spec("webapp1", Some("*")));
    world
        .directory
        .account("WebApp1", DirectoryAccount { query: Duration::ZERO, ..DirectoryAccount::with_password(1) });
    world.write_password("");
    world.kdc_knows(4);
    let empty = format!("{file} is empty: write the password of the user into it");
    assert_eq!(world.ask().await.refusal(), (502, "ldap-credentials", empty.as_str()));
}

#[tokio::test]
async fn a_changed_ca_is_read_again() {
    let world = World::start().await;
    let ca = std::fs::read(world.path("ca.crt")).unwrap();
    std::fs::write(world.path("ca.crt"), gmsa_test_support::Tls::new().pem()).unwrap();
    let answer = world.ask().await;
    let (status, reason, message) = answer.refusal();
    assert_eq!((status, reason), (502, "server-certificate"));
    let start = format!("the certificate of ldaps://{} is not trusted: ", world.directory.address);
    let end = "; `caFile` (with the chart `domains[].caConfigMap`) names the CA of the domain controllers";
    assert!(message.starts_with(&start) && message.ends_with(end) && !message.contains("--directory"), "{message}");
    assert_eq!(world.directory.asked(), Vec::<String>::new());
    std::fs::write(world.path("ca.crt"), ca).unwrap();
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_refusal_is_the_answer_for_a_while() {
    let world = World::with(Times { pause: Duration::from_secs(600), ..times() }, "").await;
    world.kdc.conduct(Conduct::Refuse(18, Some(0xC000_0072)));
    assert_eq!(world.ask().await.status, 409);
    let asked = world.kdc.asked().len();
    world.kdc.conduct(Conduct::Honest);
    assert_eq!((world.ask().await.status, asked, world.kdc.asked().len()), (409, 1, 0));
}

#[tokio::test]
async fn a_domain_that_did_not_answer_is_left_alone_for_a_while() {
    let world = World::with(Times { pause: Duration::from_secs(600), ..times() }, "").await;
    let mut other = spec("other", Some(SERVICES));
    other["credspec"]["DomainJoinConfig"]["MachineAccountName"] = "WebApp2".into();
    world.api.apply(other);
    world.api.grant_only(&[("shop", "web", "webapp1"), ("shop", "web", "other")]);
    world.directory.conduct(DirectoryConduct::Close);
    let first = world.ask().await;
    assert_eq!(first.refusal().0, 503);
    world.directory.conduct(DirectoryConduct::Honest);
    // Another account of it: the controllers are not asked.
    world.add_pod("web-2", "other");
    let second = world.ask_for("other", "web-2").await;
    assert_eq!(second.refusal(), first.refusal());
}

#[tokio::test]
async fn a_disabled_account_is_noticed_with_the_next_ticket() {
    let world = World::start().await;
    assert_eq!(world.ask().await.status, 200);
    world.kdc.conduct(Conduct::Refuse(18, Some(0xC000_0072)));
    let message = "WebApp1$@CONTOSO.COM cannot log on: it is disabled (Kerberos code 18, status 0xc0000072)";
    assert_eq!(world.ask().await.refusal(), (409, "account-disabled", message));
    world.kdc.conduct(Conduct::Honest);
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn tickets_end_when_the_domain_says() {
    let world = World::start().await;
    world.kdc.most(time::Duration::minutes(10));
    let answer = world.ask().await;
    let time = |key: &str| {
        let format = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(answer.body[key].as_str().unwrap(), format).unwrap()
    };
    let (life, renewal) = (time("expires"), time("renewAfter"));
    let half = life - renewal;
    assert!((time::Duration::minutes(4)..=time::Duration::minutes(6)).contains(&half), "{half}");
}

#[tokio::test]
async fn accounts_and_aes_128_as_the_configuration_and_the_domain_have_them() {
    let world = World::with(times(), "  accounts: [Other]\n").await;
    let message = "the broker gives no tickets of \"webapp1\" in contoso.com";
    assert_eq!(world.ask().await.refusal(), (403, "ticket-account", message));
    assert_eq!(world.directory.asked(), Vec::<String>::new());
    let world = World::with(times(), "  accounts: ['WebApp1$']\n").await;
    world.kdc.account("WebApp1$", &Password::managed(&password(1)), EncryptionType::Aes128);
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_directory_that_refuses_is_named() {
    let world = World::start().await;
    let address = world.directory.address;
    for (conduct, status, reason, message) in [
        (DirectoryConduct::Refuse(50), 502, "directory-denied", "refuses: insufficient access rights (not now)"),
        (DirectoryConduct::Refuse(51), 503, "ldap-unreachable", "refuses: it is busy (not now)"),
    ] {
        world.directory.conduct(conduct);
        let said = format!("ldaps://{address} {message}");
        let said = if status == 503 { format!("no domain controller of contoso.com answers: {said}") } else { said };
        assert_eq!(world.ask().await.refusal(), (status, reason, said.as_str()));
    }
}

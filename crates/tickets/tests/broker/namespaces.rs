//! Namespaces that share a domain: none takes the tickets of another one.

use std::time::Duration;

use futures::future::join_all;
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::{DirectoryAccount, DirectoryConduct, password},
    eventually,
    kdc::Conduct,
};
use gmsa_tickets::limits::{BrokerLimits, Times};
use serde_json::json;

use crate::world::{Answer, SERVICES, World, bound_to, pod_of, spec, times};

/// Gives the namespace `crowd` pods that may use the account `WebApp2` with the credential spec `crowded`.
fn crowd(world: &World, services: &str, pods: usize) -> Vec<String> {
    world.directory.account("WebApp2", DirectoryAccount::with_password(2));
    world.kdc.account("WebApp2$", &Password::managed(&password(2)), EncryptionType::Aes256);
    let mut crowded = spec("crowded", Some(services));
    crowded["credspec"]["DomainJoinConfig"]["MachineAccountName"] = "WebApp2".into();
    world.api.apply(crowded);
    world.api.grant_only(&[("shop", "web", "webapp1"), ("crowd", "web", "crowded"), ("shop", "web", "crowded")]);
    let tokens = (0..pods).map(|number| {
        let (name, uid, token) = (format!("pod-{number}"), format!("c{number}"), format!("token-c{number}"));
        let mut pod = pod_of(&name, &uid, "crowded");
        pod["metadata"]["namespace"] = "crowd".into();
        world.api.apply(pod);
        let mut user = bound_to(&name, &uid);
        user["username"] = json!("system:serviceaccount:crowd:web");
        world.accept_token(&token, &["gmsa-tickets/crowded"], user);
        token
    });
    tokens.collect()
}

async fn ask(world: &World, token: &str) -> Answer {
    world.ask_for("crowded", token).await
}

#[tokio::test]
async fn one_namespace_leaves_the_others_their_tickets() {
    let world = World::start().await;
    let room = BrokerLimits::of_memory(128 << 20).of_domain(1);
    let tokens = crowd(&world, "*", room);
    assert_eq!(ask(&world, &tokens[0]).await.status, 200);
    world.kdc.conduct(Conduct::SilentTo("WebApp2$"));
    let flood = join_all(tokens.iter().map(|token| ask(&world, token)));
    let victim = async {
        // Half of the places.
        eventually("the namespace has its share", || world.taken("contoso.com") == room / 2).await;
        for _ in 0..5 {
            assert_eq!(world.ask().await.status, 200);
        }
    };
    tokio::select! {
        _ = flood => panic!("the KDC answered"),
        () = victim => {}
    }
}

#[tokio::test]
async fn requests_of_a_namespace_wait_until_their_deadline_and_more_are_refused_at_once() {
    let world = World::with(Times { request: Duration::from_secs(10), ..times() }, "").await;
    let limits = BrokerLimits::of_memory(128 << 20);
    let tokens = crowd(&world, "*", limits.of_namespace() + 1);
    assert_eq!(ask(&world, &tokens[0]).await.status, 200);
    world.kdc.conduct(Conduct::SilentTo("WebApp2$"));
    let answers = join_all(tokens.iter().map(|token| ask(&world, token))).await;
    let busy = "too many requests wait for the domain controllers of contoso.com: this namespace has its share";
    let late = "no domain controller of contoso.com answers in time";
    let count = |reason, message| answers.iter().filter(|answer| answer.refusal() == (503, reason, message)).count();
    let held = limits.of_domain(1) / 2;
    assert_eq!(count("ldap-unreachable", late), held);
    assert_eq!(count("ticket-busy", busy), tokens.len() - held);
}

/// A logon with a key that has yielded a ticket waits for no other one.
#[tokio::test]
async fn logons_with_a_proven_key_run_side_by_side() {
    let world = World::start().await;
    let tokens = crowd(&world, "*", 5);
    assert_eq!(ask(&world, &tokens[0]).await.status, 200);
    world.kdc.asked();
    world.kdc.conduct(Conduct::SilentTo("WebApp2$"));
    let flood = join_all(tokens.iter().map(|token| ask(&world, token)));
    let mut asked = 0;
    let all = eventually("all of them ask the KDC", || {
        asked += world.kdc.asked().len();
        asked == tokens.len()
    });
    tokio::select! {
        _ = flood => panic!("the KDC answered"),
        () = all => {}
    }
}

/// One password is read after the other: no controller is to blame where an account waits for that.
#[tokio::test]
async fn an_account_that_waits_for_the_read_of_another_is_not_called_unreachable() {
    let world = World::with(Times { request: Duration::from_secs(4), ..times() }, "").await;
    let tokens = crowd(&world, SERVICES, 1);
    world.directory.conduct(DirectoryConduct::Silent);
    let first = world.ask();
    let second = async {
        eventually("the first is read", || world.directory.asked() == ["unanswered"]).await;
        ask(&world, &tokens[0]).await
    };
    let (first, second) = futures::future::join(first, second).await;
    let late = "no domain controller of contoso.com answers in time";
    assert_eq!(first.refusal(), (503, "ldap-unreachable", late));
    let queued = "too many requests wait for the domain controllers of contoso.com: the passwords of other accounts are read first";
    assert_eq!(second.refusal(), (503, "ticket-busy", queued));
}

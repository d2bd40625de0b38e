//! Controllers that go down after a logon, and those that the DNS names then.

use std::time::Duration;

use gmsa_test_support::{
    directory::{DirectoryAccount, password},
    kdc::{Conduct, Kdc},
};
use gmsa_tickets::limits::Times;

use crate::{
    dns::Dns,
    world::{World, pass, spec, times},
};

const TGS: [&str; 2] = ["TGS HTTP/app.contoso.com", "TGS MSSQLSvc/sql1.contoso.com:1433"];

async fn second(world: &World) -> Kdc {
    world.kdc.another(([127, 0, 0, 2], 0).into()).await
}

#[tokio::test]
async fn a_kdc_that_went_down_is_followed_by_those_that_the_dns_names() {
    for conduct in [Conduct::Close, Conduct::Silent, Conduct::Refuse(29, None)] {
        let world = World::start().await;
        let second = second(&world).await;
        let dns = Dns::start(&[second.address]).await;
        let world = world.with_dns(dns.address, Times { kdc: Duration::from_millis(500), ..times() });
        assert_eq!((world.ask().await.status, second.asked()), (200, Vec::new()));
        world.kdc.conduct(conduct);
        // The ticket-granting ticket is good for every KDC of the domain.
        assert_eq!((world.ask().await.status, second.asked()), (200, TGS.map(str::to_owned).to_vec()));
    }
}

#[tokio::test]
async fn an_unanswered_exchange_forgets_the_logon_and_finds_the_controllers_again() {
    for services in [crate::world::SERVICES, "*"] {
        let world = World::start().await;
        let (second, dns) = (second(&world).await, Dns::start(&[]).await);
        let world = world.with_dns(dns.address, times());
        world.api.apply(spec("webapp1", Some(services)));
        assert_eq!(world.ask().await.status, 200);
        // The only known one goes down, and a new one is in the DNS.
        world.kdc.conduct(Conduct::Close);
        dns.name(&[second.address]);
        assert_eq!(world.ask().await.status, 200);
        let logon = ["AS WebApp1$", "AS+ WebApp1$"];
        let asked = second.asked();
        assert_eq!(asked[asked.len() - logon.len() - if services == "*" { 0 } else { 2 }..][..2], logon);
    }
}

/// Where no other KDC answers, one more logon is tried, and then the request ends.
#[tokio::test]
async fn an_unanswered_exchange_has_one_logon_more() {
    let world = World::start().await;
    assert_eq!(world.ask().await.status, 200);
    world.directory.asked();
    world.kdc.conduct(Conduct::Close);
    let message =
        format!("no KDC of CONTOSO.COM answers: the KDC {} ended the connection without an answer", world.kdc.address);
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", message.as_str()));
    assert_eq!(world.reads(), 1);
    world.kdc.conduct(Conduct::Honest);
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn before_a_change_the_previous_password_is_tried_first() {
    let world = World::start().await;
    // The KDC still takes the first password; the directory gives the second as the current one.
    let account = DirectoryAccount {
        previous: Some(password(1)),
        query: Duration::from_secs(300),
        ..DirectoryAccount::with_password(2)
    };
    world.directory.account("WebApp1", account);
    assert_eq!((world.ask().await.status, world.tries()), (200, 1));
}

#[tokio::test]
async fn a_password_that_is_refused_before_the_change_is_tried_after_it() {
    let world = World::start().await;
    let account = DirectoryAccount { query: Duration::from_secs(200), ..DirectoryAccount::with_password(2) };
    world.directory.account("WebApp1", account);
    assert_eq!((world.ask().await.status, world.tries()), (409, 1));
    pass(199).await;
    assert_eq!((world.ask().await.status, world.tries()), (409, 0));
    pass(2).await;
    world.directory.account("WebApp1", DirectoryAccount::with_password(2));
    world.kdc_knows(2);
    assert_eq!((world.ask().await.status, world.tries()), (200, 1));
}

/// Anyone on the path can send that a password is wrong, and a controller that lags does.
#[tokio::test]
async fn a_proven_key_is_tried_again_soon_and_only_so_often() {
    let world = World::start().await;
    world.api.apply(spec("webapp1", Some("*")));
    assert_eq!((world.ask().await.status, world.tries()), (200, 1));
    world.kdc.conduct(Conduct::Refuse(24, None));
    assert_eq!((world.ask().await.status, world.tries()), (409, 1));
    world.kdc.conduct(Conduct::Honest);
    pass(29).await;
    assert_eq!((world.ask().await.status, world.tries()), (409, 0));
    pass(2).await;
    assert_eq!((world.ask().await.status, world.tries()), (200, 1));

    world.kdc.conduct(Conduct::RefuseProven(24, None));
    let mut tried = Vec::new();
    for _minute in 0..34 {
        pass(60).await;
        assert_eq!(world.ask().await.status, 409);
        tried.push(world.tries());
    }
    assert_eq!(tried.iter().sum::<usize>(), 3, "{tried:?}");
    // Then as if it had never been refused.
    pass(36 * 60).await;
    world.kdc.conduct(Conduct::Honest);
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_kept_ticket_granting_ticket_is_used_before_a_refusal_is_remembered() {
    let world = World::with(Times { pause: Duration::from_secs(600), ..times() }, "").await;
    assert_eq!(world.ask().await.status, 200);
    // The same account, with tickets of another kind.
    world.api.apply(spec("webapp1", Some("*")));
    world.kdc.conduct(Conduct::Refuse(24, None));
    assert_eq!(world.ask().await.status, 409);
    world.kdc.conduct(Conduct::Honest);
    assert_eq!(world.ask().await.status, 409);
    world.api.apply(spec("webapp1", Some(crate::world::SERVICES)));
    assert_eq!(world.ask().await.status, 200);
}

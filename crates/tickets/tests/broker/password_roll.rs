//! The domain changes the password of an account under requests, from ten minutes before the change to forty after it: what its controllers
//! give, by their clocks, and that no request is refused.

use std::time::Duration;

use gmsa_edge::metrics::scrape;
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::directory::{DirectoryAccount, password};

use crate::world::{World, bound_to, pass, pod, spec, times};

const MINUTE: i64 = 60;

/// The shortest interval of a password.
const INTERVAL: i64 = 24 * 60 * MINUTE;

/// How long before the change a controller gives the next password as the current one (seen in Samba 4.22).
const BEFORE_CHANGE: i64 = 5 * MINUTE;

/// What the directory gives, so many seconds after the change.
fn given(seconds: i64) -> DirectoryAccount {
    let left = if seconds < 0 { -seconds } else { INTERVAL - seconds };
    let (current, previous) = if seconds < -BEFORE_CHANGE { (1, None) } else { (2, Some(password(1))) };
    let query = Duration::from_secs(left.unsigned_abs());
    DirectoryAccount { previous, query, ..DirectoryAccount::with_password(current) }
}

/// Two pods ask, one for service tickets and one for a ticket-granting ticket, of a broker that is started again each time where `restarts`
/// says so. The KDC makes the change so many seconds later than the directory. Returns how many logons it has refused.
async fn walk(kdc_lags: i64, restarts: bool) -> u64 {
    let mut world = World::start().await;
    world.api.apply(spec("any", Some("*")));
    world.api.grant_only(&[("shop", "web", "webapp1"), ("shop", "web", "any")]);
    let mut any = pod("web-2", "u2");
    any["spec"]["volumes"][1]["projected"]["sources"][0]["serviceAccountToken"]["audience"] = "gmsa-tickets/any".into();
    world.api.apply(any);
    world.accept_token("token-2", &["gmsa-tickets/any"], bound_to("web-2", "u2"));
    let (mut now, mut is_changed) = (-10 * MINUTE, false);
    while now <= 40 * MINUTE {
        world.directory.account("WebApp1", given(now));
        if now >= kdc_lags && !is_changed {
            world.kdc.account("WebApp1$", &Password::managed(&password(2)), EncryptionType::Aes256);
            is_changed = true;
        }
        if restarts {
            world = world.restarted(times());
        }
        for (token, name) in [("token-1", "webapp1"), ("token-2", "any")] {
            let answer = world.ask_with(token, &format!(r#"{{"credentialSpec": "{name}"}}"#)).await;
            assert_eq!(answer.status, 200, "{name} at {now} s, where the KDC lags by {kdc_lags} s: {answer:?}");
        }
        let step = if (-330..150).contains(&now) { 10 } else { 2 * MINUTE };
        pass(step.unsigned_abs()).await;
        now += step;
    }
    let shown = scrape(&world.registry).unwrap();
    let failed = "gmsa_tickets_exchanges_total{kind=\"as\",outcome=\"failed\"} ";
    shown.lines().find_map(|line| line.strip_prefix(failed)).unwrap().parse().unwrap()
}

#[tokio::test]
async fn no_request_is_refused_while_the_password_changes_and_no_wrong_one_is_tried() {
    assert_eq!(walk(0, false).await, 0);
}

#[tokio::test]
async fn no_request_is_refused_where_the_kdc_changes_it_sooner_or_later_than_the_directory() {
    for kdc_lags in [-2 * MINUTE, 20, 2 * MINUTE] {
        let refused = walk(kdc_lags, false).await;
        assert!((1..=2).contains(&refused), "{kdc_lags}: {refused}");
    }
}

#[tokio::test]
async fn no_request_is_refused_by_a_broker_that_starts_while_the_password_changes() {
    for kdc_lags in [0, -2 * MINUTE, 2 * MINUTE] {
        walk(kdc_lags, true).await;
    }
}

//! The domain changes the password of an account under requests, from ten minutes before the change to forty after it: what its controllers
//! give, by their clocks, and that no request is refused; and that programs with a keytab refuse no client.

use std::time::Duration;

use gmsa_edge::metrics::scrape;
use gmsa_test_support::directory::{DirectoryAccount, password};

use crate::{
    keytabs::{SERVICE, ask_keytab, entries, key, keytab_world},
    world::{World, bound_to, pass, spec, times},
};

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
    world.add_pod("web-2", "any");
    let (mut now, mut is_changed) = (-10 * MINUTE, false);
    while now <= 40 * MINUTE {
        world.directory.account("WebApp1", given(now));
        if now >= kdc_lags && !is_changed {
            world.kdc_knows(2);
            is_changed = true;
        }
        if restarts {
            world = world.restarted(times());
        }
        for (token, name) in [("token-1", "webapp1"), ("web-2", "any")] {
            let answer = world.ask_for(name, token).await;
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

/// A program that accepts tickets: the keys of its keytab by their numbers, and when its agent asks again.
#[derive(Default)]
struct Acceptor {
    keys: Vec<(u32, Vec<u8>)>,
    asks: i64,
}

impl Acceptor {
    /// Asks as an agent does, where it is time: at `renewAfter`, and at least every five minutes.
    async fn ask(&mut self, world: &World, now: i64, token: &str) {
        if now < self.asks {
            return;
        }
        let answer = ask_keytab(world, token).await;
        assert_eq!(answer.status, 200, "{now}: {answer:?}");
        let entries = entries(&answer).into_iter().filter(|entry| entry.name == SERVICE && entry.etype == 18);
        self.keys = entries.map(|entry| (entry.kvno, entry.key)).collect();
        let renew_after = time::OffsetDateTime::parse(
            answer.body["renewAfter"].as_str().unwrap(),
            &time::format_description::well_known::Rfc3339,
        );
        let left = (renew_after.unwrap() - time::OffsetDateTime::now_utc()).whole_seconds();
        self.asks = now + left.clamp(10, 5 * MINUTE);
    }

    fn numbers(&self) -> Vec<u32> {
        self.keys.iter().map(|(kvno, _)| *kvno).collect()
    }

    fn accepts(&self, kvno: u32, byte: u8) -> bool {
        self.keys.contains(&(kvno, key(byte).as_bytes().to_vec()))
    }
}

/// The domain, so many seconds after the change of the key with the number 7.
fn set(world: &World, now: i64) {
    let (kvno, byte) = if now < 0 { (7, 1) } else { (8, 2) };
    world.directory.account("WebApp1", DirectoryAccount { kvno, ..given(now) });
    world.kdc_knows(byte);
    world.kdc.seal(SERVICE, key(byte), 18, Some(kvno.into()));
}

#[tokio::test]
async fn every_acceptor_has_both_keys_before_the_change_and_refuses_no_client() {
    for restarts in [false, true] {
        let mut world = keytab_world().await;
        world.api.apply(crate::keytabs::keytab_pod("web-2", "u2"));
        world.accept_token("keytab-2", &["gmsa-keytab/webapp1"], bound_to("web-2", "u2"));
        // They have started at different times.
        let mut acceptors = [-20, -8].map(|start| Acceptor { asks: start * MINUTE, ..Acceptor::default() });
        let mut now = -20 * MINUTE;
        world.directory.asked();
        while now <= 40 * MINUTE {
            set(&world, now);
            if restarts && now % (5 * MINUTE) == 0 {
                world = world.restarted(times());
            }
            for (acceptor, token) in acceptors.iter_mut().zip(["keytab-1", "keytab-2"]) {
                acceptor.ask(&world, now, token).await;
                if now >= -8 * MINUTE {
                    let (kvno, byte) = if now < 0 { (7, 1) } else { (8, 2) };
                    assert!(acceptor.accepts(kvno, byte), "{now}: {:?}", acceptor.numbers());
                    // A ticket of before the change.
                    assert!(acceptor.accepts(7, 1), "{now}: {:?}", acceptor.numbers());
                }
                if (-4 * MINUTE..0).contains(&now) {
                    assert_eq!(acceptor.numbers(), [8, 7], "{now}");
                }
            }
            pass(10).await;
            now += 10;
        }
        let reads = world.directory.asked().iter().filter(|asked| asked.starts_with("number")).count();
        assert!(restarts || reads <= 2 * 6, "{reads}");
    }
}

#[tokio::test]
async fn a_missed_change_is_given_out_with_the_next_request() {
    let world = keytab_world().await;
    let mut acceptor = Acceptor::default();
    set(&world, -10 * MINUTE);
    acceptor.ask(&world, 0, "keytab-1").await;
    assert_eq!(acceptor.numbers(), [7]);
    // The broker has read the password, and does not expect the change yet.
    set(&world, MINUTE);
    pass(60).await;
    acceptor.ask(&world, 5 * MINUTE, "keytab-1").await;
    assert_eq!(acceptor.numbers(), [8, 7]);
    assert!(acceptor.accepts(8, 2) && acceptor.accepts(7, 1));
}

#[tokio::test]
async fn a_key_that_the_directory_skips_stays_for_ten_hours() {
    let world = keytab_world().await;
    let mut acceptor = Acceptor::default();
    set(&world, -10 * MINUTE);
    acceptor.ask(&world, 0, "keytab-1").await;
    // Nobody read the password of the interval in between: its key was never in force.
    let skipped = DirectoryAccount { previous: Some(password(2)), kvno: 9, ..DirectoryAccount::with_password(3) };
    world.directory.account("WebApp1", skipped);
    world.kdc_knows(3);
    world.kdc.seal(SERVICE, key(3), 18, Some(9));
    pass(3600).await;
    acceptor.ask(&world, 3600, "keytab-1").await;
    assert_eq!(acceptor.numbers(), [9, 8, 7]);
    assert!(acceptor.accepts(7, 1) && acceptor.accepts(9, 3));
    pass(10 * 3600).await;
    acceptor.ask(&world, 11 * 3600, "keytab-1").await;
    assert_eq!(acceptor.numbers(), [9, 8, 7]);
    pass(3600).await;
    acceptor.ask(&world, 12 * 3600, "keytab-1").await;
    assert_eq!(acceptor.numbers(), [9, 8]);
}

use std::{future::ready, pin::Pin, time::Duration};

use futures::{FutureExt, future::pending};
use tokio::time::advance;

use super::*;
use crate::limits::WAIT_TIMEOUT;

const MOMENT: Duration = Duration::from_millis(1);
const WEB: &str = "192.0.2.1";
const FLOOD: &str = "192.0.2.2";

type Placed = Pin<Box<dyn Future<Output = Result<Arc<Place>, Unserved>>>>;

impl Places {
    /// A connection that has sent something.
    fn sent(self: &Arc<Self>, peer: &str) -> Placed {
        self.peeked(peer, ready(Ok(1)))
    }

    fn peeked(self: &Arc<Self>, peer: &str, bytes: impl Future<Output = io::Result<usize>> + 'static) -> Placed {
        let (own, peer) = (Arc::clone(self), peer.parse().unwrap());
        let mut placed: Placed =
            Box::pin(async move { own.place(source_of(peer), bytes, Instant::now() + WAIT_TIMEOUT).await });
        // Without the budget by which tokio has a task of many polls wait.
        if let Some(place) = tokio::task::coop::unconstrained(&mut placed).now_or_never() {
            return Box::pin(ready(place));
        }
        placed
    }

    /// As many connections as get a place at once.
    fn fill(self: &Arc<Self>, peer: &str) -> Vec<Arc<Place>> {
        std::iter::from_fn(|| self.sent(peer).now_or_never().map(Result::unwrap)).collect()
    }

    fn is_unused(&self) -> bool {
        let state = self.0.lock();
        state.sources.is_empty() && (state.silent, state.ready) == (0, 0)
    }
}

fn has_place(placed: &mut Placed) -> bool {
    placed.now_or_never().is_some_and(|place| place.is_ok())
}

#[tokio::test]
async fn an_address_leaves_places_to_others() {
    let places = Places::new(257, 2, 10);
    // With the ones that the others hold, fewer are free for each.
    let held: Vec<_> = (0..5).map(|n| places.fill(&format!("192.0.2.{n}"))).collect();
    assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [172, 57, 19, 6, 2]);
    drop(held);
    assert!(places.is_unused());
    assert_eq!(places.fill(WEB).len(), 172);
    let single = Places::new(1, 2, 10);
    assert_eq!(single.fill(WEB).len(), 1);
}

#[tokio::test]
async fn hosts_of_one_network_are_one_address() {
    let places = Places::new(30, 2, 10);
    let _flood = places.fill("2001:db8::1");
    assert!(!has_place(&mut places.sent("2001:db8::ffff:1")));
    assert!(has_place(&mut places.sent("2001:db8:0:1::1")));
    let _mapped = places.fill("::ffff:192.0.2.1");
    assert!(!has_place(&mut places.sent(WEB)));
}

#[tokio::test]
async fn a_free_place_goes_to_the_address_that_holds_the_fewest_and_there_to_the_first() {
    let places = Places::new(4, 2, 10);
    let (mut web, flood) = (places.fill(WEB), places.fill(FLOOD));
    assert_eq!((web.len(), flood.len()), (3, 1));
    let mut of_flood = [(); 2].map(|()| places.sent(FLOOD));
    let mut of_web = [(); 2].map(|()| places.sent(WEB));
    let new = places.sent("192.0.2.3");
    assert_eq!(places.ready(), 5);
    web.pop();
    let _new = new.now_or_never().unwrap().unwrap();
    assert_eq!(places.ready(), 4);
    web.pop();
    let [first, second] = of_flood.each_mut().map(FutureExt::now_or_never);
    assert!(first.is_some_and(|place| place.is_ok()) && second.is_none());
    drop((web, flood));
    assert_eq!(of_web.each_mut().map(has_place), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn what_sends_nothing_holds_no_place() {
    let places = Places::new(1, 2, 10);
    let mut silent = places.peeked(WEB, pending());
    assert!(places.sent(WEB).await.is_ok());
    assert_eq!(places.peeked(WEB, ready(Ok(0))).await.unwrap_err(), Unserved::Gone);
    assert_eq!(
        places.peeked(WEB, ready(Err(io::ErrorKind::ConnectionReset.into()))).await.unwrap_err(),
        Unserved::Gone
    );
    assert_eq!((&mut silent).now_or_never().map(|_| ()), None);
    let began = Instant::now();
    assert_eq!(silent.await.unwrap_err(), Unserved::Silent);
    assert_eq!(began.elapsed(), SILENT_TIMEOUT);
    assert!(places.is_unused());
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_vain_is_dropped() {
    let places = Places::new(1, 2, 10);
    let place = places.sent(WEB).await.unwrap();
    let _busy = place.busy();
    let began = Instant::now();
    assert_eq!(places.sent(WEB).await.unwrap_err(), Unserved::NoPlace);
    // No API server waits longer than this for a webhook.
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    assert_eq!(places.ready(), 0);
}

#[tokio::test]
async fn where_too_many_wait_the_address_with_the_most_loses_its_oldest_silent_one() {
    let places = Places::new(1, 2, 4);
    let _place = places.sent(WEB).await.unwrap();
    let honest = places.sent(WEB);
    let mut silent: Vec<_> = (0..3).map(|_| places.peeked(FLOOD, pending())).collect();
    let new = places.peeked(WEB, pending());
    let ended: Vec<_> = silent.iter_mut().map(|one| one.now_or_never().map(Result::unwrap_err)).collect();
    assert_eq!(ended, [Some(Unserved::Silent), None, None]);
    drop((honest, new, silent));
    assert_eq!(places.ready(), 0);
}

#[tokio::test]
async fn where_too_many_wait_that_have_sent_something_the_address_with_the_most_loses_its_oldest() {
    let places = Places::new(1, 2, 4);
    let place = places.sent(WEB).await.unwrap();
    let mut flood: Vec<_> = (0..3).map(|_| places.sent(FLOOD)).collect();
    let mut honest: Vec<_> = (0..2).map(|_| places.sent(WEB)).collect();
    let ended: Vec<_> = flood.iter_mut().map(|one| one.now_or_never().map(Result::unwrap_err)).collect();
    assert_eq!(ended, [Some(Unserved::NoPlace), None, None]);
    assert!(honest.iter_mut().all(|one| one.now_or_never().is_none()));
    drop((place, flood));
    assert!(has_place(&mut honest[0]));
}

#[tokio::test]
async fn where_too_many_wait_an_address_from_which_requests_are_decided_loses_none_before_the_others() {
    let places = Places::new(2, 2, 5);
    let place = places.sent(WEB).await.unwrap();
    let _other = places.fill(FLOOD);
    drop(place.busy());
    let mut honest: Vec<_> = (0..4).map(|_| places.sent(WEB)).collect();
    let mut flood: Vec<_> = (0..2).map(|_| places.sent(FLOOD)).collect();
    let ended: Vec<_> = flood.iter_mut().map(|one| one.now_or_never().map(Result::unwrap_err)).collect();
    assert_eq!(ended, [Some(Unserved::NoPlace), None]);
    assert!(honest.iter_mut().all(|one| one.now_or_never().is_none()));
    drop(flood);
    // Where it is alone, it is one of its own.
    let _more = [(); 2].map(|()| places.sent(WEB));
    let ended: Vec<_> = honest.iter_mut().map(|one| one.now_or_never().map(Result::unwrap_err)).collect();
    assert_eq!(ended, [Some(Unserved::NoPlace), None, None, None]);
}

#[tokio::test]
async fn where_too_many_wait_a_flood_from_an_address_with_a_decided_request_costs_no_new_client_its_connection() {
    let places = Places::new(1, 2, 100);
    let proven = places.sent(FLOOD).await.unwrap();
    drop(proven.busy());
    let mut flood: Vec<_> = (0..100).map(|_| places.peeked(FLOOD, pending())).collect();
    let mut new = [places.peeked(WEB, pending()), places.peeked(WEB, pending())];
    assert!(new.iter_mut().all(|one| one.now_or_never().is_none()));
    let ended: Vec<_> = flood.iter_mut().filter_map(FutureExt::now_or_never).map(Result::unwrap_err).collect();
    assert_eq!(ended, [Unserved::Silent, Unserved::Silent]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_makes_room_for_its_own_address_after_a_while() {
    let places = Places::new(2, 2, 10);
    let proven = places.sent(WEB).await.unwrap();
    drop(proven.busy());
    advance(CONTESTED_IDLE / 2).await;
    let unproven = places.sent(WEB).await.unwrap();
    let closed = || [&proven, &unproven].map(|place| place.close.is_cancelled());
    advance(CONTESTED_HANDSHAKE).await;
    places.make_room();
    // Nothing waits.
    assert_eq!(closed(), [false, false]);
    let mut waiting = places.sent(WEB);
    // Three quarters of them are kept.
    assert!(!proven.is_wanted());
    places.make_room();
    assert_eq!(closed(), [false, true]);
    drop(unproven);
    assert!(has_place(&mut waiting));
    // Nothing waits for the rest.
    places.make_room();
    assert!(!proven.close.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn one_that_brought_a_request_stays_while_there_is_one_that_did_not() {
    let places = Places::new(2, 2, 10);
    let proven = places.sent(WEB).await.unwrap();
    drop(proven.busy());
    advance(CONTESTED_IDLE).await;
    let unproven = places.sent(WEB).await.unwrap();
    let _waiting = places.sent(WEB);
    // An API server whose requests are decided may be slow to shake hands.
    let rest = CONTESTED_HANDSHAKE.saturating_sub(CONTESTED_IDLE + MOMENT);
    for elapsed in [Duration::ZERO, CONTESTED_IDLE, rest] {
        advance(elapsed).await;
        places.make_room();
        assert_eq!([&proven, &unproven].map(|place| place.close.is_cancelled()), [false, false]);
    }
    advance(MOMENT).await;
    places.make_room();
    assert_eq!([&proven, &unproven].map(|place| place.close.is_cancelled()), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn one_of_an_address_without_requests_makes_room_sooner() {
    let places = Places::new(1, 2, 10);
    let unproven = places.sent(WEB).await.unwrap();
    let _waiting = places.sent(WEB);
    advance(CONTESTED_IDLE).await;
    places.make_room();
    assert!(unproven.close.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_request_is_decided_makes_no_room() {
    let places = Places::new(1, 2, 10);
    let place = places.sent(WEB).await.unwrap();
    let mut waiting = places.sent(WEB);
    let busy = place.busy();
    advance(CONTESTED_IDLE).await;
    places.make_room();
    assert!(!place.close.is_cancelled());
    drop(busy);
    places.make_room();
    assert!(!place.close.is_cancelled());
    advance(CONTESTED_IDLE).await;
    places.make_room();
    assert!(place.close.is_cancelled());
    assert!(!has_place(&mut waiting));
}

#[tokio::test]
async fn answers_end_connections_for_an_address_that_holds_less_than_half_as_many() {
    let places = Places::new(9, 2, 10);
    let (mut web, flood) = (places.fill(WEB), places.fill(FLOOD));
    assert_eq!((web.len(), flood.len()), (6, 2));
    let waiting = places.sent(FLOOD);
    assert!(web[0].is_wanted());
    web.pop();
    let _third = waiting.now_or_never().unwrap().unwrap();
    let _waiting = places.sent(FLOOD);
    assert!(!web[0].is_wanted());
}

#[tokio::test(start_paused = true)]
async fn where_as_many_addresses_as_there_are_places_send_requests_each_yields_to_a_new_one_after_a_while() {
    let places = Places::new(4, 2, 10);
    let mut held: Vec<_> = (1..5).map(|n| places.fill(&format!("192.0.2.{n}")).remove(0)).collect();
    let waiting = [places.sent("192.0.2.9"), places.sent("192.0.2.1")];
    let wanted = |held: &[Arc<Place>]| held.iter().map(|place| place.is_wanted()).collect::<Vec<_>>();
    advance(CONTESTED_STAY.saturating_sub(MOMENT)).await;
    for place in &held {
        drop(place.busy());
    }
    assert_eq!(wanted(&held), [true, false, false, false]);
    advance(MOMENT).await;
    assert_eq!(wanted(&held), [true; 4]);
    held.pop();
    let [new, second] = waiting;
    held.push(new.now_or_never().unwrap().unwrap());
    // Those that hold one wait for their own.
    assert_eq!(wanted(&held), [true, false, false, false]);
    drop(second);
    assert_eq!(wanted(&held), [false; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_makes_no_room_at_the_cost_of_an_address_that_holds_fewer() {
    let places = Places::new(9, 2, 10);
    let flood = places.fill(FLOOD);
    let web = places.sent(WEB).await.unwrap();
    let _waiting = places.sent(FLOOD);
    assert!(!web.is_wanted());
    assert!(!flood[0].is_wanted());
    flood[..5].iter().for_each(|place| drop(place.busy()));
    assert!(flood[0].is_wanted());
    advance(CONTESTED_HANDSHAKE).await;
    for _ in 0..20 {
        places.make_room();
    }
    assert!(!web.close.is_cancelled());
    assert!(flood.iter().all(|place| place.close.is_cancelled()));
}

#[tokio::test]
async fn a_connection_that_ends_leaves_nothing_behind() {
    let places = Places::new(2, 2, 10);
    let (place, waiting) = (places.sent(WEB).await.unwrap(), places.peeked(WEB, pending()));
    drop(place.busy());
    drop((place, waiting, places.peeked(FLOOD, pending())));
    assert!(places.is_unused());
}

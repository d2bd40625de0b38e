//! Equal questions are one call, also when a caller goes away meanwhile.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{advance, sleep},
};

use gmsa_core::admission::FailureKind;

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// What a call says: its number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    Call(usize),
    Failed(Failure),
}

impl From<Failure> for Fact {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn made(number: usize) -> Known<Fact> {
    Known { fact: Fact::Call(number), source: Source::Api }
}

fn joined(number: usize) -> Known<Fact> {
    Known { source: Source::Joined, ..made(number) }
}

fn too_late(cause: &str) -> Known<Fact> {
    Known { fact: Fact::Failed(Failure { kind: FailureKind::TimedOut, ..Failure::new(cause) }), source: Source::Api }
}

/// Counts calls and lets them end one by one.
struct Setup {
    coalescer: Arc<Coalescer<&'static str, Fact>>,
    calls: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

impl Setup {
    fn new() -> Self {
        Self { coalescer: Arc::default(), calls: Arc::default(), permits: Arc::new(Semaphore::new(0)) }
    }

    fn ask(&self, time: Duration) -> impl Future<Output = Known<Fact>> + Send + 'static {
        let Self { coalescer, calls, permits } = self;
        let (coalescer, calls, permits) = (Arc::clone(coalescer), Arc::clone(calls), Arc::clone(permits));
        async move {
            let call = |_, _| async move {
                let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
                permits.acquire().await.unwrap().forget();
                made(number)
            };
            coalescer.ask("question", Instant::now() + time, |_| None, call).await
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Runs every task that is ready; the clock does not move.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_at_once_are_one_call() {
    let setup = Setup::new();
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        asking.spawn(setup.ask(SOON));
    }
    settle().await;
    setup.permits.add_permits(1);
    let answers = asking.join_all().await;
    assert_eq!(setup.calls(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == joined(1)).count(), 199);
    assert_eq!(answers.iter().filter(|answer| **answer == made(1)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_not_joined() {
    let setup = Setup::new();
    setup.permits.add_permits(2);
    assert_eq!(setup.ask(SOON).await, made(1));
    assert_eq!(setup.ask(SOON).await, made(2));
}

#[tokio::test(start_paused = true)]
async fn who_joined_gets_the_answer_although_who_began_is_gone() {
    let setup = Setup::new();
    let first = tokio::spawn(setup.ask(SOON));
    settle().await;
    let second = tokio::spawn(setup.ask(SOON));
    settle().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    setup.permits.add_permits(1);
    assert_eq!(second.await.unwrap(), joined(1));
}

#[tokio::test(start_paused = true)]
async fn everybody_waits_until_their_own_deadline() {
    let setup = Setup::new();
    let first = tokio::spawn(setup.ask(Duration::from_millis(100)));
    settle().await;
    let second = tokio::spawn(setup.ask(Duration::from_millis(900)));
    let third = tokio::spawn(setup.ask(Duration::from_millis(200)));
    settle().await;
    assert_eq!(first.await.unwrap(), too_late("no answer from the API server within 0.1 s"));
    let of_another = Known { source: Source::Joined, ..too_late("no answer from the API server within 0.2 s") };
    assert_eq!(third.await.unwrap(), of_another);
    setup.permits.add_permits(1);
    assert_eq!(second.await.unwrap(), joined(1));
}

#[tokio::test(start_paused = true)]
async fn who_may_wait_longer_than_the_call_does_not_join_it() {
    let setup = Setup::new();
    let first = tokio::spawn(setup.ask(Duration::from_millis(100)));
    settle().await;
    let second = tokio::spawn(setup.ask(SOON));
    settle().await;
    assert_eq!(setup.calls(), 2);
    setup.permits.add_permits(2);
    assert_eq!(second.await.unwrap(), made(2));
    assert_eq!(first.await.unwrap(), made(1));
}

#[tokio::test(start_paused = true)]
async fn an_old_call_is_not_joined() {
    let setup = Setup::new();
    let first = tokio::spawn(setup.ask(SOON));
    settle().await;
    advance(JOIN_WITHIN).await;
    let second = tokio::spawn(setup.ask(Duration::from_secs(1)));
    settle().await;
    assert_eq!(setup.calls(), 1);
    advance(Duration::from_millis(1)).await;
    let third = tokio::spawn(setup.ask(Duration::from_secs(1)));
    settle().await;
    assert_eq!(setup.calls(), 2);
    setup.permits.add_permits(2);
    assert_eq!(first.await.unwrap(), made(1));
    assert_eq!(second.await.unwrap(), joined(1));
    assert_eq!(third.await.unwrap(), made(2));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_call_answers_only_those_who_wait() {
    let setup = Setup::new();
    let first = tokio::spawn(setup.ask(SOON));
    settle().await;
    setup.coalescer.forget(|key| *key == "question");
    let second = tokio::spawn(setup.ask(SOON));
    settle().await;
    assert_eq!(setup.calls(), 2);
    setup.permits.add_permits(2);
    assert_eq!(first.await.unwrap(), made(1));
    assert_eq!(second.await.unwrap(), made(2));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_callers_ends_and_leaves_nothing() {
    let coalescer: Coalescer<&str, Fact> = Coalescer::default();
    let alive = watch::Sender::new(());
    let seen = alive.subscribe();
    let call = |_, _| async move {
        sleep(SOON).await;
        drop(seen);
        made(1)
    };
    let answer = coalescer.ask("question", Instant::now() + Duration::from_secs(1), |_| None, call).await;
    assert_eq!(answer, too_late("no answer from the API server within 1.0 s"));
    assert_eq!(alive.receiver_count(), 0);
    assert!(coalescer.calls.lock().values().all(|call| call.in_flight().is_none()));
}

#[tokio::test(start_paused = true)]
async fn calls_that_have_ended_do_not_add_up() {
    let coalescer: Coalescer<usize, Fact> = Coalescer::default();
    for number in 0..10_000 {
        let answer = coalescer.ask(number, Instant::now() + SOON, |_| None, |_, _| async move { made(number) }).await;
        assert_eq!(answer, made(number));
    }
    assert!(coalescer.calls.lock().capacity() < 10);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_others_have_not_fetched_yet_is_not_joined() {
    let setup = Setup::new();
    let mut first = Box::pin(setup.ask(SOON));
    let mut second = Box::pin(setup.ask(SOON));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    setup.permits.add_permits(2);
    assert_eq!(first.await, made(1));
    assert_eq!(setup.ask(SOON).await, made(2));
    assert_eq!(second.await, joined(1));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_by_now_is_not_asked() {
    let coalescer: Coalescer<&str, Fact> = Coalescer::default();
    let answer = coalescer.ask("question", Instant::now() + SOON, |_| Some(made(7)), |_, _| async { made(8) }).await;
    assert_eq!(answer, made(7));
}

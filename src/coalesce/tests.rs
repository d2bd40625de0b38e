//! Equal questions are one call, also when a caller goes away meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{advance, sleep},
};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// Counts calls and lets them end one by one.
struct Scene {
    coalescer: Arc<Coalescer<&'static str, usize>>,
    calls: Arc<AtomicUsize>,
    turns: Arc<Semaphore>,
}

impl Scene {
    fn new() -> Self {
        Self { coalescer: Arc::default(), calls: Arc::default(), turns: Arc::new(Semaphore::new(0)) }
    }

    /// Asks; the answer is the call's number.
    fn ask(&self, time: Duration) -> impl Future<Output = Option<Answer<usize>>> + Send + 'static {
        let Self { coalescer, calls, turns } = self;
        let (coalescer, calls, turns) = (Arc::clone(coalescer), Arc::clone(calls), Arc::clone(turns));
        async move {
            let call = |_| async move {
                let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
                turns.acquire().await.unwrap().forget();
                number
            };
            coalescer.ask("question", Instant::now() + time, || None, call).await
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
    let scene = Scene::new();
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        asking.spawn(scene.ask(SOON));
    }
    settle().await;
    scene.turns.add_permits(1);
    let answers = asking.join_all().await;
    assert_eq!(scene.calls(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == Some(Answer { value: 1, joined: true })).count(), 199);
    assert_eq!(answers.iter().filter(|answer| **answer == Some(Answer { value: 1, joined: false })).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_not_joined() {
    let scene = Scene::new();
    scene.turns.add_permits(2);
    assert_eq!(scene.ask(SOON).await, Some(Answer { value: 1, joined: false }));
    assert_eq!(scene.ask(SOON).await, Some(Answer { value: 2, joined: false }));
}

#[tokio::test(start_paused = true)]
async fn who_joined_gets_the_answer_although_who_began_is_gone() {
    let scene = Scene::new();
    let first = tokio::spawn(scene.ask(SOON));
    settle().await;
    let second = tokio::spawn(scene.ask(SOON));
    settle().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    scene.turns.add_permits(1);
    assert_eq!(second.await.unwrap(), Some(Answer { value: 1, joined: true }));
}

#[tokio::test(start_paused = true)]
async fn everybody_waits_until_their_own_deadline() {
    let scene = Scene::new();
    let first = tokio::spawn(scene.ask(Duration::from_millis(100)));
    settle().await;
    let second = tokio::spawn(scene.ask(Duration::from_millis(900)));
    settle().await;
    assert_eq!(first.await.unwrap(), None);
    scene.turns.add_permits(1);
    assert_eq!(second.await.unwrap(), Some(Answer { value: 1, joined: true }));
}

#[tokio::test(start_paused = true)]
async fn who_may_wait_longer_than_the_call_does_not_join_it() {
    let scene = Scene::new();
    let first = tokio::spawn(scene.ask(Duration::from_millis(100)));
    settle().await;
    let second = tokio::spawn(scene.ask(SOON));
    settle().await;
    assert_eq!(scene.calls(), 2);
    scene.turns.add_permits(2);
    assert_eq!(second.await.unwrap(), Some(Answer { value: 2, joined: false }));
    assert_eq!(first.await.unwrap(), Some(Answer { value: 1, joined: false }));
}

#[tokio::test(start_paused = true)]
async fn an_old_call_is_not_joined() {
    let scene = Scene::new();
    let first = tokio::spawn(scene.ask(SOON));
    settle().await;
    advance(JOIN_WITHIN).await;
    let second = tokio::spawn(scene.ask(Duration::from_secs(1)));
    settle().await;
    assert_eq!(scene.calls(), 1);
    advance(Duration::from_millis(1)).await;
    let third = tokio::spawn(scene.ask(Duration::from_secs(1)));
    settle().await;
    assert_eq!(scene.calls(), 2);
    scene.turns.add_permits(2);
    assert!(!first.await.unwrap().unwrap().joined);
    assert!(second.await.unwrap().unwrap().joined);
    assert!(!third.await.unwrap().unwrap().joined);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_call_answers_only_those_who_wait() {
    let scene = Scene::new();
    let first = tokio::spawn(scene.ask(SOON));
    settle().await;
    scene.coalescer.forget(&"question");
    let second = tokio::spawn(scene.ask(SOON));
    settle().await;
    assert_eq!(scene.calls(), 2);
    scene.turns.add_permits(2);
    assert_eq!(first.await.unwrap(), Some(Answer { value: 1, joined: false }));
    assert_eq!(second.await.unwrap(), Some(Answer { value: 2, joined: false }));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_callers_ends_and_leaves_nothing() {
    let coalescer: Coalescer<&str, ()> = Coalescer::default();
    let alive = watch::Sender::new(());
    let seen = alive.subscribe();
    let call = |_| async move {
        sleep(SOON).await;
        drop(seen);
    };
    assert_eq!(coalescer.ask("question", Instant::now() + Duration::from_secs(1), || None, call).await, None);
    assert_eq!(alive.receiver_count(), 0);
    assert!(coalescer.lock().under_way.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_known_by_now_is_not_asked() {
    let coalescer: Coalescer<&str, u8> = Coalescer::default();
    let answer = coalescer.ask("question", Instant::now() + SOON, || Some(7), |_| async { 8 }).await;
    assert_eq!(answer, Some(Answer { value: 7, joined: false }));
}

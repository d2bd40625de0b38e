//! What is remembered, for how long, and what never is.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::FutureExt as _;
use tokio::{task::JoinSet, time::advance};

use super::*;
use gmsa_core::admission::Failure;

const TTL: Duration = Duration::from_secs(10);
const LATENCY: Duration = Duration::from_millis(500);

/// Says what the test says, after [`LATENCY`], and counts.
struct Scripted {
    fact: Mutex<UseFact>,
    calls: AtomicUsize,
}

impl Authorizer for Scripted {
    fn may<'a>(&'a self, _: &'a ServiceAccount, _: Verb, _: &'a SpecName, _: Instant) -> Answer<'a> {
        async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let fact = self.fact.lock().clone();
            tokio::time::sleep(LATENCY).await;
            Authorization { fact, source: Source::Api }
        }
        .boxed()
    }
}

struct Setup {
    scripted: Arc<Scripted>,
    cache: Arc<AuthorizationCache>,
}

impl Setup {
    fn new(fact: UseFact, ttl: Duration) -> Self {
        let scripted = Arc::new(Scripted { fact: Mutex::new(fact), calls: AtomicUsize::new(0) });
        Self { scripted: Arc::clone(&scripted), cache: Arc::new(AuthorizationCache::new(scripted, ttl)) }
    }

    fn ask(&self, namespace: &str, account: &str, spec: &str) -> impl Future<Output = Authorization> + Send + 'static {
        self.ask_for(Verb::Use, namespace, account, spec)
    }

    fn ask_for(
        &self,
        verb: Verb,
        namespace: &str,
        account: &str,
        spec: &str,
    ) -> impl Future<Output = Authorization> + Send + 'static {
        let cache = Arc::clone(&self.cache);
        let account = ServiceAccount { namespace: namespace.into(), name: account.into() };
        let spec = SpecName::parse(spec).unwrap();
        async move { cache.may(&account, verb, &spec, Instant::now() + Duration::from_secs(5)).await }
    }

    fn calls(&self) -> usize {
        self.scripted.calls.load(Ordering::SeqCst)
    }
}

fn answer(fact: UseFact, source: Source) -> Authorization {
    Authorization { fact, source }
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_remembered_from_the_question_on_and_not_longer() {
    let setup = Setup::new(UseFact::Allowed, TTL);
    assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Api));
    advance(Duration::from_millis(9498)).await;
    assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Remembered));
    advance(Duration::from_millis(2)).await;
    assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Api));
    assert_eq!(setup.calls(), 2);
}

/// Hibernation, and a virtual machine that is restored from a snapshot: the clock of the process stands still meanwhile.
#[test]
fn what_was_allowed_before_the_machine_stood_still_is_asked_again() {
    let question = || {
        (ServiceAccount { namespace: "shop".into(), name: "till".into() }, Verb::Use, SpecName::parse("web").unwrap())
    };
    let asked = Moment::now();
    let second = Duration::from_secs(1);
    for (now, is_remembered) in [
        (Moment { boot: asked.boot + TTL.checked_sub(second).unwrap(), ..asked }, true),
        (Moment { boot: asked.boot + TTL, ..asked }, false),
        (Moment { wall: asked.wall + TTL.checked_sub(second).unwrap(), ..asked }, true),
        (Moment { wall: asked.wall + TTL, ..asked }, false),
        (Moment { wall: asked.wall - TTL, ..asked }, true),
    ] {
        let allowed = Allowed { ttl: TTL, asked: Mutex::default(), clock: Arc::new(move || now) };
        allowed.asked.lock().insert(question(), asked);
        assert_eq!(allowed.remembered(&question()).is_some(), is_remembered, "{now:?}, asked {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_belongs_to_one_namespace_account_spec_and_verb() {
    let setup = Setup::new(UseFact::Allowed, TTL);
    setup.ask("shop", "till", "web").await;
    for (namespace, account, spec) in [("other", "till", "web"), ("shop", "other", "web"), ("shop", "till", "other")] {
        assert_eq!(setup.ask(namespace, account, spec).await.source, Source::Api);
    }
    assert_eq!(setup.ask_for(Verb::Export, "shop", "till", "web").await.source, Source::Api);
    assert_eq!(setup.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn neither_a_no_nor_a_failure_is_remembered() {
    let failed = UseFact::Failed(Failure::new("broken"));
    for fact in [UseFact::Denied { reason: None }, failed] {
        let setup = Setup::new(fact.clone(), TTL);
        assert_eq!(setup.ask("shop", "till", "web").await, answer(fact.clone(), Source::Api));
        *setup.scripted.fact.lock() = UseFact::Allowed;
        assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Api), "{fact:?}");
        assert_eq!(setup.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn without_time_nothing_is_remembered_but_equal_questions_are_still_one() {
    let setup = Setup::new(UseFact::Allowed, Duration::ZERO);
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        asking.spawn(setup.ask("shop", "till", "web"));
    }
    let answers = asking.join_all().await;
    assert_eq!(setup.calls(), 1);
    assert_eq!(answers.iter().filter(|given| **given == answer(UseFact::Allowed, Source::Joined)).count(), 199);
    assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Api));
    assert_eq!(setup.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_remembered_answers_is_bounded_and_the_oldest_goes_first() {
    let allowed = Allowed { ttl: TTL, asked: Mutex::default(), clock: Arc::new(Moment::now) };
    let question = |n: usize| {
        let account = ServiceAccount { namespace: "shop".into(), name: format!("account-{n}").into() };
        (account, Verb::Use, SpecName::parse("web").unwrap())
    };
    for n in 0..MAX_REMEMBERED + 10 {
        allowed.remember(question(n), Moment::now());
        advance(Duration::from_micros(1)).await;
    }
    let remembered = |n| allowed.remembered(&question(n)).is_some();
    assert!((0..10).all(|n| !remembered(n)));
    assert!((10..MAX_REMEMBERED + 10).all(remembered));
    assert_eq!(allowed.asked.lock().len(), MAX_REMEMBERED);
    // What has expired makes room first.
    advance(TTL).await;
    allowed.remember(question(0), Moment::now());
    assert_eq!(allowed.asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_longest_time_of_all_is_one_too() {
    let setup = Setup::new(UseFact::Allowed, Duration::MAX);
    setup.ask("shop", "till", "web").await;
    advance(Duration::from_secs(365 * 24 * 3600)).await;
    assert_eq!(setup.ask("shop", "till", "web").await, answer(UseFact::Allowed, Source::Remembered));
}

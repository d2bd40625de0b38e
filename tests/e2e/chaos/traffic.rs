//! Pods at a steady rate, some allowed and some forbidden, and the outcome of each.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    change::edition,
    chaos::{CHANGING, PODS},
    control_plane::{Client, Refusal},
    pods::{filled, gmsa, pod, slots},
    world::{USER, VISITOR, WEB},
};

/// What a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A credential spec that stays as it is.
    Steady,
    /// A credential spec that changes, which had this edition when the pod was sent.
    Changing(u32),
    /// A credential spec that its service account may not use.
    Forbidden,
}

/// What became of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Stored with the contents as they are now, or refused where it must be.
    Right,
    /// Stored with the contents as they were before they changed.
    Old,
    /// Refused because the contents changed between the two webhooks: the message says to try again.
    TryAgain,
    /// Refused by the webhook, or for want of it.
    Refused(String),
    /// Refused because the API server, or its store, is away.
    Unavailable,
    /// Stored as it must never be.
    Wrong(String),
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub kind: Kind,
    pub began: Instant,
    pub ended: Instant,
    pub outcome: Outcome,
}

/// How many became this.
pub fn count<'a>(attempts: impl IntoIterator<Item = &'a Attempt>, this: fn(&Outcome) -> bool) -> usize {
    attempts.into_iter().filter(|attempt| this(&attempt.outcome)).count()
}

/// It stops when it is dropped.
pub struct Traffic {
    state: Arc<State>,
    _task: JoinSet<()>,
}

struct State {
    attempts: Mutex<Vec<Attempt>>,
    /// The pods that are being created: since when.
    under_way: Mutex<BTreeMap<usize, Instant>>,
    edition: AtomicU32,
}

impl Traffic {
    /// Begins to create pods, one each `between`; the changing credential spec has this edition.
    pub fn start(client: Client, current: u32, between: Duration) -> Self {
        let edition = AtomicU32::new(current);
        let state = Arc::new(State { attempts: Mutex::default(), under_way: Mutex::default(), edition });
        let shared = Arc::clone(&state);
        let task = steadily(between, move |number| {
            let kind = match number % 4 {
                0 | 2 => Kind::Steady,
                1 => Kind::Changing(shared.edition.load(Ordering::SeqCst)),
                _ => Kind::Forbidden,
            };
            let (client, state) = (client.clone(), Arc::clone(&shared));
            Some(async move {
                let began = Instant::now();
                state.under_way.lock().unwrap().insert(number, began);
                let name = format!("pod-{number}");
                let answer = client.create(PODS, &wanted(&name, kind)).await;
                let ended = Instant::now();
                let outcome = judge(kind, &answer);
                if answer.is_ok() {
                    // What is left is deleted in the end.
                    let _ = client.delete(&format!("{PODS}/{name}")).await;
                }
                state.under_way.lock().unwrap().remove(&number);
                state.attempts.lock().unwrap().push(Attempt { kind, began, ended, outcome });
            })
        });
        Self { state, _task: task }
    }

    /// From now on the changing credential spec has this edition.
    pub fn expect_edition(&self, edition: u32) {
        self.state.edition.store(edition, Ordering::SeqCst);
    }

    /// For how long the oldest of the pods that are being created has been.
    pub fn oldest(&self) -> Duration {
        self.state.under_way.lock().unwrap().first_key_value().map_or(Duration::ZERO, |(_, began)| began.elapsed())
    }

    /// What became of the pods since the last call.
    pub fn take(&self) -> Vec<Attempt> {
        std::mem::take(&mut self.state.attempts.lock().unwrap())
    }
}

/// Begins something each `between`, unless it is nothing, for as long as what is given back lives.
pub fn steadily<F: Future<Output = ()> + Send + 'static>(
    between: Duration,
    mut begin: impl FnMut(usize) -> Option<F> + Send + 'static,
) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut ticks = interval(between);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        for number in 0.. {
            ticks.tick().await;
            while under_way.try_join_next().is_some() {}
            if let Some(one) = begin(number) {
                under_way.spawn(one);
            }
        }
    });
    task
}

fn wanted(name: &str, kind: Kind) -> Value {
    let (spec, account) = match kind {
        Kind::Steady => ("web", USER),
        Kind::Changing(_) => (CHANGING, USER),
        Kind::Forbidden => ("web", VISITOR),
    };
    pod(name, account, &json!({"securityContext": gmsa(spec)}))
}

fn judge(kind: Kind, answer: &Result<Value, Refusal>) -> Outcome {
    let stored = match answer {
        Ok(stored) => slots(stored),
        Err(refusal) if kind == Kind::Forbidden && refusal.message.contains("is not authorized to `use`") => {
            return Outcome::Right;
        }
        Err(refusal) if refusal.message.ends_with("the resource may have changed meanwhile, try again") => {
            return Outcome::TryAgain;
        }
        Err(refusal) if refusal.message.contains("webhook") => return Outcome::Refused(refusal.message.clone()),
        Err(_) => return Outcome::Unavailable,
    };
    let expected = |spec: &str, contents: &str| json!({"pod": filled(spec, contents)});
    match kind {
        Kind::Steady if stored == expected("web", WEB) => Outcome::Right,
        // It may have changed since the pod was sent.
        Kind::Changing(now) if [now, now + 1].iter().any(|now| stored == expected(CHANGING, &edition(*now).1)) => {
            Outcome::Right
        }
        Kind::Changing(now) if stored == expected(CHANGING, &edition(now - 1).1) => Outcome::Old,
        _ => Outcome::Wrong(stored.to_string()),
    }
}

/// Whether a pod may be stored as it is, where the changing credential spec had no later edition than this.
pub fn may_be_stored(pod: &Value, last: u32) -> bool {
    let stored = slots(pod);
    let filled = |spec: &str, contents: &str| stored == json!({"pod": filled(spec, contents)});
    let changing = || (1..=last).any(|number| filled(CHANGING, &edition(number).1));
    pod["spec"]["serviceAccountName"] == USER && (filled("web", WEB) || changing())
}

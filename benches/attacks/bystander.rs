//! The bystander: one request after the other, on a thread of its own so that the attack beside it does not delay its clock.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::{
    client::{Answer, Client, PATIENCE},
    cluster::Pods,
    report::Figure,
    reviews,
    support::https::{connect, exchange},
};

/// Its address, where the attack has another one.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(10);

const READY: &[u8] = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// May this pod be created? The answer to the access review is remembered. Each is on a new connection.
    #[default]
    Review,
    /// The same with a body of 1 MiB.
    LargeReview,
    /// A review on a connection that is kept, as long as the server keeps it.
    KeptReview,
    /// The same for a service account that was not asked about before: an access review each.
    NewAccount,
    /// Is the server ready? On the admin port.
    Ready,
    /// May this pod be created? Asks a real API server, which asks the webhook; left out without one.
    Pod,
}

impl Question {
    fn what(self) -> &'static str {
        match self {
            Self::Review | Self::NewAccount => "reviews",
            Self::LargeReview => "reviews of 1 MiB",
            Self::KeptReview => "reviews on a kept connection",
            Self::Ready => "/readyz",
            Self::Pod => "pods",
        }
    }
}

/// What is asked during an attack, and how long an answer may take.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    pub asks: Question,
    /// Whether it comes from the attack's address, as where both come through an API server.
    same_address: bool,
    /// Milliseconds; none where nothing is promised.
    aim: Option<f64>,
    /// How many of a hundred answers must meet the aim.
    part: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { asks: Question::default(), same_address: false, aim: None, part: 100 }
    }
}

/// What the client saw.
pub struct Seen {
    /// How long each request took.
    took: Vec<Duration>,
    /// The last wrong answer, and the number of wrong answers.
    failed: Option<(String, usize)>,
}

impl Seen {
    /// How its requests fared.
    pub fn figure(mut self, plan: &Plan) -> Figure {
        self.took.sort_unstable();
        let milliseconds = |number: usize| self.took[number.saturating_sub(1)].as_secs_f64() * 1e3;
        let requests = self.took.len();
        let (slowest, measured) = (milliseconds(requests), milliseconds((requests * plan.part).div_ceil(100)));
        let what = plan.asks.what();
        let part = if plan.part < 100 { format!(", {measured:.0} for {} of 100", plan.part) } else { String::new() };
        let figure = Figure::new(match &self.failed {
            None => format!("{slowest:.0} of {requests} {what}{part}"),
            Some((word, failed)) => format!("{slowest:.0}, {failed} of {requests} {what} failed ({word})"),
        });
        match (plan.aim, &self.failed) {
            (None, _) => figure,
            (Some(aim), None) => figure.aim(aim, measured <= aim),
            (Some(aim), Some(_)) => figure.aim(format!("{aim}, none failed"), false),
        }
    }
}

/// A client at work.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Bystander {
    /// Begins to ask.
    pub fn start(plan: &Plan, client: Client, admin: SocketAddr, pods: Option<Arc<Pods>>) -> Self {
        let source = if plan.same_address { Ipv4Addr::LOCALHOST } else { ELSEWHERE };
        let question = plan.asks;
        let client = client.from(source);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut seen = Seen { took: Vec::new(), failed: None };
                let mut kept = None;
                let api_server = match &pods {
                    Some(pods) => Some(pods.client().await),
                    None => None,
                };
                while !stopped.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let answer = match question {
                        Question::Ready => ready(source, admin).await.word(),
                        Question::KeptReview => client.post_on(&mut kept, "/validate", &reviews::plain(0)).await.word(),
                        Question::LargeReview => client.post("/validate", &reviews::large()).await.word(),
                        Question::Review => client.post("/validate", &reviews::plain(0)).await.word(),
                        Question::NewAccount => client.post("/validate", &reviews::plain(seen.took.len())).await.word(),
                        Question::Pod => pods.as_ref().unwrap().create(api_server.as_ref().unwrap()).await,
                    };
                    seen.took.push(begun.elapsed());
                    if !["200", "allowed"].contains(&answer.as_str()) {
                        let times = seen.failed.take().map_or(0, |(_, times)| times);
                        seen.failed = Some((answer, times + 1));
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                seen
            })
        });
        Self { stop, thread }
    }

    /// Ends with the request that is being made.
    pub fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn ready(source: Ipv4Addr, admin: SocketAddr) -> Answer {
    Answer::within(PATIENCE, async { exchange(&mut connect(source, admin).await?, READY).await }).await
}

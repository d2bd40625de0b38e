//! The bystander: one request after the other, on a thread of its own so that the attack beside it does not delay its clock.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::{
    client::{Answer, Client, PATIENCE, connect, read_answer},
    reviews,
};

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(10);

const READY: &[u8] = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// May this pod be created? The answer to the access review is remembered. Each is on a new connection.
    Review,
    /// The same on a connection that is kept, as long as the server keeps it.
    KeptReview,
    /// The same for a service account that was not asked about before: an access review each.
    NewAccount,
    /// Is the server ready? On the admin port.
    Ready,
}

/// What the client saw.
pub struct Seen {
    /// How long each request took.
    pub took: Vec<Duration>,
    /// Those that were not answered as they should be: the last answer, and how many.
    pub failed: Option<(String, usize)>,
}

/// A client at work.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Bystander {
    /// Begins to ask.
    pub fn start(question: Question, client: Client, admin: SocketAddr, source: Ipv4Addr) -> Self {
        let client = client.from(source);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut seen = Seen { took: Vec::new(), failed: None };
                let mut kept = None;
                while !stopped.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let answer = match question {
                        Question::Ready => ready(source, admin).await,
                        Question::KeptReview => client.post_on(&mut kept, "/validate", reviews::plain(0)).await,
                        Question::Review => client.post("/validate", reviews::plain(0)).await,
                        Question::NewAccount => client.post("/validate", reviews::plain(seen.took.len())).await,
                    };
                    seen.took.push(begun.elapsed());
                    let right = match question {
                        Question::Ready => matches!(answer.0, Some((200, _))),
                        Question::Review | Question::KeptReview | Question::NewAccount => answer.word() == "allowed",
                    };
                    if !right {
                        let times = seen.failed.take().map_or(0, |(_, times)| times);
                        seen.failed = Some((answer.word(), times + 1));
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

/// Whether the server is ready now.
pub fn is_ready(admin: SocketAddr) -> bool {
    let Ok(mut stream) = std::net::TcpStream::connect(admin) else { return false };
    let mut start = [0; 12];
    stream.write_all(READY).and_then(|()| stream.read_exact(&mut start)).is_ok() && start.ends_with(b" 200")
}

async fn ready(source: Ipv4Addr, admin: SocketAddr) -> Answer {
    let exchange = async {
        let mut stream = connect(source, admin).await?;
        stream.write_all(READY).await?;
        read_answer(&mut stream).await
    };
    Answer(timeout(PATIENCE, exchange).await.ok().and_then(Result::ok))
}

//! The threads that reviews are read and decided on, and those that handshakes are computed on.
//!
//! Invariant: neither a large review nor a handshake delays a small review.

use std::{io, sync::Arc};

use rustix::process::nice;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
    task::spawn_blocking,
    time::Instant,
};

use super::deadline::before;

/// The most threads that serve connections; half as many large reviews are read or decided at once. Each takes memory
/// of its own, and the memory limit of the process does not grow with the cores of its node.
pub(crate) const MAX_THREADS: usize = 4;

/// How many threads serve connections: one for each core that the process may use, at most 4.
#[must_use]
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// How far behind the other threads those of handshakes come where cores are short. At 5 a thread gets a third of the time of one
/// at 0: new connections go on slowly, rather than not at all.
const HANDSHAKE_NICE: i32 = 5;

/// A runtime whose blocking threads compute handshakes: one for two cores, as for large reviews.
///
/// # Errors
/// Where the system gives no such runtime.
pub fn for_handshakes() -> io::Result<Runtime> {
    let behind = || {
        if let Err(error) = nice(HANDSHAKE_NICE) {
            tracing::warn!(%error, "handshakes cannot be put behind reviews");
        }
    };
    let threads = threads().div_ceil(2);
    Builder::new_current_thread().thread_name("handshake").max_blocking_threads(threads).on_thread_start(behind).build()
}

/// The thread that a review is read and decided on.
#[derive(Clone, Debug)]
pub enum Thread {
    /// The one that serves its connection.
    Serving,
    /// One for blocking work. As many as there are permits are busy at once.
    Blocking(Arc<Semaphore>),
}

impl Thread {
    /// Runs `work`. `None` where no thread is free before `deadline`, or where `work` panics, which is logged where it does. What
    /// waits for a thread does not run once its caller is gone.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let Self::Blocking(permits) = self else { return Some(work()) };
        let permit = before(deadline, Arc::clone(permits).acquire_owned()).await?.ok()?;
        let done = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn blocking_work_leaves_the_serving_thread_and_waits_for_a_permit_until_the_deadline() {
        let permits = Arc::new(Semaphore::new(1));
        let (here, now) = (std::thread::current().id(), Instant::now());
        let thread = |thread: Thread| async move { thread.run(now, || std::thread::current().id()).await };
        assert_eq!(thread(Thread::Serving).await, Some(here));
        assert!(thread(Thread::Blocking(Arc::clone(&permits))).await.is_some_and(|there| there != here));
        let _taken = permits.acquire().await.unwrap();
        assert_eq!(thread(Thread::Blocking(Arc::clone(&permits))).await, None);
    }
}

//! The threads that reviews are read and decided on.
//!
//! Invariant: a large review does not delay a small one.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

use super::deadline::before;

/// The thread that a review is read and decided on.
#[derive(Clone, Debug)]
pub enum Thread {
    /// The one that serves its connection.
    Serving,
    /// One for blocking work. As many as there are permits are busy at once.
    Blocking(Arc<Semaphore>),
}

impl Thread {
    /// Runs `work`. `None` where no thread is free before `deadline`, or where `work` panics, which the panic
    /// hook logs. Work that waits for a thread is cancelled when the future is dropped.
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

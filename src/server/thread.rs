//! The threads that reviews are read and decided on.
//!
//! Invariant: a large review does not delay a small one.

use std::{panic::resume_unwind, sync::Arc};

use gmsa_cluster::large_memory::Taken;
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

/// The thread that a review is read and decided on.
#[derive(Clone, Debug)]
pub enum Thread {
    /// The thread that serves the connection.
    Serving,
    /// A thread for blocking work. The permits limit how many are busy at once.
    Blocking {
        permits: Arc<Semaphore>,
        /// The review's memory. Work goes on when its client has gone away, and holds this until it ends.
        memory: Arc<Taken>,
    },
}

impl Thread {
    /// Runs `work`. `None` where no thread is free before `deadline`. Work that waits for a thread is cancelled when the future is
    /// dropped. Where `work` panics, this panics too, on every thread.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let Self::Blocking { permits, memory } = self else { return Some(work()) };
        let permit = timeout_at(deadline, Arc::clone(permits).acquire_owned()).await.ok()?.ok()?;
        // Fields drop in this order: the memory is free before the next work starts.
        let held = (Arc::clone(memory), permit);
        let done = spawn_blocking(move || {
            let _held = held;
            work()
        });
        // A task for blocking work that has begun is never cancelled.
        Some(done.await.unwrap_or_else(|error| resume_unwind(error.into_panic())))
    }
}

#[cfg(test)]
mod tests {
    use std::{panic::AssertUnwindSafe, sync::mpsc};

    use futures::FutureExt as _;
    use gmsa_cluster::large_memory::{LargeMemory, MemoryUser};
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn blocking_work_leaves_the_serving_thread_and_waits_for_a_permit_until_the_deadline() {
        let permits = Arc::new(Semaphore::new(1));
        let memory = Arc::new(LargeMemory::new(2).share_of(MemoryUser::ApiServer).take(1).unwrap());
        let (here, now) = (std::thread::current().id(), Instant::now());
        let blocking = Thread::Blocking { permits: Arc::clone(&permits), memory };
        let thread = async |thread: &Thread| thread.run(now, || std::thread::current().id()).await;
        assert_eq!(thread(&Thread::Serving).await, Some(here));
        assert!(thread(&blocking).await.is_some_and(|there| there != here));
        let _taken = permits.acquire().await.unwrap();
        assert_eq!(thread(&blocking).await, None);
    }

    #[tokio::test]
    async fn a_panic_on_any_thread_is_one_of_the_review() {
        let memory = Arc::new(LargeMemory::new(2).share_of(MemoryUser::ApiServer).take(1).unwrap());
        let blocking = Thread::Blocking { permits: Arc::new(Semaphore::new(1)), memory };
        for thread in [Thread::Serving, blocking] {
            let work = AssertUnwindSafe(thread.run(Instant::now(), || panic!("a fault")));
            let panic = work.catch_unwind().await.unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"a fault"), "{thread:?}");
        }
    }

    #[tokio::test]
    async fn work_whose_client_has_gone_away_holds_its_memory_until_it_ends() {
        let large_memory = LargeMemory::new(2);
        let permits = Arc::new(Semaphore::new(1));
        let memory = Arc::new(large_memory.share_of(MemoryUser::ApiServer).take(1).unwrap());
        let thread = Thread::Blocking { permits: Arc::clone(&permits), memory };
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
        let work = move || {
            begun.send(()).unwrap();
            ends.recv()
        };
        let client = tokio::spawn(async move { thread.run(Instant::now(), work).await });
        while begins.try_recv().is_err() {
            yield_now().await;
        }
        client.abort();
        assert!(client.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(large_memory.free(), 1);
        end.send(()).unwrap();
        drop(permits.acquire().await.unwrap());
        assert_eq!(large_memory.free(), 2);
    }
}

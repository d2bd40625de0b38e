//! The threads that reviews are read and decided on.
//!
//! Invariant: a large review does not delay a small one.

use std::sync::Arc;

use gmsa_cluster::large_memory::Taken;
use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

use super::deadline::before;

/// The thread that a review is read and decided on.
#[derive(Clone, Debug)]
pub enum Thread {
    /// The one that serves its connection.
    Serving,
    /// A thread for blocking work. The permits limit how many are busy at once.
    Blocking {
        permits: Arc<Semaphore>,
        /// The review's memory. Work goes on when its client has gone away, and holds this until it ends.
        memory: Arc<Taken>,
    },
}

impl Thread {
    /// Runs `work`. `None` where no thread is free before `deadline`, or where `work` panics, which the panic
    /// hook logs. Work that waits for a thread is cancelled when the future is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let Self::Blocking { permits, memory } = self else { return Some(work()) };
        let permit = before(deadline, Arc::clone(permits).acquire_owned()).await?.ok()?;
        // Fields drop in this order: the memory is free before the next work starts.
        let held = (Arc::clone(memory), permit);
        let done = spawn_blocking(move || {
            let _held = held;
            work()
        });
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

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

//! How many threads serve connections, and the threads that handshakes are computed on.
//!
//! Invariant: no handshake delays a request on a connection that is served.

use std::io;

use rustix::process::nice;
use tokio::runtime::{Builder, Runtime};

/// The most threads that serve connections. Each takes memory of its own, and the memory limit of the process does not grow with the
/// cores of its node.
pub const MAX_THREADS: usize = 4;

/// How many threads serve connections: one for each core that the process may use, at most 4.
pub fn serving_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// The runtime of a server, or of a command that asks a cluster.
///
/// # Errors
/// Where the system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(serving_threads()).enable_all().build()
}

/// Nice value of the handshake threads: where cores are short, they come after the others. At 5 a thread gets a third of the time of one
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
    let threads = serving_threads().div_ceil(2);
    Builder::new_current_thread().thread_name("handshake").max_blocking_threads(threads).on_thread_start(behind).build()
}

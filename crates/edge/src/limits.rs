//! Limits on a connection's memory and waiting time, and on how many connections fit into the process's open files.
//!
//! How many connections are served and wait is the program's, in [`Serving`](crate::server::Serving): it divides its memory by
//! [`PER_CONNECTION`] and [`PER_WAITING`], which follow from the constants here.
//!
//! Invariant: each bound is a constant, or follows from the files that the process may have open; none grows with what a client sends.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many connections are served, and how many wait, with so many open files: at least half of them wait.
pub fn fit(served: usize, waiting: usize, files: usize) -> (usize, usize) {
    let served = served.min(files / 2).max(1);
    (served, waiting.min(files.saturating_sub(served)).max(1))
}

/// How many of these connections, served and waiting, the open files of the process allow besides `own` files, and how many files are for the
/// admin port. The limit of open files is raised as far as the process may.
pub fn within_files(own: usize, in_memory: (usize, usize)) -> ((usize, usize), usize) {
    let files = raise_limit_of_open_files();
    let [main, admin] = files_for_connections(files, own);
    let fitting = fit(in_memory.0, in_memory.1, main);
    if fitting != in_memory {
        let (connections, waiting) = fitting;
        tracing::warn!(
            files,
            connections,
            waiting,
            "fewer connections than memory has room for: few files may be open"
        );
    }
    (fitting, admin)
}

/// The files that the process may have open for connections, besides `own` ones: to the program's port, and an eighth of them to the
/// admin port.
fn files_for_connections(limit: usize, own: usize) -> [usize; 2] {
    let admin = limit.saturating_sub(own) / 8;
    [7 * admin, admin]
}

/// The files that a process has open besides connections of clients: those to the API server, of the runtime, of what it watches.
pub const OWN_FILES: usize = 64;

/// Raises the limit of open files as far as the process may, and returns it. Many container runtimes start processes with a soft
/// limit of 1024. Go's programs do the same.
fn raise_limit_of_open_files() -> usize {
    let files = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

/// The most that a served connection can hold, in bytes, with any client. What comes in is either a TLS handshake
/// message in parts (rustls keeps 64 KiB of it), or it is unread: 16 KiB as it came and 16 KiB decrypted in rustls,
/// [`MAX_HEAD`] in hyper, and twice [`RECEIVE_BUFFER`] in the kernel. What goes out is the head of an answer in hyper,
/// [`TLS_OUTPUT`], and twice [`SEND_BUFFER`] in the kernel. The rest is the state of TLS and the task.
pub const PER_CONNECTION: usize =
    (16 + 16 + 10) * 1024 + 2 * MAX_HEAD + TLS_OUTPUT + 2 * RECEIVE_BUFFER + 2 * SEND_BUFFER;

/// The most that a waiting connection can hold, in bytes: [`WAITING_RECEIVE_BUFFER`] twice, the kernel's structures of
/// a socket and of a file, and a task that waits.
pub const PER_WAITING: usize = 2 * WAITING_RECEIVE_BUFFER + 5 * 1024;

/// The largest request head, in bytes, and the most that is read of a body at once: the least that hyper takes.
pub const MAX_HEAD: usize = 8 * 1024;

/// The most bytes of a handshake that are read at once.
pub(crate) const MAX_READ: usize = 4 * 1024;

/// The part that rustls may hold of an answer that the client does not read, in bytes.
pub const TLS_OUTPUT: usize = 16 * 1024;

/// The kernel's buffers of a connection, in bytes. It doubles each, for its own book-keeping.
pub const RECEIVE_BUFFER: usize = 16 * 1024;
/// See [`RECEIVE_BUFFER`]. While a connection waits, its first message need not fit.
pub const WAITING_RECEIVE_BUFFER: usize = 2 * 1024;
/// See [`RECEIVE_BUFFER`].
pub const SEND_BUFFER: usize = 16 * 1024;

/// How many handshakes are computed, or are next, for each core that serves connections.
pub const HANDSHAKES_PER_CORE: usize = 2;

/// How long a TLS handshake may take: as long as Go's client allows it, which API servers are built with.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection that waits may send nothing: Go's client counts this as a part of its handshake.
pub const SILENT_TIMEOUT: Duration = HANDSHAKE_TIMEOUT;

/// How long a connection waits to be served: the longest time-out of a webhook call. Its client knows when to give up; a
/// connection that is closed before that is a refused pod.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connection may hold a place without a request to decide while another one waits for that place. An API server's
/// handshake takes milliseconds.
pub const CONTESTED_IDLE: Duration = Duration::from_secs(2);

/// The same for a connection that never brought a request, of an address that holds one which did. Where many pods are created at once, the
/// processors of an API server are busy, and its handshakes take seconds.
pub const CONTESTED_HANDSHAKE: Duration = Duration::from_secs(5);

/// How long a busy connection stays while an address without any connection waits: then the answer to its next request ends it.
/// Where more addresses send requests than there are places, these go round once in this time, and nobody is asked for a handshake with each
/// request. Beside twice as many addresses as places, a client still gets its answer within 5 s, the webhook chart's time-out.
pub const CONTESTED_STAY: Duration = Duration::from_secs(2);

/// How long what a client still sends is read and dropped before a request is refused: a socket that is closed while there are
/// bytes to read resets the connection, and a client that is still writing loses its answer.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a client may take to acknowledge, or to make room for, what is sent to it.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_open_files_of_the_process() {
        let connections = |limit: usize| {
            let [files, admin] = files_for_connections(limit, OWN_FILES);
            [fit(189, 2080, files), fit(64, 1024, admin)]
        };
        assert_eq!(connections(usize::MAX), [(189, 2080), (64, 1024)]);
        assert_eq!(connections(1024), [(189, 651), (60, 60)]);
        assert_eq!(connections(256), [(84, 84), (12, 12)]);
        assert_eq!(connections(16), [(1, 1), (1, 1)]);
        for limit in 128..5000 {
            let sum: usize = connections(limit).iter().map(|(served, waiting)| served + waiting).sum();
            assert!(sum + OWN_FILES <= limit, "{limit}: {sum}");
        }
    }
}

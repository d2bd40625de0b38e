//! What takes so long: a line on standard error about the call that is under way, after a second and again whenever it is
//! another one.
//!
//! Invariants: only a terminal is written to, so no log and no script sees these lines.

use std::{
    cell::RefCell,
    io::{self, IsTerminal as _, Write as _},
    pin::pin,
    time::Duration,
};

use gmsa_core::diagnostic::printable::one_line;
use tokio::time::{Instant, interval_at};

/// How long nothing is said, and how long at least between two lines.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    /// What is being done. The runtime has one thread.
    static DOING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes what is being done.
pub(super) fn doing(what: &str) {
    DOING.with_borrow_mut(|doing| what.clone_into(doing));
}

/// Runs `future`, and says what is being done while it takes long.
pub(super) async fn shown_during<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    if !io::stderr().is_terminal() {
        return future.await;
    }
    let mut ticks = interval_at(Instant::now() + PATIENCE, PATIENCE);
    let mut said = String::new();
    loop {
        tokio::select! {
            done = &mut future => return done,
            _ = ticks.tick() => {
                let doing = DOING.with_borrow(Clone::clone);
                if doing != said {
                    // Whether it can be written changes nothing of what is done.
                    let _ = writeln!(io::stderr(), "{} …", one_line(&doing));
                    said = doing;
                }
            }
        }
    }
}

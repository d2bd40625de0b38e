//! Progress: a line on standard error about the current call, after one second and at each change of the call.
//!
//! Invariants: lines go to terminals only, so they never appear in a log or the input of a script.

use std::{
    cell::RefCell,
    io::{self, IsTerminal as _, Write as _},
    pin::pin,
    time::Duration,
};

use gmsa_core::quote::one_line;
use tokio::time::{Instant, interval_at};

/// The delay of the first line, and the shortest time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    /// The current call. The runtime has one thread.
    static DOING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the current call.
pub fn doing(what: &str) {
    DOING.with_borrow_mut(|doing| what.clone_into(doing));
}

/// Runs `future`, and shows the current call if it takes long.
pub async fn shown_during<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    if !io::stderr().is_terminal() {
        return future.await;
    }
    let mut ticks = interval_at(Instant::now() + LINE_INTERVAL, LINE_INTERVAL);
    let mut shown = String::new();
    loop {
        tokio::select! {
            done = &mut future => return done,
            _ = ticks.tick() => {
                let doing = DOING.with_borrow(Clone::clone);
                if doing != shown {
                    // A failed write of a progress line does not fail the command.
                    let _ = writeln!(io::stderr(), "{} …", one_line(&doing));
                    shown = doing;
                }
            }
        }
    }
}

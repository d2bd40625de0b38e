//! Judging a cluster once, or again and again until nothing fails, and printing the last round.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    Outcome,
    output::{Filter, Shape, print_checks, table},
    snapshot::Snapshot,
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

/// How long it pauses between two rounds.
const PAUSE: Duration = Duration::from_secs(2);

/// Judges what `snapshot` reads, again where something fails and `until` is not over, and prints the last round; returns what that read. Warnings
/// do not keep it waiting.
pub async fn run(
    mut snapshot: Snapshot,
    until: Option<Instant>,
    filter: &Filter,
    shape: Shape,
    mut judge: impl AsyncFnMut(&Snapshot) -> anyhow::Result<Vec<Check>>,
) -> anyhow::Result<(Snapshot, Outcome)> {
    let mut awaited = Vec::new();
    loop {
        let checks = judge(&snapshot).await?;
        // Nothing is waited for that is ignored.
        let awaits = |found: &Diagnostic| found.severity == Severity::Error && filter.keeps(found);
        let fails = checks.iter().any(|check| check.result.as_ref().is_err_and(awaits));
        if !fails || until.is_none_or(|until| Instant::now() >= until) {
            let of_errors = filter.of_errors();
            let outcome = print_checks(checks, shape, if until.is_some() { &of_errors } else { filter })?;
            return Ok((snapshot, outcome));
        }
        let waiting: Vec<String> = table::failing(&checks).iter().map(|line| format!("waiting: {line}")).collect();
        // Prints what it waits for whenever that has changed.
        if waiting != awaited {
            io::stderr().write_all(waiting.concat().as_bytes())?;
            awaited = waiting;
        }
        sleep(PAUSE).await;
        snapshot = snapshot.again();
    }
}

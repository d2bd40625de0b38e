//! Repeats a look at the cluster until its result is the awaited one or the time is over.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    Outcome,
    output::{Filter, Shape, print_checks, table},
    world::World,
};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

/// How long it pauses between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks until there is a result.
pub async fn repeat<T>(mut look: impl AsyncFnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    loop {
        if let Some(result) = look().await? {
            return Ok(result);
        }
        sleep(PAUSE).await;
    }
}

/// Runs the checks on `world`, repeats them with new reads while one fails and `until` is not over, and prints the last round.
/// Returns the last world. Warnings cause no repetition.
pub async fn run(
    mut world: World,
    until: Option<Instant>,
    filter: &Filter,
    shape: Shape,
    mut judge: impl AsyncFnMut(&World) -> anyhow::Result<Vec<Check>>,
) -> anyhow::Result<(World, Outcome)> {
    let mut awaited = Vec::new();
    repeat(async || {
        let checks = judge(&world).await?;
        // Ignored rules cause no repetition.
        let awaits = |found: &Diagnostic| found.severity == Severity::Error && filter.keeps(found);
        let fails = checks.iter().any(|check| check.result.as_ref().is_err_and(awaits));
        if !fails || until.is_none_or(|until| Instant::now() >= until) {
            let of_errors = filter.of_errors();
            let outcome = print_checks(checks, shape, if until.is_some() { &of_errors } else { filter })?;
            return Ok(Some((world.clone(), outcome)));
        }
        let waiting: Vec<String> = table::failing(&checks).iter().map(|line| format!("waiting: {line}")).collect();
        // Prints the failed checks each time they change.
        if waiting != awaited {
            io::stderr().write_all(waiting.concat().as_bytes())?;
            awaited = waiting;
        }
        world = world.again();
        Ok(None)
    })
    .await
}

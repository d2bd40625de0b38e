//! What was measured, as a Markdown table, and the aims.

use std::{collections::BTreeMap, fmt};

use super::{Args, Storm, page};

/// The most memory that the webhook should use, in MiB.
const PEAK_AIM: f64 = 64.0;
/// The least that should be admitted per second, as a part of what is without limits.
const RATE_AIM: f64 = 0.9;
/// How many more pods of a hundred may time out than without limits: chance alone makes some.
const TIMED_OUT_AIM: f64 = 1.0;
/// How much of a message tells what happened.
const SHOWN: usize = 160;

/// One storm against one webhook.
pub struct Run {
    pub admitted: usize,
    pub refused: Vec<String>,
    pub seconds: f64,
    /// MiB.
    pub peak: f64,
    pub killed: bool,
    /// Connections of the flood.
    pub flooded: usize,
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "pods are far below 2^53")]
    fn rate(&self) -> f64 {
        self.admitted as f64 / self.seconds
    }

    /// The pods for which the time that an API server gives a webhook was over. Where its processors are busy with more pods than they can
    /// take, that time ends with any webhook.
    fn timed_out(&self) -> usize {
        self.refused.iter().filter(|message| message.contains("context deadline exceeded")).count()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admitted, refused, peak, killed, flooded, .. } = self;
        write!(f, "{admitted} admitted, {:.0}/s, {peak:.0} MiB, flooded by {flooded}", self.rate())?;
        f.write_str(if *killed { ", killed" } else { "" })?;
        let mut messages: BTreeMap<String, usize> = BTreeMap::new();
        for message in refused {
            // The numbers of ports make each one another.
            let same = message.chars().filter(|character| !character.is_ascii_digit()).take(SHOWN).collect();
            *messages.entry(same).or_default() += 1;
        }
        messages.iter().try_for_each(|(message, times)| write!(f, "\n    {times} x {message}"))
    }
}

/// A storm, and its runs in rounds: against this webhook, against it without limits, and against another one where there is one.
pub type Row = (&'static Storm, Vec<Vec<Run>>);

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How fast pods are admitted, as a part of the rate without limits in the same round.
fn ratio(runs: &[Vec<Run>]) -> f64 {
    median(runs[0].iter().zip(&runs[1]).map(|(this, unlimited)| this.rate() / unlimited.rate()))
}

fn peak(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.peak).fold(0.0, f64::max)
}

fn pods(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.admitted + run.refused.len()).sum()
}

/// Refused for another reason than a time-out.
fn refused(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.refused.len() - run.timed_out()).sum()
}

/// The time-outs of a hundred pods.
#[expect(clippy::cast_precision_loss, reason = "pods are far below 2^53")]
fn timed_out(runs: &[Run]) -> f64 {
    runs.iter().map(Run::timed_out).sum::<usize>() as f64 * 100.0 / pods(runs) as f64
}

/// Whether a row meets the aims.
pub fn holds((_, runs): &Row) -> bool {
    let (this, unlimited) = (&runs[0], &runs[1]);
    refused(this) == 0
        && timed_out(this) <= timed_out(unlimited) + TIMED_OUT_AIM
        && !this.iter().any(|run| run.killed)
        && peak(this) <= PEAK_AIM
        && ratio(runs) >= RATE_AIM
}

pub fn report(rows: &[Row], Args { seconds, rounds, .. }: &Args, api_server: &str) -> String {
    let mut head = vec![
        "Pods at once",
        "Refused",
        "Timed out",
        "Admitted per second",
        "÷ without limits",
        "Peak, MiB",
        "Without limits: refused, timed out",
        "The Go webhook, its throttle off: refused, timed out",
    ];
    head.truncate(6 + rows[0].1.len() - 1);
    let cells = rows.iter().map(|row| {
        let (storm, runs) = row;
        let killed = if runs[0].iter().any(|run| run.killed) { ", killed" } else { "" };
        let missed = if holds(row) { "" } else { ", **aim missed**" };
        let this = [
            storm.to_string(),
            format!("{} of {}{killed}{missed}", refused(&runs[0]), pods(&runs[0])),
            format!("{:.1} %", timed_out(&runs[0])),
            format!("{:.0}", median(runs[0].iter().map(Run::rate))),
            format!("{:.2}", ratio(runs)),
            format!("{:.0}", peak(&runs[0])),
        ];
        let others =
            runs[1..].iter().map(|runs| format!("{} of {}, {:.1} %", refused(runs), pods(runs), timed_out(runs)));
        this.into_iter().chain(others).collect()
    });
    format!(
        "{}\nDry-run creations for {seconds} s, {rounds} times, each against a new process with 128 MiB; without limits: \
         `--max-connections 4000`, without a memory limit. API servers, clients and webhook share the machine. Timed out: \
         the API server's 10 s were over. Aims: 0 refused, at most {TIMED_OUT_AIM} in a hundred more timed out than without \
         limits, at least {RATE_AIM} times as many per second, at most {PEAK_AIM} MiB.\n\n{}",
        page::table(&head, cells),
        page::machine(Some(api_server)),
    )
}

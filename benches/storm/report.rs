//! What was measured, as a Markdown table, and the aims.

use std::{collections::BTreeMap, fmt};

use super::{Storm, page};

/// The most memory that the webhook should use, in MiB.
const PEAK_AIM: f64 = 64.0;
/// The least that should be admitted per second, as a part of what is without limits.
const RATE_AIM: f64 = 0.9;
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

    fn refused(&self) -> String {
        let Self { admitted, refused, killed, .. } = self;
        format!("{} of {}{}", refused.len(), admitted + refused.len(), if *killed { ", killed" } else { "" })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused, {:.0}/s, {:.0} MiB, ", self.refused(), self.rate(), self.peak)?;
        write!(f, "flooded by {}", self.flooded)?;
        let mut messages: BTreeMap<String, usize> = BTreeMap::new();
        for message in &self.refused {
            // The numbers of ports make each one another.
            let same = message.chars().filter(|character| !character.is_ascii_digit()).take(SHOWN).collect();
            *messages.entry(same).or_default() += 1;
        }
        messages.iter().try_for_each(|(message, times)| write!(f, "\n    {times} x {message}"))
    }
}

/// A storm against this webhook, against it without limits, and against another one where there is one.
pub type Row = (&'static Storm, Vec<Run>);

/// How fast pods are admitted, as a part of the rate without limits.
fn ratio(runs: &[Run]) -> f64 {
    runs[0].rate() / runs[1].rate()
}

/// Whether a row meets the aims.
pub fn holds((_, runs): &Row) -> bool {
    runs[0].refused.is_empty() && !runs[0].killed && runs[0].peak <= PEAK_AIM && ratio(runs) >= RATE_AIM
}

pub fn report(rows: &[Row], seconds: u64, api_server: &str) -> String {
    let mut head = vec![
        "Pods at once",
        "Refused",
        "Admitted per second",
        "÷ without limits",
        "Peak, MiB",
        "Without limits: refused",
        "The Go webhook, its throttle off: refused",
    ];
    head.truncate(5 + rows[0].1.len() - 1);
    let cells = rows.iter().map(|row| {
        let (storm, runs) = row;
        let missed = if holds(row) { "" } else { ", **aim missed**" };
        let this = [
            storm.to_string(),
            runs[0].refused() + missed,
            format!("{:.0}", runs[0].rate()),
            format!("{:.2}", ratio(runs)),
            format!("{:.0}", runs[0].peak),
        ];
        this.into_iter().chain(runs[1..].iter().map(Run::refused)).collect()
    });
    format!(
        "{}\nDry-run creations for {seconds} s, each against a new process with 128 MiB; without limits: \
         `--max-connections 4000`, without a memory limit. API servers, clients and webhook share the machine. Aims: \
         0 refused, at least {RATE_AIM} times as many per second as without limits, at most {PEAK_AIM} MiB.\n\n{}",
        page::table(&head, cells),
        page::machine(Some(api_server)),
    )
}

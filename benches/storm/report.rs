//! What was measured, as a Markdown table, and the aims.

use std::{collections::BTreeMap, fmt};

use super::{page, webhook::Kind};

const BEGIN: &str = "<!-- storm: written by `just storm --write` -->";
const END: &str = "<!-- storm: end -->";

/// The most memory that the webhook should use, in MiB.
const PEAK_AIM: u64 = 64;
/// The least that should be admitted per second, as a part of what is without limits.
const RATE_AIM: f64 = 0.9;
/// How much of a message tells what happened.
const SHOWN: usize = 160;

/// One storm against one webhook.
pub struct Run {
    pub admitted: usize,
    /// The messages.
    pub refused: Vec<String>,
    pub seconds: f64,
    /// MiB.
    pub peak: u64,
    pub killed: bool,
    /// Connections of the flood.
    pub flooded: usize,
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "pods are far below 2^53")]
    fn rate(&self) -> f64 {
        self.admitted as f64 / self.seconds
    }

    fn all(&self) -> usize {
        self.admitted + self.refused.len()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed = if self.killed { ", killed" } else { "" };
        write!(f, "{} of {} refused, {:.0}/s, {} MiB{killed}", self.refused.len(), self.all(), self.rate(), self.peak)?;
        write!(f, ", flooded by {}", self.flooded)?;
        let mut messages: BTreeMap<String, usize> = BTreeMap::new();
        for message in &self.refused {
            // The numbers of ports make each one another.
            let same = message.chars().filter(|character| !character.is_ascii_digit()).take(SHOWN).collect();
            *messages.entry(same).or_default() += 1;
        }
        messages.iter().try_for_each(|(message, times)| write!(f, "\n    {times} x {message}"))
    }
}

/// A storm against each webhook.
pub struct Row<'a> {
    pub at_once: usize,
    pub api_servers: usize,
    pub flood: u32,
    pub runs: Vec<(Kind<'a>, Run)>,
}

impl Row<'_> {
    fn run(&self, wanted: Kind<'_>) -> Option<&Run> {
        self.runs.iter().find_map(|(kind, run)| (*kind == wanted).then_some(run))
    }

    /// How fast pods are admitted, as a part of the rate without limits.
    fn ratio(&self) -> f64 {
        let rate = |kind| self.run(kind).map_or(f64::NAN, Run::rate);
        rate(Kind::Installed) / rate(Kind::Unlimited)
    }

    fn holds(&self) -> bool {
        let this = self.run(Kind::Installed);
        this.is_some_and(|run| run.refused.is_empty() && !run.killed && run.peak <= PEAK_AIM)
            && self.ratio() >= RATE_AIM
    }
}

/// All of it.
pub struct Report<'a> {
    pub rows: Vec<Row<'a>>,
    pub seconds: u64,
    pub api_server: String,
    pub machine: String,
}

impl Report<'_> {
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// Puts it into docs/measurements.md.
    pub fn write(&self) {
        page::write("docs/measurements.md", BEGIN, END, &self.to_string());
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = self.rows.iter().any(|row| row.runs.len() > 2);
        let other = if others { " The Go webhook, its throttle off: refused |" } else { "" };
        writeln!(
            f,
            "| Pods at once | Refused | Admitted per second | ÷ without limits | Peak, MiB | Without limits: refused |{other}"
        )?;
        writeln!(f, "|---|---|---|---|---|---|{}", if others { "---|" } else { "" })?;
        for row in &self.rows {
            let Some(this) = row.run(Kind::Installed) else { continue };
            let servers =
                if row.api_servers > 1 { format!(", by {} API servers", row.api_servers) } else { String::new() };
            let flood = if row.flood > 0 {
                format!(", beside {} connections a second that end in half a handshake", row.flood)
            } else {
                String::new()
            };
            let refused = |run: &Run| {
                format!("{} of {}{}", run.refused.len(), run.all(), if run.killed { ", killed" } else { "" })
            };
            let missed = if row.holds() { "" } else { ", **aim missed**" };
            write!(
                f,
                "| {}{servers}{flood} | {}{missed} | {:.0} | {:.2} | {} |",
                row.at_once,
                refused(this),
                this.rate(),
                row.ratio(),
                this.peak
            )?;
            for (_, run) in row.runs.iter().filter(|(kind, _)| *kind != Kind::Installed) {
                write!(f, " {} |", refused(run))?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\nDry-run creations for {} s, each against a new process with 128 MiB; without limits: `--max-connections 4000`, without a memory limit. \
             API servers, clients and webhook share the machine. Aims: 0 refused, at least {RATE_AIM} times as many per second as without limits, at most {PEAK_AIM} MiB.\n",
            self.seconds
        )?;
        write!(f, "- Machine: {}, kube-apiserver {}, etcd without fsync.", self.machine, self.api_server)
    }
}

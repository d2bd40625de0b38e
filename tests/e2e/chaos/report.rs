//! What the faults cost, as a Markdown table, and its place on the page.

use std::{collections::BTreeMap, fmt, time::Duration};

use tokio::time::Instant;

use super::{Kind, Outcome, faults::Fault, traffic::Attempt};
use crate::page;

const PAGE: &str = "docs/measurements.md";

/// How many of the refusals are shown.
const SHOWN: usize = 3;

/// What one fault cost.
pub struct Row {
    fault: Fault,
    lasted: Duration,
    tried: usize,
    refused: usize,
    try_again: usize,
    unavailable: usize,
    wrong: Vec<String>,
    forbidden: usize,
    admitted: Vec<String>,
    /// From the change of the credential spec until the last pod with the old contents was sent.
    old: Option<Duration>,
    /// From the end of the fault until the last pod that was refused or found no API server.
    recovery: Duration,
    /// From the end of the fault until every replica watches credential specs; where it began before that, it includes the
    /// seconds in which everything had to be well.
    watching: Duration,
    /// The refusals, and how many of each.
    causes: BTreeMap<String, usize>,
}

impl Row {
    pub fn new(
        fault: Fault,
        lasted: Duration,
        (ended, watching): (Instant, Duration),
        changed: Option<Instant>,
        attempts: &[Attempt],
        stored: Vec<String>,
    ) -> Self {
        let (forbidden, tried): (Vec<_>, Vec<_>) = attempts.iter().partition(|attempt| attempt.kind == Kind::Forbidden);
        let count = |matches: fn(&Outcome) -> bool| tried.iter().filter(|attempt| matches(&attempt.outcome)).count();
        let wrong = |attempts: &[&Attempt]| {
            let wrong = attempts.iter().filter_map(|attempt| match &attempt.outcome {
                Outcome::Wrong(what) => Some(what.clone()),
                _ => None,
            });
            wrong.collect::<Vec<_>>()
        };
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_) | Outcome::Unavailable);
        let late = tried.iter().filter(|attempt| failed(&attempt.outcome)).map(|attempt| attempt.ended);
        let old = tried.iter().filter(|attempt| attempt.outcome == Outcome::Old).map(|attempt| attempt.began).max();
        let mut causes = BTreeMap::new();
        for attempt in &tried {
            if let Outcome::Refused(cause) = &attempt.outcome {
                *causes.entry(cause.clone()).or_default() += 1;
            }
        }
        Self {
            fault,
            lasted,
            tried: tried.len(),
            refused: count(|outcome| matches!(outcome, Outcome::Refused(_))),
            try_again: count(|outcome| *outcome == Outcome::TryAgain),
            unavailable: count(|outcome| *outcome == Outcome::Unavailable),
            wrong: [wrong(&tried), stored].concat(),
            forbidden: forbidden.len(),
            admitted: wrong(&forbidden),
            old: changed.map(|changed| old.map_or(Duration::ZERO, |old| old.saturating_duration_since(changed))),
            recovery: late.max().map_or(Duration::ZERO, |late| late.saturating_duration_since(ended)),
            watching,
            causes,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} | {:.1} | {} | {}{} | {} | {} | {} | {} of {} | {} | {:.1} | {:.0} |",
            self.fault,
            self.lasted.as_secs_f64(),
            self.tried,
            self.refused,
            if self.fault.must_refuse_none() { ", aim 0" } else { "" },
            self.try_again,
            self.unavailable,
            self.wrong.len(),
            self.admitted.len(),
            self.forbidden,
            self.old.map_or_else(|| "–".to_owned(), |old| format!("{:.1}", old.as_secs_f64())),
            self.recovery.as_secs_f64(),
            self.watching.as_secs_f64(),
        )?;
        for wrong in self.wrong.iter().chain(&self.admitted) {
            write!(f, "\n  WRONG {wrong}")?;
        }
        if f.alternate() {
            for (cause, times) in self.causes.iter().take(SHOWN) {
                write!(f, "\n  {times} × {cause}")?;
            }
        }
        Ok(())
    }
}

/// What all of them cost.
pub struct Report {
    pub rows: Vec<Row>,
    pub replicas: u8,
    pub api_server: String,
}

impl Report {
    /// Whether no pod had wrong contents, and none was admitted without `use`.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.wrong.is_empty() && row.admitted.is_empty())
    }

    pub fn write(&self) {
        let begin = format!("<!-- chaos, {} replicas: written by `just chaos --write` -->", self.replicas);
        page::write(PAGE, &begin, &format!("<!-- chaos, {} replicas: end -->", self.replicas), &self.to_string());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| {} replicas | fault, s | pods tried | refused | asked to try again | no API server | wrong contents | \
             admitted without `use` | old contents for, s | recovery, s | all watches back, s |\n|---|---|---|---|---|---|---|---|---|---|---|",
            self.replicas,
        )?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        write!(f, "\n- Machine: {}, kube-apiserver {}, etcd without fsync.", page::machine(), self.api_server)
    }
}

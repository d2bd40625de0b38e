//! What the faults cost, as a Markdown table.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{
    Kind, Outcome,
    traffic::{Attempt, count},
};
use crate::page;

/// How many of the refusals are shown.
const SHOWN: usize = 3;

/// What happened in one fault.
pub struct Row {
    pub name: &'static str,
    pub may_refuse: bool,
    pub lasted: Duration,
    pub ended: Instant,
    /// When the credential spec changed.
    pub changed: Option<Instant>,
    /// From the end of the fault until every replica watches credential specs; where it began before that, it includes the
    /// seconds in which everything had to be well.
    pub watching: Duration,
    pub attempts: Vec<Attempt>,
    /// The pods that are stored and must not be.
    pub stored: Vec<String>,
}

impl Row {
    /// Whether no pod had wrong contents, and none was admitted without `use`.
    pub fn holds(&self) -> bool {
        self.stored.is_empty() && count(&self.attempts, |outcome| matches!(outcome, Outcome::Wrong(_))) == 0
    }

    /// What must never be, and the refusals, with how many of each.
    pub fn notes(&self) -> String {
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut notes: Vec<String> = self.stored.iter().map(|pod| format!("\n  WRONG {pod}")).collect();
        for attempt in &self.attempts {
            match &attempt.outcome {
                Outcome::Wrong(what) => notes.push(format!("\n  WRONG {what}")),
                Outcome::Refused(cause) if attempt.kind != Kind::Forbidden => *causes.entry(cause).or_default() += 1,
                _ => {}
            }
        }
        notes.extend(causes.iter().take(SHOWN).map(|(cause, times)| format!("\n  {times} × {cause}")));
        notes.concat()
    }

    pub fn cells(&self) -> Vec<String> {
        let (forbidden, tried): (Vec<_>, Vec<_>) =
            self.attempts.iter().partition(|attempt| attempt.kind == Kind::Forbidden);
        let wrong = |outcome: &Outcome| matches!(outcome, Outcome::Wrong(_));
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_) | Outcome::Unavailable);
        let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
        let refused = count(tried.iter().copied(), |outcome| matches!(outcome, Outcome::Refused(_)));
        // Until the last pod that was refused or found no API server was answered.
        let late = tried.iter().filter(|attempt| failed(&attempt.outcome)).map(|attempt| attempt.ended).max();
        let recovery = late.map_or(Duration::ZERO, |late| late.saturating_duration_since(self.ended));
        // Until the last pod with the old contents was sent.
        let old = tried.iter().filter(|attempt| attempt.outcome == Outcome::Old).map(|attempt| attempt.began).max();
        let old = |changed| seconds(old.map_or(Duration::ZERO, |old| old.saturating_duration_since(changed)));
        vec![
            self.name.to_owned(),
            seconds(self.lasted),
            tried.len().to_string(),
            format!("{refused}{}", if self.may_refuse { "" } else { ", aim 0" }),
            count(tried.iter().copied(), |outcome| *outcome == Outcome::TryAgain).to_string(),
            count(tried.iter().copied(), |outcome| *outcome == Outcome::Unavailable).to_string(),
            (count(tried.iter().copied(), wrong) + self.stored.len()).to_string(),
            format!("{} of {}", count(forbidden.iter().copied(), wrong), forbidden.len()),
            self.changed.map_or_else(|| "–".to_owned(), old),
            seconds(recovery),
            format!("{:.0}", self.watching.as_secs_f64()),
        ]
    }
}

pub fn report(rows: &[Row], replicas: u8, api_server: &str) -> String {
    let first = format!("{replicas} replicas");
    let head = [
        &first,
        "fault, s",
        "pods tried",
        "refused",
        "asked to try again",
        "no API server",
        "wrong contents",
        "admitted without `use`",
        "old contents for, s",
        "recovery, s",
        "all watches back, s",
    ];
    format!("{}\n{}", page::table(&head, rows.iter().map(Row::cells)), page::machine(Some(api_server)))
}

//! Errors of a Windows node that starts a container, and of commands in one, in words: what a status code or a message means for a
//! Pod that uses GMSA, and what to do.
//!
//! Invariants: a text of any length and content gives at most [`MAX_FOUND`] explanations; nothing is guessed: a number counts only
//! where its form or the word before it says that it is a status.

use std::fmt;

use crate::diagnostic::rules::Rule;

mod code;
mod message;
mod number;

pub use code::{Code, Status};

/// How many different errors of one text are explained.
pub const MAX_FOUND: usize = 16;

/// When an error arose: the same status means other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// While the node started the container.
    Start,
    /// In a container that runs.
    Running,
}

impl Phase {
    /// What the words of a text say: those of hcsshim, the kubelet and CCG, or those of `nltest` and `klist`.
    fn of(text: &str) -> Option<Self> {
        const START: [&str; 8] = [
            "createcomputesystem",
            "createprocess",
            "winapi error",
            "hcs::",
            "pod sandbox",
            "containerd task",
            "external credentials",
            "credential guard",
        ];
        const RUNNING: [&str; 4] = ["netlogoncontrol", "trusted dc", "trust verification", "klist"];
        let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match (contains(&START), contains(&RUNNING)) {
            (true, _) => Some(Self::Start),
            (false, true) => Some(Self::Running),
            (false, false) => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "while the node starts the container",
            Self::Running => "in a container that runs",
        })
    }
}

/// What an error in a text means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The error: `0xd0020017: RPC_NT_SERVER_UNAVAILABLE (NTSTATUS 0xc0020017)`, or the words by which it was recognised.
    pub found: String,
    pub meaning: Meaning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The rules that are broken, each with its phase where that makes a difference.
    Fault(Vec<(Option<Phase>, &'static Rule)>),
    /// Nothing is wrong: what it says instead.
    NoFault(&'static str),
    /// A status that is not known here: how to look it up.
    Unknown(&'static str),
}

/// Explains the errors that a text holds: statuses alone, or messages with statuses in them. The most specific comes first.
pub fn explain(text: &str) -> Vec<Explanation> {
    let lower = text.to_ascii_lowercase();
    let phase = Phase::of(&lower);
    let mut found = message::find(&lower, phase);
    if let Some(statuses) = text.split_whitespace().take(MAX_FOUND).map(number::alone).collect::<Option<Vec<_>>>() {
        found.extend(statuses.into_iter().map(|status| status.explain(phase).unwrap_or_else(|| status.unknown())));
    } else {
        let statuses = number::find(text).chain(code::named(text));
        found.extend(statuses.filter_map(|status| status.explain(phase)).take(MAX_FOUND));
    }
    let mut different: Vec<Explanation> = Vec::new();
    for explanation in found {
        if !different.iter().any(|known| known.says_all_of(&explanation)) {
            different.push(explanation);
        }
    }
    different.truncate(MAX_FOUND);
    different
}

/// The rule that the first error of a text breaks, which arose in `phase`.
pub fn rule(text: &str, phase: Phase) -> Option<&'static Rule> {
    explain(text).into_iter().find_map(|found| match found.meaning {
        Meaning::Fault(rules) => {
            let of_phase = rules.iter().find(|(of, _)| *of == Some(phase)).or(rules.first());
            of_phase.map(|(_, rule)| *rule)
        }
        Meaning::NoFault(_) | Meaning::Unknown(_) => None,
    })
}

impl Explanation {
    /// Whether the other adds nothing: a message and the code in it say the same.
    fn says_all_of(&self, other: &Self) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Fault(rules), Meaning::Fault(others)) => {
                others.iter().all(|(_, other)| rules.iter().any(|(_, rule)| rule == other))
            }
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests;

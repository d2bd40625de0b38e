//! The meaning of an error in a text: its rules, and the phase in which it occurred.

use gmsa_core::word_enum;
use serde::Serialize;

use super::{RUNNING_WORDS, Rule, START_WORDS};

word_enum! {
    /// The phase of an error: the same status has another meaning in each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Phase {
        Start = "while the node starts the container",
        Running = "in a container that runs",
    }
}

impl Phase {
    /// The phase that a text shows: by words of hcsshim, the kubelet and CCG, or of commands and clients in a container.
    pub(super) fn of(text: &str) -> Option<Self> {
        let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match (contains(START_WORDS), contains(RUNNING_WORDS)) {
            (true, _) => Some(Self::Start),
            (false, true) => Some(Self::Running),
            (false, false) => None,
        }
    }
}

/// The meaning of an error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The error: `0xd0020017: RPC_NT_SERVER_UNAVAILABLE (NTSTATUS 0xc0020017)`, or the matched words.
    pub found: String,
    pub meaning: Meaning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The rules, each with its phase if that matters.
    Fault(Vec<(Option<Phase>, &'static Rule)>),
    /// A text that is no fault, such as a success, with its explanation.
    NoFault(String),
    /// A status without a known cause: its name, and where to look.
    Unknown(String),
}

impl Explanation {
    pub(super) fn is_fault(&self) -> bool {
        matches!(self.meaning, Meaning::Fault(_))
    }

    /// Whether it includes the other: a message and the code in it have the same meaning.
    pub(super) fn says_all_of(&self, other: &Self) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Fault(rules), Meaning::Fault(others)) => {
                others.iter().all(|(_, other)| rules.iter().any(|(_, rule)| rule == other))
            }
            (one, other) => one == other,
        }
    }
}

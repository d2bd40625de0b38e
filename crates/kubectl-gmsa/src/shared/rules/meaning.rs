//! What an error in a text means: the rules that it breaks, and when it arose.

use std::fmt;

use serde::Serialize;

use super::Rule;

/// When an error arose: the same status means other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// While the node started the container.
    Start,
    /// In a container that runs.
    Running,
}

impl Phase {
    /// What the words of a text say: those of hcsshim, the kubelet and CCG, or those of commands and clients in a container.
    pub(super) fn of(text: &str) -> Option<Self> {
        const START: [&str; 9] = [
            "createcomputesystem",
            "encountered an error during",
            "createprocess",
            "winapi error",
            "hcs::",
            "pod sandbox",
            "containerd task",
            "external credentials",
            "credential guard",
        ];
        const RUNNING: [&str; 21] = [
            "lsacallauthenticationpackage",
            "setspn",
            "dsbind",
            "netlogon",
            "trusted dc",
            "trust verification",
            "klist",
            "nltest",
            "dsgetdcname",
            "parent domain",
            "getting dc name",
            "nlsetstatus",
            "secure session",
            "exception",
            "system error",
            "sspi",
            "group policy",
            "securitycontext",
            "nt_status_",
            "status = ",
            "account failed to log on",
        ];
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
    /// The error: `0xd0020017: RPC_NT_SERVER_UNAVAILABLE (NTSTATUS 0xc0020017)`, or the words by which it was recognized.
    pub found: String,
    pub meaning: Meaning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The rules that are broken, each with its phase where that makes a difference.
    Fault(Vec<(Option<Phase>, &'static Rule)>),
    /// Nothing is wrong: what it says instead.
    NoFault(String),
    /// A status without a known cause: what it is, and where to look.
    Unknown(String),
}

impl Explanation {
    pub(super) fn is_fault(&self) -> bool {
        matches!(self.meaning, Meaning::Fault(_))
    }

    /// Whether the other adds nothing: a message and the code in it say the same.
    pub(super) fn says_all_of(&self, other: &Self) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Fault(rules), Meaning::Fault(others)) => {
                others.iter().all(|(_, other)| rules.iter().any(|(_, rule)| rule == other))
            }
            (one, other) => one == other,
        }
    }
}

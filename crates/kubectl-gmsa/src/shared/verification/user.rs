//! The user of commands in a container, and the checks that it permits.

use super::{CommandOutput, not_checked};
use gmsa_core::diagnostic::Check;

/// A Windows user, by its SID. The SIDs are from Microsoft's page on securing Windows containers and from the well-known ones
/// ([MS-DTYP] 2.4.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    System,
    NetworkService,
    ContainerAdministrator,
    Other(String),
    /// `whoami` printed no SID, or did not run.
    Unknown,
}

impl User {
    pub fn of(answer: &CommandOutput) -> Self {
        match answer.sid() {
            Some("S-1-5-18") => Self::System,
            Some("S-1-5-20") => Self::NetworkService,
            Some("S-1-5-93-2-1") => Self::ContainerAdministrator,
            Some(sid) => Self::Other(sid.to_owned()),
            None => Self::Unknown,
        }
    }

    /// Whether `nltest /sc_verify` can succeed: Netlogon verifies a channel only for administrators ([MS-NRPC] 3.5.4.9.1). Other users get
    /// `ERROR_ACCESS_DENIED`, whatever the account.
    pub fn may_verify(&self) -> bool {
        matches!(self, Self::System | Self::ContainerAdministrator)
    }

    /// The command that gets a ticket of the account; `None` if this user cannot see its tickets.
    pub fn get_ticket(&self, service: &str) -> Option<Vec<String>> {
        let words: &[&str] = match self {
            Self::System | Self::NetworkService => &["klist", "get", service],
            // An administrator may read the logon session of SYSTEM.
            Self::ContainerAdministrator => &["klist", "-li", "0x3e7", "get", service],
            Self::Other(_) | Self::Unknown => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The line about the user. It always passes: services and IIS application pools act as the account with any user.
    pub fn check(&self, about: &'static str) -> Check {
        let name = match self {
            Self::System => return Check::pass(about, "SYSTEM, which acts as the gMSA"),
            Self::NetworkService => return Check::pass(about, "NETWORK SERVICE, which acts as the gMSA"),
            Self::ContainerAdministrator => "ContainerAdministrator",
            Self::Other(sid) if sid == "S-1-5-93-2-2" => "ContainerUser",
            Self::Other(sid) => sid,
            Self::Unknown => {
                let text = "whoami printed no SID, so the trust and the tickets are not checked";
                return Check::found(about, not_checked(text, super::OTHER_IMAGE));
            }
        };
        Check::pass(
            about,
            format!("{name}; services and IIS application pools act as the gMSA, processes of this user do not"),
        )
    }

    /// Why the tickets are not checked.
    pub fn sees_no_ticket(&self, about: &'static str) -> Option<Check> {
        let Self::Other(_) = self else { return None };
        let text = "only SYSTEM, NETWORK SERVICE and ContainerAdministrator see the tickets of the gMSA";
        let fix = "Verify a container of the same Pod that runs as one of them. A process that acts as the gMSA itself, not by a service or an IIS \
                   application pool, needs `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`.";
        Some(Check::found(about, not_checked(text, fix)))
    }
}

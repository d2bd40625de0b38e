//! Errors as sentences: the events of Container Credential Guard (CCG), Microsoft's page on troubleshooting gMSA for containers; the
//! errors of hcsshim, `internal/credentials`, `internal/hcsoci` and `errors.go`; the messages of Windows for codes, `net helpmsg`.
//!
//! Windows writes its messages in its own language. Those of CCG and hcsshim are English.

use super::{Explanation, Meaning, Phase, Status};
use crate::diagnostic::rules::{self, Rule};

/// Messages of a node that starts a container and that have one cause, in lower case, `*` for what comes between; the most specific
/// first.
static FAULTS: &[(&str, &Rule)] = &[
    ("failed to parse the credential spec", &rules::CONTENTS_REJECTED),
    ("failed to parse the plugin guid", &rules::PLUGIN_GUID),
    ("failed to instantiate the plugin", &rules::PLUGIN_NOT_STARTED),
    ("failed to fetch credentials from the plugin", &rules::PLUGIN_FAILED),
    ("failed to fetch gmsa credentials", &rules::PASSWORD_NOT_RETRIEVED),
    ("hypervisor isolated containers*do not support gmsa", &rules::HYPER_V),
    ("operating system does not match the host", &rules::IMAGE_MISMATCH),
    ("createprocess*cannot find the file specified", &rules::START_COMMAND),
    ("createprocess*cannot find the path specified", &rules::START_COMMAND),
    ("createprocess*user name or password is incorrect", &rules::START_LOGON),
    ("failed to setup the external credentials", &rules::NODE_CREDENTIALS),
    ("container credential guard instance", &rules::NODE_CREDENTIALS),
];

/// Events of CCG that say that a step succeeded.
static NO_FAULTS: &[(&str, &str)] = &[
    ("credential guard instantiated the plugin", "The plugin is registered on the node and was started."),
    ("fetched gmsa credentials for", "The node has the password of the account."),
    ("is refetching the credentials", "The password of the account has changed, and the node retrieves the new one."),
];

/// Messages of Windows for codes, and the code.
static MESSAGES: &[(&str, u32)] = &[
    ("the user name or password is incorrect", 1326),
    ("no logon servers available", 1311),
    ("domain either does not exist or could not be contacted", 1355),
    ("rpc server is unavailable", 1722),
    ("remote procedure call failed", 1726),
    ("specified logon session does not exist", 1312),
    ("trust relationship between this workstation and the primary domain failed", 1789),
    ("does not have a computer account for this workstation trust relationship", 1787),
    ("time and/or date difference between the client and server", 1398),
    ("referenced account is currently locked out", 1909),
    ("no mapping between account names and security ids", 1332),
    ("target account name is incorrect", 1396),
    ("class not registered", 0x8004_0154),
    ("server process could not be started because the configured identity is incorrect", 0x8000_401a),
    ("server execution failed", 0x8008_0005),
];

/// What the sentences of a text say, which is in lower case.
pub(super) fn find(text: &str, phase: Option<Phase>) -> Vec<Explanation> {
    // Microsoft's page writes `plug-in`, the events write `plugin`.
    let text = text.replace("plug-in", "plugin");
    let fault = |(words, rule): &(&str, &'static Rule)| {
        let meaning = || Meaning::Fault(vec![(Some(Phase::Start), *rule)]);
        holds(&text, words).then(|| Explanation { found: quoted(words), meaning: meaning() })
    };
    let no_fault = |(words, what): &(&str, &'static str)| {
        holds(&text, words).then(|| Explanation { found: quoted(words), meaning: Meaning::NoFault(what) })
    };
    let message = |(words, code): &(&str, u32)| {
        let explained = holds(&text, words).then(|| Status(*code).explain(phase)).flatten()?;
        Some(Explanation { found: format!("{}: {}", quoted(words), explained.found), ..explained })
    };
    let of_windows = MESSAGES.iter().filter_map(message);
    FAULTS.iter().filter_map(fault).chain(of_windows).chain(NO_FAULTS.iter().filter_map(no_fault)).collect()
}

/// Whether the parts of the words follow each other in the text.
fn holds(text: &str, words: &str) -> bool {
    let mut rest = Some(text);
    for part in words.split('*') {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some()
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('*', " … "))
}

//! The files of the pod's memory volume: `krb5cc`, `krb5.conf`, `tickets.json` and `status` for tickets; `keytab`, `keytab.json` and
//! `keytab.status` for a keytab.
//!
//! Invariants: a file appears by a rename, so a reader sees a whole file or none; only the agent writes. Every user, or the group of the
//! pod, may read: the boundary is the volume, which other containers mount read-only. A status is there while the last request has failed,
//! and holds no secret.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

use super::client::AskError;
use crate::api::{Given, GivenProduct, KEPT_FOR};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_core::credspec::Verb;
use gmsa_kerberos::with_former;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// The credential cache, which `KRB5CCNAME` names.
const CCACHE: &str = "krb5cc";
/// What `KRB5_CONFIG` names.
const KRB5_CONF: &str = "krb5.conf";
/// What `KRB5_KTNAME` names.
const KEYTAB: &str = "keytab";
/// The reason before there is another one.
pub const UNANSWERED: &str = "the broker has not answered yet";
/// Written by `agent ready` to find out whether the folder can be written, and removed at once.
const PROBE: &str = ".ready";

/// The folder of the files.
pub struct Folder(pub PathBuf);

/// The files of what a verb gives: itself, the account with its services and the end of the tickets or the number of the key, and why the last
/// request failed.
fn files(verb: Verb) -> [&'static str; 3] {
    match verb {
        Verb::Use => [CCACHE, "tickets.json", "status"],
        Verb::Export => [KEYTAB, "keytab.json", "keytab.status"],
    }
}

impl Folder {
    /// Replaces the files of the tickets, or of the keytab.
    ///
    /// # Errors
    /// If they are not Base64, or the folder cannot be written.
    pub fn write(&self, given: &Given, mode: u32, now: OffsetDateTime) -> Result<(), AskError> {
        let decoded = |text: &str, error| BASE64_STANDARD.decode(text).map_err(|_| AskError::Unreadable(error));
        let Given { principal, product, .. } = given;
        let (verb, written, summary) = match product {
            GivenProduct::Tickets { services, expires, ccache, krb5_conf } => {
                let ccache = decoded(ccache, "has no tickets in Base64")?;
                // The configuration first: it fits the old tickets too.
                let written = self.replace(KRB5_CONF, krb5_conf.as_bytes(), mode);
                let written = written.and_then(|()| self.replace(CCACHE, &ccache, mode));
                (Verb::Use, written, json!({"principal": principal, "services": services, "expires": expires}))
            }
            GivenProduct::Keytab { names, kvno, keytab } => {
                // A broker that has started since, or another replica, does not know all keys.
                let is_same =
                    self.summary(Verb::Export).is_some_and(|former| former.get("principal") == Some(&json!(principal)));
                let former = fs::read(self.0.join(KEYTAB)).ok().filter(|_| is_same).unwrap_or_default();
                let keytab = decoded(keytab, "has no keytab in Base64")?;
                let written = self.replace(KEYTAB, &with_former(&keytab, &former, (now - KEPT_FOR).to_utc()), mode);
                (Verb::Export, written, json!({"principal": principal, "names": names, "kvno": kvno}))
            }
        };
        let [_, summary_file, status] = files(verb);
        let written = written.and_then(|()| self.replace(summary_file, summary.to_string().as_bytes(), mode));
        let written = written.and_then(|()| self.remove(status));
        written.map(drop).map_err(|error| AskError::Write(self.0.clone(), error))
    }

    /// Removes these files, and says whether there were tickets, or a keytab.
    pub fn remove_given(&self, verb: Verb) -> bool {
        let [given, summary, _] = files(verb);
        match verb {
            Verb::Use => drop(self.remove(KRB5_CONF)),
            Verb::Export => {}
        }
        [given, summary].map(|name| self.remove(name).unwrap_or(false))[0]
    }

    pub fn write_status(&self, verb: Verb, reason: &str, mode: u32) -> io::Result<()> {
        let ([_, _, name], status) = (files(verb), format!("{reason}\n"));
        self.replace(name, status.as_bytes(), mode).or_else(|_| {
            // A full folder may have room for one of them.
            self.remove(name)?;
            self.replace(name, status.as_bytes(), mode)
        })
    }

    /// The product that the agent keeps: there is the last answer, or a reason. Where there is nothing yet, tickets.
    fn kept(&self) -> Vec<Verb> {
        let is_kept = |verb: &Verb| {
            let [given, _, status] = files(*verb);
            [given, status].into_iter().any(|name| self.0.join(name).exists())
        };
        let kept: Vec<Verb> = Verb::ALL.into_iter().filter(is_kept).collect();
        if kept.is_empty() { vec![Verb::Use] } else { kept }
    }

    /// The end of the tickets in the folder. A keytab does not end.
    fn expires(&self, verb: Verb) -> Option<String> {
        let expires = self.summary(verb)?.get("expires")?.as_str()?.to_owned();
        self.has(verb).then_some(expires)
    }

    fn has(&self, verb: Verb) -> bool {
        let [given, ..] = files(verb);
        self.0.join(given).is_file()
    }

    /// Whether there is none, or none that is valid at this time.
    pub fn lacks(&self, verb: Verb, now: OffsetDateTime) -> bool {
        let end = || OffsetDateTime::parse(&self.expires(verb)?, &Rfc3339).ok();
        match verb {
            Verb::Use => end().is_none_or(|end| end <= now),
            Verb::Export => !self.has(verb),
        }
    }

    /// Whether everything is there that the agent keeps, and valid at this time.
    pub fn is_ready(&self, now: OffsetDateTime) -> bool {
        self.kept().into_iter().all(|verb| !self.lacks(verb, now))
    }

    /// The missing file, and why. Where the agent left no reason, it may be unable to write one.
    pub fn why_not_ready(&self, now: OffsetDateTime) -> (Verb, String) {
        let verb = self.kept().into_iter().find(|verb| self.lacks(*verb, now)).unwrap_or(Verb::Use);
        let expired = self.expires(verb).map(|text| format!("the last ones have expired at {text}: "));
        let reason = self.status(verb).unwrap_or_else(|| match self.replace(PROBE, &[b' '; 4096], 0o444) {
            Ok(()) => UNANSWERED.to_owned(),
            Err(error) => format!("cannot write into the folder: {error}"),
        });
        let _ = self.remove(PROBE);
        (verb, expired.unwrap_or_default() + &reason)
    }

    /// The summary that [`Folder::write`] and [`Folder::write_status`] left, as JSON.
    pub fn state(&self) -> Value {
        let mut state = json!({"tickets": self.summary(Verb::Use), "lastFailure": self.status(Verb::Use)});
        if let Some(state) = state.as_object_mut().filter(|_| self.kept().contains(&Verb::Export)) {
            state.insert("keytab".to_owned(), json!(self.summary(Verb::Export)));
            state.insert("lastKeytabFailure".to_owned(), json!(self.status(Verb::Export)));
        }
        state
    }

    fn summary(&self, verb: Verb) -> Option<Value> {
        let [_, summary, _] = files(verb);
        serde_json::from_str(&fs::read_to_string(self.0.join(summary)).ok()?).ok()
    }

    fn status(&self, verb: Verb) -> Option<String> {
        let [_, _, status] = files(verb);
        fs::read_to_string(self.0.join(status)).ok().map(|status| status.trim().to_owned())
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    fn replace(&self, name: &str, contents: &[u8], mode: u32) -> io::Result<()> {
        let new = format!(".{name}.new");
        // An agent that was killed may have left one.
        self.remove(&new)?;
        let path = self.0.join(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let written = file.write_all(contents).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
        let replaced = written.and_then(|()| fs::rename(path, self.0.join(name)));
        if replaced.is_err() {
            // In a full folder, it takes the room that the reason needs.
            let _ = self.remove(&new);
        }
        replaced
    }
}

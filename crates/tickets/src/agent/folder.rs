//! The files of the pod's memory volume: `krb5cc`, `krb5.conf`, `tickets.json` and `status`.
//!
//! Invariants: a file appears by a rename, so a reader sees a whole file or none; only the agent writes. Every user, or the group of the
//! pod, may read: the boundary is the volume, which other containers mount read-only. `status` is there while the last request has failed,
//! and holds no secret.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

use super::client::AskError;
use crate::api::Tickets;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// The credential cache, which `KRB5CCNAME` names.
const CCACHE: &str = "krb5cc";
/// What `KRB5_CONFIG` names.
const KRB5_CONF: &str = "krb5.conf";
/// The account, the services, and when the first ticket ends.
const SUMMARY: &str = "tickets.json";
/// Why the last request failed.
const STATUS: &str = "status";
/// Written by `agent ready` to find out whether the folder can be written, and removed at once.
const PROBE: &str = ".ready";

/// The readers of the files.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub enum Mode {
    /// Every user of the pod.
    #[default]
    #[value(name = "0444")]
    Everyone,
    /// The group that owns the folder, and root.
    #[value(name = "0440")]
    Group,
}

/// The folder of the files.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Replaces the files of the tickets.
    ///
    /// # Errors
    /// Where the tickets are not Base64, or the folder cannot be written.
    pub fn write(&self, tickets: &Tickets, mode: Mode) -> Result<(), AskError> {
        let ccache = BASE64_STANDARD.decode(&tickets.ccache);
        let ccache = ccache.map_err(|_| AskError::Unreadable("has no tickets in Base64"))?;
        // The configuration first: it fits the old tickets too.
        let written = self.replace(KRB5_CONF, tickets.krb5_conf.as_bytes(), mode);
        let Tickets { principal, services, expires, .. } = tickets;
        let summary = json!({"principal": principal, "services": services, "expires": expires}).to_string();
        let written = written.and_then(|()| self.replace(CCACHE, &ccache, mode));
        let written = written.and_then(|()| self.replace(SUMMARY, summary.as_bytes(), mode));
        let written = written.and_then(|()| self.remove(STATUS));
        written.map(drop).map_err(|error| AskError::Write(self.0.clone(), error))
    }

    /// Removes these files, and says whether there were tickets.
    pub fn remove_tickets(&self) -> bool {
        [CCACHE, KRB5_CONF, SUMMARY].map(|name| self.remove(name).unwrap_or(false))[0]
    }

    pub fn write_status(&self, reason: &str, mode: Mode) -> io::Result<()> {
        let status = format!("{reason}\n");
        self.replace(STATUS, status.as_bytes(), mode).or_else(|_| {
            // A full folder may have room for one of them.
            self.remove(STATUS)?;
            self.replace(STATUS, status.as_bytes(), mode)
        })
    }

    /// The end of the tickets that are there.
    fn expires(&self) -> Option<String> {
        let expires = self.summary()?.get("expires")?.as_str()?.to_owned();
        self.0.join(CCACHE).is_file().then_some(expires)
    }

    /// Whether there are tickets that are valid at this time.
    pub fn is_ready(&self, now: OffsetDateTime) -> bool {
        self.expires().and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok()).is_some_and(|end| end > now)
    }

    /// Why there are no valid tickets. Where the agent left no reason, it may be unable to write one.
    pub fn why_not_ready(&self) -> String {
        let expired = self.expires().map(|text| format!("the last ones have expired at {text}: ")).unwrap_or_default();
        let reason = self.status().unwrap_or_else(|| match self.replace(PROBE, &[b' '; 4096], Mode::Everyone) {
            Ok(()) => "the broker has not answered yet".to_owned(),
            Err(error) => format!("cannot write into the folder: {error}"),
        });
        let _ = self.remove(PROBE);
        format!("{expired}{reason}")
    }

    /// What [`Folder::write`] and [`Folder::write_status`] left, as JSON.
    pub fn state(&self) -> Value {
        json!({"tickets": self.summary(), "lastFailure": self.status()})
    }

    fn summary(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.0.join(SUMMARY)).ok()?).ok()
    }

    fn status(&self) -> Option<String> {
        fs::read_to_string(self.0.join(STATUS)).ok().map(|status| status.trim().to_owned())
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    fn replace(&self, name: &str, contents: &[u8], mode: Mode) -> io::Result<()> {
        let mode = match mode {
            Mode::Everyone => 0o444,
            Mode::Group => 0o440,
        };
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

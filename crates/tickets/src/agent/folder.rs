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

/// The credential cache, which `KRB5CCNAME` names.
const CCACHE: &str = "krb5cc";
/// What `KRB5_CONFIG` names.
const KRB5_CONF: &str = "krb5.conf";
/// The account, the services, and when the first ticket ends.
const SUMMARY: &str = "tickets.json";
/// Why the last request failed.
const STATUS: &str = "status";

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
        self.replace(STATUS, format!("{reason}\n").as_bytes(), mode)
    }

    /// Why there are no tickets; `None` if they are there.
    pub fn why_not_ready(&self) -> Option<String> {
        if self.0.join(CCACHE).is_file() {
            return None;
        }
        let status = fs::read_to_string(self.0.join(STATUS));
        Some(status.map_or_else(|_| "the broker has not answered yet".to_owned(), |status| status.trim().to_owned()))
    }

    /// What [`Folder::write`] and [`Folder::write_status`] left, as JSON.
    pub fn state(&self) -> Value {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).ok();
        let tickets: Option<Value> = read(SUMMARY).and_then(|summary| serde_json::from_str(&summary).ok());
        json!({"tickets": tickets, "lastFailure": read(STATUS).map(|status| status.trim().to_owned())})
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
        let path = self.0.join(new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(contents)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        fs::rename(path, self.0.join(name))
    }
}

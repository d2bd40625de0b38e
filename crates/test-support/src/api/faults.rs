//! What goes wrong, as a test scripts it.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::Verb;

#[derive(Clone, Debug)]
pub enum Fault {
    /// It is answered properly, but later.
    Delay(Duration),
    /// The answer is made now, and given when the gate opens.
    Hold(Gate),
    /// The API server refuses, with a `Status`.
    Refuse {
        code: u16,
        reason: &'static str,
        message: &'static str,
        /// Seconds.
        retry_after: Option<u32>,
    },
    /// Something else answers, with this text.
    Text(u16, &'static str),
    Object(Value),
    /// The connection breaks in the middle of the answer; a watch breaks after its first bytes.
    Cut,
    /// The same, after the request was carried out.
    CutAfter,
    /// There is never an answer; a watch is accepted and stays silent.
    Silence,
}

impl Fault {
    pub fn forbidden() -> Self {
        Self::Refuse { code: 403, reason: "Forbidden", message: "not allowed here", retry_after: None }
    }

    pub fn too_many_requests(retry_after: u32) -> Self {
        let message = "Too many requests, please try again later.";
        Self::Refuse { code: 429, reason: "TooManyRequests", message, retry_after: Some(retry_after) }
    }

    pub fn internal_error() -> Self {
        Self::Refuse { code: 500, reason: "InternalError", message: "etcdserver: no leader", retry_after: None }
    }

    pub fn gone() -> Self {
        Self::Refuse { code: 410, reason: "Expired", message: "too old resource version: 1 (2)", retry_after: None }
    }
}

/// Holds answers back until it is opened.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets through what waits and all that comes.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn passed(&self) {
        self.0.subscribe().wait_for(|open| *open).await.unwrap();
    }
}

#[derive(Default)]
pub(super) struct Script(Vec<Line>);

struct Line {
    verb: Verb,
    path: String,
    body: String,
    left: usize,
    fault: Fault,
}

impl Script {
    pub fn add(&mut self, verb: Verb, path: &str, body: &str, times: usize, fault: Fault) {
        self.0.push(Line { verb, path: path.to_owned(), body: body.to_owned(), left: times, fault });
    }

    /// The next fault for a request with this JSON as its body.
    pub fn next(&mut self, verb: Verb, path: &str, body: &Value) -> Option<Fault> {
        let has = |text: &str| text.is_empty() || body.to_string().contains(text);
        let matches = |line: &&mut Line| line.verb == verb && path.contains(&line.path) && has(&line.body);
        let line = self.0.iter_mut().filter(|line| line.left > 0).find(matches)?;
        line.left -= 1;
        Some(line.fault.clone())
    }
}

//! Kubernetes manifests from files: what `serve --standalone` and `kubectl gmsa` read instead of a cluster.
//!
//! Invariants: reading never fails as a whole. Each document is read on its own, and a fault in one is
//! reported with its line; the caller decides whether that is fatal. Each [`Document`] knows its [`Location`]; work and
//! memory are proportional to the input and bounded. Nothing here knows a kind of object: users pick theirs and skip the
//! others.

use std::sync::Arc;

use gmsa_core::{
    diagnostic::{Diagnostic, Diagnostics, Location, Position, rules},
    pointer,
};
use serde_json::Value;

mod encoding;
mod folder;
mod node;
mod text;
mod typed;
mod yaml;

pub use encoding::decode;
pub use folder::{Bounds, MAX_DEPTH, load};
pub use text::parse;
pub use typed::wrong_type;

use node::YamlNode;

#[derive(Clone, Debug, Default)]
pub struct Manifests {
    pub documents: Vec<Document>,
    pub problems: Diagnostics,
    /// Documents with neither `apiVersion` nor `kind`, which are not meant for Kubernetes.
    pub foreign: Diagnostics,
    /// How many bytes were read from files.
    pub bytes: usize,
    /// How many bytes of memory the objects take.
    pub held_bytes: usize,
}

impl Manifests {
    /// Adds the contents of another text.
    pub fn extend(&mut self, more: Self) {
        self.documents.extend(more.documents);
        self.problems.extend(more.problems);
        self.foreign.extend(more.foreign);
        self.bytes += more.bytes;
        self.held_bytes += more.held_bytes;
    }

    /// Makes foreign documents problems: for a file that was asked for by its name, or that holds Kubernetes objects too.
    #[must_use]
    pub fn strict(mut self) -> Self {
        let unreadable = |foreign: Diagnostic| Diagnostic {
            message: format!("{}, found neither", text::EXPECTED),
            rule: &rules::UNREADABLE,
            severity: rules::UNREADABLE.severity,
            ..foreign
        };
        let mut problems: Vec<Diagnostic> =
            self.problems.into_iter().chain(self.foreign.into_iter().map(unreadable)).collect();
        let place = |problem: &Diagnostic| problem.location.clone().map(|Location { file, position }| (file, position));
        problems.sort_by_cached_key(place);
        self.problems = Diagnostics::default();
        self.problems.extend(problems);
        self.foreign = Diagnostics::default();
        self
    }
}

/// The most problems that the message of an [`Error`] lists.
const MAX_SHOWN: usize = 20;

/// Why manifests cannot be used: everything that is wrong with them, on one line: it is logged.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot load the manifests: {}", listed(.problems))]
pub struct Error {
    problems: Diagnostics,
}

impl Error {
    /// Fails where there is a problem.
    ///
    /// # Errors
    /// All of `problems`, if any.
    pub fn unless_none(problems: Diagnostics) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

fn listed(problems: &Diagnostics) -> String {
    let problems = problems.as_slice();
    let shown: Vec<_> = problems.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    let more = problems.len() - shown.len();
    shown.join("; ") + &if more > 0 { format!("; and {more} more") } else { String::new() }
}

/// One Kubernetes object of a manifest; an item of a `List` is an object of its own.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file and the line of the document.
    pub location: Location,
    /// Such as `windows.k8s.io/v1`.
    pub api_version: String,
    pub kind: String,
    node: YamlNode,
}

impl Document {
    /// An object of a list that the API server gave, which does not say its kind; `name` stands for its file in messages.
    pub fn of_api(name: &str, api_version: &str, kind: &str, value: &Value) -> Self {
        let position = Some(Position { document: 1, line: 1 });
        let location = Location { file: Arc::from(name), position };
        Self { location, api_version: api_version.to_owned(), kind: kind.to_owned(), node: YamlNode::of_value(value) }
    }

    /// The group of its `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The whole object, a JSON object. It is parsed with each call: many objects as values would take tens of times their text.
    pub fn value(&self) -> Value {
        let mut value = self.node.value();
        if let Value::Object(object) = &mut value {
            // An item of a list need not say them.
            object.entry("apiVersion").or_insert_with(|| Value::from(self.api_version.as_str()));
            object.entry("kind").or_insert_with(|| Value::from(self.kind.as_str()));
        }
        value
    }

    /// The place of the value at a JSON Pointer (RFC 6901): its line, where the document is of a file.
    pub fn location_of(&self, pointer: &str) -> Location {
        let Location { file, position } = self.location.clone();
        Location { file, position: position.map(|position| Position { line: self.line_of(pointer), ..position }) }
    }

    /// The line of the file, counted from 1, on which the value at a JSON Pointer (RFC 6901) is; if there is no such
    /// value, the line of the closest one around it.
    pub fn line_of(&self, at: &str) -> u64 {
        self.node.line_of(&at.split('/').skip(1).map(pointer::unescape).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests;

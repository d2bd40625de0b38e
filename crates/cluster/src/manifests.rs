//! Kubernetes manifests from files: what `serve --standalone` and `kubectl gmsa check` read instead of a cluster.
//!
//! What always holds: reading is all or nothing, save where the caller asks for each document alone, and every broken file is
//! reported, with the line of the file on which it is broken; each [`Document`] knows its [`Origin`]; work and memory are bounded, whatever the folder holds. Nothing here
//! knows a kind of object: users pick theirs and skip the others.

use std::{fmt, sync::Arc};

use serde_json::Value;

mod field;
mod folder;
mod text;
mod yaml;

pub use field::Field;
pub use folder::{Bounds, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, load, load_each};
pub use text::{parse, parse_each};

/// Where a document stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, as the user would write it.
    pub file: Arc<str>,
    /// The number of the document in the file, counted from 1, empty ones included.
    pub document: usize,
    /// The line of the file on which the object starts, counted from 1.
    pub line: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}, line {}", self.file, self.document, self.line)
    }
}

/// What is wrong with a file, or with a document in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the user would write it.
    pub file: Arc<str>,
    /// The number of the document, counted from 1, and the line of the file; `None` where it is about the file.
    pub position: Option<(usize, u64)>,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some((document, line)) = self.position {
            write!(f, ", document {document}, line {line}")?;
        }
        // Parts of the file stand in the message: none of them may steer a terminal.
        f.write_str(": ")?;
        self.message.chars().try_for_each(|c| {
            if c.is_control() { write!(f, "{}", c.escape_default()) } else { fmt::Write::write_char(f, c) }
        })
    }
}

/// The most problems that the message of an [`Error`] spells out.
const MAX_SHOWN: usize = 20;

/// Why manifests could not be loaded: everything that is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    problems: Vec<Problem>,
}

impl Error {
    /// Everything that is wrong; of each step, in the order of the files.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Fails where there is a problem: the end of a load that collects all of them.
    ///
    /// # Errors
    /// All of `problems`, if any.
    pub fn unless_none(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Joins the problems of independent steps.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.problems.extend(other.problems);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot load the manifests")?;
        for problem in self.problems.iter().take(MAX_SHOWN) {
            write!(f, "\n  {problem}")?;
        }
        match self.problems.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for Error {}

/// What was read where each document stands for itself.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The Kubernetes objects.
    pub documents: Vec<Document>,
    /// What is wrong with the rest.
    pub problems: Vec<Problem>,
    /// What is no Kubernetes object and does not look like one: it has neither `apiVersion` nor `kind`.
    pub foreign: Vec<Problem>,
}

impl Found {
    /// Adds what was read elsewhere.
    pub fn extend(&mut self, more: Self) {
        self.documents.extend(more.documents);
        self.problems.extend(more.problems);
        self.foreign.extend(more.foreign);
    }

    /// Takes what is no Kubernetes object for a mistake, as it is in a file that was asked for by its name, or that holds others.
    /// To be called where all of it is from one file.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.problems.append(&mut self.foreign);
        self.problems.sort_by_key(|problem| problem.position);
        self
    }
}

/// One Kubernetes object of a manifest; an item of a `List` is an object of its own.
#[derive(Clone, Debug)]
pub struct Document {
    origin: Origin,
    api_version: String,
    kind: String,
    value: Value,
    lines: yaml::Lines,
}

impl Document {
    /// Where it stands.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its `apiVersion`, such as `windows.k8s.io/v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The group of its `apiVersion`; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Its `kind`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The whole object, a JSON object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The whole object as a [`Field`], from which its fields are read.
    #[must_use]
    pub fn root(&self) -> Field<'_> {
        Field::root(self)
    }

    /// The line of the file, counted from 1, on which the value at a JSON Pointer (RFC 6901) stands; where there is no such
    /// value, the line of the closest one around it.
    #[must_use]
    pub fn line_of(&self, pointer: &str) -> u64 {
        let mut lines = &self.lines;
        for token in pointer.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            let below = lines.field(&name).or_else(|| name.parse().ok().and_then(|index| lines.item(index)));
            match below {
                Some(below) => lines = below,
                None => break,
            }
        }
        lines.line
    }

    /// A problem with the object as a whole.
    #[must_use]
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        let Origin { file, document, line } = &self.origin;
        Problem { file: Arc::clone(file), position: Some((*document, *line)), message: message.into() }
    }
}

#[cfg(test)]
mod tests;

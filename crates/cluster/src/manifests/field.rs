//! A field of a document, read with messages that name its path and its line.

use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    pointer,
};
use serde_json::Value;

use super::{Document, node::describe};

/// A value in a document, and its place. A field that is missing reads as null, as for Kubernetes.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    document: &'a Document,
    /// Its place, as a JSON Pointer.
    pointer: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    /// The whole document, with its value.
    pub(crate) fn root(document: &'a Document, value: &'a Value) -> Self {
        Self { document, pointer: String::new(), value }
    }

    /// The value; null where the field is missing.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// A problem with this field, for which the API server would refuse the object.
    pub(crate) fn problem(&self, message: &str) -> Diagnostic {
        let found =
            Diagnostic { field: pointer::dotted(&self.pointer), ..Diagnostic::new(&rules::REFUSED_OBJECT, message) };
        found.at(self.document.location_of(&self.pointer))
    }

    fn expected(&self, what: &str) -> Diagnostic {
        self.problem(&format!("expected {what}, found {}", describe(&self.value.to_string())))
    }

    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Self {
        self.below(name, self.value.get(name).unwrap_or(&Value::Null))
    }

    /// A value in this one.
    fn below(&self, step: &str, value: &'a Value) -> Self {
        Self { document: self.document, pointer: format!("{}/{}", self.pointer, pointer::escape(step)), value }
    }

    /// The text of this field; empty where it is missing.
    pub(crate) fn text(&self) -> Result<&'a str, Diagnostic> {
        match self.value {
            Value::Null => Ok(""),
            Value::String(text) => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    /// The text of a field that must not be missing or empty.
    pub(crate) fn required_text(&self) -> Result<&'a str, Diagnostic> {
        match self.value {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.expected("a string that is not empty")),
        }
    }

    /// The items of this list; none where it is missing.
    pub(crate) fn items(&self) -> Result<Vec<Self>, Diagnostic> {
        let item = |(index, value): (usize, &'a Value)| self.below(&index.to_string(), value);
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => Ok(items.iter().enumerate().map(item).collect()),
            _ => Err(self.expected("a list")),
        }
    }

    /// The strings of this list; none where it is missing.
    pub(crate) fn texts(&self) -> Result<Vec<String>, Diagnostic> {
        let text = |item: Self| match item.value {
            Value::String(text) => Ok(text.clone()),
            _ => Err(item.expected("a string")),
        };
        self.items()?.into_iter().map(text).collect()
    }

    /// The fields of this mapping, by name; none where it is missing.
    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, Self)>, Diagnostic> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Object(entries) => Ok(entries.keys().map(|name| (name.as_str(), self.get(name))).collect()),
            _ => Err(self.expected("a mapping")),
        }
    }

    /// Refuses fields of this mapping that Kubernetes does not know: they are typing errors, and one in a role can grant
    /// more than was meant.
    pub(crate) fn expect_only(&self, known: &[&str]) -> Result<(), Diagnostic> {
        match self.entries()?.into_iter().find(|(name, _)| !known.contains(name)) {
            Some((_, field)) => Err(field.problem(&format!("unknown field, expected one of: {}", known.join(", ")))),
            None => Ok(()),
        }
    }
}

//! YAML text to values that remember their lines.
//!
//! What always holds: scalars mean what they mean to `kubectl` (`yes` is a boolean, `010` is 8), a key that stands twice is
//! an error, and anchors cannot blow a small text up.

use std::{
    fmt,
    num::NonZero,
    thread::{self, Scope, ScopedJoinHandle},
};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{
    DefaultMessageFormatter, DuplicateKeyPolicy, Error, MergeKeyPolicy, MessageFormatter, Options, Spanned,
    budget::BudgetBreach,
};

/// What one text may hold.
#[derive(Debug)]
pub(super) struct Limits {
    /// Mappings and lists in each other.
    pub levels: usize,
    /// Mappings, lists and scalars.
    pub nodes: usize,
    /// Parser events that aliases repeat.
    pub repeated: usize,
    /// Bytes of text by which aliases make all values longer than the text itself.
    pub repeated_bytes: usize,
    /// Documents, empty ones included.
    pub documents: usize,
}

/// More than any honest manifest holds.
pub(super) const LIMITS: Limits =
    Limits { levels: 64, nodes: 250_000, repeated: 5_000, repeated_bytes: 256 * 1024, documents: 10_000 };

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The value.
    pub value: Value,
    /// Its lines.
    pub lines: Lines,
}

/// The line on which a value stands, counted from 1, and those of everything in it.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// The line of the value, or of the key in front of it.
    pub line: u64,
    below: Below,
}

#[derive(Clone, Debug)]
enum Below {
    Nothing,
    Items(Box<[Lines]>),
    /// In the order in which they stand. A list rather than a map: there are many small ones.
    Fields(Box<[(Box<str>, Lines)]>),
}

impl Lines {
    /// The lines of a field of a mapping.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match &self.below {
            Below::Fields(fields) => fields.iter().find(|(field, _)| **field == *name).map(|(_, lines)| lines),
            _ => None,
        }
    }

    /// The lines of an item of a list.
    pub fn item(&self, index: usize) -> Option<&Self> {
        match &self.below {
            Below::Items(items) => items.get(index),
            _ => None,
        }
    }
}

impl Lines {
    /// Moves all lines down, for a text that stands further down in a file.
    fn shift(&mut self, by: u64) {
        self.line += by;
        match &mut self.below {
            Below::Nothing => {}
            Below::Items(items) => items.iter_mut().for_each(|lines| lines.shift(by)),
            Below::Fields(fields) => fields.iter_mut().for_each(|(_, lines)| lines.shift(by)),
        }
    }
}

/// The line of a fault, where it is known, and what is wrong there.
type Fault = (Option<u64>, String);

/// The stack of the thread that parses: the parser recurses, some 40 KiB for each level without optimisation, and its
/// callers may be small threads.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Reads the documents of a text; empty ones are skipped.
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Vec<Node>, Fault> {
    on_large_stack(|| documents(text, limits))?
}

/// The most threads that parse at once.
const MAX_THREADS: usize = 8;

/// The fewest texts that are worth a thread.
const TEXTS_OF_A_THREAD: usize = 64;

/// Reads texts, each with the number of lines in front of it in its file: a fault in one is no fault of the others.
///
/// # Errors
/// Nothing could be read at all. The faults of the texts stand in the result.
pub(super) fn read_each(texts: &[(u64, &str)], limits: &Limits) -> Result<Vec<Result<Vec<Node>, Fault>>, Fault> {
    let read = |(above, text): &(u64, &str)| {
        let mut nodes = documents(text, limits).map_err(|(line, message)| (line.map(|line| line + above), message))?;
        for node in &mut nodes {
            node.lines.shift(*above);
        }
        Ok(nodes)
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let share = texts.len().div_ceil(cores).max(TEXTS_OF_A_THREAD);
    thread::scope(|scope| {
        let read = |texts: &[(u64, &str)]| texts.iter().map(read).collect::<Vec<_>>();
        let parsers: Vec<_> = texts.chunks(share).map(|texts| spawn(scope, move || read(texts))).collect();
        let mut results = Vec::with_capacity(texts.len());
        for parser in parsers {
            results.extend(join(parser?)?);
        }
        Ok(results)
    })
}

fn documents(text: &str, limits: &Limits) -> Result<Vec<Node>, Fault> {
    serde_saphyr::from_multiple_with_options(text, options(text, limits)).map_err(|error| {
        let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
        let message = describe(&error, text, limits);
        let is_template = text.contains("{{") && text.contains("}}");
        let hint = if is_template { " (is this a template? It must be rendered first)" } else { "" };
        (line, message + hint)
    })
}

fn on_large_stack<T: Send>(parse: impl FnOnce() -> T + Send) -> Result<T, Fault> {
    thread::scope(|scope| join(spawn(scope, parse)?))
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    parse: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Fault> {
    let parser = thread::Builder::new().name("manifests".to_owned()).stack_size(STACK_BYTES);
    parser
        .spawn_scoped(scope, parse)
        .map_err(|error| (None, format!("cannot start a thread for the YAML parser: {error}")))
}

fn join<T>(parser: ScopedJoinHandle<'_, T>) -> Result<T, Fault> {
    parser.join().map_err(|_| (None, "the YAML parser failed".to_owned()))
}

fn options(text: &str, limits: &Limits) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.levels,
            max_documents: limits.documents,
            max_nodes: limits.nodes,
            max_total_scalar_bytes: text.len() + limits.repeated_bytes,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: limits.repeated },
        duplicate_keys: DuplicateKeyPolicy::Error,
        legacy_octal_numbers: true,
        merge_keys: MergeKeyPolicy::Merge,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn describe(error: &Error, text: &str, limits: &Limits) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key {key:?} stands twice"),
        Error::DuplicateMappingKey { key: None, .. } => "a key stands twice".to_owned(),
        Error::NullIntoString { .. } => "expected a key, found null".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("expected a finite number, found {value}"),
        Error::AliasReplayLimitExceeded { .. } => {
            format!("expected aliases to repeat at most {} values", limits.repeated)
        }
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => format!("expected at most {} levels of mappings and lists", limits.levels),
            BudgetBreach::Nodes { .. } => format!("expected at most {} values", limits.nodes),
            BudgetBreach::Documents { .. } => format!("expected at most {} documents", limits.documents),
            BudgetBreach::ScalarBytes { .. } => {
                format!("expected at most {} bytes of text in all values", text.len() + limits.repeated_bytes)
            }
            _ => "expected a smaller or simpler text".to_owned(),
        },
        Error::AliasError { error, .. } => describe(error, text, limits),
        _ => DefaultMessageFormatter.format_message(error).into_owned(),
    }
}

/// What a value is, for messages.
pub(super) fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

impl Node {
    /// The field `items` as nodes; none where it is missing.
    ///
    /// # Errors
    /// What it is, where it is not a list.
    pub fn into_items(self) -> Result<Vec<Self>, &'static str> {
        let Value::Object(mut object) = self.value else { return Ok(Vec::new()) };
        let values = match object.remove("items") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(other) => return Err(describe_kind(&other)),
        };
        let lines = match self.lines.below {
            Below::Fields(fields) => {
                fields.into_iter().find(|(field, _)| **field == *"items").map(|(_, items)| items.below)
            }
            _ => None,
        };
        let Some(Below::Items(lines)) = lines else { return Ok(Vec::new()) };
        Ok(values.into_iter().zip(lines).map(|(value, lines)| Self { value, lines }).collect())
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Spanned { value: Inner(value, below), referenced, .. } = Spanned::<Inner>::deserialize(input)?;
        Ok(Self { value, lines: Lines { line: referenced.line(), below } })
    }
}

struct Inner(Value, Below);

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(InnerVisitor)
    }
}

struct InnerVisitor;

impl<'de> Visitor<'de> for InnerVisitor {
    type Value = Inner;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON knows")
    }

    fn visit_unit<E>(self) -> Result<Inner, E> {
        Ok(Inner(Value::Null, Below::Nothing))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Inner, E> {
        Ok(Inner(Value::Bool(value), Below::Nothing))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Inner, E> {
        Ok(Inner(Value::from(value), Below::Nothing))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Inner, E> {
        Ok(Inner(Value::from(value), Below::Nothing))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Inner, E> {
        Ok(Inner(Value::from(value), Below::Nothing))
    }

    fn visit_str<E>(self, value: &str) -> Result<Inner, E> {
        Ok(Inner(Value::from(value), Below::Nothing))
    }

    fn visit_string<E>(self, value: String) -> Result<Inner, E> {
        Ok(Inner(Value::String(value), Below::Nothing))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Inner, A::Error> {
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        while let Some(node) = input.next_element::<Node>()? {
            values.push(node.value);
            lines.push(node.lines);
        }
        Ok(Inner(Value::Array(values), Below::Items(lines.into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Inner, A::Error> {
        let (mut values, mut lines) = (Map::new(), Vec::new());
        while let Some(Spanned { value: key, referenced, .. }) = input.next_key::<Spanned<String>>()? {
            // A value may begin on a line below its key: people look for the key.
            let Inner(value, below) = input.next_value()?;
            lines.push((Box::from(key.as_str()), Lines { line: referenced.line(), below }));
            values.insert(key, value);
        }
        Ok(Inner(Value::Object(values), Below::Fields(lines.into())))
    }
}

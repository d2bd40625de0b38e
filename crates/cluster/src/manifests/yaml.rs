//! Reads YAML into values, each with its line.
//!
//! Invariants: scalars are read as `kubectl` reads them (`yes` is a boolean, `010` is 8), of a duplicate key
//! the last value counts, and it is a fault, and anchors cannot expand a small text without bound.

use std::{
    fmt::{self, Write as _},
    io,
    thread::{self, ScopedJoinHandle},
};

use gmsa_core::quote::{MESSAGE, NAME, VALUE, quoted, shorten};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{
    DefaultMessageFormatter, DuplicateKeyPolicy, Error, MergeKeyPolicy, MessageFormatter, Options, Spanned,
    budget::BudgetBreach,
};

/// What one text may hold.
#[derive(Debug)]
pub(super) struct TextBounds {
    /// Nested mappings and lists.
    pub levels: usize,
    /// Mappings, lists and scalars.
    pub nodes: usize,
    /// Parser events that aliases repeat.
    pub repeated: usize,
    /// Bytes of text by which aliases make all values longer than the text itself.
    pub repeated_bytes: usize,
}

impl TextBounds {
    /// More than any real manifest holds. Only `nodes` varies: a list from a cluster can hold any number.
    pub const fn with_values(nodes: usize) -> Self {
        Self { levels: 64, nodes, repeated: 5_000, repeated_bytes: 256 * 1024 }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub lines: LineNumbers,
}

/// The line of a value, counted from 1, and those of everything in it.
#[derive(Clone, Debug)]
pub(super) struct LineNumbers {
    /// The line of the value, or of its key.
    pub line: u64,
    below: Below,
}

#[derive(Clone, Debug)]
enum Below {
    Nothing,
    Items(Box<[LineNumbers]>),
    /// In the order of the text. A list rather than a map: there are many small ones.
    Fields(Box<[(Box<str>, LineNumbers)]>),
}

impl LineNumbers {
    /// Of a text of one line.
    pub const ONE: Self = Self { line: 1, below: Below::Nothing };

    /// The lines of a field of a mapping.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match &self.below {
            Below::Fields(fields) => fields.iter().rfind(|(field, _)| **field == *name).map(|(_, lines)| lines),
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

    /// Moves all lines down, for a text that begins further down in a file.
    fn shift(&mut self, by: u64) {
        self.line += by;
        match &mut self.below {
            Below::Nothing => {}
            Below::Items(items) => items.iter_mut().for_each(|lines| lines.shift(by)),
            Below::Fields(fields) => fields.iter_mut().for_each(|(_, lines)| lines.shift(by)),
        }
    }
}

/// What was read of a text, and its first duplicate key.
type Parsed = (Vec<Node>, Option<SyntaxFault>);

#[derive(Debug)]
pub(super) struct SyntaxFault {
    pub line: Option<u64>,
    pub message: String,
}

/// Reads a text below as many lines of its file; nothing where it is empty. It recurses: call it by [`in_parallel`].
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str, above: u64, limits: &TextBounds) -> Result<Parsed, SyntaxFault> {
    let parse = |text: &str, of_duplicates| {
        let parse = |text: &str| serde_saphyr::from_multiple_with_options(text, options(text, limits, of_duplicates));
        parse(text).or_else(|error| json_in_ascii(text).map_or(Err(error), |text| parse(&text)))
    };
    let fault = |error: &Error| {
        let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
        let message = describe(error, text, limits);
        let is_template = text.contains("{{") && text.contains("}}");
        let hint = if is_template { " (is this a template? It must be rendered first)" } else { "" };
        SyntaxFault { line: line.map(|line| line + above), message: message + hint }
    };
    let (mut nodes, duplicate): (Vec<Node>, _) = match parse(text, DuplicateKeyPolicy::Error) {
        Ok(nodes) => (nodes, None),
        Err(error) if is_duplicate(&error) => {
            let nodes = parse(text, DuplicateKeyPolicy::LastWins).map_err(|error| fault(&error))?;
            (nodes, Some(fault(&error)))
        }
        Err(error) => return Err(fault(&error)),
    };
    if above > 0 {
        for node in &mut nodes {
            node.lines.shift(above);
        }
    }
    Ok((nodes, duplicate))
}

fn is_duplicate(error: &Error) -> bool {
    match error {
        Error::DuplicateMappingKey { .. } => true,
        Error::AliasError { error, .. } => is_duplicate(error),
        _ => false,
    }
}

/// A JSON text in ASCII; `None` where it is that already, or no JSON. JSON allows characters in strings that YAML does not.
fn json_in_ascii(text: &str) -> Option<String> {
    let bare = text.trim_start();
    let bare = bare.strip_prefix("---").unwrap_or(bare);
    if text.bytes().all(|b| b < 0x7f) || serde_json::from_str::<IgnoredAny>(bare).is_err() {
        return None;
    }
    let mut ascii = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if c < '\u{7f}' {
            ascii.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a String cannot fail.
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    Some(ascii)
}

/// The stack of a thread that parses: the parser recurses, some 40 KiB for each level without optimisation, and its
/// callers may be small threads.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Does work that parses, each item in a thread of its own with a stack for it.
pub(super) fn in_parallel<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<Result<T, String>> {
    thread::scope(|scope| {
        let work = &work;
        let spawn = |item| {
            let thread = thread::Builder::new().name("manifests".to_owned()).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || work(item))
        };
        let threads: Vec<_> = items.iter().map(spawn).collect();
        let join = |thread: io::Result<ScopedJoinHandle<'_, T>>| {
            let thread = thread.map_err(|error| format!("cannot start a thread for the YAML parser: {error}"))?;
            thread.join().map_err(|_| "the YAML parser failed".to_owned())
        };
        threads.into_iter().map(join).collect()
    })
}

fn options(text: &str, limits: &TextBounds, duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.levels,
            max_nodes: limits.nodes,
            // A mapping or a list is a node and two events: the nodes, which a message names, are what runs out.
            max_events: limits.nodes.saturating_mul(4),
            max_total_scalar_bytes: text.len() + limits.repeated_bytes,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: limits.repeated },
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        merge_keys: MergeKeyPolicy::Merge,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn describe(error: &Error, text: &str, limits: &TextBounds) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key {}", quoted(key, NAME)),
        Error::DuplicateMappingKey { key: None, .. } => "duplicate key".to_owned(),
        Error::NullIntoString { .. } => "expected a key, found null".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("expected a finite number, found {}", shorten(value, VALUE)),
        Error::AliasReplayLimitExceeded { .. } => {
            format!("expected aliases to repeat at most {} values", limits.repeated)
        }
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => format!("expected at most {} levels of mappings and lists", limits.levels),
            BudgetBreach::Nodes { .. } => format!("expected at most {} values in one document: split it", limits.nodes),
            BudgetBreach::ScalarBytes { .. } => {
                format!("expected at most {} bytes of text in all values", text.len() + limits.repeated_bytes)
            }
            _ => "expected a smaller or simpler text".to_owned(),
        },
        Error::AliasError { error, .. } => describe(error, text, limits),
        _ => shorten(&DefaultMessageFormatter.format_message(error), MESSAGE).into_owned(),
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
        let Spanned { value: NodeContents(value, below), referenced, .. } =
            Spanned::<NodeContents>::deserialize(input)?;
        Ok(Self { value, lines: LineNumbers { line: referenced.line(), below } })
    }
}

struct NodeContents(Value, Below);

impl<'de> Deserialize<'de> for NodeContents {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(InnerVisitor)
    }
}

struct InnerVisitor;

macro_rules! scalars {
    ($($visit:ident: $scalar:ty),*) => {
        $(fn $visit<E>(self, value: $scalar) -> Result<NodeContents, E> {
            Ok(NodeContents(Value::from(value), Below::Nothing))
        })*
    };
}

impl<'de> Visitor<'de> for InnerVisitor {
    type Value = NodeContents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON knows")
    }

    fn visit_unit<E>(self) -> Result<NodeContents, E> {
        Ok(NodeContents(Value::Null, Below::Nothing))
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String);

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        while let Some(node) = input.next_element::<Node>()? {
            values.push(node.value);
            lines.push(node.lines);
        }
        Ok(NodeContents(Value::Array(values), Below::Items(lines.into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let (mut values, mut lines) = (Map::new(), Vec::new());
        while let Some(Spanned { value: key, referenced, .. }) = input.next_key::<Spanned<String>>()? {
            // A value may begin on a line below its key: people look for the key.
            let NodeContents(value, below) = input.next_value()?;
            lines.push((Box::from(key.as_str()), LineNumbers { line: referenced.line(), below }));
            values.insert(key, value);
        }
        Ok(NodeContents(Value::Object(values), Below::Fields(lines.into())))
    }
}

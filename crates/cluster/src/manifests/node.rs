//! A value of a text, and the line of every value in it.
//!
//! Invariants: a node holds its value as JSON, in the order of the text, and four bytes for each line; no tree is kept, which takes some
//! forty times the memory. The last of two equal keys counts, with its line.

use std::{
    collections::{HashMap, HashSet},
    fmt, iter,
};

use gmsa_core::{
    json::structure,
    quote::{NAME, quoted},
};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};
use serde_saphyr::Spanned;

#[derive(Clone, Debug)]
pub(super) struct YamlNode {
    /// Counted from 1.
    pub line: u64,
    contents: NodeContents,
}

/// A value without its own line.
#[derive(Clone, Debug, Default)]
struct NodeContents {
    /// Without white space.
    json: String,
    /// The lines of the values in it, each before those of the values in that one.
    lines: Vec<u32>,
    /// The first fault that the parser does not see.
    fault: Option<Box<NodeFault>>,
}

#[derive(Clone, Debug)]
pub(super) struct NodeFault {
    pub line: u64,
    pub message: String,
}

impl YamlNode {
    /// A value that is in no file.
    pub fn of_value(value: &Value) -> Self {
        Self { line: 1, contents: NodeContents { json: value.to_string(), ..NodeContents::default() } }
    }

    /// How much memory its value and its lines take, in bytes.
    pub fn held(&self) -> usize {
        self.contents.json.capacity() + self.contents.lines.capacity() * size_of::<u32>()
    }

    /// How many values are in it.
    pub fn count(&self) -> usize {
        self.contents.lines.len()
    }

    /// Gives back the memory that it took to read.
    pub fn shrink(&mut self) {
        self.contents.json.shrink_to_fit();
        self.contents.lines.shrink_to_fit();
    }

    /// The first fault in it that the parser did not see.
    pub fn fault(&self) -> Option<&NodeFault> {
        self.contents.fault.as_deref()
    }

    /// How long its JSON is, in bytes.
    pub fn len(&self) -> usize {
        self.contents.json.len()
    }

    pub fn value(&self) -> Value {
        // It was written by this module.
        serde_json::from_str(&self.contents.json).unwrap_or_default()
    }

    /// Its fields, unparsed; `None` if it is not a mapping.
    pub fn fields(&self) -> Option<HashMap<String, &RawValue>> {
        serde_json::from_str(&self.contents.json).ok()
    }

    /// Its type, for messages.
    pub fn describe(&self) -> &'static str {
        describe(&self.contents.json)
    }

    /// The same in a file where its text is this many lines further down.
    #[must_use]
    pub fn below(mut self, lines: u64) -> Self {
        self.line += lines;
        let lines = short(lines);
        self.contents.lines.iter_mut().for_each(|line| *line = line.saturating_add(lines));
        self
    }

    /// The line of the value at this path, or of the closest value around it.
    pub fn line_of(&self, path: &[String]) -> u64 {
        let mut found = self.part();
        for step in path {
            let key = Value::from(step.as_str()).to_string();
            let values = found.values().enumerate();
            let named = values.filter(|(index, (own, _))| *own == key || own.is_empty() && step.parse() == Ok(*index));
            let Some((_, (_, value))) = named.last() else { break };
            found = value;
        }
        found.line
    }

    /// The items of its field `items`; none where it is missing. `is_room_for_one` is asked before each of them is kept.
    ///
    /// # Errors
    /// If it is not a list, or there is no room for its items.
    pub fn into_items(self, is_room_for_one: &mut dyn FnMut() -> bool) -> Result<Vec<Self>, ItemsFault> {
        let items = self.part().values().filter(|(key, _)| *key == "\"items\"").last();
        let Some((_, items)) = items else { return Ok(Vec::new()) };
        let kept = |(_, item): (&str, NodePart<'_>)| is_room_for_one().then(|| item.node()).ok_or(ItemsFault::TooMany);
        match describe(items.json) {
            LIST => items.values().map(kept).collect(),
            NOTHING => Ok(Vec::new()),
            found => Err(ItemsFault::NoList(found)),
        }
    }

    fn part(&self) -> NodePart<'_> {
        let NodeContents { json, lines, .. } = &self.contents;
        NodePart { line: self.line, json, lines }
    }
}

/// A value in a node, or all of it, with the lines of the values in it.
#[derive(Clone, Copy)]
struct NodePart<'n> {
    line: u64,
    json: &'n str,
    lines: &'n [u32],
}

impl<'n> NodePart<'n> {
    fn node(self) -> YamlNode {
        let Self { line, json, lines } = self;
        YamlNode { line, contents: NodeContents { json: json.to_owned(), lines: lines.to_vec(), fault: None } }
    }

    /// The items of a list, or the values of a mapping, each with its key as JSON.
    fn values(self) -> impl Iterator<Item = (&'n str, Self)> {
        let is_mapping = self.json.starts_with('{');
        let (mut rest, mut lines) = (self.json.get(1..).unwrap_or_default(), self.lines);
        iter::from_fn(move || {
            let (line, others) = lines.split_first()?;
            let mut key = "";
            if is_mapping {
                (key, rest) = rest.split_at_checked(first_value(rest).0)?;
                rest = rest.strip_prefix(':')?;
            }
            let (length, count) = first_value(rest);
            let (json, after) = rest.split_at_checked(length)?;
            let below;
            (below, lines) = others.split_at_checked(count)?;
            rest = after.strip_prefix(',').unwrap_or_default();
            Some((key, Self { line: u64::from(*line), json, lines: below }))
        })
    }
}

/// The length of the value that a text of JSON begins with, and how many values are in that one.
fn first_value(json: &str) -> (usize, usize) {
    let (mut depth, mut count, mut before) = (0_usize, 0, 0);
    for (place, byte) in structure(json) {
        match byte {
            b',' | b':' | b']' | b'}' if depth == 0 => return (place, count),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                count += usize::from(!matches!(before, b'[' | b'{'));
            }
            b',' => count += 1,
            _ => {}
        }
        before = byte;
    }
    (json.len(), count)
}

/// A line in four bytes. No text that is read has more.
fn short(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Why the items of a list cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum ItemsFault {
    /// They are of another type.
    NoList(&'static str),
    TooMany,
}

/// The most keys of one mapping. The parser keeps each.
const MAX_KEYS: usize = 100_000;

/// A value that is missing.
const NOTHING: &str = "nothing";
const LIST: &str = "a list";

/// The type of a JSON text, for messages.
pub(super) fn describe(json: &str) -> &'static str {
    match json.as_bytes() {
        [b'n', ..] => NOTHING,
        [b't' | b'f', ..] => "a boolean",
        b"\"\"" => "an empty string",
        [b'"', ..] => "a string",
        [b'[', ..] => LIST,
        [b'{', ..] => "a mapping",
        _ => "a number",
    }
}

impl NodeContents {
    fn scalar(value: impl Into<Value>) -> Self {
        Self { json: value.into().to_string(), ..Self::default() }
    }

    /// Begins a mapping or a list.
    fn open(bracket: char) -> Self {
        Self { json: bracket.into(), ..Self::default() }
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.json.push_str(&Value::from(key).to_string());
        self.json.push(':');
    }

    /// Adds an item, or the value of the key before it.
    fn add(&mut self, line: u64, value: Self) {
        self.comma();
        self.lines.push(short(line));
        self.lines.extend(value.lines);
        self.json.push_str(&value.json);
        self.fault = self.fault.take().or(value.fault);
    }

    fn comma(&mut self) {
        if !self.json.ends_with(['[', '{', ':']) {
            self.json.push(',');
        }
    }

    fn close(mut self, bracket: char) -> Self {
        self.json.push(bracket);
        self
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Spanned { value: contents, referenced, .. } = Spanned::<NodeContents>::deserialize(input)?;
        Ok(Self { line: referenced.line(), contents })
    }
}

impl<'de> Deserialize<'de> for NodeContents {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ContentsVisitor)
    }
}

struct ContentsVisitor;

macro_rules! scalars {
    ($($visit:ident: $scalar:ty),*) => {
        $(fn $visit<E>(self, value: $scalar) -> Result<NodeContents, E> {
            Ok(NodeContents::scalar(value))
        })*
    };
}

impl<'de> Visitor<'de> for ContentsVisitor {
    type Value = NodeContents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON knows")
    }

    fn visit_unit<E>(self) -> Result<NodeContents, E> {
        Ok(NodeContents::scalar(Value::Null))
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let mut contents = NodeContents::open('[');
        while let Some(YamlNode { line, contents: item }) = input.next_element()? {
            contents.add(line, item);
        }
        Ok(contents.close(']'))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let mut contents = NodeContents::open('{');
        let (mut keys, mut numbers) = (0, HashSet::new());
        while let Some(Spanned { value: key, referenced, .. }) = input.next_key::<Spanned<String>>()? {
            keys += 1;
            if keys > MAX_KEYS {
                return Err(A::Error::custom(format!("expected at most {MAX_KEYS} keys in one mapping")));
            }
            // For the parser the number 1 and the text "1" differ; in JSON they are one key.
            if key.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first))
                && !numbers.insert(key.clone())
            {
                let message = format!("duplicate key {}, as a number and as a text", quoted(&key, NAME));
                contents.fault.get_or_insert_with(|| Box::new(NodeFault { line: referenced.line(), message }));
            }
            // A value may begin on a line below its key: people look for the key.
            contents.key(&key);
            contents.add(referenced.line(), input.next_value()?);
        }
        Ok(contents.close('}'))
    }
}

//! A value of a text, and the line of every value in it.
//!
//! Invariants: a node holds its value as JSON, in the order of the text, and four bytes for each line; no tree is kept, which takes some
//! forty times the memory. The last of two equal keys counts, with its line; a number and a text are equal, as in JSON.

use std::{collections::HashMap, fmt};

use gmsa_core::json::structure;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};
use serde_saphyr::Spanned;

#[derive(Clone, Debug)]
pub(super) struct YamlNode {
    /// Counted from 1.
    pub line: u64,
    pub contents: NodeContents,
}

/// A value without its own line.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeContents {
    /// Without white space.
    pub json: String,
    /// The lines of the values in it, each before those of the values in that one.
    pub lines: Vec<u32>,
}

impl YamlNode {
    /// A value that is in no file.
    pub fn of_value(value: &Value) -> Self {
        Self { line: 1, contents: NodeContents { json: value.to_string(), ..NodeContents::default() } }
    }

    /// Gives back the memory that only reading took, and says how many bytes the value and its lines keep.
    pub fn shrink(&mut self) -> usize {
        let NodeContents { json, lines } = &mut self.contents;
        json.shrink_to_fit();
        lines.shrink_to_fit();
        json.capacity() + lines.capacity() * size_of::<u32>()
    }

    pub fn value(&self) -> Value {
        // It was written by this module.
        serde_json::from_str(&self.contents.json).unwrap_or_default()
    }

    /// Its fields, unparsed; `None` if it is not a mapping.
    pub fn fields(&self) -> Option<HashMap<String, &RawValue>> {
        serde_json::from_str(&self.contents.json).ok()
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
        let NodeContents { json, lines, .. } = &self.contents;
        let mut found = json.as_str();
        for step in path {
            let Some(value) = below(found, step) else { break };
            found = value;
        }
        let last = begun(before(found, json)).checked_sub(1).and_then(|last| lines.get(last));
        last.map_or(self.line, |line| u64::from(*line))
    }

    /// The items of its field `items`; none where it is missing. `is_room_for_one` is asked before each of them is kept.
    ///
    /// # Errors
    /// If it is not a list, or there is no room for its items.
    pub fn into_items(self, is_room_for_one: &mut dyn FnMut() -> bool) -> Result<Vec<Self>, ItemsFault> {
        let NodeContents { json, lines, .. } = &self.contents;
        let Some(list) = below(json, "items").filter(|list| describe(list) != NOTHING) else { return Ok(Vec::new()) };
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(list) else {
            return Err(ItemsFault::NoList(describe(list)));
        };
        let mut lines = lines.get(begun(before(list, json))..).unwrap_or_default().iter();
        let mut item = |json: &RawValue| {
            let json = json.get().to_owned();
            let line = lines.next().map_or(self.line, |line| u64::from(*line));
            let lines = lines.by_ref().take(begun(&json)).copied().collect();
            Self { line, contents: NodeContents { json, lines } }
        };
        items.into_iter().map(|json| is_room_for_one().then(|| item(json)).ok_or(ItemsFault::TooMany)).collect()
    }
}

/// The value with this key, or at this position, in a text of JSON.
fn below<'j>(json: &'j str, step: &str) -> Option<&'j str> {
    let value = if json.starts_with('[') {
        serde_json::from_str::<Vec<&RawValue>>(json).ok()?.into_iter().nth(step.parse().ok()?)
    } else {
        serde_json::from_str::<HashMap<String, &RawValue>>(json).ok()?.remove(step)
    };
    value.map(RawValue::get)
}

/// The text before a part of it.
fn before<'j>(part: &str, whole: &'j str) -> &'j str {
    whole.get(..(part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)).unwrap_or_default()
}

/// How many values begin in a text of JSON, or behind it, beside the one that it begins with.
fn begun(json: &str) -> usize {
    let begins = |(at, byte): &(usize, u8)| match byte {
        b',' => true,
        b'[' | b'{' => !json.get(at + 1..).is_some_and(|rest| rest.starts_with([']', '}'])),
        _ => false,
    };
    structure(json).filter(begins).count()
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

/// The type of a JSON text, for messages.
pub(super) fn describe(json: &str) -> &'static str {
    match json.as_bytes() {
        [b'n', ..] => NOTHING,
        [b't' | b'f', ..] => "a boolean",
        b"\"\"" => "an empty string",
        [b'"', ..] => "a string",
        [b'[', ..] => "a list",
        [b'{', ..] => "a mapping",
        _ => "a number",
    }
}

impl NodeContents {
    fn scalar(value: impl Into<Value>) -> Self {
        Self { json: value.into().to_string(), ..Self::default() }
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
    }

    fn comma(&mut self) {
        if !self.json.ends_with(['[', '{', ':']) {
            self.json.push(',');
        }
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
        let mut contents = NodeContents { json: "[".to_owned(), ..NodeContents::default() };
        while let Some(YamlNode { line, contents: item }) = input.next_element()? {
            contents.add(line, item);
        }
        contents.json.push(']');
        Ok(contents)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let mut contents = NodeContents { json: "{".to_owned(), ..NodeContents::default() };
        let mut keys = 0;
        while let Some(Spanned { value: key, referenced, .. }) = input.next_key::<Spanned<String>>()? {
            keys += 1;
            if keys > MAX_KEYS {
                return Err(A::Error::custom(format!("expected at most {MAX_KEYS} keys in one mapping")));
            }
            // A value may begin on a line below its key: people look for the key.
            contents.key(&key);
            contents.add(referenced.line(), input.next_value()?);
        }
        contents.json.push('}');
        Ok(contents)
    }
}

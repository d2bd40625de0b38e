//! A value of a text, and the line of every value in it, in about as many bytes as the text has.
//!
//! Invariants: a node holds its value as JSON, in the order of the text, and the lines as differences, mostly a byte each; no tree is
//! kept, which takes some forty times the memory. The last of two equal keys counts, with its line.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use gmsa_core::quote::{NAME, quoted};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
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
    json: Vec<u8>,
    /// The lines of the values in it, each behind the values that hold it: the first as it is, the others as differences to the one before.
    lines: Vec<u8>,
    /// The last of these lines.
    last: u64,
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
        Self { line: 1, contents: NodeContents { json: value.to_string().into_bytes(), ..NodeContents::default() } }
    }

    /// How much memory its value and its lines take, in bytes.
    pub fn held(&self) -> usize {
        self.contents.json.capacity() + self.contents.lines.capacity()
    }

    /// How many values are in it: each has a line, and the last byte of a line has no high bit.
    pub fn count(&self) -> usize {
        self.contents.lines.iter().filter(|byte| **byte & 0x80 == 0).count()
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
        serde_json::from_slice(&self.contents.json).unwrap_or_default()
    }

    /// Its fields, unparsed; `None` if it is not a mapping.
    pub fn fields(&self) -> Option<HashMap<String, &RawValue>> {
        serde_json::from_slice(&self.contents.json).ok()
    }

    /// Its type, for messages.
    pub fn describe(&self) -> &'static str {
        describe(&self.contents.json)
    }

    /// The same in a file where its text is this many lines further down.
    #[must_use]
    pub fn below(mut self, lines: u64) -> Self {
        self.line += lines;
        if lines > 0 {
            self.contents.lines = rebased(&self.contents.lines, lines, 0);
            self.contents.last += lines;
        }
        self
    }

    /// The line of the value at this path, or of the closest value around it.
    pub fn line_of(&self, path: &[String]) -> u64 {
        let Self { line, contents: NodeContents { json, lines, .. } } = self;
        if lines.is_empty() {
            return *line;
        }
        let find = Find { lines: &mut Lines { bytes: lines, last: 0 }, line: *line, path: Some(path) };
        serde_json::Deserializer::from_slice(json).deserialize_any(find).unwrap_or(*line)
    }

    /// The items of its field `items`; none where it is missing. `is_room_for_one` is asked before each of them is kept.
    ///
    /// # Errors
    /// If it is not a list, or there is no room for its items.
    pub fn into_items(self, is_room_for_one: &mut dyn FnMut() -> bool) -> Result<Vec<Self>, ItemsFault> {
        let (NodeContents { json, lines, .. }, mut items) = (self.contents, Ok(Vec::new()));
        let mut lines = Lines { bytes: &lines, last: 0 };
        let Ok(Entries(entries)) = serde_json::from_slice(&json) else { return items };
        for (key, value) in entries {
            lines.next();
            if key != "items" {
                Find::skip(value, &mut lines);
                continue;
            }
            items = match describe(value.get().as_bytes()) {
                LIST => {
                    let list = ItemsVisitor { lines: &mut lines, is_room_for_one: &mut *is_room_for_one };
                    let read = serde_json::Deserializer::from_str(value.get()).deserialize_seq(list);
                    Ok(read.map_err(|_| ItemsFault::TooMany)?)
                }
                NOTHING => Ok(Vec::new()),
                found => {
                    Find::skip(value, &mut lines);
                    Err(ItemsFault::NoList(found))
                }
            };
        }
        items
    }
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
pub(super) fn describe(json: &[u8]) -> &'static str {
    match json {
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
        Self { json: value.into().to_string().into_bytes(), ..Self::default() }
    }

    /// Begins a mapping or a list.
    fn open(bracket: u8) -> Self {
        Self { json: vec![bracket], ..Self::default() }
    }

    fn key(&mut self, key: &str) {
        self.comma();
        self.json.extend(Value::from(key).to_string().into_bytes());
        self.json.push(b':');
    }

    /// Adds an item, or the value of the key before it.
    fn add(&mut self, line: u64, value: Self) {
        self.comma();
        write(&mut self.lines, difference(self.last, line));
        self.lines.extend(rebased(&value.lines, 0, line));
        self.last = if value.lines.is_empty() { line } else { value.last };
        self.json.extend(value.json);
        self.fault = self.fault.take().or(value.fault);
    }

    fn comma(&mut self) {
        if !matches!(self.json.last(), None | Some(b'[' | b'{' | b':')) {
            self.json.push(b',');
        }
    }

    fn close(mut self, bracket: u8) -> Self {
        self.json.push(bracket);
        self
    }
}

/// From one line to another.
fn difference(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from).cast_signed()
}

/// Writes a number in as few bytes as it needs (LEB128, zigzag).
fn write(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while rest > 0x7f {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// Lines whose first counts from one line, counted from another.
fn rebased(lines: &[u8], from: u64, to: u64) -> Vec<u8> {
    let mut rest = Lines { bytes: lines, last: from };
    let mut out = Vec::with_capacity(lines.len() + 4);
    if let Some(first) = rest.next() {
        write(&mut out, difference(to, first));
        out.extend_from_slice(rest.bytes);
    }
    out
}

/// Reads lines.
struct Lines<'l> {
    bytes: &'l [u8],
    last: u64,
}

impl Lines<'_> {
    /// A value whose line is the next, with those in it.
    fn node(&mut self, value: &RawValue) -> YamlNode {
        let line = self.next().unwrap_or_default();
        let rest = self.bytes;
        Find::skip(value, self);
        let (below, _) = rest.split_at_checked(rest.len() - self.bytes.len()).unwrap_or_default();
        let contents =
            NodeContents { json: value.get().into(), lines: rebased(below, line, 0), last: self.last, fault: None };
        YamlNode { line, contents }
    }
}

impl Iterator for Lines<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let length = self.bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
        let (number, rest) = self.bytes.split_at(length);
        let read = number.iter().rev().fold(0_u64, |read, byte| read << 7 | u64::from(byte & 0x7f));
        let number = (read >> 1).cast_signed() ^ -(read & 1).cast_signed();
        self.bytes = rest;
        self.last = self.last.wrapping_add_signed(number);
        Some(self.last)
    }
}

/// Looks for the line of a value in the one at hand; without a path, it reads past the lines of all values in it.
struct Find<'f, 'l> {
    lines: &'f mut Lines<'l>,
    line: u64,
    path: Option<&'f [String]>,
}

impl Find<'_, '_> {
    /// Reads past the lines of the values in this one.
    fn skip(json: &RawValue, lines: &mut Lines<'_>) {
        // It was written by this module.
        let _ = serde_json::Deserializer::from_str(json.get()).deserialize_any(Find { lines, line: 0, path: None });
    }
}

/// The same for a value in another one, whose line comes first.
struct FindBelow<'f, 'l>(Find<'f, 'l>);

impl<'l> Find<'_, 'l> {
    fn below(&mut self, is_step: impl Fn(&str) -> bool) -> (FindBelow<'_, 'l>, bool) {
        let path = match self.path {
            Some([step, rest @ ..]) if is_step(step) => Some(rest),
            _ => None,
        };
        (FindBelow(Find { lines: &mut *self.lines, line: self.line, path }), path.is_some())
    }
}

impl<'de> DeserializeSeed<'de> for FindBelow<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<u64, D::Error> {
        let Self(Find { lines, line, path }) = self;
        let line = lines.next().unwrap_or(line);
        input.deserialize_any(Find { lines, line, path })
    }
}

macro_rules! lines_of_scalars {
    ($($visit:ident: $scalar:ty),*) => {
        $(fn $visit<E>(self, _: $scalar) -> Result<u64, E> {
            Ok(self.line)
        })*
    };
}

impl<'de> Visitor<'de> for Find<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(self.line)
    }

    lines_of_scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut input: A) -> Result<u64, A::Error> {
        let mut found = self.line;
        for index in 0_usize.. {
            let (below, is_on_path) = self.below(|step| step.parse() == Ok(index));
            match input.next_element_seed(below)? {
                Some(line) if is_on_path => found = line,
                Some(_) => {}
                None => break,
            }
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut input: A) -> Result<u64, A::Error> {
        let mut found = self.line;
        while let Some(key) = input.next_key::<String>()? {
            let (below, is_on_path) = self.below(|step| step == key);
            let line = input.next_value_seed(below)?;
            if is_on_path {
                found = line;
            }
        }
        Ok(found)
    }
}

/// The fields of a mapping in their order, unread.
struct Entries<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = input.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        input.deserialize_map(EntriesVisitor)
    }
}

/// Reads the items of a list, each with its lines, as long as there is room for one more.
struct ItemsVisitor<'i, 'l> {
    lines: &'i mut Lines<'l>,
    is_room_for_one: &'i mut dyn FnMut() -> bool,
}

impl<'de> Visitor<'de> for ItemsVisitor<'_, '_> {
    type Value = Vec<YamlNode>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LIST)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Vec<YamlNode>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = input.next_element()? {
            if !(self.is_room_for_one)() {
                return Err(A::Error::custom("there is no room"));
            }
            items.push(self.lines.node(item));
        }
        Ok(items)
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
        let mut contents = NodeContents::open(b'[');
        while let Some(YamlNode { line, contents: item }) = input.next_element()? {
            contents.add(line, item);
        }
        Ok(contents.close(b']'))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<NodeContents, A::Error> {
        let mut contents = NodeContents::open(b'{');
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
        Ok(contents.close(b'}'))
    }
}

//! How JSON from outside is read: into bounded values, by types that take what they need and skip the rest.
//!
//! Invariants: no error quotes a value, which can be as large as the body and can be a password; a text is cut where
//! it is longer than any valid one; a list is read item by item, so its reader decides what is kept.

use std::{fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// The most bytes of a text that are kept. No name or user name that Kubernetes accepts is longer.
pub(crate) const MAX_TEXT: usize = 2048;

/// Reads JSON null like an absent field.
pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(input).map(Option::unwrap_or_default)
}

/// Reads a string by `read`, which says whether it is one of those expected.
pub(crate) fn string<'de, D: Deserializer<'de>, T>(
    input: D,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    input.deserialize_any(StringVisitor { expected, read })
}

struct StringVisitor<F> {
    expected: &'static str,
    read: F,
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for StringVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).ok_or_else(|| E::custom(format_args!("expected {}", self.expected)))
    }
}

/// Cuts a text that is longer than `most` bytes. The result is still longer than `most`, so that a cut text is never
/// taken for a whole one.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (most + 1..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// A text of any length, cut to little more than `MOST` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<const MOST: usize = MAX_TEXT>(Box<str>);

impl<const MOST: usize> Deref for Text<MOST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MOST: usize> AsRef<str> for Text<MOST> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0.into()
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Text<MOST> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "a string", |text| Some(Self(cut(text, MOST).into())))
    }
}

/// A list of texts. Each takes two bytes more than its own: its JSON, as an item of a list or as a key, takes no
/// less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    joined: String,
    lengths: Vec<u16>,
}

impl Texts {
    /// Adds a text, unless it is longer than any that is kept.
    pub fn push(&mut self, text: &str) {
        if let Ok(length) = u16::try_from(text.len()) {
            self.joined.push_str(text);
            self.lengths.push(length);
        }
    }

    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut rest = self.joined.as_str();
        self.lengths.iter().map(move |length| {
            let (text, others) = rest.split_at_checked(usize::from(*length)).unwrap_or((rest, ""));
            rest = others;
            text
        })
    }

    /// Gives back the room for more.
    pub fn shrink(&mut self) {
        self.joined.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }
}

/// A JSON object. (A bare struct is also read from an array, its items taken as the fields in their order.)
#[derive(Clone, Debug, Default)]
pub(crate) struct Object<T>(pub T);

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<T, E> {
        Err(E::custom("expected an object"))
    }
}

/// The value at a place of a JSON object (a JSON Pointer without escapes). Null is like an absent value, and of equal keys the last counts.
///
/// # Errors
/// Where the text is not JSON, or what is above the place is not an object.
pub(crate) fn at<'j>(json: &'j str, place: &str) -> Result<Option<&'j RawValue>, serde_json::Error> {
    let (mut above, mut found) = (json, None);
    for step in place.split('/').skip(1) {
        let named = |found: &mut Option<&'j RawValue>, key: Text, value: &'j RawValue| {
            if *key == *step {
                *found = Some(value);
            }
        };
        found = fold_entries(&mut serde_json::Deserializer::from_str(above), None, named)?;
        found = found.filter(|value| value.get() != "null");
        let Some(value) = found else { break };
        above = value.get();
    }
    Ok(found)
}

/// Reads a list item by item; null is an empty list.
pub(crate) fn fold<'de, D: Deserializer<'de>, T: Deserialize<'de>, A>(
    input: D,
    start: A,
    add: impl FnMut(&mut A, T),
) -> Result<A, D::Error> {
    input.deserialize_any(ListVisitor { so_far: start, add, items: PhantomData })
}

struct ListVisitor<A, F, T> {
    so_far: A,
    add: F,
    items: PhantomData<T>,
}

impl<'de, A, F: FnMut(&mut A, T), T: Deserialize<'de>> Visitor<'de> for ListVisitor<A, F, T> {
    type Value = A;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_unit<E>(self) -> Result<A, E> {
        Ok(self.so_far)
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut items: S) -> Result<A, S::Error> {
        while let Some(item) = items.next_element()? {
            (self.add)(&mut self.so_far, item);
        }
        Ok(self.so_far)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<A, E> {
        Err(E::custom("expected a sequence"))
    }
}

/// Reads an object entry by entry.
pub(crate) fn fold_entries<'de, D: Deserializer<'de>, T: Deserialize<'de>, A>(
    input: D,
    start: A,
    add: impl FnMut(&mut A, Text, T),
) -> Result<A, D::Error> {
    input.deserialize_any(EntriesVisitor { so_far: start, add, values: PhantomData })
}

struct EntriesVisitor<A, F, T> {
    so_far: A,
    add: F,
    values: PhantomData<T>,
}

impl<'de, A, F: FnMut(&mut A, Text, T), T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<A, F, T> {
    type Value = A;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut entries: M) -> Result<A, M::Error> {
        while let Some((key, value)) = entries.next_entry()? {
            (self.add)(&mut self.so_far, key, value);
        }
        Ok(self.so_far)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<A, E> {
        Err(E::custom("expected an object"))
    }
}

/// `true` or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(FlagVisitor).map(Self)
    }
}

struct FlagVisitor;

impl Visitor<'_> for FlagVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<bool, E> {
        Err(E::custom("expected a boolean"))
    }
}

/// The bytes of a JSON text that are in no string, each with its place. The quotes are among them.
pub fn structure(json: &str) -> impl Iterator<Item = (usize, u8)> {
    let (mut is_text, mut is_escaped) = (false, false);
    json.bytes().enumerate().filter(move |(_, byte)| {
        let was_text = is_text;
        is_text ^= *byte == b'"' && !is_escaped;
        is_escaped = is_text && *byte == b'\\' && !is_escaped;
        !(was_text && is_text)
    })
}

/// Says what is wrong with `part` of `whole` and where in `whole`, without the value that serde quotes.
pub(crate) fn explain(error: &serde_json::Error, part: &str, whole: &str) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = text.strip_suffix(&place).unwrap_or(&text);
    let quotes_a_value =
        ["invalid type", "invalid value", "unknown variant"].iter().any(|start| problem.starts_with(start));
    let expected = problem.rfind(", expected ").filter(|_| quotes_a_value).and_then(|at| problem.get(at + 2..));
    // A part is a slice of the whole.
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let before = whole.get(..start).unwrap_or_default();
    let line = error.line() + before.bytes().filter(|byte| *byte == b'\n').count();
    let on_the_same_line = if error.line() == 1 { before.rsplit('\n').next().unwrap_or_default().len() } else { 0 };
    format!("{} at line {line} column {}", expected.unwrap_or(problem), error.column() + on_the_same_line)
}

#[cfg(test)]
mod tests;

//! The words of the table in a text, found in one pass over its normal form.
//!
//! Lines may break anywhere, so spaces do not count. `*` matches at most [`MAX_BETWEEN`] bytes, `?` one word.
//!
//! Invariant: time is linear in the text, and additional memory is constant: the first [`MAX_SPANS`] places of each pattern are kept.

use std::{collections::BTreeMap, sync::LazyLock};

use aho_corasick::{Anchored, automaton::Automaton as _, nfa::contiguous::NFA};

use super::{
    ENTRIES, GOOD, NOTHING, Rule, WINDOWS,
    Words::{self, General, Message, Refusal, Start},
    normal::{ENDS, OPENS, normal},
    words,
};

/// Longer than the names and addresses in one message, shorter than several messages.
const MAX_BETWEEN: usize = 600;

const MAX_SPANS: usize = 16;

/// The meaning of the words of a pattern.
#[derive(Clone, Copy)]
pub(super) enum Says {
    OfRule(&'static Rule, Words),
    /// The remedy of the rule at this index applies.
    OfRemedy(&'static Rule, usize),
    /// The status of this name.
    OfWindows(&'static str),
    NoFault(&'static str),
    /// No meaning: words inside it do not count.
    Nothing,
}

pub(super) struct Pattern {
    pub says: Says,
    pub words: &'static str,
}

/// A place of the words of a pattern in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// In bytes, without spaces.
    pub start: usize,
    pub end: usize,
    /// The number of quotations around it.
    pub depth: usize,
}

/// The words found in a text.
#[derive(Default)]
pub struct Reading {
    spans: BTreeMap<usize, Vec<Span>>,
    length: usize,
}

impl Reading {
    /// Reads a pasted text.
    pub fn of(text: &str) -> Self {
        Self::of_normal(&normal(text))
    }

    pub(super) fn of_normal(normal: &str) -> Self {
        let mut reading = Self::default();
        let Some(automaton) = &TABLE.automaton else { return reading };
        let Ok(mut state) = automaton.start_state(Anchored::No) else { return reading };
        let mut reader = Reader { normal, reached: vec![None; TABLE.parts.len()], read: 0, depth: 0 };
        for (at, byte) in normal.bytes().enumerate() {
            let byte = match char::from(byte) {
                ' ' => continue,
                OPENS => {
                    reader.depth += 1;
                    b'"'
                }
                ENDS => {
                    reader.depth = reader.depth.saturating_sub(1);
                    b'"'
                }
                _ => byte,
            };
            reader.read += 1;
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) {
                for index in 0..automaton.match_len(state) {
                    let part = automaton.match_pattern(state, index).as_usize();
                    if let Some((pattern, span)) = reader.reach(part, at + 1) {
                        let spans = reading.spans.entry(pattern).or_default();
                        spans.extend((spans.len() < MAX_SPANS).then_some(span));
                    }
                }
            }
        }
        reading.length = reader.read;
        reading
    }

    /// The text that was read, without the parts in which nothing counts: numbers in them are none.
    pub(super) fn without_nothing(&self, normal: &str) -> String {
        let found = self.found().filter(|(pattern, _)| matches!(pattern.says, Says::Nothing));
        let mut spans: Vec<Span> = found.flat_map(|(_, spans)| spans.iter().copied()).collect();
        spans.sort_by_key(|span| span.start);
        let (mut spans, mut read, mut end) = (spans.into_iter().peekable(), 0, 0);
        let kept = normal.chars().filter(|c| {
            read += match *c {
                ' ' => 0,
                c => c.len_utf8(),
            };
            while let Some(span) = spans.next_if(|span| span.start < read) {
                end = end.max(span.end);
            }
            read > end
        });
        kept.collect()
    }

    /// Appends the words of another text.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (pattern, spans) in other.spans {
            let moved = spans.into_iter().map(|span| Span {
                start: span.start + self.length,
                end: span.end + self.length,
                ..span
            });
            let known = self.spans.entry(pattern).or_default();
            known.extend(moved);
        }
        self.length += other.length;
        self
    }

    /// Each pattern found in the text with its places, in the order of the table.
    pub(super) fn found(&self) -> impl Iterator<Item = (&'static Pattern, &[Span])> {
        self.spans.iter().filter_map(|(pattern, spans)| Some((TABLE.patterns.get(*pattern)?, spans.as_slice())))
    }

    /// The reading without a pattern, by its index.
    #[cfg(test)]
    pub(super) fn without(mut self, pattern: usize) -> Self {
        self.spans.remove(&pattern);
        self
    }

    /// The indices of the patterns in the text.
    #[cfg(test)]
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        self.spans.keys().copied()
    }

    /// Whether the text has these words of a rule. A remedy and a status of Windows may have the same.
    pub(super) fn has(&self, words: &str) -> bool {
        self.found().any(|(pattern, _)| pattern.words == words && matches!(pattern.says, Says::OfRule(..)))
    }

    /// The index of the first remedy of a rule whose words are in the text.
    pub fn remedy(&self, rule: &Rule) -> Option<usize> {
        self.found()
            .filter_map(|(pattern, _)| match pattern.says {
                Says::OfRemedy(of, index) if of == rule => Some(index),
                _ => None,
            })
            .min()
    }
}

/// The state of the patterns at one place in the text.
struct Reader<'t> {
    normal: &'t str,
    /// The last place of each part.
    reached: Vec<Option<Reached>>,
    /// The number of bytes, without spaces.
    read: usize,
    depth: usize,
}

#[derive(Clone, Copy)]
struct Reached {
    /// The start of the first part of the pattern.
    start: usize,
    end: usize,
    /// The end, in bytes of the text.
    after: usize,
    depth: usize,
}

impl Reader<'_> {
    /// Records a part that ends here. Returns the pattern if this is its last part.
    fn reach(&mut self, index: usize, after: usize) -> Option<(usize, Span)> {
        let part = TABLE.parts.get(index)?;
        let (start, depth) = (self.read.checked_sub(part.length)?, self.depth);
        let begun = match part.gap {
            None if part.starts_word && self.is_within_word(part.length, after) => return None,
            None => Reached { start, end: self.read, after, depth },
            Some(gap) => {
                let before = (*self.reached.get(index + 1)?)?;
                let between = start.checked_sub(before.end).filter(|between| *between <= MAX_BETWEEN)?;
                let is_word = || {
                    let word = self.normal.as_bytes().get(before.after..).unwrap_or_default();
                    let word = word.strip_prefix(b" ").unwrap_or(word);
                    between > 0 && word.get(..between).is_some_and(|word| !word.contains(&b' '))
                };
                // The name in a refusal cannot quote the rest of it.
                let is_refusal = matches!(part.says, Says::OfRule(_, Refusal(_)));
                if gap == Gap::Word && !is_word() || is_refusal && depth != before.depth {
                    return None;
                }
                Reached { end: self.read, after, ..before }
            }
        };
        let Reached { start, end, depth, .. } = begun;
        *self.reached.get_mut(index)? = Some(begun);
        if part.left == 0 && matches!(part.says, Says::Nothing) {
            // The next end belongs to another sentence.
            self.reached.iter_mut().skip(index).take(part.count).for_each(|reached| *reached = None);
        }
        (part.left == 0).then_some((part.pattern, Span { start, end, depth }))
    }

    /// Whether the part of this length that ends here begins within a word: `deadlineexceeded` within `contextDeadlineExceeded`.
    fn is_within_word(&self, length: usize, after: usize) -> bool {
        let read = self.normal.as_bytes().get(..after).unwrap_or_default();
        let mut letters = read.iter().enumerate().rev().filter(|(_, byte)| **byte != b' ').skip(length - 1);
        let before = letters.next().and_then(|(start, _)| read.get(start.checked_sub(1)?)).copied();
        // MIT Kerberos writes `KRB5KDC_ERR_...`.
        before.is_some_and(|byte| (byte.is_ascii_alphanumeric() && byte != b'5') || byte == b'_')
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Gap {
    Any,
    Word,
}

struct PatternPart {
    pattern: usize,
    /// The gap before it; `None` for the first part of a pattern.
    gap: Option<Gap>,
    /// The number of parts behind it.
    left: usize,
    says: Says,
    /// The number of parts of its pattern.
    count: usize,
    /// Whether it begins with a letter or a digit.
    starts_word: bool,
    /// In bytes, without spaces.
    length: usize,
}

struct Table {
    patterns: Vec<Pattern>,
    /// The last part of a pattern first, so that one place never matches two parts.
    parts: Vec<PatternPart>,
    /// `None` if the parts were too many for it, which a test rules out.
    automaton: Option<NFA>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let patterns: Vec<Pattern> = patterns().collect();
    let (mut parts, mut texts) = (Vec::new(), Vec::new());
    for (pattern, Pattern { says, words }) in patterns.iter().enumerate() {
        let of_pattern = split(words);
        let count = of_pattern.len();
        for (index, (gap, text)) in of_pattern.into_iter().enumerate().rev() {
            let left = count - index - 1;
            // The words of a remedy are within those of its rule, and may be a part of a name.
            let is_remedy = matches!(says, Says::OfRemedy(..));
            let starts_word = !is_remedy && text.starts_with(|c: char| c.is_ascii_alphanumeric());
            let length = text.len();
            parts.push(PatternPart { pattern, says: *says, gap, left, count, starts_word, length });
            texts.push(text);
        }
    }
    Table { patterns, parts, automaton: NFA::new(texts).ok() }
});

/// All words of the table, in its order.
pub(super) fn patterns() -> impl Iterator<Item = Pattern> {
    let of_rules = words().filter_map(|(rule, words)| {
        let text = of_text(words)?;
        Some(Pattern { says: Says::OfRule(rule, words), words: text })
    });
    let of_remedies = ENTRIES.iter().flat_map(|entry| {
        let remedies = entry.remedies.iter().enumerate();
        remedies.flat_map(move |(index, (words, _))| {
            words.iter().map(move |words| Pattern { says: Says::OfRemedy(entry.rule, index), words })
        })
    });
    let of_windows = WINDOWS.iter().map(|(name, words)| Pattern { says: Says::OfWindows(name), words });
    let no_faults = GOOD.iter().flat_map(|(words, what)| words.iter().map(move |words| (*words, *what)));
    let no_faults =
        no_faults.filter_map(|(words, what)| Some(Pattern { says: Says::NoFault(what), words: of_text(words)? }));
    let surroundings = NOTHING.iter().map(|words| Pattern { says: Says::Nothing, words });
    of_rules.chain(of_remedies).chain(of_windows).chain(no_faults).chain(surroundings)
}

/// The text of words; `None` for events, exit codes and statuses.
fn of_text(words: Words) -> Option<&'static str> {
    match words {
        Refusal(text) | Start(text) | Message(text) | General(text) => Some(text),
        _ => None,
    }
}

/// The parts of a pattern, each with the gap before it, as the automaton reads them.
fn split(words: &str) -> Vec<(Option<Gap>, String)> {
    let mut parts = Vec::new();
    let mut gap = None;
    for part in words.split_inclusive(['*', '?']) {
        let text = normal(part.trim_end_matches(['*', '?'])).replace([OPENS, ENDS], "\"").replace(' ', "");
        if !text.is_empty() {
            parts.push((gap, text));
        }
        gap = if part.ends_with('?') { Some(Gap::Word) } else { Some(Gap::Any) };
    }
    if let Some((first, _)) = parts.first_mut() {
        *first = None;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        assert!(TABLE.automaton.is_some());
        for Pattern { words, .. } in &TABLE.patterns {
            let has = words.replace('*', " between ").replace('?', "word");
            assert!(Reading::of(&has).found().any(|(pattern, _)| pattern.words == *words), "{words}");
        }
    }
}

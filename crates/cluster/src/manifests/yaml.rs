//! Reads YAML into nodes.
//!
//! Invariants: scalars are read as `kubectl` reads them (`yes` is a boolean, `010` is 8), of a duplicate key
//! the last value counts, and it is a fault, and anchors cannot expand a small text without bound.

use std::{
    io,
    sync::{Mutex, PoisonError},
    thread::{self, ScopedJoinHandle},
};

use gmsa_core::quote::{MESSAGE, NAME, VALUE, json_without, quoted, shorten};
use serde::de::IgnoredAny;
use serde_saphyr::{
    DefaultMessageFormatter, DuplicateKeyPolicy, Error, MergeKeyPolicy, MessageFormatter, Options, budget::BudgetBreach,
};

use super::node::YamlNode;

/// The limits of one text.
#[derive(Debug)]
pub(super) struct TextBounds {
    /// Nested mappings and lists.
    pub levels: usize,
    /// Mappings, lists and scalars.
    pub nodes: usize,
    /// Parser events that aliases repeat.
    pub repeated: usize,
    /// Bytes that aliases add beyond the text itself.
    pub repeated_bytes: usize,
    /// Parser events with an anchor. The parser keeps each.
    pub anchored: usize,
    /// Keys `<<`.
    pub merges: usize,
}

impl TextBounds {
    /// More than any real manifest holds. Only `nodes` varies: a list from a cluster can hold any number.
    pub const fn with_values(nodes: usize) -> Self {
        Self { levels: 64, nodes, repeated: 5_000, repeated_bytes: 256 * 1024, anchored: 20_000, merges: 0 }
    }

    /// The limits of a text with `<<`, equal keys, or keys of any length: the parser keeps the values of such a mapping or key, each in a kilobyte.
    fn of_kept(&self) -> Self {
        Self { nodes: self.nodes.min(100_000), merges: 1_000, ..*self }
    }
}

/// Held while a text is read whose values the parser keeps: one takes up to a hundred megabytes.
static KEEPING: Mutex<()> = Mutex::new(());

/// The documents of a text, and its first duplicate key.
type Parsed = (Vec<YamlNode>, Option<SyntaxFault>);

#[derive(Debug)]
pub(super) struct SyntaxFault {
    pub line: u64,
    pub message: String,
}

/// Reads a text below as many lines of its file; nothing where it is empty. It recurses: call it by [`in_parallel`].
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str, above: u64, limits: &TextBounds) -> Result<Parsed, SyntaxFault> {
    let fault = |error: &Error, limits: &TextBounds| {
        // A fault of the document as a whole has no line of its own.
        let line = error.location().map(|location| location.line()).filter(|line| *line > 0).unwrap_or(1);
        let message = describe(error, text, limits);
        let is_template = text.contains("{{") && text.contains("}}");
        let hint = if is_template { " (is this a template? It must be rendered first)" } else { "" };
        let indent = indent(text, line, above).unwrap_or_default();
        SyntaxFault { line: line + above, message: message + hint + &indent }
    };
    let kept = limits.of_kept();
    let mut limits = if may_have_long_keys(text) { &kept } else { limits };
    let (mut duplicate, mut of_duplicates) = (None, DuplicateKeyPolicy::Error);
    loop {
        let parse = |text: &str| serde_saphyr::from_multiple_with_options(text, options(text, limits, of_duplicates));
        let alone = (limits.merges > 0).then(|| KEEPING.lock().unwrap_or_else(PoisonError::into_inner));
        let parsed = parse(text).or_else(|error| json_in_ascii(text).map_or(Err(error), |text| parse(&text)));
        drop(alone);
        let error = match parsed {
            Ok(nodes) => return Ok((nodes.into_iter().map(|node: YamlNode| node.below(above)).collect(), duplicate)),
            Err(error) => error,
        };
        match behind_alias(&error) {
            Error::Budget { breach: BudgetBreach::MergeKeys { .. }, .. } if limits.merges == 0 => {}
            Error::DuplicateMappingKey { .. } if duplicate.is_none() => {
                duplicate = Some(fault(&error, limits));
                of_duplicates = DuplicateKeyPolicy::LastWins;
            }
            _ => return Err(fault(&error, limits)),
        }
        limits = &kept;
    }
}

/// The fault of an indent near the line at which parsing fails, `above` lines below the top of its file.
fn indent(text: &str, line: u64, above: u64) -> Option<String> {
    // The parser finds the fault at its line, or a little after it.
    const NEAR: usize = 4;
    let is_text = |(_, line): &(u64, &str)| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let end = usize::try_from(line).ok()? + 1;
    let lines = || (1..).zip(text.lines()).take(end).filter(is_text);
    let far = lines().count().saturating_sub(NEAR);
    let near: Vec<(u64, &str)> = lines().skip(far).collect();
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    if let Some((number, _)) = near.iter().find(|(_, line)| line.trim_start_matches(' ').starts_with('\t')) {
        return Some(format!(" (line {} is indented with a tab, and YAML takes spaces)", number + above));
    }
    near.windows(2).find_map(|pair| {
        let [(_, key), (number, item)] = pair else { return None };
        let is_item = |line: &str| line.trim_start().starts_with("- ");
        let is_of_list = lines().take(far).any(|(_, line)| is_item(line) && depth(line) == depth(item));
        let is_wrong = is_item(item) && key.trim_end().ends_with(':') && depth(item) < depth(key) && !is_of_list;
        is_wrong.then(|| {
            let (item, key) = (shorten(item.trim(), NAME), key.trim().trim_end_matches(':'));
            let number = number + above;
            format!(" (line {number} is indented less than its key: indent `{item}` at least as far as `{key}`)")
        })
    })
}

/// Whether a key may be of any length and type: it follows a `?`, or is a flow mapping or list. Prose seldom looks like it.
fn may_have_long_keys(text: &str) -> bool {
    let blanks = [' ', '\t'];
    let begins_node = |before: &str| {
        let before = before.trim_end_matches(blanks);
        before.is_empty() || before.ends_with(['\n', '\r', '-', '{', '[', ','])
    };
    // For each open one, whether it may be a key.
    let mut open = Vec::new();
    text.match_indices(['?', '[', '{', ']', '}']).any(|(at, sign)| {
        let (before, rest) = text.split_at(at);
        let after = rest.get(1..).unwrap_or_default();
        match sign {
            "?" => (after.is_empty() || after.starts_with([' ', '\t', '\r', '\n'])) && begins_node(before),
            "[" | "{" => {
                open.push(begins_node(before));
                false
            }
            _ => open.pop() == Some(true) && after.trim_start_matches(blanks).starts_with(':'),
        }
    })
}

/// The fault itself, behind the alias that repeats it.
fn behind_alias(error: &Error) -> &Error {
    if let Error::AliasError { error, .. } = error { behind_alias(error) } else { error }
}

/// A JSON text in ASCII; `None` where it is that already, or no JSON. JSON allows characters in strings that YAML does not.
fn json_in_ascii(text: &str) -> Option<String> {
    let bare = text.trim_start();
    let bare = bare.strip_prefix("---").unwrap_or(bare);
    if text.bytes().all(|b| b < 0x7f) || serde_json::from_str::<IgnoredAny>(bare).is_err() {
        return None;
    }
    Some(json_without(text, |c, _| c >= '\u{7f}'))
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
            max_recorded_anchor_events: limits.anchored,
            max_merge_keys: limits.merges,
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
    match behind_alias(error) {
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
            BudgetBreach::RecordedAnchorEvents { .. } => {
                format!("expected anchors of at most {} values", limits.anchored)
            }
            BudgetBreach::MergeKeys { .. } => format!("expected at most {} keys `<<` in one document", limits.merges),
            _ => "expected a smaller or simpler text".to_owned(),
        },
        error => shorten(&DefaultMessageFormatter.format_message(error), MESSAGE).into_owned(),
    }
}

//! Splits a text into documents, numbers them, opens lists, and requires an `apiVersion` and a `kind`.

use std::{
    collections::HashMap,
    iter,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use gmsa_core::{
    diagnostic::{
        Diagnostic, Location, Position,
        rules::{self, Rule},
    },
    quote::shell,
};
use serde_json::value::RawValue;

use super::{
    Bounds, Document, Manifests,
    node::{ItemsFault, YamlNode, describe},
    yaml::{self, SyntaxFault},
};

/// The largest object in bytes of JSON: kube-apiserver takes no larger request.
const MAX_OBJECT: usize = 3 * 1024 * 1024;

/// The most mappings, lists and scalars in an object, which is parsed as a whole where it is used. Real objects have far
/// fewer.
pub(super) const MAX_VALUES: usize = 250_000;

/// How many bytes of memory an object takes beside its text: its document, its strings, and its part or its item while it is read.
const OBJECT: usize = 512;

/// The deepest nesting of lists in lists.
const MAX_LISTS: usize = 4;

/// Reads the documents of a text, YAML or JSON, within these bounds on each document, and on the memory of all objects; `name` is its name in
/// messages.
///
/// Empty documents are skipped. A `List`, and any `…List` with `items`, gives its items. As with `kubectl`, an object must
/// say its `apiVersion` and `kind`.
pub fn parse(name: &str, text: &str, bounds: &Bounds) -> Manifests {
    parse_all(&[(name, text)], bounds).pop().unwrap_or_default()
}

/// The most threads that parse at once.
const MAX_THREADS: usize = 8;

/// The fewest documents that are worth a thread.
const DOCUMENTS_OF_A_THREAD: usize = 64;

/// Reads texts, each with its name, like [`parse`], with as many threads as there are cores; gives what was found in each.
pub(super) fn parse_all(texts: &[(&str, &str)], bounds: &Bounds) -> Vec<Manifests> {
    let room = bounds.room();
    let files = texts.iter().enumerate();
    let mut parts =
        files.flat_map(|(file, (name, text))| split(file, &Arc::from(*name), text)).filter(Piece::has_content);
    let (parts, first_left_out): (Vec<Piece<'_>>, _) = (parts.by_ref().take(room / OBJECT).collect(), parts.next());
    let held = AtomicUsize::new(0);
    let is_room_for = |bytes: usize| {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= room);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    };
    let reader = |part| DocumentReader { part, found: Manifests::default(), bounds, is_room_for: &is_room_for };
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let share = parts.len().div_ceil(cores).max(DOCUMENTS_OF_A_THREAD);
    let chunks: Vec<&[Piece<'_>]> = parts.chunks(share).collect();
    let read = yaml::in_parallel(&chunks, |chunk| chunk.iter().map(|part| reader(part).read()).collect::<Vec<_>>());
    let mut all: Vec<Manifests> = texts.iter().map(|_| Manifests::default()).collect();
    let mut add = |part: &Piece<'_>, found| {
        if let Some(all) = all.get_mut(part.file) {
            all.extend(found);
        }
    };
    for (read, chunk) in read.into_iter().zip(&chunks) {
        match (read, chunk.first()) {
            (Ok(read), _) => chunk.iter().zip(read).for_each(|(part, found)| add(part, found)),
            (Err(message), Some(first)) => add(first, reader(first).failed(None, message)),
            (Err(_), None) => {}
        }
    }
    if let Some(part) = &first_left_out {
        add(part, reader(part).failed(Some(part.above + 1), bounds.no_room()));
    }
    all
}

#[derive(Debug)]
struct Piece<'t> {
    /// The index of the text among all that are read.
    file: usize,
    name: Arc<str>,
    /// The number of the document, counted from 1.
    document: usize,
    /// The number of lines above it.
    above: u64,
    text: &'t str,
}

impl Piece<'_> {
    /// Whether it has more than comments. A document without content needs 4 bytes, so keeping it would take ten times its text.
    fn has_content(&self) -> bool {
        self.text.trim_start_matches(BYTE_ORDER_MARK).lines().any(|line| {
            let content = after_mark(line, "---").unwrap_or(line).trim_matches([' ', '\t', '\r']);
            !content.is_empty() && !content.starts_with('#')
        })
    }
}

/// Cuts a text where its documents start.
fn split<'t>(file: usize, name: &Arc<str>, text: &'t str) -> impl Iterator<Item = Piece<'t>> + use<'t> {
    let (mut starts, name) = ((1..).zip(starts(text)).peekable(), Arc::clone(name));
    iter::from_fn(move || {
        let (document, (start, line)) = starts.next()?;
        let part = match starts.peek() {
            Some((_, (end, _))) => without_directives(text.get(start..*end)?),
            None => text.get(start..)?,
        };
        Some(Piece { file, name: Arc::clone(&name), document, above: line - 1, text: part })
    })
}

/// Cuts away what follows a `...`: at most comments, and directives for the next document, which a manifest does not
/// need.
fn without_directives(part: &str) -> &str {
    match part.find("\n...") {
        Some(end) if matches!(part.as_bytes().get(end + 4), None | Some(b'\n' | b'\r' | b' ' | b'\t')) => {
            part.get(..=end).unwrap_or(part)
        }
        _ => part,
    }
}

/// The problem of a file that is not text; `before` is what could be decoded.
pub(super) fn not_text(name: &str, before: &str) -> Diagnostic {
    let line = before.split('\n').count() as u64;
    let position = Some(Position { document: starts(before).count(), line });
    Diagnostic::new(&rules::UNREADABLE, "expected text in UTF-8 or UTF-16")
        .at(Location { file: Arc::from(name), position })
}

/// Reads one document.
struct DocumentReader<'a> {
    part: &'a Piece<'a>,
    found: Manifests,
    bounds: &'a Bounds,
    /// Whether this many more bytes of memory are within the bounds, and are counted.
    is_room_for: &'a (dyn Fn(usize) -> bool + Sync),
}

impl DocumentReader<'_> {
    fn read(mut self) -> Manifests {
        match yaml::read(self.part.text, self.part.above, &yaml::TextBounds::with_values(self.bounds.values)) {
            Ok((nodes, duplicate)) => {
                if let Some(SyntaxFault { line, message }) = duplicate {
                    let found = Diagnostic::new(&rules::DUPLICATE_KEY, format!("{message}: the last one counts"));
                    self.found.problems.push(found.at(self.location(Some(line))));
                }
                for mut node in nodes {
                    if self.hold(OBJECT + node.shrink()) {
                        self.object(node, None, 0);
                    } else {
                        self.problem(Some(node.line), self.bounds.no_room());
                    }
                }
            }
            Err(SyntaxFault { line, message }) => self.problem(Some(line), message),
        }
        self.found
    }

    /// The document could not be read.
    fn failed(mut self, line: Option<u64>, message: String) -> Manifests {
        self.problem(line, message);
        self.found
    }

    /// Counts bytes of memory; false where they are too many, which counts none.
    fn hold(&mut self, bytes: usize) -> bool {
        let is_held = (self.is_room_for)(bytes);
        self.found.held_bytes += if is_held { bytes } else { 0 };
        is_held
    }

    fn location(&self, line: Option<u64>) -> Location {
        let position = line.map(|line| Position { document: self.part.document, line });
        Location { file: Arc::clone(&self.part.name), position }
    }

    /// Takes an object; `of` is the `apiVersion` and `kind` of the items of the list that holds it.
    fn object(&mut self, mut node: YamlNode, of: Option<&(String, String)>, lists: usize) {
        const FOREIGN: &Rule = &rules::NOT_KUBERNETES;
        let line = Some(node.line);
        let Some(fields) = node.fields() else {
            return self.problem(line, format!("{EXPECTED}, found {}", describe(&node.contents.json)));
        };
        // The values of a chart, what PowerShell printed.
        if lists == 0 && !fields.contains_key("apiVersion") && !fields.contains_key("kind") {
            let message = "skipped: it has neither apiVersion nor kind, so it is not a Kubernetes object";
            let fix = foreign_fix(&fields, &self.part.name);
            let found = Diagnostic { fix, ..Diagnostic::new(FOREIGN, message) };
            return self.found.foreign.push(found.at(self.location(line)));
        }
        let (api_version, kind) = match type_of(&fields, of) {
            Ok(found) => found,
            Err(message) => return self.problem(line, message),
        };
        let has_items = fields.contains_key("items");
        let Some(item_kind) = kind.strip_suffix("List").filter(|_| kind == "List" || has_items) else {
            if node.contents.json.len() > MAX_OBJECT {
                return self.problem(
                    line,
                    format!("expected an object of at most {MAX_OBJECT} bytes, as the API server does"),
                );
            }
            if node.contents.lines.len() > MAX_VALUES {
                return self.problem(line, format!("expected at most {MAX_VALUES} values in one object"));
            }
            let location = self.location(line);
            self.found.documents.push(Document { location, api_version, kind, node });
            return;
        };
        if lists == MAX_LISTS {
            return self.problem(line, format!("expected at most {MAX_LISTS} nested lists"));
        }
        let of = (!item_kind.is_empty()).then(|| (api_version, item_kind.to_owned()));
        // The text of the items is held twice while they are taken out of the list.
        let is_room = self.hold(node.shrink());
        let items = if is_room { node.into_items(&mut || self.hold(OBJECT)) } else { Err(ItemsFault::TooMany) };
        match items {
            Ok(items) => items.into_iter().for_each(|item| self.object(item, of.as_ref(), lists + 1)),
            Err(ItemsFault::NoList(found)) => self.problem(line, format!("items: expected a list, found {found}")),
            Err(ItemsFault::TooMany) => self.problem(line, self.bounds.no_room()),
        }
    }

    fn problem(&mut self, line: Option<u64>, message: String) {
        self.found.problems.push(Diagnostic::new(&rules::UNREADABLE, message).at(self.location(line)));
    }
}

pub(super) const EXPECTED: &str = "expected a Kubernetes object with `apiVersion` and `kind`";

/// The fields of an object, unread.
type RawFields<'n> = HashMap<String, &'n RawValue>;

/// The fix for a known document that is not a manifest.
fn foreign_fix(fields: &RawFields<'_>, file: &str) -> Option<String> {
    let has = |keys: &[&str]| keys.iter().all(|key| fields.contains_key(*key));
    let is_of_docker = |key: &&str| fields.get(*key).is_some_and(|value| value.get() != "null");
    let is_of_values = |value: &&RawValue| value.get().contains("\"gmsaCredentialSpecName\"");
    let fix = if ["CmsPlugins", "DomainJoinConfig", "ActiveDirectoryConfig"].iter().any(is_of_docker) {
        // Standard input has no name that can be given again.
        let file = Some(file).filter(|file| !file.starts_with('<')).and_then(shell::posix);
        let file = file.unwrap_or_else(|| "FILE".to_owned());
        return Some(format!(
            "this is a credential spec for Docker: `kubectl gmsa credspec new --from-docker {file}` makes one for Kubernetes of it"
        ));
    } else if has(&["Name", "Namespace", "Containers"]) || has(&["Name", "Namespace", "Pod Template"]) {
        "this is for people: give what `kubectl get KIND NAME -n NAMESPACE -o yaml` prints"
    } else if has(&["planned_values"]) || has(&["terraform_version"]) {
        "this is a plan or a state of Terraform: pick its manifests, `jq '{apiVersion: \"v1\", kind: \"List\", items: [.. | objects | select(.type? == \"kubernetes_manifest\") | .values.manifest]}'`"
    } else if has(&["services"]) {
        "this is for Docker Compose: in Kubernetes a Pod names its credential spec in `securityContext.windowsOptions.gmsaCredentialSpecName`"
    } else if has(&["gmsaCredentialSpecName"]) || fields.values().any(is_of_values) {
        "these are the values of a chart: check what it renders, `helm template CHART -f FILE | kubectl gmsa check -f -`"
    } else {
        return None;
    };
    Some(fix.to_owned())
}

/// The `apiVersion` and `kind` of an object. An item of a `RoleList` need not say them, as for Kubernetes.
fn type_of(fields: &RawFields<'_>, of: Option<&(String, String)>) -> Result<(String, String), String> {
    let text = |key: &str| match fields.get(key) {
        None => Err(format!("{EXPECTED}, found no `{key}`")),
        Some(value) => match serde_json::from_str::<String>(value.get()) {
            Ok(text) if !text.is_empty() => Ok(text),
            _ => Err(format!("{key}: expected a text that is not empty, found {}", describe(value.get()))),
        },
    };
    match of {
        Some((api_version, kind)) if !fields.contains_key("kind") => {
            let own = fields.contains_key("apiVersion").then(|| text("apiVersion")).transpose()?;
            Ok((own.unwrap_or_else(|| api_version.clone()), kind.clone()))
        }
        _ => Ok((text("apiVersion")?, text("kind")?)),
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text after a `---` or `...` at the beginning of a line.
fn after_mark<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    line.strip_prefix(mark).filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Where the documents of a text start: the byte, and the line, counted from 1. There is at least one.
///
/// YAML allows `---` and `...` at the beginning of a line nowhere but between documents, so no parser is needed; the
/// parser itself keeps no count, and skips empty documents.
fn starts(text: &str) -> impl Iterator<Item = (usize, u64)> {
    // Whether the document has a `---` or content, and whether a `...` ended it.
    let (mut begun, mut ended) = (false, false);
    let mut end = 0;
    let below_first = (1..).zip(text.split_inclusive('\n')).filter_map(move |(number, line)| {
        let start = end;
        end += line.len();
        let line = if number == 1 { line.trim_start_matches(BYTE_ORDER_MARK) } else { line };
        let line = line.trim_end_matches(['\r', '\n']);
        if after_mark(line, "...").is_some() {
            ended = begun;
            return None;
        }
        let separator = after_mark(line, "---").is_some();
        let content = !matches!(line.trim_start().chars().next(), None | Some('#' | '%'));
        let is_start = (separator && begun) || (ended && content);
        if separator || content {
            (begun, ended) = (true, false);
        }
        is_start.then_some((start, number))
    });
    iter::once((0, 1)).chain(below_first)
}

//! A text to documents: numbers them, opens lists, and insists on an `apiVersion` and a `kind`.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Document, Error, Found, Origin, Problem,
    yaml::{self, Node},
};

/// The deepest nesting of lists in lists.
const MAX_LISTS: usize = 4;

/// Reads the documents of a text, YAML or JSON; `name` stands for it in messages.
///
/// Empty documents are skipped. A `List`, and any `…List` with `items`, gives its items. As with `kubectl`, an object must
/// say its `apiVersion` and `kind`.
///
/// # Errors
/// What is wrong with the text: the first fault of its syntax, or every document that is not a Kubernetes object.
pub fn parse(name: &str, text: &str) -> Result<Vec<Document>, Error> {
    let mut reader = Reader::new(name, text);
    reader.take(yaml::read(text, &yaml::LIMITS));
    let Found { documents, problems, .. } = reader.found.strict();
    Error::unless_none(problems)?;
    Ok(documents)
}

/// Reads the documents of a text like [`parse`], each for itself: what is wrong with one keeps none of the others back, and
/// the bounds on a text hold for each document.
#[must_use]
pub fn parse_each(name: &str, text: &str) -> Found {
    parse_all(&[(name, text)]).pop().unwrap_or_default()
}

/// Reads texts, each with its name, like [`parse_each`]; gives what was found in each of them.
pub(super) fn parse_all(texts: &[(&str, &str)]) -> Vec<Found> {
    let mut readers: Vec<Reader> = texts.iter().map(|(name, text)| Reader::new(name, text)).collect();
    let parts = texts.iter().zip(&readers).map(|((_, text), reader)| split(text, &reader.starts));
    let parts: Vec<Vec<(u64, &str)>> = parts.collect();
    match yaml::read_each(&parts.concat(), &yaml::LIMITS) {
        Ok(results) => {
            let mut results = results.into_iter();
            for (reader, parts) in readers.iter_mut().zip(&parts) {
                results.by_ref().take(parts.len()).for_each(|result| reader.take(result));
            }
        }
        Err(fault) => readers.iter_mut().for_each(|reader| reader.take(Err(fault.clone()))),
    }
    readers.into_iter().map(|reader| reader.found).collect()
}

/// Cuts away what follows a `...`: at most comments, and directives for the next document, which say nothing that a manifest
/// could need.
fn without_directives(part: &str) -> &str {
    match part.find("\n...") {
        Some(end) if matches!(part.as_bytes().get(end + 4), None | Some(b'\n' | b'\r' | b' ' | b'\t')) => {
            part.get(..=end).unwrap_or(part)
        }
        _ => part,
    }
}

/// Cuts a text where its documents start, each part with the number of lines in front of it.
fn split<'t>(text: &'t str, starts: &[u64]) -> Vec<(u64, &'t str)> {
    let mut parts = Vec::with_capacity(starts.len());
    let (mut rest, mut line) = (text, 1);
    for start in starts.iter().skip(1) {
        let wanted = usize::try_from(start - line).unwrap_or(usize::MAX);
        let end = rest.split_inclusive('\n').take(wanted).map(str::len).sum();
        let (part, below) = rest.split_at(end);
        parts.push((line - 1, without_directives(part)));
        (rest, line) = (below, *start);
    }
    parts.push((line - 1, rest));
    parts
}

/// The problem of a file that is not text: which line of which document is not.
pub(super) fn not_utf8(name: &str, bytes: &[u8]) -> Problem {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let line = valid.split('\n').count();
    let position = Some((starts(valid).len(), line as u64));
    Problem { file: Arc::from(name), position, message: "expected UTF-8 text".to_owned() }
}

struct Reader {
    file: Arc<str>,
    starts: Vec<u64>,
    found: Found,
}

impl Reader {
    fn new(name: &str, text: &str) -> Self {
        Self { file: Arc::from(name), starts: starts(text), found: Found::default() }
    }

    fn take(&mut self, result: Result<Vec<Node>, (Option<u64>, String)>) {
        match result {
            Ok(nodes) => nodes.into_iter().for_each(|node| self.object(node, None, 0)),
            Err((line, message)) => {
                let position = line.map(|line| (self.number(line), line));
                self.found.problems.push(Problem { file: Arc::clone(&self.file), position, message });
            }
        }
    }

    /// The number of the document to which a line belongs, counted from 1.
    fn number(&self, line: u64) -> usize {
        self.starts.partition_point(|start| *start <= line).max(1)
    }

    /// Takes an object; `of` is the `apiVersion` and `kind` of the items of the list that it stands in.
    fn object(&mut self, mut node: Node, of: Option<&(String, String)>, lists: usize) {
        let line = node.lines.line;
        let origin = Origin { file: Arc::clone(&self.file), document: self.number(line), line };
        if lists == 0 && is_foreign(&node.value) {
            let message = format!("{EXPECTED}, found neither");
            let position = Some((origin.document, line));
            return self.found.foreign.push(Problem { file: Arc::clone(&self.file), position, message });
        }
        let (api_version, kind) = match type_of(&mut node.value, of) {
            Ok(found) => found,
            Err(message) => return self.problem(&origin, message),
        };
        let Some(item_kind) = kind.strip_suffix("List").filter(|_| kind == "List" || node.value.get("items").is_some())
        else {
            self.found.documents.push(Document { origin, api_version, kind, value: node.value, lines: node.lines });
            return;
        };
        if lists == MAX_LISTS {
            return self.problem(&origin, format!("expected at most {MAX_LISTS} lists in each other"));
        }
        let of = (!item_kind.is_empty()).then(|| (api_version, item_kind.to_owned()));
        match node.into_items() {
            Ok(items) => items.into_iter().for_each(|item| self.object(item, of.as_ref(), lists + 1)),
            Err(found) => self.problem(&origin, format!("items: expected a list, found {found}")),
        }
    }

    fn problem(&mut self, origin: &Origin, message: String) {
        let position = Some((origin.document, origin.line));
        self.found.problems.push(Problem { file: Arc::clone(&self.file), position, message });
    }
}

/// What a document must be.
const EXPECTED: &str = "expected a Kubernetes object with `apiVersion` and `kind`";

/// Whether a document is of another kind than manifests: the values of a chart, what PowerShell printed.
fn is_foreign(value: &Value) -> bool {
    value.as_object().is_some_and(|object| !object.contains_key("apiVersion") && !object.contains_key("kind"))
}

/// The `apiVersion` and `kind` of an object. An item of a `RoleList` need not say them, as for Kubernetes.
fn type_of(value: &mut Value, of: Option<&(String, String)>) -> Result<(String, String), String> {
    let found = yaml::describe_kind(value);
    let Value::Object(object) = value else {
        return Err(format!("{EXPECTED}, found {found}"));
    };
    if let Some((api_version, kind)) = of
        && !object.contains_key("kind")
    {
        object.insert("kind".to_owned(), Value::from(kind.as_str()));
        object.entry("apiVersion").or_insert_with(|| Value::from(api_version.as_str()));
    }
    let text = |key: &str| match object.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        None => Err(format!("{EXPECTED}, found no `{key}`")),
        Some(other) => Err(format!("{key}: expected a text that is not empty, found {}", yaml::describe_kind(other))),
    };
    Ok((text("apiVersion")?, text("kind")?))
}

/// The lines on which the documents of a text start, counted from 1; there is at least one.
///
/// YAML allows `---` and `...` at the beginning of a line nowhere but between documents, so no parser is needed; the
/// parser itself keeps no count, and skips empty documents.
fn starts(text: &str) -> Vec<u64> {
    let mut starts = vec![1];
    // Whether the document has a `---` or content, and whether a `...` ended it.
    let (mut begun, mut ended) = (false, false);
    for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
        let marks =
            |mark: &str| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if marks("...") {
            ended = begun;
            continue;
        }
        let separator = marks("---");
        let content = !matches!(line.trim_start().chars().next(), None | Some('#' | '%'));
        if (separator && begun) || (ended && content) {
            starts.push(number);
        }
        if separator || content {
            (begun, ended) = (true, false);
        }
    }
    starts
}

//! The table of a chart's README, made from the comments of its values. What stands above it is written by hand.
//!
//! A comment is above its key, at the same depth. A key without one belongs to the nearest key above it that has one, and every key
//! must have one: a value without an explanation cannot be used. A line that begins with `##` is for those who change the chart.

use std::fmt::Write;

use serde_json::Value;

use crate::files::text;

/// A key that has a comment.
pub struct Entry {
    pub path: Vec<String>,
    pub comment: String,
}

/// How the table begins.
const TABLE: &str = "\n| Value | Default | Meaning |\n| --- | --- | --- |\n";

/// The README of a chart, with a new table.
pub fn of(chart: &str) -> String {
    let (readme, values) = (text(format!("{chart}/README.md")), text(format!("{chart}/values.yaml")));
    let (head, _) = readme.split_once(TABLE).unwrap();
    let defaults: Value = serde_saphyr::from_str(&values).unwrap();
    let entries = entries(&values);
    assert_explained(&defaults, &mut Vec::new(), &entries);
    let mut table = String::new();
    for Entry { path, comment } in &entries {
        let default = path.iter().fold(&defaults, |value, key| &value[key]);
        let default = match default {
            Value::Object(map)
                if entries.iter().any(|entry| entry.path.len() > path.len() && entry.path.starts_with(path)) =>
            {
                assert!(!map.is_empty());
                String::new()
            }
            default => format!("`{default}`"),
        };
        writeln!(table, "| `{}` | {default} | {} |", path.join("."), comment.replace('|', "\\|")).unwrap();
    }
    format!("{head}{TABLE}{table}")
}

/// The keys that have a comment, in their order.
pub fn entries(values: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut parents: Vec<String> = Vec::new();
    let mut comment = String::new();
    for line in values.lines().filter(|line| !line.starts_with("##")) {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        if let Some(words) = text.strip_prefix("# ") {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(words);
        } else if let Some((key, _)) = text.split_once(':').filter(|(key, _)| !key.contains(char::is_whitespace)) {
            parents.truncate(depth);
            parents.push(key.to_owned());
            if !comment.is_empty() {
                entries.push(Entry { path: parents.clone(), comment: std::mem::take(&mut comment) });
            }
        } else {
            assert!(text.is_empty() || text.starts_with("- "), "a line that is no comment and no key: {line}");
            assert!(comment.is_empty(), "a comment above no key: {comment}");
        }
    }
    entries
}

fn assert_explained(value: &Value, path: &mut Vec<String>, entries: &[Entry]) {
    if entries.iter().any(|entry| entry.path == *path) && !has_entries_below(path, entries) {
        return;
    }
    let Value::Object(map) = value else {
        assert!(entries.iter().any(|entry| entry.path == *path), "{} has no comment", path.join("."));
        return;
    };
    for (key, value) in map {
        path.push(key.clone());
        assert_explained(value, path, entries);
        path.pop();
    }
}

fn has_entries_below(path: &[String], entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.path.len() > path.len() && entry.path.starts_with(path))
}

//! As much `PromQL` as it takes to see which metrics, labels and values a query names.

use crate::reference::Family;

/// The labels that Prometheus and its operator give to what they scrape.
const TARGET: [&str; 6] = ["container", "endpoint", "instance", "job", "namespace", "pod"];
/// The words before a list of labels in parentheses.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "atan2"];

/// A name in a query, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub name: String,
    pub what: &'static str,
}

/// What a query names that does not exist.
pub fn faults(query: &str, families: &[Family]) -> Vec<Fault> {
    // Grafana's: the values that a label of a metric has.
    let asked = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')?.rsplit_once(", "));
    if let Some((metric, label)) = asked {
        return faults(&format!("max by ({label}) ({metric})"), families);
    }
    let (mut found, mut metrics, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_:$.".contains(c);
    let mut family = None;
    let mut rest = query;
    while let Some(start) = rest.find(is_word) {
        let (word, behind) = rest[start..].split_at(rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start));
        rest = behind.trim_start();
        let is_grouped = GROUPING.iter().any(|grouping| rest.starts_with(grouping));
        let value = ["=\"", "!=\"", "=~\"", "!~\""].iter().find_map(|sign| rest.strip_prefix(sign));
        if let Some((values, behind)) = value.and_then(|value| value.split_once('"')) {
            found.extend(family.into_iter().flat_map(|family| selector(word, values, family)));
            rest = behind;
        } else if GROUPING.contains(&word) {
            let (labels, behind) = rest.split_once(')').expect("a list of labels in parentheses");
            grouped.extend(labels.split(['(', ',']).map(str::trim).filter(|label| !label.is_empty()));
            rest = behind;
        } else if word.starts_with(char::is_alphabetic)
            && !rest.starts_with('(')
            && !is_grouped
            && !OPERATORS.contains(&word)
        {
            family = families.iter().find(|family| family.samples.contains(word));
            if family.is_none() {
                found.push(Fault { name: word.to_owned(), what: "is no metric" });
            }
            metrics.extend(family);
        }
    }
    let known = |label: &str| TARGET.contains(&label) || metrics.iter().any(|family| family.labels.contains_key(label));
    let unknown = grouped.into_iter().filter(|label| !known(label));
    found.extend(unknown.map(|name| Fault { name: name.to_owned(), what: "is no label of the metrics of that query" }));
    found
}

/// Whether there is such a label on anything at all.
pub fn is_label(label: &str, families: &[Family]) -> bool {
    TARGET.contains(&label) || families.iter().any(|family| family.labels.contains_key(label))
}

/// One `label="value"`; values may be alternatives of a pattern, and may hold a variable of the dashboard. A label of numbers may
/// have others than the one that was recorded.
fn selector(label: &str, values: &str, family: &Family) -> Vec<Fault> {
    if TARGET.contains(&label) {
        return Vec::new();
    }
    let Some(known) = family.labels.get(label) else {
        return vec![Fault { name: label.to_owned(), what: "is no label of that metric" }];
    };
    if known.iter().all(|value| value.parse::<f64>().is_ok()) {
        return Vec::new();
    }
    let unknown = values.split('|').filter(|value| !value.starts_with('$') && !known.contains(*value));
    unknown.map(|value| Fault { name: value.to_owned(), what: "is no value of that label" }).collect()
}

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

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Number,
    Sign(char),
}

/// What a query names that does not exist.
pub fn faults(query: &str, families: &[Family]) -> Vec<Fault> {
    let tokens = tokens(query);
    let sign = |at: usize| match tokens.get(at) {
        Some(Token::Sign(sign)) => *sign,
        _ => ' ',
    };
    let (mut found, mut metrics, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let Token::Word(word) = &tokens[at] else {
            at += 1;
            continue;
        };
        at += 1;
        if GROUPING.contains(&word.as_str()) {
            while sign(at) != ')' && at < tokens.len() {
                if let Token::Word(label) = &tokens[at] {
                    grouped.push(label.clone());
                }
                at += 1;
            }
        } else if sign(at) == '(' || is_grouping(tokens.get(at)) || OPERATORS.contains(&word.as_str()) {
            // `label_values(metric, label)`, which is Grafana's.
            if let ("label_values", Some(Token::Word(label))) = (word.as_str(), tokens.get(tokens.len() - 2)) {
                grouped.push(label.clone());
                at = tokens.len();
                metrics.extend(metric(&tokens[tokens.len() - 4], families, &mut found));
            }
        } else {
            let family = metric(&Token::Word(word.clone()), families, &mut found);
            while sign(at) == '{' || (sign(at) == ',' && matches!(tokens.get(at + 2), Some(Token::Sign('=' | '!')))) {
                let Some(Token::Word(label)) = tokens.get(at + 1) else { break };
                let text = (at..tokens.len()).find(|at| matches!(tokens[*at], Token::Text(_))).unwrap();
                if let (Some(family), Token::Text(values)) = (family, &tokens[text]) {
                    found.extend(selector(label, values, family));
                }
                at = text + 1;
            }
            metrics.extend(family);
        }
    }
    let known = |label: &str| TARGET.contains(&label) || metrics.iter().any(|family| family.labels.contains_key(label));
    let unknown = grouped.into_iter().filter(|label| !known(label));
    found.extend(unknown.map(|name| Fault { name, what: "is no label of the metrics of that query" }));
    found
}

/// An aggregation may name its labels before its parenthesis.
fn is_grouping(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Word(word)) if GROUPING.contains(&word.as_str()))
}

/// Whether there is such a label on anything at all.
pub fn is_label(label: &str, families: &[Family]) -> bool {
    TARGET.contains(&label) || families.iter().any(|family| family.labels.contains_key(label))
}

fn metric<'a>(token: &Token, families: &'a [Family], found: &mut Vec<Fault>) -> Option<&'a Family> {
    let Token::Word(name) = token else { return None };
    let family = families.iter().find(|family| family.samples.contains(name));
    if family.is_none() {
        found.push(Fault { name: name.clone(), what: "is no metric" });
    }
    family
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

fn tokens(query: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let until = |end: fn(char) -> bool| rest.find(end).unwrap_or(rest.len());
        let (token, length) = if first == '"' {
            let length = rest[1..].find('"').expect("a closed string");
            (Token::Text(rest[1..=length].to_owned()), length + 2)
        } else if first.is_ascii_digit() {
            (Token::Number, until(|c| !c.is_ascii_alphanumeric() && c != '.'))
        } else if first.is_alphabetic() || first == '_' || first == '$' {
            let length = until(|c| !c.is_ascii_alphanumeric() && !"_:$".contains(c));
            let word = &rest[..length];
            (if first == '$' { Token::Number } else { Token::Word(word.to_owned()) }, length)
        } else {
            (Token::Sign(first), first.len_utf8())
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    found
}

//! The metrics in `docs/metrics.md`, from a scrape that shows every metric with every value of its labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use gmsa_edge::metrics::{register, scrape};
use gmsa_tickets::{PROGRAM, metrics::BrokerMetrics};
use gmsa_webhook::metrics::Metrics;

/// The metrics of one name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Family {
    /// The name, without what [`samples`](Self::samples) add to it.
    pub name: String,
    /// The kind: `counter`, `gauge`, `histogram` or `info`.
    pub kind: String,
    /// What it says.
    pub help: String,
    /// The names that a query uses.
    pub samples: BTreeSet<String>,
    /// The labels with the values that each can have.
    pub labels: BTreeMap<String, BTreeSet<String>>,
}

/// Every family that a scrape can show.
pub fn families() -> Vec<Family> {
    let (edge, metrics, registry) = Metrics::new();
    edge.show_all();
    metrics.show_all();
    read(&scrape(&registry).unwrap())
}

/// Those that the broker of tickets has beside what both programs have: connections, certificates and the log.
pub fn families_of_tickets() -> Vec<Family> {
    let both: BTreeSet<_> = families().into_iter().map(|family| family.name.replace("webhook", "tickets")).collect();
    all_of_tickets().into_iter().filter(|family| !both.contains(&family.name)).collect()
}

fn all_of_tickets() -> Vec<Family> {
    let (edge, metrics, registry) = register(&PROGRAM, BrokerMetrics::register);
    edge.show_all();
    metrics.show_all();
    read(&scrape(&registry).unwrap())
}

/// What the API server measures about webhooks: name, kind, samples, labels, as in
/// <https://github.com/kubernetes/apiserver/blob/master/pkg/admission/metrics/metrics.go>.
const OF_API_SERVER: [(&str, &str, &[&str], &[&str]); 3] = [
    ("rejection_count", "counter", &[""], &["name", "operation", "rejection_code", "type", "error_type"]),
    ("fail_open_count", "counter", &[""], &["name", "type"]),
    (
        "admission_duration_seconds",
        "histogram",
        &["_bucket", "_count", "_sum"],
        &["name", "operation", "rejected", "type", "le"],
    ),
];

/// Every family that an alert or a panel may ask for: the webhook's own, the broker's, and those of the API server.
pub fn families_asked() -> Vec<Family> {
    let errors = ["apiserver_internal_error", "calling_webhook_error", "no_error"].map(str::to_owned);
    let of_api_server = OF_API_SERVER.map(|(name, kind, samples, labels)| {
        let name = format!("apiserver_admission_webhook_{name}");
        let values = |label: &str| if label == "error_type" { errors.clone().into() } else { BTreeSet::new() };
        Family {
            kind: kind.to_owned(),
            samples: samples.iter().map(|suffix| format!("{name}{suffix}")).collect(),
            labels: labels.iter().map(|label| ((*label).to_owned(), values(label))).collect(),
            name,
            ..Family::default()
        }
    });
    // Of Prometheus itself.
    let up = Family { samples: BTreeSet::from(["up".to_owned()]), ..Family::default() };
    families().into_iter().chain(all_of_tickets()).chain(of_api_server).chain([up]).collect()
}

/// What the states of the watch mean, a line each: the word alone does not say.
const WATCH_STATES: &str = include_str!("metrics/states.md");

/// The head of a page or section, and every family, as Markdown.
pub fn markdown(head: &str, families: &[Family]) -> String {
    let mut out = head.to_owned();
    for family in families {
        let samples: Vec<String> = family.samples.iter().map(|sample| format!("`{sample}`")).collect();
        let samples = samples.join(", ");
        write!(out, "\n## `{}`\n\n{}.\n\nType {}: {samples}.\n", family.name, family.help, family.kind).unwrap();
        let mut labels = family.labels.iter().filter(|(label, _)| *label != "le").peekable();
        if labels.peek().is_some() {
            out.push_str("\n| Label | Values |\n|---|---|\n");
        }
        for (label, values) in labels {
            let numbers = values.iter().all(|value| value.parse::<f64>().is_ok());
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let values = if numbers { "a number".to_owned() } else { values.join(", ") };
            writeln!(out, "| `{label}` | {values} |").unwrap();
        }
        for state in family.labels.get("state").into_iter().flatten() {
            let explained = WATCH_STATES.lines().find(|line| line.starts_with(&format!("- `{state}`: ")));
            out.push('\n');
            out += explained.unwrap_or_else(|| panic!("{} has the state {state}: explain it", family.name));
        }
        if family.labels.contains_key("state") {
            out.push('\n');
        }
    }
    out
}

/// How the page begins, and its section about the broker of tickets.
pub const HEAD: &str = include_str!("metrics/head.md");
pub const TICKETS: &str = include_str!("metrics/tickets.md");

/// Takes a scrape apart. It is this process's own: what does not look like one is left out.
fn read(scrape: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in scrape.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            // The registry ends what it is given with a full stop.
            let help = help.trim_end_matches('.').to_owned();
            families.push(Family { name: name.to_owned(), help, ..Family::default() });
        } else if let Some(family) = families.last_mut() {
            if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                kind.clone_into(&mut family.kind);
            } else if !line.starts_with('#') {
                sample(family, line);
            }
        }
    }
    families
}

/// Adds the name and the labels of one line. No value of a label holds a quote or a comma: they are enums, static words
/// and numbers.
fn sample(family: &mut Family, line: &str) {
    let end = line.find(['{', ' ']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    family.samples.insert(name.to_owned());
    let Some((labels, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return };
    for (label, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
        let value = value.trim_matches('"');
        let values = family.labels.entry(label.to_owned()).or_default();
        if !value.is_empty() {
            values.insert(value.to_owned());
        }
    }
}

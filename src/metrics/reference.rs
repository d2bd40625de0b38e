//! `docs/metrics.md`: the reference, made from a registry in which everything has been recorded once.
//!
//! What always holds: the reference lists what a scrape prints. Nothing is listed by hand, so no metric can be missing or
//! outdated.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Error, Write as _},
    time::{Duration, UNIX_EPOCH},
};

use super::{Access, CertificateStep, Lookup, Metrics, Operation, Outcome, Path, Source, WatchState, scrape};

/// Stands where the running version would.
const VERSION: &str = "VERSION";

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

/// Every family that a scrape can show; `reasons` are the static words for which reviews are allowed and denied.
///
/// # Errors
/// Where a metric cannot be printed: a mistake in this program.
pub fn families(reasons: impl IntoIterator<Item = &'static str>) -> Result<Vec<Family>, Error> {
    let (metrics, registry) = Metrics::new(VERSION);
    touch(&metrics, reasons);
    Ok(read(&scrape(&registry)?))
}

/// Every family, as Markdown.
///
/// # Errors
/// Where a metric cannot be printed: a mistake in this program.
pub fn markdown(families: &[Family]) -> Result<String, Error> {
    let mut out = HEAD.to_owned();
    for family in families {
        let samples: Vec<String> = family.samples.iter().map(|sample| format!("`{sample}`")).collect();
        write!(out, "\n## `{}`\n\n{}.\n\nType {}: {}.\n", family.name, family.help, family.kind, samples.join(", "))?;
        let mut labels = family.labels.iter().filter(|(label, _)| *label != "le").peekable();
        if labels.peek().is_some() {
            out.push_str("\n| Label | Values |\n|---|---|\n");
        }
        for (label, values) in labels {
            let numbers = values.iter().all(|value| value.parse::<f64>().is_ok());
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let values = if numbers { "a number".to_owned() } else { values.join(", ") };
            writeln!(out, "| `{label}` | {values} |")?;
        }
    }
    Ok(out)
}

const HEAD: &str = "# Metrics

Made from the registry by `UPDATE_SNAPSHOTS=1 cargo test --test chart`: do not edit.

`/metrics` on the admin port speaks OpenMetrics. A combination of labels is shown once it has happened. No label takes its
value from what a client sends, so their number is bounded.
";

/// Records every value of every label.
fn touch(metrics: &Metrics, reasons: impl IntoIterator<Item = &'static str>) {
    let once = Duration::from_millis(1);
    for reason in reasons {
        metrics.review(Path::Mutate, Operation::Create, Outcome::Allowed, reason, once);
    }
    for path in Path::ALL {
        metrics.review(*path, Operation::Create, Outcome::Allowed, "", once);
    }
    for operation in Operation::ALL {
        metrics.review(Path::Mutate, *operation, Outcome::Allowed, "", once);
    }
    for outcome in Outcome::ALL {
        metrics.review(Path::Mutate, Operation::Create, *outcome, "", once);
    }
    for source in Source::ALL {
        metrics.spec_lookup(*source, Lookup::Found);
        metrics.access_review(*source, Access::Allowed);
    }
    for outcome in Lookup::ALL {
        metrics.spec_lookup(Source::Api, *outcome);
    }
    for outcome in Access::ALL {
        metrics.access_review(Source::Api, *outcome);
    }
    for step in CertificateStep::ALL {
        metrics.certificate_step(*step, 1);
    }
    metrics.request_refused(400);
    metrics.watch_state(WatchState::Starting);
    metrics.watch_event(UNIX_EPOCH + once);
    metrics.certificate(Some(UNIX_EPOCH + once), 1, 1, true);
}

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

//! The samples as a Markdown table, and its place on the page.

use std::{collections::BTreeMap, fmt};

use super::{
    calls::{Both, HISTOGRAM},
    page,
};

const BEGIN: &str = "<!-- cluster: written by `just bench-cluster --write` -->";
const END: &str = "<!-- cluster: end -->";
const CALLS_BEGIN: &str = "<!-- calls: written by `just bench-cluster --write` -->";
const CALLS_END: &str = "<!-- calls: end -->";

/// Which webhook the API server calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// No webhook.
    None,
    /// A server that decides nothing.
    Baseline,
    /// The same, but it answers with the patch that this webhook answers with.
    PatchingBaseline,
    /// This webhook.
    Webhook,
    /// Another one, with the settings of its chart.
    Other,
    /// The same, but its client never waits for a throttle.
    Unthrottled,
}

impl Variant {
    /// Every variant, in the order of the table.
    const ALL: [Self; 6] =
        [Self::None, Self::Baseline, Self::PatchingBaseline, Self::Webhook, Self::Other, Self::Unthrottled];

    /// What is measured, `with_other` webhook or without, in the order of the table.
    pub fn all(with_other: bool) -> &'static [Self] {
        if with_other { &Self::ALL } else { &Self::ALL[..4] }
    }

    /// The namespace of its pods.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::None => "no-webhook",
            Self::Baseline => "baseline",
            Self::PatchingBaseline => "patching-baseline",
            Self::Webhook => "webhook",
            Self::Other => "other-webhook",
            Self::Unthrottled => "unthrottled-webhook",
        }
    }

    /// Whether pods that use GMSA are given their contents.
    pub fn patches(self) -> bool {
        !matches!(self, Self::None | Self::Baseline)
    }

    /// The path of its pods.
    pub fn pods(self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no webhook",
            Self::Baseline => "baseline",
            Self::PatchingBaseline => "baseline that patches",
            Self::Webhook => "this webhook",
            Self::Other => "the other webhook",
            Self::Unthrottled => "the other webhook without its throttle",
        })
    }
}

/// What pods are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// They name a credential spec.
    Gmsa,
    /// They do not.
    Plain,
}

impl Kind {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 2] = [Self::Gmsa, Self::Plain];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gmsa => "pods with GMSA",
            Self::Plain => "pods without GMSA",
        })
    }
}

/// The result of one run.
pub struct Sample {
    /// Pods per second.
    pub rate: f64,
    /// Reviews that this webhook answered, per pod.
    pub reviews: f64,
    /// CPU time of the API server per pod, in milliseconds.
    pub api_server: f64,
    /// How long it waited for the webhook.
    pub calls: Both,
}

/// Everything that was measured.
pub struct Report {
    /// What was measured, in the order of the table.
    pub variants: &'static [Variant],
    /// By row and kind of pod, in the order of the rounds.
    pub samples: BTreeMap<(Variant, Kind), Vec<Sample>>,
    /// Pods of one run.
    pub pods: u32,
    /// Pods that were being created at once.
    pub at_once: u32,
    /// The API server's version.
    pub api_server: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| | pods/s | ÷ baseline | ÷ baseline that patches | ÷ no webhook | CPU of kube-apiserver per pod, ms | reviews by this webhook, per pod |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for kind in Kind::ALL {
            for &variant in self.variants {
                let aim = if (variant, kind) == (Variant::Webhook, Kind::Gmsa) { ", aim 0.9" } else { "" };
                writeln!(
                    f,
                    "| {kind}, {variant} | {} | {}{aim} | {} | {} | {} | {} |",
                    self.spread(variant, kind, |sample| sample.rate, 0),
                    self.ratio(variant, Variant::Baseline, kind),
                    self.ratio(variant, Variant::PatchingBaseline, kind),
                    self.ratio(variant, Variant::None, kind),
                    self.spread(variant, kind, |sample| sample.api_server, 2),
                    self.spread(variant, kind, |sample| sample.reviews, 0),
                )?;
            }
        }
        let rounds = self.samples.values().next().map_or(0, Vec::len);
        writeln!(
            f,
            "\nMedian (smallest–largest) of {rounds} interleaved rounds of {} pods each, {} at a time, all on",
            self.pods, self.at_once
        )?;
        writeln!(f, "one machine; a ratio is taken within its round. The log goes to a file.\n")?;
        write!(f, "- Machine: {}, kube-apiserver {}, etcd without fsync.", page::machine(), self.api_server)
    }
}

impl Report {
    /// Puts it into docs/measurements.md.
    pub fn write(&self) {
        page::write("docs/measurements.md", BEGIN, END, &self.to_string());
    }

    fn rates(&self, variant: Variant, kind: Kind) -> Vec<f64> {
        self.samples[&(variant, kind)].iter().map(|sample| sample.rate).collect()
    }

    fn spread(&self, variant: Variant, kind: Kind, of: impl Fn(&Sample) -> f64, digits: usize) -> Spread {
        Spread(self.samples[&(variant, kind)].iter().map(of).collect(), digits)
    }

    /// How the rates of a variant compare with those of another, round by round.
    fn ratio(&self, variant: Variant, base: Variant, kind: Kind) -> Spread {
        let pairs = self.rates(variant, kind).into_iter().zip(self.rates(base, kind));
        Spread(pairs.map(|(rate, base)| rate / base).collect(), 2)
    }
}

/// How long the API server waited for each webhook, in all rounds.
pub struct Times(Vec<(Variant, Both)>);

impl Times {
    pub fn of(variants: &[Variant], samples: &BTreeMap<(Variant, Kind), Vec<Sample>>) -> Self {
        let with_calls = variants.iter().filter(|variant| **variant != Variant::None);
        Self(
            with_calls
                .map(|variant| {
                    let mut both = Both::default();
                    for sample in &samples[&(*variant, Kind::Gmsa)] {
                        for (all, one) in both.iter_mut().zip(&sample.calls) {
                            all.add(one);
                        }
                    }
                    (*variant, both)
                })
                .collect(),
        )
    }

    /// Puts it into docs/measurements.md.
    pub fn write(&self) {
        page::write("docs/measurements.md", CALLS_BEGIN, CALLS_END, &self.to_string());
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| pods with GMSA | mutate p50, ms | mutate p99, ms | validate p50, ms | validate p99, ms |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        for (variant, both) in &self.0 {
            write!(f, "| {variant} |")?;
            for calls in both {
                for part in [0.5, 0.99] {
                    match calls.quantile(part) {
                        Some(millis) => write!(f, " {millis:.1} |")?,
                        None => f.write_str(" – |")?,
                    }
                }
            }
            writeln!(f)?;
        }
        write!(
            f,
            "\nFrom `{HISTOGRAM}` of the rounds above: its first buckets end at 5 and 25 ms, and within a bucket all times count as equally likely."
        )
    }
}

/// Numbers, printed as their median, the smallest and the largest with this many digits; as one where all are the same.
pub struct Spread(pub Vec<f64>, pub usize);

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(numbers, digits) = self;
        let mut numbers = numbers.clone();
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len() - 1;
        let median = f64::midpoint(numbers[last / 2], numbers[last.div_ceil(2)]);
        let (smallest, largest) = (numbers[0], numbers[last]);
        let [smallest, median, largest] = [smallest, median, largest].map(|number| format!("{number:.digits$}"));
        if smallest == largest { f.write_str(&median) } else { write!(f, "{median} ({smallest}–{largest})") }
    }
}

//! The rows, and the samples as Markdown tables.

use super::{
    calls::{Both, HISTOGRAM},
    page,
};

/// Which webhook the API server calls.
pub struct Variant {
    pub name: &'static str,
    pub namespace: &'static str,
    /// Whether pods that use GMSA are given their contents.
    pub patches: bool,
}

/// Every variant, in the order of the table; the last two with `--against` only.
pub const VARIANTS: [Variant; 6] = [
    Variant { name: "no webhook", namespace: "no-webhook", patches: false },
    // A server that decides nothing.
    Variant { name: "baseline", namespace: "baseline", patches: false },
    // The same, but it answers with the patch that this webhook answers with.
    Variant { name: "baseline that patches", namespace: "patching-baseline", patches: true },
    Variant { name: "this webhook", namespace: "webhook", patches: true },
    // Another one, with the settings of its chart.
    Variant { name: "the other webhook", namespace: "other-webhook", patches: true },
    // The same, but its client never waits for a throttle.
    Variant { name: "the other webhook without its throttle", namespace: "unthrottled-webhook", patches: true },
];
pub const NONE: usize = 0;
pub const BASELINE: usize = 1;
pub const PATCHING: usize = 2;
pub const WEBHOOK: usize = 3;
pub const OTHER: usize = 4;
pub const UNTHROTTLED: usize = 5;

/// A variant, and whether its pods name a credential spec.
#[derive(Clone, Copy, PartialEq)]
pub struct Row {
    pub variant: usize,
    pub is_gmsa: bool,
}

impl Row {
    /// Every row, in the order of the table.
    pub fn all(with_other: bool) -> Vec<Self> {
        let variants = if with_other { VARIANTS.len() } else { OTHER };
        let kinds = [true, false].into_iter();
        kinds.flat_map(|is_gmsa| (0..variants).map(move |variant| Self { variant, is_gmsa })).collect()
    }

    pub fn name(self) -> String {
        format!("pods {} GMSA, {}", if self.is_gmsa { "with" } else { "without" }, VARIANTS[self.variant].name)
    }

    pub fn pods(self) -> String {
        format!("/api/v1/namespaces/{}/pods", VARIANTS[self.variant].namespace)
    }
}

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

/// Measures every row once in each round, and once before, which warms everything up. The order changes: a run is slower behind
/// one whose garbage the API server still collects.
pub async fn interleaved<R: Copy, S>(rounds: u32, rows: &[R], measure: impl AsyncFn(R) -> S) -> Vec<Vec<S>> {
    let mut samples: Vec<Vec<S>> = rows.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for round in 0..=rounds {
        order.rotate_left(1);
        order.reverse();
        for &row in &order {
            eprint!("round {round}: ");
            let sample = measure(rows[row]).await;
            if round > 0 {
                samples[row].push(sample);
            }
        }
    }
    samples
}

/// What pods cost: each row with its samples, in the order of the rounds.
pub fn rates(rows: &[(Row, Vec<Sample>)], what: &str, api_server: &str) -> String {
    let cells = rows.iter().map(|(row, samples)| {
        let of = |value: fn(&Sample) -> f64, digits| spread(samples.iter().map(value), digits);
        // How its rates compare with those of another, round by round.
        let ratio = |base: usize| {
            let (_, base) = rows.iter().find(|(other, _)| *other == Row { variant: base, ..*row }).unwrap();
            spread(samples.iter().zip(base).map(|(sample, base)| sample.rate / base.rate), 2)
        };
        let aim = if *row == (Row { variant: WEBHOOK, is_gmsa: true }) { ", aim 0.9" } else { "" };
        vec![
            row.name(),
            of(|sample| sample.rate, 0),
            ratio(BASELINE) + aim,
            ratio(PATCHING),
            ratio(NONE),
            of(|sample| sample.api_server, 2),
            of(|sample| sample.reviews, 0),
        ]
    });
    let head = [
        "",
        "pods/s",
        "÷ baseline",
        "÷ baseline that patches",
        "÷ no webhook",
        "CPU of kube-apiserver per pod, ms",
        "reviews by this webhook, per pod",
    ];
    format!(
        "{}\nMedian (smallest–largest) of {what}, all on\n\
         one machine; a ratio is taken within its round. The log goes to a file.\n\n{}",
        page::table(&head, cells),
        page::machine(Some(api_server)),
    )
}

/// How long the API server waited for each webhook, in all rounds.
pub fn times(rows: &[(Row, Vec<Sample>)]) -> String {
    let asked = rows.iter().filter(|(row, _)| row.is_gmsa && row.variant != NONE);
    let cells = asked.map(|(row, samples)| {
        let mut all = Both::default();
        for sample in samples {
            for (all, one) in all.iter_mut().zip(&sample.calls) {
                all.add(one, 1.0);
            }
        }
        let quantiles = all.iter().flat_map(|calls| [0.5, 0.99].map(|part| calls.quantile(part)));
        let shown = quantiles.map(|millis| millis.map_or_else(|| "–".to_owned(), |millis| format!("{millis:.1}")));
        [VARIANTS[row.variant].name.to_owned()].into_iter().chain(shown).collect()
    });
    let head = ["pods with GMSA", "mutate p50, ms", "mutate p99, ms", "validate p50, ms", "validate p99, ms"];
    format!(
        "{}\nFrom `{HISTOGRAM}` of the rounds above: \
         its first buckets end at 5 and 25 ms, and within a bucket all times count as equally likely.",
        page::table(&head, cells),
    )
}

/// Numbers as their median, the smallest and the largest with this many digits; as one where all are the same.
pub fn spread(numbers: impl Iterator<Item = f64>, digits: usize) -> String {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len() - 1;
    let median = f64::midpoint(numbers[last / 2], numbers[last.div_ceil(2)]);
    let [smallest, median, largest] = [numbers[0], median, numbers[last]].map(|number| format!("{number:.digits$}"));
    if smallest == largest { median } else { format!("{median} ({smallest}–{largest})") }
}

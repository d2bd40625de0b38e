//! What the chart's match conditions cost a pod without GMSA, by the API server's own histogram: per entry that has conditions it converts the pod, and then
//! evaluates them.
//!
//! Pods are created as dry runs, in a namespace for each row, so that only that row's entries match. No webhook runs: none is called for such a pod. CPU time is
//! not looked at: it is too noisy for microseconds.

use std::{collections::BTreeMap, fmt};

use serde_json::{Value, json};

use super::{
    Kind,
    control_plane::{Client, ControlPlane, namespace, service_account, until},
    helm::{CHART, Helm},
    page, pod,
    report::Spread,
};

const BEGIN: &str = "<!-- conditions: written by `just bench-cluster --write` -->";
const END: &str = "<!-- conditions: end -->";
const HISTOGRAM: &str = "apiserver_admission_match_condition_evaluation_seconds";

/// What is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Variant {
    /// Three entries whose condition is `false`: what conditions cost that ask nothing.
    False,
    /// The chart as it comes.
    Chart,
    /// The chart with `webhooks.first.enabled=false`.
    OneMutating,
    /// The chart with `guard.enabled=true`.
    Guard,
}

impl Variant {
    const ALL: [Self; 4] = [Self::False, Self::Chart, Self::OneMutating, Self::Guard];

    /// The namespace of its pods, and the name of its release.
    fn name(self) -> &'static str {
        match self {
            Self::False => "conditions-false",
            Self::Chart => "conditions-chart",
            Self::OneMutating => "conditions-one",
            Self::Guard => "conditions-guard",
        }
    }

    fn values(self) -> &'static str {
        match self {
            Self::False | Self::Chart => "webhooks.first.enabled=true",
            Self::OneMutating => "webhooks.first.enabled=false",
            Self::Guard => "guard.enabled=true",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::False => "three entries that are `false`",
            Self::Chart => "this chart",
            Self::OneMutating => "this chart, `webhooks.first.enabled=false`",
            Self::Guard => "this chart with the guard",
        })
    }
}

/// Per pod: evaluations, and what they took, in milliseconds.
#[derive(Clone, Copy)]
struct Sample {
    entries: f64,
    millis: f64,
}

/// Everything that was measured.
pub struct Report {
    samples: BTreeMap<Variant, Vec<Sample>>,
    pods: u32,
    api_server: String,
}

/// Installs every variant, and creates pods for each in turn.
pub async fn measure(control_plane: &ControlPlane, rounds: u32, pods: u32) -> Report {
    let client = &control_plane.client;
    for variant in Variant::ALL {
        namespace(client, variant.name(), &json!({})).await;
        service_account(client, variant.name(), super::USER).await;
        for object in objects(variant) {
            client.create(&collection(&object), &object).await.unwrap();
        }
    }
    let mut samples: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut order = Variant::ALL;
    for variant in Variant::ALL {
        let wanted = variant.entries();
        until("every entry is in force", async || {
            let sample = create_pods(client, variant, 1).await;
            ((sample.entries - wanted).abs() < f64::EPSILON).then_some(())
        })
        .await;
    }
    for round in 0..=rounds {
        order.rotate_left(1);
        order.reverse();
        for variant in order {
            let sample = create_pods(client, variant, pods).await;
            eprintln!("round {round}: {variant}: {:.3} ms in {} evaluations per pod", sample.millis, sample.entries);
            // The first round warms everything up.
            if round > 0 {
                samples.entry(variant).or_default().push(sample);
            }
        }
    }
    Report { samples, pods, api_server: control_plane.version.clone() }
}

impl Variant {
    fn entries(self) -> f64 {
        match self {
            Self::OneMutating => 2.0,
            Self::False | Self::Chart => 3.0,
            Self::Guard => 4.0,
        }
    }
}

/// The webhook configurations of a variant, and its policies, for pods of its namespace alone.
fn objects(variant: Variant) -> Vec<Value> {
    let only = |object: &mut Value| {
        object["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": variant.name()}});
    };
    let rendered = Helm::new().prints([
        "template",
        variant.name(),
        CHART,
        "--namespace",
        "gmsa-webhook",
        "--kube-version",
        "1.36",
        "--set",
        variant.values(),
    ]);
    let documents = rendered.split("\n---\n").filter(|document| {
        document.contains("\nkind: MutatingWebhook")
            || document.contains("\nkind: ValidatingWebhook")
            || document.contains("\nkind: ValidatingAdmissionPolicy")
    });
    let mut objects: Vec<Value> = documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect();
    for object in &mut objects {
        if let Some(webhooks) = object["webhooks"].as_array_mut() {
            // Those for other kinds than pods have no part in this.
            webhooks.retain(|webhook| webhook["rules"][0]["resources"] == json!(["pods"]));
            for webhook in webhooks {
                only(webhook);
                if variant == Variant::False {
                    webhook["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
                }
            }
        } else if object["kind"] == "ValidatingAdmissionPolicy" {
            only(&mut object["spec"]["matchConstraints"]);
        }
    }
    objects
}

fn collection(object: &Value) -> String {
    let plural = match object["kind"].as_str().unwrap() {
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

/// One pod after the other: the histogram knows wall time alone, and no evaluation is to wait for a core.
async fn create_pods(client: &Client, variant: Variant, pods: u32) -> Sample {
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", variant.name());
    let before = evaluated(client).await;
    for _ in 0..pods {
        client.create(&path, &pod("plain", Kind::Plain)).await.unwrap();
    }
    let after = evaluated(client).await;
    let of = |before: f64, after: f64| (after - before) / f64::from(pods);
    Sample { entries: of(before.0, after.0), millis: of(before.1, after.1) * 1e3 }
}

/// How many conditions the API server has evaluated, and for how many seconds.
async fn evaluated(client: &Client) -> (f64, f64) {
    let metrics = client.text("/metrics").await.unwrap();
    let sum = |suffix: &str| {
        let name = format!("{HISTOGRAM}_{suffix}{{");
        let values = metrics.lines().filter(|line| line.starts_with(&name));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    (sum("count"), sum("sum"))
}

impl Report {
    /// Puts it into docs/measurements.md.
    pub fn write(&self) {
        page::write("docs/measurements.md", BEGIN, END, &self.to_string());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| pods without GMSA, installed | entries with conditions | their evaluation per pod, ms | per entry, ms | ÷ three `false` |"
        )?;
        writeln!(f, "|---|---|---|---|---|")?;
        let base = &self.samples[&Variant::False];
        for variant in Variant::ALL {
            let samples = &self.samples[&variant];
            let spread = |of: &dyn Fn(&Sample) -> f64, digits| Spread(samples.iter().map(of).collect(), digits);
            let ratios = samples.iter().zip(base).map(|(sample, base)| sample.millis / base.millis).collect();
            writeln!(
                f,
                "| {variant} | {} | {} | {} | {} |",
                spread(&|sample| sample.entries, 0),
                spread(&|sample| sample.millis, 3),
                spread(&|sample| sample.millis / sample.entries, 3),
                Spread(ratios, 2),
            )?;
        }
        writeln!(
            f,
            "\nMedian (smallest–largest) of {} interleaved rounds of {} pods each, created one by one as dry runs; from the sum of\n`{HISTOGRAM}`. A ratio is taken within its round.\n",
            base.len(),
            self.pods
        )?;
        write!(f, "- Machine: {}, kube-apiserver {}.", page::machine(), self.api_server)
    }
}

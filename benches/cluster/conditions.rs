//! What the chart's match conditions cost a pod without GMSA, by the API server's own histogram: per entry that has conditions it converts the pod, and then
//! evaluates them.
//!
//! Pods are created as dry runs, in a namespace for each row, so that only that row's entries match. No webhook runs: none is called for such a pod. CPU time is
//! not looked at: it is too noisy for microseconds.

use serde_json::{Value, json};

use super::{
    control_plane::{Client, ControlPlane, Scrape, USER, namespace, pod, service_account, until},
    helm::{CHART, Helm},
    page,
    report::{interleaved, spread},
};

const HISTOGRAM: &str = "apiserver_admission_match_condition_evaluation_seconds";

/// What is installed.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    /// The namespace of its pods, and the name of its release.
    release: &'static str,
    values: &'static str,
    /// The entries that have conditions.
    entries: f64,
}

/// What conditions cost that ask nothing, and the chart. A ratio is to the first.
const VARIANTS: [Variant; 4] = [
    Variant {
        name: "three entries that are `false`",
        release: FALSE,
        values: "webhooks.first.enabled=true",
        entries: 3.0,
    },
    Variant { name: "this chart", release: "conditions-chart", values: "webhooks.first.enabled=true", entries: 3.0 },
    Variant {
        name: "this chart, `webhooks.first.enabled=false`",
        release: "conditions-one",
        values: "webhooks.first.enabled=false",
        entries: 2.0,
    },
    Variant {
        name: "this chart with the guard",
        release: "conditions-guard",
        values: "guard.enabled=true",
        entries: 4.0,
    },
];
const FALSE: &str = "conditions-false";

/// Per pod: evaluations, and what they took, in milliseconds.
#[derive(Clone, Copy)]
struct Sample {
    entries: f64,
    millis: f64,
}

/// Installs every variant, creates pods for each in turn, and gives the report.
pub async fn measure(control_plane: &ControlPlane, rounds: u32, pods: u32) -> String {
    let client = &control_plane.client;
    for variant in VARIANTS {
        namespace(client, variant.release, &json!({})).await;
        service_account(client, variant.release, USER).await;
        for object in objects(variant) {
            client.create(&collection(&object), &object).await.unwrap();
        }
    }
    for variant in VARIANTS {
        until("every entry is in force", async || {
            let sample = create_pods(client, variant, 1).await;
            ((sample.entries - variant.entries).abs() < f64::EPSILON).then_some(())
        })
        .await;
    }
    let samples = interleaved(rounds, &VARIANTS, async |variant| {
        let sample = create_pods(client, variant, pods).await;
        eprintln!("{}: {:.3} ms in {} evaluations per pod", variant.name, sample.millis, sample.entries);
        sample
    })
    .await;
    let rows = VARIANTS.iter().zip(&samples).map(|(variant, own)| {
        let of = |value: fn(&Sample) -> f64, digits| spread(own.iter().map(value), digits);
        let ratios = own.iter().zip(&samples[0]).map(|(sample, base)| sample.millis / base.millis);
        vec![
            variant.name.to_owned(),
            of(|sample| sample.entries, 0),
            of(|sample| sample.millis, 3),
            of(|sample| sample.millis / sample.entries, 3),
            spread(ratios, 2),
        ]
    });
    let head = [
        "pods without GMSA, installed",
        "entries with conditions",
        "their evaluation per pod, ms",
        "per entry, ms",
        "÷ three `false`",
    ];
    format!(
        "{}\nMedian (smallest–largest) of {rounds} interleaved rounds of {pods} pods each, \
         created one by one as dry runs; from the sum of\n`{HISTOGRAM}`. A ratio is taken within its round.\n\n{}",
        page::table(&head, rows),
        page::machine(Some(&control_plane.version)),
    )
}

/// The webhook configurations of a variant, and its policies, for pods of its namespace alone.
fn objects(variant: Variant) -> Vec<Value> {
    let only = |object: &mut Value| {
        object["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": variant.release}});
    };
    let namespace = ["--namespace", "gmsa-webhook", "--kube-version", "1.36"];
    let template = ["template", variant.release, CHART].into_iter().chain(namespace);
    let rendered = Helm::new().prints(template.chain(["--set", variant.values]));
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).unwrap();
    objects.retain(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        ["MutatingWebhook", "ValidatingWebhook", "ValidatingAdmissionPolicy"]
            .iter()
            .any(|start| kind.starts_with(start))
    });
    for object in &mut objects {
        if let Some(webhooks) = object["webhooks"].as_array_mut() {
            // Those for other kinds than pods have no part in this.
            webhooks.retain(|webhook| webhook["rules"][0]["resources"] == json!(["pods"]));
            for webhook in webhooks {
                only(webhook);
                if variant.release == FALSE {
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
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

/// One pod after the other: the histogram knows wall time alone, and no evaluation is to wait for a core.
async fn create_pods(client: &Client, variant: Variant, pods: u32) -> Sample {
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", variant.release);
    let before = evaluated(client).await;
    for _ in 0..pods {
        client.create(&path, &pod("plain", &Value::Null)).await.unwrap();
    }
    let after = evaluated(client).await;
    let [entries, seconds] = [0, 1].map(|at| (after[at] - before[at]) / f64::from(pods));
    Sample { entries, millis: seconds * 1e3 }
}

/// How many conditions the API server has evaluated, and for how many seconds.
async fn evaluated(client: &Client) -> [f64; 2] {
    let scrape = Scrape::of(client.text("/metrics").await.unwrap());
    ["count", "sum"].map(|suffix| scrape.sum(&format!("{HISTOGRAM}_{suffix}"), &[]))
}

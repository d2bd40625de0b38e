//! Random pods through the API server, with the configurations that the chart installs: `just e2e random [SEED]`. What is
//! stored, refused and warned of must be what the contract's oracle says, which knows nothing of the webhook's code.

use std::{
    collections::BTreeSet,
    path::Path,
    process::ExitCode,
    time::{Instant, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{StreamExt as _, stream};
use gmsa_test_support::credential_spec;
use serde_json::{Value, json};

use crate::{
    control_plane::{Binaries, Client, Refusal, SERVICE, SPECS, until},
    helm::{CHART, Helm},
    oracle::{self, Outcome, Slot, created, is_valid_name},
    pods::{self, container, gmsa, pod},
    world::{NAMESPACE, SQL, USER, VISITOR, WEB, World},
};

/// How many objects are tried, and how many at once.
const OBJECTS: u64 = 3000;
const AT_ONCE: usize = 16;

/// Names in slots: of credential specs that may be used, that exist but may not be used, that may be used but do not exist, and
/// what is no name.
const NAMES: [&str; 8] = ["web", "web", "web", "sql", "closed", "fresh", "Not-A-Name", "a_b"];

/// Contents in slots: whole, reordered, of another value, with a key twice, broken.
const CONTENTS: [&str; 6] = [
    WEB,
    SQL,
    r#"{ "CmsPlugins" : ["ActiveDirectory"], "ActiveDirectoryConfig": {"HostAccountConfig": {"PluginInput": "a<b>c\u0026d"}} }"#,
    r#"{"CmsPlugins":[]}"#,
    r#"{"CmsPlugins":["ActiveDirectory"],"CmsPlugins":["ActiveDirectory"]}"#,
    r#"{"CmsPlugins":"#,
];

/// The same seed, the same objects: `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A security context: most often with a name that is good.
    fn context(&mut self, with_contents: bool) -> Value {
        let mut options = json!({});
        if !self.one_in(3) {
            options["gmsaCredentialSpecName"] = json!(self.pick(&NAMES));
        }
        if with_contents && self.one_in(3) {
            options["gmsaCredentialSpec"] = json!(self.pick(&CONTENTS));
        }
        if options == json!({}) || self.one_in(3) { json!({}) } else { json!({"windowsOptions": options}) }
    }

    fn containers(&mut self, kind: &str, least: usize, with_contents: bool) -> Value {
        let number = least + self.below(3);
        (0..number).map(|at| container(&format!("{kind}-{at}"), &self.context(with_contents))).collect()
    }

    fn pod(&mut self, name: &str, with_contents: bool) -> Value {
        let mut spec = json!({
            "containers": self.containers("main", 1, with_contents),
            "initContainers": self.containers("init", 0, with_contents),
            "securityContext": self.context(with_contents),
        });
        if self.one_in(16) {
            spec["os"] = json!({"name": "linux"});
        }
        let account = if self.one_in(8) { VISITOR } else { USER };
        pod(name, account, &spec)
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trial {
    Pod,
    DryRun,
    /// Then a label of the stored pod changes.
    Label,
    /// Then the stored pod gets an ephemeral container.
    Ephemeral,
    Workload,
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    Stored,
    Refused(u16),
    Warned,
}

/// Runs all of them, and fails at the first that is not as the oracle says.
pub async fn run(binaries: Binaries, folder: &Path, arguments: &[String]) -> ExitCode {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let seed = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(clock);
    println!("seed {seed}");
    let world = World::start(binaries, folder).await;
    install(&world).await;
    let begun = Instant::now();
    let trials = stream::iter(0..OBJECTS).map(|number| one(&world, seed, number)).buffer_unordered(AT_ONCE);
    let all: Vec<(Trial, Result)> = trials.collect().await;
    println!("| | objects |\n|---|---|");
    for kind in all.iter().collect::<BTreeSet<_>>() {
        println!("| {:?}: {:?} | {} |", kind.0, kind.1, all.iter().filter(|one| *one == kind).count());
    }
    println!(
        "\n{} objects in {:.0} s with seed {seed}, kube-apiserver {}: each as the oracle predicts.",
        all.len(),
        begun.elapsed().as_secs_f64(),
        world.control_plane.version
    );
    ExitCode::SUCCESS
}

/// Puts the chart's own configurations in the place of those of the scenarios.
async fn install(world: &World) {
    let client = world.client();
    client.create(SPECS, &credential_spec("closed", json!({"CmsPlugins": ["ActiveDirectory"]}))).await.unwrap();
    let path = |kind: &str| format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
    for kind in ["mutating", "validating"] {
        client.delete(&format!("{}/{SERVICE}", path(kind))).await.unwrap();
    }
    let rendered = Helm::new().prints(["template", SERVICE, CHART, "--namespace", SERVICE, "--kube-version", "1.36"]);
    let mut installed = 0;
    for (kind, marker) in [("mutating", "\nkind: MutatingWebhookC"), ("validating", "\nkind: ValidatingWebhookC")] {
        for document in rendered.split("\n---\n").filter(|document| document.contains(marker)) {
            let mut configuration: Value = serde_saphyr::from_str(document).unwrap();
            for webhook in configuration["webhooks"].as_array_mut().unwrap() {
                let config = &mut webhook["clientConfig"];
                config["caBundle"] = json!(STANDARD.encode(world.ca.cert_pem()));
                config["service"] = json!({
                    "name": SERVICE, "namespace": SERVICE, "port": world.webhook.address.port(),
                    "path": config["service"]["path"],
                });
                installed += 1;
            }
            client.create(&path(kind), &configuration).await.unwrap();
        }
    }
    assert!(installed >= 4, "the chart has {installed} webhooks");
    // The last of them that the API server learns of may be any.
    world.until_asked().await;
    let warned = deployment("asked", &pod("asked", VISITOR, &json!({"securityContext": gmsa("web")})));
    until("the API server asks about workloads", async || {
        let (_, warnings) = client.create_warned(&format!("{DEPLOYMENTS}?dryRun=All"), &warned).await.unwrap();
        (!warnings.is_empty()).then_some(())
    })
    .await;
}

/// What the oracle knows of the cluster, for this service account.
fn imagined(account: &str) -> oracle::World {
    let specs = ["web", "sql", "closed"].map(|name| (name.to_owned(), serde_json::from_str(text(name)).unwrap()));
    let allowed = if account == USER { ["web", "sql", "fresh"].map(str::to_owned).to_vec() } else { Vec::new() };
    oracle::World { specs: specs.into_iter().collect(), allowed, unknown: Vec::new() }
}

/// How pods carry the credential spec.
fn text(name: &str) -> &'static str {
    match name {
        "web" => WEB,
        "sql" => SQL,
        _ => r#"{"CmsPlugins":["ActiveDirectory"]}"#,
    }
}

/// What becomes of the slots that are new: how they are stored, or the codes of all refusals that are right. Which of several the mutating
/// webhook names is not said in the contract.
fn expected(slots: &[Slot], account: &str) -> std::result::Result<Vec<Slot>, Vec<u16>> {
    let world = imagined(account);
    let unfit = slots.iter().filter_map(|slot| {
        let name = slot.name.as_ref()?;
        if !is_valid_name(name) {
            Some(422)
        } else if slot.contents.is_none() && !world.specs.contains_key(name) {
            Some(404)
        } else {
            None
        }
    });
    let unfit: Vec<_> = unfit.collect();
    if !unfit.is_empty() {
        return Err(unfit);
    }
    let fill = |slot: &Slot| {
        let injected = slot.name.as_deref().map(|name| text(name).to_owned());
        Slot { contents: slot.contents.clone().or(injected), ..slot.clone() }
    };
    let filled: Vec<Slot> = slots.iter().map(fill).collect();
    let judged: Outcome = filled.iter().try_for_each(|slot| created(slot, &world));
    judged.map(|()| filled).map_err(|(code, _)| vec![code])
}

/// Whether a refusal is one of those, by the webhook.
fn assert_refused(refusal: &Refusal, expected: &[u16], object: &Value) -> Result {
    let by_webhook = refusal.message.contains("denied the request: ");
    assert!(by_webhook && expected.contains(&refusal.code), "{refusal:?}, not {expected:?}: {object}");
    Result::Refused(refusal.code)
}

async fn one(world: &World, seed: u64, number: u64) -> (Trial, Result) {
    let mut dice = Dice(seed.wrapping_add(number.wrapping_mul(0x5851_f42d_4c95_7f2d)));
    let trial = dice.pick(&[
        Trial::Pod,
        Trial::Pod,
        Trial::Pod,
        Trial::DryRun,
        Trial::Label,
        Trial::Ephemeral,
        Trial::Ephemeral,
        Trial::Workload,
    ]);
    let name = format!("random-{number}");
    let result = match trial {
        Trial::Workload => workload(world.client(), &name, &dice.pod(&name, false)).await,
        _ => created_pod(world, trial, &mut dice, &name).await,
    };
    (trial, result)
}

async fn created_pod(world: &World, trial: Trial, dice: &mut Dice, name: &str) -> Result {
    // A pod that is changed later should be stored: it has few slots.
    let wanted = match trial {
        Trial::Ephemeral => pod(name, dice.pick(&[USER, USER, VISITOR]), &json!({})),
        _ => dice.pod(name, true),
    };
    let (client, account) = (world.client(), wanted["spec"]["serviceAccountName"].as_str().unwrap());
    let slots = oracle::slots(&wanted);
    let with_options = wanted.to_string().contains("windowsOptions");
    let dry_run = if trial == Trial::DryRun { "?dryRun=All" } else { "" };
    let answer = client.create(&format!("{}{dry_run}", pods::PATH), &wanted).await;
    if with_options && wanted["spec"]["os"]["name"] == "linux" {
        // Nothing is filled in, and the API server itself does not take it.
        let refusal = answer.unwrap_err();
        assert!(refusal.code == 422 && refusal.message.contains("is invalid: "), "{refusal:?}: {wanted}");
        return Result::Refused(422);
    }
    let stored = match (answer, expected(&slots, account)) {
        (Ok(stored), Ok(expected)) => {
            assert_eq!(oracle::slots(&stored), expected, "{wanted}");
            stored
        }
        (Err(refusal), Err(expected)) => {
            assert_eq!(client.get(&pods::path(&wanted)).await.unwrap_err().code, 404);
            return assert_refused(&refusal, &expected, &wanted);
        }
        (answer, expected) => panic!("{answer:?}, not {expected:?}: {wanted}"),
    };
    let result = match trial {
        Trial::DryRun => {
            assert_eq!(client.get(&pods::path(&wanted)).await.unwrap_err().code, 404);
            return Result::Stored;
        }
        Trial::Label => {
            let change = json!({"metadata": {"labels": {"changed": "yes"}}});
            let labelled = client.merge(&pods::path(&wanted), &change).await.unwrap();
            assert_eq!(oracle::slots(&labelled), oracle::slots(&stored));
            Result::Stored
        }
        Trial::Ephemeral => ephemeral(client, dice, &stored, account).await,
        Trial::Pod | Trial::Workload => Result::Stored,
    };
    client.delete(&pods::path(&wanted)).await.unwrap();
    result
}

async fn ephemeral(client: &Client, dice: &mut Dice, stored: &Value, account: &str) -> Result {
    let change = json!({"spec": {"ephemeralContainers": [container("debugger", &dice.context(true))]}});
    let mut wanted = stored.clone();
    wanted["spec"]["ephemeralContainers"] = change["spec"]["ephemeralContainers"].clone();
    let before = oracle::slots(stored);
    let new = oracle::slots(&wanted).split_off(before.len());
    let path = pods::path(stored);
    match (client.merge_lists(&format!("{path}/ephemeralcontainers"), &change).await, expected(&new, account)) {
        (Ok(changed), Ok(expected)) => {
            assert_eq!(oracle::slots(&changed), [before, expected].concat(), "{change}");
            Result::Stored
        }
        (Err(refusal), Err(expected)) => {
            assert_eq!(oracle::slots(&client.get(&path).await.unwrap()), before);
            assert_refused(&refusal, &expected, &change)
        }
        (answer, expected) => panic!("{answer:?}, not {expected:?}: {change}"),
    }
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/apps/deployments";

fn deployment(name: &str, pod: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    })
}

/// A workload is never refused by the webhook. It says what its pods will meet.
async fn workload(client: &Client, name: &str, pod: &Value) -> Result {
    let wanted = deployment(name, pod);
    let answer = client.create_warned(DEPLOYMENTS, &wanted).await;
    let slots = oracle::slots(pod);
    let names: BTreeSet<&str> = slots.iter().filter_map(|slot| slot.name.as_deref()).collect();
    // The API server checks names and Linux in templates too.
    let invalid = names.iter().any(|name| !is_valid_name(name));
    if invalid || (pod["spec"]["os"]["name"] == "linux" && pod.to_string().contains("windowsOptions")) {
        let refusal = answer.unwrap_err();
        assert!(refusal.code == 422 && refusal.message.contains("is invalid: "), "{refusal:?}: {wanted}");
        return Result::Refused(422);
    }
    let (stored, warnings) = answer.unwrap();
    assert_eq!(stored["spec"]["template"]["spec"]["securityContext"], pod["spec"]["securityContext"]);
    client.delete(&format!("{DEPLOYMENTS}/{name}")).await.unwrap();
    let world = imagined(pod["spec"]["serviceAccountName"].as_str().unwrap());
    let wrong =
        names.iter().filter(|name| !world.specs.contains_key(**name) || !world.allowed.iter().any(|a| a == *name));
    let wrong: Vec<_> = wrong.collect();
    for name in &wrong {
        assert!(warnings.iter().any(|warning| warning.contains(**name)), "nothing on {name}: {warnings:?}, {wanted}");
    }
    // Whether its pods are kept to Windows nodes is no question of names or rights.
    let mut others = warnings.iter().filter(|warning| !warning.contains(" [linux-node]"));
    assert_eq!(others.next().is_none(), wrong.is_empty(), "{warnings:?}: {wanted}");
    if wrong.is_empty() { Result::Stored } else { Result::Warned }
}

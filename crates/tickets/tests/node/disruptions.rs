//! What stops and starts again: pods of the webhook and the broker, the kubelet, the node. Meanwhile pods are created, and the table says what became of them.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gmsa_test_support::{control_plane::Client, page};
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use crate::world::{ACCOUNT, WHO, World, application};

/// How long there are nothing but pods before and after.
const CALM: Duration = Duration::from_secs(3);
/// Calls of a preStop hook.
const CALLS: usize = 15;
const BETWEEN_PODS: Duration = Duration::from_millis(100);
/// How many pods may be refused where nothing is promised.
const ANY: usize = usize::MAX;
/// How many may be under way: what hangs does not pile up.
const UNDER_WAY: usize = 20;

/// When a pod was asked for, and why it was not created.
type Answer = (Instant, Result<(), String>);

/// Pods that are created at a steady rate, and not kept. It stops when it is dropped.
struct Load {
    answers: Arc<Mutex<Vec<Answer>>>,
    _task: JoinSet<()>,
}

impl Load {
    fn start(client: Client) -> Self {
        let answers = Arc::<Mutex<Vec<_>>>::default();
        let (mut task, shared) = (JoinSet::new(), Arc::clone(&answers));
        task.spawn(async move {
            let (mut ticks, mut under_way) = (tokio::time::interval(BETWEEN_PODS), JoinSet::new());
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            for number in 0.. {
                ticks.tick().await;
                while under_way.try_join_next().is_some() {}
                if under_way.len() >= UNDER_WAY {
                    continue;
                }
                let (client, answers) = (client.clone(), Arc::clone(&shared));
                under_way.spawn(async move {
                    let metadata =
                        json!({"name": format!("pod-{number}"), "annotations": {"gmsa-webhook/tickets": "webapp1"}});
                    let pod = json!({"metadata": metadata, "spec": application(&[("app", 1000)], &json!({}))});
                    let answer = client.create("/api/v1/namespaces/shop/pods?dryRun=All", &pod).await;
                    let answer = match answer {
                        Ok(pod) if pod["spec"]["initContainers"][0]["name"] == "gmsa-tickets" => Ok(()),
                        Ok(_) => Err("admitted without tickets".to_owned()),
                        Err(refusal) if refusal.code == 0 => Err(String::new()),
                        Err(refusal) => Err(refusal.message),
                    };
                    answers.lock().unwrap().push((Instant::now(), answer));
                });
            }
        });
        Self { answers, _task: task }
    }
}

/// Runs a disruption under load until `is_over`, and adds a row to the table: at most so many pods may be refused.
async fn under_load(world: &mut World, name: &str, may_refuse: usize, disrupt: impl AsyncFnOnce(&mut World)) {
    let load = Load::start(world.client().clone());
    sleep(CALM).await;
    let begun = Instant::now();
    disrupt(world).await;
    let lasted = begun.elapsed().as_secs_f64();
    sleep(CALM).await;
    let answers = std::mem::take(&mut *load.answers.lock().unwrap());
    drop(load);
    let refused: Vec<_> = answers.iter().filter_map(|(at, answer)| Some((at, answer.as_ref().err()?))).collect();
    let unanswered = refused.iter().filter(|(_, message)| message.is_empty()).count();
    let last = refused.iter().map(|(at, _)| at.saturating_duration_since(begun)).max();
    let messages: Vec<_> =
        refused.iter().map(|(_, message)| message.as_str()).filter(|message| !message.is_empty()).collect();
    assert_eq!(world.run(&format!("kubectl -n shop exec deployment/web -c app -- {WHO}")), ACCOUNT, "{name}");
    let row = [
        name.to_owned(),
        format!("{lasted:.1}"),
        answers.len().to_string(),
        messages.len().to_string(),
        unanswered.to_string(),
        last.map_or("–".to_owned(), |last| format!("{:.1}", last.as_secs_f64())),
    ];
    println!("        {}", row.join(" | "));
    world.disruptions.push(row.to_vec());
    assert!(messages.len() <= may_refuse, "{name}: {messages:#?}");
}

/// The table on the page.
pub fn publish(world: &World, write: bool) {
    let head = ["disruption", "lasted, s", "pods created", "refused", "no API server", "last failure after, s"];
    let mut report = page::table(&head, world.disruptions.iter().cloned());
    if let Some(waiting) = world.waiting {
        let cost = format!("{waiting:.2} cores, with its kubelet and containerd.");
        report = [report, cost].join("\n- 30 pods that wait for tickets cost the node ");
    }
    report = [report, page::machine(Some(&world.node.plane.version))].join("\n");
    page::publish("node", "e2e-node", report.trim(), write);
}

pub async fn rollouts_and_evictions(world: &mut World) {
    for name in ["gmsa-webhook", "gmsa-tickets"] {
        under_load(world, &format!("rollout of `{name}`"), 0, async |world| {
            world.run(&format!("kubectl -n {name} rollout restart deployment/{name}"));
            world.rolled_out(name, name);
        })
        .await;
    }
    for name in ["gmsa-webhook", "gmsa-tickets"] {
        under_load(world, &format!("`helm upgrade` and rollback of `{name}`"), 0, async |world| {
            world.run(&format!("helm upgrade {name} charts/{name} -n {name} --reuse-values --set logLevel=debug"));
            world.rolled_out(name, name);
            world.run(&format!("helm rollback {name} -n {name}"));
            world.rolled_out(name, name);
        })
        .await;
    }
    under_load(world, "drain of the node", 0, async |world| {
        let drain = "kubectl drain node --ignore-daemonsets --delete-emptydir-data --force --timeout=240s";
        let mut draining = world.command(drain).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // The budget holds what is left, until the node takes new pods: there is no other.
        world.run("until kubectl -n gmsa-webhook get pods --field-selector=status.phase=Pending -o name | grep -q .; do sleep 0.5; done");
        while draining.try_wait().unwrap().is_none() {
            world.run("kubectl uncordon node");
            sleep(Duration::from_secs(1)).await;
        }
        for (namespace, name) in [("gmsa-webhook", "gmsa-webhook"), ("gmsa-tickets", "gmsa-tickets"), ("shop", "web")] {
            world.rolled_out(namespace, name);
        }
    })
    .await;
}

pub async fn kills(world: &mut World) {
    // Until its node knows of it, a replica that is gone is still asked.
    under_load(world, "`kill -9` of one replica of the webhook", ANY, async |world| {
        world.run("pgrep -x gmsa-webhook | head -n 1 | xargs kill -9");
        sleep(Duration::from_secs(2)).await;
        world.rolled_out("gmsa-webhook", "gmsa-webhook");
    })
    .await;
    under_load(world, "`kill -9` of both", ANY, async |world| {
        world.run("pgrep -x gmsa-webhook | xargs kill -9");
        sleep(Duration::from_secs(2)).await;
        world.rolled_out("gmsa-webhook", "gmsa-webhook");
    })
    .await;
    under_load(world, "`kill -9` of both replicas of the broker", 0, async |world| {
        world.run("pgrep -f 'gmsa-tickets [s]erve' | xargs kill -9");
        sleep(Duration::from_secs(2)).await;
        world.rolled_out("gmsa-tickets", "gmsa-tickets");
    })
    .await;
    under_load(world, "`kill -9` of the agent of a pod", 0, async |world| {
        world.run("pgrep -f 'gmsa-tickets [a]gent' | xargs kill -9");
        world.rolled_out("shop", "web");
    })
    .await;
}

/// A kubelet that starts has no tokens of before: it requests new ones, and replaces the files of running pods.
pub async fn tokens_are_replaced(world: &mut World) {
    let token = |world: &World| {
        let uid = world.run("kubectl -n shop get pods -l app=web -o 'jsonpath={.items[0].metadata.uid}'");
        let folder = world.node.volume(&uid, "kubernetes.io~projected/gmsa-tickets-token");
        fs::read_to_string(folder.join("token")).unwrap()
    };
    let before = token(world);
    under_load(world, "`kill -9` of the kubelet", 0, async |world| {
        world.node.kill_kubelet();
        world.node.start_kubelet().await;
        let begun = Instant::now();
        while token(world) == before {
            assert!(begun.elapsed() < Duration::from_secs(120), "the kubelet keeps the token");
            sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
    // The agent that starts now has no other.
    world.run("pgrep -f 'gmsa-tickets [a]gent' | xargs kill -9");
    let ready = "kubectl -n shop exec deployment/web -c gmsa-tickets -- /gmsa-tickets agent ready";
    world.run(&format!("for _ in $(seq 60); do {ready} 2>&1 && exit; sleep 1; done; exit 1"));
}

/// A pod uses its tickets until its grace period has ended.
pub async fn termination(world: &mut World) {
    let calls = world.node.folder().join("calls");
    fs::create_dir_all(&calls).unwrap();
    let metadata = json!({"name": "ending", "annotations": {"gmsa-webhook/tickets": "webapp1"}});
    let mut spec = application(&[("app", 0)], &json!({"terminationGracePeriodSeconds": 45}));
    // It ends when it is asked to: only the hook delays its end.
    spec["containers"][0]["command"] = json!(["sh", "-c", format!("{WHO} && trap exit TERM; sleep infinity & wait")]);
    let call = format!("for call in $(seq {CALLS}); do {WHO} >>/calls/printed 2>&1; sleep 1; done");
    spec["containers"][0]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sh", "-c", call]}}});
    spec["containers"][0]["volumeMounts"] = json!([{"name": "calls", "mountPath": "/calls"}]);
    spec["volumes"] = json!([{"name": "calls", "hostPath": {"path": calls}}]);
    let pods = "/api/v1/namespaces/shop/pods";
    let pod = json!({"metadata": metadata, "spec": spec});
    let injected = world.client().create(&format!("{pods}?dryRun=All"), &pod).await.unwrap();
    // As injected, but for the interval.
    let mut spec = injected["spec"].clone();
    let args = spec["initContainers"][0]["args"].as_array_mut().unwrap();
    args.retain(|argument| !argument.as_str().unwrap().starts_with("--check-interval"));
    args.push(json!("--check-interval=2s"));
    let pod = json!({"metadata": {"name": "ending"}, "spec": spec});
    world.client().create(pods, &pod).await.unwrap();
    world.run("kubectl -n shop wait --for=condition=Ready pod/ending --timeout=120s");
    world.run("kubectl -n shop delete pod ending --timeout=120s");
    let printed = fs::read_to_string(calls.join("printed")).unwrap();
    assert_eq!(printed, ACCOUNT.repeat(CALLS));
}

pub async fn reboot(world: &mut World) {
    under_load(world, "reboot of the only node", ANY, async |world| {
        world.node.reboot().await;
        for (namespace, name) in [("gmsa-webhook", "gmsa-webhook"), ("gmsa-tickets", "gmsa-tickets"), ("shop", "web")] {
            // A status of before is there for a moment.
            world.run(&format!(
                "until kubectl -n {namespace} get pods -o 'jsonpath={{.items[*].status.containerStatuses[*].restartCount}}' | grep -q '[1-9]'; do sleep 0.5; done"
            ));
            world.rolled_out(namespace, name);
        }
    })
    .await;
    world.rolled_out("gmsa-tickets", "gmsa-tickets");
}

//! `probe` while its pod changes. What it says of each node is in `tests/cli/simulated`.

use serde_json::{Value, json};

use super::{
    cluster::{healthy, run},
    nodes::{created, started},
    support::{
        SimulatedApi, Verb,
        exec::{answer_each, transcript},
    },
    text,
};

const PROBE: [&str; 5] = ["probe", "--credspec", "webapp1", "--serviceaccount", "shop:web"];
const POD: &str = "/namespaces/shop/pods/gmsa-probe-";

/// The pod of the probe, after this many looks at it.
async fn looked_at(api: &SimulatedApi, looks: usize) -> Value {
    api.wait_for(Verb::Get, POD, looks).await;
    api.object("pods", "shop", &created(api).pop().unwrap().1).unwrap()
}

/// A real node needs longer than three looks: no scheduler has tried the pod yet, its sandbox is made, its image is pulled.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_by_itself_is_waited_for() {
    futures::future::join_all([None, Some("False"), Some("True")].map(async |sandbox| {
        let api = healthy().await;
        let answers = transcript("network-service");
        answer_each(&api, move |_, command| answers.get(command).cloned());
        let node = async {
            let mut pod = looked_at(&api, 1).await;
            if let Some(status) = sandbox {
                pod = started(pod, "win1", &json!({"waiting": {"reason": "ContainerCreating"}}));
                pod["status"]["conditions"] = json!([{"type": "PodReadyToStartContainers", "status": status}]);
                api.apply(pod);
            }
            pod = looked_at(&api, 5).await;
            api.apply(started(pod, "win1", &json!({"running": {}})));
        };
        let (output, ()) = tokio::join!(run(&api, &PROBE), node);
        let expected = "pass  identity  win1: a container gets the identity of webapp1\n";
        assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), (expected, "", Some(0)));
        assert_eq!(api.count(Verb::Delete, POD), 1);
    }))
    .await;
}

/// Ctrl-C, and what a cancelled job of a pipeline gets.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_removes_the_pods() {
    use rustix::process::{Pid, Signal, kill_process};

    for signal in [Signal::INT, Signal::TERM] {
        let api = healthy().await;
        let kubeconfig = super::cluster::kubeconfig(&api);
        let mut command = super::program(std::path::Path::new("."));
        command.arg("--kubeconfig").arg(kubeconfig.path()).args(PROBE);
        let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        looked_at(&api, 1).await;
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        let expected = ("", "error: interrupted\n", Some(2));
        assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), expected);
        assert_eq!(api.count(Verb::Delete, POD), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_somebody_replaces_is_not_asked() {
    let api = healthy().await;
    let replaced = async {
        let mut pod = looked_at(&api, 1).await;
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        pod["metadata"]["uid"] = Value::Null;
        api.replace("pods", started(pod, "win1", &json!({"running": {}})));
        name
    };
    let (output, name) = tokio::join!(run(&api, &PROBE), replaced);
    let expected = format!(
        "skip  pod  win1: could not be checked: pod shop/{name} was replaced by another client [not-checked]\n"
    );
    assert!(text(&output.stdout).starts_with(&expected), "{}", text(&output.stdout));
    assert_eq!((output.status.code(), api.count(Verb::Get, "/exec")), (Some(2), 0));
}

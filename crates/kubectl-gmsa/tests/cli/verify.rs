//! `verify`, against a container that answers from transcripts (`tests/verify/CASE/transcript`), over the same web socket as that
//! of a real API server.
//!
//! A transcript is what `kubectl exec` shows: `> COMMAND`, what it prints, and `exit CODE` where that is not 0; `hangs` is a command
//! that never ends. A command that is not there is one that the image does not have. What is in a folder with `german` in its
//! name is sent in code page 850, as a German console writes it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{healthy, kind, pod, run},
    compare, connect, program, shown,
    support::{
        Fault, SimulatedApi, Verb,
        exec::{Transcript, answer_each, code_page_850, parse, transcript},
    },
    text,
};

/// Lets the container answer by a transcript.
fn answer_by(api: &SimulatedApi, transcript: Transcript) {
    answer_each(api, move |_, command| transcript.get(command).cloned());
}

/// The pod of the healthy cluster, with its container running.
fn running() -> Value {
    let mut pod = pod("web", &Value::Null);
    let contents = pod_contents().to_string();
    pod["spec"]["securityContext"]["windowsOptions"] =
        json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": contents});
    pod["status"]["containerStatuses"] = json!([{"name": "iis", "state": {"running": {}}}]);
    pod
}

fn pod_contents() -> Value {
    json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}})
}

async fn cluster() -> SimulatedApi {
    let api = healthy().await;
    api.apply(running());
    api
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_found_in_its_transcript() {
    let api = cluster().await;
    let mut wrong = Vec::new();
    assert!(cases().len() > 15, "the cases are gone");
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let encode = if name.contains("german") { code_page_850 } else { |text: &str| text.as_bytes().to_vec() };
        answer_by(&api, parse(&fs::read_to_string(case.join("transcript")).unwrap(), encode));
        // A command that never ends is not waited for long.
        let mut arguments = vec!["verify", "shop/web"];
        if name.contains("hangs") {
            arguments.extend(["--timeout", "1"]);
        }
        let output = run(&api, &arguments).await;
        let code = format!("{}\n", output.status.code().unwrap());
        wrong.extend(compare(&case, "stdout", text(&output.stdout)));
        wrong.extend(compare(&case, "stderr", text(&output.stderr)));
        wrong.extend(compare(&case, "code", &code));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The transcript of the healthy container.
fn good() -> Transcript {
    transcript("healthy")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_ticket_is_printed() {
    let api = cluster().await;
    answer_by(&api, good());
    for format in ["table", "json"] {
        let output = run(&api, &["verify", "shop/web", "-o", format]).await;
        assert_eq!(output.status.code(), Some(0));
        let all = [output.stdout, output.stderr].concat();
        for secret in ["krbtgt/CONTOSO.COM", "Session Key", "DC01", "0x60a10000"] {
            assert!(!text(&all).contains(secret), "{secret}");
        }
    }
    let output = run(&api, &["verify", "shop/web", "-o", "json", "--service", "http/other"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = printed["checks"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["status"], &last["rule"]), (&json!("skip"), &json!("not-checked")));
    let commands: Vec<String> = api.requests(Verb::Get, "/exec?").into_iter().map(|request| request.path).collect();
    assert!(commands.iter().all(|path| path.contains("container=iis") && !path.contains("tty=true")), "{commands:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_through_a_proxy() {
    let api = cluster().await;
    answer_by(&api, good());
    let direct = run(&api, &["verify", "shop/web"]).await;
    let address = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (at, log) = connect::proxy(connect::Proxy::Socks, address).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config: Value = serde_json::from_str(&api.kubeconfig()).unwrap();
    config["clusters"][0]["cluster"] =
        json!({"server": "http://k8s.example.test:6443", "proxy-url": format!("socks5://{at}")});
    fs::write(folder.path().join("config"), config.to_string()).unwrap();
    let mut command = program(folder.path());
    command.args(["--kubeconfig", "config", "verify", "shop/web"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (text(&direct.stdout), Some(0)));
    assert_eq!(connect::heard(&log), ["k8s.example.test:6443"]);
}

/// Verifies, and gives the checks, a line each, and the exit code.
async fn verified(api: &SimulatedApi, arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(api, &[&["verify"], arguments].concat()).await;
    (text(&output.stdout).to_owned() + text(&output.stderr), output.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_run_commands_learns_which_right_is_missing() {
    let api = cluster().await;
    answer_by(&api, good());
    let message = "pods \"web\" is forbidden: User \"jane\" cannot create resource \"pods/exec\"";
    api.fault(Verb::Get, "/exec?", 1, Fault::Refuse { code: 403, reason: "Forbidden", message, retry_after: None });
    let said = shown(&run(&api, &["verify", "shop/web"]).await);
    assert_printed("verify-forbidden", &[("the run", said)]);
    assert_eq!(api.count(Verb::Get, "/exec?"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_could_not_be_run_is_no_fault_of_the_image_or_the_network() {
    let dialing = "error dialing backend: dial tcp 10.0.0.9:10250: connect: connection refused";
    let mut runs = Vec::new();
    // The client repeats the last two.
    for (code, message) in [(500, dialing), (429, "too many requests"), (503, "unable to handle the request")] {
        let api = cluster().await;
        answer_by(&api, good());
        api.fault(Verb::Get, "/exec?", usize::MAX, Fault::Refuse { code, reason: "", message, retry_after: None });
        runs.push((code.to_string(), shown(&run(&api, &["verify", "shop/web", "--timeout", "1"]).await)));
    }
    assert_printed("verify-not-started", &runs);
}

/// A workload whose pods have the label `app: web`, and the reference to it by what it controls.
fn workload(api: &SimulatedApi, of: &str, name: &str, owner: Option<Value>) -> Value {
    let api_version = if of == "Job" { "batch/v1" } else { "apps/v1" };
    api.apply(json!({
        "apiVersion": api_version, "kind": of,
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": owner.into_iter().collect::<Vec<_>>()},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }));
    let stored = api.object(&format!("{}s", of.to_lowercase()), "shop", name).unwrap();
    json!({"apiVersion": api_version, "kind": of, "name": name, "uid": stored["metadata"]["uid"], "controller": true})
}

/// The Deployment `web`, and the reference to its `ReplicaSet`.
fn deployment(api: &SimulatedApi) -> Value {
    api.define(kind("apps/v1", "Deployment", "deployments", true));
    api.define(kind("apps/v1", "ReplicaSet", "replicasets", true));
    let deployment = workload(api, "Deployment", "web", None);
    workload(api, "ReplicaSet", "web-1", Some(deployment))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_a_stranger_is_not_asked() {
    let api = cluster().await;
    answer_by(&api, good());
    let replica_set = deployment(&api);
    let other = workload(&api, "ReplicaSet", "other", None);
    api.define(kind("batch/v1", "Job", "jobs", true));
    let job = workload(&api, "Job", "web", None);
    let stranger = |owner: Option<&Value>| {
        let mut pod = running();
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod["metadata"]["ownerReferences"] = json!(owner.into_iter().collect::<Vec<_>>());
        pod["status"]["phase"] = json!("Running");
        api.apply(pod);
    };
    let made_up = |field: &str, value: &str| {
        let mut owner = replica_set.clone();
        owner[field] = json!(value);
        owner
    };
    let gone = made_up("name", "gone");
    // A kind that is not read, with the right uid.
    let mut unread = replica_set.clone();
    unread["apiVersion"] = json!("example.com/v1");
    unread["kind"] = json!("Deployment");
    unread["uid"] = api.object("deployments", "shop", "web").unwrap()["metadata"]["uid"].clone();
    let uid = made_up("uid", "made-up");
    let mut runs = Vec::new();
    for (title, named, owner) in [
        ("no owner", "deploy/web", None),
        ("another owner", "deploy/web", Some(&other)),
        ("a Job", "deploy/web", Some(&job)),
        ("a kind that is not read", "deploy/web", Some(&unread)),
        ("asked for the Job", "job/web", Some(&replica_set)),
        ("an owner that is gone", "deploy/web", Some(&gone)),
        ("a made-up uid", "deploy/web", Some(&uid)),
    ] {
        stranger(owner);
        runs.push((title, shown(&run(&api, &["verify", "-n", "shop", named]).await)));
    }
    stranger(Some(&replica_set));
    api.fault(Verb::Get, "/replicasets/web-1", 1, Fault::forbidden());
    runs.push(("an owner that may not be read", shown(&run(&api, &["verify", "-n", "shop", "deploy/web"]).await)));
    stranger(None);
    let mut own = running();
    own["metadata"]["name"] = json!("web-own");
    own["metadata"]["labels"] = json!({"app": "web"});
    own["metadata"]["ownerReferences"] = json!([job]);
    api.apply(own);
    assert_eq!(verified(&api, &["-n", "shop", "job/web"]).await.1, Some(0));
    let asked = api.requests(Verb::Get, "/exec?");
    assert!(!asked.is_empty() && asked.iter().all(|request| request.path.contains("/pods/web-own/exec?")), "{asked:?}");
    api.delete("pods", "shop", "web");
    api.delete("pods", "shop", "web-own");
    runs.push(("no pod", shown(&run(&api, &["verify", "-n", "shop", "deploy/web"]).await)));
    assert_printed("verify-strangers", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_found_by_its_workload_and_each_container_is_verified() {
    let api = cluster().await;
    answer_by(&api, good());
    api.define(kind("apps/v1", "StatefulSet", "statefulsets", true));
    let replica_set = deployment(&api);
    let mut pod = running();
    pod["metadata"]["labels"] = json!({"app": "web"});
    pod["metadata"]["ownerReferences"] = json!([replica_set]);
    pod["status"]["phase"] = json!("Running");
    pod["spec"]["initContainers"] =
        json!([{"name": "setup", "image": "x"}, {"name": "proxy", "image": "x", "restartPolicy": "Always"}]);
    pod["status"]["initContainerStatuses"] = json!([
        {"name": "setup", "state": {"terminated": {"exitCode": 0}}}, {"name": "proxy", "state": {"running": {}}}
    ]);
    api.apply(pod);
    let (healthy, _) = verified(&api, &["shop/web"]).await;
    for named in ["deploy/web", "Deployment/web", "rs/web-1", "pod/web", "web"] {
        assert_eq!(verified(&api, &["-n", "shop", named]).await, (healthy.clone(), Some(0)), "{named}");
    }
    let mut runs = Vec::new();
    for words in ["shop/web --all-containers", "shop/web -c proxy", "-n shop deploy/none", "-n shop sts/A"] {
        let arguments: Vec<&str> = ["verify"].into_iter().chain(words.split(' ')).collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("verify-containers", &runs);
}

/// What makes a pod another one.
type Change = fn(&mut Value);

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_have_an_identity_is_not_asked() {
    let api = cluster().await;
    answer_by(&api, good());
    let change = |change: fn(&mut Value)| {
        let mut pod = running();
        change(&mut pod);
        api.apply(pod);
    };
    let changes: [(&str, Change); 6] = [
        ("for Linux", |pod| pod["spec"]["os"] = json!({"name": "linux"})),
        ("without GMSA", |pod| pod["spec"]["securityContext"] = Value::Null),
        ("a hostProcess", |pod| pod["spec"]["securityContext"]["windowsOptions"]["hostProcess"] = json!(true)),
        ("without contents", |pod| {
            pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = Value::Null;
        }),
        ("a domain with a command in it", |pod| {
            let contents = json!({"DomainJoinConfig": {"DnsName": "a & b", "MachineAccountName": "x"}}).to_string();
            pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(contents);
        }),
        ("that crashes", |pod| {
            pod["status"]["containerStatuses"] =
                json!([{"name": "iis", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}]);
        }),
    ];
    let mut runs = Vec::new();
    for (title, changed) in changes {
        change(changed);
        runs.push((title, shown(&run(&api, &["verify", "shop/web"]).await)));
    }
    assert_eq!(api.count(Verb::Get, "/exec?"), 0);
    for words in ["shop/web -c other", "shop/none", "a/b/c"] {
        let arguments: Vec<&str> = ["verify"].into_iter().chain(words.split(' ')).collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("verify-no-identity", &runs);
}

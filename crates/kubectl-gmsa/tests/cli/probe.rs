//! `probe`, on simulated Windows nodes: each runs what is put on it, or says why not, as its kubelet does.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    process::Output,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{configurations, healthy, kind, run},
    shown,
    support::{
        Fault, SimulatedApi, Verb,
        exec::{Ending, Transcript, answer_each, transcript},
    },
    text,
};

/// What becomes of a pod on a node.
#[derive(Clone)]
enum Fate {
    /// Its container runs, and answers by this transcript.
    Runs(Transcript),
    /// Its sandbox is not created.
    NoSandbox(&'static str),
    /// Its image is not pulled.
    NoImage,
    /// Nothing happens to it.
    Waits,
}

/// A cluster whose nodes decide what becomes of pods. It has the node `win1`, of Windows Server 2022.
async fn cluster(fates: &[(&'static str, Fate)]) -> SimulatedApi {
    let api = healthy().await;
    for known in [kind("v1", "Event", "events", true), kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", false)]
    {
        api.define(known);
    }
    for (name, _) in fates.iter().filter(|(name, _)| *name != "win1") {
        api.apply(node(name, "10.0.26100"));
    }
    api
}

fn node(name: &str, build: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

const ON_NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";

/// Runs the program while the nodes do their work.
async fn probe(api: &SimulatedApi, fates: &[(&'static str, Fate)], arguments: &[&str]) -> Output {
    let arguments = [&["probe", "--credspec", "webapp1", "--serviceaccount", "shop:web"], arguments].concat();
    tokio::select! {
        output = run(api, &arguments) => output,
        () = kubelets(api, fates) => unreachable!("the nodes never end"),
    }
}

/// What the scheduler and the kubelets do with the pods that are created.
async fn kubelets(api: &SimulatedApi, fates: &[(&'static str, Fate)]) {
    let fates: HashMap<&str, Fate> = fates.iter().cloned().collect();
    let running: Arc<Mutex<HashMap<String, Transcript>>> = Arc::default();
    let transcripts = Arc::clone(&running);
    answer_each(api, move |path, command| {
        let pod = path.split('/').nth(6)?;
        transcripts.lock().unwrap().get(pod)?.get(command).cloned()
    });
    let mut seen = BTreeSet::new();
    loop {
        for (namespace, name) in created(api) {
            let Some(mut pod) = api.object("pods", &namespace, &name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            let node = pod.pointer(ON_NODE).and_then(Value::as_str).unwrap_or("win1").to_owned();
            pod["spec"]["nodeName"] = json!(node);
            // What the webhook fills in.
            pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(
                json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}}).to_string()
            );
            let (status, event) = happens(&fates[&*node], &name, &running);
            pod["status"] = status;
            let uid = pod["metadata"]["uid"].clone();
            api.apply(pod);
            if let Some((reason, message)) = event {
                api.apply(json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.1"), "namespace": namespace},
                    "involvedObject": {"uid": uid}, "type": "Warning", "reason": reason, "message": message,
                }));
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The status of a pod, and an event about it.
fn happens(
    fate: &Fate,
    pod: &str,
    running: &Mutex<HashMap<String, Transcript>>,
) -> (Value, Option<(&'static str, &'static str)>) {
    let waits = |reason: &str, message: &str| {
        json!({"phase": "Pending", "containerStatuses": [
            {"name": "probe", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}
        ]})
    };
    match fate {
        Fate::Runs(transcript) => {
            running.lock().unwrap().insert(pod.to_owned(), transcript.clone());
            let status = json!({"phase": "Running", "containerStatuses": [
                {"name": "probe", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}
            ]});
            (status, None)
        }
        Fate::NoSandbox(message) => (waits("ContainerCreating", ""), Some(("FailedCreatePodSandBox", message))),
        Fate::NoImage => (waits("ImagePullBackOff", "Back-off pulling image \"x\""), None),
        Fate::Waits => (waits("ContainerCreating", ""), None),
    }
}

/// The namespaces and names of the pods that were created.
fn created(api: &SimulatedApi) -> Vec<(String, String)> {
    let name = |namespace: &str, request: Value| {
        Some((namespace.to_owned(), request["metadata"]["name"].as_str()?.to_owned()))
    };
    let of = |namespace: &'static str| {
        let requests = api.requests(Verb::Create, &format!("/namespaces/{namespace}/pods"));
        requests.into_iter().filter_map(move |request| name(namespace, request.body))
    };
    ["shop", "gmsa", "nodes"].into_iter().flat_map(of).collect()
}

/// The pods of the probe that are there.
fn left(api: &SimulatedApi) -> usize {
    created(api).iter().filter(|(namespace, name)| api.object("pods", namespace, name).is_some()).count()
}

const RPC: &str = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";

#[tokio::test(flavor = "multi_thread")]
async fn each_node_has_its_first_cause() {
    let fates = [
        ("win1", Fate::Runs(transcript("network-service"))),
        ("win2", Fate::NoSandbox(RPC)),
        ("win3", Fate::Runs(transcript("no-secure-channel"))),
        ("win4", Fate::NoImage),
        ("win5", Fate::Waits),
    ];
    let api = cluster(&fates).await;
    let mut broken = node("win5", "10.0.26100");
    broken["status"]["conditions"][0] =
        json!({"type": "Ready", "status": "False", "message": "container runtime is down"});
    api.apply(broken);
    let mut cordoned = node("win6", "10.0.20348");
    cordoned["spec"]["unschedulable"] = json!(true);
    api.apply(cordoned);
    api.apply(node("win7", "10.0.18362"));
    let output = probe(&api, &fates, &["--all-nodes"]).await;
    assert_printed("probe-each-node", &[("--all-nodes", shown(&output))]);
    assert_eq!((left(&api), api.count(Verb::Delete, "/namespaces/shop/pods/gmsa-probe-")), (0, 4));
}

/// A real node needs longer than three looks: no scheduler has tried the pod yet, its sandbox is made, its image is pulled.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_by_itself_is_waited_for() {
    const POD: &str = "/namespaces/shop/pods/gmsa-probe-";
    let api = cluster(&[("win1", Fate::Waits)]).await;
    let answers = transcript("network-service");
    answer_each(&api, move |_, command| answers.get(command).cloned());
    let node = async {
        api.wait_for(Verb::Get, POD, 4).await;
        let (_, name) = created(&api).pop().unwrap();
        let mut pod = api.object("pods", "shop", &name).unwrap();
        pod["spec"]["nodeName"] = json!("win1");
        pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] =
            json!(json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}}).to_string());
        let of = |ready: bool, state: Value| json!([{"name": "probe", "image": "x", "imageID": "", "ready": ready, "restartCount": 0, "state": state}]);
        let waits = of(false, json!({"waiting": {"reason": "ContainerCreating"}}));
        for (sandbox, looks) in [("False", 8), ("True", 12)] {
            let conditions = json!([{"type": "PodReadyToStartContainers", "status": sandbox}]);
            pod["status"] = json!({"phase": "Pending", "conditions": conditions, "containerStatuses": waits});
            api.apply(pod.clone());
            api.wait_for(Verb::Get, POD, looks).await;
        }
        pod["status"] = json!({"phase": "Running", "containerStatuses": of(true, json!({"running": {}}))});
        api.apply(pod);
    };
    let probe = ["probe", "--credspec", "webapp1", "--serviceaccount", "shop:web"];
    let (output, ()) = tokio::join!(run(&api, &probe), node);
    assert!(text(&output.stdout).starts_with("pass  identity  win1: "), "{}", text(&output.stdout));
    assert_eq!((text(&output.stderr), output.status.code(), left(&api)), ("", Some(0), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pod_is_short_lived_limited_and_on_its_node() {
    let fates = [("win1", Fate::Runs(transcript("network-service")))];
    let api = cluster(&fates).await;
    let mut tainted = api.object("nodes", "", "win1").unwrap();
    tainted["spec"]["taints"] = json!([
        {"key": "os", "value": "windows", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    ]);
    api.apply(tainted);
    let output = probe(&api, &fates, &["--node", "win1", "--timeout", "5m"]).await;
    assert_eq!(
        (text(&output.stdout), output.status.code()),
        ("pass  identity  win1: a container gets the identity of webapp1\n", Some(0))
    );
    let created = api.requests(Verb::Create, "/namespaces/shop/pods").pop().unwrap().body;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gmsa-probe-") && name.len() == 27, "{name}");
    assert_eq!(
        created,
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "gmsa-probe", "app.kubernetes.io/managed-by": "kubectl-gmsa"}},
            "spec": {
                "os": {"name": "windows"},
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win1"]}]}
                ]}}},
                "tolerations": [{"key": "os", "effect": "NoSchedule", "operator": "Exists"}],
                "restartPolicy": "Never",
                "activeDeadlineSeconds": 600,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "serviceAccountName": "web",
                "securityContext": {"runAsNonRoot": true, "windowsOptions": {
                    "gmsaCredentialSpecName": "webapp1", "runAsUserName": "NT AUTHORITY\\NETWORK SERVICE"
                }},
                "containers": [{
                    "name": "probe",
                    "image": "mcr.microsoft.com/windows/servercore:ltsc2022",
                    "command": ["cmd", "/c", "ping -t 127.0.0.1 >nul"],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
                }],
            }
        })
    );
    assert_eq!(left(&api), 0);
}

/// The answer of the API server to a pod that it does not create.
fn refusal(message: &'static str) -> Fault {
    Fault::Refuse { code: 403, reason: "Forbidden", message, retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_refused_says_why() {
    let mut runs = Vec::new();
    for message in [
        r#"admission webhook "admission-webhook.windows-gmsa.sigs.k8s.io" denied the request: service account "web" in namespace shop is not authorized to `use` GMSA cred spec "webapp1""#,
        r#"pods "x" is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "shop""#,
    ] {
        let api = cluster(&[]).await;
        api.fault(Verb::Create, "/namespaces/shop/pods", usize::MAX, refusal(message));
        runs.push((message, shown(&probe(&api, &[], &[]).await)));
        assert_eq!(api.count(Verb::Delete, "/pods/"), 0);
    }
    assert_printed("probe-refused", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_be_deleted_is_named_with_the_command() {
    let fates = [("win1", Fate::Runs(transcript("network-service")))];
    let api = cluster(&fates).await;
    api.fault(Verb::Delete, "/pods/", usize::MAX, refusal("no"));
    let output = probe(&api, &fates, &[]).await;
    let created = api.requests(Verb::Create, "/namespaces/shop/pods").pop().unwrap().body;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert_printed("probe-left-behind", &[("the run", shown(&output).replace(name, "POD"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_probed_is_said_before_anything_is_made() {
    let api = cluster(&[]).await;
    let mut linux = node("linux", "");
    linux["metadata"]["labels"] = json!({"kubernetes.io/os": "linux"});
    api.apply(linux);
    let mut runs = Vec::new();
    for arguments in ["--node win9", "--node linux", "--runtime-class hyperv", "--timeout 0", "--logs logs"] {
        let words: Vec<&str> = arguments.split(' ').collect();
        runs.push((arguments, shown(&probe(&api, &[], &words).await)));
    }
    api.delete("nodes", "", "linux");
    api.delete("nodes", "", "win1");
    runs.push(("without a Windows node", shown(&probe(&api, &[], &[]).await)));
    assert_printed("probe-cannot", &runs);
    assert_eq!(api.count(Verb::Create, "/namespaces/shop/pods"), 0);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_removes_the_pods() {
    let fates = [("win1", Fate::Waits)];
    let api = cluster(&fates).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config"), api.kubeconfig()).unwrap();
    let mut command = super::program(folder.path());
    command.args(["--kubeconfig", "config", "probe", "--credspec", "webapp1", "--serviceaccount", "shop:web"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let id = rustix::process::Pid::from_child(&child);
    let interrupted = async {
        api.wait_for(Verb::Get, "/namespaces/shop/pods/gmsa-probe-", 1).await;
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap()
    };
    let output = tokio::select! {
        output = interrupted => output,
        () = kubelets(&api, &fates) => unreachable!("the nodes never end"),
    };
    assert_eq!(
        (text(&output.stdout), text(&output.stderr), output.status.code()),
        ("", "error: interrupted\n", Some(2))
    );
    assert_eq!((left(&api), api.count(Verb::Delete, "/namespaces/shop/pods/gmsa-probe-")), (0, 1));
}

/// The hostProcess pods that were created in a namespace.
fn host_process_pods(api: &SimulatedApi, namespace: &str) -> Vec<Value> {
    let pods = api.requests(Verb::Create, &format!("/namespaces/{namespace}/pods")).into_iter().map(|pod| pod.body);
    pods.filter(|pod| pod.to_string().contains("\"hostProcess\":true")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_where_administrators_chose() {
    let fates = [("win1", Fate::Runs(transcript("network-service")))];
    let api = cluster(&fates).await;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let logs = ["--yes", "--logs", logs.to_str().unwrap()];
    let runs = std::cell::RefCell::new(Vec::new());
    let refused = async |title: &'static str, more: &[&str]| {
        let output = probe(&api, &fates, &[&logs[..], more].concat()).await;
        runs.borrow_mut().push((title, shown(&output)));
        assert_eq!(created(&api), []);
    };
    refused("in the namespace of the workload", &["--logs-namespace", "shop"]).await;
    refused("in no namespace", &["--logs-namespace", "a/b"]).await;
    let place = |namespace: &'static str| {
        configurations(&api, |webhook| webhook["clientConfig"]["service"]["namespace"] = json!(namespace));
    };
    place("shop");
    refused("the webhook is in the namespace of the workload", &[]).await;
    place("../secrets");
    refused("the webhook is in no namespace", &[]).await;
    configurations(&api, |webhook| webhook["clientConfig"] = json!({"url": "https://webhook"}));
    refused("the webhook has a URL", &[]).await;
    api.fault(Verb::List, "webhookconfigurations", usize::MAX, refusal("no"));
    refused("the configurations may not be read", &[]).await;

    let denied = "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": hostProcess";
    api.fault(Verb::Create, "/namespaces/nodes/pods", 1, refusal(denied));
    let output = probe(&api, &fates, &[&logs[..], &["--logs-namespace", "nodes"]].concat()).await;
    runs.borrow_mut().push(("the pod is refused", shown(&output)));
    // One that cannot be deleted is named with its own namespace.
    api.fault(Verb::Delete, "/namespaces/nodes/pods/", usize::MAX, refusal("no"));
    let output = probe(&api, &fates, &[&logs[..], &["--logs-namespace", "nodes"]].concat()).await;
    let name = created(&api).into_iter().rfind(|(namespace, _)| namespace == "nodes").unwrap().1;
    runs.borrow_mut().push((
        "the pod cannot be deleted",
        format!("{}exit {}\n", text(&output.stderr), output.status.code().unwrap()).replace(&name, "POD"),
    ));
    assert_printed("probe-logs-refused", &runs.into_inner());
    assert_eq!((host_process_pods(&api, "shop").len(), host_process_pods(&api, "gmsa").len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_somebody_replaces_is_not_asked() {
    let fates = [("win1", Fate::Waits)];
    let api = cluster(&fates).await;
    let replaced = async {
        api.wait_for(Verb::Get, "/namespaces/shop/pods/gmsa-probe-", 1).await;
        let (_, name) = created(&api).pop().unwrap();
        let mut pod = api.object("pods", "shop", &name).unwrap();
        // Within a second, in which it is not read.
        api.delete("pods", "shop", &name);
        pod["metadata"]["uid"] = Value::Null;
        pod["status"] = json!({"phase": "Running", "containerStatuses": [
            {"name": "probe", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}
        ]});
        api.apply(pod);
        name
    };
    let (output, name) = tokio::join!(probe(&api, &fates, &[]), replaced);
    let expected =
        format!("skip  pod  win1: could not be checked: pod shop/{name} was replaced by somebody else [not-checked]\n");
    assert!(text(&output.stdout).starts_with(&expected), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(api.count(Verb::Create, "/exec"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_a_node_are_written_once() {
    let printed = |text: &str| (text.as_bytes().to_vec(), Ending::Exit(0));
    let mut answers = transcript("network-service");
    answers.extend([
        ("wevtutil qe Microsoft-Windows-Containers-CCG/Admin /f:text /rd:true /c:1000".to_owned(), printed("Event[0]")),
        ("wevtutil qe Microsoft-Windows-Hyper-V-Compute-Admin /f:text /rd:true /c:1000".to_owned(), printed("")),
        ("wevtutil qe EKS /f:text /rd:true /c:1000".to_owned(), (Vec::new(), Ending::Exit(15007))),
    ]);
    let kubelet = "powershell -NoProfile -Command 'C:\\k\\kubelet.log','C:\\k\\kubelet.err.log','C:\\var\\log\\kubelet\\kubelet.exe.INFO',\
        'C:\\var\\log\\kubelet\\kubelet.log','C:\\var\\lib\\rancher\\rke2\\agent\\logs\\kubelet.log' | Where-Object { Test-Path $_ } | \
        ForEach-Object { Get-Content -Tail 20000 $_ }";
    answers.insert(kubelet.to_owned(), printed("I1123 kubelet"));
    let fates = [("win1", Fate::Runs(answers))];
    let api = cluster(&fates).await;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let of_node = logs.join("win1");
    let logs = logs.to_str().unwrap();
    let output = probe(&api, &fates, &["--logs", logs, "--yes"]).await;
    let folder = format!("{}{}", of_node.display(), std::path::MAIN_SEPARATOR);
    let named = |output: &Output| {
        let shown = shown(output).replace(&folder, "LOGS/win1/");
        shown.replace(of_node.to_str().unwrap(), "LOGS/win1")
    };
    let mut runs = vec![("first", named(&output))];
    let written = |file: &str| fs::read_to_string(of_node.join(file)).unwrap();
    assert_eq!((written("ccg.txt"), written("kubelet.txt")), ("Event[0]\n".to_owned(), "I1123 kubelet\n".to_owned()));
    // Who may run commands in the pods of the application gets no pod of the node's administrator.
    assert!(host_process_pods(&api, "shop").is_empty());
    let pods = host_process_pods(&api, "gmsa");
    let spec = &pods[0]["spec"];
    let options = json!({"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"});
    assert_eq!((&spec["securityContext"]["windowsOptions"], &spec["hostNetwork"]), (&options, &json!(true)));
    assert_eq!(left(&api), 0);
    // A second time, nothing is written over.
    let output = probe(&api, &fates, &["--logs", logs, "--yes"]).await;
    runs.push(("again", named(&output)));
    assert_printed("probe-logs", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_runtime_class_and_an_image_that_is_named_are_probed() {
    let fates = [("win1", Fate::Runs(transcript("network-service")))];
    let api = cluster(&fates).await;
    let class = |selector: Value| {
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "windows"}, "handler": "runhcs",
            "scheduling": {"nodeSelector": selector}})
    };
    api.apply(class(json!({"node.kubernetes.io/windows-build": "10.0.26100"})));
    let output = probe(&api, &fates, &["--runtime-class", "windows"]).await;
    let mut runs = vec![("a runtime class", shown(&output))];
    let spec = api.requests(Verb::Create, "/namespaces/shop/pods").pop().unwrap().body["spec"].clone();
    assert_eq!((&spec["runtimeClassName"], &spec["affinity"]), (&json!("windows"), &Value::Null));
    assert_eq!(spec["containers"][0]["image"], "mcr.microsoft.com/windows/servercore:ltsc2025");
    api.apply(class(json!({"kubernetes.io/os": "windows"})));
    let output = probe(&api, &fates, &["--runtime-class", "windows"]).await;
    runs.push(("a runtime class without a build", shown(&output)));
    // A node of 2022 runs no image of 2025.
    let output = probe(&api, &fates, &["--image", "registry/probe:ltsc2025", "--node", "win1"]).await;
    runs.push(("an image for other nodes", shown(&output)));
    assert_printed("probe-runtime-class", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_in_trouble_is_no_refusal() {
    let api = cluster(&[]).await;
    let fault = Fault::Refuse {
        code: 500,
        reason: "InternalError",
        message: "etcdserver: request timed out",
        retry_after: None,
    };
    api.fault(Verb::Create, "/namespaces/shop/pods", usize::MAX, fault);
    let output = probe(&api, &[], &["--request-timeout", "1s"]).await;
    let created = api.requests(Verb::Create, "/namespaces/shop/pods").pop().unwrap().body;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert_eq!((left(&api), api.count(Verb::Delete, name)), (0, 1));
    let expected = format!("left behind: kubectl delete pod {name} --namespace shop\n");
    assert_eq!((text(&output.stderr), output.status.code()), (&*expected, Some(2)));
    assert!(text(&output.stdout).starts_with("skip  pod  win1: could not be checked: "), "{}", text(&output.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_say_more_and_may_not_be_read_is_named() {
    let fates = [("win1", Fate::NoImage)];
    let api = cluster(&fates).await;
    api.fault(
        Verb::List,
        "/events",
        usize::MAX,
        refusal("events is forbidden: User \"jane\" cannot list resource \"events\""),
    );
    let output = probe(&api, &fates, &[]).await;
    assert_printed("probe-events-forbidden", &[("the run", shown(&output))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_read_is_no_pass() {
    let mut answers = transcript("network-service");
    let log = "wevtutil qe Microsoft-Windows-Containers-CCG/Admin /f:text /rd:true /c:1000";
    answers.insert(log.to_owned(), (b"Access is denied.".to_vec(), Ending::Exit(5)));
    let fates = [("win1", Fate::Runs(answers))];
    let api = cluster(&fates).await;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().to_str().unwrap();
    let output = probe(&api, &fates, &["--logs", logs, "--yes"]).await;
    let mut runs = vec![("denied", shown(&output))];
    assert_eq!(left(&api), 0);
    // Where no pod can run, none is made for the logs either.
    let mut broken = api.object("nodes", "", "win1").unwrap();
    broken["status"]["conditions"][0]["status"] = json!("False");
    api.apply(broken);
    api.forget_requests();
    let output = probe(&api, &fates, &["--node", "win1", "--logs", logs, "--yes"]).await;
    runs.push(("where no pod can run", shown(&output)));
    assert_printed("probe-logs-unread", &runs);
    assert_eq!(api.count(Verb::Create, "/namespaces/shop/pods"), 0);
}

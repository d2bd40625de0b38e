//! Twelve workloads that do not run. The messages of events are those of their components, word for word: kube-controller-manager's
//! and kube-apiserver's as the tests on a real control plane meet them, the scheduler's and the kubelet's from public reports.

use super::*;

const DENIED: &str =
    "Error creating: admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: ";

/// Asserts the line in the list, its remedy, and the lines of the walk from the cause on.
async fn says(fault: impl Fn(&SimulatedApi), complaint: &str, remedy: &str, walk: &str) {
    assert_eq!(
        listed(&fault).await,
        [(format!("fail workloads: Deployment shop/web: {complaint}"), remedy.to_owned())]
    );
    let (said, code) = walked(&fault).await;
    assert!(said.ends_with(walk), "--- found\n{said}--- expected at its end\n{walk}");
    let before = said.strip_suffix(walk).unwrap();
    assert!(before.lines().all(|line| line.starts_with("pass")), "{said}");
    assert_eq!((said.contains("not reached"), code), (true, Some(1)), "{said}");
}

/// A deployment whose pods are refused with this message.
fn refused(api: &SimulatedApi, message: &str) {
    deployment(api);
    event(api, "replicasets", "web-1", "FailedCreate", message);
}

/// Changes the templates of the deployment and of its ReplicaSet.
fn template(api: &SimulatedApi, change: impl Fn(&mut Value)) {
    for (plural, name) in [("deployments", "web"), ("replicasets", "web-1")] {
        let mut found = api.object(plural, "shop", name).unwrap();
        change(&mut found["spec"]["template"]["spec"]);
        api.apply(found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_use() {
    let message = "service account \"web\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    let fault = |api: &SimulatedApi| {
        refused(api, &format!("{DENIED}{message}"));
        api.authorize_by(Table::default());
    };
    let denied = DENIED.trim_start_matches("Error creating: ");
    let grant = "`kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply`.";
    says(
        fault,
        &format!("0 of 1 pods: {denied}{message} [not-authorized]"),
        grant,
        &format!(
            "\
fail  permission       shop:web may not use webapp1 [not-authorized]
                       -> {grant}
skip  admission        not reached [not-checked]
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
"
        ),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_service_account() {
    let message =
        "pods \"web-1-\" is forbidden: error looking up service account shop/web: serviceaccount \"web\" not found";
    let fault = |api: &SimulatedApi| {
        refused(api, &format!("Error creating: {message}"));
        api.delete("serviceaccounts", "shop", "web");
    };
    let create = "Create it: `kubectl create serviceaccount web --namespace shop`. Or correct the name in the Pod.";
    says(
        fault,
        &format!("0 of 1 pods: {message} [service-account-missing]"),
        create,
        &format!(
            "\
fail  permission       there is no service account web in namespace shop: the API server refuses the pod [service-account-missing]
                       -> {create}
skip  admission        not reached [not-checked]
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
"
        ),
    )
    .await;
}

const UNREACHED_FROM_PERMISSION: &str = "\
skip  permission       not reached [not-checked]
skip  admission        not reached [not-checked]
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
";

#[tokio::test(flavor = "multi_thread")]
async fn missing_credential_spec() {
    let message = "cred spec webapp1 does not exist";
    let fault = |api: &SimulatedApi| {
        refused(api, &format!("{DENIED}{message}"));
        api.delete("gmsacredentialspecs", "", "webapp1");
    };
    let denied = DENIED.trim_start_matches("Error creating: ");
    let create = "`kubectl gmsa credspec new webapp1 --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: \
        `kubectl get gmsacredentialspecs`.";
    says(
        fault,
        &format!("0 of 1 pods: {denied}{message} [spec-missing]"),
        create,
        &format!(
            "\
fail  template         cred spec webapp1 does not exist [spec-missing]
                       -> {create}
{UNREACHED_FROM_PERMISSION}"
        ),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_case() {
    let message = "GMSA cred spec name \"WebApp1\" of pod \"web-1-\" is not a lower-case DNS subdomain";
    let fault = |api: &SimulatedApi| {
        refused(api, &format!("{DENIED}{message}"));
        template(api, |pod| pod["securityContext"]["windowsOptions"]["gmsaCredentialSpecName"] = json!("WebApp1"));
    };
    let denied = DENIED.trim_start_matches("Error creating: ");
    let patch = "`kubectl patch deployment web --namespace shop --patch \
        '{\"spec\":{\"template\":{\"spec\":{\"securityContext\":{\"windowsOptions\":{\"gmsaCredentialSpecName\":\"webapp1\"}}}}}}'`.";
    says(
        fault,
        &format!("0 of 1 pods: {denied}{message} [invalid-spec-name]"),
        patch,
        &format!(
            "\
fail  template         GMSA cred spec name \"WebApp1\" of pod \"web-\" is not a lower-case DNS subdomain [invalid-spec-name]
                       -> {patch}
{UNREACHED_FROM_PERMISSION}"
        ),
    )
    .await;
}

const UNREACHED_FROM_SANDBOX: &str = "\
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
";

/// A deployment with one pod.
fn with_pod(api: &SimulatedApi, node: Option<&str>, status: &Value) {
    deployment(api);
    api.apply(pod_of_it(api, "web-1-a", node, status));
}

/// Asserts what is said of a pod that fails in `step` with `why`, which the list and the walk agree on.
async fn pod_says(fault: impl Fn(&SimulatedApi), step: &str, why: &str, remedy: &str, unreached: &str) {
    let line = format!("fail  {step:15}  {why}\n                       -> {remedy}\n{unreached}");
    says(fault, &format!("pod web-1-a: {why}"), remedy, &line).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn linux_node() {
    let fault = |api: &SimulatedApi| {
        let labels = json!({"kubernetes.io/os": "linux"});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "linux1", "labels": labels}}));
        with_pod(api, Some("linux1"), &json!({"phase": "Pending"}));
    };
    let patch = "`kubectl patch deployment web --namespace shop --patch \
        '{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":{\"kubernetes.io/os\":\"windows\"},\"os\":{\"name\":\"windows\"}}}}}'`.";
    let why =
        "the pod is on linux1, a node with the operating system linux, on which no Windows container runs [linux-node]";
    pod_says(fault, "scheduling", why, patch, UNREACHED_FROM_SANDBOX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_build() {
    let fault = |api: &SimulatedApi| {
        let labels = json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.17763"});
        api.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old1", "labels": labels}}));
        with_pod(api, Some("old1"), &json!({"phase": "Pending"}));
    };
    let patch = "`kubectl patch deployment web --namespace shop --patch \
        '{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":{\"kubernetes.io/os\":\"windows\",\"node.kubernetes.io/windows-build\":\"10.0.20348\"}}}}}'`.";
    let why = "the pod is on old1 of 10.0.17763, which does not run the image of container \"iis\", of 10.0.20348 [windows-build]";
    pod_says(fault, "scheduling", why, patch, UNREACHED_FROM_SANDBOX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_is_not_ready() {
    let fault = |api: &SimulatedApi| {
        let mut node = api.object("nodes", "", "win1").unwrap();
        node["status"]["conditions"][0] =
            json!({"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."});
        api.apply(node);
        with_pod(api, Some("win1"), &json!({"phase": "Running"}));
    };
    let remedy = "`kubectl describe node win1` says why: start its kubelet and its container runtime. Pods with a controller are created on other \
        nodes after five minutes.";
    let why = "win1 is not ready: Kubelet stopped posting node status. [node-not-ready]";
    pod_says(fault, "scheduling", why, remedy, UNREACHED_FROM_SANDBOX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taint() {
    let scheduler = "0/1 nodes are available: 1 node(s) had untolerated taint {os: windows}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let fault = |api: &SimulatedApi| {
        let mut node = api.object("nodes", "", "win1").unwrap();
        node["spec"]["taints"] = json!([{"key": "os", "value": "windows", "effect": "NoSchedule"}]);
        api.apply(node);
        with_pod(api, None, &json!({"phase": "Pending"}));
        event(api, "pods", "web-1-a", "FailedScheduling", scheduler);
    };
    let patch = "`kubectl patch deployment web --namespace shop --patch \
        '{\"spec\":{\"template\":{\"spec\":{\"tolerations\":[{\"effect\":\"NoSchedule\",\"key\":\"os\",\"operator\":\"Equal\",\"value\":\"windows\"}]}}}}'`.";
    let why = format!(
        "the pod is not on a node: {scheduler}; win1 has the taint os=windows:NoSchedule, which it does not tolerate [node-taint]"
    );
    pod_says(fault, "scheduling", &why, patch, UNREACHED_FROM_SANDBOX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_error() {
    let message = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: \
        hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";
    let fault = |api: &SimulatedApi| {
        let waits = json!({"waiting": {"reason": "ContainerCreating"}});
        let status = json!({"phase": "Pending", "containerStatuses": [{"name": "iis", "state": waits}]});
        with_pod(api, Some("win1"), &status);
        event(api, "pods", "web-1-a", "FailedCreatePodSandBox", message);
    };
    let remedy = "The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. \
        Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.";
    let why = format!("Pending on win1: FailedCreatePodSandBox: {message} [node-credentials]");
    let unreached = UNREACHED_FROM_SANDBOX.split_once('\n').unwrap().1;
    pod_says(fault, "sandbox", &why, remedy, unreached).await;
}

/// What the kubelet says of a container that crashed again and again.
fn crash() -> Value {
    json!({"waiting": {
        "reason": "CrashLoopBackOff",
        "message": "back-off 40s restarting failed container=join pod=web-1-a_shop(1)",
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn init_crash() {
    let fault = |api: &SimulatedApi| {
        let last = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let status = json!({
            "phase": "Pending",
            "initContainerStatuses": [{"name": "join", "state": crash(), "lastState": last}],
            "containerStatuses": [{"name": "iis", "state": {"waiting": {"reason": "PodInitializing"}}}],
        });
        with_pod(api, Some("win1"), &status);
        event(api, "pods", "web-1-a", "BackOff", "Back-off restarting failed container join in pod web-1-a_shop(1)");
    };
    let remedy = "`kubectl logs web-1-a --namespace shop --container join --previous` says why: correct the container, or what it needs.";
    let why = "Pending on win1, init container \"join\" waits: CrashLoopBackOff: back-off 40s restarting failed container=join pod=web-1-a_shop(1), \
        and ended with exit code 3, Error before [not-started]";
    let unreached = UNREACHED_FROM_SANDBOX.split_once("init containers  not reached [not-checked]\n").unwrap().1;
    pod_says(fault, "init containers", why, remedy, unreached).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eviction() {
    let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. Container iis was using 900Mi, request is 0, has larger consumption of memory. ";
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": message});
    let next = "skip  in the pod       not reached [not-checked]\n";
    let remedy = "Remove what the message names; set requests that fit the container, so that its node has room for it. Its controller has created, or \
        creates, a new Pod; this one is only a record: `kubectl delete pod web-1-a --namespace shop`.";
    let why = format!("Failed on win1: Evicted: {} [pod-failed]", message.trim());
    // Its controller counts it no more, and has created no other yet.
    let (said, code) = walked(|api| with_pod(api, Some("win1"), &evicted)).await;
    let end = format!("fail  containers       {why}\n                       -> {remedy}\n{next}");
    assert!(said.ends_with(&end) && code == Some(1), "{said}");
    // There is another.
    let replaced = |api: &SimulatedApi| {
        with_pod(api, Some("win1"), &evicted);
        api.apply(pod_of_it(api, "web-1-b", Some("win1"), &json!({"phase": "Running"})));
    };
    let complaint = format!("warn workloads: Deployment shop/web: pod web-1-a: {why}");
    assert_eq!(listed(replaced).await, [(complaint, remedy.to_owned())]);
    let (said, code) = walked(replaced).await;
    let end = format!(
        "\
pass  containers       Running on win1
warn  containers       pod web-1-a: {why}
                       -> {remedy}
pass  in the pod       run: kubectl gmsa verify shop/web-1-b
"
    );
    assert!(said.ends_with(&end) && code == Some(1), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn image_pull() {
    let message = "Failed to pull image \"registry/shop:4.2-ltsc2022\": rpc error: code = NotFound desc = failed to pull and unpack image \
        \"registry/shop:4.2-ltsc2022\": failed to resolve reference \"registry/shop:4.2-ltsc2022\": registry/shop:4.2-ltsc2022: not found";
    let fault = |api: &SimulatedApi| {
        let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"registry/shop:4.2-ltsc2022\""}});
        with_pod(
            api,
            Some("win1"),
            &json!({"phase": "Pending", "containerStatuses": [{"name": "iis", "state": waits}]}),
        );
        event(api, "pods", "web-1-a", "Failed", message);
        event(api, "pods", "web-1-a", "Failed", "Error: ImagePullBackOff");
    };
    let remedy = "Correct the name and the tag of the image, or the access of the node to its registry (imagePullSecrets): \
        `kubectl set image deployment web --namespace shop iis=IMAGE`.";
    let why = format!(
        "Pending on win1, container \"iis\" waits: ImagePullBackOff: Back-off pulling image \"registry/shop:4.2-ltsc2022\"; {message} [not-started]"
    );
    let next = "skip  in the pod       not reached [not-checked]\n";
    pod_says(fault, "containers", &why, remedy, next).await;
}

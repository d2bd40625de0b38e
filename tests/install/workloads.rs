//! Fifteen workloads that do not run, on a real control plane: `doctor` names the rule of the first cause of each, and what it says to do,
//! followed to the letter, mends it; the sentences are in the folders of `crates/kubectl-gmsa/tests/cli/recorded`. Refusals are those of kube-apiserver and kube-controller-manager; what comes from the scheduler or from a node
//! is worded as they word it (see `windows_node`).

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    nodes::{join, report},
    path::DOMAIN,
    pods::{NAMESPACE, complaint},
    release::Release,
    tool::Tool,
    windows_node::{WindowsNode, container, event},
};

/// The cluster, and the nodes that the pods of this test come to.
struct Scene<'c> {
    cluster: &'c Cluster,
    tool: Tool<'c>,
    node: WindowsNode<'c>,
}

impl<'c> Scene<'c> {
    /// With the release, whose replica the caller has started.
    fn new(cluster: &'c Cluster, release: &Release<'c>) -> Self {
        release.route_to_loopback();
        cluster.create_namespace(NAMESPACE);
        cluster.apply(include_str!("credential-spec.yaml"));
        cluster.kubectl_prints(["create", "serviceaccount", "web", "--namespace", NAMESPACE]);
        let node = WindowsNode::join(cluster, "windows-2022", "10.0.20348", ("pool", "main"));
        Self { cluster, tool: Tool::new(cluster), node }
    }

    /// Applies a Deployment of one pod, with this changed in the spec of its pods.
    fn deploy(&self, name: &str, change: &Value) {
        self.cluster.apply(&deployment(name, change).to_string());
    }

    /// What the list of `doctor` says of a Deployment, and what to do.
    fn listed(&self, name: &str) -> Option<(String, String)> {
        let (report, _) = self.tool.gmsa("doctor");
        let mut lines = report.lines();
        let start = format!("Deployment {NAMESPACE}/{name}: ");
        let line = lines.find_map(|line| line.split_once(&start).map(|(_, line)| line.to_owned()))?;
        let remedy = lines.next().unwrap().trim_start().trim_start_matches("-> ").to_owned();
        Some((line, remedy))
    }

    /// Whether `check -A` finds a breach of this rule in the Deployment: what its template shows, it says before a pod fails.
    fn is_checked(&self, name: &str, rule: &str) -> bool {
        let (report, _) = self.tool.gmsa("check -A -o json");
        let report: Value = serde_json::from_str(&report).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let object = format!("Deployment {NAMESPACE}/{name}");
        findings.iter().any(|found| found["object"] == object && found["rule"] == rule)
    }

    /// Waits until `doctor` lists a cause of this rule, of this pod if there is one; gives back what to do.
    fn until_listed(&self, name: &str, pod: Option<&str>, rule: &str) -> String {
        let said = || self.listed(name);
        let start = pod.map_or_else(|| "0 of 1 pods".to_owned(), |pod| format!("pod {pod}: "));
        self.cluster.until(&format!("doctor says {rule} of {name}; it says {:?}", said()), || {
            said().is_some_and(|(line, _)| line.starts_with(&start) && line.ends_with(&format!(" [{rule}]")))
        });
        said().unwrap().1
    }

    /// The first step of the walk does not pass by this rule, and says to do the same.
    fn assert_first_cause(&self, name: &str, step: &str, rule: &str, remedy: &str) {
        assert_eq!(self.first_cause(name, step, rule), remedy);
    }

    /// What to do where the first step of the walk does not pass by this rule.
    fn first_cause(&self, name: &str, step: &str, rule: &str) -> String {
        let (report, code) = self.tool.gmsa(&format!("why deploy/{name} --namespace {NAMESPACE}"));
        assert_eq!(code, 1, "{report}");
        let mut lines = report.lines().skip_while(|line| line.starts_with("pass"));
        let line = lines.next().unwrap();
        assert!(line.starts_with(&format!("fail  {step}  ")) && line.ends_with(&format!(" [{rule}]")), "{report}");
        let remedy = lines.next().unwrap().trim_start().trim_start_matches("-> ").to_owned();
        assert!(
            lines.all(|line| line.starts_with("skip  ") && line.ends_with("  not reached [not-checked]")),
            "{report}"
        );
        remedy
    }

    /// Runs the commands in backquotes by a shell, with these words for the placeholders.
    fn follow(&self, remedy: &str, words: &[(&str, &str)]) {
        for command in remedy.split('`').skip(1).step_by(2) {
            let command = words.iter().fold(command.to_owned(), |command, (from, to)| command.replace(from, to));
            let output = self.tool.shell(&command);
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// The name of the one pod that nobody has put on a node.
    fn new_pod(&self, name: &str) -> String {
        let pod = || {
            let selector = format!("app={name}");
            let get = ["get", "pods", "--namespace", NAMESPACE, "--selector", &selector, "-o", "json"];
            let list: Value = serde_json::from_str(&self.cluster.kubectl_prints(get)).unwrap();
            let pods = list["items"].as_array().cloned().unwrap();
            let is_new =
                |pod: &&Value| pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null();
            pods.iter().find(is_new).map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        };
        self.cluster.until(&format!("{name} has a pod"), || pod().is_some());
        pod().unwrap()
    }

    /// Waits until `doctor` no longer lists the Deployment, whose pod runs by now; the walk passes every step.
    fn until_mended(&self, name: &str, pod: &str) {
        self.cluster.until(&format!("doctor does not list {name}"), || self.listed(name).is_none());
        let (report, code) = self.tool.gmsa(&format!("why deploy/{name} --namespace {NAMESPACE}"));
        assert!(
            report.ends_with(&format!("pass  in the pod       run: kubectl gmsa verify {NAMESPACE}/{pod}\n")),
            "{report}"
        );
        assert_eq!(code, 0, "{report}");
    }

    /// The rest of the way of a pod that was refused: it is there, comes to a node and runs.
    fn runs_at_last(&self, name: &str) {
        let pod = self.new_pod(name);
        self.node.take(NAMESPACE, &pod);
        self.node.run(NAMESPACE, &pod);
        self.until_mended(name, &pod);
    }
}

/// A Deployment with one pod on Windows that uses `webapp1`, with this changed in the spec of its pods.
fn deployment(name: &str, change: &Value) -> Value {
    let labels = json!({"app": name});
    let mut spec = json!({
        "serviceAccountName": "web",
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "webapp1"}},
        "containers": [{"name": "main", "image": "registry.example.com/shop:4.2-ltsc2022"}],
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

#[test]
fn workloads_that_are_refused_are_explained_and_mended() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    let _replica = release.start_replica();
    let scene = Scene::new(&cluster, &release);
    no_use(&scene);
    missing_service_account(&scene);
    missing_credential_spec(&scene);
    wrong_case(&scene);
    missing_classes(&scene);
    held_back(&scene);
}

/// After it, the service account may use `webapp1`.
fn no_use(scene: &Scene<'_>) {
    scene.deploy("no-use", &json!({}));
    let remedy = scene.until_listed("no-use", None, "not-authorized");
    assert!(scene.is_checked("no-use", "not-authorized"));
    scene.assert_first_cause("no-use", "permission     ", "not-authorized", &remedy);
    scene.follow(&remedy, &[]);
    scene.runs_at_last("no-use");
}

fn missing_service_account(scene: &Scene<'_>) {
    scene.deploy("no-account", &json!({"serviceAccountName": "absent"}));
    scene.tool.gmsa("grant --credspec webapp1 --serviceaccount apps:absent --apply");
    let remedy = scene.until_listed("no-account", None, "service-account-missing");
    assert!(scene.is_checked("no-account", "service-account-missing"));
    scene.assert_first_cause("no-account", "permission     ", "service-account-missing", &remedy);
    scene.follow(&remedy, &[]);
    scene.runs_at_last("no-account");
}

fn missing_credential_spec(scene: &Scene<'_>) {
    scene.tool.gmsa("grant --credspec later --serviceaccount apps:web --apply");
    scene.deploy("no-spec", &json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "later"}}}));
    let remedy = scene.until_listed("no-spec", None, "spec-missing");
    assert!(scene.is_checked("no-spec", "spec-missing"));
    scene.assert_first_cause("no-spec", "template       ", "spec-missing", &remedy);
    scene.tool.write("domain.json", DOMAIN);
    scene.follow(&remedy, &[("ACCOUNT", "WebApp1"), ("FILE", "domain.json")]);
    scene.runs_at_last("no-spec");
}

/// Objects of the cluster that the template names.
fn missing_classes(scene: &Scene<'_>) {
    scene.deploy("no-class", &json!({"runtimeClassName": "windows-2022"}));
    let remedy = scene.first_cause("no-class", "template", "runtime-class-missing");
    scene.follow(&remedy, &[]);
    scene.runs_at_last("no-class");

    scene.deploy("no-priority", &json!({"priorityClassName": "gold"}));
    let refused = || scene.listed("no-priority").filter(|(line, _)| line.ends_with(" [pod-refused]"));
    scene.cluster.until("the pod is refused", || refused().is_some());
    let (line, remedy) = refused().unwrap();
    assert!(line.contains("no PriorityClass with name gold was found"), "{line}");
    assert_eq!(remedy, "Create it: `kubectl create priorityclass gold --value=1000`. Or correct the name in the Pod.");
    scene.follow(&remedy, &[]);
    scene.runs_at_last("no-priority");
}

/// What the template itself keeps from the nodes: the pod of the changed one is put on its node.
fn held_back(scene: &Scene<'_>) {
    for (name, field, rule) in [
        ("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]}), "not-scheduled"),
        ("other-scheduler", json!({"schedulerName": "own"}), "not-scheduled"),
        ("no-node", json!({"nodeName": "windows-gone"}), "node-not-ready"),
    ] {
        scene.deploy(name, &field);
        scene
            .cluster
            .until("the pod is held back", || scene.listed(name).is_some_and(|(line, _)| line.contains(": the pod ")));
        let remedy = scene.first_cause(name, "scheduling", rule);
        let (key, _) = field.as_object().unwrap().iter().next().unwrap();
        scene.follow(&remedy, &[]);
        let selector = format!("app={name}");
        let get = ["get", "pods", "--namespace", NAMESPACE, "--selector", &selector, "-o", "json"];
        let is_free = || {
            let list: Value = serde_json::from_str(&scene.cluster.kubectl_prints(get)).unwrap();
            list["items"].as_array().unwrap().iter().any(|pod| pod["spec"][key] != field[key])
        };
        scene.cluster.until("the pod of the new template is there", is_free);
    }
}

/// kube-apiserver does not store such a Deployment at all, so it is no workload of the cluster: `check` says it of the file.
fn wrong_case(scene: &Scene<'_>) {
    let wrong = deployment(
        "wrong-case",
        &json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "WebApp1"}}}),
    );
    let said = complaint(scene.cluster.kubectl_with(["apply", "-f", "-"], &wrong.to_string())).unwrap();
    assert!(
        said.contains("gmsaCredentialSpecName: Invalid value: \"WebApp1\": a lowercase RFC 1123 subdomain"),
        "{said}"
    );
    assert_eq!(scene.listed("wrong-case"), None);
    let walk = scene.tool.kubectl("gmsa why deploy/wrong-case --namespace apps");
    assert_eq!(String::from_utf8(walk.stderr).unwrap(), "error: there is no Deployment apps/wrong-case\n");
    scene.tool.write("wrong.json", &wrong.to_string());
    let checked = scene.tool.kubectl("gmsa check -f wrong.json --live");
    let report = String::from_utf8(checked.stdout).unwrap();
    let (_, fix) = report.split_once("  fix: gmsaCredentialSpecName: ").expect(&report);
    let right = deployment(
        "wrong-case",
        &json!({"securityContext": {"windowsOptions": {
            "gmsaCredentialSpecName": fix.lines().next().unwrap(),
        }}}),
    );
    scene.cluster.apply(&right.to_string());
    scene.runs_at_last("wrong-case");
}

#[test]
fn workloads_that_do_not_run_are_explained_and_mended() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    let _replica = release.start_replica();
    let scene = Scene::new(&cluster, &release);
    scene.tool.gmsa("grant --credspec webapp1 --serviceaccount apps:web --apply");
    linux_node(&scene);
    wrong_build(&scene);
    node_that_is_not_ready(&scene);
    taint(&scene);
    sandbox_error(&scene);
    init_crash(&scene);
    eviction(&scene);
    image_pull(&scene);
    never_ready(&scene);
    missing_config_map(&scene);
    paused(&scene);
}

/// Follows a remedy that changes the template: the pod of the new one comes to this node, and runs.
fn changed(scene: &Scene<'_>, name: &str, remedy: &str, words: &[(&str, &str)], node: &WindowsNode<'_>) {
    scene.follow(remedy, words);
    let pod = scene.new_pod(name);
    node.take(NAMESPACE, &pod);
    node.run(NAMESPACE, &pod);
    scene.until_mended(name, &pod);
}

fn linux_node(scene: &Scene<'_>) {
    join(scene.cluster, "linux-1", "linux");
    scene.deploy("on-linux", &json!({"os": null, "nodeSelector": null}));
    let pod = scene.new_pod("on-linux");
    crate::nodes::bind(scene.cluster, NAMESPACE, &pod, "linux-1");
    let remedy = scene.until_listed("on-linux", Some(&pod), "linux-node");
    assert!(scene.is_checked("on-linux", "linux-node"));
    changed(scene, "on-linux", &remedy, &[], &scene.node);
}

fn wrong_build(scene: &Scene<'_>) {
    let old = WindowsNode::join(scene.cluster, "windows-2019", "10.0.17763", ("pool", "old"));
    scene.deploy(
        "old-image",
        &json!({"containers": [{"name": "main", "image": "registry.example.com/shop:4.2-ltsc2019"}]}),
    );
    let pod = scene.new_pod("old-image");
    scene.node.take(NAMESPACE, &pod);
    let remedy = scene.until_listed("old-image", Some(&pod), "windows-build");
    assert!(scene.is_checked("old-image", "windows-build"));
    changed(scene, "old-image", &remedy, &[], &old);
}

fn node_that_is_not_ready(scene: &Scene<'_>) {
    let down = WindowsNode::join(scene.cluster, "windows-down", "10.0.20348", ("pool", "down"));
    scene.deploy("away", &json!({}));
    let pod = scene.new_pod("away");
    down.take(NAMESPACE, &pod);
    down.run(NAMESPACE, &pod);
    // The words of the node lifecycle controller.
    down.becomes("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
    let remedy = scene.until_listed("away", Some(&pod), "node-not-ready");
    scene.follow(&remedy, &[]);
    down.becomes("True", "KubeletReady", "kubelet is posting ready status");
    scene.until_mended("away", &pod);
}

fn taint(scene: &Scene<'_>) {
    let tainted = WindowsNode::join(scene.cluster, "windows-tainted", "10.0.20348", ("pool", "tainted"));
    scene.cluster.kubectl_prints(["taint", "nodes", tainted.name, "os=windows:NoSchedule"]);
    scene.deploy("tainted", &json!({"nodeSelector": {"kubernetes.io/os": "windows", "pool": "tainted"}}));
    let pod = scene.new_pod("tainted");
    let scheduler = "0/5 nodes are available: 1 node(s) had untolerated taint {os: windows}, 4 node(s) didn't match Pod's node \
        affinity/selector. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.";
    event(scene.cluster, NAMESPACE, &pod, None, "FailedScheduling", scheduler);
    let remedy = scene.until_listed("tainted", Some(&pod), "node-taint");
    scene.follow(&remedy, &[]);
    // The pod of the old template is there until that of the new one runs.
    let is_new = || scene.tolerating("tainted").is_some_and(|name| name != pod);
    scene.cluster.until("the pod of the new template is there", is_new);
    let new = scene.tolerating("tainted").unwrap();
    tainted.take(NAMESPACE, &new);
    tainted.run(NAMESPACE, &new);
    scene.until_mended("tainted", &new);
}

impl Scene<'_> {
    /// A pod that tolerates the taint.
    fn tolerating(&self, name: &str) -> Option<String> {
        let selector = format!("app={name}");
        let get = ["get", "pods", "--namespace", NAMESPACE, "--selector", &selector, "-o", "json"];
        let list: Value = serde_json::from_str(&self.cluster.kubectl_prints(get)).unwrap();
        let tolerates = |pod: &&Value| pod["spec"]["tolerations"].to_string().contains("\"os\"");
        let found = list["items"].as_array().unwrap().iter().find(tolerates)?;
        Some(found["metadata"]["name"].as_str().unwrap().to_owned())
    }

    /// A Deployment whose pod is on the node, with this status.
    fn on_node(&self, name: &str, change: &Value, status: &Value) -> String {
        self.deploy(name, change);
        let pod = self.new_pod(name);
        self.node.take(NAMESPACE, &pod);
        report(self.cluster, NAMESPACE, &pod, &json!({"status": status}));
        pod
    }
}

fn sandbox_error(scene: &Scene<'_>) {
    let waits = container("main", &json!({"waiting": {"reason": "ContainerCreating"}}), None);
    let pod = scene.on_node("no-sandbox", &json!({}), &json!({"phase": "Pending", "containerStatuses": [waits]}));
    let message = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: \
        hcs::CreateComputeSystem 5bd1: winapi error #3489792023: unknown";
    event(scene.cluster, NAMESPACE, &pod, None, "FailedCreatePodSandBox", message);
    scene.until_listed("no-sandbox", Some(&pod), "node-credentials");
    scene.tool.write("event.txt", message);
    scene.follow("`kubectl gmsa explain - < event.txt || test $? -eq 1`", &[]);
    // The administrator of the node has mended its plugin, and the kubelet tries again.
    scene.node.run(NAMESPACE, &pod);
    scene.until_mended("no-sandbox", &pod);
}

fn init_crash(scene: &Scene<'_>) {
    let message = "back-off 40s restarting failed container=join";
    let crash = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
    let status = json!({
        "phase": "Pending",
        "initContainerStatuses": [container("join", &crash, Some(3))],
        "containerStatuses": [container("main", &json!({"waiting": {"reason": "PodInitializing"}}), None)],
    });
    let init = json!({"initContainers": [{"name": "join", "image": "registry.example.com/join:1-ltsc2022"}]});
    let pod = scene.on_node("init-crash", &init, &status);
    event(
        scene.cluster,
        NAMESPACE,
        &pod,
        None,
        "BackOff",
        &format!("Back-off restarting failed container join in pod {pod}_apps"),
    );
    scene.until_listed("init-crash", Some(&pod), "not-started");
    // No kubelet has logs here; the container is corrected.
    scene.node.run(NAMESPACE, &pod);
    scene.until_mended("init-crash", &pod);
}

fn eviction(scene: &Scene<'_>) {
    let message =
        "The node was low on resource: memory. Container main was using 43536Ki, which exceeds its request of 0. ";
    let status = json!({"phase": "Failed", "reason": "Evicted", "message": message});
    let pod = scene.on_node("evicted", &json!({}), &status);
    // Its controller has created another.
    let other = scene.new_pod("evicted");
    scene.node.take(NAMESPACE, &other);
    scene.node.run(NAMESPACE, &other);
    let remedy = scene.until_listed("evicted", Some(&pod), "pod-failed");
    scene.follow(&remedy, &[]);
    scene.until_mended("evicted", &other);
}

/// A container that runs and is not ready: the application has lost its identity, and answers the probe with 401.
fn never_ready(scene: &Scene<'_>) {
    let mut runs = container("main", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}), None);
    runs["ready"] = json!(false);
    let status =
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [runs]});
    let pod = scene.on_node("unready", &json!({}), &status);
    let message = "Readiness probe failed: HTTP probe failed with statuscode: 401";
    event(scene.cluster, NAMESPACE, &pod, Some("main"), "Unhealthy", message);
    let remedy = scene.until_listed("unready", Some(&pod), "probe-unauthorized");
    scene.assert_first_cause("unready", "containers     ", "probe-unauthorized", &remedy);
    scene.node.run(NAMESPACE, &pod);
    scene.until_mended("unready", &pod);
}

fn missing_config_map(scene: &Scene<'_>) {
    let waits = container("main", &json!({"waiting": {"reason": "ContainerCreating"}}), None);
    let volumes = json!({"volumes": [{"name": "settings", "configMap": {"name": "web-settings"}}]});
    let pod = scene.on_node("no-map", &volumes, &json!({"phase": "Pending", "containerStatuses": [waits]}));
    let message = "MountVolume.SetUp failed for volume \"settings\" : configmap \"web-settings\" not found";
    event(scene.cluster, NAMESPACE, &pod, None, "FailedMount", message);
    let remedy = scene.until_listed("no-map", Some(&pod), "pod-volume");
    scene.tool.write("settings.json", "{}");
    scene.follow(&remedy, &[("FILE", "settings.json")]);
    // The kubelet tries again.
    scene.cluster.kubectl_prints(["get", "configmap", "web-settings", "--namespace", NAMESPACE]);
    scene.node.run(NAMESPACE, &pod);
    scene.until_mended("no-map", &pod);
}

fn paused(scene: &Scene<'_>) {
    let mut deployment = deployment("paused", &json!({}));
    deployment["spec"]["paused"] = json!(true);
    scene.cluster.apply(&deployment.to_string());
    let remedy = scene.until_listed("paused", None, "pods-missing");
    changed(scene, "paused", &remedy, &[], &scene.node);
}

fn image_pull(scene: &Scene<'_>) {
    let image = "registry.example.com/shop:4.2-ltsc2022";
    let waits =
        json!({"waiting": {"reason": "ImagePullBackOff", "message": format!("Back-off pulling image \"{image}\"")}});
    let status = json!({"phase": "Pending", "containerStatuses": [container("main", &waits, None)]});
    let pod = scene.on_node("no-image", &json!({}), &status);
    let message = format!(
        "Failed to pull image \"{image}\": rpc error: code = NotFound desc = failed to pull and unpack image \"{image}\": failed to resolve \
         reference \"{image}\": {image}: not found"
    );
    event(scene.cluster, NAMESPACE, &pod, Some("main"), "Failed", &message);
    event(scene.cluster, NAMESPACE, &pod, Some("main"), "Failed", "Error: ImagePullBackOff");
    let remedy = scene.until_listed("no-image", Some(&pod), "not-started");
    changed(scene, "no-image", &remedy, &[("IMAGE", "registry.example.com/shop:4.3-ltsc2022")], &scene.node);
}

//! Workloads that do not run, on a real control plane: `doctor` names the rule of the first cause of each, and what it says to do, followed to the letter, repairs
//! it; the sentences are in the cases of `crates/kubectl-gmsa/tests/cli/recorded`. Refusals are those of kube-apiserver and kube-controller-manager; what comes
//! from the scheduler or from a node is worded as they word it (see `nodes`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    desk::{Desk, Line},
    nodes::{becomes, bind, event, join, join_windows, name, report, run},
    path::DOMAIN,
    pods::NAMESPACE,
    release::Release,
};

/// The node that pods come to, where it is no other.
const NODE: &str = "windows-2022";

/// The cluster, and a desk to repair it at.
struct Scene<'c> {
    cluster: &'c Cluster,
    desk: Desk<'c>,
}

/// A workload of `objects/causes.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    change: BTreeMap<String, Value>,
    /// The node that the pod comes to, where it is created, and what that reports of it.
    node: Option<String>,
    status: Option<Value>,
    #[serde(default)]
    events: Vec<Event>,
    rule: String,
    /// Whether `check -A` finds it too: what the template shows, it says before a pod fails.
    #[serde(default)]
    checked: bool,
    /// The first step of the walk that does not pass, which says to do the same.
    step: Option<String>,
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    words: Vec<(String, String)>,
    #[serde(default)]
    replaced: bool,
    /// The node of the new pod.
    then: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    container: Option<String>,
    reason: String,
    message: String,
}

impl<'c> Scene<'c> {
    /// With the release, whose replica the caller starts.
    fn new(cluster: &'c Cluster) -> Self {
        cluster.prints("create serviceaccount web -n apps");
        join(cluster, "linux-1", "linux");
        join_windows(cluster, "windows-2019", "10.0.17763", "old");
        join_windows(cluster, NODE, "10.0.20348", "main");
        let desk = Desk::new(cluster);
        desk.write("domain.json", DOMAIN);
        desk.write("settings.json", "{}");
        Self { cluster, desk }
    }

    fn grant(&self, spec: &str, account: &str) {
        self.desk.gmsa(&format!("grant --credspec {spec} --serviceaccount {account} --apply"));
    }

    /// Applies a Deployment of one pod, with this changed in the spec of its pods.
    fn deploy(&self, name: &str, change: &Value) {
        self.cluster.apply(&deployment(name, change).to_string());
    }

    /// What the list of `doctor` says of a Deployment, and the rest of its sentence.
    fn listed(&self, name: &str) -> Option<(String, Line)> {
        let start = format!("Deployment {NAMESPACE}/{name}: ");
        let (lines, _) = self.desk.lines("doctor");
        lines.into_iter().find_map(|line| Some((line.text.split_once(&start)?.1.to_owned(), line)))
    }

    /// Waits until `doctor` lists a cause of this rule, of this pod if there is one; gives back what to do.
    fn until_listed(&self, name: &str, pod: Option<&str>, rule: &str) -> String {
        let start = pod.map_or_else(|| "0 of 1 pods".to_owned(), |pod| format!("pod {pod}: "));
        let said = self.listed(name).map(|(text, _)| text);
        let (_, line) = self.cluster.found(&format!("doctor says {rule} of {name}; it says {said:?}"), || {
            self.listed(name).filter(|(text, line)| text.starts_with(&start) && line.rule == rule)
        });
        line.remedy
    }

    /// What to do where the first step of the walk does not pass by this rule.
    fn first_cause(&self, name: &str, step: &str, rule: &str) -> String {
        let (lines, code) = self.desk.lines(&format!("why deploy/{name} -n apps"));
        assert_eq!(code, 1);
        let mut lines = lines.into_iter().skip_while(|line| line.status == "pass");
        let first = lines.next().unwrap();
        assert_eq!(first.outcome(), format!("fail {step} {rule}"));
        assert!(lines.all(|line| line.status == "skip" && line.text == "not reached"), "{name}");
        first.remedy
    }

    /// The name of the one pod that is on no node yet.
    fn new_pod(&self, of: &str) -> String {
        let is_new = |pod: &Value| pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null();
        self.until_pod(of, is_new)
    }

    fn until_pod(&self, of: &str, is_wanted: impl Fn(&Value) -> bool) -> String {
        let pod = || self.cluster.list(&format!("pods -n apps -l app={of}")).into_iter().find(&is_wanted);
        name(&self.cluster.found(&format!("{of} has a pod"), pod)).to_owned()
    }

    /// A pod of the Deployment comes to this node.
    fn taken(&self, name: &str, node: &str) -> String {
        let pod = self.new_pod(name);
        bind(self.cluster, NAMESPACE, &pod, node);
        pod
    }

    /// The pod runs on its node, and `doctor` no longer lists its Deployment; the walk passes every step.
    fn runs(&self, name: &str, pod: &str) {
        run(self.cluster, NAMESPACE, pod);
        self.until_mended(name, pod);
    }

    fn until_mended(&self, name: &str, pod: &str) {
        self.cluster.until(&format!("doctor does not list {name}"), || self.listed(name).is_none());
        let (lines, code) = self.desk.lines(&format!("why deploy/{name} -n apps"));
        let last = lines.last().unwrap();
        assert_eq!((last.outcome().as_str(), code), ("note in the pod not-verified", 0), "{}", last.text);
        assert_eq!(last.remedy, format!("run: kubectl gmsa verify pod/{pod} -n {NAMESPACE}"));
    }

    /// A pod is there, comes to a node and runs: the new one of a template that was changed, or one that was refused before.
    fn runs_at_last(&self, name: &str, node: &str) {
        let pod = self.taken(name, node);
        self.runs(name, &pod);
    }

    /// Finds the cause of each of these workloads, and repairs it.
    fn explain_and_mend(&self, cases: &str) {
        let mut all: BTreeMap<String, Vec<Case>> = serde_saphyr::from_str(include_str!("objects/causes.yaml")).unwrap();
        for case in all.remove(cases).unwrap() {
            let name = case.name.as_str();
            self.deploy(name, &json!(case.change));
            let pod = case.node.map(|node| {
                let pod = self.taken(name, &node);
                if let Some(status) = &case.status {
                    report(self.cluster, NAMESPACE, &pod, status);
                }
                for Event { container, reason, message } in &case.events {
                    let message = message.replace("POD", &pod);
                    event(self.cluster, NAMESPACE, &pod, container.as_deref(), reason, &message);
                }
                pod
            });
            let remedy = self.until_listed(name, pod.as_deref(), &case.rule);
            if case.checked {
                let (found, _) = self.desk.finds("check -A");
                let wanted = format!(" {} Deployment {NAMESPACE}/{name}", case.rule);
                assert!(found.iter().any(|found| found.ends_with(&wanted)), "{wanted}: {found:?}");
            }
            if let Some(step) = &case.step {
                assert_eq!(self.first_cause(name, step, &case.rule), remedy);
            }
            if case.follow {
                let words: Vec<_> = case.words.iter().map(|(word, value)| (word.as_str(), value.as_str())).collect();
                self.desk.follow(&remedy, &words);
            }
            match pod.filter(|_| !case.replaced) {
                Some(pod) => self.runs(name, &pod),
                None => self.runs_at_last(name, case.then.as_deref().unwrap_or(NODE)),
            }
        }
    }
}

/// A Deployment with one pod on Windows that uses `webapp1`, with this changed in the spec of its pods.
fn deployment(name: &str, change: &Value) -> Value {
    let text = include_str!("objects/workload.yaml").replace("NAME", name);
    let mut deployment: Value = serde_saphyr::from_str(&text).unwrap();
    for (field, value) in change.as_object().unwrap() {
        deployment["spec"]["template"]["spec"][field] = value.clone();
    }
    deployment
}

#[test]
fn workloads_that_are_refused_are_explained_and_mended() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "");
    let _replica = release.start_replica();
    let scene = Scene::new(&cluster);
    scene.grant("webapp1", "apps:absent");
    scene.grant("later", "apps:web");
    scene.explain_and_mend("refused");
    missing_classes(&scene);
    held_back(&scene);
}

/// Objects of the cluster that the template names.
fn missing_classes(scene: &Scene<'_>) {
    scene.deploy("no-class", &json!({"runtimeClassName": "windows-2022"}));
    let remedy = scene.first_cause("no-class", "template", "runtime-class-missing");
    scene.desk.follow(&remedy, &[]);
    scene.runs_at_last("no-class", NODE);

    scene.deploy("no-priority", &json!({"priorityClassName": "gold"}));
    let refused = || scene.listed("no-priority").filter(|(_, line)| line.rule == "pod-refused");
    let (text, _) = scene.cluster.found("the pod is refused", refused);
    assert!(text.contains("no PriorityClass with name gold was found"), "{text}");
    scene.cluster.prints("create priorityclass gold --value=1000");
    scene.runs_at_last("no-priority", NODE);
}

/// What the template itself keeps from the nodes: the pod of the changed one is put on its node.
fn held_back(scene: &Scene<'_>) {
    for (name, field, rule) in [
        ("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]}), "not-scheduled"),
        ("other-scheduler", json!({"schedulerName": "own"}), "not-scheduled"),
        ("no-node", json!({"nodeName": "windows-gone"}), "node-not-ready"),
    ] {
        if name == "gated" && scene.cluster.lacks(Feature::SchedulingGates) {
            continue;
        }
        scene.deploy(name, &field);
        let is_held = || scene.listed(name).is_some_and(|(text, _)| text.contains(": the pod "));
        scene.cluster.until("the pod is held back", is_held);
        let remedy = scene.first_cause(name, "scheduling", rule);
        if name == "no-node" {
            scene.desk.follow(&remedy, &[]);
        } else {
            scene.deploy(name, &json!({}));
        }
        let (key, held) = field.as_object().unwrap().iter().next().unwrap();
        scene.until_pod(name, |pod| &pod["spec"][key] != held);
    }
}

#[test]
fn workloads_that_do_not_run_are_explained_and_mended() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "");
    let _replica = release.start_replica();
    let scene = Scene::new(&cluster);
    scene.grant("webapp1", "apps:web");
    node_that_is_not_ready(&scene);
    taint(&scene);
    scene.explain_and_mend("on-a-node");
    eviction(&scene);
    paused(&scene);
}

fn node_that_is_not_ready(scene: &Scene<'_>) {
    let ready =
        |ready: &str, reason: &str, message: &str| becomes(scene.cluster, "windows-down", ready, reason, message);
    join_windows(scene.cluster, "windows-down", "10.0.20348", "down");
    scene.deploy("away", &json!({}));
    let pod = scene.taken("away", "windows-down");
    run(scene.cluster, NAMESPACE, &pod);
    // The words of the node lifecycle controller.
    ready("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
    let remedy = scene.until_listed("away", Some(&pod), "node-not-ready");
    scene.desk.follow(&remedy, &[]);
    ready("True", "KubeletReady", "kubelet is posting ready status");
    scene.until_mended("away", &pod);
}

fn taint(scene: &Scene<'_>) {
    join_windows(scene.cluster, "windows-tainted", "10.0.20348", "tainted");
    scene.cluster.prints("taint nodes windows-tainted os=windows:NoSchedule");
    scene.deploy("tainted", &json!({"nodeSelector": {"kubernetes.io/os": "windows", "pool": "tainted"}}));
    let pod = scene.new_pod("tainted");
    let scheduler = "0/5 nodes are available: 1 node(s) had untolerated taint {os: windows}, 4 node(s) didn't match Pod's node \
        affinity/selector. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.";
    event(scene.cluster, NAMESPACE, &pod, None, "FailedScheduling", scheduler);
    scene.until_listed("tainted", Some(&pod), "node-taint");
    let tolerated = json!([{"key": "os", "operator": "Exists"}]);
    let selector = json!({"kubernetes.io/os": "windows", "pool": "tainted"});
    scene.deploy("tainted", &json!({"nodeSelector": selector, "tolerations": tolerated}));
    // The old template's pod stays until the new one's runs.
    let new = scene.until_pod("tainted", |pod| pod["spec"]["tolerations"].to_string().contains("\"os\""));
    assert_ne!(new, pod);
    bind(scene.cluster, NAMESPACE, &new, "windows-tainted");
    scene.runs("tainted", &new);
}

fn eviction(scene: &Scene<'_>) {
    scene.deploy("evicted", &json!({}));
    let pod = scene.taken("evicted", NODE);
    let message = "The node was low on resource: memory. ";
    let status = json!({"phase": "Failed", "reason": "Evicted", "message": message});
    report(scene.cluster, NAMESPACE, &pod, &status);
    // Its controller has created another: the one that is left behind keeps nothing from running.
    let other = scene.taken("evicted", NODE);
    run(scene.cluster, NAMESPACE, &other);
    scene.until_mended("evicted", &other);
}

fn paused(scene: &Scene<'_>) {
    let mut deployment = deployment("paused", &json!({}));
    deployment["spec"]["paused"] = json!(true);
    scene.cluster.apply(&deployment.to_string());
    scene.until_listed("paused", None, "pods-missing");
    scene.cluster.prints(&format!("rollout resume deployment paused -n {NAMESPACE}"));
    scene.runs_at_last("paused", NODE);
}

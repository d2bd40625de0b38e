//! The chart installed, with the built binary behind its Service: what runs in the pods, but on loopback.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    control_plane::{Client, Process, free_addresses},
    desk::CA,
    helm::CHART,
    pods::{NAMESPACE, SPEC},
};

/// The namespace that the release is in.
pub const RELEASE_NAMESPACE: &str = "windows";
/// The built server.
pub const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");
/// A chart of our own that makes what the Go webhook's chart makes.
pub const GO_RELEASE: &str = "tests/install/go-release";
/// The kinds of everything that the chart makes, as `kubectl get` takes them.
pub const KINDS: &str = include_str!("objects/kinds").trim_ascii_end();
/// The configurations of the release, where there are match conditions.
pub const CONFIGURATIONS: [&str; 3] = [
    "mutatingwebhookconfigurations/gmsa",
    "mutatingwebhookconfigurations/zz-gmsa",
    "validatingwebhookconfigurations/gmsa",
];

/// The kinds of `KINDS` that this API server has.
pub fn kinds(cluster: &Cluster) -> &'static str {
    let (older, _) = KINDS.split_once(",validatingadmissionpolicies").unwrap();
    if cluster.has(Feature::Guard) { KINDS } else { older }
}

/// The configurations of the release in this cluster: the second one that mutates needs match conditions.
pub fn configurations(cluster: &Cluster) -> Vec<&'static str> {
    let [first, last, validating] = CONFIGURATIONS;
    if cluster.has(Feature::MatchConditions) { vec![first, last, validating] } else { vec![first, validating] }
}

/// The values of that chart with a CA certificate instead of cert-manager.
pub fn own_ca() -> String {
    format!("--set certificates.certManager.enabled=false --set certificates.caBundle={CA}")
}

/// Installs a chart in the namespace of releases.
pub fn install(cluster: &Cluster, name: &str, chart: &str, values: &str) {
    cluster.helm_prints(&format!("install {name} {chart} -n windows --create-namespace {values}"));
}

/// The `caBundle` of every webhook of the release.
pub fn ca_bundles(cluster: &Cluster) -> Vec<Value> {
    let webhooks =
        configurations(cluster).into_iter().flat_map(|name| cluster.get(name)["webhooks"].as_array().cloned().unwrap());
    webhooks.map(|webhook| webhook["clientConfig"]["caBundle"].clone()).collect()
}

/// Writes this bundle into every webhook of a configuration, as the webhook does it.
pub fn publish(cluster: &Cluster, configuration: &str, bundle: &str) {
    let webhooks = cluster.get(configuration)["webhooks"].as_array().unwrap().len();
    let field = |index| format!("/webhooks/{index}/clientConfig/caBundle");
    let patch: Value = (0..webhooks).map(|index| json!({"op": "add", "path": field(index), "value": bundle})).collect();
    cluster.change(&format!("{configuration} --field-manager=gmsa-webhook"), &patch);
}

/// The release `gmsa` of the chart.
pub struct Release<'c> {
    /// The cluster that it is in.
    pub cluster: &'c Cluster,
    ports: String,
}

impl<'c> Release<'c> {
    /// Installs it, on a port of loopback that is free. Nothing listens there yet.
    pub fn install(cluster: &'c Cluster, values: &str) -> Self {
        let [address] = free_addresses();
        let ports = format!("--set service.port={0},containerPort={0}", address.port());
        let release = Self { cluster, ports };
        install(cluster, "gmsa", CHART, &format!("{} {values}", release.ports));
        release
    }

    /// The same, where the API server finds it, with a credential spec and a namespace for pods.
    pub fn install_for_pods(cluster: &'c Cluster, values: &str) -> Self {
        let release = Self::install(cluster, values);
        release.route_to_loopback();
        cluster.create_namespace(NAMESPACE);
        cluster.apply(SPEC);
        release
    }

    /// Sends the API server to loopback: nothing routes to a Service here, but by its name it is found there.
    pub fn route_to_loopback(&self) {
        let outside =
            json!({"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null});
        self.cluster.change("service gmsa -n windows", &json!({"spec": outside}));
    }

    /// Upgrades it to the same chart, with these values.
    pub fn upgrade(&self, values: &str) {
        self.cluster.helm_prints(&format!("upgrade gmsa {CHART} -n windows {} --set {values}", self.ports));
    }

    /// An object of the cluster, or of its namespace.
    pub fn get(&self, object: &str) -> Value {
        self.cluster.get(&format!("{object} -n windows"))
    }

    /// The replicas that its Deployment wants.
    pub fn wanted(&self) -> Value {
        self.get("deployment/gmsa")["spec"]["replicas"].clone()
    }

    /// A replica of its Deployment, on loopback and ready.
    pub fn start_replica(&self) -> Process {
        let spec = self.get("deployment/gmsa")["spec"]["template"]["spec"].take();
        let port = self.get("service/gmsa")["spec"]["ports"][0]["port"].clone();
        let [admin] = free_addresses();
        let mut command = container(self.cluster, RELEASE_NAMESPACE, &spec, 0, BINARY.as_ref());
        command.arg("--listen").arg(format!("127.0.0.1:{port}")).env("ADMIN_LISTEN", admin.to_string());
        let replica = Process::start("replica", self.cluster.folder(), &mut command);
        let (_, runtime) = self.cluster.control_plane();
        let _in_runtime = runtime.enter();
        let client = Client::of_port(admin);
        self.cluster.until("the replica is ready", || runtime.block_on(client.text("/readyz")).is_ok());
        replica
    }
}

/// A container of a pod, as its image's entry point would be started: this program, with the credentials of the pod's service account.
pub fn container(cluster: &Cluster, namespace: &str, pod_spec: &Value, at: usize, program: &Path) -> Command {
    let container = &pod_spec["containers"][at];
    let list = |field: &str| container[field].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut command = Command::new(program);
    command.args(list("args").map(text)).env_clear().stdin(Stdio::null());
    command.envs(list("env").map(|one| (text(&one["name"]), text(&one["value"]))));
    command.env("KUBECONFIG", cluster.kubeconfig_of(namespace, &text(&pod_spec["serviceAccountName"])));
    command
}

//! The chart installed, with the built binary behind its Service: what runs in the pods, but on loopback.

use std::{cell::RefCell, fs, process::Command};

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    control_plane::{Client, Process, free_addresses},
    helm::{CHART, Helm},
};

/// The namespace that the release is in.
pub const RELEASE_NAMESPACE: &str = "windows";
const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");

/// The release `gmsa` of the chart.
pub struct Release<'p> {
    /// The cluster that it is in.
    pub cluster: &'p Cluster,
    helm: Helm,
    ports: String,
    replicas: RefCell<usize>,
}

impl<'p> Release<'p> {
    /// Installs it, on a port of loopback that is free. Nothing listens there yet.
    pub fn install(cluster: &'p Cluster) -> Self {
        Self::install_with(cluster, &[])
    }

    /// The same, with these values.
    pub fn install_with(cluster: &'p Cluster, values: &[&str]) -> Self {
        let helm = Helm::of_cluster(&cluster.kubeconfig());
        let [address] = free_addresses();
        let ports = format!("service.port={0},containerPort={0}", address.port());
        let release = Self { cluster, helm, ports, replicas: RefCell::new(0) };
        let values = values.iter().flat_map(|value| ["--set", value]);
        let args = ["install", "gmsa", CHART, "--create-namespace", "--set", &release.ports];
        release.run(&args.into_iter().chain(values).collect::<Vec<_>>());
        release
    }

    /// Sends the API server to loopback: nothing routes to a Service here, but by its name it is found there.
    pub fn route_to_loopback(&self) {
        let outside = json!(
            {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}}
        );
        let patch = ["patch", "service", "gmsa", "--namespace", RELEASE_NAMESPACE, "--patch", &outside.to_string()];
        self.cluster.kubectl_prints(patch);
    }

    /// Upgrades it to the same chart, with these values.
    pub fn upgrade(&self, values: &str) {
        self.run(&["upgrade", "gmsa", CHART, "--set", &self.ports, "--set", values]);
    }

    fn run(&self, args: &[&str]) {
        self.helm.prints(args.iter().copied().chain(["--namespace", RELEASE_NAMESPACE]));
    }

    /// `helm` for its cluster.
    pub fn helm(&self) -> &Helm {
        &self.helm
    }

    /// An object of the cluster, or of its namespace.
    pub fn get(&self, object: &str) -> Value {
        let json = self.cluster.kubectl_prints(["get", object, "--namespace", RELEASE_NAMESPACE, "-o", "json"]);
        serde_json::from_str(&json).unwrap()
    }

    /// A replica of its Deployment, on loopback and ready.
    pub fn start_replica(&self) -> Process {
        let container = Container::of(&self.get("deployment/gmsa")["spec"]["template"]["spec"]);
        let port = self.get("service/gmsa")["spec"]["ports"][0]["port"].clone();
        let [admin] = free_addresses();
        let mut command = container.command(self.cluster, "gmsa");
        command.arg("--listen").arg(format!("127.0.0.1:{port}")).env("ADMIN_LISTEN", admin.to_string());
        *self.replicas.borrow_mut() += 1;
        let replica =
            Process::start(&format!("replica-{}", self.replicas.borrow()), self.cluster.folder(), &mut command);
        let (_, runtime) = self.cluster.control_plane();
        let _in_runtime = runtime.enter();
        let client = Client::with(kube::Config::new(format!("http://{admin}").parse().unwrap()));
        self.cluster.until("the replica is ready", || runtime.block_on(client.text("/readyz")).is_ok());
        replica
    }
}

/// The first container of a pod, as its image's entry point would be started.
pub struct Container {
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Container {
    /// That of the pod with this spec.
    pub fn of(pod_spec: &Value) -> Self {
        let container = &pod_spec["containers"][0];
        let texts = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            args: texts(&container["args"]).iter().map(text).collect(),
            env: texts(&container["env"]).iter().map(|one| (text(&one["name"]), text(&one["value"]))).collect(),
        }
    }

    /// The built binary with these arguments and this environment, and the credentials of a service account of the release.
    pub fn command(&self, cluster: &Cluster, service_account: &str) -> Command {
        let (control_plane, runtime) = cluster.control_plane();
        let credentials = runtime.block_on(control_plane.kubeconfig_of(RELEASE_NAMESPACE, service_account));
        let kubeconfig = cluster.folder().join(format!("{service_account}.kubeconfig"));
        fs::write(&kubeconfig, credentials.to_string()).unwrap();
        let mut command = Command::new(BINARY);
        command.args(&self.args).env_clear().envs(self.env.iter().cloned()).env("KUBECONFIG", kubeconfig);
        command
    }
}

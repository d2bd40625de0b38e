//! The only node of a real cluster: a kubelet, containerd, kube-proxy, a scheduler and the DNS of the cluster, beside a control plane with all of its
//! controllers. Pods are containers, with networks and users of their own.
//!
//! Invariants: it is started in namespaces of its own for processes, mounts and the network, which `tests/directory.sh --node` makes, with the domain in
//! them: what runs here ends with them, and a failure leaves nothing but cgroups below the one that `NODE_CGROUP` names, which the script removes. Its files
//! are in one folder. It changes no setting of the machine's kernel.

use std::{
    env, fs,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use futures::{StreamExt as _, pin_mut};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    control_plane::{Binaries, Client, ControlPlane, NODE, Process, until},
    domain::root,
};

mod image;

pub use image::{Image, Images};

/// Its address, which pods reach, and where its DNS answers. The domain's controller, with the DNS of the domain, has 10.0.0.1.
const ADDRESS: &str = "10.99.0.1";
const DOMAIN: &str = "10.0.0.1";
/// What the DNS knows of the cluster, in the folder that the domain's programs are installed in.
const NAMES: &str = "services.hosts";

/// Makes the namespaces those of a node. The kubelet writes the settings of the kernel that are not as it wants them, so it finds what it wants.
const PREPARE: &str = r#"set -e
ip address add "$1/32" dev lo
ip route add 10.96.0.0/16 dev lo src "$1"
echo 1 >/proc/sys/net/ipv4/ip_forward
mount -t tmpfs -o mode=755 none /run
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/run/${setting##*/}
  file=${file%=*}
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
groups=/sys/fs/cgroup/*/
[ ! -f /sys/fs/cgroup/cgroup.controllers ] || groups=/sys/fs/cgroup/
for group in $groups; do
  mkdir -p "$group$2"
  # Other programs of a busy machine leave it as much as a whole node.
  for share in cpu.shares=16384 cpu.weight=1600; do
    [ ! -f "$group$2/${share%=*}" ] || echo "${share#*=}" >"$group$2/${share%=*}"
  done
done
"#;

/// Ends what runs in containers, and their shims, as a power failure does: what they had in memory is gone.
const CUT: &str = r#"
for group in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
  [ ! -d "$group$1" ] || find "$group$1" -name cgroup.procs -exec cat {} +
done | sort -u | xargs -r kill -9
grep -slaF "$2/containerd.sock" /proc/[0-9]*/cmdline | cut -d/ -f3 | xargs -r kill -9
sleep 0.2
awk -v folder="$2/" 'index($2, folder) == 1 {print $2}' /proc/self/mounts | sort -r | xargs -r -n 1 umount -l
for network in /run/netns/*; do umount "$network" && rm "$network"; done
rm -rf "$2/containerd/state" /run/containerd
true
"#;

/// The programs of a node.
pub struct Programs {
    pub control_plane: Binaries,
    scheduler: PathBuf,
    kubelet: PathBuf,
    proxy: PathBuf,
    /// The folder of containerd, its shim and `ctr`.
    containerd: PathBuf,
}

impl Programs {
    /// Looks for them in the folder that `KUBEBUILDER_ASSETS` names, for those of containerd 2 in the one that `CONTAINERD_ASSETS` names.
    ///
    /// # Errors
    /// What is missing, in one line.
    pub fn find() -> Result<Self, String> {
        let folder = |variable: &str, default: &str| {
            let named = env::var_os(variable).filter(|folder| !folder.is_empty());
            named.map_or_else(|| PathBuf::from(default), PathBuf::from)
        };
        let assets = folder("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin");
        let containerd = folder("CONTAINERD_ASSETS", "/usr/local/kubebuilder/ctrd");
        let of = |folder: &Path, name: &str| {
            let found = Some(folder.join(name)).filter(|program| program.is_file());
            found.ok_or_else(|| {
                format!("no {name} in {}: set KUBEBUILDER_ASSETS and CONTAINERD_ASSETS", folder.display())
            })
        };
        for name in ["containerd", "containerd-shim-runc-v2", "ctr"] {
            of(&containerd, name)?;
        }
        of(&assets, "kube-controller-manager")?;
        let [scheduler, kubelet, proxy] = ["kube-scheduler", "kubelet", "kube-proxy"].map(|name| of(&assets, name));
        Ok(Self {
            control_plane: Binaries::find()?,
            scheduler: scheduler?,
            kubelet: kubelet?,
            proxy: proxy?,
            containerd,
        })
    }
}

/// A node that is up, with its cluster.
pub struct Node {
    // In the order in which they end.
    kubelet: Option<Process>,
    proxy: Option<Process>,
    scheduler: Option<Process>,
    containerd: Option<Process>,
    _dns: Process,
    pub plane: ControlPlane,
    programs: Programs,
    folder: PathBuf,
    cgroup: String,
}

impl Node {
    /// Starts it, with everything that it keeps in `folder`, and waits until it is ready for pods of these images, the first of which is that of a
    /// pod's sandbox: a program that waits.
    pub async fn start(programs: Programs, folder: &Path, images: &Images) -> Self {
        let cgroup = env::var("NODE_CGROUP").expect("tests/directory.sh sets NODE_CGROUP");
        shell(PREPARE, &[ADDRESS, &cgroup]);
        let address: IpAddr = ADDRESS.parse().unwrap();
        let plane = ControlPlane::start_for_node(programs.control_plane.clone(), folder, address).await;
        write_settings(folder, &cgroup, images.sandbox());

        let names = root().join(NAMES);
        fs::write(&names, "").unwrap();
        let mut dns = Command::new("chroot");
        dns.arg(root()).args([
            "dnsmasq",
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--user=root",
            "--pid-file=",
        ]);
        dns.args(["--no-resolv", "--no-hosts", "--local=/cluster.local/svc/", "--bind-interfaces"]);
        dns.args([
            format!("--addn-hosts=/{NAMES}"),
            format!("--server={DOMAIN}"),
            format!("--listen-address={ADDRESS}"),
        ]);
        let mut dns = Process::start("dns", folder, &mut dns);
        // A signal that comes before ends it.
        dns.until_it_listens((address, 53).into()).await;
        tokio::spawn(know_services(plane.client.clone(), names, dns.signaller()));

        let (kubelet, proxy, scheduler, containerd, folder) = (None, None, None, None, folder.to_owned());
        let mut node = Self { kubelet, proxy, scheduler, containerd, _dns: dns, plane, programs, folder, cgroup };
        node.start_containerd().await;
        images.load(&mut node);
        node.start_pods().await;
        node
    }

    async fn start_containerd(&mut self) {
        let path = env::var("PATH").unwrap();
        let mut command = Command::new(self.programs.containerd.join("containerd"));
        command.arg("--config").arg(self.folder.join("containerd.toml"));
        // Where it looks for its shim.
        command.env("PATH", format!("{}:{path}", self.programs.containerd.display()));
        self.containerd = Some(Process::start("containerd", &self.folder, &mut command));
        until("containerd answers", async || self.ctr(&["version"]).output().unwrap().status.success().then_some(()))
            .await;
    }

    /// Starts what runs pods, and waits until it does.
    async fn start_pods(&mut self) {
        let admin = self.folder.join("admin.kubeconfig");
        let mut command = Command::new(&self.programs.scheduler);
        command.arg("--kubeconfig").arg(&admin).args(["--leader-elect=false", "--secure-port=0"]);
        self.scheduler = Some(Process::start("kube-scheduler", &self.folder, &mut command));
        let mut command = Command::new(&self.programs.proxy);
        command.arg("--kubeconfig").arg(&admin).args(["--hostname-override", NODE, "--cluster-cidr=10.244.0.0/16"]);
        command.args(["--proxy-mode=iptables", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"]);
        command.arg("--conntrack-tcp-timeout-close-wait=0");
        self.proxy = Some(Process::start("kube-proxy", &self.folder, &mut command));
        self.start_kubelet().await;
    }

    /// Starts the kubelet, and waits until the node is ready.
    pub async fn start_kubelet(&mut self) {
        let begun = time::OffsetDateTime::now_utc() - Duration::from_secs(1);
        let mut command = Command::new(&self.programs.kubelet);
        command.arg("--config").arg(self.folder.join("kubelet.json"));
        command.arg("--kubeconfig").arg(self.folder.join("node.kubeconfig"));
        command
            .arg("--root-dir")
            .arg(self.folder.join("kubelet"))
            .arg("--cert-dir")
            .arg(self.folder.join("kubelet-pki"));
        command.args(["--hostname-override", NODE, "--node-ip", ADDRESS]);
        self.kubelet = Some(Process::start("kubelet", &self.folder, &mut command));
        until("the node is ready", async || {
            let node = self.plane.client.get(&format!("/api/v1/nodes/{NODE}")).await.ok()?;
            let ready =
                node["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")?;
            let heard = ready["lastHeartbeatTime"].as_str()?;
            let heard = time::OffsetDateTime::parse(heard, &time::format_description::well_known::Rfc3339).unwrap();
            (ready["status"] == "True" && heard >= begun).then_some(())
        })
        .await;
    }

    /// Ends the kubelet alone: containers run on.
    pub fn kill_kubelet(&mut self) {
        self.kubelet = None;
    }

    /// Ends everything at once, as a power failure does, and starts it again.
    pub async fn reboot(&mut self) {
        (self.kubelet, self.proxy, self.scheduler, self.containerd) = (None, None, None, None);
        shell(CUT, &[&self.cgroup, self.folder.to_str().unwrap()]);
        self.plane.kill();
        self.plane.start_again().await;
        self.start_containerd().await;
        self.start_pods().await;
    }

    /// How many cores its pods, the kubelet and containerd use for so long.
    pub async fn cores(&self, length: Duration) -> f64 {
        let spent = || {
            let services = [&self.kubelet, &self.containerd].into_iter().flatten().map(Process::cpu).sum::<Duration>();
            // Nanoseconds with version 1 of cgroups, a list with microseconds with version 2.
            let pods = fs::read_to_string(Path::new("/sys/fs/cgroup/cpuacct").join(&self.cgroup).join("cpuacct.usage"));
            let pods = if let Ok(nanoseconds) = pods {
                Duration::from_nanos(nanoseconds.trim().parse().unwrap())
            } else {
                let stat = Path::new("/sys/fs/cgroup").join(&self.cgroup).join("cpu.stat");
                let stat = fs::read_to_string(stat).unwrap();
                let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
                Duration::from_micros(microseconds.parse().unwrap())
            };
            services + pods
        };
        let (before, begun) = (spent(), std::time::Instant::now());
        tokio::time::sleep(length).await;
        spent().checked_sub(before).unwrap().as_secs_f64() / begun.elapsed().as_secs_f64()
    }

    /// The folder of a volume of a pod.
    pub fn volume(&self, uid: &str, name: &str) -> PathBuf {
        self.folder.join("kubelet/pods").join(uid).join("volumes").join(name)
    }

    /// Where everything is that it keeps.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `ctr` of containerd, where the kubelet's images are.
    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.programs.containerd.join("ctr"));
        command
            .arg("--address")
            .arg(self.folder.join("containerd.sock"))
            .args(["--namespace", "k8s.io"])
            .args(arguments);
        command
    }
}

/// Runs a script of this file, which must succeed.
fn shell(script: &str, arguments: &[&str]) {
    let output = Command::new("sh").args(["-c", script, "sh"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn write_settings(folder: &Path, cgroup: &str, sandbox: &str) {
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "containerRuntimeEndpoint": format!("unix://{}", place("containerd.sock")),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "podLogsDir": place("pod-logs"),
        "volumePluginDir": place("volume-plugins"),
        // The machine's disk and memory are not the node's alone.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi"},
    });
    fs::write(folder.join("kubelet.json"), kubelet.to_string()).unwrap();
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "dataDir": place("addresses"),
                "ranges": [[{"subnet": "10.244.0.0/16"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    fs::create_dir(folder.join("network")).unwrap();
    fs::write(folder.join("network/10-pods.conflist"), network.to_string()).unwrap();
    let containerd = format!(
        "version = 3\nroot = {:?}\nstate = {:?}\n[grpc]\naddress = {:?}\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = {sandbox:?}\n\
         [plugins.'io.containerd.cri.v1.runtime']\nrestrict_oom_score_adj = true\n[plugins.'io.containerd.cri.v1.runtime'.cni]\n\
         bin_dirs = [\"/usr/lib/cni\", \"/opt/cni/bin\"]\nconf_dir = {:?}\n",
        place("containerd/root"),
        place("containerd/state"),
        place("containerd.sock"),
        place("network"),
    );
    fs::write(folder.join("containerd.toml"), containerd).unwrap();
}

/// Tells the DNS of the cluster's Services, as they come.
async fn know_services(client: Client, file: PathBuf, signal: impl Fn(Signal)) {
    let mut known = std::collections::BTreeMap::new();
    loop {
        let Ok(events) = client.watch("/api/v1/services").await else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        pin_mut!(events);
        while let Some((is_there, service)) = events.next().await {
            let field = |field: &str| service["metadata"][field].as_str().unwrap().to_owned();
            let name = format!("{}.{}.svc", field("name"), field("namespace"));
            match service["spec"]["clusterIP"].as_str() {
                Some(address) if is_there && address != "None" => known.insert(name, address.to_owned()),
                _ => known.remove(&name),
            };
            let lines = known
                .iter()
                .fold(String::new(), |lines, (name, address)| lines + address + " " + name + ".cluster.local\n");
            fs::write(&file, lines).unwrap();
            signal(Signal::HUP);
        }
    }
}

//! A container as a process: in a mount namespace of its own its image and its volumes, and nothing else that it can write; its user, its environment.

use std::{fs, path::Path, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{control_plane::Process, domain::root};
use serde_json::Value;

use super::{Node, Pod, list, proxy::names, text};

/// Makes the root, which has links into the image, and becomes the program.
const START: &str = r#"set -e
root=$1 image=$2 program=$3 hosts=$4 read_only=$5; shift 5
mount -t tmpfs -o mode=755 none "$root"
cd "$root"
mkdir image
mount --rbind "$image" image
mount --bind "$hosts" image/etc/hosts
ln -s image/* .
rm run
mkdir run
if [ -n "$program" ]; then
  : >"${program##*/}"
  mount --bind "$program" "${program##*/}"
fi
while [ "$1" != -- ]; do
  mkdir -p ".$2"
  mount --bind "$1" ".$2"
  [ "$3" = rw ] || mount -o remount,bind,ro ".$2"
  shift 3
done
shift
[ "$read_only" = false ] || mount -o remount,ro "$root"
exec chroot "$@"
"#;

/// What images say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub struct Container {
    pub process: Process,
    /// Whether its startup probe has passed.
    pub is_started: bool,
    /// The options of `chroot` for its user.
    user: [String; 2],
    env: Vec<(String, String)>,
}

impl Container {
    pub(super) async fn start(node: &Node, pod: &Pod, container: &Value) -> Self {
        let name = text(&container["name"]);
        let image = text(&container["image"]);
        let image = image.rsplit('/').next().unwrap().split(':').next().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_gmsa-tickets")).with_file_name(image);
        let is_ours = ["gmsa-tickets", "gmsa-webhook"].contains(&image);
        assert!(!is_ours || program.is_file(), "cargo build --bin {image} must come first");

        let security = |field: &str| {
            let own = &container["securityContext"][field];
            if own.is_null() { &pod.object["spec"]["securityContext"][field] } else { own }
        };
        let id = security("runAsUser").as_u64().unwrap_or(if is_ours { 65532 } else { 0 });
        assert!(id != 0 || security("runAsNonRoot") != true, "{name} must not run as root");
        let group = pod.object["spec"]["securityContext"]["fsGroup"].as_u64();
        let user =
            [format!("--userspec={id}:0"), group.map_or("--groups=".to_owned(), |group| format!("--groups={group}"))];

        let env = environment(node, pod, container).await;
        let folder = pod.folder.join(format!("{name}.root"));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", START, "sh"]).arg(&folder);
        if is_ours {
            command.arg("/").arg(&program)
        } else {
            command.arg(root()).arg("")
        };
        let hosts = pod.folder.join("hosts");
        fs::write(&hosts, fs::read_to_string("/etc/hosts").unwrap() + &names(&node.client).await).unwrap();
        command.arg(&hosts);
        command.arg((container["securityContext"]["readOnlyRootFilesystem"] == true).to_string());
        for mount in list(container, "volumeMounts") {
            // In most images /var/run is a link to /run.
            let path = text(&mount["mountPath"]).replacen("/var/run", "/run", 1);
            command.arg(pod.folder.join(text(&mount["name"]))).arg(path);
            command.arg(if mount["readOnly"] == true { "ro" } else { "rw" });
        }
        command.arg("--").args(&user).arg(&folder);
        if is_ours && container["command"].is_null() {
            command.arg(format!("/{image}"));
        }
        let here = |word: String| word.replace("[::]", &pod.address);
        let expand = |word: &Value| {
            env.iter().fold(text(word), |word, (name, value)| word.replace(&format!("$({name})"), value))
        };
        command.args(list(container, "command").map(expand)).args(list(container, "args").map(expand).map(here));
        if let Some((_, port)) = env.iter().find(|(name, _)| name == "HTTPS_PORT") {
            // Where it has no network of its own, the port alone is not enough.
            command.arg(format!("--listen={}:{port}", pod.address));
        }
        command.env_clear().envs(env.iter().cloned());
        let process = Process::start(&name, &pod.folder, &mut command);
        Self { process, is_started: container["startupProbe"].is_null(), user, env }
    }

    /// A command that runs beside it.
    pub fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.id().to_string(), "--mount", "--root", "chroot"]).args(&self.user);
        command.arg("/").env_clear().envs(self.env.iter().cloned());
        command
    }
}

async fn environment(node: &Node, pod: &Pod, container: &Value) -> Vec<(String, String)> {
    let mut env: Vec<_> = node.server.iter().cloned().chain([("PATH".to_owned(), PATH.to_owned())]).collect();
    for variable in list(container, "env") {
        let secret = &variable["valueFrom"]["secretKeyRef"];
        let value = if secret.is_null() {
            variable["value"].as_str().unwrap_or_default().replace("[::]", &pod.address)
        } else {
            let namespace = text(&pod.object["metadata"]["namespace"]);
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{}", text(&secret["name"]));
            let data = node.client.get(&path).await.unwrap()["data"][text(&secret["key"])].take();
            String::from_utf8(BASE64_STANDARD.decode(text(&data)).unwrap()).unwrap()
        };
        env.push((text(&variable["name"]), value));
    }
    env
}

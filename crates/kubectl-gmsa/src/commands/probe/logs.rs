//! The logs of a node, which a hostProcess pod reads.
//!
//! Invariants: the pod is never in the namespace of the service account, whose users could run commands in it as SYSTEM of the node;
//! no file is overwritten; only the owner can read a file (on Windows, who may read the folder), because a log can contain secrets of a
//! plugin; the size of a log is bounded;
//! a node name becomes part of a path only if it is a DNS name.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use json_patch::merge;
use serde_json::json;

use super::{Options, PodName, Probe, node::ProbeNode};
use crate::shared::{
    connection::Cluster, new_file, rules, snapshot::Snapshot, verification::Execution, webhook::service_of_webhook,
};
use gmsa_core::{
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic},
};

pub(super) const LOGS: &str = "logs";

/// The time limit for the start of a command that prints a log, and again for its end.
const LIMIT: Duration = Duration::from_secs(120);
/// The life of an undeleted pod beyond `--timeout`: enough for all commands.
const MARGIN: Duration = Duration::from_secs(1500);
const MAX_LOG: u64 = 16 << 20;

/// The files, and the commands that print them: event logs with the newest entries first, files from the end. The kubelet of AKS,
/// kubeadm (sig-windows-tools) and RKE2 writes to these files, that of EKS to an event log.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("ccg.txt", &["wevtutil", "qe", "Microsoft-Windows-Containers-CCG/Admin", "/f:text", "/rd:true", "/c:1000"]),
    (
        "hyper-v-compute.txt",
        &["wevtutil", "qe", "Microsoft-Windows-Hyper-V-Compute-Admin", "/f:text", "/rd:true", "/c:1000"],
    ),
    (
        "kubelet.txt",
        &[
            "powershell",
            "-NoProfile",
            "-Command",
            "'C:\\k\\kubelet.log','C:\\k\\kubelet.err.log','C:\\var\\log\\kubelet\\kubelet.exe.INFO',\
             'C:\\var\\log\\kubelet\\kubelet.log','C:\\var\\lib\\rancher\\rke2\\agent\\logs\\kubelet.log' | \
             Where-Object { Test-Path $_ } | ForEach-Object { Get-Content -Tail 20000 $_ }",
        ],
    ),
    // The Azure Key Vault plugin, and the script that installs it on AKS nodes.
    ("aks-plugin.txt", &["wevtutil", "qe", "Microsoft-AKSGMSAPlugin/Admin", "/f:text", "/rd:true", "/c:1000"]),
    (
        "aks-cse.txt",
        &[
            "powershell",
            "-NoProfile",
            "-Command",
            "'C:\\AzureData\\CustomDataSetupScript.log','C:\\AzureData\\CSEResult.log' | \
             Where-Object { Test-Path $_ } | ForEach-Object { Get-Content -Tail 20000 $_ }",
        ],
    ),
    ("eks.txt", &["wevtutil", "qe", "EKS", "/f:text", "/rd:true", "/c:1000"]),
];

/// The exit code of `wevtutil` for a missing log: `ERROR_EVT_CHANNEL_NOT_FOUND`.
const NO_SUCH_LOG: i64 = 15007;

/// Creates the folder, before any change in the cluster.
pub(super) fn prepare(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// The namespace of the pods: the requested one, or the webhook's.
pub(super) async fn namespace(cluster: &Cluster, options: &Options) -> anyhow::Result<String> {
    const CHOOSE: &str = "choose a namespace for administrators alone, with --logs-namespace";
    let namespace = if let Some(asked) = &options.logs_namespace {
        asked.clone()
    } else {
        let service = service_of_webhook(&Snapshot::of(cluster.clone())).await;
        let service = service.with_context(|| format!("cannot read the namespace of the webhook: {CHOOSE}"))?;
        let known = service.map(|service| service.namespace).filter(|name| is_dns_label(name));
        known.with_context(|| {
            format!("no GMSA webhook is installed in this cluster, so the logs have no default namespace: {CHOOSE}")
        })?
    };
    if namespace == *options.serviceaccount.namespace {
        bail!(
            "the logs are not read in {namespace}: its users could then act as administrators of the nodes: {CHOOSE}"
        );
    }
    Ok(namespace)
}

pub(super) fn question(namespace: &str) -> String {
    format!(
        "Make a hostProcess pod in namespace {namespace} on each node, which may do there what an administrator may, to read its logs?"
    )
}

/// Writes the logs of a node, and names the files.
pub(super) async fn write(
    probe: &Probe<'_>,
    place: &ProbeNode,
    node: &str,
    namespace: &str,
    folder: &Path,
) -> anyhow::Result<Check> {
    ensure!(is_dns_subdomain(node), "{node:?} is not the name of a node");
    let folder = folder.join(node);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let pod_name = PodName::new(namespace, "gmsa-logs");
    let mut manifest = probe.on(&pod_name, place);
    let options = json!({"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"});
    let life = probe.options.timeout.saturating_add(MARGIN).as_secs();
    let own =
        json!({"activeDeadlineSeconds": life, "hostNetwork": true, "securityContext": {"windowsOptions": options}});
    merge(&mut manifest, &json!({"spec": own}));
    probe.within(&pod_name, &manifest, LOGS, async |_| read(probe, &pod_name, &folder).await).await
}

async fn read(probe: &Probe<'_>, pod: &PodName, folder: &Path) -> anyhow::Result<Check> {
    let executor = probe.executor(pod, LIMIT, MAX_LOG);
    let mut files = Vec::new();
    for (file, command) in COMMANDS {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let shown = command.join(" ");
        let (why, fix) = match executor.run(&command).await {
            Execution::Ended(output) if output.exit == NO_SUCH_LOG => continue,
            Execution::Ended(output) if output.exit != 0 => {
                (format!("{shown} ended with exit code {}", output.exit), "Run it on the node.")
            }
            Execution::Ended(output) if output.printed.trim().is_empty() => continue,
            Execution::Ended(output) => {
                let path = folder.join(file);
                let is_cut = output.printed.len() as u64 >= MAX_LOG;
                match new_file::save(&path, output.printed.as_bytes()) {
                    Ok(()) if is_cut => files.push(format!("{file} (cut at {} MiB)", MAX_LOG >> 20)),
                    Ok(()) => files.push(file.to_owned()),
                    Err(error) => {
                        let why = format!("cannot write {}: {error}", path.display());
                        return Ok(unread(why, "Choose another folder with --logs, or delete the file."));
                    }
                }
                continue;
            }
            Execution::Absent => (format!("the image cannot run {shown}"), "Choose another with --image."),
            Execution::TimedOut => (format!("{shown} did not end within {} s", LIMIT.as_secs()), "Try again."),
            Execution::Forbidden(found) => return Ok(Check::found(LOGS, *found)),
            Execution::Failed(why) => (format!("{shown} could not be run: {why}"), "Try again."),
        };
        return Ok(unread(why, fix));
    }
    let files = if files.is_empty() { "none of the logs has an entry".to_owned() } else { files.join(", ") };
    Ok(Check::pass(LOGS, format!("{}: {files}", folder.display())))
}

/// The line for a log that could not be read or written.
pub(super) fn unread(text: String, fix: &str) -> Check {
    Check::found(LOGS, Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix))
}

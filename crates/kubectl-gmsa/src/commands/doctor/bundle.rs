//! `doctor --bundle`: all answers of the cluster in one JSON file, for a support case and for `--from`.
//!
//! Invariants: only [`Bundle`] decides what goes into the file; no file is overwritten.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use anyhow::{Context as _, ensure};
use futures::future::join_all;
use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Pod};

use super::install::broker_of;
use crate::shared::{
    walk::{events::Events, tickets},
    webhook::{endpoints, metrics, pod_name},
    world::{Bundle, World},
};
use gmsa_core::credspec::is_dns_label;

/// The limit for a log.
const LOG: &str = "tailLines=200&limitBytes=65536";

/// Lists for the checks of other commands.
const MORE: [&str; 2] = ["/api/v1/serviceaccounts", "/apis/node.k8s.io/v1/runtimeclasses"];

/// Fails early if the file exists or cannot be created.
pub(super) fn check_path(file: &Path) -> anyhow::Result<()> {
    ensure!(file.symlink_metadata().is_err(), "{} exists: --bundle overwrites no file", file.display());
    let created = save(file, b"").and_then(|()| fs::remove_file(file));
    created.with_context(|| format!("cannot write {}", file.display()))
}

/// Creates a file that only its user can read; on Windows it has the rights of its folder. Never overwrites a file.
fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

/// Reads the rest, and writes the file. It also records failed reads.
pub(super) async fn write(world: &World, file: &Path) -> anyhow::Result<()> {
    let (_, _, webhooks, _) = tokio::join!(
        world.roles_and_bindings(),
        Events::read(world, None),
        world.webhooks(),
        join_all(MORE.map(|path| world.list::<serde_json::Value>(path))),
    );
    let services = webhooks.into_iter().flatten().filter_map(|found| found.webhook.client_config.service.clone());
    for service in services.chain(broker_of(world).await) {
        replicas(world, &service).await;
    }
    tickets::read_logs(world).await;
    let text = serde_json::to_string_pretty(&Bundle::of(world)?)? + "\n";
    save(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(io::stderr(), "{} written: read it before you share it", file.display())?;
    Ok(())
}

/// Reads the logs and metrics of the pods behind a Service.
async fn replicas(world: &World, service: &ServiceReference) {
    let endpoints = endpoints(world, service).await.unwrap_or_default();
    for name in endpoints.iter().filter_map(pod_name) {
        let path = format!("/api/v1/namespaces/{}/pods/{name}", service.namespace);
        let Ok(Some(pod)) = world.find::<Pod>(&path).await else { continue };
        metrics(world, &pod).await;
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| container.name.as_str());
        for container in containers.filter(|name| is_dns_label(name)) {
            // The world records a failed read.
            let _ = world.text(&format!("{path}/log?container={container}&{LOG}")).await;
        }
    }
}

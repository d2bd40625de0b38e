//! `gmsa-webhook certs`: inspects serving certificates, and issues them for tests and for installations that keep their
//! own CA. Keys are never printed.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    object::{self, ObjectName},
    service_names::ServiceNames,
    tls::{
        files,
        issue::Ca,
        self_managed::{CA_CERT, TLS_CERT, TLS_KEY},
    },
};
use k8s_openapi::api::core::v1::Secret;

use crate::{
    PROGRAM,
    config::{InspectArgs, IssueArgs},
};
use inspect::{Input, Inspection};

pub mod inspect;

/// Inspects a certificate. Returns one line for each check.
///
/// # Errors
/// Where it, or a webhook configuration, cannot be read.
pub async fn inspect(args: InspectArgs, now: SystemTime) -> anyhow::Result<(String, ExitCode)> {
    let InspectArgs { tls_cert, tls_key, ca, secret, webhook_configuration } = args;
    let file = |path: Option<PathBuf>| path.as_deref().map(files::read).transpose();
    let (cert, key, ca) = (file(tls_cert)?.unwrap_or_default(), file(tls_key)?, file(ca)?);
    let mut input = Input { cert, key, ca, configurations: Vec::new() };
    if secret.is_some() || !webhook_configuration.is_empty() {
        let api = ApiServer::from_environment().await.context("no cluster to ask")?;
        if let Some(secret) = &secret {
            input = from_secret(&api, secret).await?;
        }
        for name in webhook_configuration {
            let found = object::get(&api, &name).await?;
            input.configurations.push((name, found));
        }
    }
    let Inspection { report, passed } = inspect::inspect(&input, now);
    Ok((report, if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

async fn from_secret(api: &ApiServer, name: &ObjectName) -> anyhow::Result<Input> {
    let secret =
        object::get::<Secret>(api, name).await?.with_context(|| format!("the Secret {name} does not exist"))?;
    let mut data = secret.data.unwrap_or_default();
    let mut value = |key| data.remove(key).map(|value| value.0);
    let cert = value(TLS_CERT).unwrap_or_default();
    Ok(Input { cert, key: value(TLS_KEY), ca: value(CA_CERT), configurations: Vec::new() })
}

/// Issues `tls.crt` and `tls.key` into a folder, by the CA in `ca.crt` and `ca.key`, which is created if it is missing. A
/// CA in the folder is used again, so that clients still trust it.
///
/// # Errors
/// Where the CA in the folder cannot be used, a name is not valid in a certificate, or the folder cannot be written.
pub fn issue(args: &IssueArgs, now: SystemTime) -> anyhow::Result<(String, ExitCode)> {
    let IssueArgs { folder, service, name, ca_lifetime, leaf_lifetime } = args;
    let names: Vec<String> = service.iter().flat_map(|ServiceNames(names)| names).chain(name).cloned().collect();
    let [ca_cert, ca_key, tls_cert, tls_key] = ["ca.crt", "ca.key", "tls.crt", "tls.key"].map(|name| folder.join(name));
    let failed = || format!("cannot issue a certificate with {}", ca_cert.display());
    fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let is_new = !ca_cert.exists() && !ca_key.exists();
    let ca = if is_new {
        let ca = Ca::generate("gmsa-webhook CA", now, *ca_lifetime).with_context(failed)?;
        write(&ca_key, &ca.key_pem(), 0o600)?;
        write(&ca_cert, ca.cert_pem(), 0o644)?;
        ca
    } else {
        let [cert, key] = [files::read(&ca_cert)?, files::read(&ca_key)?];
        Ca::from_pem(&String::from_utf8_lossy(&cert), &String::from_utf8_lossy(&key)).with_context(failed)?
    };
    if ca.summary.not_after <= now {
        bail!("{} expired: move it and its key away to have a new certificate authority created", ca_cert.display());
    }
    let (leaf, pair) = ca.issue(PROGRAM.name, &names, now, *leaf_lifetime).with_context(failed)?;
    write(&tls_key, &leaf.key, 0o600)?;
    write(&tls_cert, &leaf.cert, 0o644)?;
    let origin = if is_new { "a new certificate authority" } else { "the existing certificate authority" };
    let report = format!(
        "certificate: {}\nsigned by {origin}: {}\nfor the caBundle: {}\nfor the server: {} and {}\n",
        pair.summary,
        ca_key.display(),
        ca_cert.display(),
        tls_cert.display(),
        tls_key.display(),
    );
    Ok((report, ExitCode::SUCCESS))
}

/// Writes a new file and renames it, so that a reader gets all of the old file or all of the new one.
fn write(path: &Path, content: &str, mode: u32) -> anyhow::Result<()> {
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let beside = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
        fs::write(&beside, content)?;
        beside.persist(path)?;
        io::Result::Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests;

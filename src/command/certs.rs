//! `gmsa-webhook certs`: inspects serving certificates, and issues them for tests and for installations that keep their
//! own CA. Keys are never printed.

use std::{path::PathBuf, time::SystemTime};

use anyhow::Context as _;
use gmsa_cluster::apiserver::ApiServer;

use super::Outcome;
use crate::{
    config::{CertificateLocation, Inspect, Issue},
    tls::{
        configurations, files, folder,
        inspect::{self, CheckResult, Input},
        self_managed::{self, CA_CERT, SecretName, TLS_CERT, TLS_KEY},
    },
};

/// Inspects a certificate. Returns one line for each check.
///
/// # Errors
/// Where it, or a webhook configuration, cannot be read.
pub async fn inspect(request: Inspect, now: SystemTime) -> anyhow::Result<(String, Outcome)> {
    let needs_cluster =
        matches!(request.certificate, CertificateLocation::Secret(_)) || !request.configurations.is_empty();
    let api =
        if needs_cluster { Some(ApiServer::from_environment().await.context("no cluster to ask")?) } else { None };
    let mut input = match (&request.certificate, &api) {
        (CertificateLocation::Secret(secret), Some(api)) => from_secret(api, secret).await?,
        (CertificateLocation::Secret(_), None) => Input::default(),
        (CertificateLocation::Files { cert, key, ca }, _) => {
            let optional = |path: &Option<PathBuf>| path.as_deref().map(files::read).transpose();
            Input { cert: files::read(cert)?, key: optional(key)?, ca: optional(ca)?, configurations: Vec::new() }
        }
    };
    if let Some(api) = &api {
        for name in request.configurations {
            let found = configurations::read(api, &name).await?;
            input.configurations.push((name, found));
        }
    }
    let inspection = inspect::inspect(&input, now);
    let outcome = if inspection.result() == CheckResult::Passed { Outcome::Clean } else { Outcome::Findings };
    Ok((inspection.to_string(), outcome))
}

async fn from_secret(api: &ApiServer, name: &SecretName) -> anyhow::Result<Input> {
    let secret = self_managed::get(api, name).await?.with_context(|| format!("the Secret {name} does not exist"))?;
    let mut data = secret.data.unwrap_or_default();
    let mut value = |key| data.remove(key).map(|value| value.0);
    let cert = value(TLS_CERT).unwrap_or_default();
    Ok(Input { cert, key: value(TLS_KEY), ca: value(CA_CERT), configurations: Vec::new() })
}

/// Issues a serving certificate into a folder, with the CA in the folder or a new one.
///
/// # Errors
/// Where the CA in the folder cannot be used, or a file cannot be written.
pub fn issue(request: &Issue, now: SystemTime) -> anyhow::Result<(String, Outcome)> {
    let made = folder::issue(&request.folder, &request.request, now)?;
    let ca = if made.new_ca { "a new certificate authority" } else { "the existing certificate authority" };
    let report = format!(
        "certificate: {}\nsigned by {ca}: {}\nfor the caBundle: {}\nfor the server: {} and {}\n",
        made.leaf,
        made.ca_key.display(),
        made.ca_cert.display(),
        made.tls_cert.display(),
        made.tls_key.display(),
    );
    Ok((report, Outcome::Clean))
}

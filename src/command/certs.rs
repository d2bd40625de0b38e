//! `gmsa-webhook certs`: what a serving certificate is worth, and certificates for tests and for installations that keep
//! their own authority. Keys are never printed.

use std::time::SystemTime;

use anyhow::Context as _;

use super::Outcome;
use crate::{
    apiserver::ApiServer,
    config::{Inspect, Inspected, Issue},
    tls::{
        folder::{self, Order},
        inspect::{self, Exhibit, Verdict},
    },
};

/// Looks at a certificate, and gives back a line for each thing that was checked.
///
/// # Errors
/// Where it, or a webhook configuration, cannot be read.
pub async fn inspect(request: Inspect, now: SystemTime) -> anyhow::Result<(String, Outcome)> {
    let needs_cluster = matches!(request.what, Inspected::Secret(_)) || !request.configurations.is_empty();
    let api =
        if needs_cluster { Some(ApiServer::from_environment().await.context("no cluster to ask")?) } else { None };
    let mut exhibit = match (&request.what, &api) {
        (Inspected::Secret(secret), Some(api)) => Exhibit::from_secret(api, secret).await?,
        (Inspected::Secret(_), None) => Exhibit::default(),
        (Inspected::Files { cert, key, ca }, _) => Exhibit::from_files(cert, key.as_deref(), ca.as_deref())?,
    };
    if let Some(api) = &api {
        exhibit = exhibit.with_configurations(api, request.configurations).await?;
    }
    let report = inspect::inspect(&exhibit, now);
    let outcome = if report.verdict() == Verdict::Good { Outcome::Clean } else { Outcome::Findings };
    Ok((report.to_string(), outcome))
}

/// Issues a serving certificate into a folder, with the authority that is there, or a new one.
///
/// # Errors
/// Where the authority in the folder cannot be used, or a file cannot be written.
pub fn issue(request: Issue, now: SystemTime) -> anyhow::Result<(String, Outcome)> {
    let Issue { folder, names, ca_lifetime, leaf_lifetime } = request;
    let made = folder::issue(&folder, &Order { names, ca_lifetime, leaf_lifetime }, now)?;
    let authority = if made.new_authority { "a new authority" } else { "the authority that was there" };
    let report = format!(
        "certificate: {}\nsigned by {authority}: {}\nfor the caBundle: {}\nfor the server: {} and {}\n",
        made.leaf,
        made.ca_key.display(),
        made.ca_cert.display(),
        made.tls_cert.display(),
        made.tls_key.display(),
    );
    Ok((report, Outcome::Clean))
}

//! `gmsa-webhook upgrade-crd`: brings the CRD in the cluster up to this release's, which Helm leaves to its users.
//!
//! Invariants: the CRD is patched in place by server-side apply, even if another tool created it, and never deleted, so
//! no credential spec is lost. A CRD of a later release is not changed.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use gmsa_cluster::{
    apiserver::ApiServer,
    crd::{self, PATH},
};
use http::{Request, header::CONTENT_TYPE};
use kube::core::PartialObjectMeta;
use tokio::time::Instant;

/// How long each of the two calls may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Patches the CRD unless it is newer, and reports the result in one line.
///
/// # Errors
/// Where the API server cannot be called, or refuses the patch.
pub async fn upgrade(api: &ApiServer) -> anyhow::Result<(String, ExitCode)> {
    let get = Request::get(PATH).body(Vec::new())?;
    let found = match api.call(get, Instant::now() + PATIENCE).await {
        Ok(found) => {
            serde_json::from_slice::<PartialObjectMeta>(&found).context("the CRD in the cluster cannot be read")?
        }
        Err(error) if error.code() == Some(404) => {
            return Ok(report("the CRD is not installed, so there is nothing to upgrade"));
        }
        Err(error) => return Err(error).context("cannot read the CRD"),
    };
    let (from, to) = (crd::revision(&found.metadata), crd::own_revision());
    if from > to {
        return Ok(report(&format!(
            "the CRD is newer (revision {from}) than this release's (revision {to}): left as it is"
        )));
    }
    apply(api).await.context("cannot patch the CRD")?;
    Ok(report(&format!("the CRD is at revision {to} now; it was at revision {from}")))
}

fn report(line: &str) -> (String, ExitCode) {
    (format!("{line}\n"), ExitCode::SUCCESS)
}

async fn apply(api: &ApiServer) -> anyhow::Result<()> {
    let request = Request::patch(format!("{PATH}?fieldManager=gmsa-webhook&force=true"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(crd::TEXT.into())?;
    api.call(request, Instant::now() + PATIENCE).await?;
    Ok(())
}

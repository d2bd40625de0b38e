//! `gmsa-webhook upgrade-crd`: upgrades the cluster's CRD to this release, which Helm leaves to its users, and stores every credential spec in its
//! version.
//!
//! Invariants: the CRD is patched in place by server-side apply, even if another tool created it, and never deleted, so
//! no credential spec is lost. A CRD of a later release is not changed. No credential spec is changed: an empty patch has the API server write it again as it
//! is, in the version that it stores now.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use gmsa_cluster::{
    apiserver::{ApiServer, CallRequest, list::METADATA},
    crd::{self, PATH},
};
use gmsa_core::{
    causes::chain,
    credspec::{GROUP, PLURAL, VERSION},
};
use http::{Request, header::CONTENT_TYPE};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// How long each of the calls about the CRD may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long writing all credential specs again may take: less than the Job of the chart has.
const MIGRATION: Duration = Duration::from_secs(60);

/// How long an API server may take to learn of a CRD that stores another version. It watches them; until then it writes the old one.
const LEARNS: Duration = Duration::from_secs(5);

/// Patches the CRD unless it is newer, and reports the result in one line.
///
/// # Errors
/// Where the API server cannot be called, or refuses the patch.
pub async fn upgrade() -> anyhow::Result<(String, ExitCode)> {
    let api = ApiServer::from_environment().await.context("no cluster to upgrade")?;
    let get = Request::get(PATH).body(Vec::new());
    let DynamicObject { metadata, data, .. } = match api.read(get, Instant::now() + CALL_TIMEOUT, "a CRD").await {
        Ok(found) => found,
        Err(error) if error.code() == Some(404) => {
            return Ok(report("the CRD is not installed, so there is nothing to upgrade"));
        }
        Err(error) => return Err(error).context("cannot read the CRD"),
    };
    let (from, to) = (crd::revision(&metadata), crd::own_revision());
    if from > to {
        return Ok(report(&format!(
            "the CRD is newer (revision {from}) than this release's (revision {to}): left as it is"
        )));
    }
    apply(&api).await.context("cannot patch the CRD")?;
    let done = format!("the CRD is at revision {to} now; it was at revision {from}");
    let listed = |pointer| data.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let stored = listed("/status/storedVersions");
    let old: Vec<&str> = stored.filter_map(Value::as_str).filter(|version| *version != VERSION).collect();
    if old.is_empty() {
        return Ok(report(&done));
    }
    let is_stored = |version: &Value| version["name"] == VERSION && version["storage"] == true;
    if !listed("/spec/versions").any(is_stored) {
        sleep(LEARNS).await;
    }
    // The release does not depend on it, so it must not fail for it.
    Ok(report(&match store_in_one_version(&api).await {
        Ok(written) => {
            format!("{done}; {written} credential specs were written again, and all are stored as {VERSION}")
        }
        Err(error) => {
            format!("{done}; credential specs may still be stored as {}: {}", old.join(", "), chain(error.as_ref()))
        }
    }))
}

fn report(line: &str) -> (String, ExitCode) {
    (format!("{line}\n"), ExitCode::SUCCESS)
}

async fn apply(api: &ApiServer) -> anyhow::Result<()> {
    let request = Request::patch(format!("{PATH}?fieldManager=gmsa-webhook&force=true"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(crd::TEXT.into());
    api.call(request, Instant::now() + CALL_TIMEOUT).await?;
    Ok(())
}

/// Has the API server write every credential spec again, then removes the other stored versions from the CRD's status. Returns how many
/// there were.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version>
async fn store_in_one_version(api: &ApiServer) -> anyhow::Result<usize> {
    let deadline = Instant::now() + MIGRATION;
    let collection = format!("/apis/{GROUP}/{VERSION}/{PLURAL}");
    let specs: Vec<PartialObjectMeta> =
        api.list(&collection, METADATA, |_| deadline).await.context("cannot list the credential specs")?;
    let mut written = 0;
    for name in specs.into_iter().filter_map(|spec| spec.metadata.name) {
        match api.call(merge(&format!("{collection}/{name}"), &json!({})), deadline).await {
            Ok(_) => written += 1,
            // It was deleted meanwhile.
            Err(error) if error.code() == Some(404) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {name} again")),
        }
    }
    let versions = json!({"status": {"storedVersions": [VERSION]}});
    api.call(merge(&format!("{PATH}/status"), &versions), deadline)
        .await
        .context("cannot change the status of the CRD")?;
    Ok(written)
}

fn merge(path: &str, change: &Value) -> CallRequest {
    Request::patch(format!("{path}?fieldManager=gmsa-webhook"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(change.to_string().into_bytes())
}

//! The Secret, as the API server has it.
//!
//! Invariants: it is written only where it is still the version that was read, so of two writers one has to read it
//! again; it is never created, because RBAC cannot limit `create` to a name. Needs `get`, `update` and `watch` on it, by
//! name. Must not: print what is in it.

use futures::{StreamExt as _, stream::BoxStream};
use gmsa_cluster::apiserver::ApiServer;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{PartialObjectMeta, Request, WatchEvent, params::WatchParams};
use serde_json::json;

use crate::object::{self, ObjectError, ObjectName};

/// A new value of this annotation asks for a new CA.
pub const ROTATE_ANNOTATION: &str = "gmsa-webhook/rotate-ca";

/// Replaces the Secret that was read. `secret` carries the `resourceVersion` that it had.
pub(super) async fn update(api: &ApiServer, name: &ObjectName, secret: &Secret) -> Result<(), ObjectError> {
    // Without a version, the update would overwrite what another writer has written.
    if secret.metadata.resource_version.as_ref().is_none_or(String::is_empty) {
        return Err(ObjectError::Unexpected(name.title()));
    }
    let _: Secret = object::update(api, name, &json!(secret)).await?;
    Ok(())
}

/// What happens to the Secret from now on, and the version that it has. Of the Secret itself only the metadata comes.
pub(super) async fn watch(api: &ApiServer, name: &ObjectName) -> kube::Result<SecretEvents> {
    let only = WatchParams::default().fields(&format!("metadata.name={}", name.name)).disable_bookmarks();
    // "0" begins with the Secret as it is: no list is needed, and no version can be too old.
    let request = Request::new(&name.collection).watch_metadata(&only, "0").map_err(kube::Error::BuildRequest)?;
    Ok(api.watch_client().request_events(request).await?.boxed())
}

pub(super) type SecretEvents = BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta<Secret>>>>;

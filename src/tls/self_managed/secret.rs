//! The Secret, as the API server has it.
//!
//! Invariants: it is written only where it is still the version that was read, so of two writers one has to read it
//! again; it is never created, because RBAC cannot limit `create` to a name. Needs `get`, `update` and `watch` on it, by
//! name. Must not: print what is in it.

use std::{fmt, str::FromStr};

use futures::{StreamExt as _, stream::BoxStream};
use gmsa_cluster::apiserver::ApiServer;
use gmsa_core::credspec::is_dns_subdomain;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{PartialObjectMeta, Request, WatchEvent, params::WatchParams};
use serde_json::json;

use crate::tls::object::{self, ObjectError};

/// A new value of this annotation asks for a new CA.
pub const ROTATE_ANNOTATION: &str = "gmsa-webhook/rotate-ca";

/// `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    namespace: String,
    name: String,
}

impl FromStr for SecretName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.split_once('/') {
            // They become parts of a URL.
            Some((namespace, name)) if is_dns_subdomain(namespace) && is_dns_subdomain(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME, both lower-case DNS names"),
        }
    }
}

impl SecretName {
    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    fn title(&self) -> String {
        format!("the Secret {self}")
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Reads the Secret; `None` where it does not exist.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn get(api: &ApiServer, name: &SecretName) -> Result<Option<Secret>, ObjectError> {
    object::get(api, &name.path(), name.title()).await
}

/// Replaces the Secret that was read. `secret` carries the `resourceVersion` that it had.
pub(super) async fn update(api: &ApiServer, name: &SecretName, secret: &Secret) -> Result<(), ObjectError> {
    // Without a version, the update would overwrite what another writer has written.
    if secret.metadata.resource_version.as_ref().is_none_or(String::is_empty) {
        return Err(ObjectError::Unexpected(name.title()));
    }
    let _: Secret = object::update(api, &name.path(), name.title(), &json!(secret)).await?;
    Ok(())
}

/// What happens to the Secret from now on, and the version that it has. Of the Secret itself only the metadata comes.
pub(super) async fn watch(api: &ApiServer, name: &SecretName) -> kube::Result<Events> {
    let only = WatchParams::default().fields(&format!("metadata.name={}", name.name)).disable_bookmarks();
    // "0" begins with the Secret as it is: no list is needed, and no version can be too old.
    let request = Request::new(name.collection()).watch_metadata(&only, "0").map_err(kube::Error::BuildRequest)?;
    Ok(api.client().request_events(request).await?.boxed())
}

pub(super) type Events = BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta<Secret>>>>;

//! The Secret, as the API server has it.
//!
//! What always holds: it is written only where it is still the version that was read, so of two writers one has to read it
//! again; it is never created, because RBAC cannot limit `create` to a name. Needs `get`, `update`, `list` and `watch` on
//! it, by name. Must not: print what is in it.

use std::{fmt, str::FromStr};

use futures::{Stream, StreamExt as _};
use gmsa_core::credspec::is_dns_subdomain;
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use thiserror::Error;

use crate::{
    apiserver::ApiServer,
    tls::object::{self, FIELD_MANAGER, ObjectError},
};

/// A new value of this annotation asks for a new CA.
pub const ROTATE_ANNOTATION: &str = "gmsa-webhook/rotate-ca";

/// `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    namespace: String,
    name: String,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected NAMESPACE/NAME, both lower-case DNS names")]
pub struct NotASecretName;

impl FromStr for SecretName {
    type Err = NotASecretName;

    fn from_str(text: &str) -> Result<Self, NotASecretName> {
        match text.split_once('/') {
            // They become parts of a URL.
            Some((namespace, name)) if is_dns_subdomain(namespace) && is_dns_subdomain(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(NotASecretName),
        }
    }
}

impl SecretName {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/{}", self.namespace, self.name)
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
    let body = json!(secret).to_string().into_bytes();
    let request =
        Request::put(format!("{}?fieldManager={FIELD_MANAGER}", name.path())).header(CONTENT_TYPE, "application/json");
    let _: Secret = object::write(api, "update", name.title(), request, body, &[409]).await?;
    Ok(())
}

/// An item says that the Secret may have changed, an error why it cannot be watched. The stream does not end.
pub(super) fn changes(
    api: &ApiServer,
    name: &SecretName,
) -> impl Stream<Item = Result<(), watcher::Error>> + Send + use<> {
    let secrets: Api<Secret> = Api::namespaced(api.client().clone(), &name.namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", name.name));
    watcher(secrets, only).default_backoff().map(|event| event.map(|_| ()))
}

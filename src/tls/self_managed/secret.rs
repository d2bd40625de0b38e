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
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    apiserver::{ApiServer, CallError},
    tls::configurations::{CALL_TIMEOUT, FIELD_MANAGER},
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
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Error)]
pub enum SecretError {
    #[error("cannot {verb} the Secret {secret}")]
    Call { verb: &'static str, secret: SecretName, source: CallError },
    #[error("for the Secret {0}, the API server returned something that is not a Secret")]
    NotASecret(SecretName),
    #[error("the Secret {0} was changed by another writer at the same time")]
    Conflict(SecretName),
}

/// Reads the Secret; `None` where it does not exist.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn get(api: &ApiServer, name: &SecretName) -> Result<Option<Secret>, SecretError> {
    match call(api, name, "get", Request::get(name.path()), Vec::new()).await {
        Ok(secret) => Ok(Some(secret)),
        Err(SecretError::Call { source, .. }) if source.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the Secret that was read by `secret`, which carries its `resourceVersion`.
pub(super) async fn update(api: &ApiServer, name: &SecretName, secret: &Secret) -> Result<(), SecretError> {
    let body = serde_json::to_vec(secret).map_err(|_| SecretError::NotASecret(name.clone()))?;
    let request =
        Request::put(format!("{}?fieldManager={FIELD_MANAGER}", name.path())).header(CONTENT_TYPE, "application/json");
    match call(api, name, "update", request, body).await {
        Ok(_) => Ok(()),
        Err(SecretError::Call { source, .. }) if source.code() == Some(409) => Err(SecretError::Conflict(name.clone())),
        Err(error) => Err(error),
    }
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

async fn call(
    api: &ApiServer,
    name: &SecretName,
    verb: &'static str,
    request: http::request::Builder,
    body: Vec<u8>,
) -> Result<Secret, SecretError> {
    let not_one = || SecretError::NotASecret(name.clone());
    // Two DNS names always make a path.
    let request = request.body(body).map_err(|_| not_one())?;
    let answer = api.call(request, Instant::now() + CALL_TIMEOUT).await;
    let answer = answer.map_err(|source| SecretError::Call { verb, secret: name.clone(), source })?;
    let secret: Secret = serde_json::from_slice(&answer).map_err(|_| not_one())?;
    // Without a version, an update would not notice another writer.
    let versioned = secret.metadata.resource_version.as_ref().is_some_and(|version| !version.is_empty());
    if versioned { Ok(secret) } else { Err(not_one()) }
}

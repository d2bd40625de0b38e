//! The Secret, as the API server has it.
//!
//! What always holds: it is only ever replaced by whoever has read what is in it, so of two writers one has to look again;
//! it is never created, because RBAC cannot limit `create` to a name. Needs `get`, `update`, `list` and `watch` on it, by
//! name. Must not: print what is in it.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{Stream, StreamExt as _};
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::time::Instant;

use super::stored::Values;
use crate::{
    apiserver::{ApiServer, CallError},
    tls::configurations::{CALL_TIMEOUT, FIELD_MANAGER},
};
use gmsa_core::credspec::is_dns_subdomain;

/// Asks for a new certificate authority: a rotation begins when its value becomes one that was not there before.
pub const ROTATE_ANNOTATION: &str = "gmsa-webhook/rotate-ca";

/// Which Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    namespace: String,
    name: String,
}

/// The text is not the name of a Secret, or of its namespace.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a namespace and a Secret's name are lower-case DNS names")]
pub struct NotASecretName;

impl SecretName {
    /// A Secret by namespace and name.
    ///
    /// # Errors
    /// Where one of them is not a DNS name: they become parts of a URL.
    pub fn new(namespace: &str, name: &str) -> Result<Self, NotASecretName> {
        if is_dns_subdomain(namespace) && is_dns_subdomain(name) {
            Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
        } else {
            Err(NotASecretName)
        }
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/{}", self.namespace, self.name)
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A Secret as it was read.
pub struct FoundSecret {
    object: Map<String, Value>,
    /// What is in it.
    pub values: Values,
    /// What somebody asks a rotation by, or an empty text.
    pub rotation: String,
}

/// Why the Secret could not be read or replaced.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The API server did not answer, or refused.
    #[error("cannot {verb} the Secret {secret}")]
    Call {
        /// What was tried: `get` or `update`.
        verb: &'static str,
        /// Which Secret.
        secret: SecretName,
        /// Why it failed.
        source: CallError,
    },
    /// What came back is not a Secret.
    #[error("the API server's answer about the Secret {0} is not one")]
    Answer(SecretName),
    /// Another replica was first.
    #[error("the Secret {0} was changed by somebody else while it was being changed here")]
    Conflict(SecretName),
}

/// Reads the Secret; `None` where there is none of that name.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn get(api: &ApiServer, secret: &SecretName) -> Result<Option<FoundSecret>, SecretError> {
    match call(api, secret, "get", Request::get(secret.path()).body(Vec::new())).await {
        Ok(found) => Ok(Some(found)),
        Err(SecretError::Call { source, .. }) if source.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces what is in the Secret, if it is still the one that was read.
///
/// # Errors
/// Where it is not, the API server does not answer in time, or refuses.
pub async fn update(
    api: &ApiServer,
    secret: &SecretName,
    found: FoundSecret,
    values: &Values,
) -> Result<FoundSecret, SecretError> {
    let mut object = found.object;
    let data: Map<String, Value> =
        values.iter().map(|(key, value)| (key.clone(), json!(STANDARD.encode(value)))).collect();
    object.insert("data".to_owned(), Value::Object(data));
    let request = Request::put(format!("{}?fieldManager={FIELD_MANAGER}", secret.path()))
        .header(CONTENT_TYPE, "application/json")
        .body(Value::Object(object).to_string().into_bytes());
    match call(api, secret, "update", request).await {
        Err(SecretError::Call { source, .. }) if source.code() == Some(409) => {
            Err(SecretError::Conflict(secret.clone()))
        }
        result => result,
    }
}

/// Something has happened to the Secret, or may have: an item says no more than that. It goes on for ever; what keeps it
/// from watching comes as an error.
pub fn changes(api: &ApiServer, secret: &SecretName) -> impl Stream<Item = Result<(), watcher::Error>> + Send + use<> {
    let secrets: Api<Secret> = Api::namespaced(api.client().clone(), &secret.namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", secret.name));
    watcher(secrets, only).default_backoff().map(|event| event.map(|_| ()))
}

async fn call(
    api: &ApiServer,
    secret: &SecretName,
    verb: &'static str,
    request: Result<Request<Vec<u8>>, http::Error>,
) -> Result<FoundSecret, SecretError> {
    // Two DNS names always make a path.
    let request = request.map_err(|_| SecretError::Answer(secret.clone()))?;
    let answer = api.call(request, Instant::now() + CALL_TIMEOUT).await;
    let answer = answer.map_err(|source| SecretError::Call { verb, secret: secret.clone(), source })?;
    parse(&answer).ok_or_else(|| SecretError::Answer(secret.clone()))
}

fn parse(body: &[u8]) -> Option<FoundSecret> {
    let object: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let metadata = object.get("metadata")?;
    // Without it an update would not notice another writer.
    metadata.get("resourceVersion")?.as_str().filter(|version| !version.is_empty())?;
    let rotation = metadata.get("annotations").and_then(|annotations| annotations.get(ROTATE_ANNOTATION));
    let rotation = rotation.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut values = Values::new();
    for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
        values.insert(key.clone(), STANDARD.decode(value.as_str()?).ok()?);
    }
    Some(FoundSecret { object, values, rotation })
}

//! Reads and writes single objects of the API server.
//!
//! Invariants: each call has a time limit; an error names the object and never quotes what is in it.

use std::time::Duration;

use gmsa_cluster::apiserver::{ApiServer, CallError};
use http::{Request, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub enum ObjectError {
    #[error("cannot {verb} {object}")]
    Call { verb: &'static str, object: String, source: CallError },
    #[error("the API server returned something that is not {0}")]
    Unexpected(String),
}

impl ObjectError {
    /// Whether the object has changed since it was read. A failed `test` of a JSON Patch is answered with 409 or 422.
    pub(super) fn is_conflict(&self) -> bool {
        let Self::Call { verb, source, .. } = self else { return false };
        matches!((*verb, source.code()), (_, Some(409)) | ("patch", Some(422)))
    }
}

/// Reads the object at `path`; `None` where it does not exist.
pub(super) async fn get<T: DeserializeOwned>(
    api: &ApiServer,
    path: &str,
    object: String,
) -> Result<Option<T>, ObjectError> {
    match call(api, "get", object, Request::get(path).body(Vec::new())).await {
        Err(ObjectError::Call { source, .. }) if source.code() == Some(404) => Ok(None),
        result => result.map(Some),
    }
}

/// Replaces the object at `path`, and returns it as it is then.
pub(super) async fn update<T: DeserializeOwned>(
    api: &ApiServer,
    path: &str,
    object: String,
    body: &Value,
) -> Result<T, ObjectError> {
    let request = Request::put(written(path)).header(CONTENT_TYPE, "application/json");
    call(api, "update", object, request.body(body.to_string().into_bytes())).await
}

/// Applies a JSON Patch to the object at `path`, and returns it as it is then.
pub(super) async fn patch<T: DeserializeOwned>(
    api: &ApiServer,
    path: &str,
    object: String,
    operations: &Value,
) -> Result<T, ObjectError> {
    let request = Request::patch(written(path)).header(CONTENT_TYPE, "application/json-patch+json");
    call(api, "patch", object, request.body(operations.to_string().into_bytes())).await
}

fn written(path: &str) -> String {
    format!("{path}?fieldManager=gmsa-webhook")
}

async fn call<T: DeserializeOwned>(
    api: &ApiServer,
    verb: &'static str,
    object: String,
    request: http::Result<Request<Vec<u8>>>,
) -> Result<T, ObjectError> {
    // The paths consist of checked names: they always make a request.
    let Ok(request) = request else { return Err(ObjectError::Unexpected(object)) };
    match api.call(request, Instant::now() + CALL_TIMEOUT).await {
        Ok(answer) => serde_json::from_slice(&answer).map_err(|_| ObjectError::Unexpected(object)),
        Err(source) => Err(ObjectError::Call { verb, object, source }),
    }
}

//! Reads and writes single objects of the API server.
//!
//! What always holds: each call has a time limit; an error names the object and never quotes what is in it.

use std::time::Duration;

use http::{Request, request::Builder};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::Instant;

use crate::apiserver::{ApiServer, CallError};

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const FIELD_MANAGER: &str = "gmsa-webhook";

#[derive(Debug, Error)]
pub enum ObjectError {
    #[error("cannot {verb} {object}")]
    Call { verb: &'static str, object: String, source: CallError },
    #[error("the API server returned something that is not {0}")]
    Unexpected(String),
    #[error("{0} was changed by another writer at the same time")]
    Conflict(String),
}

/// Reads the object at `path`; `None` where it does not exist.
pub(super) async fn get<T: DeserializeOwned>(
    api: &ApiServer,
    path: &str,
    object: String,
) -> Result<Option<T>, ObjectError> {
    match call(api, "get", object, Request::get(path), Vec::new()).await {
        Err(ObjectError::Call { source, .. }) if source.code() == Some(404) => Ok(None),
        result => result.map(Some),
    }
}

/// Writes an object and returns it as it is then. `conflict` are the HTTP status codes that mean that it has changed
/// since it was read.
pub(super) async fn write<T: DeserializeOwned>(
    api: &ApiServer,
    verb: &'static str,
    object: String,
    request: Builder,
    body: Vec<u8>,
    conflict: &[u16],
) -> Result<T, ObjectError> {
    match call(api, verb, object, request, body).await {
        Err(ObjectError::Call { object, source, .. }) if source.code().is_some_and(|code| conflict.contains(&code)) => {
            Err(ObjectError::Conflict(object))
        }
        result => result,
    }
}

async fn call<T: DeserializeOwned>(
    api: &ApiServer,
    verb: &'static str,
    object: String,
    request: Builder,
    body: Vec<u8>,
) -> Result<T, ObjectError> {
    // The paths consist of checked names: they always make a request.
    let Ok(request) = request.body(body) else { return Err(ObjectError::Unexpected(object)) };
    match api.call(request, Instant::now() + CALL_TIMEOUT).await {
        Ok(answer) => serde_json::from_slice(&answer).map_err(|_| ObjectError::Unexpected(object)),
        Err(source) => Err(ObjectError::Call { verb, object, source }),
    }
}

//! What lists and watches of credential specs bring over the wire, and the ways in which they fail.
//!
//! Invariants: of an object only its name, its version and its contents are kept, and the contents are made as it
//! is parsed; what an error says never quotes an object.

use std::sync::Arc;

use gmsa_cluster::{
    apiserver::{ApiServer, CallError},
    resolver::live::collection,
};
use gmsa_core::credspec::{Contents, CredentialSpec};
use kube::core::{Request, Status, params::ListParams};
use serde::Deserialize;
use tokio::time::Instant;

/// An object of a list or an event, with what memory keeps of it.
#[derive(Clone, Deserialize)]
#[serde(from = "CredentialSpec")]
pub(super) struct Object {
    pub name: String,
    pub resource_version: String,
    pub contents: Option<Arc<Contents>>,
}

impl From<CredentialSpec> for Object {
    fn from(spec: CredentialSpec) -> Self {
        let contents = spec.contents().map(Arc::new);
        Self { name: spec.metadata.name, resource_version: spec.metadata.resource_version, contents }
    }
}

/// What a list brings of each object.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Whole,
    /// A `PartialObjectMetadata`: an object without contents.
    Metadata,
}

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page {
    pub metadata: PageMetadata,
    pub items: Option<Vec<Object>>,
}

/// The part of a list's metadata with its version and the token of the next page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    pub resource_version: String,
    #[serde(default)]
    pub r#continue: String,
    pub remaining_item_count: Option<usize>,
}

impl Page {
    /// Reads the page that `params` ask for, and sets them to the next one: on the last page there is no token to continue.
    pub async fn read(
        api: &ApiServer,
        part: Part,
        params: &mut ListParams,
        deadline: Instant,
    ) -> Result<Self, WatchError> {
        let list = Request::new(collection());
        let (request, what) = match part {
            Part::Whole => (list.list(params), "credential specs"),
            Part::Metadata => (list.list_metadata(params), "credential specs' metadata"),
        };
        let body = api.call(request.map_err(|error| WatchError::Failed(error.to_string()))?, deadline).await?;
        let page: Self = serde_json::from_slice(&body)
            .map_err(|_| WatchError::Failed(format!("the answer is not a list of {what}")))?;
        params.continue_token = Some(page.metadata.r#continue.clone()).filter(|token| !token.is_empty());
        Ok(page)
    }
}

/// Why there is no watch.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// Not permitted: it stays so until an administrator grants it.
    #[error("listing and watching credential specs is not permitted")]
    Refused(String),
    /// The API server does not know the kind.
    #[error("the CustomResourceDefinition is not installed")]
    NoDefinition,
    /// The API server no longer has the version to continue from: a new list is needed.
    #[error("the resource version is too old")]
    Expired,
    /// The watch is connected, but does not deliver changes.
    #[error("{0}")]
    Stuck(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl WatchError {
    fn of(code: u16, cause: impl FnOnce() -> String) -> Self {
        match code {
            403 => Self::Refused(cause()),
            404 => Self::NoDefinition,
            410 => Self::Expired,
            _ => Self::Failed(cause()),
        }
    }
}

impl From<CallError> for WatchError {
    fn from(error: CallError) -> Self {
        Self::of(error.code().unwrap_or_default(), || error.to_string())
    }
}

impl From<Box<Status>> for WatchError {
    fn from(status: Box<Status>) -> Self {
        Self::of(status.code, || gmsa_core::quote::remark(&status.message))
    }
}

impl From<kube::Error> for WatchError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => status.into(),
            // A line that is no event must not be quoted.
            kube::Error::SerdeError(_) => Self::Failed("an event is not about a credential spec".to_owned()),
            error => CallError::Unreachable(error).into(),
        }
    }
}

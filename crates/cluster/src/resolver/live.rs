//! Credential specs, read from the API server for each question.
//!
//! Invariants: "missing" is said only where the API server itself says that there is no object of that name; a
//! missing `CustomResourceDefinition` is a failure, not a missing credential spec. An answer about another object is a failure.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use http::Request;
use tokio::time::Instant;

use super::{Freshness, Resolved, Resolver};
use crate::apiserver::{ApiServer, CallError, CallKind};
use gmsa_core::{
    admission::{Failure, Source, SpecFact},
    credspec::{Contents, CredentialSpec, GROUP, KIND, PLURAL, SpecName, VERSION},
};

/// A [`Resolver`] that reads every credential spec from the API server.
pub struct Live {
    api: Arc<ApiServer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Found {
        resource_version: String,
        /// Its contents; `None` where its `credspec` is missing or is not a JSON object.
        contents: Option<Arc<Contents>>,
    },
    Missing,
}

impl Read {
    /// What an admission decision takes from it.
    pub fn fact(self) -> SpecFact {
        match self {
            Self::Found { contents: Some(contents), .. } => SpecFact::Contents(contents),
            Self::Found { contents: None, .. } => SpecFact::Unusable,
            Self::Missing => SpecFact::Missing,
        }
    }
}

/// Why a credential spec could not be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the name does not make a URL")]
    Request(#[source] http::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(
        "the API server does not know {KIND}: its CustomResourceDefinition {PLURAL}.{GROUP}, version {VERSION}, is not installed"
    )]
    NoDefinition,
    #[error("the API server's answer is not a {KIND}")]
    NotACredentialSpec,
    #[error("the API server's answer is about another object than the one that was asked for")]
    OtherObject,
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Call(error) => error.into(),
            error => Self { timed_out: false, cause: error.to_string() },
        }
    }
}

impl Live {
    pub fn new(api: Arc<ApiServer>) -> Self {
        Self { api }
    }

    /// Reads one credential spec.
    ///
    /// # Errors
    /// Where there is no answer by the deadline, or one that cannot be used.
    pub async fn read(&self, name: &SpecName, kind: CallKind, deadline: Instant) -> Result<Read, Failure> {
        Ok(self.get(name, kind, deadline).await?)
    }

    async fn get(&self, name: &SpecName, kind: CallKind, deadline: Instant) -> Result<Read, ReadError> {
        let request = Request::get(format!("{}/{name}", collection())).body(Vec::new()).map_err(ReadError::Request)?;
        match self.api.call_for(kind, None, request, deadline).await {
            Ok(body) => found(name, &body),
            Err(error) if error.code() == Some(404) => {
                if is_about(&error, name) {
                    Ok(Read::Missing)
                } else {
                    Err(ReadError::NoDefinition)
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The path of all credential specs.
pub fn collection() -> String {
    format!("/apis/{GROUP}/{VERSION}/{PLURAL}")
}

fn found(name: &SpecName, body: &[u8]) -> Result<Read, ReadError> {
    let spec: CredentialSpec = serde_json::from_slice(body).map_err(|_| ReadError::NotACredentialSpec)?;
    if spec.metadata.name != name.as_str() {
        return Err(ReadError::OtherObject);
    }
    let contents = spec.contents().map(Arc::new);
    Ok(Read::Found { resource_version: spec.metadata.resource_version, contents })
}

/// Whether the 404 is about the object: for an unknown resource the API server names no object, and neither does a proxy.
fn is_about(error: &CallError, name: &SpecName) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.kind == PLURAL && details.name == name.as_str())
}

impl Resolver for Live {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        async move {
            let fact = self.read(name, CallKind::UnknownSpec, deadline).await.map_or_else(SpecFact::Failed, Read::fact);
            Resolved { fact, source: Source::Api }
        }
        .boxed()
    }
}

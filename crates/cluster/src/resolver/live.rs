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

/// Reads one credential spec.
///
/// # Errors
/// Where there is no answer by the deadline, or one that cannot be used.
pub async fn read(api: &ApiServer, name: &SpecName, kind: CallKind, deadline: Instant) -> Result<Read, Failure> {
    let request = Request::get(format!("{}/{name}", collection())).body(Vec::new());
    let request = request.map_err(|_| Failure::new("the name does not make a URL"))?;
    match api.exchange(kind, None, request, deadline).await {
        Ok(answer) => found(name, answer.body()),
        Err(error) if error.code() != Some(404) => Err(error.into()),
        Err(error) if is_about(&error, name) => Ok(Read::Missing),
        Err(_) => Err(Failure::new(format!(
            "the API server does not know {KIND}: its CustomResourceDefinition {PLURAL}.{GROUP}, version {VERSION}, is not installed"
        ))),
    }
}

/// The path of all credential specs.
pub fn collection() -> String {
    format!("/apis/{GROUP}/{VERSION}/{PLURAL}")
}

fn found(name: &SpecName, body: &[u8]) -> Result<Read, Failure> {
    let spec: CredentialSpec =
        serde_json::from_slice(body).map_err(|_| Failure::new(format!("the API server's answer is not a {KIND}")))?;
    if spec.metadata.name != name.as_str() {
        return Err(Failure::new("the API server's answer is about another object than the one that was asked for"));
    }
    let contents = spec.contents().map(Arc::new);
    Ok(Read::Found { resource_version: spec.metadata.resource_version, contents })
}

/// Whether the 404 is about the object: for an unknown resource the API server names no object, and neither does a proxy.
fn is_about(error: &CallError, name: &SpecName) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.kind == PLURAL && details.name == name.as_str())
}

/// Reads every credential spec.
impl Resolver for ApiServer {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        async move {
            let read = read(self, name, CallKind::UnknownSpec, deadline).await;
            Resolved { fact: read.map_or_else(SpecFact::Failed, Read::fact), source: Source::Api }
        }
        .boxed()
    }
}

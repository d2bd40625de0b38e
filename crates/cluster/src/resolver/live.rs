//! Credential specs, read from the API server for each question.
//!
//! Invariants: contents that no pod can carry are not parsed, because what a hostile object of a megabyte is parsed into takes a
//! hundred; "missing" is said only where the API server itself says that there is no object of that name; a
//! missing `CustomResourceDefinition` is a failure, not a missing credential spec. An answer about another object is a failure.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use http::Request;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

use super::{Freshness, Resolved, Resolver};
use crate::apiserver::{ApiServer, CallError, CallKind};
use gmsa_core::{
    admission::{Failure, Source, SpecFact},
    credspec::{Contents, GROUP, KIND, MAX_CONTENTS_BYTES, PLURAL, SpecMetadata, SpecName, VERSION},
};

/// The longest `credspec` that is parsed, in bytes. The API server prints it as Go does, so it is as long as the contents text.
const MAX_PARSED: usize = MAX_CONTENTS_BYTES + MAX_CONTENTS_BYTES / 8;

/// A credential spec in an answer of the API server. Unneeded fields are skipped; the contents are parsed later.
#[derive(Deserialize)]
pub struct SpecObject<'a> {
    #[serde(default)]
    pub metadata: SpecMetadata,
    #[serde(borrow, default)]
    credspec: Option<&'a RawValue>,
}

impl SpecObject<'_> {
    /// Its resource version, which kube-apiserver counts upwards; `None` where it is not a number.
    pub fn version(&self) -> Option<u64> {
        self.metadata.resource_version.parse().ok()
    }

    /// The fact for an admission decision: its contents, unless `credspec` is missing or not a JSON object.
    ///
    /// # Errors
    /// If it is an object that cannot be read: it has too many levels, or a number that is too large.
    pub fn fact(&self) -> serde_json::Result<SpecFact> {
        let text = self.credspec.map(RawValue::get).filter(|text| text.starts_with('{'));
        let Some(text) = text else { return Ok(SpecFact::Unusable) };
        if text.len() > MAX_PARSED {
            return Ok(SpecFact::Contents(Contents::too_long()));
        }
        let contents = Contents::of(&serde_json::from_str::<Map<String, Value>>(text)?);
        Ok(SpecFact::Contents(if contents.is_too_long() { Contents::too_long() } else { Arc::new(contents) }))
    }
}

/// The result of reading a credential spec.
#[derive(Debug)]
pub struct SpecRead {
    /// The object's resource version, if there is one and it is a number.
    pub version: Option<u64>,
    /// The fact for an admission decision; never a failure.
    pub fact: SpecFact,
}

/// Reads one credential spec.
///
/// # Errors
/// Where there is no usable answer by the deadline.
pub async fn read(api: &ApiServer, name: &SpecName, kind: CallKind, deadline: Instant) -> Result<SpecRead, Failure> {
    match body(api, name, kind, None, deadline).await? {
        Some(body) => found(name, &body),
        None => Ok(SpecRead { version: None, fact: SpecFact::Missing }),
    }
}

/// Reads one credential spec, for a service account if that has a share of the calls: the JSON of the object, or `None` where there is
/// none of this name.
///
/// # Errors
/// Where there is no usable answer by the deadline.
pub async fn body(
    api: &ApiServer,
    name: &SpecName,
    kind: CallKind,
    account: Option<&str>,
    deadline: Instant,
) -> Result<Option<Bytes>, Failure> {
    let request = Request::get(format!("{}/{name}", collection())).body(Vec::new());
    match api.exchange(kind, account, request, deadline).await {
        Ok(answer) => Ok(Some(answer.into_body())),
        Err(error) if error.code() != Some(404) => Err(error.into()),
        Err(error) if is_about(&error, name) => Ok(None),
        Err(_) => Err(Failure::new(not_installed())),
    }
}

/// Why there can be no credential spec: the answer 404 is not about one.
pub fn not_installed() -> String {
    format!(
        "the API server does not know {KIND}: its CustomResourceDefinition {PLURAL}.{GROUP}, version {VERSION}, is not installed"
    )
}

/// The path of all credential specs.
pub fn collection() -> String {
    format!("/apis/{GROUP}/{VERSION}/{PLURAL}")
}

/// Reads a credential spec in an answer of the API server.
///
/// # Errors
/// Where it is another object, or none.
pub fn found(name: &SpecName, body: &[u8]) -> Result<SpecRead, Failure> {
    let not_one = |_| Failure::new(format!("the API server's answer is not a {KIND}"));
    let object: SpecObject = serde_json::from_slice(body).map_err(not_one)?;
    if object.metadata.name != name.as_str() {
        return Err(Failure::new("the API server's answer is about another object than the one that was asked for"));
    }
    Ok(SpecRead { version: object.version(), fact: object.fact().map_err(not_one)? })
}

/// Whether the 404 is about the object: for an unknown resource the API server names no object, and neither does a proxy.
fn is_about(error: &CallError, name: &SpecName) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.kind == PLURAL && details.name == name.as_str())
}

/// Reads the credential spec for each question, within the limits of names that may not exist.
impl Resolver for ApiServer {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, deadline: Instant) -> BoxFuture<'a, Resolved> {
        async move {
            let read = read(self, name, CallKind::UnknownSpec, deadline).await;
            Resolved { fact: read.map_or_else(SpecFact::Failed, |read| read.fact), source: Source::Api }
        }
        .boxed()
    }
}

//! Names, reads and writes single objects of the API server.
//!
//! Invariants: each call has a time limit; an error names the object and never quotes its contents.

use std::{fmt, time::Duration};

use gmsa_cluster::apiserver::{ApiServer, CallError, CallRequest};
use gmsa_core::credspec::is_dns_subdomain;
use http::Request;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::Instant;

mod kept;

pub(crate) use kept::KeptObject;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A Secret, as `NAMESPACE/NAME`, or a webhook configuration, as `mutating/NAME` or `validating/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Its description in messages.
    resource: &'static str,
    /// The path of the collection that it is in.
    pub(crate) collection: String,
    pub(crate) name: String,
    /// The text as typed.
    text: String,
}

impl ObjectName {
    /// # Errors
    /// Where a part of `NAMESPACE/NAME` is missing, or not fit for a URL.
    pub fn secret(text: &str) -> Result<Self, &'static str> {
        match text.split_once('/') {
            Some((namespace, name)) if is_dns_subdomain(namespace) && is_dns_subdomain(name) => {
                Ok(Self::new("Secret", format!("/api/v1/namespaces/{namespace}/secrets"), name, text))
            }
            _ => Err("expected NAMESPACE/NAME, both lower-case DNS names"),
        }
    }

    /// # Errors
    /// Where the kind is another than the two, or the name is not fit for a URL.
    pub fn configuration(text: &str) -> Result<Self, &'static str> {
        match text.split_once('/') {
            Some((kind @ ("mutating" | "validating"), name)) if is_dns_subdomain(name) => {
                let collection = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
                Ok(Self::new("webhook configuration", collection, name, text))
            }
            _ => Err("expected mutating/NAME or validating/NAME"),
        }
    }

    fn new(resource: &'static str, collection: String, name: &str, text: &str) -> Self {
        Self { resource, collection, name: name.to_owned(), text: text.to_owned() }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    pub(crate) fn title(&self) -> String {
        format!("the {} {self}", self.resource)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why an object was not read or written.
#[derive(Debug, Error)]
#[error("cannot {verb} {object}")]
pub struct ObjectError {
    verb: &'static str,
    object: String,
    source: CallError,
}

impl ObjectError {
    pub(crate) fn new(verb: &'static str, name: &ObjectName, source: CallError) -> Self {
        Self { verb, object: name.title(), source }
    }

    /// Whether the object has changed since it was read. A failed `test` of a JSON Patch is answered with 409 or 422.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!((self.verb, self.source.code()), (_, Some(409)) | ("patch", Some(422)))
    }
}

/// Reads the object; `None` where it does not exist.
///
/// # Errors
/// Where the API server does not answer in time, or refuses.
pub async fn get<T: DeserializeOwned>(api: &ApiServer, name: &ObjectName) -> Result<Option<T>, ObjectError> {
    match call(api, "get", name, Request::get(name.path()).body(Vec::new())).await {
        Err(error) if error.source.code() == Some(404) => Ok(None),
        result => result.map(Some),
    }
}

async fn call<T: DeserializeOwned>(
    api: &ApiServer,
    verb: &'static str,
    name: &ObjectName,
    request: CallRequest,
) -> Result<T, ObjectError> {
    let answer = api.read(request, Instant::now() + CALL_TIMEOUT, "such an object").await;
    answer.map_err(|source| ObjectError::new(verb, name, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_named_by_kind_and_name() {
        let configuration = ObjectName::configuration("mutating/gmsa-webhook").unwrap();
        assert_eq!(
            configuration.path(),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gmsa-webhook"
        );
        assert_eq!(configuration.to_string(), "mutating/gmsa-webhook");
        for text in ["", "gmsa-webhook", "mutating/", "validating/a/b", "validating/A", "other/a", "mutating/a?b=c"] {
            let expected = Err("expected mutating/NAME or validating/NAME");
            assert_eq!(ObjectName::configuration(text), expected, "{text}");
        }
    }
}

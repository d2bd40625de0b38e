//! Calls to the cluster: objects and lists, each call with the limit of `--request-timeout`.

use std::{sync::Arc, time::Duration};

use http::{Request, header::ACCEPT};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::Instant;

use crate::shared::progress;
use gmsa_cluster::apiserver::{ApiServer, CallError, list::OBJECTS, with_object};

/// An answer with the metadata of the object only. <https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches>
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The time limit for the answer of a pod. The API server would wait longer.
const POD_CALL: Duration = Duration::from_secs(2);

/// A live cluster and the default namespace.
#[derive(Clone)]
pub struct LiveCluster {
    pub api: Arc<ApiServer>,
    /// The API server's address and the context, for errors.
    pub address: String,
    pub namespace: String,
    /// The time limit of a call.
    pub timeout: Duration,
}

impl LiveCluster {
    /// The deadline for a call that starts now.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Reads an object that may not be there; of a Secret only the metadata.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        progress::doing(&format!("reading {path}"));
        let is_secret = path.rsplit('/').nth(1) == Some("secrets");
        let request = Request::get(path).header(ACCEPT, if is_secret { METADATA } else { OBJECTS });
        match self.api.call(request.body(Vec::new()), self.deadline()).await {
            Ok(object) => Ok(Some(serde_json::from_slice(&object)?)),
            // For an unknown resource the API server names no object, and neither does a proxy.
            Err(error) if error.code() == Some(404) && names(&error, path) => Ok(None),
            Err(error) => Err(self.located(error)),
        }
    }

    /// Reads a collection, and holds of each page what `keep` returns. Its items have no `kind`.
    pub async fn list<T: DeserializeOwned, K>(
        &self,
        path: &str,
        keep: impl AsyncFnMut(Vec<T>) -> Vec<K>,
    ) -> anyhow::Result<Vec<K>> {
        let deadline = |so_far| {
            progress::doing(&format!("reading {path}, {so_far} so far"));
            self.deadline()
        };
        self.api.pages(path, OBJECTS, deadline, keep).await.map_err(|error| self.located(error))
    }

    /// Creates an object. If the outcome is unknown, looks the object up by name.
    pub async fn create<T: DeserializeOwned>(
        &self,
        collection: &str,
        name: &str,
        object: &impl Serialize,
    ) -> anyhow::Result<T> {
        let error = match self.post(collection, object).await {
            Err(error) if error.downcast_ref().is_some_and(CallError::is_outcome_unknown) => error,
            result => return result,
        };
        self.find(&format!("{collection}/{name}")).await.ok().flatten().ok_or(error)
    }

    /// Posts an object and returns the answer. A review object is not stored.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, object: &impl Serialize) -> anyhow::Result<T> {
        let answer = self.api.call(with_object(Request::post(path), &json!(object)), self.deadline()).await;
        Ok(serde_json::from_slice(&answer.map_err(|error| self.located(error))?)?)
    }

    /// Deletes an object; false if it did not exist. With a `uid` that was read before, another object of the name stays. Without an answer
    /// it is deleted again.
    pub async fn delete(&self, path: &str, is_dry_run: bool, uid: Option<&str>) -> anyhow::Result<bool> {
        // All options in the body: the API server reads those of the query only where there is none.
        let dry_run: &[&str] = if is_dry_run { &["All"] } else { &[] };
        let options = json!({"preconditions": uid.map(|uid| json!({"uid": uid})), "dryRun": dry_run});
        let delete = || self.api.call(with_object(Request::delete(path), &options), self.deadline());
        let (first, is_repeated) = match delete().await {
            Err(error) if error.is_outcome_unknown() => (delete().await, true),
            first => (first, false),
        };
        match first {
            Ok(_) => Ok(true),
            // The first call, or another client, has deleted it.
            Err(error) if error.code() == Some(404) => Ok(is_repeated && uid.is_some()),
            Err(error) => Err(self.located(error)),
        }
    }

    /// Adds the address of an API server that did not answer, because the kubeconfig may contain an unexpected one.
    pub fn located(&self, error: CallError) -> anyhow::Error {
        match error {
            CallError::Unreachable(_) | CallError::TimedOut(_) => {
                anyhow::Error::from(error).context(self.address.clone())
            }
            other => other.into(),
        }
    }

    /// Reads plain text through the API server: a log, or the answer of a pod over HTTP.
    pub async fn text(&self, path: &str) -> anyhow::Result<String> {
        let limit = if path.contains("/proxy/") { POD_CALL.min(self.timeout) } else { self.timeout };
        let answer = self.api.call(Request::get(path).body(Vec::new()), Instant::now() + limit).await;
        let answer = answer.map_err(|error| self.located(error))?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// Whether an error of the API server is about the object at a path.
fn names(error: &CallError, path: &str) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| path.rsplit('/').next() == Some(&*details.name))
}

//! An object that a program keeps as it should be: it reads and writes it, and notices when it is not the version that was read last. Events have
//! its metadata only.
//!
//! Invariant: where the object cannot be watched, that is logged once, and only the caller's timer remains. Needs `watch` on the object, by
//! name.

use std::{future::pending, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use gmsa_cluster::apiserver::{ApiServer, with_object};
use http::{Request, header::CONTENT_TYPE};
use kube::core::{PartialObjectMeta, Request as CoreRequest, WatchEvent, params::WatchParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ObjectError, ObjectName, call, get};
use crate::{Program, telemetry::LogOnce};

pub(crate) struct KeptObject {
    api: Arc<ApiServer>,
    /// Its field manager, in `managedFields`.
    program: Program,
    pub(crate) name: ObjectName,
    /// The version that was read last; `None` where the object did not exist.
    pub(crate) seen: Option<String>,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta>>>>,
    problem: LogOnce,
}

impl KeptObject {
    pub(crate) fn new(api: Arc<ApiServer>, program: Program, name: ObjectName) -> Self {
        Self { api, program, name, seen: None, events: None, problem: LogOnce::default() }
    }

    /// Reads it; `None` where it does not exist. (`&mut`, as the stream of events is not `Sync`.)
    pub(crate) async fn get<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ObjectError> {
        get(&self.api, &self.name).await
    }

    /// Replaces it, and returns it as it is then.
    pub(crate) async fn update<T: DeserializeOwned>(&mut self, object: &Value) -> Result<T, ObjectError> {
        call(&self.api, "update", &self.name, with_object(Request::put(self.write_path()), object)).await
    }

    /// Applies a JSON Patch to it, and returns it as it is then.
    pub(crate) async fn patch<T: DeserializeOwned>(&mut self, operations: &Value) -> Result<T, ObjectError> {
        let request = Request::patch(self.write_path()).header(CONTENT_TYPE, "application/json-patch+json");
        call(&self.api, "patch", &self.name, request.body(operations.to_string().into_bytes())).await
    }

    fn write_path(&self) -> String {
        format!("{}?fieldManager={}", self.name.path(), self.program.name)
    }

    /// Returns when the object is not the version that was read last. Without a watch it never returns: call it again after the next read.
    pub(crate) async fn changed(&mut self) {
        let changed = self.follow().await;
        let object = &self.name;
        let watched = self.problem.check(changed, |reason| {
            tracing::warn!(%object, reason, "cannot watch {}: it is read on a timer only", object.title());
        });
        if watched.is_none() {
            self.events = None;
            pending::<()>().await;
        }
    }

    async fn follow(&mut self) -> kube::Result<()> {
        let events = if let Some(events) = &mut self.events {
            events
        } else {
            let only = WatchParams::default().fields(&format!("metadata.name={}", self.name.name));
            // "0" begins with the object as it is: no list is needed, and no version can be too old.
            let request = CoreRequest::new(&self.name.collection).watch_metadata(&only.disable_bookmarks(), "0");
            let request = request.map_err(kube::Error::BuildRequest)?;
            self.events.insert(self.api.watch_client().request_events(request).await?.boxed())
        };
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
                WatchEvent::Added(found) | WatchEvent::Modified(found)
                    if found.metadata.resource_version == self.seen => {}
                _ => return Ok(()),
            }
        }
        // The API server ends each watch after some minutes. The next one begins after the next read.
        self.events = None;
        pending().await
    }
}

//! Notices when one object is not the version that was read last. Events have its metadata only.
//!
//! Invariant: where the object cannot be watched, that is logged once, and only the caller's timer remains. Needs `watch` on the object, by
//! name.

use std::future::pending;

use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use gmsa_cluster::apiserver::ApiServer;
use kube::core::{PartialObjectMeta, Request, WatchEvent, params::WatchParams};

use super::ObjectName;
use crate::telemetry::LogOnce;

pub(crate) struct ObjectWatch {
    object: ObjectName,
    /// The version that was read last; `None` where the object did not exist.
    pub(crate) seen: Option<String>,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta>>>>,
    problem: LogOnce,
}

impl ObjectWatch {
    pub(crate) fn new(object: ObjectName) -> Self {
        Self { object, seen: None, events: None, problem: LogOnce::default() }
    }

    /// Returns when the object is not the version that was read last. Without a watch it never returns: call it again after the next read.
    pub(crate) async fn changed(&mut self, api: &ApiServer) {
        let changed = self.follow(api).await;
        let object = &self.object;
        let watched = self.problem.check(changed, |reason| {
            tracing::warn!(%object, reason, "cannot watch {}: it is read on a timer only", object.title());
        });
        if watched.is_none() {
            self.events = None;
            pending::<()>().await;
        }
    }

    async fn follow(&mut self, api: &ApiServer) -> kube::Result<()> {
        let events = if let Some(events) = &mut self.events {
            events
        } else {
            let only = WatchParams::default().fields(&format!("metadata.name={}", self.object.name));
            // "0" begins with the object as it is: no list is needed, and no version can be too old.
            let request = Request::new(&self.object.collection).watch_metadata(&only.disable_bookmarks(), "0");
            let request = request.map_err(kube::Error::BuildRequest)?;
            self.events.insert(api.watch_client().request_events(request).await?.boxed())
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

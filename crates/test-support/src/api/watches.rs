//! Watches: one line of JSON for each change after a resource version.

use std::{io, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use futures::stream::{self, StreamExt as _};
use http::{Response, Uri, header};
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    World,
    store::{Change, ChangeKind, Kind},
    wire::{json_answer, parameter, status_object},
};

/// A watch that is under way.
struct Watch {
    world: Arc<World>,
    changes: watch::Receiver<u64>,
    cuts: watch::Receiver<u64>,
    kind: Kind,
    namespace: Option<String>,
    bookmarks: bool,
    /// The first change in the history that the client has not seen.
    next: usize,
    end: Instant,
}

pub(super) fn watch(world: &Arc<World>, kind: &Kind, namespace: Option<String>, uri: &Uri) -> Response<Body> {
    let from: u64 = parameter(uri, "resourceVersion").unwrap_or("0").parse().unwrap();
    let seconds = parameter(uri, "timeoutSeconds").map_or(1800, |seconds| seconds.parse().unwrap());
    // Subscribed before the history is read: nothing can be missed in between.
    let (changes, cuts) = (world.changes.subscribe(), world.cuts.subscribe());
    let store = world.store();
    if from < store.compacted {
        let message = format!("too old resource version: {from} ({})", store.compacted);
        let object = status_object(410, "Expired", &message, Value::Null);
        return json_answer(200, &json!({"type": "ERROR", "object": object}));
    }
    let seen = |change: &Change| change.version <= from || change.what == ChangeKind::Bookmark;
    let next = store.history.iter().position(|change| !seen(change)).unwrap_or(store.history.len());
    drop(store);
    let watch = Watch {
        world: Arc::clone(world),
        changes,
        cuts,
        kind: kind.clone(),
        namespace,
        bookmarks: parameter(uri, "allowWatchBookmarks") == Some("true"),
        next,
        end: Instant::now() + Duration::from_secs(seconds),
    };
    let lines = stream::unfold(watch, async |mut watch| watch.next().await.map(|line| (line, watch)));
    Response::builder().header(header::CONTENT_TYPE, "application/json").body(Body::from_stream(lines)).unwrap()
}

impl Watch {
    /// The next line; an error cuts the connection, `None` ends the watch.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            self.changes.borrow_and_update();
            if let Some(line) = self.unsent() {
                return Some(Ok(line));
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                cut = self.cuts.changed() => return cut.is_ok().then(|| Err(broken())),
                () = tokio::time::sleep_until(self.end) => return None,
            }
        }
    }

    fn unsent(&mut self) -> Option<Bytes> {
        let store = self.world.store();
        while let Some(change) = store.history.get(self.next) {
            self.next += 1;
            if let Some(event) = self.event(change) {
                return Some(Bytes::from(format!("{event}\n")));
            }
        }
        None
    }

    fn event(&self, change: &Change) -> Option<Value> {
        if change.what == ChangeKind::Bookmark {
            let metadata = json!({"resourceVersion": change.version.to_string()});
            let object = json!({"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata});
            return self.bookmarks.then(|| json!({"type": change.what, "object": object}));
        }
        let withheld = self.world.withheld.lock().unwrap();
        let wanted = change.key.plural == self.kind.plural
            && withheld.as_ref() != Some(&change.key.name)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == change.key.namespace);
        wanted.then(|| json!({"type": change.what, "object": *change.object}))
    }
}

fn broken() -> io::Error {
    io::Error::other("cut by the script")
}

/// A few bytes, and then the connection breaks.
pub(super) fn cut_body() -> Body {
    let bytes = stream::once(async { Ok(Bytes::from_static(b"{\"type\":")) });
    let cut = stream::once(async {
        // What was written before is sent only when the body has nothing more at the moment.
        tokio::task::yield_now().await;
        Err(broken())
    });
    Body::from_stream(bytes.chain(cut))
}

/// No bytes until watches are cut.
pub(super) fn silent_body(world: &World) -> Body {
    let cuts = world.cuts.subscribe();
    Body::from_stream(stream::once(async move {
        let mut cuts = cuts;
        let _ = cuts.changed().await;
        Err::<Bytes, _>(broken())
    }))
}

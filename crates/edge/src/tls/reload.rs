//! Loads a value from files, and loads it again whenever the files may have changed.
//!
//! The kubelet does not write into a mounted file. It swaps a symbolic link in the folder (`..data`), and a watch on the
//! file would stay with the old one. So the folder is watched. A timer covers what a watch cannot see: a folder that was
//! replaced, a network file system, a node without free watches.
//!
//! Invariants: the watch starts before the files are read, so no change is missed; the timer works without the
//! watch; a file system that hangs blocks no other task. Must not: decide what to do with an invalid value.

use std::{
    path::{Path, PathBuf, absolute},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use tokio::{sync::Notify, task::spawn_blocking, time::timeout};

use crate::telemetry::LogOnce;

/// How long the folders must be quiet after a change before the files are read: two files are rarely written at once.
const QUIET: Duration = Duration::from_millis(50);
/// How many times to wait for that. A writer may never stop.
const MAX_WAITS: usize = 6;

/// Loads a value by `load` again and again.
pub struct Reload<L> {
    folders: Vec<PathBuf>,
    interval: Duration,
    load: L,
    /// Notified of a change since the last load. Without a watcher, only the interval counts.
    watch: Option<(Arc<Notify>, Option<RecommendedWatcher>)>,
    watch_problem: LogOnce,
}

impl<T: Send + 'static, L: Fn() -> T + Clone + Send + 'static> Reload<L> {
    /// Watches the folders of `files`, and does not wait longer than `interval` between two loads.
    pub fn new(files: &[&Path], interval: Duration, load: L) -> Self {
        let folder = |file: &&Path| Some(absolute(file).ok()?.parent()?.to_owned());
        let mut folders: Vec<PathBuf> = files.iter().filter_map(folder).collect();
        folders.dedup();
        Self { folders, interval, load, watch: None, watch_problem: LogOnce::default() }
    }

    /// Loads at once the first time, and then each time a folder has changed or the interval is over.
    pub async fn next(&mut self) -> T {
        loop {
            if let Some((changed, _watcher)) = self.watch.take()
                && timeout(self.interval, changed.notified()).await.is_ok()
            {
                for _ in 0..MAX_WAITS {
                    if timeout(QUIET, changed.notified()).await.is_err() {
                        break;
                    }
                }
            }
            let changed = Arc::new(Notify::new());
            let (folders, interval) = (&self.folders, self.interval);
            let watcher = self.watch_problem.check(watcher(folders, &changed), |reason| {
                tracing::warn!(
                    ?folders,
                    reason,
                    ?interval,
                    "cannot watch folders for changes: the files are read on a timer only"
                );
            });
            self.watch = Some((changed, watcher));
            match spawn_blocking(self.load.clone()).await {
                Ok(loaded) => return loaded,
                Err(error) => tracing::error!(%error, "loading files failed"),
            }
        }
    }
}

fn watcher(folders: &[PathBuf], changed: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let changed = Arc::clone(changed);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error may mean that events were lost: that too is a reason to read the files. Reading them is an event as well.
        let kind = event.map_or(EventKind::Any, |event| event.kind);
        if !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write)) {
            changed.notify_one();
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_change_between_two_loads_is_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("value");
        fs::write(&file, "1").unwrap();
        let path = file.clone();
        let load = move || fs::read_to_string(&path).unwrap();
        // Longer than any test: only the watch can bring the change.
        let mut values = Reload::new(&[&file], Duration::from_secs(3600), load);
        assert_eq!(values.next().await, "1");
        for text in ["2", "3"] {
            fs::write(&file, text).unwrap();
            assert_eq!(values.next().await, text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watch_the_timer_loads() {
        let missing = Path::new("/nonexistent/value");
        let mut loads = Reload::new(&[missing], Duration::from_secs(60), || ());
        loads.next().await;
        let begin = tokio::time::Instant::now();
        loads.next().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(60));
    }
}

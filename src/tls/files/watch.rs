//! When to look at files again: the folders that they are in have changed, or it has been a while.
//!
//! The kubelet does not write into a mounted file: it swaps a symbolic link of the folder (`..data`) for another one, and
//! a watch on the file stays with the old one for ever. So the folder is watched, and a timer looks as well, for what no
//! watch can see: a folder that was replaced, a network file system, a system without watches to spare.
//!
//! What always holds: whatever becomes of the watch, the timer goes on. Must not: read the files.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// After a change, how long there must be silence before the files are worth reading: two files are rarely written at once.
const SETTLED: Duration = Duration::from_millis(50);
/// How many times in a row to wait for silence. Somebody may be writing without end.
const PATIENCE: usize = 6;

/// The folders of some files.
pub struct Folders {
    paths: Vec<PathBuf>,
    interval: Duration,
    changed: Arc<Notify>,
    armed: Option<Armed>,
    complained: bool,
}

struct Armed {
    /// Which folders these were when the watch began: device and inode.
    identities: Vec<Option<(u64, u64)>>,
    _watcher: RecommendedWatcher,
}

impl Folders {
    /// Begins to watch the folders of `files`. [`Folders::changed`] comes back at least every `interval`.
    #[must_use]
    pub fn of(files: &[&Path], interval: Duration) -> Self {
        let mut paths: Vec<PathBuf> = files.iter().map(|file| folder(file)).collect();
        paths.sort();
        paths.dedup();
        let mut this = Self { paths, interval, changed: Arc::new(Notify::new()), armed: None, complained: false };
        this.arm();
        this
    }

    /// Waits until something in the folders has changed and settled, or the interval is over. A change between two calls
    /// is not lost.
    pub async fn changed(&mut self) {
        self.arm();
        tokio::select! {
            () = self.changed.notified() => {
                for _ in 0..PATIENCE {
                    if timeout(SETTLED, self.changed.notified()).await.is_err() {
                        break;
                    }
                }
            }
            () = sleep(self.interval) => {}
        }
    }

    /// Watches the folders that are there now; does nothing where they are being watched already.
    fn arm(&mut self) {
        let identities: Vec<_> = self.paths.iter().map(|folder| identity(folder)).collect();
        if self.armed.as_ref().is_some_and(|armed| armed.identities == identities) {
            return;
        }
        let replaced = self.armed.take().is_some();
        match watcher(&self.paths, &self.changed) {
            Ok(watcher) => {
                self.armed = Some(Armed { identities, _watcher: watcher });
                self.complained = false;
                if replaced {
                    // Something may have happened between the old watch and the new one.
                    self.changed.notify_one();
                }
            }
            Err(error) if !self.complained => {
                self.complained = true;
                let (folders, interval) = (&self.paths, self.interval);
                tracing::warn!(?folders, %error, ?interval, "cannot watch for new certificates: looking on a timer only");
            }
            Err(_) => {}
        }
    }
}

fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    fs::metadata(folder).ok().map(|folder| (folder.dev(), folder.ino()))
}

fn watcher(folders: &[PathBuf], changed: &Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let changed = Arc::clone(changed);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error may mean that events were lost: that too is a reason to look.
        if event.as_ref().map_or(true, is_change) {
            changed.notify_one();
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Reading is an event too, and this process reads.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

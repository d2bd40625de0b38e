//! A memory cgroup for the server: the same limit as in a cluster, and the kernel's own account of the most that was used.
//!
//! It is below the cgroup of this process (version 1), or below the nearest one that hands memory down (version 2), and is
//! removed with its owner. Nothing outside it is changed.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Version 1's memory controller, and version 2.
const VERSIONS: [Files; 2] = [
    Files {
        mount: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        peak: "memory.max_usage_in_bytes",
        controller: "memory",
        handed_down: None,
    },
    Files {
        mount: "/sys/fs/cgroup",
        limit: "memory.max",
        peak: "memory.peak",
        controller: "",
        handed_down: Some("cgroup.subtree_control"),
    },
];

/// The names of a version's files.
struct Files {
    /// Where systems mount it.
    mount: &'static str,
    limit: &'static str,
    peak: &'static str,
    /// The controller's name in `/proc/self/cgroup`.
    controller: &'static str,
    /// The file that names the controllers of the groups below.
    handed_down: Option<&'static str>,
}

/// A group with a limit; its processes must have ended before it is dropped.
pub struct Cgroup {
    folder: PathBuf,
    files: &'static Files,
}

impl Cgroup {
    /// Creates a group that may use this much memory, in bytes; `None` where the system gives none.
    pub fn create(limit: u64) -> Option<Self> {
        VERSIONS.iter().find_map(|files| Self::create_by(files, limit).ok())
    }

    fn create_by(files: &'static Files, limit: u64) -> io::Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        // `4:memory:/path`, `0::/path`
        let own = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            (fields.next()? == files.controller).then(|| fields.next())?
        });
        let own = Path::new(own.ok_or(io::ErrorKind::NotFound)?.trim_start_matches('/'));
        let name = format!("gmsa-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut error = io::ErrorKind::NotFound.into();
        for parent in own.ancestors().map(|path| Path::new(files.mount).join(path)) {
            let names = |file| fs::read_to_string(parent.join(file)).unwrap_or_default();
            if files.handed_down.is_some_and(|file| !names(file).split_whitespace().any(|name| name == "memory")) {
                continue;
            }
            let folder = parent.join(&name);
            match fs::create_dir(&folder) {
                Ok(()) => {
                    let group = Self { folder, files };
                    fs::write(group.folder.join(files.limit), limit.to_string())?;
                    // Not every system has swap.
                    let _ = fs::write(group.folder.join("memory.swap.max"), "0");
                    return Ok(group);
                }
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// The most memory that was ever in use, in bytes: the kernel's share (sockets, page tables) is part of it.
    pub fn peak(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join(self.files.peak)).ok()?.trim().parse().ok()
    }
}

/// A command whose process is in this group from its start, where there is one.
pub fn command(cgroup: Option<&Cgroup>, program: impl AsRef<OsStr>) -> Command {
    let Some(cgroup) = cgroup else { return Command::new(program) };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(cgroup.folder.join("cgroup.procs")).arg(program);
    command
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

//! How much memory the process may take, and the bounds that follow from it.

use std::{fs, path::Path};

use super::Limits;
#[expect(unused_imports, reason = "named in the documentation")]
use crate::server::limits::{MAX_BODY, SMALL};
use crate::server::limits::{MAX_HEAD, RECEIVE_BUFFER, SEND_BUFFER, TLS_OUTPUT};

/// What is assumed where the system sets no limit: the chart's.
pub const DEFAULT: usize = 128 * MIB;

const MIB: usize = 1024 * 1024;

/// The memory limits below and above which nothing changes any more.
const USEFUL: std::ops::RangeInclusive<usize> = 64 * MIB..=1024 * MIB;

/// The most that a connection can hold, in bytes, whoever is behind it. What comes in is either a TLS handshake message in
/// parts, of which rustls keeps 64 KiB, or it is unread: 16 KiB as it came and 16 KiB decrypted in rustls,
/// [`MAX_HEAD`] in hyper, and twice [`RECEIVE_BUFFER`] in the kernel. What goes out is the head of an answer in
/// hyper, [`TLS_OUTPUT`], and twice [`SEND_BUFFER`] in the kernel. The rest is the state of TLS and the task.
const PER_CONNECTION: usize = (16 + 16 + 10) * 1024 + 2 * MAX_HEAD + TLS_OUTPUT + 2 * RECEIVE_BUFFER + 2 * SEND_BUFFER;

impl Limits {
    /// The bounds of a process that may use this many bytes, each of which follows from the worst case of what it bounds:
    ///
    /// - A third is for connections, with no request or in the middle of one: `PER_CONNECTION`.
    /// - About an eighth is for their reviews: each connection has at most one body of at most [`SMALL`] bytes, or what was
    ///   parsed of it, or the answer to it.
    /// - A quarter is for larger bodies and answers, counted byte by byte as they come. It is enough for one of
    ///   [`MAX_BODY`], with what parsing it costs, in a process of 96 MiB.
    /// - The rest, a little more than a quarter, is for the program, the credential specs in memory, what the allocator holds,
    ///   and the answers that are being made: 10 MiB at most ([`MOST_BYTES_TO_ANSWER`](gmsa_core::admission::MOST_BYTES_TO_ANSWER)) for
    ///   each of the [`threads`](crate::server::threads::threads), and for each large review that is decided.
    ///
    /// An eighth of the connections is never busy with a review, so that a new one finds one that makes room for it.
    #[must_use]
    pub fn of_memory(bytes: usize) -> Self {
        let bytes = bytes.clamp(*USEFUL.start(), *USEFUL.end());
        let connections = bytes / 3 / PER_CONNECTION;
        Self { connections, reviews: connections - connections / 8, large_review_memory: bytes / 4 }
    }
}

/// The memory limit of the process's control group, in bytes: the smallest one on the way to the root. `None` where there
/// is none.
#[must_use]
pub fn limit() -> Option<usize> {
    limit_below(Path::new("/"))
}

fn limit_below(root: &Path) -> Option<usize> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mount = root.join("sys/fs/cgroup");
    groups
        .lines()
        .filter_map(|line| {
            // `4:memory:/path` of version 1, `0::/path` of version 2.
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let (mount, file) = match controllers {
                "" => (mount.clone(), "memory.max"),
                names if names.split(',').any(|name| name == "memory") => {
                    (mount.join("memory"), "memory.limit_in_bytes")
                }
                _ => return None,
            };
            // In a container the group's own folder may be mounted as the root: then only the last one exists.
            let folders = Path::new(path.trim_start_matches('/')).ancestors().map(|folder| mount.join(folder));
            folders.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
        })
        // Version 1 prints the largest number of pages where there is no limit.
        .filter(|bytes| *bytes < 1 << 60)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_follows_from_the_memory_limit() {
        let limits = |mib: usize| Limits::of_memory(mib * MIB);
        let expected = Limits { connections: 257, reviews: 225, large_review_memory: 32 * MIB };
        assert_eq!(limits(128), expected);
        assert_eq!(Limits::default(), expected);
        assert_eq!(limits(256).connections, 514);
        assert_eq!(limits(16), limits(64));
        assert_eq!(limits(1 << 20), limits(1024));
    }

    #[test]
    fn the_smallest_limit_of_a_control_group_and_those_above_it_holds() {
        let limit = |group: &str, files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            for (file, text) in [&[("proc/self/cgroup", group)], files].concat() {
                let path = root.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            limit_below(root.path())
        };
        let v2 = "0::/kubepods/pod1/c1\n";
        assert_eq!(limit("0::/\n", &[("sys/fs/cgroup/memory.max", "134217728\n")]), Some(128 * MIB));
        assert_eq!(limit("0::/\n", &[("sys/fs/cgroup/memory.max", "max\n")]), None);
        assert_eq!(
            limit(
                v2,
                &[
                    ("sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n"),
                    ("sys/fs/cgroup/kubepods/pod1/memory.max", "67108864\n"),
                    ("sys/fs/cgroup/kubepods/memory.max", "134217728\n"),
                ]
            ),
            Some(64 * MIB)
        );
        let v1 = "11:cpu,cpuacct:/a\n4:memory:/a/b\n";
        let none = "9223372036854771712\n";
        assert_eq!(
            limit(
                v1,
                &[
                    ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "134217728\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", none),
                ]
            ),
            Some(128 * MIB)
        );
        assert_eq!(limit(v1, &[("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n")]), Some(64 * MIB));
        assert_eq!(limit(v1, &[("sys/fs/cgroup/memory/memory.limit_in_bytes", none)]), None);
        assert_eq!(limit(v1, &[]), None);
        assert_eq!(limit("nonsense\n", &[]), None);
    }
}

//! How much memory the process may take.

use std::{fs, path::Path};

/// The memory limit of the process's control group, in bytes: the smallest on the path to the root. `None` without a limit.
pub fn read() -> Option<usize> {
    read_below(Path::new("/"))
}

fn read_below(root: &Path) -> Option<usize> {
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

    const MIB: usize = 1024 * 1024;

    #[test]
    fn the_smallest_limit_of_a_control_group_and_those_above_it_holds() {
        let limit = |group: &str, files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            for (file, text) in [&[("proc/self/cgroup", group)], files].concat() {
                let path = root.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            read_below(root.path())
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

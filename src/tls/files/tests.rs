//! A file that is replaced while it is read.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use super::read;

/// What the kubelet does with a mounted Secret: a new folder, one rename of the link to it, and the old folder goes.
fn swap(root: &Path, generation: usize) {
    let old = fs::read_link(root.join("..data")).ok();
    let folder = generation.to_string();
    fs::create_dir(root.join(&folder)).unwrap();
    fs::write(root.join(&folder).join("tls.crt"), "certificate").unwrap();
    symlink(&folder, root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    if let Some(old) = old {
        fs::remove_dir_all(root.join(old)).unwrap();
    }
}

#[test]
fn a_file_that_is_swapped_is_there_at_every_moment() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    swap(root, 0);
    let file = root.join("..data/tls.crt");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                read(&file).map_err(|error| crate::telemetry::chain(&error))?;
            }
            Ok::<_, String>(())
        });
        for generation in 1..=1000 {
            swap(root, generation);
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(reader.join().unwrap(), Ok(()));
    });
}

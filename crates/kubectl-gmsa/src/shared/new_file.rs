//! Files that only their user should read.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
};

/// Creates a file that only its user can read; on Windows it has the rights of its folder. Never overwrites a file.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

//! What `-f` names: files, folders, or `-` for standard input.
//!
//! Invariants: reading is bounded; what cannot be read is reported with its file and, where known, its line, and the
//! rest is still read.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, bail};

use crate::shared::rules;
use gmsa_cluster::manifests::{self, Bounds, Manifests, decode};
use gmsa_core::diagnostic::{Diagnostic, Diagnostics, Location};

/// More than a server reads: `kubectl get pods -A -o yaml` prints one document of some 600 values for each pod.
const BOUNDS: Bounds =
    Bounds { file_bytes: 64 * 1024 * 1024, files: 100_000, total_bytes: 512 * 1024 * 1024, values: 4_000_000 };

/// The largest text that PowerShell or ldapsearch printed, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Standard input, on the command line.
pub const STDIN: &str = "-";

pub fn manifests(paths: &[PathBuf]) -> Manifests {
    let mut found = Manifests::default();
    for path in paths {
        found.extend(if path == Path::new(STDIN) { standard_input() } else { manifests::load(path, &BOUNDS) });
    }
    found
}

/// Fails where nothing was found in files that could be read, as `kubectl` does: a pipe that broke is no success.
pub fn expect(found: usize, what: &str, problems: &Diagnostics, paths: &[PathBuf]) -> anyhow::Result<()> {
    if found == 0 && problems.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("no {what} in {}", names.join(", "));
    }
    Ok(())
}

fn standard_input() -> Manifests {
    const NAME: &str = "<stdin>";
    let problem = |message: String| {
        let mut found = Manifests::default();
        found.problems.push(Diagnostic::new(&rules::UNREADABLE, message).at(Location::file(NAME)));
        found
    };
    match read_standard_input(BOUNDS.file_bytes as u64) {
        Ok(Some(bytes)) => match decode(bytes) {
            Ok(text) => manifests::parse_within(NAME, &text, &BOUNDS).strict(),
            Err(_) => problem("expected text in UTF-8 or UTF-16".to_owned()),
        },
        Ok(None) => problem(format!("expected at most {} bytes", BOUNDS.file_bytes)),
        Err(error) => problem(format!("cannot be read: {error}")),
    }
}

/// Reads a small text, in the encodings in which Windows PowerShell writes one: UTF-8 or UTF-16, with or without a mark.
pub fn text(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let bytes = if path == Path::new(STDIN) {
        read_standard_input(MAX_TEXT)
    } else {
        File::open(path).and_then(|mut file| read(&mut file, MAX_TEXT))
    };
    let Some(bytes) = bytes.with_context(|| format!("cannot read {name}"))? else {
        bail!("{name} is larger than {MAX_TEXT} bytes")
    };
    decode(bytes).ok().with_context(|| format!("{name} is neither UTF-8 nor UTF-16 text"))
}

/// Standard input can be read only once.
fn read_standard_input(limit: u64) -> io::Result<Option<Vec<u8>>> {
    static WAS_READ: AtomicBool = AtomicBool::new(false);
    if WAS_READ.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("standard input was already read: give - only once"));
    }
    read(&mut io::stdin().lock(), limit)
}

/// Reads to the end, or `None` where there is more than `limit`.
fn read(input: &mut impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_not_read() {
        assert_eq!(read(&mut &b"1234"[..], 4).unwrap().as_deref(), Some(&b"1234"[..]));
        assert_eq!(read(&mut io::repeat(0), 4).unwrap(), None);
    }
}

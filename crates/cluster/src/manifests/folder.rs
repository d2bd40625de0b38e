//! The files of a folder, in a fixed order, each once, within bounds.
//!
//! Symbolic links are followed, as a mounted ConfigMap needs, and a file or folder that is reached twice counts once, so
//! links in a circle end. Names that begin with a dot are skipped: such a mount keeps its older versions there.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use gmsa_core::diagnostic::{Diagnostic, Diagnostics, Location, rules};
use walkdir::{DirEntry, WalkDir};

use super::{
    Manifests, decode,
    text::{MAX_VALUES, not_text, parse_all},
};

/// The deepest nesting of folders; the folder that was named counts as the first.
pub const MAX_DEPTH: usize = 16;

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The largest file, in bytes.
    pub file_bytes: usize,
    /// The most manifests and folders.
    pub files: usize,
    /// The most bytes in all files.
    pub total_bytes: usize,
    /// The bytes that were read before.
    pub read_bytes: usize,
    /// The bytes of memory that objects take that were read before.
    pub held_bytes: usize,
    /// The most mappings, lists and scalars in one document.
    pub values: usize,
    /// The fix where all files together are too large.
    pub remedy: &'static str,
}

impl Bounds {
    pub const SERVER: Self = Self {
        file_bytes: 4 * 1024 * 1024,
        files: 4096,
        total_bytes: 32 * 1024 * 1024,
        read_bytes: 0,
        held_bytes: 0,
        values: MAX_VALUES,
        remedy: "",
    };

    /// How many bytes may still be read.
    pub fn left(&self) -> usize {
        self.total_bytes.saturating_sub(self.read_bytes)
    }

    /// The problem where there are more.
    pub fn exceeded(&self) -> String {
        format!("expected at most {} bytes in all manifests{}", self.total_bytes, self.remedy)
    }

    /// The most bytes of memory that objects may take: three for each byte that may be read, which takes the fourth itself, and some for a
    /// small budget.
    fn most_held(&self) -> usize {
        self.total_bytes.saturating_mul(3).saturating_add(16 * 1024 * 1024)
    }

    /// How many bytes of memory objects may still take.
    pub(super) fn room(&self) -> usize {
        self.most_held().saturating_sub(self.held_bytes)
    }

    /// The problem where objects take more memory.
    pub(super) fn no_room(&self) -> String {
        format!("expected at most {} bytes of memory for the objects of all manifests{}", self.most_held(), self.remedy)
    }
}

/// Reads every manifest of a folder and of the folders in it (`*.yaml`, `*.yml`, `*.json`, in the order of their names), or
/// one file of any name. Foreign documents are problems in a file that was asked for, and beside Kubernetes objects.
pub fn load(path: &Path, bounds: &Bounds) -> Manifests {
    let in_folder = path.is_dir();
    let mut walk = Walk { max_files: bounds.files, ..Walk::default() };
    if let Err(TooMany) = walk.start(path) {
        walk.files.clear();
    }
    let mut all = Manifests { problems: walk.problems, ..Manifests::default() };
    let (mut texts, mut total) = (Vec::new(), 0);
    for file in walk.files {
        let name = file.display().to_string();
        match read(&file, bounds, &mut total) {
            Ok(bytes) => match decode(bytes) {
                Ok(text) => texts.push((name, text)),
                Err(before) => all.problems.push(not_text(&name, &before)),
            },
            Err(FileFault::File(message)) => all.problems.push(about(&file, message)),
            Err(FileFault::Total) => {
                all.problems.push(about(path, bounds.exceeded()));
                break;
            }
        }
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for found in parse_all(&texts, bounds) {
        all.extend(if in_folder && found.documents.is_empty() { found } else { found.strict() });
    }
    Manifests { bytes: total, ..all }
}

enum FileFault {
    File(String),
    Total,
}

fn read(path: &Path, bounds: &Bounds, total: &mut usize) -> Result<Vec<u8>, FileFault> {
    let fault = |error: io::Error| FileFault::File(unreadable(&error));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fault)?;
    // As many bytes as the file says that it holds: the kernel has files that say none, and block or never end when they are read.
    let length = file.metadata().map_err(fault)?.len();
    if length > bounds.file_bytes as u64 {
        return Err(FileFault::File(format!("expected at most {} bytes", bounds.file_bytes)));
    }
    if length > bounds.total_bytes as u64 {
        return Err(FileFault::File(bounds.exceeded()));
    }
    if length > bounds.left().saturating_sub(*total) as u64 {
        return Err(FileFault::Total);
    }
    file.take(length).read_to_end(&mut bytes).map_err(fault)?;
    *total += bytes.len();
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

fn about(path: &Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(&rules::UNREADABLE, message).at(Location::file(&path.display().to_string()))
}

#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    max_files: usize,
    /// The real paths of files and folders that were reached.
    reached: BTreeSet<PathBuf>,
    problems: Diagnostics,
}

/// Whether there are more files than are read.
struct TooMany;

impl Walk {
    /// Starts with what the user asked for: a folder, or a file of any name.
    fn start(&mut self, path: &Path) -> Result<(), TooMany> {
        let is_shown = |entry: &DirEntry| entry.depth() == 0 || !is_hidden(entry.path());
        let mut entries = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter().filter_entry(is_shown);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {
                    let deep = entry.depth() == MAX_DEPTH;
                    if deep {
                        let message = format!("expected at most {MAX_DEPTH} nested folders");
                        self.problems.push(about(entry.path(), message));
                    }
                    if deep || !self.is_new(entry.path())? {
                        entries.skip_current_dir();
                    }
                }
                Ok(entry) => self.file(&entry)?,
                // A link to a folder above: its files are reached anyway.
                Err(error) if error.loop_ancestor().is_some() => {}
                Err(error) if error.depth() > 0 && error.path().is_some_and(is_hidden) => {}
                Err(error) => {
                    let at = error.path().unwrap_or(path).to_owned();
                    let cause = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                    self.problems.push(about(&at, format!("cannot be read: {cause}")));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, entry: &DirEntry) -> Result<(), TooMany> {
        let (path, is_asked_for) = (entry.path(), entry.depth() == 0);
        if !is_asked_for && !is_manifest(path) {
            return Ok(());
        }
        // Opening a pipe would wait for a writer.
        if !entry.file_type().is_file() {
            let or = if is_asked_for { "a folder or " } else { "" };
            self.problems.push(about(path, format!("expected {or}a regular file")));
        } else if self.is_new(path)? {
            self.files.push(path.to_owned());
        }
        Ok(())
    }

    /// Whether a file or folder is reached for the first time.
    fn is_new(&mut self, path: &Path) -> Result<bool, TooMany> {
        match fs::canonicalize(path) {
            Ok(real) => {
                let new = self.reached.insert(real);
                if new && self.reached.len() > self.max_files {
                    self.problems
                        .push(about(path, format!("expected at most {} manifests and folders", self.max_files)));
                    return Err(TooMany);
                }
                Ok(new)
            }
            Err(error) => {
                self.problems.push(about(path, unreadable(&error)));
                Ok(false)
            }
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests;

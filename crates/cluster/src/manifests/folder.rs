//! The files of a folder, in a fixed order, each once, within bounds.
//!
//! Symbolic links are followed, as a mounted ConfigMap needs, and a file or folder that is reached twice counts once, so
//! links in a circle end. Names that begin with a dot are skipped: such a mount keeps its older versions there.

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs::{self, File},
    io::Read as _,
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
    let (files, problems) = files(path, bounds.files);
    let mut all = Manifests { problems, ..Manifests::default() };
    let (mut texts, mut total) = (Vec::new(), 0);
    for file in files {
        let name = file.display().to_string();
        match read(&file, bounds, bounds.left().saturating_sub(total)) {
            Ok(Some(bytes)) => {
                total += bytes.len();
                match decode(bytes) {
                    Ok(text) => texts.push((name, text)),
                    Err(before) => all.problems.push(not_text(&name, &before)),
                }
            }
            Ok(None) => {
                all.problems.push(about(path, bounds.exceeded()));
                break;
            }
            Err(message) => all.problems.push(about(&file, message)),
        }
    }
    let in_folder = path.is_dir();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for found in parse_all(&texts, bounds) {
        all.extend(if in_folder && found.documents.is_empty() { found } else { found.strict() });
    }
    Manifests { bytes: total, ..all }
}

/// The bytes of a file; `None` where it has more than are `left`.
fn read(path: &Path, bounds: &Bounds, left: usize) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    // As many bytes as the file says that it holds: the kernel has files that say none, and block or never end when they are read.
    let length = file.metadata().map_err(|error| unreadable(&error))?.len();
    if length > bounds.file_bytes as u64 {
        return Err(format!("expected at most {} bytes", bounds.file_bytes));
    }
    if length > bounds.total_bytes as u64 {
        return Err(bounds.exceeded());
    }
    if length > left as u64 {
        return Ok(None);
    }
    file.take(length).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    Ok(Some(bytes))
}

fn unreadable(error: &impl Display) -> String {
    format!("cannot be read: {error}")
}

fn about(path: &Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(&rules::UNREADABLE, message).at(Location::file(&path.display().to_string()))
}

/// The manifests that the user asked for, by a folder or a file of any name, each once; none where they and their folders are more than `most`.
fn files(asked_for: &Path, most: usize) -> (Vec<PathBuf>, Diagnostics) {
    let (mut files, mut problems) = (Vec::new(), Diagnostics::default());
    // The real paths of files and folders.
    let mut reached = BTreeSet::new();
    let is_shown = |entry: &DirEntry| entry.depth() == 0 || !is_hidden(entry.path());
    let mut entries = WalkDir::new(asked_for).follow_links(true).sort_by_file_name().into_iter().filter_entry(is_shown);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // A link to a folder above: its files are reached anyway.
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) if error.depth() > 0 && error.path().is_some_and(is_hidden) => continue,
            Err(error) => {
                let cause = error.io_error().map_or_else(|| unreadable(&error), unreadable);
                problems.push(about(error.path().unwrap_or(asked_for), cause));
                continue;
            }
        };
        let (path, is_folder, is_first) = (entry.path(), entry.file_type().is_dir(), entry.depth() == 0);
        if !is_folder && !is_first && !is_manifest(path) {
            continue;
        }
        let is_new = if is_folder && entry.depth() == MAX_DEPTH {
            Err(format!("expected at most {MAX_DEPTH} nested folders"))
        } else if !is_folder && !entry.file_type().is_file() {
            // Opening a pipe would wait for a writer.
            Err(format!("expected {}a regular file", if is_first { "a folder or " } else { "" }))
        } else {
            fs::canonicalize(path).map(|real| reached.insert(real)).map_err(|error| unreadable(&error))
        };
        match is_new {
            Ok(true) if reached.len() > most => {
                problems.push(about(path, format!("expected at most {most} manifests and folders")));
                return (Vec::new(), problems);
            }
            Ok(true) if is_folder => {}
            Ok(true) => files.push(path.to_owned()),
            Ok(false) | Err(_) if is_folder => entries.skip_current_dir(),
            Ok(false) | Err(_) => {}
        }
        problems.extend(is_new.err().map(|message| about(entry.path(), message)));
    }
    (files, problems)
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

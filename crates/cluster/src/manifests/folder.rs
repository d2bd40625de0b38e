//! The files of a folder, in a fixed order, each once, within bounds.
//!
//! Symbolic links are followed, as a mounted ConfigMap needs, and a file or folder that is reached twice counts once, so
//! links in a circle end. Names that begin with a dot are skipped: such a mount keeps its older versions there.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Document, Error, Found, Problem, parse,
    text::{self, parse_all},
};

/// The largest file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The most manifests and folders, all in all.
pub const MAX_FILES: usize = 4096;
/// The most bytes in all files.
pub const MAX_TOTAL_BYTES: usize = 32 * 1024 * 1024;
/// The deepest nesting of folders; the one that is asked for counts as the first.
pub const MAX_DEPTH: usize = 16;

/// Reads every manifest of a folder and of the folders in it (`*.yaml`, `*.yml`, `*.json`, in the order of their names), or
/// one file of any name.
///
/// # Errors
/// All that is wrong with the files. Nothing is loaded then.
pub fn load(path: &Path) -> Result<Vec<Document>, Error> {
    let parse = |(name, text): &(&str, &str)| match parse(name, text) {
        Ok(documents) => Found { documents, ..Found::default() },
        Err(error) => Found { problems: error.problems, ..Found::default() },
    };
    let parse = |texts: &[(&str, &str)]| texts.iter().map(parse).collect();
    let Found { documents, problems, .. } = read_all(path, &Bounds::default(), parse);
    Error::unless_none(problems)?;
    Ok(documents)
}

/// Reads manifests like [`load`], but gives what can be read beside what is wrong with the rest.
#[must_use]
pub fn load_each(path: &Path, bounds: &Bounds) -> Found {
    let in_folder = path.is_dir();
    // Beside Kubernetes objects, what is none is a mistake.
    let judge = |found: Found| if in_folder && found.documents.is_empty() { found } else { found.strict() };
    read_all(path, bounds, |texts| parse_all(texts).into_iter().map(judge).collect())
}

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The largest file, in bytes.
    pub file_bytes: usize,
    /// The most files in a folder and the folders in it.
    pub files: usize,
    /// The most bytes in all files.
    pub total_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file_bytes: MAX_FILE_BYTES, files: MAX_FILES, total_bytes: MAX_TOTAL_BYTES }
    }
}

/// Reads all files, and parses their texts together.
fn read_all(path: &Path, bounds: &Bounds, parse: impl Fn(&[(&str, &str)]) -> Vec<Found>) -> Found {
    let mut walk = Walk { max_files: bounds.files, ..Walk::default() };
    walk.start(path);
    let Walk { files, problems, .. } = walk;
    let mut found = Found { problems, ..Found::default() };
    // In the order of the files.
    let mut texts: Vec<Result<(String, String), Problem>> = Vec::with_capacity(files.len());
    let mut total = 0;
    for file in files {
        let name = file.display().to_string();
        let text = read(&file, bounds, &mut total)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| Fault::Encoding(error.into_bytes())));
        texts.push(match text {
            Ok(text) => Ok((name, text)),
            Err(Fault::Encoding(bytes)) => Err(text::not_utf8(&name, &bytes)),
            Err(Fault::File(message)) => Err(about(&file, message)),
            Err(Fault::Total) => {
                let message = format!("expected at most {} bytes in all manifests", bounds.total_bytes);
                texts.push(Err(about(path, message)));
                break;
            }
        });
    }
    let readable: Vec<_> = texts.iter().flatten().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut parsed = parse(&readable).into_iter();
    for text in &texts {
        match text {
            Ok(_) => found.extend(parsed.next().unwrap_or_default()),
            Err(problem) => found.problems.push(problem.clone()),
        }
    }
    found
}

enum Fault {
    File(String),
    Encoding(Vec<u8>),
    Total,
}

fn read(path: &Path, bounds: &Bounds, total: &mut usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    // One byte more than is allowed, so that a file that is too large shows.
    let limit = bounds.file_bytes as u64 + 1;
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| Fault::File(unreadable(&error)))?;
    if bytes.len() > bounds.file_bytes {
        return Err(Fault::File(format!("expected at most {} bytes", bounds.file_bytes)));
    }
    *total += bytes.len();
    if *total > bounds.total_bytes { Err(Fault::Total) } else { Ok(bytes) }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

fn about(path: &Path, message: String) -> Problem {
    Problem { file: Arc::from(path.display().to_string()), position: None, message }
}

#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    max_files: usize,
    /// The real paths of files and folders that were reached.
    reached: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
    /// There is too much: what is left is not looked at, and nothing is read.
    stopped: bool,
}

impl Walk {
    /// Takes what the user asked for: a folder, or a file of any name.
    fn start(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.folder(path, 1),
            Ok(metadata) if metadata.is_file() => self.files.push(path.to_owned()),
            Ok(_) => self.problems.push(about(path, "expected a folder or a regular file".to_owned())),
            Err(error) => self.problems.push(about(path, unreadable(&error))),
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        match self.is_new(folder).and_then(|new| if new { entries(folder) } else { Ok(Vec::new()) }) {
            Ok(entries) => {
                for entry in entries {
                    if self.stopped {
                        return;
                    }
                    if let Err(error) = self.entry(&entry, depth) {
                        self.problems.push(about(&entry, unreadable(&error)));
                    }
                }
            }
            Err(error) => self.problems.push(about(folder, unreadable(&error))),
        }
    }

    fn entry(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            if depth == MAX_DEPTH {
                self.problems.push(about(path, format!("expected at most {MAX_DEPTH} folders in each other")));
            } else {
                self.folder(path, depth + 1);
            }
        } else if is_manifest(path) {
            // Opening a pipe would wait for somebody to write to it.
            if !metadata.is_file() {
                self.problems.push(about(path, "expected a regular file".to_owned()));
            } else if self.is_new(path)? {
                self.files.push(path.to_owned());
            }
        }
        Ok(())
    }

    /// Whether a file or folder is to be looked at.
    fn is_new(&mut self, path: &Path) -> io::Result<bool> {
        let new = self.reached.insert(fs::canonicalize(path)?);
        if new && self.reached.len() > self.max_files {
            self.problems.push(about(path, format!("expected at most {} manifests and folders", self.max_files)));
            self.files.clear();
            self.stopped = true;
        }
        Ok(new && !self.stopped)
    }
}

/// The entries of a folder in the order of their names, without hidden ones.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    entries.sort_unstable();
    Ok(entries)
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

#[cfg(test)]
mod tests;

//! The inputs that `-f` names: files, folders, patterns of them, lists of these with commas, or `-` for standard input.
//!
//! Invariants: reading is bounded; what cannot be read is reported with its file and, where known, its line, and the
//! rest is still read.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{MAIN_SEPARATOR, Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, bail};

use crate::shared::rules;
use gmsa_cluster::manifests::{self, Bounds, Manifests, decode};
use gmsa_core::{
    diagnostic::{Diagnostic, Diagnostics, Location},
    quote::shell::posix,
};

/// How many bytes of manifests are read in a run, unless an option says more.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// More than a server reads: `kubectl get pods -A -o yaml` prints one document of some 600 values for each pod.
const BOUNDS: Bounds = Bounds {
    file_bytes: usize::MAX,
    files: 100_000,
    total_bytes: MAX_BYTES,
    read_bytes: 0,
    held_bytes: 0,
    values: 100_000_000,
    remedy: ": name fewer files",
};

/// The largest text that PowerShell or ldapsearch printed, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Standard input, on the command line.
pub const STDIN: &str = "-";

/// Files that mark a folder whose manifests another tool renders, with its command.
const RENDERED: [(&str, &str); 4] = [
    ("kustomization.yaml", "kubectl kustomize"),
    ("kustomization.yml", "kubectl kustomize"),
    ("Kustomization", "kubectl kustomize"),
    ("Chart.yaml", "helm template"),
];

/// Reads manifests, of at most `max_bytes` in all by the option `--max-size`. `stdin` is the command that reads them from standard input:
/// `check -f -`.
pub fn manifests(paths: &[PathBuf], stdin: &str, max_bytes: Option<usize>) -> Manifests {
    let mut bounds = match max_bytes {
        Some(total_bytes) => {
            Bounds { total_bytes, remedy: ": name fewer files, or allow more with --max-size", ..BOUNDS }
        }
        None => BOUNDS,
    };
    let mut found = Manifests::default();
    for path in paths.iter().flat_map(|path| expand(path)) {
        let name = path.display().to_string();
        bounds.read_bytes = found.bytes;
        bounds.held_bytes = found.held_bytes;
        // A shell passes the path of a pipe for `<(COMMAND)`.
        let is_pipe = path.exists() && !path.is_file() && !path.is_dir();
        found.extend(if path == Path::new(STDIN) || is_pipe {
            let name = if is_pipe { &name } else { "<stdin>" };
            parse(name, read(&path, bounds.left() as u64), &bounds)
        } else if name.starts_with("https://") || name.starts_with("http://") {
            let fetch = posix(&name).map(|url| format!(": curl -sSfL {url} | kubectl gmsa {stdin}"));
            let fetch = fetch.unwrap_or_default();
            problem(&name, format!("a URL is not read; fetch it first{fetch}"))
        } else {
            let root = of_tool(&path).unwrap_or(&path);
            without_rendered(root, stdin, manifests::load(root, &bounds))
        });
    }
    found
}

/// The paths of one argument, as for `kubectl`: split at commas, with patterns expanded.
fn expand(path: &Path) -> Vec<PathBuf> {
    let text = path.to_string_lossy();
    if path.exists() || text.contains("://") {
        return vec![path.to_owned()];
    }
    if text.contains(',') {
        return text.split(',').filter(|part| !part.is_empty()).flat_map(|part| expand(Path::new(part))).collect();
    }
    let fitting: Vec<PathBuf> = glob::glob(&text).into_iter().flatten().flatten().collect();
    if fitting.is_empty() { vec![path.to_owned()] } else { fitting }
}

/// The folder that another tool renders, recognized by its file or by the templates of a chart.
fn of_tool(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    let name = path.file_name()?.to_str()?;
    let is_of_tool = RENDERED.iter().any(|(file, _)| *file == name) && path.is_file();
    (is_of_tool || name == "templates" && folder.join("Chart.yaml").is_file()).then_some(folder)
}

/// The manifests of a folder, without those that another tool must render first.
fn without_rendered(root: &Path, stdin: &str, found: Manifests) -> Manifests {
    let mut rendered = BTreeMap::new();
    // The outermost folder: a chart or an overlay contains others.
    let mut is_rendered = |location: Option<&Location>| {
        let file = location.map_or("", |location| &*location.file);
        let folders: Vec<&Path> = Path::new(file).ancestors().skip(1).take_while(|it| it.starts_with(root)).collect();
        let tool = folders.into_iter().rev().find_map(|folder| {
            let (_, command) = RENDERED.iter().find(|(name, _)| folder.join(name).is_file())?;
            Some((folder.to_owned(), *command))
        });
        tool.map(|(folder, command)| rendered.insert(folder, command)).is_some()
    };
    let mut kept = Manifests { bytes: found.bytes, held_bytes: found.held_bytes, ..Manifests::default() };
    kept.documents.extend(found.documents.into_iter().filter(|document| !is_rendered(Some(&document.location))));
    kept.foreign.extend(found.foreign.into_iter().filter(|problem| !is_rendered(problem.location.as_ref())));
    kept.problems.extend(found.problems.into_iter().filter(|problem| !is_rendered(problem.location.as_ref())));
    for (folder, command) in rendered {
        let name = folder.display().to_string();
        let message = format!("not checked: `{command}` changes these manifests before they are applied");
        // Without quotes, so that a shell on Windows accepts it too.
        let fix = posix(&name.replace(MAIN_SEPARATOR, "/"))
            .map(|folder| format!("{command} {folder} | kubectl gmsa {stdin}"));
        let found = Diagnostic { fix, ..Diagnostic::new(&rules::NOT_RENDERED, message) };
        kept.problems.push(found.at(Location::file(&name)));
    }
    kept
}

/// Reports readable files without a result: a broken pipe, or a template that rendered nothing, must not look like success.
pub fn expect(found: usize, what: &str, problems: &mut Diagnostics, paths: &[PathBuf]) {
    if found == 0 && problems.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let text = format!("there is no {what}: the text is empty, or holds something else");
        problems.push(Diagnostic::new(&rules::NOTHING_FOUND, text).at(Location::file(&names.join(", "))));
    }
}

fn problem(name: &str, message: String) -> Manifests {
    let mut found = Manifests::default();
    found.problems.push(Diagnostic::new(&rules::UNREADABLE, message).at(Location::file(name)));
    found
}

fn parse(name: &str, read: io::Result<Option<Vec<u8>>>, bounds: &Bounds) -> Manifests {
    match read {
        Ok(Some(bytes)) => {
            let length = bytes.len();
            match decode(bytes) {
                Ok(text) => Manifests { bytes: length, ..manifests::parse(name, &text, bounds).strict() },
                Err(_) => problem(name, "expected text in UTF-8 or UTF-16".to_owned()),
            }
        }
        Ok(None) => problem(name, bounds.exceeded()),
        Err(error) => problem(name, format!("cannot be read: {error}")),
    }
}

/// Reads a small text.
pub fn text(path: &Path) -> anyhow::Result<String> {
    text_within(path, MAX_TEXT)
}

/// Reads a text of at most `limit` bytes, in an encoding of Windows PowerShell: UTF-8 or UTF-16, with or without a byte order mark.
pub fn text_within(path: &Path, limit: u64) -> anyhow::Result<String> {
    let name = if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() };
    let Some(bytes) = read(path, limit).with_context(|| format!("cannot read {name}"))? else {
        bail!("{name} has more than {limit} bytes, the most that are read")
    };
    decode(bytes).ok().with_context(|| format!("{name} is neither UTF-8 nor UTF-16 text"))
}

/// Reads a file or standard input to the end; `None` if there are more than `limit` bytes. Standard input can be read only once.
fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    static WAS_READ: AtomicBool = AtomicBool::new(false);
    if path != Path::new(STDIN) {
        return within(&mut File::open(path)?, limit);
    }
    if WAS_READ.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("standard input was already read: give - only once"));
    }
    within(&mut io::stdin().lock(), limit)
}

fn within(input: &mut impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_not_read() {
        assert_eq!(within(&mut &b"1234"[..], 4).unwrap().as_deref(), Some(&b"1234"[..]));
        assert_eq!(within(&mut io::repeat(0), 4).unwrap(), None);
        assert_eq!(within(&mut &b"1234"[..], u64::MAX).unwrap().as_deref(), Some(&b"1234"[..]));
    }
}

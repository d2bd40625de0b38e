//! What `-f` names: files, folders, or `-` for standard input.
//!
//! What always holds: reading is bounded; what cannot be read is a problem with a file and, where known, a line, and keeps
//! nothing else back.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};

use gmsa_cluster::manifests::{self, Bounds, Found, Problem};

/// What a laptop checks at once: more than a server starts from.
const BOUNDS: Bounds = Bounds { file_bytes: 64 * 1024 * 1024, files: 100_000, total_bytes: 512 * 1024 * 1024 };

/// The largest of the small files that are read whole: what PowerShell printed.
const MAX_TEXT: u64 = 1024 * 1024;

/// How standard input is called, on the command line and in findings.
const STDIN: &str = "-";

/// Reads manifests.
pub(super) fn manifests(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        found.extend(if path == Path::new(STDIN) { standard_input() } else { manifests::load_each(path, &BOUNDS) });
    }
    found
}

fn standard_input() -> Found {
    const NAME: &str = "<stdin>";
    let problem = |message: String| Found {
        problems: vec![Problem { file: Arc::from(NAME), position: None, message }],
        ..Found::default()
    };
    match read(&mut io::stdin().lock(), BOUNDS.file_bytes as u64) {
        Ok(Some(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => manifests::parse_each(NAME, &text).strict(),
            Err(_) => problem("expected UTF-8 text".to_owned()),
        },
        Ok(None) => problem(format!("expected at most {} bytes", BOUNDS.file_bytes)),
        Err(error) => problem(format!("cannot be read: {error}")),
    }
}

/// Reads a small text, in the encodings in which Windows PowerShell writes one: UTF-8 or UTF-16, with or without a mark.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let bytes = if path == Path::new(STDIN) {
        read(&mut io::stdin().lock(), MAX_TEXT)
    } else {
        File::open(path).and_then(|mut file| read(&mut file, MAX_TEXT))
    };
    let Some(bytes) = bytes.with_context(|| format!("cannot read {name}"))? else {
        bail!("{name} is larger than {MAX_TEXT} bytes")
    };
    decode(&bytes).with_context(|| format!("{name} is neither UTF-8 nor UTF-16 text"))
}

/// Reads to the end, or `None` where there is more than `limit`.
fn read(input: &mut impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn decode(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        rest.is_empty().then(|| String::from_utf16(&units).ok()).flatten()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_powershell_writes_is_read() {
        let little: Vec<u8> = [0xff, 0xfe].into_iter().chain("{é}".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let big: Vec<u8> = [0xfe, 0xff].into_iter().chain("{é}".encode_utf16().flat_map(u16::to_be_bytes)).collect();
        for bytes in [&little[..], &big, "\u{feff}{é}".as_bytes(), "{é}".as_bytes()] {
            assert_eq!(decode(bytes).as_deref(), Some("{é}"), "{bytes:x?}");
        }
        assert_eq!(decode(&little[..3]), None);
        assert_eq!(decode(&[0x80]), None);
    }

    #[test]
    fn more_than_the_limit_is_not_read() {
        assert_eq!(read(&mut &b"1234"[..], 4).unwrap().as_deref(), Some(&b"1234"[..]));
        assert_eq!(read(&mut io::repeat(0), 4).unwrap(), None);
    }
}

//! Files that say what a test expects, and how they are regenerated.

use std::{env, fs, path::Path};

/// Fails where the file does not hold exactly this text; writes it instead where `UPDATE_SNAPSHOTS` is set.
pub fn assert_file(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if let Some((number, (expected, text))) =
        (1..).zip(lines(&expected).zip(lines(text))).find(|(_, (expected, text))| expected != text)
    {
        panic!(
            "{}:{number}: the file has {expected:?}, but it is made as {text:?}; \
             if that is right, run UPDATE_SNAPSHOTS=1 cargo test --test chart",
            path.display()
        );
    }
}

/// The lines, then `None` for ever: so that a shorter text differs where it ends.
fn lines(text: &str) -> impl Iterator<Item = Option<&str>> {
    let lines = text.split('\n').map(Some);
    let count = text.split('\n').count();
    lines.chain(std::iter::once(None)).take(count + 1)
}

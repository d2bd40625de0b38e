//! The report of a command, on standard output.

use std::io::{self, ErrorKind, Write as _};

/// Prints a report. A reader that has left has read what it wanted.
///
/// # Errors
/// If it cannot be written, as to a disk that is full.
pub fn print(report: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(report.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

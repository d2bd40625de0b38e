//! Questions before something is done that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

/// Asks at the terminal; everything but yes is no.
///
/// # Errors
/// Where there is no terminal.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!("there is no terminal to ask for confirmation: use --yes");
    }
    write!(io::stderr(), "{question} [y/N] ")?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
